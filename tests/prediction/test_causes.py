"""Losses by the items of the program that they come from."""

from __future__ import annotations

import pytest
from model.demo import machine, program

from popmodel.machines.profile import Profile
from popmodel.model import signatures as signature
from popmodel.model.signatures import bundled
from popmodel.prediction.prediction import MAIN_FAMILY, PredictedRun, predict

TWO_LEVELS = """
[[program]]
serial = { name = "read", trip = 1e6, flops = 2 }
[[program]]
loop = { count = 50, body = [
  { serial = { name = "wall", trip = 1e5, flops = 2, every = 2 } },
  { parallel = { name = "sweep", trip = 10, inner = 1000, flops = 2 } },
  { collective = { name = "sum", op = "allreduce", bytes = 80000 } },
  { loop = { count = 3, body = [ { collective = { name = "sum", op = "barrier" } } ] } },
] }
"""


def lost(run: PredictedRun, metric: str) -> float:
    return (1 - run.metrics[MAIN_FAMILY][metric].value) * run.runtime.value


@pytest.mark.parametrize("name", bundled())
def test_causes_add_up_to_the_loss(name: str, preset: Profile) -> None:
    run = predict(signature.load(name), preset, 16, 4)
    assert run.causes
    for metric, causes in run.causes.items():
        assert sum(causes.values()) == pytest.approx(lost(run, metric), rel=1e-6, abs=1e-8)
        assert list(causes.values()) == sorted(causes.values(), reverse=True)


def test_items_are_told_by_name_with_the_loops_around_them() -> None:
    run = predict(program(TWO_LEVELS), machine(), 4, 4)
    serial = run.causes["serial_region_efficiency"]
    # 1e6 iterations once, and 1e5 of them in 25 of 50 steps
    assert list(serial) == ["wall", "read"]
    assert serial["wall"] == pytest.approx(2.5 * serial["read"])
    # 10 iterations do not divide by 4 threads
    assert list(run.causes["openmp_region_efficiency"]) == ["sweep"]
    assert list(run.causes["process_transfer_efficiency"]) == ["sum"]
    for metric, causes in run.causes.items():
        assert sum(causes.values()) == pytest.approx(lost(run, metric))


def test_imbalance_is_a_cause_of_its_own() -> None:
    uneven = "persistent_cv = 0.05\ntransient_cv = 0.1\n"
    run = predict(program(TWO_LEVELS, imbalance=uneven), machine(), 4, 4)
    assert list(run.causes["process_load_balance"]) == ["unequal work"]
    assert list(run.causes["process_serialisation_efficiency"]) == ["waiting for others"]
    for metric, causes in run.causes.items():
        assert sum(causes.values()) == pytest.approx(lost(run, metric))


def test_what_a_replay_corrects_is_shared_out_alike() -> None:
    ring = """
[[program]]
loop = { count = 100, body = [
  { parallel = { name = "sweep", trip = 1000, inner = 100, flops = 2 } },
  { shift = { name = "left", dim = 0, by = -1, bytes = 1000 } },
  { shift = { name = "right", dim = 0, by = 1, bytes = 100000 } },
] }
"""
    uneven = "transient_cv = 0.1\n"
    grid = 'grid = ["P"]\nperiodic = [true]\n'
    run = predict(program(ring, imbalance=uneven, decomp=grid), machine(), 16, 1)
    assert run.source == "replay"
    transfer = run.causes["process_transfer_efficiency"]
    assert list(transfer) == ["right", "left"]
    assert list(run.causes["process_serialisation_efficiency"]) == ["waiting for others"]
    for metric, causes in run.causes.items():
        assert sum(causes.values()) == pytest.approx(lost(run, metric))
