"""A run written as a trace and read back is the program it was, with fine and coarse clocks."""

import gzip
import re
from collections import deque
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle.programs import operations
from oracle.script import Script

from popmodel.base.errors import ReplayError
from popmodel.network.network import PRESETS
from popmodel.simulator import replay
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.program import Op, Program, ProgramBuilder
from popmodel.traces import read
from popmodel.traces.run_parts import splice

IDEAL = PRESETS["ideal"]
EAGER = IDEAL.with_(eager_threshold=float("inf"))

NAMES = {
    "barrier": "Barrier",
    "bcast": "Bcast",
    "reduce": "Reduce",
    "allreduce": "Allreduce",
    "alltoall": "Alltoall",
    "gather": "Gather",
    "scatter": "Scatter",
    "allgather": "Allgather",
    "scan": "Scan",
    "reduce_scatter": "Reduce_scatter",
}


@st.composite
def runs(draw: st.DrawFn, shortest: int = 1) -> tuple[Script, Program]:
    """The same run as a script of a trace and as a program.

    How long calls take in the trace is arbitrary: the replay discards it.
    """
    processes = draw(st.integers(1, 4))
    script, program = Script(processes), ProgramBuilder(processes)
    ranks = st.integers(0, processes - 1)
    # What is open: receives may be completed in any order, the others first in, first out.
    receives: list[tuple[int, int, int]] = []
    requests: list[deque[tuple[Op, int]]] = [deque() for _ in range(processes)]
    sends: dict[int, object] = {}
    posts: dict[int, object] = {}
    lengths = st.integers(shortest, 40)

    def compute(p: int) -> None:
        length = draw(st.integers(0, 2000))
        script.compute(p, length)
        program.compute(p, length * 1e-9)

    def call(p: int, name: str, op: Op, target: int, **attributes: object):
        compute(p)
        program.do(p, op, target)
        make = script.collective if attributes else script.call
        return make(p, name, draw(lengths), **attributes)

    def complete(p: int, m: int, size: int) -> None:
        wait = call(p, "Wait", Op.WAIT_RECEIVE, m)
        script.message(sends[m], posts[m], wait, size)

    for _ in range(draw(st.integers(0, 10))):
        if draw(st.booleans()):
            sender, receiver = draw(ranks), draw(ranks)
            size = draw(st.sampled_from([0, 100, 10**5]))
            m = program.message(sender, receiver, size)
            if sender == receiver or draw(st.booleans()):
                sends[m] = call(sender, "Isend", Op.ISEND, m)
                requests[sender].append((Op.WAIT_SEND, m))
            else:
                sends[m] = call(sender, "Send", Op.SEND, m)
            if draw(st.booleans()):
                received = call(receiver, "Recv", Op.RECEIVE, m)
                script.message(sends[m], received, received, size)
            else:
                posts[m] = call(receiver, "Irecv", Op.POST, m)
                receives.append((receiver, m, size))
        else:
            kind = draw(st.sampled_from(sorted(NAMES)))
            root = draw(ranks)
            sizes = {"sent": draw(st.integers(0, 999)), "received": draw(st.integers(0, 999))}
            if not sizes["sent"]:  # with something received it would be read as in place
                sizes["received"] = 0
            blocking = kind != "allreduce" or draw(st.booleans())
            made = dict(sizes)
            if kind == "alltoall":  # sent to one is recorded
                made = dict.fromkeys(sizes, sizes["sent"] * processes)
                sizes["received"] = made["received"]
            c = program.collective(kind, **made, root=root, root_sent=made["sent"])
            for p in range(processes):
                name = NAMES[kind] if blocking else "Iallreduce"
                op = Op.COLLECTIVE if blocking else Op.ARRIVE
                call(p, name, op, c, **sizes, root=p == root)
                if not blocking:
                    requests[p].append((Op.WAIT_COLLECTIVE, c))
        p = draw(ranks)
        if requests[p] and draw(st.booleans()):
            call(p, "Wait", *requests[p].popleft())
        if receives and draw(st.booleans()):
            complete(*receives.pop(draw(st.integers(0, len(receives) - 1))))
    for receiver, m, size in receives:
        complete(receiver, m, size)
    for p in range(processes):
        while requests[p]:
            call(p, "Wait", *requests[p].popleft())
        compute(p)
    script.end()
    return script, program.build()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(runs(), st.sampled_from(sorted(PRESETS)), st.sampled_from(["dimemas", "rooted"]))
def test_a_trace_gives_back_the_program_it_was_written_from(
    tmp_path: Path, run: tuple[Script, Program], name: str, reading: str
) -> None:
    script, original = run
    network = PRESETS[name].with_(collectives=reading)
    program = from_trace(script.read(tmp_path))
    assert program.compute().tolist() == pytest.approx(original.compute().tolist(), abs=1e-3)
    expected: object
    try:
        expected = replay(original, network).end
    except ReplayError:
        with pytest.raises(ReplayError):
            replay(program, network)
        return
    assert replay(program, network).end == pytest.approx(expected, abs=1e-15)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(runs(shortest=0))
