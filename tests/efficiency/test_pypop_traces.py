"""Traces read and measured here against PyPOP's statistics of the same traces.

PyPOP's metric tables, evaluated from its own statistics, are in ``test_pypop.py``; here every
statistic comes from the trace, the whole of it. Traces of EPOCH and ImageMagick are not in the
repository.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.measure import analyse
from popmodel.efficiency.observables import Observables
from popmodel.trace import read
from popmodel.trace.selection import TracePart

DATA = Path(__file__).parents[1] / "data"
RUNS = [
    ("epoch_1proc", "epoch", "1"),
    ("epoch_4proc", "epoch", "4"),
    ("epoch_16proc", "epoch", "16"),
    ("imagemagick_omp2", "imagemagick", "2"),
    ("imagemagick_omp8", "imagemagick", "8"),
    ("bt-mz.S.2x2", "bt-mz.S.2x2", "2"),
]


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    text = (DATA / "pypop.json").read_text()
    table = json.loads(text)
    found = {}
    for trace, name, size in RUNS:
        entry = table[name]
        found[trace] = {
            "statistics": entry["per_thread_statistics"][size],
            "metrics": {family: rows[size] for family, rows in entry["metrics"].items()},
        }
    return found


@pytest.fixture(scope="module")
def measured(real_trace: Callable[[str], Path]) -> Callable[[str], Observables]:
    kept: dict[str, Observables] = {}

    def get(name: str) -> Observables:
        if name not in kept:
            kept[name] = analyse(
                read(real_trace(name)), part=TracePart(from_start=True)
            ).observables
        return kept[name]

    return get


def nanoseconds(seconds: np.ndarray) -> list[int]:
    return np.rint(seconds * 1e9).astype(np.int64).tolist()


def by_thread(statistic: dict[str, float], run: Observables, masters: bool) -> list[int]:
    """PyPOP's numbers in the order of our threads, or of our masters."""
    keys = [
        f"{p + 1}.{t + 1}"
        for p, threads in enumerate(run.threads.tolist())
        for t in range(1 if masters else threads)
    ]
    return [round(statistic[key]) for key in keys]


@pytest.mark.parametrize("trace", [trace for trace, _, _ in RUNS])
@pytest.mark.parametrize(
    ("ours", "theirs", "masters"),
    [
        ("useful", "Total Useful Computation", False),
        ("omp_useful", "OpenMP Useful Computation", False),
        ("serial_useful", "Serial Useful Computation", True),
        ("in_openmp", "OpenMP Total Runtime", True),
        ("outside_mpi", "Total Non-MPI Runtime", True),
    ],
)
def test_times_to_the_nanosecond(
    trace: str, ours: str, theirs: str, masters: bool, reference: dict, measured: Callable
) -> None:
    run = measured(trace)
    expected = by_thread(reference[trace]["statistics"][theirs], run, masters)
    assert nanoseconds(getattr(run, ours)) == expected


@pytest.mark.parametrize("trace", [trace for trace, _, _ in RUNS])
def test_runtime_to_the_nanosecond(trace: str, reference: dict, measured: Callable) -> None:
    expected = max(reference[trace]["statistics"]["Total Runtime"].values())
    assert round(measured(trace).runtime * 1e9) == round(expected)


@pytest.mark.parametrize("trace", [trace for trace, _, _ in RUNS if not trace.startswith("bt-mz")])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("instructions", "Useful Instructions"), ("cycles", "Useful Cycles")],
)
def test_counters_exactly(
    trace: str, ours: str, theirs: str, reference: dict, measured: Callable
) -> None:
    run = measured(trace)
    expected = by_thread(reference[trace]["statistics"][theirs], run, masters=False)
    assert getattr(run, ours).astype(np.int64).tolist() == expected


