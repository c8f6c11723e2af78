"""Ideal scenarios: what each kind of loss costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.network.network import Network
from popmodel.network.placement import parse_speeds
from popmodel.network.point_to_point import SizeClass, Tier, Tiers
from popmodel.sensitivity.region_gains import balanced, scenarios
from popmodel.simulator import replay
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.program import Op, ProgramBuilder, at_once
from popmodel.traces import read
from popmodel.traces.selection import focused

MS = 1e-3
SLOW = Network(latency=1 * MS, bandwidth=1e6)


def run(program, network) -> float:
    return replay(program, network).runtime


def ring(first: float, second: float):
    """Two ranks compute, then exchange a message each, then compute again."""
    builder = ProgramBuilder(2)
    messages = [builder.message(p, 1 - p, 1000) for p in range(2)]
    for process, time in enumerate((first, second)):
        builder.compute(process, time)
        builder.do(process, Op.ISEND, messages[process])
        builder.do(process, Op.RECEIVE, messages[1 - process])
        builder.compute(process, time)
    return builder.build()


def test_scenarios_of_a_ring_are_those_by_hand():
    # a message takes 1 ms + 1000 B / 1 MB/s = 2 ms; rank 0 has 2 x 10 ms, rank 1 has 2 x 4 ms
    found = {one.name: one.runtime for one in scenarios(ring(10 * MS, 4 * MS), SLOW, run)}
    assert found == pytest.approx(
        {
            "no transfer": 20 * MS,  # rank 0 waits for nobody
            "balanced": 16 * MS,  # 7 + 2 + 7
            "balanced, no transfer": 14 * MS,
            "no waiting": 20 * MS,
            "all ideal": 14 * MS,
        },
        rel=1e-12,
    )


def test_a_faster_cpu_shortens_the_computing_of_all_scenarios():
    network = SLOW.with_(cpu_factor=2.0)
    found = {one.name: one.runtime for one in scenarios(ring(10 * MS, 4 * MS), network, run)}
    assert found["no waiting"] == pytest.approx(10 * MS, rel=1e-12)
    assert found["all ideal"] == pytest.approx(7 * MS, rel=1e-12)
    assert found["balanced"] == pytest.approx(9 * MS, rel=1e-12)


@given(st.lists(st.floats(0, 1, allow_subnormal=False), min_size=2, max_size=2))
def test_without_transfer_and_waiting_nothing_is_slower(times):
    program = ring(*times)
    runtime = run(program, SLOW)
    found = {one.name: one.runtime for one in scenarios(program, SLOW, run)}
    assert found["all ideal"] <= found["no waiting"] + 1e-15
    assert found["no waiting"] <= found["no transfer"] + 1e-15
    assert found["no transfer"] <= runtime


@pytest.mark.parametrize("name", ["mix.4", "cg.S.2"])
def test_balanced_processes_compute_equally_long(name):
    program = from_trace(focused(read(f"tests/data/{name}.prv.gz"))[0])
    even = balanced(program, SLOW).compute()
    assert even == pytest.approx(np.full(program.processes, program.compute().mean()), rel=1e-12)


def test_a_program_without_processes_that_compute_gains_nothing():
    assert [one.gain for one in scenarios(ProgramBuilder(1).build(), SLOW, run)] == [0.0] * 5


def test_ranks_of_other_speeds_are_balanced_as_fast_as_they_are():
    # rank 0 has 2 x 10 ms at half the speed, rank 1 2 x 4 ms: 40 and 8 ms of computing
    network = SLOW.with_(speeds=parse_speeds("0=0.5"))
    found = {one.name: one.runtime for one in scenarios(ring(10 * MS, 4 * MS), network, run)}
    assert found["no waiting"] == pytest.approx(40 * MS)
    assert found["all ideal"] == pytest.approx(24 * MS)
    assert found["balanced"] == pytest.approx((24 + 2) * MS)


def exchanges(ranks: int, steps: int, size: int, first: set[int], compute: float = 1 * MS):
    """Let all ranks send to the next one and receive from the one before, some of them first."""
    builder = ProgramBuilder(ranks)
    for _ in range(steps):
        messages = [builder.message(p, (p + 1) % ranks, size) for p in range(ranks)]
        for p in range(ranks):
            builder.compute(p, compute)
            order = [(Op.SEND, messages[p]), (Op.RECEIVE, messages[p - 1])]
            for op, message in order[::-1] if p in first else order:
                builder.do(p, op, message)
    return builder.build()


FAST = Network(latency=1e-6, bandwidth=1e9)


def test_a_ring_of_blocking_sends_is_one_exchange():
    """A send waits for its receiver, which sends itself: the last one sends first, and so on."""
    program = exchanges(8, 10, 10**7, first={0})
    assert run(program, FAST) == pytest.approx(810.08 * MS)
    (found,) = (one for one in scenarios(program, FAST, run) if "at once" in one.name)
    assert found.runtime == pytest.approx(10 * (1 * MS + 10 * MS + 1e-6))
    assert found.gain == pytest.approx(810.08 * MS - found.runtime)


def test_a_send_does_not_move_before_the_receive_of_another_exchange():
    """As in a ring that sums up: each sends on what it has received last."""
    program = exchanges(3, 4, 10**6, first={0}, compute=0.0)
    changed = at_once(program)
    assert changed is not None
    for p in range(3):
        rows = slice(*changed.offsets[p : p + 2])
        (received,) = np.nonzero(changed.kind[rows] == Op.RECEIVE)
        (sent,) = np.nonzero(changed.kind[rows] == Op.ISEND)
        assert (sent[1:] > received[:-1]).all()


def test_what_is_passed_on_cannot_be_sent_at_once():
    builder = ProgramBuilder(4)
    messages = [builder.message(p, p + 1, 10**6) for p in range(3)]
    for p in range(4):
        if p > 0:
            builder.do(p, Op.RECEIVE, messages[p - 1])
        if p < 3:
            builder.do(p, Op.SEND, messages[p])
    assert at_once(builder.build()) is None


@given(
    ranks=st.integers(2, 7),
    steps=st.integers(1, 4),
    size=st.sampled_from([8, 40_000, 10**6]),
    first=st.sets(st.integers(0, 6), min_size=1),
    compute=st.sampled_from([0.0, 5e-6, 1 * MS]),
)
def test_at_once_is_never_longer_and_does_the_same(ranks, steps, size, first, compute):
    program = exchanges(ranks, steps, size, {0, *(p for p in first if p < ranks - 1)}, compute)
    changed = at_once(program)
    if changed is None:
        return
    assert run(changed, FAST) <= run(program, FAST) + 1e-12
    assert changed.compute().tolist() == program.compute().tolist()
    for p in range(ranks):
        before, after = (slice(*each.offsets[p : p + 2]) for each in (program, changed))
        receives = [
            each.target[rows][each.kind[rows] == Op.RECEIVE]
            for each, rows in ((program, before), (changed, after))
        ]
        assert receives[0].tolist() == receives[1].tolist()
        kinds = changed.kind[after].tolist()
        assert kinds.count(Op.ISEND) == kinds.count(Op.WAIT_SEND)
        assert kinds.count(Op.ISEND) + kinds.count(Op.SEND) == steps


def test_messages_within_nodes_have_a_scenario():
    tiers = Tiers(
        Tier((SizeClass(None, 1e-6, 1e-9),), 1e9), Tier((SizeClass(None, 1e-5, 1e-9),), 1e9)
    )
    program = replace(ring(1 * MS, 1 * MS), nodes=np.zeros(2, np.int32))
    names = {one.name: one for one in scenarios(program, Network(tiers=tiers), run)}
    assert names["no transfer within nodes"].gain == pytest.approx(2e-6)
    assert "no transfer within nodes" not in {one.name for one in scenarios(program, SLOW, run)}
