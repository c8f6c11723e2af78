"""Regions that users mark, as popmodel's tracer, Extrae's functions and Extrae's events do."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.traces import Trace, read
from popmodel.traces.paraver.labels import Labels
from popmodel.traces.paraver.writer import TraceWriter
from popmodel.traces.regions import Occurrences, user_regions

REGION, PHASE, NUMBER = 60000019, 1000, 2000
END = 100
LABELS = Labels(
    event_types={REGION: "User region", PHASE: "Phase", NUMBER: "Iteration"},
    event_values={
        REGION: {0: "End", 1: "outer", 2: "inner", 3: "other"},
        PHASE: {0: "End", 1: "set-up", 2: "solve"},
    },
)

Event = tuple[int, int, int]
"""Process, time and value."""


def traced(
    folder: Path,
    *events: Event,
    type_: int = REGION,
    threads: Iterable[int] = (1, 1),
    labels: Labels | None = LABELS,
) -> Trace:
    writer = TraceWriter([*threads], duration=END, labels=labels)
    writer.state(0, 0, 0, END, 1)
    for process, time, value in events:
        writer.event(process, 0, time, [(type_, value)])
    writer.write(folder / "x.prv")
    return read(folder / "x.prv")


def spans(found: Occurrences) -> dict[str, list[tuple[int, int, int]]]:
    """Location, begin and end of the occurrences of each region."""
    spans: dict[str, list[tuple[int, int, int]]] = {name: [] for name in found.names}
    for label, *span in zip(
        found.label.tolist(),
        found.location.tolist(),
        found.begin.tolist(),
        found.end.tolist(),
        strict=True,
    ):
        spans[found.names[label]].append((span[0], span[1], span[2]))
    return spans


def test_regions_one_after_the_other(tmp_path: Path) -> None:
    events = [(p, t, v) for p in (0, 1) for t, v in ((10, 1), (20, 0), (30, 1), (45, 0), (50, 3))]
    assert spans(user_regions(traced(tmp_path, *events))) == {
        "other": [(0, 50, END), (1, 50, END)],  # never ended
        "outer": [(0, 10, 20), (0, 30, 45), (1, 10, 20), (1, 30, 45)],
    }


def test_a_region_inside_a_region_as_the_tracer_writes_it(tmp_path: Path) -> None:
    """Where the inner one ends, the number of the outer one comes again."""
    values = ((10, 1), (20, 2), (30, 0), (30, 1), (40, 2), (45, 0), (45, 1), (60, 0))
    assert spans(user_regions(traced(tmp_path, *((0, *each) for each in values)))) == {
        "inner": [(0, 20, 30), (0, 40, 45)],
        "outer": [(0, 10, 60)],
    }


def test_a_region_that_ends_before_one_that_was_begun_inside_it(tmp_path: Path) -> None:
    """The inner one ends and begins again where the outer one ends: it is one."""
    values = ((10, 1), (20, 2), (30, 0), (30, 1), (30, 0), (30, 2), (50, 0))
    assert spans(user_regions(traced(tmp_path, *((0, *each) for each in values)))) == {
        "inner": [(0, 20, 50)],
        "outer": [(0, 10, 30)],
    }


def test_a_region_that_begins_at_the_time_at_which_it_ended_is_another(tmp_path: Path) -> None:
    values = ((10, 1), (20, 2), (30, 0), (30, 1), (30, 2), (50, 0), (50, 1), (60, 0))
    assert spans(user_regions(traced(tmp_path, *((0, *each) for each in values)))) == {
        "inner": [(0, 20, 30), (0, 30, 50)],
        "outer": [(0, 10, 60)],
    }


def test_ends_without_a_begin_and_regions_that_never_end(tmp_path: Path) -> None:
    trace = traced(tmp_path, (0, 5, 0), (0, 6, 0), (0, 10, 1), (0, 20, 2), (0, 30, 0))
    assert spans(user_regions(trace)) == {"inner": [(0, 20, 30)], "outer": [(0, 10, END)]}


def test_events_of_the_users_hold_until_the_next(tmp_path: Path) -> None:
    trace = traced(tmp_path, (0, 10, 1), (0, 20, 2), (0, 30, 2), (0, 40, 0), type_=PHASE)
    assert spans(user_regions(trace)) == {
        "set-up": [(0, 10, 20)],
        "solve": [(0, 20, 30), (0, 30, 40)],
    }


def test_events_without_names_are_one_region_by_the_name_of_their_type(tmp_path: Path) -> None:
    trace = traced(tmp_path, (0, 10, 77), (0, 20, 78), (0, 30, 0), type_=NUMBER)
    assert spans(user_regions(trace)) == {"Iteration": [(0, 10, 20), (0, 20, 30)]}


def test_a_value_without_a_name_has_its_number(tmp_path: Path) -> None:
    trace = traced(tmp_path, (0, 10, 9), (0, 20, 0), type_=PHASE)
    assert user_regions(trace).names == ("Phase: 9",)
    trace = traced(tmp_path, (0, 10, 9), (0, 20, 0))
    assert user_regions(trace).names == ("user function 9",)


@pytest.mark.parametrize("type_", [60001, 50000001, 42000050, 60000018])
def test_events_of_mpi_openmp_and_counters_are_none(tmp_path: Path, type_: int) -> None:
    trace = traced(tmp_path, (0, 10, 1), (0, 20, 0), type_=type_)
    assert user_regions(trace).names == ()


def test_numbers_that_never_end_are_none(tmp_path: Path) -> None:
    assert user_regions(traced(tmp_path, (0, 10, 5), (0, 20, 6), type_=NUMBER)).names == ()


def test_samples_of_functions_are_none_and_said(tmp_path: Path) -> None:
    trace = traced(tmp_path, (0, 10, 5), (0, 20, 6), (0, 30, 0), type_=30000001)
    assert user_regions(trace).names == ()
    assert trace.records.functions(trace.process_offsets) is None
    assert "samples of functions (ignored: they have no begins and ends)" in [
        warning.text for warning in trace.warnings
    ]


def test_in_a_part_of_a_run_they_are_what_lies_inside(tmp_path: Path) -> None:
    trace = traced(tmp_path, (0, 10, 1), (0, 20, 2), (0, 30, 0), (0, 60, 0), (1, 80, 3), (1, 90, 0))
    assert spans(user_regions(trace.window(25, 50))) == {
        "inner": [(0, 25, 30)],
        "other": [],
        "outer": [(0, 25, 50)],
    }


@st.composite
def nested(draw: st.DrawFn) -> list[tuple[int, bool]]:
    """Regions that begin and end inside each other: number, and whether it begins."""
    steps: list[tuple[int, bool]] = []
    open_: list[int] = []
    for choice in draw(st.lists(st.integers(0, 3), max_size=30)):
        if choice:
            open_.append(choice)
            steps.append((choice, True))
        elif open_:
            steps.append((open_.pop(), False))
    return steps + [(each, False) for each in reversed(open_)]


@given(nested())
def test_extraes_functions_give_back_what_was_begun_and_ended(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, bool]]
) -> None:
    names = {1: "outer", 2: "inner", 3: "other"}
    depth = dict.fromkeys(names, 0)
    expected: dict[str, list[tuple[int, int, int]]] = {}
    since = {}
    for time, (number, begins) in enumerate(steps, start=1):
        depth[number] += 1 if begins else -1
        if begins and depth[number] == 1:
            since[number] = time
        elif not begins and not depth[number]:
            expected.setdefault(names[number], []).append((0, since[number], time))
    events = [(0, t, number if begins else 0) for t, (number, begins) in enumerate(steps, start=1)]
    assert spans(user_regions(traced(tmp_path_factory.mktemp("nested"), *events))) == expected
