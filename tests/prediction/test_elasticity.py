"""Elasticities: exact powers, Euler's theorem for times, kinks, and what enters at all."""

from __future__ import annotations

import pytest
from model.demo import machine, program

from popmodel.base.expressions.elementary import Value
from popmodel.machines.profile import Profile
from popmodel.model.predictor import Study
from popmodel.model.run.process_placement import place
from popmodel.model.run.work import ModelledObservables
from popmodel.model.signature.application import Signature
from popmodel.prediction.causes import Elasticity, elasticities
from popmodel.prediction.prediction import predict

MIXED = """
[[program]]
loop = { count = "steps", body = [
  { parallel = { trip = 1000, inner = 1000, flops = 2, loads = 1, bytes.MEM = 8 } },
  { serial = { trip = 1000, flops = 2, bytes.L3 = 16 } },
  { collective = { op = "allreduce", bytes = 80000 } },
  { p2p = { to = "rank + 1", bytes = 8, mode = "sendrecv" } },
] }
"""
UNEVEN = "persistent_cv = 0.05\ntransient_cv = 0.1\n"
DEMO = program(MIXED, params="steps = 50", imbalance=UNEVEN)


def of_runtime(one: Signature, on: Profile, processes: int, threads: int) -> dict[str, Elasticity]:
    study = Study(one, on, {}, 0, 0)
    found = elasticities(study, place(processes, threads, on.topology))
    return {each.name: each for each in found}


def test_a_count_of_steps_is_proportional() -> None:
    steps = of_runtime(program(MIXED, params="steps = 50"), machine(), 16, 4)["params.steps"]
    for side in (steps.value, steps.falling, steps.rising):
        assert side == pytest.approx(1.0)
    assert steps.is_smooth
    assert steps.label == "steps"


def test_one_bottleneck_has_the_whole_elasticity() -> None:
    loop = program("[[program]]\nserial = { trip = 1e6, flops = 4 }\n")
    found = of_runtime(loop, machine(core__loop_cycles=0.0), 1, 1)
    assert found["clock"].value == pytest.approx(-1.0, rel=1e-4)
    assert found["arithmetic"].value == pytest.approx(-1.0, rel=1e-4)
    assert "memory" not in found  # the loop does not ask for it
    assert found["loops"].value == 0.0


def test_a_kink_has_two_sides() -> None:
    # both sides of the maximum take equal time: only slowing one of them down matters
    even = program("[[program]]\nserial = { trip = 1e6, flops = 4, loads = 4 }\n")
    arithmetic = of_runtime(even, machine(core__loop_cycles=0.0), 1, 1)["arithmetic"]
    assert arithmetic.falling == pytest.approx(-1.0, rel=1e-3)
    assert arithmetic.rising == pytest.approx(0.0, abs=1e-12)
    assert arithmetic.value == pytest.approx(-0.5, rel=1e-2)
    assert not arithmetic.is_smooth


def test_of_a_metric() -> None:
    study = Study(DEMO, machine(), {}, 0, 0)
    where = place(16, 4, study.profile.topology)

    def efficiency(modelled: ModelledObservables) -> Value:
        return modelled.aggregates["ideal_runtime"] / modelled.aggregates["runtime"]

    found = {one.name: one.value for one in elasticities(study, where, efficiency)}
    assert found["adapter"] > 0  # a faster network wastes less time in transfer
    assert found["clock"] < 0
    with pytest.raises(ValueError, match="a result of 0 has no elasticity"):
        elasticities(study, where, lambda modelled: 0.0 * modelled.runtime)


def test_a_parameter_at_the_edge_of_its_domain_has_none() -> None:
    """One block cannot become 0.995 blocks; all other elasticities are there."""
    wave = program(
        "[[program]]\npipeline = { dims = [0], blocks = 'blocks', seconds = 'work', bytes = 80 }\n",
        params="blocks = 1\nwork = 1",
        decomp='grid = ["P"]',
    )
    names = {one.name for one in predict(wave, machine(), 4, 1).elasticities}
    assert "params.work" in names
    assert "params.blocks" not in names
    assert "latency_intra" in names
