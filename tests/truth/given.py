"""Truths as files that the package reads."""

from __future__ import annotations

import json
from pathlib import Path

from truth.measured import TruthRun
from truth.truths import Truth


def write(one: Truth, folder: Path) -> tuple[Path, Path]:
    """Write signature and machine profile; return the files."""
    signature, profile = folder / f"{one.name}.toml", folder / f"{one.name}.json"
    signature.write_text(one.signature)
    profile.write_text(json.dumps(one.profile))
    return signature, profile


def row(run: TruthRun, metrics: bool = False) -> dict[str, float]:
    """Return a run as a row of a table, or as an object of a JSON table."""
    values = {
        "processes": run.processes,
        "threads": run.threads,
        **run.parameters,
        "runtime": run.aggregates["runtime"],
    }
    return {**values, **(run.metrics["hybrid-additive"] if metrics else {})}


def observables(run: TruthRun) -> dict[str, object]:
    """Return a run as the arguments of `popmodel.efficiency.observables.Observables`."""
    in_mpi = run.useful * 0
    in_mpi[:, 0] = run.in_mpi
    many = run.processes > 1
    return {
        "runtime": run.runtime,
        "threads": [run.threads] * run.processes,
        "node": run.node,
        "useful": run.useful.ravel(),
        "omp_useful": run.omp_useful.ravel(),
        "in_mpi": in_mpi.ravel(),
        "serial_useful": run.serial_useful,
        "in_openmp": run.in_openmp,
        "serial_mpi": run.in_mpi,
        "has_mpi": many,
        "has_openmp": True,
        "ideal_runtime": run.ideal_runtime if many else None,
        "openmp_imbalance": run.imbalance,
    }
