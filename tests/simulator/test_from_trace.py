"""From traces to programs: every rule on a trace of a few calls, and the errors.

Where Dimemas does something else on such a trace, the test says what.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from oracle.script import Script

from popmodel.base.errors import ReplayError
from popmodel.network.network import PRESETS
from popmodel.simulator import replay
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.program import Op

IDEAL = PRESETS["ideal"]


def ends(script: Script, folder: Path, network=IDEAL) -> list[int]:
    script.end()
    return [round(t * 1e9) for t in replay(from_trace(script.read(folder)), network).end]


@pytest.mark.parametrize(
    ("longest", "kind"), [(2**32 - 1, np.uint32), (2**32, np.float64), (2**33 + 1, np.float64)]
)
def test_bursts_take_32_bits_where_all_fit(tmp_path: Path, longest: int, kind: type) -> None:
    script = Script(1)
    for length in (100, longest, 7):
        script.compute(0, length)
        script.collective(0, "Barrier", length=5)
    script.end()
    program = from_trace(script.read(tmp_path))
    assert program.burst.dtype == kind
    assert program.burst.tolist() == [100, longest, 7]
    wide = replace(program, burst=program.burst.astype(np.float64))
    slow = IDEAL.with_(cpu_factor=0.7)
    assert replay(program, slow).end.tolist() == replay(wide, slow).end.tolist()
    assert program.compute().tolist() == wide.compute().tolist() == [107 + longest]


def test_disabled_time_inside_a_call_is_not_taken_off_twice(tmp_path: Path) -> None:
    script = Script(1)
    script.compute(0, 100)
    script.writer.state(0, 0, 110, 130, 14)
    script.collective(0, "Barrier", length=50)
    script.compute(0, 20)
    assert ends(script, tmp_path) == [120]


def test_a_buffered_send_never_waits(tmp_path: Path) -> None:
    script = Script(2)
    script.compute(0, 100)
    sent = script.call(0, "Bsend")
    script.compute(1, 700)
    received = script.call(1, "Recv")
    script.message(sent, received, received, 10**6)
    assert ends(script, tmp_path) == [100, 700]


def test_members_of_different_amounts_bring_them(tmp_path: Path) -> None:
    script = Script(2)
    for p in range(2):
        script.collective(p, "Alltoall")
        script.collective(p, "Alltoallv", sent=8 + p, received=16)
        script.collective(p, "Gather", sent=8 + p, root=p == 0)
    script.end()
    uneven = from_trace(script.read(tmp_path)).uneven
    assert uneven.operation.tolist() == [1, 2, 4, 5]
    assert uneven.collective.tolist() == [1, 2, 1, 2]
    assert uneven.sent.tolist() == [8, 8, 9, 9]
    assert uneven.received.tolist() == [16, 8, 16, 8]


def test_calls_of_no_length_at_one_time_are_told_apart(tmp_path: Path) -> None:
    script = Script(2)
    script.compute(0, 500)
    sent = script.call(0, "Send", 0)
    script.call(0, "Comm_split", 0)
    script.compute(1, 100)
    script.call(1, "Comm_split", 0)
    received = script.call(1, "Recv", 0)
    script.call(1, "Comm_split", 0)
    script.message(sent, received, received)
    assert ends(script, tmp_path) == [500, 500]


def test_a_communicator_that_is_not_listed_has_those_who_call_on_it(tmp_path: Path) -> None:
    script = Script(3)
    for turn in range(2):
        for p in (0, 2):
            if (turn, p) != (1, 2):
                script.collective(p, "Barrier", communicator=9)
    program = from_trace(script.read(tmp_path))
    assert program.collectives.members.tolist() == [2, 2]
    with pytest.raises(ReplayError, match="barrier of 2 members on communicator 9"):
        replay(program, IDEAL)


def test_one_sided_calls_and_files_are_local_and_counted(tmp_path: Path) -> None:
    script = Script(1)
    script.compute(0, 100)
    script.call(0, "Put", 50)
    script.call(0, "File_write", 500)
    script.compute(0, 20)
    script.call(0, "Put", 50)
    program = from_trace(script.read(tmp_path))
    assert replay(program, IDEAL).end.tolist() == [120e-9]
    assert program.unmodelled == "83 % of the time in 1 MPI_File_write (69 %), 2 MPI_Put (14 %)"


def empty_reductions(early: int, sent: int = 0) -> Script:
    """Two reductions without bytes that rank 0 leaves this many ns before rank 1 enters."""
    script = Script(2)
    for length in (1_000_000, 10_000):
        script.compute(0, length)
        script.collective(0, "Allreduce", 20_000, sent=sent, received=sent)
        script.compute(1, length + 20_000 + early)
        script.collective(1, "Allreduce", 1_000, sent=sent, received=sent)
        early = 0
    return script


def test_collectives_without_bytes_that_hold_nobody_do_not_hold_in_the_replay(
    tmp_path: Path,
) -> None:
    """Open MPI and MPICH return at once from a count of 0; Dimemas synchronises."""
    program = from_trace(empty_reductions(500_000).read(tmp_path))
    assert len(program.collectives) == program.operations == 0
    assert program.notes == (
        "collectives without bytes that wait for nobody, as in the run: 2 allreduce",
    )
    for script in (empty_reductions(0), empty_reductions(500_000, sent=8)):
        assert from_trace(script.read(tmp_path)).operations == 4


def in_a_line(script: Script, name: str, told: bool = True) -> None:
    """Let each process exchange messages with the one before and the one behind it."""
    calls = [script.call(p, name, 1000) for p in range(len(script.clock))]
    waits = calls
    if name.startswith("I"):
        for p in range(len(calls)):
            script.compute(p, 50)
        waits = [script.call(p, "Wait", 1000) for p in range(len(calls))]
    for p in range(len(calls)):
        for q in (p - 1, p + 1):
            if told and 0 <= q < len(calls):
                posted = calls[q].entry
                script.writer.message(
                    (p, 0), (q, 0), (calls[p].entry,) * 2, (posted, waits[q].exit), 8, 7
                )


LINE = (100, 200, 900, 300)


def computed(lengths: tuple[int, ...]) -> Script:
    script = Script(len(lengths))
    for p, length in enumerate(lengths):
        script.compute(p, length)
    return script


def test_a_collective_between_neighbours_waits_for_these_only(tmp_path: Path) -> None:
    script = computed(LINE)
    in_a_line(script, "Neighbor_alltoall")
    assert ends(script, tmp_path) == [200, 900, 900, 900]
    program = from_trace(script.read(tmp_path))
    assert program.unmodelled == ""
    late = replay(program, IDEAL.with_(latency=1e-6)).end
    assert late.tolist() == pytest.approx([1.2e-6, 1.9e-6, 1.3e-6, 1.9e-6])


def test_all_ranks_of_a_ring_exchange_in_the_same_order(tmp_path: Path) -> None:
    """Those at its ends too, whose neighbours have other numbers: tags tell the directions."""
    down, up = 2**32 - 2, 2**32 - 3
    script = computed((100, 100, 100, 100))
    calls = [script.call(p, "Neighbor_alltoall", 1000) for p in range(4)]
    for p in range(4):
        for q, tag in (((p - 1) % 4, down), ((p + 1) % 4, up)):
            times = (calls[p].entry,) * 2, (calls[q].entry, calls[q].exit)
            script.writer.message((p, 0), (q, 0), *times, 8, tag)
    program = from_trace(script.read(tmp_path))
    for p in range(4):
        rows = np.arange(*program.offsets[p : p + 2])
        kind, target = program.kind[rows], program.target[rows]
        sources = program.messages.sender[target[kind == Op.POST]]
        goals = program.messages.receiver[target[kind == Op.ISEND]]
        assert ((sources - p) % 4).tolist() == [1, 3]
        assert ((goals - p) % 4).tolist() == [3, 1]


def test_a_nonblocking_one_is_complete_when_its_wait_is(tmp_path: Path) -> None:
    script = computed(LINE)
    in_a_line(script, "Ineighbor_alltoall")
    assert ends(script, tmp_path) == [200, 900, 950, 900]
    script = computed((100, 200))  # and its wait takes no request of another call
    in_a_line(script, "Ineighbor_alltoall")
    send = script.call(0, "Isend")
    script.compute(0, 10)
    script.call(0, "Wait", 600)
    script.compute(1, 500)
    receive = script.call(1, "Recv")
    script.message(send, receive, receive, size=1 << 20)
    assert ends(script, tmp_path) == [750, 750]


def test_without_messages_collectives_between_neighbours_are_not_modelled(tmp_path: Path) -> None:
    script = computed(LINE)
    in_a_line(script, "Neighbor_alltoall", told=False)
    script.end()
    program = from_trace(script.read(tmp_path))
    assert program.unmodelled == "73 % of the time in 4 MPI_Neighbor_alltoall"
    assert replay(program, IDEAL).end.tolist() == pytest.approx([1e-9 * each for each in LINE])


def test_calls_that_manage_objects_are_named_where_they_take_a_while(tmp_path: Path) -> None:
    script = Script(1)
    script.compute(0, 1000)
    script.call(0, "Comm_split", 5)
    assert from_trace(script.read(tmp_path)).unmodelled == ""
    script.call(0, "Comm_split", 95)
    script.call(0, "Probe", 900)  # another call waits for it
    assert from_trace(script.read(tmp_path)).unmodelled == "5 % of the time in 2 MPI_Comm_split"


# -- on purpose other than Dimemas -----------------------------------------------------------------


def test_a_lost_record_is_said(tmp_path: Path) -> None:
    """Dimemas drops both calls without a word; we drop them too, and count and name them."""
    script = Script(2)
    script.compute(0, 500)
    script.call(0, "Send")
    script.compute(1, 100)
    script.call(1, "Recv", 600)
    program = from_trace(script.read(tmp_path))
    assert replay(program, IDEAL).end.tolist() == [500e-9, 100e-9]
    (note,) = program.notes
    assert note.startswith("2 point-to-point calls without a communication record")
    assert "first: rank 0 in MPI_Send at 0.000000500 s" in note


def test_a_team_that_grows_does_not_stop_the_replay(tmp_path: Path) -> None:
    """Dimemas ends in a silent deadlock when a team grows; the replay follows the masters."""
    script = Script(2, threads=3)
    for p in range(2):
        script.compute(p, 100)
        for region, team in enumerate((2, 3)):
            begin = script.clock[p]
            script.writer.event(p, 0, begin, [(60000001, 3)])
            for thread in range(team):
                script.writer.event(p, thread, begin, [(60000018, region + 1)])
                script.writer.event(p, thread, begin + 200, [(60000018, 0)])
            for thread in range(1, team):
                script.writer.state(p, thread, begin, begin + 200, 1)
            script.compute(p, 200)
            script.writer.event(p, 0, begin + 200, [(60000001, 0)])
            script.collective(p, "Allreduce")
    assert ends(script, tmp_path) == [500, 500]


def test_a_lost_event_of_a_collective_ends_in_an_error(tmp_path: Path) -> None:
    """Dimemas ends with status 0 and a meaningless time; we name who waits."""
    script = Script(2)
    for p in range(2):
        script.compute(p, 100)
        script.collective(p, "Allreduce")
    script.collective(0, "Allreduce")
    with pytest.raises(ReplayError) as caught:
        ends(script, tmp_path)
    assert "1 of 2 ranks wait forever" in caught.value.message
    assert "rank 0 in MPI_Allreduce at 0.000000110 s of the trace" in caught.value.message
    assert "allreduce of 2 members on communicator 1" in caught.value.message


# -- errors ----------------------------------------------------------------------------------------


def test_a_message_of_another_thread_is_refused(tmp_path: Path) -> None:
    script = Script(2, threads=2)
    received = script.call(1, "Recv")
    script.writer.message((0, 1), (1, 0), (5, 6), (received.entry, received.exit), 8)
    with pytest.raises(ReplayError, match="a thread that does not call MPI sends or receives"):
        from_trace(script.read(tmp_path))


def test_different_collectives_at_one_turn_are_refused(tmp_path: Path) -> None:
    script = Script(2)
    script.collective(0, "Barrier")
    script.compute(1, 50)
    script.collective(1, "Allreduce")
    with pytest.raises(ReplayError) as caught:
        from_trace(script.read(tmp_path))
    assert "rank 0 in MPI_Barrier at 0.000000000 s" in caught.value.message
    assert "rank 1 in MPI_Allreduce at 0.000000050 s" in caught.value.message


def test_collectives_that_end_on_one_rank_before_they_begin_on_another_are_told(
    tmp_path: Path,
) -> None:
    """Rank 0 lacks the first one, so that its second one matches the first one of rank 1."""
    script = Script(2)
    script.compute(0, 10**6)
    for rank in range(2):
        script.collective(rank, "Allreduce")
        script.compute(rank, 10**6)
        script.collective(rank, "Barrier")
        script.compute(rank, 10**6)
        script.collective(rank, "Iallreduce")
    script.end()
    (note,) = from_trace(script.read(tmp_path)).notes
    assert note.startswith(
        "2 of 2 calls of MPI_Barrier and MPI_Allreduce end on one rank before they begin on "
        "another: records are missing"
    )


@pytest.mark.parametrize("callers", [(0, 2), (0, 1, 2)])
def test_a_collective_of_a_process_that_is_no_member_is_refused(
    callers: tuple[int, ...], tmp_path: Path
) -> None:
    script = Script(3, communicators={2: [0, 1]})
    for p in callers:
        script.compute(p, 100)
        script.collective(p, "Barrier", communicator=2)
    with pytest.raises(ReplayError) as caught:
        from_trace(script.read(tmp_path))
    assert caught.value.message.endswith(
        "rank 2 in MPI_Barrier at 0.000000100 s calls a collective on communicator 2, "
        "of which the trace does not list it as a member"
    )
    assert "list of communicators" in str(caught.value.hint)


def test_a_message_without_its_calls_is_refused(tmp_path: Path) -> None:
    script = Script(2)
    script.compute(0, 100)
    sent = script.call(0, "Send")
    script.compute(1, 400)
    script.writer.message((0, 0), (1, 0), (sent.entry, sent.exit), (300, 350), 64, tag=9)
    with pytest.raises(ReplayError) as caught:
        from_trace(script.read(tmp_path))
    assert "1 message without an MPI call in the trace" in caught.value.message
    assert "(64 B, tag 9, rank 0 to rank 1)" in caught.value.message
    assert "a receive of rank 1 at 0.000000300 s" in caught.value.message
    assert "the end of a receive of rank 1 at 0.000000350 s" in caught.value.message
