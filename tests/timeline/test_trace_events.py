"""Files for Perfetto and Chrome, read back and held to the trace's tables."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from synthetic import Program, Rank, run
from synthetic.program import Steps

from popmodel.network.network import PRESETS
from popmodel.simulator import replay
from popmodel.simulator.from_trace import from_trace
from popmodel.timeline.trace_events import Exported, export
from popmodel.traces import Trace, read
from popmodel.traces.selection import TracePart, focused

DATA = Path(__file__).parent.parent / "data"
NAMES = sorted(path.name.removesuffix(".prv.gz") for path in DATA.glob("*.prv.gz"))

Event = dict[str, Any]


def exported(trace: Trace, folder: Path) -> tuple[Exported, list[Event]]:
    path = folder / "x.perfetto.json"
    told = export(trace, path)
    # Numbers as they are written: fractions of microseconds are not exact as floats.
    document = json.loads(path.read_text(), parse_float=Decimal)
    assert document["displayTimeUnit"] == "ns"
    return told, document["traceEvents"]


def nanoseconds(time: Decimal) -> int:
    whole = time * 1000
    assert whole == int(whole)
    return int(whole)


def slices(events: list[Event]) -> dict[int, list[tuple[int, int, str, str]]]:
    """Begin, end, name and category of the slices of each thread, in the order of the file."""
    found = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            begin = nanoseconds(event["ts"])
            end = begin + nanoseconds(event["dur"])
            found[event["tid"]].append((begin, end, event["name"], event["cat"]))
    return found


@pytest.mark.long(after=1)
@pytest.mark.parametrize("name", NAMES)
def test_calls_are_those_of_the_trace(name: str, tmp_path: Path) -> None:
    trace, _ = focused(read(DATA / f"{name}.prv.gz"))
    told, events = exported(trace, tmp_path)
    assert not any("ends" in note for note in told.notes)
    calls, found = trace.calls(), slices(events)
    for location in range(trace.locations):
        mine = range(int(calls.offsets[location]), int(calls.offsets[location + 1]))
        wanted = [
            (int(calls.entry[row]), int(calls.exit[row]), calls.names[calls.name[row]])
            for row in mine
        ]
        there = [each[:3] for each in found[location + 1] if each[3].startswith("MPI")]
        assert sorted(there) == sorted(wanted)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("name", NAMES)
def test_slices_nest_and_do_not_contradict_each_other(name: str, tmp_path: Path) -> None:
    trace, _ = focused(read(DATA / f"{name}.prv.gz"))
    told, events = exported(trace, tmp_path)
    number = 0
    for tid, mine in slices(events).items():
        is_replayed = trace.locations < tid <= trace.locations + trace.processes
        number += 0 if is_replayed else len(mine)
        around: list[int] = []
        for begin, end, *_ in mine:
            while around and around[-1] <= begin:
                around.pop()
            assert not around or end <= around[-1]
            around.append(end)
    assert number == told.slices


def test_time_in_states_beside_calls_is_that_of_the_trace(tmp_path: Path) -> None:
    trace, _ = focused(read(DATA / "bt-mz.S.2x2.prv.gz"))
    found = slices(exported(trace, tmp_path)[1])
    running = trace.records.in_state(1).total()
    for location in range(trace.locations):
        mine = [each for each in found[location + 1] if each[2] == "Running"]
        assert sum(end - begin for begin, end, *_ in mine) == running[location]
        regions = [each for each in found[location + 1] if each[3] == "parallel region"]
        master = int(trace.process_offsets[trace.process_of_location()[location]])
        constructs = trace.records.openmp().constructs
        assert sum(end - begin for begin, end, *_ in regions) == constructs.total()[master]


@pytest.mark.parametrize("name", ["comd.4", "mixpers.4"])
def test_messages_are_flows_from_call_to_call(name: str, tmp_path: Path) -> None:
    trace = read(DATA / f"{name}.prv.gz")
    told, events = exported(trace, tmp_path)
    begun = {each["id"]: each for each in events if each["ph"] == "s"}
    ended = {each["id"]: each for each in events if each["ph"] == "f"}
    assert begun.keys() == ended.keys()
    # those of the ideal replay may take no time
    assert all(
        nanoseconds(begun[number]["ts"]) <= nanoseconds(ended[number]["ts"]) for number in begun
    )
    measured = [number for number, each in begun.items() if each["tid"] <= trace.locations]
    messages = trace.messages
    assert len(measured) == told.messages == len(messages.size)
    pairs = [(begun[number], ended[number]) for number in measured]
    there = Counter(
        (
            sent["tid"] - 1,
            received["tid"] - 1,
            nanoseconds(sent["ts"]),
            nanoseconds(received["ts"]) + 1,
            sent["args"]["bytes"],
        )
        for sent, received in pairs
    )
    columns = (messages.sender, messages.receiver, messages.logical_send)
    columns = (*columns, messages.physical_receive, messages.size)
    assert there == Counter(zip(*(each.tolist() for each in columns), strict=True))
    calls = slices(events)
    for number in measured[::37]:
        for event in (begun[number], ended[number]):
            at = nanoseconds(event["ts"])
            mine = [each for each in calls[event["tid"]] if each[0] <= at < each[1]]
            assert mine[-1][3].startswith("MPI")


def test_processes_and_threads_have_names_and_numbers_of_their_own(tmp_path: Path) -> None:
    trace, _ = focused(read(DATA / "bt-mz.S.2x2.prv.gz"))
    _, events = exported(trace, tmp_path)
    names = {
        (each["pid"], each["tid"], each["name"]): each["args"].get("name")
        for each in events
        if each["ph"] == "M" and each["name"] in ("process_name", "thread_name")
    }
    assert names == {
        (1, 1, "process_name"): "rank 0",
        (1, 1, "thread_name"): "thread 0",
        (1, 2, "thread_name"): "thread 1",
        (3, 3, "process_name"): "rank 1",
        (3, 3, "thread_name"): "thread 0",
        (3, 4, "thread_name"): "thread 1",
        (5, 5, "process_name"): "rank 0, ideal network",
        (5, 5, "thread_name"): "thread 0",
        (6, 6, "process_name"): "rank 1, ideal network",
        (6, 6, "thread_name"): "thread 0",
    }
    assert {(each["pid"], each["tid"]) for each in events if each["ph"] == "X"} <= {
        key[:2] for key in names
    }


@pytest.mark.long(after=1)
@pytest.mark.parametrize("name", NAMES)
def test_the_replay_is_beside_the_run(name: str, tmp_path: Path) -> None:
    trace, _ = focused(read(DATA / f"{name}.prv.gz"))
    found = slices(exported(trace, tmp_path)[1])
    program = from_trace(trace)
    ends = replay(program, PRESETS["ideal"]).end
    for rank in range(trace.processes):
        mine = found[trace.locations + rank + 1]
        computing = sum(end - begin for begin, end, what, _ in mine if what == "computing")
        assert computing == pytest.approx(program.compute()[rank], abs=len(mine) + 1)
        assert mine[0][0] == trace.begin
        assert max(end for _, end, *_ in mine) - trace.begin == round(ends[rank] * 1e9)
        assert all(one[1] <= other[0] for one, other in pairwise(mine))


def test_a_window_keeps_its_times(tmp_path: Path) -> None:
    whole = read(DATA / "comd.4.prv.gz")
    program, _ = focused(whole)
    middle = (program.begin + program.end) // 2
    part, _ = focused(whole, TracePart(begin=middle, end=program.end))
    _, events = exported(part, tmp_path)
    times = [each for tid, mine in slices(events).items() if tid <= 4 for each in mine]
    assert min(begin for begin, *_ in times) == middle
    assert max(end for _, end, *_ in times) == program.end


def test_occurrences_of_a_region_follow_one_another(tmp_path: Path) -> None:
    whole = read(DATA.parent.parent / "examples" / "traces" / "stencil3d.2x2.prv.gz")
    region = "stencil3d+0x2670 (stencil3d.c:180)"
    part, _ = focused(whole, TracePart(region=region))
    mine = slices(exported(part, tmp_path)[1])[1]
    assert max(end for _, end, *_ in mine) - min(begin for begin, *_ in mine) == part.duration
    assert {each[2] for each in mine if each[3] == "parallel region"} == {region}


def test_names_are_data(tmp_path: Path) -> None:
    hostile = '</script>"\\\u202e{}\u0007'

    def body(me: Rank) -> Steps:
        yield me.enter(hostile)
        yield me.compute(1e-3)
        yield me.leave()
        yield me.collective("Barrier")

    trace = run(Program(2, body)).read(tmp_path)
    _, events = exported(trace, tmp_path)
    (name,) = {each["name"] for each in events if each.get("cat") == "region"}
    assert name in trace.records.user_regions().names


def test_compressed_files_are_equal_for_equal_runs(tmp_path: Path) -> None:
    trace, _ = focused(read(DATA / "is.S.4.prv.gz"))
    one, other = tmp_path / "a.perfetto.json.gz", tmp_path / "b.perfetto.json.gz"
    export(trace, one)
    export(trace, other)
    assert one.read_bytes() == other.read_bytes()
    assert json.loads(gzip.decompress(one.read_bytes()))["traceEvents"]


def test_slices_that_cross_are_shortened_and_counted(tmp_path: Path) -> None:
    # A call that goes on after its region.
    lines = [
        "#Paraver (20/11/2026 at 23:14):1000_ns:1(4):1:1(1:1),0",
        "1:1:1:1:1:0:1000:1",
        "2:1:1:1:1:100:60000019:1",
        "2:1:1:1:1:300:50000003:15",
        "2:1:1:1:1:500:60000019:0",
        "2:1:1:1:1:700:50000003:0",
    ]
    path = tmp_path / "x.prv"
    path.write_text("\n".join(lines) + "\n")
    told, events = exported(read(path), tmp_path)
    assert told.notes == (
        "no ideal replay beside the run: no MPI calls",
        "1 slice ends with the region or call around, which the trace says to end before",
    )
    (call,) = [each for each in slices(events)[1] if each[3] == "MPI other"]
    assert call[:2] == (300, 500)
