"""How the metrics of a family are computed from aggregates, and checked, and what each costs."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from popmodel.base.errors import PopmodelError
from popmodel.base.expressions import ExpressionError
from popmodel.base.expressions.elementary import Value, numbers
from popmodel.base.values import dataclass
from popmodel.efficiency.family import (
    AGGREGATES,
    REASONS,
    Family,
    FamilyEvaluation,
    IdentityError,
    Metric,
    SampledEvaluation,
    label,
)

# How the metrics of a family are computed from the aggregates of runs, and checked.


TOLERANCE = 1e-9
"""Relative difference up to which the two sides of an identity, or a bound, count as equal."""


def evaluate(
    family: Family, aggregates: Mapping[str, float], absent: Mapping[str, str]
) -> FamilyEvaluation:
    """Compute all metrics of one run: `Family.evaluate`."""
    computed, reasons = _compute(family, aggregates, absent)
    values = {name: float(value) for name, value in computed.items()}
    names = {**aggregates, **values}
    notes = (*_due_notes(family, names), *_contradictions(family, values, names))
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
    if not family.fits(aggregates):
        return {}, dict.fromkeys(family.metrics, _reason(family.requires, absent))
    names: dict[str, Any] = dict(aggregates)
    computed: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    for id in family.order:
        metric = family.metrics[id]
        # a metric hides an aggregate of the same name, even when it is absent
        missing = [
            name
            for name in sorted(metric.formula.names)
            if name not in (computed if name in family.metrics else names)
        ]
        if missing:
            why = [reasons.get(name) or _reason(name, absent) for name in missing]
            # what is missing may have several reasons itself, some of them the same
            reasons[id] = "; ".join(dict.fromkeys(one for each in why for one in each.split("; ")))
            continue
        try:
            computed[id] = metric.formula.evaluate(names)
        except ExpressionError:
            reasons[id] = _why_undefined(family, metric, names)
        else:
            names[id] = computed[id]
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


def _why_undefined(family: Family, metric: Metric, names: Mapping[str, Any]) -> str:
    zero = [name for name in sorted(metric.formula.names) if not np.all(names[name])]
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
    family: Family, values: Mapping[str, float], names: Mapping[str, float]
) -> Iterator[str]:
    """Say which metrics are outside bounds that consistent times keep to."""
    for id, value in values.items():
        metric = family.metrics[id]
        most, plus = metric.at_most, metric.at_most_plus
        if most is not None and plus is not None and plus.names <= names.keys():
            most += float(plus.evaluate(names))
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


# What each metric of a run costs: the loss of global efficiency, divided among its causes.
#
# The loss of a run is ``1 - global efficiency``, a share of its core time (threads times runtime):
# what is not useful, ``1 - parallel efficiency``, and what the useful part takes more than in the
# reference run, ``parallel efficiency * (1 - computation scaling)``. So losses by waiting and by a
# slower computation can be compared. Each is handed down the tree of its family: the parts of a sum
# lose what they lack to 1, the parts of a product share by their logarithms (logarithmic mean
# Divisia index: Ang, Energy Policy 32, 2004), which adds up exactly and ranks factors by size.


_LEAST = 1e-300  # an efficiency of 0 has no logarithm
_GLOBAL = "global_efficiency"  # stands above the families that have it


@dataclass(frozen=True)
class AdviceCost:
    """What one metric costs a run."""

    evaluation: FamilyEvaluation  # Of the family that the metric belongs to
    metric: str  # Its id; no present metric explains it further
    value: float  # The efficiency
    cost: float  # Share of the core time of the run that is lost to it; negative where it gains


def costs(
    evaluation: FamilyEvaluation, scaling: FamilyEvaluation | None = None
) -> tuple[AdviceCost, ...]:
    """Divide the loss of a run among the metrics that nothing explains further."""
    losses: list[AdviceCost] = []
    share = 1.0
    for each in _factors(evaluation, scaling):
        for name, weight in _begin(each, share):
            _divide(each, name, weight, losses)
        share *= _left(each)
    return tuple(sorted(losses, key=lambda one: -one.cost))


def shares(evaluation: FamilyEvaluation, seen: float = 1.0) -> dict[str, float]:
    """What every metric of a family costs, those too that others explain."""
    family, values = evaluation.family, evaluation.values
    weights = dict(_begin(evaluation, seen))
    tops = {name: values[name] for name in (family.top, _GLOBAL) if name in values}
    tops = {name: (seen if name == family.top else 1.0) * (1 - v) for name, v in tops.items()}
    waiting = list(weights)
    for name in waiting:  # grows
        for part, weight in _parts(evaluation, name, weights[name]):
            if part not in weights and part in family.metrics:
                weights[part] = weight
                waiting.append(part)
    costs = {
        name: weight / _mean(values[name]) * (1 - values[name]) for name, weight in weights.items()
    }
    return costs | tops


def _parts(evaluation: FamilyEvaluation, metric: str, weight: float) -> Iterator[tuple[str, float]]:
    """Parts of a metric in all its decompositions, and its views, with their weights."""
    values, family = evaluation.values, evaluation.family
    in_parent = weight / _mean(values[metric])
    for each in family.decompositions:
        if each.parent == metric and all(part in values for part in each.parts):
            for part in each.parts:
                is_sum = each.operation == "sum"
                yield part, in_parent * _mean(values[part]) if is_sum else weight
    for id, other in family.metrics.items():
        if other.view_of == metric and id in values:
            yield id, in_parent * _mean(values[id])


def efficiency(evaluation: FamilyEvaluation, scaling: FamilyEvaluation | None = None) -> float:
    """Global efficiency: what of the core time is left, useful and as fast as in the reference."""
    return math.prod(_left(each) for each in _factors(evaluation, scaling))


def _factors(
    evaluation: FamilyEvaluation, scaling: FamilyEvaluation | None
) -> list[FamilyEvaluation]:
    if scaling is None or scaling.family.id == evaluation.family.id:
        return [evaluation]
    return [evaluation, scaling]


def _left(evaluation: FamilyEvaluation) -> float:
    """The top of a family; 1 where it has no value."""
    return evaluation.values.get(evaluation.family.top, 1.0)


def _begin(evaluation: FamilyEvaluation, share: float) -> Iterator[tuple[str, float]]:
    """The metrics at which the search begins, with their weights."""
    begin = [name for name in evaluation.family.search if name in evaluation.values]
    product = math.prod(max(evaluation.values[name], _LEAST) for name in begin)
    left = _left(evaluation)
    weight = _mean(product)
    if product < 1 and left < 1:  # where the search does not begin at the top
        weight *= (1 - left) / (1 - product)
    for name in begin:
        yield name, share * weight


def _divide(
    evaluation: FamilyEvaluation, metric: str, weight: float, losses: list[AdviceCost]
) -> None:
    """Hand the loss of a metric, `weight` times minus its logarithm, down to its leaves."""
    value = evaluation.values[metric]
    for each in evaluation.family.decompositions:
        if each.parent != metric or not all(part in evaluation.values for part in each.parts):
            continue
        for part in each.parts:
            own = weight
            if each.operation == "sum":
                # What a part lacks to 1, in the parent's measure.
                own = weight / _mean(value) * _mean(evaluation.values[part])
            _divide(evaluation, part, own, losses)
        return
    losses.append(AdviceCost(evaluation, metric, value, weight / _mean(value) * (1 - value)))


def _mean(value: float) -> float:
    """Logarithmic mean of 1 and a value: what turns minus its logarithm into its lack to 1."""
    value = max(value, _LEAST)
    logarithm = math.log(value)
    return (value - 1) / logarithm if abs(logarithm) > 1e-9 else 1.0


# The runtime as a sum: useful time, and what each leaf of the additive hybrid family loses.
#
# Losses of that family add up, so its leaves times the runtime are seconds that add up to it
# (popmodel/efficiency/families/hybrid-additive.toml). Useful time holds arithmetic and memory
# traffic alike: times alone do not tell them apart.


TERMS_FAMILY = "hybrid-additive"
"""The family whose losses they are."""


@dataclass(frozen=True)
class FamilyTerm:
    """A part of the runtime."""

    name: str  # Its key in documents
    label: str  # What people call it
    metric: str  # The efficiency of `FAMILY` that it follows from


USEFUL = FamilyTerm("useful", "useful (computing, memory)", "parallel_efficiency")
COMMUNICATION = FamilyTerm("communication", "communication", "process_communication_efficiency")
TRANSFER = FamilyTerm("transfer", "transfer", "process_transfer_efficiency")
SERIALISATION = FamilyTerm("serialisation", "serialisation", "process_serialisation_efficiency")
TERMS = (
    USEFUL,
    FamilyTerm("imbalance", "process imbalance", "process_load_balance"),
    COMMUNICATION,
    TRANSFER,
    SERIALISATION,
    FamilyTerm("regions", "OpenMP regions", "openmp_region_efficiency"),
    FamilyTerm("serial", "OpenMP threads idle", "serial_region_efficiency"),
)
"""All of them; communication is transfer and serialisation together, where no replay parts it."""


def terms(runtime: Value, metrics: Mapping[str, Value]) -> dict[str, Value]:
    """Return the parts of a runtime, s."""
    times: dict[str, Value] = {}
    for term in TERMS:
        if term.metric in metrics:
            share = metrics[term.metric]
            times[term.name] = runtime * (share if term is USEFUL else 1 - share)
    return times


def leaves(names: Mapping[str, object]) -> list[FamilyTerm]:
    """Return the terms among those known that add up: communication in parts where it has them."""
    parted = TRANSFER.name in names and SERIALISATION.name in names
    without = {COMMUNICATION} if parted else {TRANSFER, SERIALISATION}
    return [term for term in TERMS if term.name in names and term not in without]
