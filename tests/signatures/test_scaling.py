"""Larger runs predicted from traces of smaller ones: the short form of the benchmark of scaling."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.scaling import made, names, predicted

WITHIN = {
    "jacobi 2-D": 0.03,
    "rows and transposes": 0.03,
    "hybrid, more threads": 0.02,
    "Jacobi (SMPI) 4 -> 16": 0.05,
    "NAS CG 2, 4, 8 -> 16": 0.06,
    "NAS MG 2, 4 -> 8": 0.1,
    "NAS BT-MZ 2 -> 4": 0.05,
    "NAS BT-MZ 2, 4, 8 -> 16": 0.05,
    "NAS BT-MZ 8 -> 16": 0.05,
    "EPOCH 1, 4 -> 16": 0.05,
}


@pytest.mark.long(after=1)
@pytest.mark.parametrize("name", WITHIN)
def test_a_larger_run_is_predicted_from_smaller_ones(name: str, tmp_path: Path) -> None:
    if name not in names():
        pytest.skip("its traces are not here")
    row = predicted(made(name, tmp_path), tmp_path)
    assert row.replayed == pytest.approx(row.measured, rel=WITHIN[name])
    assert row.covered
    best_plain = min(abs(row.others[one] / row.measured - 1) for one in ("nearest", "linear"))
    assert abs(row.replayed / row.measured - 1) < best_plain + 0.03


@pytest.mark.long
def test_a_zone_that_runs_do_not_tell_is_in_the_interval(tmp_path: Path) -> None:
    """Runs on 2 and 4 are balanced: the largest of 16 zones is all that 8 wait for."""
    row = predicted(made("NAS BT-MZ 2, 4 -> 8", tmp_path), tmp_path)
    assert row.replayed < 0.7 * row.measured
    assert row.covered
