"""Larger runs that were not given: of EPOCH, and of programs that are simulated apart."""

from pathlib import Path

import pytest
from benchmarks.projection import compared
from benchmarks.scaling import made, names

import popmodel

ROOT = Path(__file__).parents[2]
EPOCH = {
    "runtime": 1.520110,
    "parallel_efficiency": 0.937123,
    "load_balance": 0.986338,
    "communication_efficiency": 0.950104,
    "serialisation_efficiency": 0.968292,
    "transfer_efficiency": 0.981216,
}
"""What the run on 16 processes took, s, and its efficiencies of the family mpi."""


def test_epoch_on_16_processes_from_1_and_4() -> None:
    found = popmodel.predict(ROOT / "tests" / "data" / "epoch.csv", procs=16)
    rows = {row.metric: row for row in found.projection.rows if row.family in ("", "mpi")}
    for metric, value in EPOCH.items():
        row = rows[metric]
        assert row.value is not None and row.low is not None and row.high is not None
        assert row.low <= value <= row.high
        assert row.value == pytest.approx(value, abs=0.03)


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("name", "off"),
    [
        ("jacobi 2-D", 0.1),
        ("hybrid, more processes", 0.05),
        ("hybrid, more threads", 0.05),
        ("Jacobi (SMPI) 4 -> 16", 0.1),
    ],
)
def test_a_larger_run_is_projected_from_smaller_ones(name: str, off: float, tmp_path: Path) -> None:
    if name not in names():
        pytest.skip("its traces are not here")
    found, plain = compared(made(name, tmp_path))
    took = next(one for one in found if one.metric == "runtime")
    assert took.value == pytest.approx(took.measured, rel=off)
    assert took.covered
    assert abs(took.value / took.measured - 1) < abs(plain["nearest"] / took.measured - 1)
    parallel = next(one for one in found if one.metric == "parallel_efficiency")
    assert parallel.value == pytest.approx(parallel.measured, abs=0.06)
    assert parallel.covered
