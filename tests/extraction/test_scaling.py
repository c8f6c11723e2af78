"""Larger runs predicted from traces of smaller ones: the short form of the benchmark of scaling."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.scaling import made, names, predicted

WITHIN = {
    "jacobi 2-D": 0.05,
    "rows and transposes": 0.05,
    "hybrid, more threads": 0.05,
    "Jacobi (SMPI) 4 -> 16": 0.1,
    "EPOCH 1, 4 -> 16": 0.1,
}


@pytest.mark.parametrize("name", WITHIN)
def test_a_larger_run_is_predicted_from_smaller_ones(name: str, tmp_path: Path) -> None:
    if name not in names():
        pytest.skip("its traces are not here")
    row = predicted(made(name, tmp_path), tmp_path)
    assert row.replayed == pytest.approx(row.measured, rel=WITHIN[name])
    assert row.covered
    best_plain = min(abs(row.others[one] / row.measured - 1) for one in ("nearest", "linear"))
    assert abs(row.replayed / row.measured - 1) < best_plain + 0.03
