"""What the script that draws runs over time is given."""

import dataclasses
import json
import zlib
from base64 import b64decode
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from timeline.window import Window

from popmodel.base.errors import PopmodelError
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.measure import analyse
from popmodel.efficiency.observables import Observables
from popmodel.reports.html.contents import Contents, Section
from popmodel.reports.html.packing import Packed, pack
from popmodel.reports.html.page import in_script
from popmodel.reports.html.page_timeline import section
from popmodel.timeline.timeline import LIMITS, Timeline, timeline
from popmodel.timeline.window_sums import FAMILIES
from popmodel.traces import Trace, read
from popmodel.traces.codes import RUNNING, WAITING, Event
from popmodel.traces.paraver.writer import TraceWriter
from popmodel.traces.selection import TracePart, focused

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "traces" / "stencil3d.2x2.prv.gz"
TRACES = [*sorted((ROOT / "tests" / "data").glob("*.prv.gz")), EXAMPLE]


@cache
def shown(path: Path) -> tuple[Trace, Timeline, Section]:
    trace, _ = focused(read(path))
    found = timeline(trace)
    return trace, found, section_of(found)


def section_of(*timelines: Timeline) -> Section:
    found = section(Contents({"title": "", "documents": []}, timelines))
    assert found is not None
    return found


def unpacked(told: Packed) -> np.ndarray[Any, Any]:
    """What a browser makes of packed numbers."""
    planes = np.frombuffer(zlib.decompress(b64decode(told.text)), np.uint8)
    return planes.reshape(told.planes, -1).T.copy().view(f"<{np.dtype(told.type).str[1:]}").ravel()


def window(made: Section, first: int, last: int, number: int = 0) -> Window:
    run = json.loads(in_script(made.data))["runs"][number]
    arrays = {name: unpacked(pack(values)) for name, values in made.packed.items()}
    return Window(run["window"], arrays, (run["begin"], run["step"], run["end"]), first, last)


def known(run: Observables, family: str) -> Mapping[str, float]:
    return load_families()[family].evaluate(run.aggregates(), run.absent).values


def compare(trace: Trace, made: Section, first: int, last: int) -> int:
    """Hold the metrics of a window to those of that part of the trace; how many there are."""
    mine = window(made, first, last)
    try:
        run = analyse(trace, part=TracePart(begin=mine.begin, end=mine.end)).observables
    except PopmodelError:  # nothing was traced there
        assert not mine.sums["traced"].any()
        return 0
    compared = 0
    for told in made.data["runs"][0]["window"]["families"]:
        exact = {each["id"] for each in told["metrics"] if not each["estimate"]}
        found, wanted = mine.metrics(told["id"]), known(run, told["id"])
        assert exact & set(found) == exact & set(wanted)
        for id in exact & set(wanted):
            assert found[id] == pytest.approx(wanted[id], rel=1e-9, abs=1e-9), (told["id"], id)
            compared += 1
    return compared


def edges(made: Section) -> int:
    return len(made.data["runs"][0]["window"]["edges"]) - 1


@pytest.mark.long(after=1)
@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_windows_have_the_metrics_of_that_part_of_the_trace(path: Path) -> None:
    trace, _, made = shown(path)
    last = edges(made)
    numbers = np.random.default_rng(0).integers(0, last + 1, (4, 2)).tolist()
    windows = [(0, last), (0, 1), (last - 1, last), *map(sorted, numbers)]
    compared = [compare(trace, made, *each) for each in windows if each[0] != each[1]]
    assert sum(compared) > 60


@given(ends=st.tuples(st.integers(0, 512), st.integers(0, 512)), path=st.sampled_from(TRACES))
def test_any_two_edges_will_do(ends: tuple[int, int], path: Path) -> None:
    trace, _, made = shown(path)
    first, last = sorted(min(each, edges(made)) for each in ends)
    if first < last:
        compare(trace, made, first, last)


def test_windows_of_a_larger_run(real_trace: Callable[[str], Path]) -> None:
    trace, _, made = shown(real_trace("epoch_16proc"))
    for ends in ((0, 512), (3, 17), (250, 251), (100, 400)):
        assert compare(trace, made, *ends) >= 20


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_of_the_whole_run_estimates_are_exact(path: Path) -> None:
    trace, _, made = shown(path)
    run, mine = analyse(trace).observables, window(made, 0, edges(made))
    for family in FAMILIES:
        wanted = known(run, family)
        for id, value in mine.metrics(family).items():
            assert value == pytest.approx(wanted[id], rel=1e-9, abs=1e-9), (family, id)


