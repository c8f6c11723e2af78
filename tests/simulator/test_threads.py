"""Threads that call MPI: sequences of their own, forked, held and joined as their teams are."""

from collections.abc import Sequence
from pathlib import Path

import pytest

import popmodel
from popmodel.base.errors import ReplayError
from popmodel.network.network import PRESETS
from popmodel.simulator import Replayer, replay
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.program import Op, Program
from popmodel.traces import Trace, read
from popmodel.traces.paraver.writer import TraceWriter

IDEAL = PRESETS["ideal"]
EAGER = IDEAL.with_(eager_threshold=float("inf"))
REGION, FUNCTION, BARRIER = 60000001, 60000018, 60000005
SEND, RECEIVE, ALLREDUCE, BCAST = (50000001, 1), (50000001, 2), (50000002, 10), (50000002, 7)


class Team:
    """A run whose processes have threads; all times are given."""

    def __init__(self, processes: int = 2, threads: int = 2) -> None:
        ranks = list(range(processes))
        self.writer = TraceWriter([threads] * processes, communicators={1: ranks, 2: ranks[::-1]})
        for process in ranks:
            self.writer.event(process, 0, 0, [(40000001, 1)])  # the application begins

    def region(self, process: int, begin: int, end: int, work: Sequence[int]) -> None:
        """A parallel region; each thread has done its part at its time in `work`."""
        self.writer.event(process, 0, begin, [(REGION, 1)])
        for thread, until in enumerate(work):
            self.writer.event(process, thread, begin, [(FUNCTION, 1)])
            self.writer.event(process, thread, until, [(FUNCTION, 0)])
            self.writer.state(process, thread, begin, until, 1)
        self.writer.event(process, 0, end, [(REGION, 0)])

    def call(
        self,
        who: tuple[int, int],
        kind: tuple[int, int],
        begin: int,
        end: int,
        attributes: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.writer.event(*who, begin, [kind, *attributes])
        self.writer.event(*who, end, [(kind[0], 0)])

    def message(
        self, sender: tuple[int, int], receiver: tuple[int, int], sent: int, got: tuple[int, int]
    ) -> None:
        """A message of a Send that takes 10 ns and a Recv from one time to another."""
        self.call(sender, SEND, sent, sent + 10)
        self.call(receiver, RECEIVE, *got)
        self.writer.message(sender, receiver, (sent, sent + 10), got, 8)

    def collective(
        self,
        who: tuple[int, int],
        kind: tuple[int, int],
        begin: int,
        end: int,
        communicator: int = 1,
        root: bool = False,
    ) -> None:
        told = [(50100001, 8), (50100002, 8), (50100004, communicator)]
        self.call(who, kind, begin, end, [*told, *([(50100003, 1)] if root else [])])

    def read(self, folder: Path, *ends: int) -> Trace:
        """The trace of processes that end at some times."""
        for process, end in enumerate(ends):
            self.writer.event(process, 0, end, [(40000001, 0)])
        self.writer.write(folder / "team.prv")
        return read(folder / "team.prv")


def message_between_threads() -> Team:
    """Thread 1 of rank 0 sends at 200 ns what that of rank 1 gets at 900 ns."""
    team = Team()
    team.region(0, 100, 410, [400, 390])
    team.region(1, 100, 1000, [300, 1000])
    team.message((0, 1), (1, 1), 200, (150, 900))
    return team


def ends(program: Program, network=IDEAL) -> list[int]:
    return [round(t * 1e9) for t in replay(program, network).end]


def kinds(program: Program, sequence: int) -> list[str]:
    mine = slice(program.offsets[sequence], program.offsets[sequence + 1])
    return [Op(kind).name for kind in program.kind[mine]]


@pytest.mark.parametrize(("latency", "second"), [(0.0, 350), (1e-6, 1350), (50e-9, 400)])
def test_threads_wait_for_messages_and_masters_for_threads(
    latency: float, second: int, tmp_path: Path
) -> None:
    program = from_trace(message_between_threads().read(tmp_path, 440, 1050))
    # Rank 1: its message comes at 200 ns and the latency, then it computes 100 and 50 ns.
    assert ends(program, EAGER.with_(latency=latency)) == [430, second]


def test_sequences_of_threads_stand_behind_those_of_processes(tmp_path: Path) -> None:
    program = from_trace(message_between_threads().read(tmp_path, 440, 1050))
    assert (program.processes, program.sequences) == (2, 4)
    assert program.threads.tolist() == [0, 1]
    assert len(program.nodes) == 4
    assert kinds(program, 0) == ["SEND", "RECEIVE"]
    assert kinds(program, 2) == ["RECEIVE", "SEND", "SEND"]
    assert kinds(program, 3) == ["RECEIVE", "RECEIVE", "SEND"]
    # Computing is that of masters, without their waiting for the team: 10 and 700 ns.
    assert replay(program, IDEAL).compute * 1e9 == pytest.approx([430, 350])
    (note,) = program.notes
    assert note.startswith("2 threads besides masters replayed on their own")


def test_forks_and_joins_take_no_time_on_any_network(tmp_path: Path) -> None:
    team = Team(1, 4)
    for begin in (100, 500, 900):
        team.region(0, begin, begin + 300, [begin + 300] * 4)
        team.call((0, 2), (50000003, 19), begin + 20, begin + 120)  # MPI_Comm_rank
    program = from_trace(team.read(tmp_path, 1300))
    slow = PRESETS["dimemas"].with_(latency=1.0)
    for network in (IDEAL, slow, slow.with_(collectives="rooted")):
        assert ends(program, network) == [1300]
    assert kinds(program, 1) == ["RECEIVE", *["POST", "SEND", "WAIT_RECEIVE"] * 2, "SEND"]


def test_a_team_is_held_by_its_barriers(tmp_path: Path) -> None:
    team = Team(2, 2)
    for process in range(2):
        team.region(process, 100, 1000, [1000, 1000])
    team.message((0, 1), (1, 1), 200, (110, 600))
    for who, begin in (((0, 0), 300), ((0, 1), 400), ((1, 0), 150), ((1, 1), 700)):
        team.call(who, (BARRIER, 1), begin, 400 if who[0] == 0 else 700)
    program = from_trace(team.read(tmp_path, 1000, 1000))
    # Rank 0: 100 + 290 (the slower thread up to the barrier) + 600; rank 1: 200 + 100 + 300.
    assert ends(program) == [990, 600]
    assert ends(program, EAGER.with_(latency=1e-6)) == [990, 1600]


def test_barriers_that_not_all_threads_have_are_taken_as_computing(tmp_path: Path) -> None:
    team = message_between_threads()
    team.call((0, 0), (BARRIER, 1), 390, 400)
    program = from_trace(team.read(tmp_path, 440, 1050))
    assert ends(program) == [430, 350]
    assert program.notes[1].startswith("1 parallel region with barriers that not all threads")


@pytest.mark.parametrize("reading", ["dimemas", "rooted", "synchronising", "algorithm"])
def test_threads_take_part_in_collectives(reading: str, tmp_path: Path) -> None:
    team = Team()
    for process in range(2):
        team.region(process, 100, 1000, [300, 1000])
    team.collective((0, 1), ALLREDUCE, 150, 900)
    team.collective((1, 1), ALLREDUCE, 850, 900)
    program = from_trace(team.read(tmp_path, 1000, 1000))
    assert ends(program, IDEAL.with_(collectives=reading)) == [950, 950]


@pytest.mark.parametrize("reading", ["rooted", "algorithm"])
def test_the_root_of_a_collective_can_be_a_thread(reading: str, tmp_path: Path) -> None:
    team = Team()
    for process in range(2):
        team.region(process, 100, 1000, [200, 1000])
    team.collective((1, 1), BCAST, 150, 900, communicator=2, root=True)
    team.collective((0, 1), BCAST, 850, 900, communicator=2)
    program = from_trace(team.read(tmp_path, 1000, 1000))
    assert program.collectives.root.tolist() == [3]
    # The root goes on at 150 ns, the other one comes at 850 ns; both compute 100 ns more.
    assert ends(program, IDEAL.with_(collectives=reading)) == [950, 250]


def test_threads_of_a_process_take_turns_at_a_communicator(tmp_path: Path) -> None:
    team = Team()
    for process in range(2):
        team.region(process, 100, 1000, [1000, 1000])
        team.collective((process, 1), ALLREDUCE, 200 + 100 * process, 400)
        team.collective((process, process), BCAST, 500, 600, root=process == 0)
        team.collective((process, 0), ALLREDUCE, 700, 700)
    program = from_trace(team.read(tmp_path, 1000, 1000))
    assert len(program.collectives) == 3
    assert sorted(program.collectives.members.tolist()) == [2, 2, 2]
    for reading in ("dimemas", "algorithm"):
        replay(program, IDEAL.with_(collectives=reading))


def test_a_thread_without_parallel_regions_runs_on_its_own(tmp_path: Path) -> None:
    team = Team()
    team.message((0, 1), (1, 1), 200, (150, 900))
    for who, end in (((0, 1), 500), ((1, 1), 1500)):
        team.writer.state(*who, 0, end, 1)
    program = from_trace(team.read(tmp_path, 440, 300))
    assert ends(program, EAGER.with_(latency=1e-6)) == [490, 1800]
    assert program.notes[1].startswith("2 of these threads call MPI outside of parallel regions")


def test_a_part_of_a_run_with_threads(tmp_path: Path) -> None:
    trace = message_between_threads().read(tmp_path, 440, 1050)
    assert ends(from_trace(trace.window(0, 1050))) == [430, 350]
    # The fork lies before: of rank 0 the send at 50 ns, of rank 1 the wait for it is left.
    late = from_trace(trace.window(150, 1050))
    assert ends(late) == [280, 200]


def test_a_thread_that_waits_forever_is_named(tmp_path: Path) -> None:
    team = message_between_threads()
    team.collective((1, 1), ALLREDUCE, 950, 960)
    program = from_trace(team.read(tmp_path, 440, 1050))
    with pytest.raises(ReplayError) as caught:
        replay(program, IDEAL)
    message = caught.value.message
    assert "deadlock in the replay: 2 of 2 ranks wait forever: rank 1 in OpenMP join" in message
    assert "a thread of rank 1 in MPI_Allreduce at 0.000000950 s" in message


def test_the_critical_path_goes_through_threads(tmp_path: Path) -> None:
    program = from_trace(message_between_threads().read(tmp_path, 440, 1050))
    path = Replayer(program).path(EAGER.with_(latency=1e-6))
    assert path.time.sum() == pytest.approx(1350)
    assert path.latency.sum() == 1
    assert path.process.tolist() == [0, 0, 1, 1, 1]


def test_a_replay_with_threads_is_not_written_as_a_trace(tmp_path: Path) -> None:
    trace = message_between_threads().read(tmp_path, 440, 1050)
    with pytest.raises(ReplayError, match="such a replay cannot be written as a trace"):
        popmodel.whatif(trace, "ideal", save_trace=tmp_path / "x.prv")
