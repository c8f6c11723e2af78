"""The document of measured runs, ``popmodel/metrics/1``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from popmodel.base.plain import document
from popmodel.efficiency.advice import advice_data, advise
from popmodel.efficiency.scaling import SCALING
from popmodel.reports.figures import loses
from popmodel.reports.names import run_names

if TYPE_CHECKING:
    from popmodel.api.breakdown import RuntimeBreakdown
    from popmodel.efficiency.family import FamilyEvaluation
    from popmodel.efficiency.measure import MeasuredRun
    from popmodel.efficiency.observables import OutsideMPI
    from popmodel.efficiency.scaling import Scaling

ABOUT_MPI = ("mpi", "mpi-additive")
"""Families whose advice would mislead where there is no MPI: all loss reads as communication."""


def measured(
    runs: Sequence[MeasuredRun],
    evaluations: Sequence[Mapping[str, FamilyEvaluation]],
    scaling: Scaling,
    warnings: Sequence[Sequence[Mapping[str, Any]]],
    outside_mpi: OutsideMPI = "everywhere",
    breakdowns: Sequence[RuntimeBreakdown] = (),
) -> dict[str, Any]:
    """Put measured runs into a document."""
    names = run_names([run.trace for run in runs])
    entries = [
        {
            **_run(run, families, compared=index != scaling.reference),
            "warnings": told,
            "outside_mpi": outside_mpi,
        }
        for index, (run, families, told) in enumerate(zip(runs, evaluations, warnings, strict=True))
    ]
    for entry, run, families, parts in zip(entries, runs, evaluations, breakdowns, strict=False):
        entry |= parts.facts(families, run.caveats)
    return document(
        "popmodel/metrics/1",
        runs=entries,
        scaling={
            "mode": scaling.mode,
            "reference": runs[scaling.reference].trace,
            "why": scaling.why,
            "notes": scaling.doubts,
        },
        advice=advice_data(advise(runs, evaluations, scaling, names), names),
    )


def _run(
    run: MeasuredRun, families: Mapping[str, FamilyEvaluation], *, compared: bool
) -> dict[str, Any]:
    observables = run.observables
    team = {int(number) for number in observables.threads}
    # A replay of a run that has nothing to replay gives a number, but no ideal runtime.
    ideal = None if "ideal_runtime" in observables.absent else observables.ideal_runtime
    lowest = {
        name: _lowest(evaluation)
        for name, evaluation in families.items()
        if (compared or name != SCALING) and (observables.has_mpi or name not in ABOUT_MPI)
    }
    return {
        "trace": run.trace,
        "processes": len(observables.threads),
        # One number where all processes have the same number of threads, else one for each.
        "threads": team.pop() if len(team) == 1 else observables.threads,
        "caveats": run.caveats,
        "window": run.window,
        "disturbed": run.evidence.disturbed,
        "waited": run.evidence.waited,
        "runtime": float(observables.runtime),
        "ideal_runtime": ideal,
        "observables": {**observables.to_dict(), "ideal_runtime": ideal},
        "metrics": {name: evaluation.values for name, evaluation in families.items()},
        "absent": {name: evaluation.absent for name, evaluation in families.items()},
        "lowest": {name: found for name, found in lowest.items() if found is not None},
        "call_sites": run.call_sites,
        "notes": run.notes,
        "family_notes": {
            name: evaluation.notes for name, evaluation in families.items() if evaluation.notes
        },
    }


def _lowest(evaluation: FamilyEvaluation) -> dict[str, Any] | None:
    """The metric that costs most and what to do about it; None where nothing is lost."""
    family = evaluation.family
    leaf = family.lowest_leaf(evaluation)
    if leaf is None or not loses(evaluation.values[leaf.id]):
        return None
    # What is advised for a metric with parts leads to them; here they have no values.
    reasons = dict.fromkeys(evaluation.absent[part] for part in family.parts(leaf.id))
    why = f"Its parts are unknown: {'; '.join(reasons)}."
    return {
        "metric": leaf.id,
        "value": evaluation.values[leaf.id],
        "advice": why if reasons else leaf.advice,
    }
