"""Traces read and measured here against PyPOP's statistics of the same traces.

Every statistic comes from the trace, the whole of it; PyPOP's metric tables, which follow from its
statistics, are in ``test_pypop.py``. Traces of EPOCH and ImageMagick are not in the repository.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from popmodel.efficiency.measure import analyse
from popmodel.efficiency.observables import Observables
from popmodel.traces import read
from popmodel.traces.selection import TracePart

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
        found[trace] = entry["per_thread_statistics"][size]
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
    expected = by_thread(reference[trace][theirs], run, masters)
    assert nanoseconds(getattr(run, ours)) == expected


@pytest.mark.parametrize("trace", [trace for trace, _, _ in RUNS])
def test_runtime_to_the_nanosecond(trace: str, reference: dict, measured: Callable) -> None:
    expected = max(reference[trace]["Total Runtime"].values())
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
    expected = by_thread(reference[trace][theirs], run, masters=False)
    assert getattr(run, ours).astype(np.int64).tolist() == expected


@pytest.mark.parametrize("trace", ["epoch_1proc", "epoch_4proc", "epoch_16proc"])
def test_ideal_runtime_to_the_nanosecond(trace: str, reference: dict, measured: Callable) -> None:
    expected = reference[trace]["Ideal Runtime"]["1.1"]
    assert round(measured(trace).ideal_runtime * 1e9) == round(expected)
