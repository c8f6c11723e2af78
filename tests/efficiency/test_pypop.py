"""The numbers that PyPOP 0.3.5 prints, from the statistics it computes them from.

PyPOP's classes and popmodel's families, on traces with one thread per process and on hybrid ones:

=================================  ============================================================
PyPOP                              popmodel
=================================  ============================================================
MPI_Multiplicative_Metrics         ``mpi``, one thread per process
MPI_Metrics                        ``mpi-additive``, one thread per process
MPI_OpenMP_Metrics, OpenMP_Metrics ``hybrid-additive``
Judit_Hybrid_Metrics               ``hybrid-multiplicative``
MPI_OpenMP_Multiplicative_Metrics  what it shares with ``hybrid-multiplicative``; its region
                                   efficiencies (NAG's multiplicative form) are not offered
scaling of each class              ``scaling``
=================================  ============================================================

On hybrid traces PyPOP's two MPI classes mix levels, so that their parts do not give the whole:
load balance takes the useful time of the master threads (as ``mpi`` and ``mpi-additive`` do),
parallel efficiency that of all threads (the hybrid families' parallel efficiency), communication
efficiency and serialisation the time of the processes outside MPI (the process level of the
hybrid families).

PyPOP's scaling metrics are against its run with the fewest threads. For ImageMagick that run (one
thread) is not among the traces, so its numbers are first divided by those of the two-thread run.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.observables import Observables
from popmodel.efficiency.scaling import Comparable, Scaling, scale

DATA = Path(__file__).parents[1] / "data"
CASES = [("epoch", "1"), ("epoch", "4"), ("epoch", "16")]
CASES += [("imagemagick", "2"), ("imagemagick", "8"), ("bt-mz.S.2x2", "2")]

SCALING = {
    "Global Efficiency": "global_efficiency",
    "Computation Scaling": "computation_scaling",
    "Computational Scaling": "computation_scaling",
    "Instruction Scaling": "instruction_scaling",
    "IPC Scaling": "ipc_scaling",
    "Frequency Scaling": "frequency_scaling",
    "Speedup": "speedup",
}

HYBRID_ADDITIVE = {
    "Parallel Efficiency": "parallel_efficiency",
    "Process Level Efficiency": "process_efficiency",
    "MPI Load balance": "process_load_balance",
    "MPI Communication Efficiency": "process_communication_efficiency",
    "MPI Transfer Efficiency": "process_transfer_efficiency",
    "MPI Serialisation Efficiency": "process_serialisation_efficiency",
    "Thread Level Efficiency": "thread_efficiency",
    "OpenMP Region Efficiency": "openmp_region_efficiency",
    "Serial Region Efficiency": "serial_region_efficiency",
}

# PyPOP class -> PyPOP name -> (family, id)
HYBRID: dict[str, dict[str, tuple[str, str]]] = {
    "MPI_OpenMP_Metrics": {name: ("hybrid-additive", id) for name, id in HYBRID_ADDITIVE.items()},
    "OpenMP_Metrics": {
        name: ("hybrid-additive", HYBRID_ADDITIVE[name])
        for name in ("Parallel Efficiency", "OpenMP Region Efficiency", "Serial Region Efficiency")
    },
    "Judit_Hybrid_Metrics": {
        name: ("hybrid-multiplicative", name.lower().replace(" ", "_"))
        for name in (
            "Hybrid Parallel Efficiency",
            "Hybrid Load Balance",
            "Hybrid Communication Efficiency",
            "MPI Parallel Efficiency",
            "MPI Load Balance",
            "MPI Communication Efficiency",
            "OpenMP Parallel Efficiency",
            "OpenMP Load Balance",
            "OpenMP Communication Efficiency",
        )
    },
    "MPI_OpenMP_Multiplicative_Metrics": {
        "Parallel Efficiency": ("hybrid-multiplicative", "hybrid_parallel_efficiency"),
        "Process Level Efficiency": ("hybrid-multiplicative", "mpi_parallel_efficiency"),
        "MPI Load balance": ("hybrid-multiplicative", "mpi_load_balance"),
        "MPI Communication Efficiency": ("hybrid-multiplicative", "mpi_communication_efficiency"),
        "MPI Transfer Efficiency": ("hybrid-multiplicative", "mpi_transfer_efficiency"),
        "MPI Serialisation Efficiency": ("hybrid-multiplicative", "mpi_serialisation_efficiency"),
        "Thread Level Efficiency": ("hybrid-multiplicative", "openmp_parallel_efficiency"),
    },
    "MPI_Multiplicative_Metrics": {
        "Parallel Efficiency": ("hybrid-multiplicative", "hybrid_parallel_efficiency"),
        "MPI Load balance": ("mpi", "load_balance"),
        "MPI Communication Efficiency": ("hybrid-multiplicative", "mpi_communication_efficiency"),
        "MPI Transfer Efficiency": ("mpi", "transfer_efficiency"),
        "MPI Serialisation Efficiency": ("hybrid-multiplicative", "mpi_serialisation_efficiency"),
    },
    "MPI_Metrics": {
        "Parallel Efficiency": ("hybrid-additive", "parallel_efficiency"),
        "MPI Load Balance": ("mpi-additive", "load_balance"),
        "MPI Communication Efficiency": ("hybrid-additive", "process_communication_efficiency"),
        "MPI Transfer Efficiency": ("mpi-additive", "transfer_efficiency"),
        "MPI Serialisation Efficiency": ("hybrid-additive", "process_serialisation_efficiency"),
    },
}

# one thread per process: the MPI families hold all of it
PURE_MPI: dict[str, dict[str, tuple[str, str]]] = {
    pypop: {
        "Global Efficiency": (family, "global_efficiency"),
        "Parallel Efficiency": (family, "parallel_efficiency"),
        load_balance: (family, "load_balance"),
        "MPI Communication Efficiency": (family, "communication_efficiency"),
        "MPI Transfer Efficiency": (family, "transfer_efficiency"),
        "MPI Serialisation Efficiency": (family, "serialisation_efficiency"),
    }
    for pypop, family, load_balance in (
        ("MPI_Multiplicative_Metrics", "mpi", "MPI Load balance"),
        ("MPI_Metrics", "mpi-additive", "MPI Load Balance"),
    )
}

DESCRIPTIVE = {
    "Number of Processes",
    "Threads per Process",
    "Total Threads",
    "Hybrid Layout",
    "Tag",
    "Runtime",
}
NOT_OFFERED = {
    ("MPI_OpenMP_Multiplicative_Metrics", "OpenMP Region Efficiency"),
    ("MPI_OpenMP_Multiplicative_Metrics", "Serial Region Efficiency"),
}


def from_statistics(statistics: dict[str, dict[str, float | None]]) -> Observables:
    """Observables in seconds from PyPOP's table of nanoseconds by "process.thread"."""
    names = sorted(statistics["Total Runtime"], key=lambda name: tuple(map(int, name.split("."))))
    masters = [name for name in names if name.endswith(".1")]

    def column(title: str, of: list[str], unit: float = 1e-9) -> np.ndarray[Any, Any]:
        return np.array([statistics[title][name] for name in of], dtype=float) * unit

    ideal = statistics["Ideal Runtime"]["1.1"]
    return Observables(
        runtime=float(column("Total Runtime", names).max()),
        threads=np.array([sum(n.split(".")[0] == m.split(".")[0] for n in names) for m in masters]),
        node=np.zeros(len(masters), dtype=np.int32),
        useful=column("Total Useful Computation", names),
        omp_useful=column("OpenMP Useful Computation", names),
        in_mpi=np.zeros(len(names)),
        serial_useful=column("Serial Useful Computation", masters),
        in_openmp=column("OpenMP Total Runtime", masters),
        serial_mpi=np.zeros(len(masters)),
        has_mpi=ideal is not None,
        has_openmp=bool(column("OpenMP Total Runtime", masters).any()),
        ideal_runtime=None if ideal is None else ideal * 1e-9,
        instructions=column("Useful Instructions", names, 1.0),
        cycles=column("Useful Cycles", names, 1.0),
    )


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    return json.loads((DATA / "pypop.json").read_text())


