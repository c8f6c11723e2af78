"""The critical path as events of the trace."""

from __future__ import annotations

import numpy as np
import pytest
from oracle.script import Script
from sensitivity.paths import Step, path_of

from popmodel.base.errors import TraceError
from popmodel.sensitivity.critical_path import COMPUTING, IN_MPI, path_events, write_path
from popmodel.simulator.execution import PathPart
from popmodel.simulator.from_trace import from_trace
from popmodel.traces import read
from popmodel.traces.selection import TracePart as Window
from popmodel.traces.selection import focused


@pytest.fixture
def trace(tmp_path):
    """Rank 0 computes 100 ns, sends, and ends; rank 1 computes 30 ns, receives, computes."""
    script = Script(2)
    script.compute(0, 100)
    sent = script.call(0, "Send", 20)
    script.compute(1, 30)
    received = script.call(1, "Recv", 120)
    script.compute(1, 50)
    script.message(sent, received, received)
    script.end()
    return script.read(tmp_path)


STEPS = (
    Step(PathPart.COMPUTE, 0, 0, 100),
    Step(PathPart.TRANSFER, 1, 1, 10, row=0, source=0),
    Step(PathPart.COMPUTE, 1, -1, 50),
)


def rows(events) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in events), strict=True))


def test_computing_and_calls_are_marked_at_their_measured_times(trace):
    assert rows(path_events(path_of(*STEPS), from_trace(trace), trace)) == [
        (0, 0, COMPUTING),
        (0, 100, 0),
        (1, 30, IN_MPI),
        (1, 150, COMPUTING),
        (1, 200, 0),
    ]


def test_several_steps_of_a_call_are_one(trace):
    step = Step(PathPart.RECEIVE, 1, 1, 5, row=0)
    found = path_events(path_of(STEPS[0], step, *STEPS[1:]), from_trace(trace), trace)
    assert rows(found) == rows(path_events(path_of(*STEPS), from_trace(trace), trace))


def test_in_a_window_computing_begins_with_it(trace):
    part = focused(trace, Window(60, 180))[0]
    found = path_events(path_of(*STEPS), from_trace(part), part)
    assert rows(found)[0] == (0, 60, COMPUTING)
    assert rows(found)[-1] == (1, 180, 0)


def test_an_empty_path_marks_nothing(trace):
    assert rows(path_events(path_of(), from_trace(trace), trace)) == []


def test_the_trace_with_the_path_reads_as_before(trace, tmp_path):
    target = tmp_path / "path.prv.gz"
    write_path(path_of(*STEPS), from_trace(trace), trace, target, "2 us, 10 GB/s")
    again = read(target)
    assert again.calls().entry.tolist() == trace.calls().entry.tolist()
    assert len(again.records.events.time) == len(trace.records.events.time) + 5
    legend = (tmp_path / "path.pcf").read_text()
    assert "Critical path of a replay (2 us, 10 GB/s), at measured times" in legend
    assert np.array_equal(from_trace(again).burst, from_trace(trace).burst)


def test_a_trace_of_another_format_is_refused(tmp_path):
    source = tmp_path / "ti.txt"
    source.write_text("0 init\n0 compute 1e9\n0 finalize\n")
    trace = read(source)
    with pytest.raises(TraceError, match="the header lacks"):
        write_path(path_of(), from_trace(trace), trace, tmp_path / "x.prv", "ideal")
