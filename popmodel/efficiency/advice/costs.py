"""What each metric of a run costs: the loss of global efficiency, divided among its causes.

The loss of a run is ``1 - global efficiency``, a share of its core time (threads times runtime):
what is not useful, ``1 - parallel efficiency``, and what the useful part takes more than in the
reference run, ``parallel efficiency * (1 - computation scaling)``. So losses by waiting and by a
slower computation can be compared. Each is handed down the tree of its family: the parts of a sum
lose what they lack to 1, the parts of a product share by their logarithms (logarithmic mean Divisia
index: Ang, Energy Policy 32, 2004), which adds up exactly and ranks factors by size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from popmodel.values import dataclass

if TYPE_CHECKING:
    from popmodel.efficiency.family import FamilyEvaluation

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
    found: list[AdviceCost] = []
    share = 1.0
    for each in _factors(evaluation, scaling):
        _split(each, share, found)
        share *= _left(each)
    return tuple(sorted(found, key=lambda one: -one.cost))


def shares(evaluation: FamilyEvaluation, seen: float = 1.0) -> dict[str, float]:
    """What every metric of a family costs, those too that others explain."""
    family, values = evaluation.family, evaluation.values
    weights = dict(_begin(evaluation, seen))
    found = {name: values[name] for name in (family.top, _GLOBAL) if name in values}
    found = {name: (seen if name == family.top else 1.0) * (1 - v) for name, v in found.items()}
    waiting = list(weights)
    for name in waiting:  # grows
        for part, weight in _parts(evaluation, name, weights[name]):
            if part not in weights and part in family.metrics:
                weights[part] = weight
                waiting.append(part)
    costs = {
        name: weight / _mean(values[name]) * (1 - values[name]) for name, weight in weights.items()
    }
    return costs | found


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


def _split(evaluation: FamilyEvaluation, share: float, found: list[AdviceCost]) -> None:
    """Divide the loss that a family sees of a share of the core time."""
    for name, weight in _begin(evaluation, share):
        _divide(evaluation, name, weight, found)


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
    evaluation: FamilyEvaluation, metric: str, weight: float, found: list[AdviceCost]
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
            _divide(evaluation, part, own, found)
        return
    found.append(AdviceCost(evaluation, metric, value, weight / _mean(value) * (1 - value)))


def _mean(value: float) -> float:
    """Logarithmic mean of 1 and a value: what turns minus its logarithm into its lack to 1."""
    value = max(value, _LEAST)
    logarithm = math.log(value)
    return (value - 1) / logarithm if abs(logarithm) > 1e-9 else 1.0