@pytest.mark.parametrize("trace", ["epoch_1proc", "epoch_4proc", "epoch_16proc"])
def test_ideal_runtime_to_the_nanosecond(trace: str, reference: dict, measured: Callable) -> None:
    expected = reference[trace]["statistics"]["Ideal Runtime"]["1.1"]
    assert round(measured(trace).ideal_runtime * 1e9) == round(expected)


#: family -> PyPOP's class, and our ids -> its names. Left out: what PyPOP computes on mixed levels
#: (see test_pypop.py), and what needs a reference run.
TABLES: dict[str, tuple[str, dict[str, str]]] = {
    "mpi": (
        "MPI_Multiplicative_Metrics",
        {
            "parallel_efficiency": "Parallel Efficiency",
            "load_balance": "MPI Load balance",
            "communication_efficiency": "MPI Communication Efficiency",
            "transfer_efficiency": "MPI Transfer Efficiency",
            "serialisation_efficiency": "MPI Serialisation Efficiency",
        },
    ),
    "mpi-additive": (
        "MPI_Metrics",
        {
            "parallel_efficiency": "Parallel Efficiency",
            "load_balance": "MPI Load Balance",
            "communication_efficiency": "MPI Communication Efficiency",
            "transfer_efficiency": "MPI Transfer Efficiency",
            "serialisation_efficiency": "MPI Serialisation Efficiency",
        },
    ),
    "hybrid-additive": (
        "MPI_OpenMP_Metrics",
        {
            "parallel_efficiency": "Parallel Efficiency",
            "process_efficiency": "Process Level Efficiency",
            "process_load_balance": "MPI Load balance",
            "process_communication_efficiency": "MPI Communication Efficiency",
            "process_transfer_efficiency": "MPI Transfer Efficiency",
            "process_serialisation_efficiency": "MPI Serialisation Efficiency",
            "thread_efficiency": "Thread Level Efficiency",
            "openmp_region_efficiency": "OpenMP Region Efficiency",
            "serial_region_efficiency": "Serial Region Efficiency",
        },
    ),
    "hybrid-multiplicative": (
        "Judit_Hybrid_Metrics",
        {
            "hybrid_parallel_efficiency": "Hybrid Parallel Efficiency",
            "hybrid_load_balance": "Hybrid Load Balance",
            "hybrid_communication_efficiency": "Hybrid Communication Efficiency",
            "mpi_parallel_efficiency": "MPI Parallel Efficiency",
            "mpi_load_balance": "MPI Load Balance",
            "mpi_communication_efficiency": "MPI Communication Efficiency",
            "openmp_parallel_efficiency": "OpenMP Parallel Efficiency",
            "openmp_load_balance": "OpenMP Load Balance",
            "openmp_communication_efficiency": "OpenMP Communication Efficiency",
        },
    ),
}


@pytest.mark.parametrize("trace", [trace for trace, _, _ in RUNS])
@pytest.mark.parametrize("family", TABLES)
def test_metrics_to_a_billionth(
    trace: str, family: str, reference: dict, measured: Callable
) -> None:
    name, ids = TABLES[family]
    expected = reference[trace]["metrics"].get(name)
    run = measured(trace)
    if expected is None or (family.startswith("mpi") and run.has_openmp):
        # PyPOP has no MPI metrics of OpenMP runs; of hybrid ones it mixes masters and threads.
        assert run.has_openmp or family == "hybrid-multiplicative"
        return
    evaluation = load_families()[family].evaluate(run.aggregates(), run.absent)
    for ours, theirs in ids.items():
        value = expected[theirs]
        if value is None:
            assert evaluation.absent[ours] == "no MPI calls"
        elif trace.startswith("bt-mz") and ("transfer" in ours or "serialisation" in ours):
            # PyPOP's rest on Dimemas simulating OpenMP too; ours keep parallel regions as they
            # were, which is Dimemas with that simulation disabled.
            assert run.ideal_runtime == pytest.approx(0.485720911, abs=1e-12)
        else:
            assert evaluation.values[ours] == pytest.approx(value, abs=1e-9)