@pytest.mark.long(after=2)
@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_estimates_are_near_a_replay_of_the_window_where_it_is_long(path: Path) -> None:
    trace, _, made = shown(path)
    long = edges(made) * 2 // 5
    for first in (0, edges(made) // 3, edges(made) - long):
        mine = window(made, first, first + long)
        run = analyse(trace, part=TracePart(begin=mine.begin, end=mine.end)).observables
        estimated, wanted = mine.metrics("mpi")["transfer_efficiency"], known(run, "mpi")
        assert estimated == pytest.approx(wanted["transfer_efficiency"], abs=0.03)


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_every_metric_of_a_family_is_there_or_has_its_reason(path: Path) -> None:
    _, _, made = shown(path)
    for told in made.data["runs"][0]["window"]["families"]:
        rows = [*told["metrics"], *told["absent"]]
        assert {each["id"] for each in rows} == set(load_families()[told["id"]].metrics)
        assert all(each["reason"] for each in told["absent"])


def test_lanes_are_those_of_the_timeline() -> None:
    _, found, made = shown(EXAMPLE)
    (run,) = made.data["runs"]
    assert found.ideal is not None
    for name, lanes in (("measured", found.measured), ("ideal", found.ideal)):
        there = unpacked(pack(made.packed[run[name]])).reshape(len(run["labels"]), run["columns"])
        assert (there == lanes.kind).all()
    ranks = [f"rank {rank}, thread {thread}" for rank in (0, 1) for thread in (0, 1)]
    assert run["labels"] == ranks


def test_messages_are_told_in_parts_of_columns() -> None:
    _, found, made = shown(EXAMPLE)
    (run,) = made.data["runs"]
    sender, receiver, sent, lasting = made.packed[run["messages"]["measured"]].reshape(4, -1)
    arrows, part = found.messages, found.axis.step / 16
    assert sender.tolist() == arrows.sender.tolist()
    assert receiver.tolist() == arrows.receiver.tolist()
    assert np.cumsum(sent) * part + found.begin == pytest.approx(arrows.sent, abs=part)
    took = arrows.received - arrows.sent
    assert lasting * part == pytest.approx(took, abs=part)
    assert run["messages"]["note"] is None


def test_fewer_messages_than_there_are_say_so() -> None:
    trace, _, _ = shown(EXAMPLE)
    few = timeline(trace, limits=dataclasses.replace(LIMITS, arrows=10))
    told = section_of(few).data["runs"][0]["messages"]
    assert told["note"] == f"the 10 largest of {told['count']} messages"
    assert told["shown"] == 10


def test_the_command_of_a_window_gives_its_metrics() -> None:
    _, found, made = shown(EXAMPLE)
    told = made.data["runs"][0]["window"]["command"]
    assert told == f"popmodel metrics {found.trace} --window"


def base64(made: Section) -> int:
    """Letters of all packed numbers."""
    return sum(len(pack(values).text) for values in made.packed.values())


def test_sixteen_processes_take_little_room(real_trace: Callable[[str], Path]) -> None:
    _, found, made = shown(real_trace("epoch_16proc"))
    assert found.axis.columns > 30_000
    assert base64(made) <= 250_000


@pytest.fixture(scope="module")
def thousand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A thousand processes that compute for a random time before each of 40 barriers."""
    barrier, steps, rng = 8, 40, np.random.default_rng(0)
    burst = rng.integers(500_000, 1_500_000, (steps, 1000))
    writer = TraceWriter([1] * 1000)
    begin = 0
    for step in range(steps):
        end = begin + int(burst[step].max())
        for rank, length in enumerate(burst[step].tolist()):
            arrival = begin + length
            writer.state(rank, 0, begin, arrival, RUNNING)
            writer.state(rank, 0, arrival, end, WAITING)
            writer.event(rank, 0, arrival, [(Event.COLLECTIVE, barrier)])
            writer.event(rank, 0, end, [(Event.COLLECTIVE, 0)])
        begin = end
    path = tmp_path_factory.mktemp("thousand") / "run.prv"
    writer.write(path)
    return path


@pytest.mark.long
def test_a_thousand_processes_take_little_room_and_time(thousand: Path) -> None:
    trace, _ = focused(read(thousand))
    before = process_time()
    found = timeline(trace)
    assert process_time() - before < 3
    made = section_of(found)
    assert base64(made) <= 900_000
    assert len(found.rows) == 500
    assert edges(made) > 100
    assert compare(trace, made, 7, 60) >= 20


def test_what_packs_as_floats_is_exact() -> None:
    from popmodel.reports.html.page_timeline import _smallest

    small, large = np.array([2**31 - 1]), np.array([2**31, 2**52 + 1])
    assert _smallest(small).dtype == np.int32
    assert _smallest(large).tolist() == [2**31, 2**52 + 1]


def test_without_timelines_there_is_no_section() -> None:
    assert section(Contents({"title": "", "documents": []})) is None
