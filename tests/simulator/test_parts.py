"""Programs of parts of runs: what of the calls and messages at the edges of a window is left."""

from __future__ import annotations

from pathlib import Path

import pytest
from oracle.programs import operations, send_and_receive
from oracle.script import Script

from popmodel.network.network import PRESETS, READINGS
from popmodel.simulator import from_trace, replay
from popmodel.simulator.program import COLLECTIVES

IDEAL = PRESETS["ideal"]


def test_messages_across_the_edge_of_a_window_take_no_time(tmp_path: Path) -> None:
    script = Script(2)
    send_and_receive(script)
    script.compute(1, 300)
    script.end()
    window = script.read(tmp_path).window(600, 1000)
    program = from_trace(window)
    assert replay(program, IDEAL).end[1] * 1e9 == pytest.approx(300)
    assert any("cross the edge of the window" in note for note in program.notes)


def test_a_window_of_everything_changes_nothing(tmp_path: Path) -> None:
    script = Script(2)
    send_and_receive(script)
    script.end()
    trace = script.read(tmp_path)
    whole = replay(from_trace(trace), IDEAL)
    cut = replay(from_trace(trace.window(trace.begin, trace.end)), IDEAL)
    assert cut.end.tolist() == whole.end.tolist()


def test_a_window_keeps_the_turns_of_collectives(tmp_path: Path) -> None:
    """Rank 1 is still in the first barrier when the window begins, rank 0 has left it."""
    script = Script(2)
    script.compute(0, 100)
    script.collective(0, "Barrier", length=20)
    script.compute(1, 60)
    script.collective(1, "Barrier", length=100)
    for p in range(2):
        script.compute(p, 200 * (p + 1))
        script.collective(p, "Allreduce")
        script.compute(p, 50)
    script.end()
    window = script.read(tmp_path).window(140, 10**6)
    program = from_trace(window)
    assert program.collectives.members.tolist() == [1, 2]
    # From 140: 180 to go for rank 0, and 400 for rank 1 once it is out of the barrier.
    assert [round(t * 1e9) for t in replay(program, IDEAL).end] == [450, 450]


@pytest.mark.parametrize("how", READINGS)
def test_collectives_outside_the_window_are_not_part_of_the_program(
    tmp_path: Path, how: str
) -> None:
    script = Script(2)
    for p in range(2):
        script.collective(p, "Barrier", length=20)
        script.compute(p, 100 * (p + 1))
        script.collective(p, "Allreduce", length=20)
        script.compute(p, 200)
        script.collective(p, "Barrier", length=20)
    script.end()
    program = from_trace(script.read(tmp_path).window(30, 330))
    assert [COLLECTIVES[kind] for kind in program.collectives.kind] == ["allreduce"]
    assert program.target.tolist() == [0, 0]
    # Rank 1 arrives last, at 220; the window holds 190 of rank 0 after it, and 90 of rank 1.
    end = replay(program, IDEAL.with_(collectives=how)).end
    assert [round(t * 1e9) for t in end] == [190 + 190, 190 + 90]


def test_a_collective_whose_root_lies_outside_the_window_waits_for_nobody(tmp_path: Path) -> None:
    script = Script(2)
    script.collective(0, "Bcast", root=True)
    script.compute(0, 900)
    script.compute(1, 500)
    script.collective(1, "Bcast")
    script.compute(1, 300)
    script.end()
    program = from_trace(script.read(tmp_path).window(100, 900))
    rooted = replay(program, IDEAL.with_(collectives="rooted"))
    assert [round(t * 1e9) for t in rooted.end] == [800, 700]


def test_requests_that_are_open_when_a_window_begins_are_made_there(tmp_path: Path) -> None:
    """Rank 0 has posted its receive before the window, rank 1 sends late in it."""
    script = Script(2)
    post = script.call(0, "Irecv")
    script.compute(0, 190)
    wait = script.call(0, "Wait", 800)
    script.compute(0, 50)
    script.compute(1, 500)
    send = script.call(1, "Isend")
    script.message(send, post, wait)
    script.end()
    program = from_trace(script.read(tmp_path).window(100, 10**6))
    assert operations(program, 0) == ["POST", "WAIT_RECEIVE"]
    assert [round(t * 1e9) for t in replay(program, IDEAL).end] == [450, 400]


def test_a_send_that_is_open_when_a_window_begins_waits_for_its_receive(tmp_path: Path) -> None:
    script = Script(2)
    send = script.call(0, "Isend")
    script.compute(0, 190)
    script.call(0, "Wait", 700)
    script.compute(0, 50)
    script.compute(1, 800)
    receive = script.call(1, "Recv", 100)
    script.message(send, receive, receive, size=10**6)
    script.end()
    program = from_trace(script.read(tmp_path).window(100, 10**6))
    assert operations(program, 0) == ["ISEND", "WAIT_SEND"]
    assert [round(t * 1e9) for t in replay(program, IDEAL).end] == [750, 700]


def test_a_request_that_is_completed_after_the_window_waits_for_nobody(tmp_path: Path) -> None:
    script = Script(2)
    send = script.call(0, "Isend")
    script.compute(0, 490)
    script.call(0, "Wait")
    script.compute(1, 300)
    receive = script.call(1, "Recv", 10)
    script.message(send, receive, receive)
    script.end()
    program = from_trace(script.read(tmp_path).window(0, 400))
    assert (operations(program, 0), operations(program, 1)) == (["ISEND"], ["RECEIVE"])
    assert [round(t * 1e9) for t in replay(program, IDEAL).end] == [390, 300]


def test_a_collective_that_is_open_when_a_window_begins_is_entered_there(tmp_path: Path) -> None:
    """Rank 0 entered it before the window and waits inside for rank 1, which enters late."""
    script = Script(2)
    for p in range(2):
        script.compute(p, 10 + 500 * p)
        script.collective(p, "Iallreduce")
        script.compute(p, 100)
        script.call(p, "Wait")
        script.compute(p, 50)
    script.end()
    program = from_trace(script.read(tmp_path).window(50, 10**6))
    assert program.collectives.members.tolist() == [2]
    assert [round(t * 1e9) for t in replay(program, IDEAL).end] == [510, 610]


def test_a_collective_that_all_entered_before_the_window_holds_nobody(tmp_path: Path) -> None:
    script = Script(2)
    for p in range(2):
        script.collective(p, "Iallreduce")
        script.compute(p, 100 + 300 * p)
        script.call(p, "Wait")
        script.compute(p, 50)
    script.end()
    program = from_trace(script.read(tmp_path).window(50, 10**6))
    assert [round(t * 1e9) for t in replay(program, IDEAL).end] == [110, 410]
