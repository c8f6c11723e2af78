"""The compiled replay against closed forms, against the plain one, and its errors."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import replay as oracle
from oracle.drawn import networks, programs, renumbered

from popmodel.base.errors import ReplayError
from popmodel.kernel import _kernel
from popmodel.network.network import PRESETS, Network
from popmodel.simulator import replay
from popmodel.simulator.program import NONE_UNEVEN, Op, Program, ProgramBuilder, UnevenBytes

IDEAL = PRESETS["ideal"]
# 1 us and 1 B/ns, everything eager.


def one_message(size: int, send_at: float, receive_at: float) -> ProgramBuilder:
    program = ProgramBuilder(2)
    m = program.message(0, 1, size)
    program.compute(0, send_at)
    program.do(0, Op.SEND, m)
    program.compute(1, receive_at)
    program.do(1, Op.RECEIVE, m)
    return program


def test_a_message_to_oneself_takes_no_time() -> None:
    program = ProgramBuilder(1)
    m = program.message(0, 0, 10**6)
    program.do(0, Op.POST, m)
    program.do(0, Op.SEND, m)
    program.do(0, Op.WAIT_RECEIVE, m)
    assert replay(program.build(), PRESETS["dimemas"]).runtime == 0


def collective_ends(kind: str, reading: str) -> list[float]:
    """Ends of three members that arrive at 1, 2 and 3 s; process 1 is the root."""
    program = ProgramBuilder(3)
    c = program.collective(kind, 8, 8, root=1)
    for p in range(3):
        program.compute(p, p + 1)
        program.do(p, Op.COLLECTIVE, c)
    return replay(program.build(), IDEAL.with_(collectives=reading)).end.tolist()


@pytest.mark.parametrize(
    ("kind", "reading", "ends"),
    [
        ("bcast", "dimemas", [3, 3, 3]),
        ("bcast", "synchronising", [3, 3, 3]),
        ("bcast", "rooted", [2, 2, 3]),
        ("bcast", "algorithm", [2, 2, 3]),
        ("scatter", "rooted", [2, 2, 3]),
        ("reduce", "dimemas", [1, 3, 3]),
        ("reduce", "synchronising", [3, 3, 3]),
        ("reduce", "rooted", [1, 3, 3]),
        ("gather", "dimemas", [3, 3, 3]),
        ("gather", "rooted", [1, 3, 3]),
        ("allreduce", "rooted", [3, 3, 3]),
        ("allreduce", "algorithm", [3, 3, 3]),
        ("barrier", "algorithm", [3, 3, 3]),
        ("scan", "algorithm", [1, 2, 3]),
    ],
)
def test_who_waits_for_whom_in_a_collective(kind: str, reading: str, ends: list[float]) -> None:
    assert collective_ends(kind, reading) == ends


def test_a_deadlock_names_ranks_operations_and_partners() -> None:
    program = ProgramBuilder(3)
    there, back = program.message(0, 1, 64, tag=7), program.message(1, 0, 64, tag=8)
    for p, first, second in ((0, back, there), (1, there, back)):
        program.compute(p, 0.25)
        program.do(p, Op.RECEIVE, first)
        program.do(p, Op.SEND, second)
    with pytest.raises(ReplayError) as caught:
        replay(program.build(), IDEAL)
    assert "2 of 3 ranks wait forever" in caught.value.message
    assert "rank 0 in receive" in caught.value.message
    assert "rank 0 in receive at 0.250000000 s of the replay" in caught.value.message
    assert "for 64 B, tag 8 from rank 1" in caught.value.message
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("calls do not match, or the program relies on buffering")
    assert caught.value.exit_status == 1


def test_a_rendezvous_send_that_nobody_receives_is_named() -> None:
    program = ProgramBuilder(2)
    m = program.message(0, 1, 10**6, tag=3)
    program.do(0, Op.SEND, m)
    with pytest.raises(ReplayError, match="for rank 1 to receive 1000000 B, tag 3"):
        replay(program.build(), IDEAL)


def test_a_collective_that_lacks_a_member_is_named() -> None:
    program = ProgramBuilder(6)
    c = program.collective("allreduce", 8, 8)
    for p in range(5):
        program.do(p, Op.COLLECTIVE, c)
    with pytest.raises(ReplayError) as caught:
        replay(program.build(), IDEAL)
    assert "allreduce of 6 members on all ranks" in caught.value.message
    assert "and 1 more ranks" in caught.value.message


def test_the_compiled_engine_refuses_targets_that_do_not_exist() -> None:
    program = one_message(8, 0, 0).build()
    program.target[0] = 5
    with pytest.raises(ValueError, match="operation 0 has an unknown kind or target"):
        replay(program, IDEAL)


def test_the_compiled_engine_refuses_an_arrival_without_its_cost() -> None:
    program = ProgramBuilder(2)
    c = program.collective("alltoall", 8, 8)
    for p in range(2):
        program.do(p, Op.COLLECTIVE, c)
    first = np.zeros(1, np.int64)
    uneven = UnevenBytes(first, first.astype(np.int32), first, first)
    with pytest.raises(ValueError, match="an arrival lacks the cost that it brings"):
        replay(replace(program.build(), uneven=uneven), IDEAL)


# -- the plain replay as the oracle ----------------------------------------------------------------


@given(programs(), networks())
def test_the_compiled_engine_agrees_with_the_plain_one(program: Program, network) -> None:
    calls = len(program.call_code)
    names = np.arange(calls, dtype=np.int16)  # one of its own for each
    program = replace(program, call_name=tuple(map(str, names)), call_code=names)
    places = (names % 3).astype(np.int32)
    end, stuck_at, of_operations = oracle.on(program, network)
    if stuck_at != program.offsets[1:].tolist():
        with pytest.raises(ReplayError) as caught:
            replay(program, network)
        stuck = [p for p, i in enumerate(stuck_at) if i < program.offsets[p + 1]]
        assert f"{len(stuck)} of {program.processes} ranks wait" in caught.value.message
        assert f" at {end[stuck[0]] / 1e9:.9f} s of the replay" in caught.value.message
        return
    found = replay(program, network, places=places)
    assert found.end.tolist() == (np.array(end) / 1e9).tolist()
    assert found.time_in_calls is not None
    spent = np.zeros(found.time_in_calls.shape)
    np.add.at(spent, (places[program.call], program.call), of_operations)
    assert found.time_in_calls * 1e9 == pytest.approx(spent, rel=1e-12)


@given(programs(), networks())
def test_a_slower_network_never_ends_earlier(program: Program, network) -> None:
    # A slower network can let another member be the last, whose amounts then decide.
    program = replace(program, uneven=NONE_UNEVEN)
    slower = network.with_(latency=network.latency + 1e-6)
    try:
        fast = replay(program, network)
    except ReplayError:
        return
    assert (replay(program, slower).end >= fast.end - 1e-15).all()


@given(programs(uneven=False), networks(), st.data())
def test_the_numbers_of_ranks_do_not_matter(
    program: Program, network: Network, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(program.processes)))
    try:
        end = replay(program, network).end
    except ReplayError:
        with pytest.raises(ReplayError):
            replay(renumbered(program, order), network)
        return
    assert np.array_equal(replay(renumbered(program, order), network).end[order], end)


@given(programs(), networks())
def test_no_process_ends_before_its_own_work(program: Program, network) -> None:
    try:
        execution = replay(program, network)
    except ReplayError:
        return
    assert (execution.end >= execution.compute - 1e-12).all()
    assert execution.compute == pytest.approx(program.compute() / network.cpu_factor / 1e9)


@pytest.mark.parametrize(
    ("function", "columns", "reason"),
    [
        ("locate", ([0, 3], [1, 2], [0], [5]), "offsets do not cover the rows"),
        ("locate", ([0, 2, 1, 2], [1, 2], [0], [5]), "offsets must not decrease"),
        ("locate", ([0, 2], [1, 2], [0, 0], [5]), "columns of different lengths"),
        ("locate", ([0, 2], [1, 2], [1], [5]), "group outside the offsets"),
        ("lengths", ([0, 2], [1, 2], [5]), "columns of different lengths"),
        ("sums", ([0, 2], [1, 2]), "bursts must be float64 or uint32"),
    ],
)
def test_the_core_refuses_columns_that_do_not_fit(function, columns, reason) -> None:
    given = [np.array(column, getattr(column, "dtype", np.int64)) for column in columns]
    with pytest.raises(ValueError, match=reason):
        getattr(_kernel, function)(*given)


def test_sums_of_bursts_stay_exact_after_many_long_processes() -> None:
    program = ProgramBuilder(1000)
    c = program.collective("barrier")
    for p in range(1000):
        program.compute(p, (10**7 + 1) / 1e9 if p == 999 else 10**6)
        program.do(p, Op.COLLECTIVE, c)
    assert program.build().compute()[999] == 10**7 + 1
