"""A region as the part of a run that is analysed: its windows, and what is said about them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from popmodel.base.errors import PartError
from popmodel.efficiency.measure import analyse
from popmodel.traces import Trace, read
from popmodel.traces.intervals import TracePieces
from popmodel.traces.paraver.labels import Labels
from popmodel.traces.paraver.writer import TraceWriter
from popmodel.traces.selection import TracePart, focused

REGION, PARALLEL, OUTLINED = 60000019, 60000001, 60000018
END = 100
LABELS = Labels(
    event_types={REGION: "User region", OUTLINED: "Executed OpenMP parallel function"},
    event_values={
        REGION: {0: "End", 1: "solve", 2: "exchange", 3: "never"},
        OUTLINED: {0: "End", 7: "sweep._omp_fn.0"},
    },
)

Span = tuple[int, int]


def traced(
    folder: Path,
    *spans: Sequence[Span],
    threads: Sequence[int] | None = None,
    duration: int = END,
) -> Trace:
    """Threads, one per process by default, that are in the region "solve" at some times."""
    teams = [1] * len(spans) if threads is None else threads
    writer = TraceWriter(teams, duration=duration, labels=LABELS)
    places = [(process, thread) for process, team in enumerate(teams) for thread in range(team)]
    for place, mine in zip(places, spans, strict=True):
        writer.state(*place, 0, duration, 1)
        for begin, end in mine:
            writer.event(*place, begin, [(REGION, 1)])
            writer.event(*place, end, [(REGION, 0)])
    writer.write(folder / "x.prv")
    return read(folder / "x.prv")


def windows(trace: Trace, **asked: int) -> tuple[list[Span], tuple[str, ...]]:
    """What is analysed with the region "solve", and what is said about it after the first line."""
    part, focus = focused(trace, TracePart(region="solve", **asked))
    assert part.pieces is not None
    return list(part.pieces), focus.caveats[1:]


def test_an_occurrence_lasts_from_the_first_begin_to_the_last_end(tmp_path: Path) -> None:
    trace = traced(tmp_path, [(10, 19), (40, 50)], [(11, 20), (41, 50)])
    part, focus = focused(trace, TracePart(region="solve"))
    assert list(part.pieces or ()) == [(10, 20), (40, 50)]
    assert (part.begin, part.end) == (10, 30)
    assert focus.caveats == (
        "analysed 20 ns of 100 ns: region solve, 2 occurrences "
        "(left out: 10 ns before, 20 ns between, 50 ns after)",
        "processes are inside region solve for 92.5 % of the analysed time",
    )
    assert focus.to_dict() == {
        "begin": 10e-9,
        "end": 50e-9,
        "duration": 20e-9,
        "left_out": {"before": 10e-9, "between": 20e-9, "after": 50e-9},
        "region": "solve",
        "occurrences": 2,
        "why": "region solve, 2 occurrences",
    }


def test_occurrences_that_overlap_over_processes_are_one_window(tmp_path: Path) -> None:
    """Rank 1 is still in the first one when rank 0 is in the second."""
    trace = traced(tmp_path, [(10, 20), (25, 35)], [(15, 30), (32, 45)])
    assert windows(trace)[0] == [(10, 45)]


def test_processes_that_never_enter_are_named(tmp_path: Path) -> None:
    trace = traced(tmp_path, [(10, 20)], [], [(10, 20)], [])
    assert windows(trace) == (
        [(10, 20)],
        (
            "2 processes of 4 never enter region solve (first: rank 1)",
            "processes are inside region solve for 50 % of the analysed time",
        ),
    )


def test_where_counts_differ_all_time_with_a_process_inside_is_taken(tmp_path: Path) -> None:
    trace = traced(tmp_path, [(10, 20), (40, 50), (70, 80)], [(45, 55)])
    assert windows(trace) == (
        [(10, 20), (40, 55), (70, 80)],
        (
            "processes enter region solve 1 to 3 times: all time with a process inside is analysed",
            "processes are inside region solve for 57.1 % of the analysed time",
        ),
    )


def test_threads_of_a_process_are_inside_together(tmp_path: Path) -> None:
    """The second thread of rank 0 is late; together they are inside as often as rank 1."""
    trace = traced(tmp_path, [(10, 20), (40, 50)], [(12, 22)], [(10, 22), (40, 50)], threads=[2, 1])
    assert windows(trace) == ([(10, 22), (40, 50)], ())


def test_only_what_lies_in_the_window(tmp_path: Path) -> None:
    trace = traced(tmp_path, [(10, 20), (40, 50), (70, 80)])
    assert windows(trace, begin=45)[0] == [(45, 50), (70, 80)]
    _, focus = focused(trace, TracePart(15, 42, "solve"))
    assert focus.occurrences == 2
    assert focus.why == "region solve, 2 occurrences in 15 ns to 42 ns"
    with pytest.raises(PartError) as caught:
        windows(trace, begin=85)
    assert caught.value.message == (
        f"{trace.path}: region solve takes no time in the analysed part (85 ns to 100 ns)"
    )
    assert caught.value.hint == "it lasts from 10 ns to 80 ns: choose a --window there"


def with_mpi(folder: Path, *spans: Span) -> Trace:
    """A process that is in MPI_Init from 5 to 20 and in MPI_Finalize from 80 to 90."""
    writer = TraceWriter([1], duration=END, labels=LABELS)
    writer.state(0, 0, 0, END, 1)
    for value, begin, end in ((31, 5, 20), (32, 80, 90)):
        writer.event(0, 0, begin, [(50000003, value)])
        writer.event(0, 0, end, [(50000003, 0)])
    for begin, end in spans:
        writer.event(0, 0, begin, [(REGION, 1)])
        writer.event(0, 0, end, [(REGION, 0)])
    writer.write(folder / "x.prv")
    return read(folder / "x.prv")


def test_the_start_and_the_end_of_mpi_are_no_part_of_a_region(tmp_path: Path) -> None:
    trace = with_mpi(tmp_path, (2, 95))
    part, focus = focused(trace, TracePart(region="solve"))
    assert list(part.pieces or ()) == [(20, 80)]
    assert focus.caveats == (
        "analysed 60 ns of 100 ns: region solve, 1 occurrence, MPI_Init to MPI_Finalize "
        "(left out: 20 ns before, 20 ns after; --from-start includes all of the region)",
    )
    part, focus = focused(trace, TracePart(region="solve", from_start=True))
    assert list(part.pieces or ()) == [(2, 95)]
    assert focus.why == "region solve, 1 occurrence"


def test_a_region_between_them_is_taken_as_it_is(tmp_path: Path) -> None:
    _, focus = focused(with_mpi(tmp_path, (30, 50)), TracePart(region="solve"))
    assert focus.why == "region solve, 1 occurrence"


def test_a_region_before_the_end_of_mpi_init_says_where_it_lies(tmp_path: Path) -> None:
    trace = with_mpi(tmp_path, (2, 4))
    with pytest.raises(PartError) as caught:
        focused(trace, TracePart(region="solve"))
    assert caught.value.message == (
        f"{trace.path}: region solve takes no time in the analysed part (MPI_Init to MPI_Finalize)"
    )
    assert caught.value.hint == "it lasts from 2 ns to 4 ns: choose a --window there"
    assert list(focused(trace, TracePart(2, 4, "solve"))[0].pieces or ()) == [(2, 4)]


def test_a_region_without_length(tmp_path: Path) -> None:
    trace = traced(tmp_path, [(10, 10), (20, 20)])
    with pytest.raises(PartError) as caught:
        windows(trace)
    assert caught.value.message == f"{trace.path}: region solve takes no time"


def test_a_parallel_region_by_its_name(tmp_path: Path) -> None:
    writer = TraceWriter([2, 2], duration=END, labels=LABELS)
    for process in (0, 1):
        for begin in (10, 40):
            writer.event(process, 0, begin, [(PARALLEL, 1), (OUTLINED, 7)])
            writer.event(process, 1, begin + 1, [(OUTLINED, 7)])
            writer.event(process, 1, begin + 5, [(OUTLINED, 0)])
            writer.event(process, 0, begin + 8, [(OUTLINED, 0), (PARALLEL, 0)])
        for thread in (0, 1):
            writer.state(process, thread, 0, END, 1)
    writer.write(tmp_path / "x.prv")
    run = analyse(read(tmp_path / "x.prv"), part=TracePart(region="sweep"))
    assert run.observables.runtime == pytest.approx(16e-9)
    assert run.observables.in_openmp == pytest.approx(16e-9)
    assert [(region.name, region.count) for region in run.observables.regions] == [("sweep", 4)]


def test_all_parallel_regions_of_a_function_by_its_name(tmp_path: Path) -> None:
    """Labels as of C++: shortened, with arguments, and with what the compiler made of them."""
    whole = "CalcForceForNodes(Domain&) [clone ._omp_fn.{}]"
    names = {value: f"Calc..&) [{whole.format(value)}]" for value in (1, 2)}
    values = {OUTLINED: {0: "End", 3: "other", **names}}
    labels = Labels(event_types=LABELS.event_types, event_values=values)
    writer = TraceWriter([1], duration=END, labels=labels)
    for begin, value in ((10, 1), (40, 2), (60, 3)):
        writer.event(0, 0, begin, [(PARALLEL, 1), (OUTLINED, value)])
        writer.event(0, 0, begin + 8, [(OUTLINED, 0), (PARALLEL, 0)])
    writer.state(0, 0, 0, END, 1)
    writer.write(tmp_path / "x.prv")
    trace = read(tmp_path / "x.prv")
    for name, spans in {
        "CalcForceForNodes": [(10, 18), (40, 48)],
        "CalcForceForNodes (region 2)": [(40, 48)],
    }.items():
        assert list(focused(trace, TracePart(region=name))[0].pieces or ()) == spans


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("solver", "did you mean solve?"),
        ("quite another", "regions in the trace: exchange, never, solve"),
    ],
)
def test_unknown_names(tmp_path: Path, name: str, hint: str) -> None:
    writer = TraceWriter([1], duration=END, labels=LABELS)
    for value in (1, 2, 3):
        writer.event(0, 0, 10 * value, [(REGION, value)])
        writer.event(0, 0, 10 * value + 5, [(REGION, 0)])
    writer.write(tmp_path / "x.prv")
    trace = read(tmp_path / "x.prv")
    with pytest.raises(PartError) as caught:
        focused(trace, TracePart(region=name))
    assert caught.value.message == f"{trace.path}: no region '{name}'"
    assert caught.value.hint == hint


def test_a_window_says_what_it_leaves_out(tmp_path: Path) -> None:
    part, focus = focused(traced(tmp_path, []), TracePart(20, None))
    assert (part.begin, part.end) == (20, 100)
    assert focus.caveats == ("analysed 80 ns of 100 ns: 20 ns to 100 ns (left out: 20 ns before)",)


def test_many_occurrences_take_one_pass(tmp_path: Path) -> None:
    count = 20_000
    spans = [(10 * index, 10 * index + 4) for index in range(count)]
    trace = traced(tmp_path, spans, spans, duration=10 * count)
    part, focus = focused(trace, TracePart(region="solve"))
    assert (part.duration, focus.occurrences) == (4 * count, count)
    pieces = part.pieces
    assert isinstance(pieces, TracePieces)
    assert np.array_equal(pieces.begin, 10 * np.arange(count))
    assert (
        analyse(trace, part=TracePart(region="solve")).observables.useful.tolist()
        == [4e-9 * count] * 2
    )
