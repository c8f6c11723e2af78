"""The document of a projection, ``popmodel/project/1``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from popmodel.base.plain import document
from popmodel.base.units import plural
from popmodel.fit.efficiency_laws import TESTED

if TYPE_CHECKING:
    from popmodel.api.measured import MeasuredRuns
    from popmodel.efficiency.family import FamilyEvaluation
    from popmodel.efficiency.scaling import Scaling
    from popmodel.fit.efficiency_laws import FittedFactor
    from popmodel.fit.projection import ProjectedLine, ProjectedRow, Projection

CONFIDENCE = 0.9
"""Of the intervals."""


def described(
    measured: MeasuredRuns,
    evaluations: Sequence[Mapping[str, FamilyEvaluation]],
    scaling: Scaling,
    projection: Projection,
    law: str,
) -> dict[str, Any]:
    """Put a projection into a document."""
    projected = dict.fromkeys(row.family for row in projection.rows if row.family)
    speedup = {
        (row.processes, row.threads): row.value
        for row in projection.rows
        if row.metric == "speedup"
    }
    runtime = {
        (row.processes, row.threads): row.value
        for row in projection.rows
        if row.metric == "runtime"
    }
    return document(
        "popmodel/project/1",
        law=law,
        confidence=CONFIDENCE,
        runs=[
            {
                "source": run.place,
                "processes": run.processes,
                "threads": run.threads,
                "runtime": run.runtime,
                "metrics": {name: families[name].values for name in projected},
                "caveats": run.caveats,
            }
            for run, families in zip(measured.runs, evaluations, strict=True)
        ],
        scaling={
            "mode": scaling.mode,
            "reference": measured.runs[scaling.reference].place,
            "why": scaling.why,
            "notes": scaling.doubts,
        },
        lines=[
            {
                "axis": line.axis,
                "fixed": line.fixed,
                "runs": [number + 1 for number in line.runs],
                "measured": line.places,
                "reach": {"low": line.reach[0], "high": line.reach[1]},
                "laws": [_law(one) for one in line.fitted],
                "curves": _curves(line, curve),
            }
            for line, curve in zip(projection.lines, projection.curves(), strict=True)
        ],
        rows=projection.rows,
        baselines=[
            {
                "processes": processes,
                "threads": threads,
                "name": name,
                "runtime": value,
                "speedup": _speedup(value, speedup, runtime, (processes, threads)),
            }
            for processes, threads, found in projection.baselines
            for name, value in found.items()
        ],
        warnings=[*measured.warnings, *_warnings(projection)],
    )


def _speedup(
    value: float,
    speedup: dict[tuple[int, int], float | None],
    runtime: dict[tuple[int, int], float | None],
    target: tuple[int, int],
) -> float | None:
    """Speed-up of a baseline, in proportion to that of the projection."""
    mine, took = speedup.get(target), runtime.get(target)
    return None if mine is None or took is None else mine * took / value


def _law(one: FittedFactor) -> dict[str, Any]:
    return {
        "factor": one.factor.id,
        "name": one.factor.name,
        "law": one.law,
        "form": one.form,
        "constants": one.constants,
        "origin": one.origin,
        "points": one.points,
        "tried": one.tried,
    }


def _curves(line: ProjectedLine, rows: Sequence[ProjectedRow]) -> list[dict[str, Any]]:
    """By metric: the values along a line."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        curve = found.setdefault(
            (row.family, row.metric),
            {"family": row.family, "metric": row.metric, "at": [], "value": [], "low": [],
             "high": []},
        )  # fmt: skip
        curve["at"].append(row.processes if line.axis == "processes" else row.threads)
        for key in ("value", "low", "high"):
            curve[key].append(getattr(row, key))
    return list(found.values())


def _warnings(projection: Projection) -> list[str]:
    """What the projection rests on that was not measured."""
    told = []
    for line in projection.lines:
        one, what = "process", "processes"
        if line.axis == "threads":
            one, what = ("thread per process", "threads per process")
        if len(line.places) == 1:
            told.append(
                f"all runs used here have {plural(line.places[0], one, what)}: how factors change "
                "with them is assumed, not measured"
            )
        elif len(line.places) < TESTED:
            told.append(
                f"runs with {len(line.places)} different numbers of {what} cannot tell laws apart: "
                "structural laws are assumed, intervals allow for the others"
            )
        if [one.factor.id for one in line.fitted] == ["runtime"]:
            told.append(
                "the efficiencies of some runs are not known: only the runtime is projected"
            )
    return told
