"""Runs whose records end before they do: what is said, and what is analysed."""

from pathlib import Path

import pytest

from popmodel.base.errors import ReplayError
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.measure import analyse
from popmodel.network.network import PRESETS
from popmodel.simulator import replay
from popmodel.simulator.from_trace import from_trace
from popmodel.traces import Trace, read
from popmodel.traces.caveats import ABORTED, CUT, FULL, KILLED, describe_losses, losses
from popmodel.traces.codes import Event
from popmodel.traces.info import info
from popmodel.traces.paraver.writer import TraceWriter
from popmodel.traces.selection import TracePart, program_of

OTHER, COLLECTIVE, INIT, BARRIER = 50000003, 50000002, 31, 8
S = 10**9


def run(folder: Path, *lost: tuple[int, int, int, int], processes: int = 2) -> Trace:
    """Processes of two threads that compute for 10 s; of those lost, up to then."""
    writer = TraceWriter([2] * processes, communicators={1: list(range(processes))})
    ends = {(process, thread): time for process, thread, time, _ in lost}
    for process in range(processes):
        writer.event(process, 0, 0, [(OTHER, INIT)])
        writer.event(process, 0, S, [(OTHER, 0)])
        for thread in range(2):
            end = ends.get((process, thread), 10)
            writer.state(process, thread, 0, end * S, 1)
            if end < 10:
                writer.state(process, thread, end * S, 10 * S, 14)
    for process, thread, time, reason in lost:
        writer.event(process, thread, time * S, [(Event.LOST, reason)])
    writer.write(folder / "x.prv")
    return read(folder / "x.prv")


def test_a_run_without_losses_has_none(tmp_path: Path) -> None:
    trace = run(tmp_path)
    assert losses(trace) == []
    assert info(trace)["caveats"] == []


def test_the_analysis_ends_with_the_first_loss(tmp_path: Path) -> None:
    """What lies behind it would read as time that is lost for nothing."""
    trace = run(tmp_path, (1, 0, 6, KILLED), (1, 1, 6, KILLED), (0, 1, 4, FULL))
    found = program_of(trace)
    assert (found.begin, found.end) == (1 * S, 4 * S)
    assert found.why == "MPI_Init to the first loss of records"
    assert found.caveats[0] == (
        "records lost: 1 thread of rank 0 from 4 s on (disk full), rank 1 from 6 s "
        "on (killed or crashed); only the part before is analysed, which all threads have"
    )
    done = analyse(trace)
    assert done.caveats[0] == found.caveats[0]
    values = load_families()["mpi"].evaluate(done.observables.aggregates(), {}).values
    assert values["load_balance"] == pytest.approx(1)
    assert done.observables.runtime == pytest.approx(3)
    assert done.observables.useful == pytest.approx([3] * 4)


def test_the_whole_run_says_what_is_lost(tmp_path: Path) -> None:
    trace = run(tmp_path, (1, 0, 6, ABORTED))
    done = analyse(trace, part=TracePart(from_start=True))
    assert "records lost: rank 1 from 6 s on (ended by MPI_Abort)" in done.caveats
    assert done.observables.runtime == pytest.approx(10)


def test_a_chosen_window_says_what_is_lost_in_it(tmp_path: Path) -> None:
    trace = run(tmp_path, (1, 0, 6, CUT))
    assert program_of(trace.window(5 * S, 8 * S)).caveats == (
        "records lost: 1 thread of rank 1 from 6 s on (truncated files)",
    )
    assert program_of(trace.window(1 * S, 5 * S)).caveats == ()


def test_a_loss_at_the_begin_leaves_nothing_to_cut(tmp_path: Path) -> None:
    trace = run(tmp_path, (1, 0, 1, KILLED))
    found = program_of(trace)
    assert (found.begin, found.end) == (0, 10 * S)
    assert found.caveats[0] == "records lost: rank 1 from 1 s on (killed or crashed)"


def test_many_losses_are_told_in_short(tmp_path: Path) -> None:
    trace = run(tmp_path, *((rank, 0, 9 - rank, KILLED) for rank in range(5)), processes=5)
    assert describe_losses(losses(trace)) == (
        "records lost: rank 4 from 5 s on (killed or crashed), rank 3 from 6 s on (killed or "
        "crashed), rank 2 from 7 s on (killed or crashed), 2 more"
    )


def test_info_says_it_first(tmp_path: Path) -> None:
    result = info(run(tmp_path, (1, 0, 6, KILLED)))
    text = "records lost: rank 1 from 6 s on (killed or crashed)"
    assert result["caveats"] == [text]


def test_a_replay_that_stops_names_the_rank_that_ended_early(tmp_path: Path) -> None:
    writer = TraceWriter([1, 1], communicators={1: [0, 1]})
    for process, end in ((0, 10), (1, 5)):
        writer.state(process, 0, 0, end * S, 1)
    writer.event(0, 0, 7 * S, [(COLLECTIVE, BARRIER), (50100004, 1)])
    writer.event(0, 0, 8 * S, [(COLLECTIVE, 0)])
    writer.event(1, 0, 5 * S, [(Event.LOST, KILLED)])
    writer.write(tmp_path / "x.prv")
    program = from_trace(read(tmp_path / "x.prv"))
    with pytest.raises(ReplayError) as caught:
        replay(program, PRESETS["ideal"])
    assert caught.value.message.endswith("records lost: rank 1 from 5 s on (killed or crashed)")
    assert caught.value.hint == "analyse the part before the loss: leave out --from-start"
