"""The compiled replay against closed forms, against the plain one, and its errors."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import replay as oracle

from popmodel.errors import ReplayError
from popmodel.kernel import _kernel
from popmodel.network.network import PRESETS
from popmodel.simulator import replay
from popmodel.simulator.build import ProgramBuilder
from popmodel.simulator.charges import Charges
from popmodel.simulator.program import COLLECTIVES, NONE_UNEVEN, Op, Program, Uneven

IDEAL = PRESETS["ideal"]
# 1 us and 1 B/ns, everything eager.
SIMPLE = PRESETS["alpha-beta"].with_(latency=1e-6, bandwidth=1e9, eager_threshold=math.inf)


def one_message(size: int, send_at: float, receive_at: float) -> ProgramBuilder:
    program = ProgramBuilder(2)
    m = program.message(0, 1, size)
    program.compute(0, send_at)
    program.do(0, Op.SEND, m)
    program.compute(1, receive_at)
    program.do(1, Op.RECEIVE, m)
    return program


def test_an_eager_message_arrives_after_latency_and_size() -> None:
    end = replay(one_message(1000, 0.1, 0.0).build(), SIMPLE).end
    assert end == pytest.approx([0.1, 0.1 + 2e-6], abs=1e-15)


def test_a_late_receiver_finds_an_eager_message() -> None:
    end = replay(one_message(1000, 0.1, 0.5).build(), SIMPLE).end
    assert end == pytest.approx([0.1, 0.5], abs=1e-15)


def test_a_rendezvous_starts_when_both_are_ready_and_both_end_with_it() -> None:
    network = SIMPLE.with_(eager_threshold=1000)
    end = replay(one_message(1000, 0.1, 0.5).build(), network).end
    assert end == pytest.approx([0.5 + 2e-6] * 2, abs=1e-15)


def test_the_eager_threshold_is_the_first_size_that_waits() -> None:
    network = IDEAL.with_(eager_threshold=1000)
    assert replay(one_message(999, 0.1, 0.5).build(), network).end[0] == 0.1
    assert replay(one_message(1000, 0.1, 0.5).build(), network).end[0] == 0.5


def test_a_message_to_oneself_takes_no_time() -> None:
    program = ProgramBuilder(1)
    m = program.message(0, 0, 10**6)
    program.do(0, Op.POST, m)
    program.do(0, Op.SEND, m)
    program.do(0, Op.WAIT_RECEIVE, m)
    assert replay(program.build(), PRESETS["dimemas"]).runtime == 0


def test_a_faster_cpu_shortens_bursts_only() -> None:
    network = SIMPLE.with_(cpu_factor=2)
    end = replay(one_message(1000, 0.1, 0.0).build(), network).end
    assert end == pytest.approx([0.05, 0.05 + 2e-6], abs=1e-15)


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


def test_a_nonblocking_collective_overlaps_with_computing() -> None:
    program = ProgramBuilder(2)
    c = program.collective("allreduce", 8, 8)
    for p, (before, between) in enumerate([(1, 5), (4, 1)]):
        program.compute(p, before)
        program.do(p, Op.ARRIVE, c)
        program.compute(p, between)
        program.do(p, Op.WAIT_COLLECTIVE, c)
    assert replay(program.build(), IDEAL).end.tolist() == [6, 5]


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
    assert "replayed 0.250000000 s" in caught.value.message
    assert "for 64 B, tag 8 from rank 1" in caught.value.message
    assert caught.value.hint is not None
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
    uneven = Uneven(first, first.astype(np.int32), first, first)
    with pytest.raises(ValueError, match="an arrival lacks the cost that it brings"):
        replay(replace(program.build(), uneven=uneven), IDEAL)


# -- the plain replay as the oracle ----------------------------------------------------------------


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Programs of a few processes: matched operations, some of them lost or out of order."""
    processes = draw(st.integers(1, 5))
    program = ProgramBuilder(processes)
    ranks = st.integers(0, processes - 1)
    waits: list[tuple[int, Op, int]] = []
    steps: list[tuple[int, Op, int]] = []
    for _ in range(draw(st.integers(0, 12))):
        if draw(st.booleans()):
            sender, receiver = draw(ranks), draw(ranks)
            m = program.message(sender, receiver, draw(st.sampled_from([0, 10, 1000, 5000])))
            if draw(st.booleans()):
                steps.append((sender, Op.SEND, m))
            else:
                steps.append((sender, Op.ISEND, m))
                waits.append((sender, Op.WAIT_SEND, m))
            if draw(st.booleans()):
                steps.append((receiver, Op.RECEIVE, m))
            else:
                steps.append((receiver, Op.POST, m))
                waits.append((receiver, Op.WAIT_RECEIVE, m))
        else:
            kind = draw(st.sampled_from(COLLECTIVES))
            root = draw(st.one_of(st.just(-1), ranks))
            c = program.collective(kind, draw(st.integers(0, 999)), 500, root=root)
            blocking = draw(st.booleans())
            for p in range(processes):
                steps.append((p, Op.COLLECTIVE if blocking else Op.ARRIVE, c))
                if not blocking:
                    waits.append((p, Op.WAIT_COLLECTIVE, c))
        if waits and draw(st.booleans()):
            steps.append(waits.pop(draw(st.integers(0, len(waits) - 1))))
    for lost in draw(st.sets(st.integers(0, 60), max_size=1)):
        if lost < len(steps):
            del steps[lost]
    for p, op, target in steps + waits:
        program.compute(p, draw(st.integers(0, 3000)) * 1e-9)
        program.do(p, op, target)
    for p in range(processes):
        program.compute(p, draw(st.integers(0, 100)) * 1e-9)
    return with_uneven_members(draw, program.build())


