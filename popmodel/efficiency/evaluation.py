"""How the metrics of a family are computed from the aggregates of runs, and checked."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from popmodel.efficiency.aggregates import AGGREGATES, REASONS
from popmodel.efficiency.family import (
    Family,
    FamilyEvaluation,
    IdentityError,
    Metric,
    SampledEvaluation,
    label,
)
from popmodel.errors import PopmodelError
from popmodel.expressions import ExpressionError
from popmodel.expressions.elementary import Value, numbers

TOLERANCE = 1e-9
"""Relative difference up to which the two sides of an identity, or a bound, count as equal."""


def evaluate(
    family: Family, aggregates: Mapping[str, float], absent: Mapping[str, str]
) -> FamilyEvaluation:
    """Compute all metrics of one run: `Family.evaluate`."""
    computed, reasons = _compute(family, aggregates, absent)
    values = {name: float(value) for name, value in computed.items()}
    known = {**aggregates, **values}
    notes = (*_due_notes(family, known), *_contradictions(family, values, known))
    return FamilyEvaluation(family, values, reasons, notes)


def evaluate_samples(
    family: Family, aggregates: Mapping[str, Value], absent: Mapping[str, str]
) -> SampledEvaluation:
    """Compute all metrics of many runs at once: `Family.evaluate_samples`."""
    shape = np.broadcast_shapes(*(np.asarray(value).shape for value in aggregates.values()))
    computed, reasons = _compute(family, aggregates, absent)
    values = {
        name: np.broadcast_to(np.asarray(value, dtype=np.float64), shape)
        for name, value in computed.items()
    }
    return SampledEvaluation(family, values, reasons)


def _compute(
    family: Family, aggregates: Mapping[str, Value], absent: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Values and reasons of all metrics, in the order of the file; identities checked."""
    _check_input(aggregates)
    known: dict[str, Any] = dict(aggregates)
    computed: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    for id in family.order:
        metric = family.metrics[id]
        # a metric hides an aggregate of the same name, even when it is absent
        missing = [
            name
            for name in sorted(metric.formula.names)
            if name not in (computed if name in family.metrics else known)
        ]
        if missing:
            why = [reasons.get(name) or _reason(name, absent) for name in missing]
            # what is missing may have several reasons itself, some of them the same
            reasons[id] = "; ".join(dict.fromkeys(one for each in why for one in each.split("; ")))
            continue
        try:
            computed[id] = metric.formula.evaluate(known)
        except ExpressionError:
            reasons[id] = _why_undefined(family, metric, known)
        else:
            known[id] = computed[id]
    _check_identities(family, {**aggregates, **computed}, computed)
    in_order = {id: computed[id] for id in family.metrics if id in computed}
    return in_order, {id: reasons[id] for id in family.metrics if id in reasons}


def _check_input(aggregates: Mapping[str, Value]) -> None:
    for name, value in aggregates.items():
        if name not in AGGREGATES:
            near = difflib.get_close_matches(name, AGGREGATES, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"{name!r} is not an aggregate that formulas use{hint}")
        if not np.isfinite(numbers(value)).all():
            raise PopmodelError(
                f"{AGGREGATES[name].meaning} ({name}) is not a finite number",
                "leave out what is not known, with the reason why",
            )
    if "runtime" in aggregates and not np.all(numbers(aggregates["runtime"]) > 0):
        raise PopmodelError(
            "the runtime is not positive: there is no time to analyse",
            "choose a window in which the application runs",
        )


def _reason(name: str, absent: Mapping[str, str]) -> str:
    aggregate = AGGREGATES[name]
    for quantity in (name, *aggregate.needs):
        if quantity in absent:
            return absent[quantity]
    for quantity in aggregate.needs:
        return REASONS[quantity][0]
    return f"not known: {aggregate.meaning}"


def _why_undefined(family: Family, metric: Metric, known: Mapping[str, Any]) -> str:
    zero = [name for name in sorted(metric.formula.names) if not np.all(known[name])]
    named = [label(family, name) for name in zero]
    cause = " and ".join(f"{name} is 0" for name in named) or "the formula divides by 0"
    return f"undefined: {cause}"


def _check_identities(
    family: Family, values: Mapping[str, Any], computed: Mapping[str, Any]
) -> None:
    for each in family.decompositions:
        if each.parent not in computed or not all(part in values for part in each.parts):
            continue
        if any(part in family.metrics and part not in computed for part in each.parts):
            continue
        left, right = np.broadcast_arrays(values[each.parent], each.combine(values))
        scale = np.maximum(np.abs(left), np.abs(right))
        if each.operation == "sum":  # terms may cancel: their own size says what is lost
            scale = np.maximum(scale, 1.0)
            for part in each.parts:
                scale = np.maximum(scale, np.abs(values[part]))
        wrong = ~(np.abs(left - right) <= TOLERANCE * scale)
        if wrong.any():
            less = f" less {len(each.parts) - 1}" if each.operation == "sum" else ""
            raise IdentityError(
                f"family {family.id}: {each.parent} is {left[wrong][0]:.12g}, but the"
                f" {each.operation} of {', '.join(each.parts)}{less} is {right[wrong][0]:.12g}"
            )


def _due_notes(family: Family, values: Mapping[str, Any]) -> Iterator[str]:
    for note in family.notes:
        if note.when is None or (note.when.names <= values.keys() and note.when.evaluate(values)):
            yield note.text


def _contradictions(
    family: Family, values: Mapping[str, float], known: Mapping[str, float]
) -> Iterator[str]:
    """Say which metrics are outside bounds that consistent times keep to."""
    for id, value in values.items():
        metric = family.metrics[id]
        most, plus = metric.at_most, metric.at_most_plus
        if most is not None and plus is not None and plus.names <= known.keys():
            most += float(plus.evaluate(known))
        if metric.at_least is not None and value < metric.at_least - TOLERANCE:
            bound = f"below {metric.at_least:g}"
        elif most is not None and value > most + TOLERANCE:
            bound = f"above {most:.6g}"
        else:
            continue
        yield (
            f"{metric.name} is {value:.6g}, {bound}, which is impossible: the times of the run "
            "are inconsistent."
        )