def test_a_coarse_clock_changes_the_order_of_calls_at_one_time_only(
    tmp_path: Path, run: tuple[Script, Program]
) -> None:
    script, original = run
    program = from_trace(script.read(tmp_path))
    assert len(program.messages) == len(original.messages)
    assert replay(program, EAGER).end == pytest.approx(replay(original, EAGER).end, abs=1e-15)


def test_of_receives_posted_at_one_time_those_completed_first_were_first(tmp_path: Path) -> None:
    script = Script(3)
    script.compute(0, 100)
    second = script.call(0, "Isend", 0)
    script.compute(1, 10)
    first = script.call(1, "Isend", 0)
    script.compute(2, 50)
    early = script.call(2, "Irecv", 0)
    waited = script.call(2, "Wait", 0)
    late = script.call(2, "Irecv", 0)
    script.message(first, early, waited, 8)
    script.message(second, late, script.call(2, "Wait", 60), 8)
    program = from_trace(script.read(tmp_path))
    assert operations(program, 2) == ["POST", "WAIT_RECEIVE", "POST", "WAIT_RECEIVE"]
    assert replay(program, IDEAL).end[2] * 1e9 == pytest.approx(100)


@pytest.mark.parametrize("name", ["mix.4", "mixnbc.4", "mixpers.4", "comd.4", "cg.S.2"])
def test_a_real_trace_in_microseconds(
    name: str, real_trace: Callable[[str], Path], tmp_path: Path
) -> None:
    lines = gzip.decompress(real_trace(name).read_bytes()).decode().splitlines()
    times = {"1": (5, 6), "2": (5,), "3": (5, 6, 11, 12)}
    coarse = [re.sub(r":(\d+)_ns:", lambda m: f":{int(m[1]) // 1000}:", lines[0])]
    for line in lines[1:]:
        fields = line.split(":")
        for i in times.get(fields[0], ()):
            fields[i] = str(int(fields[i]) // 1000)
        coarse.append(":".join(fields))
    (tmp_path / "x.prv").write_text("\n".join(coarse) + "\n")
    fine = from_trace(read(real_trace(name)))
    program = from_trace(read(tmp_path / "x.prv"))
    assert (program.notes, program.operations) == (fine.notes, fine.operations)
    # Every burst loses or gains less than a microsecond.
    bound = 1e-6 * max(np.diff(fine.offsets))
    assert abs(replay(program, IDEAL).runtime - replay(fine, IDEAL).runtime) < bound


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(runs(), st.floats(0, 0.9), st.floats(0.05, 1))
def test_any_window_can_be_replayed_and_keeps_its_time_outside_mpi(
    tmp_path: Path, run: tuple[Script, Program], start: float, share: float
) -> None:
    script, _ = run
    trace = script.read(tmp_path)
    begin = round(trace.end * start)
    end = begin + max(1, round((trace.end - begin) * share))
    if begin >= trace.end:
        return
    window = trace.window(begin, end)
    program = from_trace(window)
    # Eager: sends that the order of the random program leaves without partner do not wait.
    replay(program, EAGER.with_(collectives="rooted"))
    calls = window.calls()
    for p in range(window.processes):
        mine = slice(calls.offsets[p], calls.offsets[p + 1])
        passed = min(script.clock[p], window.end) - window.begin
        in_mpi = (calls.exit[mine] - calls.entry[mine]).sum()
        assert program.compute()[p] == pytest.approx(max(passed - in_mpi, 0), abs=1e-6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(runs(), st.lists(st.floats(0, 1), min_size=4, max_size=12))
def test_any_stretches_can_be_replayed_and_have_the_time_outside_mpi_of_their_windows(
    tmp_path: Path, run: tuple[Script, Program], edges: list[float]
) -> None:
    script, _ = run
    trace = script.read(tmp_path)
    times = np.unique(np.rint(np.array(edges) * trace.end).astype(np.int64))
    begin, end = times[:-1:2], times[1::2]
    if not len(begin):
        return
    part = splice(trace, begin, end)
    assert part.pieces is not None
    program = from_trace(part)
    # Eager: sends that the order of the random program leaves without partner do not wait.
    execution = replay(program, EAGER.with_(collectives="rooted"))
    alone = [from_trace(trace.window(*piece)).compute() for piece in part.pieces]
    assert program.compute() == pytest.approx(np.sum(alone, axis=0), abs=1e-6)
    assert execution.runtime * 1e9 >= program.compute().max() - 1e-6
