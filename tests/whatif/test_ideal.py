"""Ideal scenarios: what each kind of loss costs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.network.network import Network
from popmodel.network.speeds import parse_speeds
from popmodel.simulator import from_trace, replay
from popmodel.simulator.build import ProgramBuilder
from popmodel.simulator.program import Op
from popmodel.trace import read
from popmodel.trace.focus import focused
from popmodel.whatif.ideal import balanced, scenarios

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


def test_the_highest_gain_comes_first():
    found = scenarios(ring(10 * MS, 4 * MS), SLOW, run)
    gains = [one.gain for one in found]
    assert gains == sorted(gains, reverse=True)
    runtime = run(ring(10 * MS, 4 * MS), SLOW)
    assert all(one.gain == pytest.approx(runtime - one.runtime) for one in found)


def test_a_faster_cpu_shortens_the_computing_of_all_scenarios():
    network = SLOW.with_(cpu_factor=2.0)
    found = {one.name: one.runtime for one in scenarios(ring(10 * MS, 4 * MS), network, run)}
    assert found["no waiting"] == pytest.approx(10 * MS, rel=1e-12)
    assert found["all ideal"] == pytest.approx(7 * MS, rel=1e-12)
    assert found["balanced"] == pytest.approx(9 * MS, rel=1e-12)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=2))
def test_without_transfer_and_waiting_nothing_is_slower(times):
    program = ring(*times)
    runtime = run(program, SLOW)
    found = {one.name: one.runtime for one in scenarios(program, SLOW, run)}
    assert found["all ideal"] <= found["no waiting"] + 1e-15
    assert found["no waiting"] <= found["no transfer"] + 1e-15
    assert found["no transfer"] <= runtime


@pytest.mark.parametrize("name", ["mix.4", "cg.S.2"])
def test_balanced_processes_compute_equally_long(name):
    program = from_trace(focused(read(f"tests/data/{name}.prv.gz", cache=False))[0])
    even = balanced(program, SLOW).compute()
    assert even == pytest.approx(np.full(program.processes, program.compute().mean()), rel=1e-12)


def test_a_process_that_computes_nothing_stays_so():
    builder = ProgramBuilder(2)
    builder.compute(0, 1 * MS)
    assert balanced(builder.build(), SLOW).compute().tolist() == [0.5e6, 0.0]


def test_a_program_without_processes_that_compute_gains_nothing():
    assert [one.gain for one in scenarios(ProgramBuilder(1).build(), SLOW, run)] == [0.0] * 5


def test_ranks_of_other_speeds_are_balanced_as_fast_as_they_are():
    # rank 0 has 2 x 10 ms at half the speed, rank 1 2 x 4 ms: 40 and 8 ms of computing
    network = SLOW.with_(speeds=parse_speeds("0=0.5"))
    found = {one.name: one.runtime for one in scenarios(ring(10 * MS, 4 * MS), network, run)}
    assert found["no waiting"] == pytest.approx(40 * MS)
    assert found["all ideal"] == pytest.approx(24 * MS)
    assert found["balanced"] == pytest.approx((24 + 2) * MS)
