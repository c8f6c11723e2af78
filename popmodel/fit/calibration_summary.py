"""What is said of a calibration: what was learnt, what could not be, and what to measure next."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from popmodel.base.plain import fields_of
from popmodel.base.units import plural
from popmodel.fit.calibrate import Calibrated, Learnt
from popmodel.fit.cross_validation import LeftOut, NextRun
from popmodel.fit.problem import RUNTIME
from popmodel.fit.samples import Interval
from popmodel.fit.usable_runs import FittedSignature
from popmodel.machines.quantity import END
from popmodel.model.model_error import RESIDUALS
from popmodel.model.symbols import label

LeftOutRun = Mapping[str, Any]


def summary(
    fitted: FittedSignature, values: Sequence[Learnt], subject: Mapping[str, Any]
) -> dict[str, Any]:
    """All that is said of a calibration; `subject` is the application and the machine."""
    found = fitted.calibrated
    left_out = left_out_of(found)
    result = {
        **subject,
        "warnings": list(fitted.warnings),
        "accuracy": accuracy_of(left_out),
        "accuracy_of_sizes": sizes_of(found),
        "constants": constants_of(found, values),
        "inputs": inputs_of(found, values),
        "identifiable": identifiable_of(found),
        "suspect_runs": suspects_of(found),
        "terms": terms_of(found, values),
        "noise": found.fit.noise,
        "error_scale": found.error_scale,
        "left_out": left_out,
        "targets": [{"processes": one[0], "threads": one[1]} for one in fitted.targets],
        "measure_next": next_of(fitted.measure_next),
        "runs": len(found.runs),
    }
    return {"verdict": verdict(result), **result}


def left_out_of(found: Calibrated) -> list[dict[str, Any]]:
    """Every configuration as the others foretell it, beside what was measured and known before."""
    return _each(found, found.left_out)


def sizes_of(found: Calibrated) -> dict[str, Any] | None:
    """How far off predictions of problem sizes are that were left out; None if there is one."""
    each = _each(found, found.sizes_left_out)
    if not each:
        return None
    sizes = {tuple(one["parameters"].items()) for one in each}
    varied = [name for name in each[0]["parameters"] if len({dict(s)[name] for s in sizes}) > 1]
    return {"sizes": len(sizes), "parameters": varied, **accuracy_of(each)}


def _each(found: Calibrated, some: Sequence[LeftOut]) -> list[dict[str, Any]]:
    if not some:
        return []
    problem = found.fit.problem
    nothing = np.zeros((1, len(problem.names)))
    before = [float(one[RUNTIME][0]) for one in problem.modelled(nothing)]
    return [_left_out(found, one, before[one.configuration]) for one in some]


def _left_out(found: Calibrated, one: LeftOut, before: float) -> dict[str, Any]:
    configuration = found.fit.problem.configurations[one.configuration]
    middle = median(one.measured)
    reach = math.exp(END * one.deviation)
    low, high = one.value / reach, one.value * reach
    return {
        "processes": configuration.placement.processes,
        "threads": configuration.placement.threads,
        "parameters": configuration.study.values,
        "measured": list(one.measured),
        "value": one.value,
        "low": low,
        "high": high,
        "error": one.value / middle - 1,
        "covered": sum(low <= each <= high for each in one.measured),
        "before": before,
        "error_before": before / middle - 1,
    }


def accuracy_of(left_out: Sequence[LeftOutRun]) -> dict[str, Any]:
    """How far off predictions of configurations are that were left out."""
    return {
        "configurations": len(left_out),
        "median_error_before": median(abs(one["error_before"]) for one in left_out),
        "median_error": median(abs(one["error"]) for one in left_out),
        "largest_error": max(abs(one["error"]) for one in left_out),
        "runs": sum(len(one["measured"]) for one in left_out),
        "covered": sum(one["covered"] for one in left_out),
    }


def constants_of(found: Calibrated, values: Sequence[Learnt]) -> dict[str, dict[str, Any]]:
    """Constants and parameters of the signature that the runs depend on, before and after.

    Those of which the runs do not tell enough have no value.
    """
    learnt = {one.name: one for one in values}
    told = {one.name: one for one in found.inputs}
    found_ones = {}
    for table in ("params", "constants", "imbalance"):
        given = getattr(found.before, table)
        for key, fitted in getattr(found.fit.problem.signature, table).items():
            before = given.get(key, fitted)
            name = f"{table}.{key}"
            if name not in told:
                continue
            shown = name if table == "imbalance" else key
            entry: dict[str, Any] = {"value": None, "low": None, "high": None}
            is_known = told[name].is_identifiable and name in learnt
            if is_known:
                entry = fields_of(learnt[name].after, "value", "low", "high")
            entry["origin"] = "fit" if is_known else before.origin
            if not is_known:
                entry["why"] = "the runs do not tell it"
            entry["before"] = fields_of(before, "value", "low", "high")
            if math.isnan(before.value):  # "?"
                entry["before"]["value"] = None
            entry["unit"] = found.before.units.get(key)
            entry["learnt"] = told[name].learnt
            found_ones[shown] = entry
    return found_ones


def inputs_of(found: Calibrated, values: Sequence[Learnt]) -> list[dict[str, Any]]:
    """Quantities of the machine, laws and terms of which the runs taught something."""
    narrowed = {one.name: one.learnt for one in found.inputs}
    return [
        {
            **fields_of(one, "name", "label", "kind", "unit"),
            "learnt": narrowed.get(one.name),
            "before": _value(one.before),
            "after": _value(one.after),
        }
        for one in values
        if one.kind != "program"
    ]


def _value(one: Interval) -> dict[str, float]:
    return one._asdict()


def identifiable_of(found: Calibrated) -> dict[str, Any]:
    """What the runs tell of the inputs, and what they cannot."""
    return {
        "inputs": [
            {
                "name": one.name,
                "label": label(one.name),
                "learnt": one.learnt,
                "identifiable": one.is_identifiable,
                "at_bound": one.at_bound,
            }
            for one in found.inputs
        ]
    }


def terms_of(found: Calibrated, values: Sequence[Learnt]) -> list[dict[str, Any]]:
    """Times that the signature may lack."""
    known = {one.name: one for one in values}
    return [
        {
            "name": one.name,
            "meaning": RESIDUALS[one.name].meaning,
            "unit": RESIDUALS[one.name].unit,
            "amplitude": _value(known[one.name].after) if one.name in known else None,
            "taken": one.is_taken,
            "gain": one.gain,
        }
        for one in found.terms
    ]


def suspects_of(found: Calibrated) -> list[dict[str, Any]]:
    """Runs that do not fit the others."""
    suspects = []
    for one in found.outliers:
        run = found.runs[one.run]
        suspects.append(
            {
                **fields_of(run, "source", "line", "processes", "threads", "parameters", "runtime"),
                "factor": one.factor,
                "probability": one.probability,
            }
        )
    return suspects


def next_of(runs: Sequence[NextRun]) -> list[dict[str, Any]]:
    """Runs that are worth measuring, and what they cost."""
    return [
        {
            **fields_of(one, "processes", "threads", "nodes", "parameters", "narrows", "runtime"),
            "core_seconds": one.core_seconds,
        }
        for one in runs
    ]


_WRONG = 1.5
"""By how much errors may exceed what is announced of them before nothing is to be trusted."""
_NOISY = 0.05
_SHORTER = 0.8  # of what the others say: nothing that disturbs a run makes it shorter


def _miss(one: LeftOutRun) -> float:
    """By how much of its interval a configuration misses what the others say of it."""
    reach = math.log(one["high"] / one["value"])
    return abs(math.log(median(one["measured"]) / one["value"])) / reach


def verdict(document: Mapping[str, Any]) -> list[str]:
    """The result in a few sentences, what matters most first."""
    accuracy = document["accuracy"]
    configurations = plural(accuracy["configurations"], "configuration")
    before, after = (100 * accuracy[f"median_error{when}"] for when in ("_before", ""))
    told = [
        f"{configurations}, each predicted from the others: median error {after:.1f} % "
        f"(uncalibrated {before:.1f} %), {accuracy['covered']} of "
        f"{plural(accuracy['runs'], 'run')} inside the 90 % interval"
    ]
    constants = document["constants"]
    learnt = [name for name, one in constants.items() if one["value"] is not None]
    name = document["application"]["name"]
    if (scale := document["error_scale"]) > _WRONG:
        worst = max(document["left_out"], key=_miss)
        told.insert(
            0,
            f"not to be trusted yet: runs miss what the others say of them by {scale:.1f} times "
            f"what is announced, {worst['processes']} x {worst['threads']} most, and intervals are "
            f"wider by that: are all of {name}, with their parameters and units, and undisturbed?",
        )
    if (noise := document["noise"]) > _NOISY:
        told.append(
            f"runs of one configuration vary by {100 * noise:.0f} %, which no prediction is better "
            "than: repeat them on a quiet machine"
        )
    if sizes := document["accuracy_of_sizes"]:
        told.append(
            f"{sizes['sizes']} sizes ({', '.join(sizes['parameters'])}), each predicted from the "
            f"others: median error {100 * sizes['median_error']:.1f} %, {sizes['covered']} of "
            f"{plural(sizes['runs'], 'run')} inside the 90 % interval"
        )
    if learnt:
        told.append(f"learnt: {', '.join(learnt)}")
    elif not constants:
        told.append(
            f"{name} has no constant with an interval that the runs "
            "depend on: they teach of the machine and of the laws only"
        )
    open_ = [name for name, one in constants.items() if one["value"] is None]
    if open_:
        told.append(f"not told by these runs: {', '.join(open_)}")
    outside = [one["name"] for one in document["identifiable"]["inputs"] if one["at_bound"]]
    if outside:
        told.append(f"far outside the interval stated before: {', '.join(outside)}")
    for run in document["suspect_runs"]:
        place = run["source"] if run["line"] is None else f"{run['source']}:{run['line']}"
        why = f"disturbed with probability {100 * run['probability']:.0f} %, it hardly counts"
        if run["factor"] < _SHORTER:
            why = f"nothing that disturbs a run makes it shorter: is it of {name}, with its size?"
        told.append(
            f"suspect: {place} took {run['factor']:.2f} times what the other runs say; {why}"
        )
    return told