def compare(reference: dict[str, Any], application: str) -> tuple[dict[str, Observables], Scaling]:
    tables = reference[application]["per_thread_statistics"]
    runs = {key: from_statistics(table) for key, table in tables.items()}
    scaling = scale([Comparable(key, run.aggregates(), run.absent) for key, run in runs.items()])
    return runs, scaling


def relative_to(base: dict[str, Any], table: dict[str, Any]) -> dict[str, Any]:
    """A table whose scaling metrics are against the run of the table `base`."""
    result = dict(table)
    for name in SCALING:
        # global efficiency is parallel efficiency times computation scaling
        is_global = name == "Global Efficiency"
        over = next(n for n in base if n.startswith("Computation")) if is_global else name
        if table.get(name) is not None:
            result[name] = table[name] / base[over]
    return result


@pytest.mark.parametrize(("application", "key"), CASES)
def test_every_number_of_pypop(reference: dict[str, Any], application: str, key: str) -> None:
    runs, scaling = compare(reference, application)
    index = list(runs).index(key)
    run = runs[key]
    aggregates = run.aggregates() | scaling.aggregates(index)
    computed = {"scaling": scaling.evaluations[index]}
    for id, family in load_families().items():
        if id != "scaling":
            computed[id] = family.evaluate(aggregates, run.absent)
    compared = 0
    for pypop, tables in reference[application]["metrics"].items():
        table = tables[key]
        assert aggregates["runtime"] == pytest.approx(table["Runtime"] * 1e-9, rel=1e-12)
        mapping = {name: ("scaling", id) for name, id in SCALING.items()} | HYBRID[pypop]
        if run.threads.max() == 1:
            mapping |= PURE_MPI.get(pypop, {})
        base = tables[list(runs)[scaling.reference]]
        for name, expected in relative_to(base, table).items():
            if name in DESCRIPTIVE or (pypop, name) in NOT_OFFERED:
                continue
            family_id, metric = mapping[name]  # a number without a counterpart is a KeyError
            evaluation = computed[family_id]
            if expected is None:
                assert metric in evaluation.absent, (pypop, name)
            else:
                assert evaluation.values[metric] == pytest.approx(expected, rel=1e-9), (pypop, name)
            compared += 1
    assert compared > 20


