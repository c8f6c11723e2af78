"""The plain data of measured runs, ``popmodel/metrics/1``: what is stored and what is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from popmodel.metrics.family import Evaluation
    from popmodel.metrics.measure import Run
    from popmodel.metrics.observables import OutsideMPI
    from popmodel.metrics.scaling import Scaling

SCALING = "scaling"
ABOUT_MPI = ("mpi", "mpi-additive")
"""Families whose advice would mislead where there is no MPI: all loss reads as communication."""


def document(
    runs: Sequence[Run],
    evaluations: Sequence[Mapping[str, Evaluation]],
    scaling: Scaling,
    warnings: Sequence[Sequence[Mapping[str, Any]]],
    outside_mpi: OutsideMPI = "everywhere",
) -> dict[str, Any]:
    """Put measured runs into a document.

    Parameters
    ----------
    runs : sequence of popmodel.metrics.measure.Run
        The runs.
    evaluations : sequence of mapping of str to Evaluation
        For each run its families by id.
    scaling : Scaling
        The runs against their reference run.
    warnings : sequence of sequence of mapping
        For each run what is wrong with its trace: ``{"text", "count", "line"}``.
    outside_mpi : {"everywhere", "not-in-mpi"}
        What the evaluations take for time outside MPI.
    """
    return {
        "schema": "popmodel/metrics/1",
        "runs": [
            {
                **_run(run, families, told, compared=index != scaling.reference),
                "outside_mpi": outside_mpi,
            }
            for index, (run, families, told) in enumerate(
                zip(runs, evaluations, warnings, strict=True)
            )
        ],
        "scaling": {
            "mode": scaling.mode,
            "reference": runs[scaling.reference].trace,
            "why": scaling.why,
        },
    }


def _run(
    run: Run,
    families: Mapping[str, Evaluation],
    warnings: Sequence[Mapping[str, Any]],
    *,
    compared: bool,
) -> dict[str, Any]:
    observables = run.observables
    team = {int(number) for number in observables.threads}
    lowest = {
        name: (evaluation.family.lowest_leaf(evaluation), evaluation)
        for name, evaluation in families.items()
        if (compared or name != SCALING) and (observables.has_mpi or name not in ABOUT_MPI)
    }
    return {
        "trace": run.trace,
        "processes": len(observables.threads),
        # One number where all processes have the same number of threads, else one for each.
        "threads": team.pop() if len(team) == 1 else observables.threads.tolist(),
        "runtime": float(observables.runtime),
        "ideal_runtime": observables.ideal_runtime,
        "observables": observables.to_dict(),
        "metrics": {name: dict(evaluation.values) for name, evaluation in families.items()},
        "absent": {name: dict(evaluation.absent) for name, evaluation in families.items()},
        "lowest": {
            name: {
                "metric": leaf.id,
                "value": evaluation.values[leaf.id],
                "advice": leaf.advice,
            }
            for name, (leaf, evaluation) in lowest.items()
            # A computation that takes less time than in the reference run needs no advice.
            if leaf is not None and (name != SCALING or evaluation.values[leaf.id] < 1)
        },
        "notes": list(run.notes),
        "family_notes": {
            name: list(evaluation.notes)
            for name, evaluation in families.items()
            if evaluation.notes
        },
        "warnings": [dict(warning) for warning in warnings],
    }
