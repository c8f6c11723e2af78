"""Growth of imbalance with processes."""

from __future__ import annotations

import numpy as np
import pytest

from popmodel.fit.growth import growth
from popmodel.fit.samples import Sample


@pytest.mark.parametrize("exponent", [0.0, 0.2, 0.5])
def test_a_power_of_processes_is_recovered(exponent: float) -> None:
    found = growth([Sample(p, 1, 0.03 * (p / 16) ** exponent) for p in (4, 16, 64, 256)])
    assert found.exponent.value == pytest.approx(exponent, abs=0.03)
    assert found.exponent.low <= exponent <= found.exponent.high
    assert found.at(1024) == pytest.approx(0.03 * 64**exponent, rel=0.12)
    assert found.exponent.origin == "fit"
    assert found.notes == ()


def test_averages_of_fewer_cells_vary_more() -> None:
    rng = np.random.default_rng(1)
    cells = 1 + 0.4 * rng.normal(size=2**16)
    samples = []
    for processes in (4, 16, 64, 256):
        work = cells.reshape(processes, -1).mean(axis=1)
        samples.append(Sample(processes, 1, float(work.std() / work.mean())))
    found = growth(samples)
    assert found.exponent.low <= 0.5 <= found.exponent.high
    assert found.exponent.value > 0.3


def test_one_number_of_processes_leaves_the_growth_open() -> None:
    found = growth([Sample(16, 1, 0.05)])
    assert (found.exponent.low, found.exponent.high) == (0.0, 0.5)
    assert found.exponent.origin == "assumed"
    assert found.cv.origin == "trace"
    assert found.notes == ("known at P = 16 only: the growth of imbalance is assumed",)
    assert found.cv.low < 0.05 < found.cv.high


def test_two_small_runs_hardly_move_what_was_assumed() -> None:
    found = growth([Sample(2, 1, 0.02), Sample(4, 1, 0.06)])
    assert 0.25 < found.exponent.value < 0.35
    assert (found.exponent.low, found.exponent.high) == (pytest.approx(0.0, abs=0.1), 0.5)


def test_intervals_hold_the_truth_of_programs_as_they_are_assumed() -> None:
    rng = np.random.default_rng(4)
    held = 0
    for _ in range(400):
        exponent = float(np.clip(rng.normal(0.25, 0.15), 0, 0.5))
        samples = []
        for processes in (4, 8, 16):
            each = rng.normal(1, 0.05 * processes**exponent / 4, processes)
            samples.append(Sample(processes, 1, float(each.std(ddof=1) / each.mean())))
        found = growth(samples)
        held += found.exponent.low <= exponent <= found.exponent.high
    assert 0.85 <= held / 400 <= 0.98


def test_growth_faster_than_independent_cells_is_said() -> None:
    found = growth([Sample(p, 1, 1e-4 * p, {}, 0.01) for p in (16, 64, 256, 1024)])
    assert found.exponent.value == 0.5
    assert found.notes[0].startswith("imbalance grows as P**1, outside of 0 to 1/2")
    assert found.notes[1].startswith("imbalance follows no power of P")


def test_no_imbalance_at_all_stays_none() -> None:
    assert growth([Sample(4, 1, 0.0), Sample(16, 1, 0.0)]).at(256) == 0.0


def test_no_imbalance_at_some_numbers_is_left_out_and_said() -> None:
    found = growth([Sample(2, 1, 0.0), Sample(4, 1, 0.02), Sample(16, 1, 0.02)])
    assert found.notes == ("no imbalance at P = 2, left out",)


def test_one_process_has_no_imbalance() -> None:
    with pytest.raises(ValueError, match="imbalance between processes needs a run with more"):
        growth([Sample(1, 1, 0.0)])
