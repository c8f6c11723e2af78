"""The trace that a replay would have left says what the replay says, and is replayed as it was."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle.script import Script

from popmodel.base.errors import ReplayError
from popmodel.efficiency.measure import analyse, runtime
from popmodel.network.network import PRESETS, Network
from popmodel.simulator import Program, replay
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.replayer import Replayer
from popmodel.simulator.trace_output import replayed
from popmodel.traces import Trace, read
from popmodel.traces import codes as state
from popmodel.traces.paraver.writer import labels_of
from popmodel.traces.paraver.writer import write_trace as write
from popmodel.traces.selection import TracePart, focused

from .test_round_trip import runs

ALL = TracePart(from_start=True)
IDEAL, DIMEMAS = PRESETS["ideal"], PRESETS["dimemas"]
# Times of transfers are whole nanoseconds.
WHOLE = PRESETS["alpha-beta"].with_(latency=3e-6, bandwidth=1e9)
REAL = [
    *("bt-mz.S.2x2", "cg.S.2", "comd.4", "ft.S.4", "is.S.4", "mix.4", "mixnbc.4", "mixpers.4"),
    *("mixrma.4", "lu.S.4", "mg.S.4"),
]


def of_replay(trace: Trace, network: Network, program: Program | None = None) -> Trace:
    program = program or from_trace(trace)
    moments = Replayer(program).moments(network)
    return replayed(trace, program, moments.begin, moments.end, 1 / network.cpu_factor)


def written(trace: Trace, network: Network, folder: Path) -> Trace:
    """The trace of a replay, written and read again."""
    write(folder / "replayed.prv.gz", of_replay(trace, network), labels_of(trace))
    return read(folder / "replayed.prv.gz")


@pytest.mark.long(after=7)
@pytest.mark.parametrize("network", [IDEAL, DIMEMAS, WHOLE], ids=["ideal", "dimemas", "whole"])
@pytest.mark.parametrize("part", [TracePart(), ALL], ids=["program", "all"])
@pytest.mark.parametrize("name", REAL)
def test_a_real_run_is_read_again_as_it_was_replayed(
    name: str, part: TracePart, network: Network, real_trace: Callable[[str], Path], tmp_path: Path
) -> None:
    trace, _ = focused(read(real_trace(name)), part)
    program = from_trace(trace)
    execution = replay(program, network)
    found = written(trace, network, tmp_path)
    assert found.warnings == ()
    assert runtime(found) * 1e9 == pytest.approx(execution.runtime * 1e9, abs=0.5)
    again = from_trace(found)
    assert again.compute().tolist() == program.compute().tolist()
    assert again.operations == program.operations
    assert len(again.messages) == np.count_nonzero(np.bincount(program.target[program.kind <= 1]))
    assert replay(again, network).end == pytest.approx(execution.end, abs=1e-9)
    for other in (IDEAL, WHOLE):
        assert replay(again, other).end == pytest.approx(replay(program, other).end, abs=1e-9)


@pytest.mark.parametrize("name", ["cg.S.2", "comd.4", "bt-mz.S.2x2"])
def test_its_metrics_are_those_of_the_replay(
    name: str, real_trace: Callable[[str], Path], tmp_path: Path
) -> None:
    trace, _ = focused(read(real_trace(name)))
    ideal = analyse(written(trace, IDEAL, tmp_path), part=ALL).observables
    assert ideal.runtime == pytest.approx(ideal.ideal_runtime, abs=1e-9)
    before = analyse(trace).observables
    slow = analyse(written(trace, DIMEMAS, tmp_path), part=ALL).observables
    assert slow.ideal_runtime == pytest.approx(before.ideal_runtime, abs=1e-9)
    assert slow.not_in_mpi.tolist() == before.not_in_mpi.tolist()
    assert slow.runtime == pytest.approx(replay(from_trace(trace), DIMEMAS).runtime, abs=1e-9)
    if name != "bt-mz.S.2x2":
        assert slow.useful.tolist() == before.useful.tolist()


def test_a_hybrid_trace_keeps_its_parallel_regions(
    real_trace: Callable[[str], Path], tmp_path: Path
) -> None:
    trace, _ = focused(read(real_trace("bt-mz.S.2x2")))
    found = written(trace, DIMEMAS, tmp_path)
    before, after = trace.records.openmp(), found.records.openmp()
    assert after.construct_names == before.construct_names
    assert after.constructs.offsets.tolist() == before.constructs.offsets.tolist()
    length = before.constructs.end - before.constructs.begin
    assert (after.constructs.end - after.constructs.begin).tolist() == length.tolist()
    useful = [each.total() for each in (t.records.in_state(1) for t in (trace, found))]
    assert useful[1].tolist() == useful[0].tolist()


@pytest.mark.parametrize("factor", [0.5, 1.7, 4.0])
def test_scaled_bursts_are_exact_to_a_nanosecond_in_all(
    factor: float, real_trace: Callable[[str], Path], tmp_path: Path
) -> None:
    trace, _ = focused(read(real_trace("comd.4")))
    network = DIMEMAS.with_(cpu_factor=factor)
    execution = replay(from_trace(trace), network)
    found = written(trace, network, tmp_path)
    assert from_trace(found).compute() == pytest.approx(execution.compute * 1e9, abs=0.5 + 1e-6)
    assert runtime(found) * 1e9 == pytest.approx(execution.runtime * 1e9, abs=1.5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(runs(), st.sampled_from([IDEAL, WHOLE, WHOLE.with_(collectives="rooted")]))
def test_any_run_is_read_again_as_it_was_replayed(
    tmp_path: Path, run: tuple[Script, Program], network: Network
) -> None:
    trace = run[0].read(tmp_path)
    program = from_trace(trace)
    try:
        execution = replay(program, network)
    except ReplayError:
        return
    told = of_replay(trace, network, program)
    assert told.ends() == pytest.approx(execution.end * 1e9, abs=0.5 + 1e-6)
    calls, gaps = told.calls(), told.calls().exit - told.calls().entry
    assert (gaps >= 0).all()
    for first, stop in zip(calls.offsets, calls.offsets[1:], strict=False):
        mine = slice(first, stop)
        assert (calls.entry[mine][1:] >= calls.exit[mine][:-1]).all()
    write(tmp_path / "x.prv", told, labels_of(trace))
    again = from_trace(read(tmp_path / "x.prv"))
    assert again.compute().tolist() == program.compute().tolist()
    assert again.operations == program.operations


@pytest.mark.parametrize("name", ["comd.4", "mix.4", "mixnbc.4", "mixpers.4", "cg.S.2"])
@pytest.mark.parametrize(("start", "stop"), [(0.52, 0.9), (0.6, 0.7), (0.8, 0.81)])
def test_a_window_is_complete_in_itself(
    name: str, start: float, stop: float, real_trace: Callable[[str], Path], tmp_path: Path
) -> None:
    whole, focus = focused(read(real_trace(name)))
    length = focus.end - focus.begin
    trace = whole.window(focus.begin + round(start * length), focus.begin + round(stop * length))
    network = WHOLE.with_(eager_threshold=float("inf"))
    program = from_trace(trace)
    again = from_trace(written(trace, network, tmp_path))
    assert again.compute().tolist() == program.compute().tolist()
    assert sorted(again.collectives.members) == sorted(program.collectives.members)
    assert len(again.messages) == np.count_nonzero(np.bincount(program.target[program.kind <= 1]))
    assert replay(again, network).end == pytest.approx(replay(program, network).end, abs=1e-9)


@pytest.mark.parametrize("communicator", [0, 1, 9])  # of all, listed, of nobody knows whom
def test_bytes_of_an_alltoall_stay(communicator: int, tmp_path: Path) -> None:
    script = Script(3)
    for p in range(3 if communicator < 9 else 2):
        script.collective(p, "Alltoall", communicator=communicator, sent=100, received=300)
        script.collective(p, "Alltoallv", communicator=communicator, sent=200 + p, received=300)
    script.end()
    trace = script.read(tmp_path)
    told = written(trace, IDEAL, tmp_path).calls().collectives
    assert told.sent.tolist() == trace.calls().collectives.sent.tolist()
    assert told.received.tolist() == trace.calls().collectives.received.tolist()


def test_states_are_those_of_the_calls(tmp_path: Path) -> None:
    script = Script(2)
    script.compute(0, 100)
    sent = script.call(0, "Send", 50)
    script.compute(1, 20)
    received = script.call(1, "Recv", 500)
    script.compute(1, 30, state=state.INPUT_OUTPUT)
    script.message(sent, received, received)
    script.end()
    slow = WHOLE.with_(latency=1e-6, eager_threshold=float("inf"))
    found = of_replay(script.read(tmp_path), slow)
    states = found.states
    assert states.state.tolist() == [
        state.RUNNING, state.RUNNING, state.WAITING, state.INPUT_OUTPUT
    ]  # fmt: skip
    assert states.begin.tolist() == [0, 0, 20, 1108]
    assert states.end.tolist() == [100, 20, 1108, 1138]
    messages = found.messages
    assert (messages.logical_send[0], messages.physical_send[0]) == (100, 100)
    assert (messages.logical_receive[0], messages.physical_receive[0]) == (20, 1108)


def test_a_message_whose_sender_waits_leaves_when_its_receive_is_posted(tmp_path: Path) -> None:
    script = Script(2)
    sent = script.call(0, "Send", 50)
    script.compute(1, 200)
    received = script.call(1, "Recv", 500)
    script.message(sent, received, received, 10**6)
    script.end()
    messages = of_replay(script.read(tmp_path), WHOLE.with_(bandwidth=1e12, latency=0.0)).messages
    assert (messages.logical_send[0], messages.physical_send[0]) == (0, 200)
    assert messages.physical_receive[0] == 1200


def test_what_is_open_when_a_part_begins_is_opened_there(tmp_path: Path) -> None:
    script = Script(1)
    script.writer.event(0, 0, 10, [(60000019, 7)])
    script.compute(0, 100)
    script.call(0, "Comm_split", 100)
    script.compute(0, 100)
    script.writer.event(0, 0, 250, [(60000019, 0)])
    trace = script.read(tmp_path).window(50, 300)
    events = of_replay(trace, IDEAL).records.others().events
    assert (events.time.tolist(), events.value.tolist()) == ([0, 100], [7, 0])


def test_runs_without_times_get_those_of_the_replay(tmp_path: Path) -> None:
    path = Path(__file__).parents[1] / "data" / "smpi" / "jac2048.4.ti.txt.gz"
    trace = read(path)
    program = from_trace(trace)
    execution = replay(program, WHOLE)
    found = written(trace, WHOLE, tmp_path)
    assert found.timed
    again = from_trace(found)
    assert again.operations == program.operations
    assert again.compute().tolist() == program.compute().tolist()
    assert replay(again, WHOLE).runtime * 1e9 == pytest.approx(execution.runtime * 1e9, abs=1)
    assert runtime(found) * 1e9 == pytest.approx(execution.runtime * 1e9, abs=1)