def with_uneven_members(draw: st.DrawFn, program: Program) -> Program:
    """Amounts of their own for the members of some collectives that have no root."""
    chosen = [
        c for c, root in enumerate(program.collectives.root) if root < 0 and draw(st.booleans())
    ]
    arrives = (program.kind == Op.COLLECTIVE) | (program.kind == Op.ARRIVE)
    rows = np.flatnonzero(arrives & np.isin(program.target, chosen))
    amounts = [draw(st.integers(0, 999)) for _ in rows]
    bytes_ = np.array(amounts, np.int64)
    return replace(program, uneven=Uneven(rows, program.target[rows], bytes_, bytes_[::-1].copy()))


@st.composite
def networks(draw: st.DrawFn):
    return PRESETS["ideal"].with_(
        rules=draw(st.sampled_from(["alpha-beta", "dimemas"])),
        latency=draw(st.sampled_from([0.0, 1e-7, 1e-6])),
        bandwidth=draw(st.sampled_from([1e9, math.inf])),
        eager_threshold=draw(st.sampled_from([0, 1000, math.inf])),
        collectives=draw(st.sampled_from(["dimemas", "synchronising", "rooted"])),
        collective_cost=draw(st.sampled_from(["constant", "linear", "logarithmic"])),
        cpu_factor=draw(st.sampled_from([0.5, 1.0, 4.0])),
    )


@settings(max_examples=300, deadline=None)
@given(programs(), networks())
def test_the_compiled_engine_agrees_with_the_plain_one(program: Program, network) -> None:
    compiled: list = []
    plain: list = []
    kernel = _kernel.replay
    calls = len(program.call_code)
    names = np.arange(calls, dtype=np.int16)  # one of its own for each
    program = replace(program, call_name=tuple(map(str, names)), call_code=names)
    places = (names % 3).astype(np.int32)

    def both(**arguments):
        compiled.extend(kernel(**arguments))
        costs = {field.name: arguments[field.name] for field in fields(Charges)}
        plain.extend(oracle.replay(program, arguments["cpu"], **costs))
        return compiled

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("popmodel.simulator.engine._kernel.replay", both, raising=True)
        try:
            replay(program, network, places=places)
        except ReplayError:
            assert (compiled[1] < program.offsets[1:]).any()
    assert compiled[1].tolist() == plain[1]
    assert compiled[0].tolist() == plain[0]
    spent = np.zeros((compiled[2].size // max(calls, 1), calls))
    np.add.at(spent, (places[program.call], program.call), plain[2])
    assert compiled[2] == pytest.approx(spent.ravel(), rel=1e-12)


@settings(max_examples=100, deadline=None)
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


@settings(max_examples=100, deadline=None)
@given(programs(), networks())
def test_no_process_ends_before_its_own_work(program: Program, network) -> None:
    try:
        execution = replay(program, network)
    except ReplayError:
        return
    assert (execution.end >= execution.compute - 1e-12).all()
    assert execution.compute == pytest.approx(program.compute() / network.cpu_factor / 1e9)


def test_bursts_sum_by_process() -> None:
    program = ProgramBuilder(2)
    c = program.collective("barrier")
    program.compute(0, 1.0)
    program.do(0, Op.COLLECTIVE, c)
    program.compute(0, 2.0)
    program.do(1, Op.COLLECTIVE, c)
    assert np.array_equal(program.build().compute(), [3e9, 0.0])


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