def test_scaling_of_epoch_is_strong_against_one_process(reference: dict[str, Any]) -> None:
    _, scaling = compare(reference, "epoch")
    assert (scaling.mode, scaling.reference) == ("strong", 0)
    assert "in 2 of 2 runs" in scaling.why


def test_without_mpi_transfer_says_so(reference: dict[str, Any]) -> None:
    runs, _ = compare(reference, "imagemagick")
    run = runs["8"]
    evaluation = load_families()["hybrid-additive"].evaluate(run.aggregates(), run.absent)
    assert evaluation.absent["process_transfer_efficiency"] == "no MPI calls"
    assert evaluation.absent["process_serialisation_efficiency"] == "no MPI calls"


def test_counters_that_stayed_zero_say_so(reference: dict[str, Any]) -> None:
    _, scaling = compare(reference, "bt-mz.S.2x2")
    assert scaling.evaluations[0].absent["instruction_scaling"] == (
        "the hardware counter of instructions is zero on all threads"
    )


def test_mpi_family_on_a_hybrid_run_is_about_master_threads(reference: dict[str, Any]) -> None:
    runs, _ = compare(reference, "bt-mz.S.2x2")
    run = runs["2"]
    evaluation = load_families()["mpi"].evaluate(run.aggregates(), run.absent)
    assert "master thread" in evaluation.notes[0]
    masters = np.array([403837112.0, 451907903.0])
    assert evaluation.values["parallel_efficiency"] == pytest.approx(
        masters.mean() / 521008097.0, rel=1e-12
    )
