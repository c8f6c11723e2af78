"""What is said of a calibration: what was learnt, what could not be, and what to measure next."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from popmodel.base.units import plural
from popmodel.base.values import fields_of
from popmodel.fit.calibrate import PROGRAM, Calibrated, Learnt
from popmodel.fit.cross_validation import LeftOut
from popmodel.fit.problem import RUNTIME
from popmodel.fit.usable_runs import FittedSignature
from popmodel.machines.quantity import END
from popmodel.model.model_error import RESIDUALS

LeftOutRun = Mapping[str, Any]


class FitSummary(NamedTuple):
    """What documents hold of a calibration."""

    verdict: list[str]  # In a few sentences, what matters most first
    values: list[dict[str, Any]]  # Constants and parameters, before and after
    facts: dict[str, Any]


def summary(
    fitted: FittedSignature, learnt: Sequence[Learnt], subject: Mapping[str, Any]
) -> FitSummary:
    """All that is said of a calibration; `subject` is the application and the machine."""
    calibrated = fitted.calibrated
    left_out = _left_out(calibrated, calibrated.left_out)
    facts = {
        **subject,
        "accuracy": _accuracy(left_out),
        "accuracy_of_sizes": _accuracy_of_sizes(calibrated),
        "inputs": _inputs(calibrated, learnt),
        "suspect_runs": _suspect_runs(calibrated),
        "terms": _terms(calibrated, learnt),
        "noise": calibrated.fit.noise,
        "error_scale": calibrated.error_scale,
        "left_out": left_out,
        "targets": [{"processes": p, "threads": t} for p, t in fitted.targets],
        "measure_next": [
            fields_of(run, "processes", "threads", "nodes", "parameters", "narrows", "runtime")
            | {"core_seconds": run.core_seconds}
            for run in fitted.measure_next
        ],
        "runs": len(calibrated.runs),
    }
    values = _values(calibrated, learnt)
    outside = [one.name for one in calibrated.inputs if one.at_bound]
    return FitSummary(verdict(facts, values, outside), values, facts)


def _left_out(calibrated: Calibrated, left_out: Sequence[LeftOut]) -> list[dict[str, Any]]:
    """Configurations as others foretell them, beside what was measured and known before."""
    if not left_out:
        return []
    problem = calibrated.fit.problem
    nothing = np.zeros((1, len(problem.names)))
    before = [float(one[RUNTIME][0]) for one in problem.modelled(nothing)]
    rows = []
    for row in left_out:
        configuration = problem.configurations[row.configuration]
        middle, reach = median(row.measured), math.exp(END * row.deviation)
        low, high, own = row.value / reach, row.value * reach, before[row.configuration]
        rows.append(
            {
                "processes": configuration.placement.processes,
                "threads": configuration.placement.threads,
                "parameters": configuration.study.values,
                "measured": list(row.measured),
                "value": row.value,
                "low": low,
                "high": high,
                "error": row.value / middle - 1,
                "covered": sum(low <= runtime <= high for runtime in row.measured),
                "before": own,
                "error_before": own / middle - 1,
            }
        )
    return rows


def _accuracy(left_out: Sequence[LeftOutRun]) -> dict[str, Any]:
    """How far off predictions of configurations are that were left out."""
    return {
        "configurations": len(left_out),
        "median_error_before": median(abs(row["error_before"]) for row in left_out),
        "median_error": median(abs(row["error"]) for row in left_out),
        "largest_error": max(abs(row["error"]) for row in left_out),
        "runs": sum(len(row["measured"]) for row in left_out),
        "covered": sum(row["covered"] for row in left_out),
    }


def _accuracy_of_sizes(calibrated: Calibrated) -> dict[str, Any] | None:
    """How far off predictions of problem sizes are that were left out; None if there is one."""
    rows = _left_out(calibrated, calibrated.sizes_left_out)
    if not rows:
        return None
    sizes = {tuple(row["parameters"].items()) for row in rows}
    varied = [name for name in rows[0]["parameters"] if len({dict(s)[name] for s in sizes}) > 1]
    return {"sizes": len(sizes), "parameters": varied, **_accuracy(rows)}


def _values(calibrated: Calibrated, learnt: Sequence[Learnt]) -> list[dict[str, Any]]:
    """Constants and parameters of the signature that the runs depend on, before and after.

    Those of which the runs do not tell enough have no value.
    """
    taught = {one.name: one.after for one in learnt}
    told = {one.name: one for one in calibrated.inputs}
    values = []
    for table in PROGRAM:
        given = getattr(calibrated.before, table)
        for key, quantity in getattr(calibrated.fit.problem.signature, table).items():
            full = f"{table}.{key}"
            if full not in told:
                continue
            before = given.get(key, quantity)
            value: dict[str, Any] = {"name": full if table == "imbalance" else key}
            if told[full].is_identifiable and full in taught:
                value |= {**fields_of(taught[full], *_ENDS), "origin": "fit"}
            else:
                value |= {**dict.fromkeys(_ENDS), "origin": before.origin}
                value["why"] = "the runs do not tell it"
            value |= {"unit": calibrated.before.units.get(key), "learnt": told[full].learnt}
            value["before"] = fields_of(before, *_ENDS)
            if math.isnan(before.value):  # "?"
                value["before"]["value"] = None
            values.append(value)
    return values


_ENDS = ("value", "low", "high")


def _inputs(calibrated: Calibrated, learnt: Sequence[Learnt]) -> list[dict[str, Any]]:
    """Quantities of the machine, laws and terms of which the runs taught something."""
    narrowed = {one.name: one.learnt for one in calibrated.inputs}
    return [
        {
            **fields_of(one, "name", "label", "kind", "unit"),
            "learnt": narrowed.get(one.name),
            "before": one.before._asdict(),
            "after": one.after._asdict(),
        }
        for one in learnt
        if one.kind != "program"
    ]


def _terms(calibrated: Calibrated, learnt: Sequence[Learnt]) -> list[dict[str, Any]]:
    """Times that the signature may lack."""
    known = {one.name: one.after._asdict() for one in learnt}
    return [
        {
            "name": term.name,
            "meaning": RESIDUALS[term.name].meaning,
            "unit": RESIDUALS[term.name].unit,
            "amplitude": known.get(term.name),
            "taken": term.is_taken,
            "gain": term.gain,
        }
        for term in calibrated.terms
    ]


def _suspect_runs(calibrated: Calibrated) -> list[dict[str, Any]]:
    """Runs that do not fit the others."""
    keys = ("source", "line", "processes", "threads", "parameters", "runtime")
    return [
        fields_of(calibrated.runs[outlier.run], *keys)
        | {"factor": outlier.factor, "probability": outlier.probability}
        for outlier in calibrated.outliers
    ]


_WRONG = 1.5
"""By how much errors may exceed what is announced of them before nothing is to be trusted."""
_NOISY = 0.05
_SHORTER = 0.8  # of what the others say: nothing that disturbs a run makes it shorter


def _miss(one: LeftOutRun) -> float:
    """By how much of its interval a configuration misses what the others say of it."""
    reach = math.log(one["high"] / one["value"])
    return abs(math.log(median(one["measured"]) / one["value"])) / reach


def verdict(
    facts: Mapping[str, Any], values: Sequence[Mapping[str, Any]], outside: Sequence[str] = ()
) -> list[str]:
    """The result in a few sentences, what matters most first.

    `outside` are inputs that lie far outside of the interval that they had.
    """
    accuracy = facts["accuracy"]
    configurations = plural(accuracy["configurations"], "configuration")
    before, after = (100 * accuracy[f"median_error{when}"] for when in ("_before", ""))
    told = [
        f"{configurations}, each predicted from the others: median error {after:.1f} % "
        f"(uncalibrated {before:.1f} %), {accuracy['covered']} of "
        f"{plural(accuracy['runs'], 'run')} inside the 90 % interval"
    ]
    learnt = [one["name"] for one in values if one["value"] is not None]
    unknown = [one["name"] for one in values if one["value"] is None]
    name = facts["application"]["name"]
    if (scale := facts["error_scale"]) > _WRONG:
        worst = max(facts["left_out"], key=_miss)
        told.insert(
            0,
            f"not to be trusted yet: runs miss what the others say of them by {scale:.1f} times "
            f"what is announced, {worst['processes']} x {worst['threads']} most, and intervals are "
            f"wider by that: are all of {name}, with their parameters and units, and undisturbed?",
        )
    if (noise := facts["noise"]) > _NOISY:
        told.append(
            f"runs of one configuration vary by {100 * noise:.0f} %, which no prediction is better "
            "than: repeat them on a quiet machine"
        )
    if sizes := facts["accuracy_of_sizes"]:
        told.append(
            f"{sizes['sizes']} sizes ({', '.join(sizes['parameters'])}), each predicted from the "
            f"others: median error {100 * sizes['median_error']:.1f} %, {sizes['covered']} of "
            f"{plural(sizes['runs'], 'run')} inside the 90 % interval"
        )
    if learnt:
        told.append(f"learnt: {', '.join(learnt)}")
    elif not values:
        told.append(
            f"{name} has no constant with an interval that the runs "
            "depend on: they teach of the machine and of the laws only"
        )
    if unknown:
        told.append(f"not told by these runs: {', '.join(unknown)}")
    if outside:
        told.append(f"far outside the interval stated before: {', '.join(outside)}")
    for run in facts["suspect_runs"]:
        place = run["source"] if run["line"] is None else f"{run['source']}:{run['line']}"
        why = f"disturbed with probability {100 * run['probability']:.0f} %, it hardly counts"
        if run["factor"] < _SHORTER:
            why = f"nothing that disturbs a run makes it shorter: is it of {name}, with its size?"
        told.append(
            f"suspect: {place} took {run['factor']:.2f} times what the other runs say; {why}"
        )
    return told
