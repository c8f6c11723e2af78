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
from typing import TYPE_CHECKING

from popmodel.values import dataclass

if TYPE_CHECKING:
    from popmodel.efficiency.family import Evaluation

__all__ = ["Cost", "costs", "efficiency"]

_LEAST = 1e-300  # an efficiency of 0 has no logarithm


@dataclass(frozen=True)
class Cost:
    """What one metric costs a run.

    Attributes
    ----------
    evaluation : Evaluation
        Of the family that the metric belongs to.
    metric : str
        Its id; no present metric explains it further.
    value : float
        The efficiency.
    cost : float
        Share of the core time of the run that is lost to it; negative where it gains.
    """

    evaluation: Evaluation
    metric: str
    value: float
    cost: float


def costs(evaluation: Evaluation, scaling: Evaluation | None = None) -> tuple[Cost, ...]:
    """Divide the loss of a run among the metrics that nothing explains further.

    Parameters
    ----------
    evaluation : Evaluation
        The family that explains parallel efficiency. Where its search for losses begins at several
        metrics that do not multiply to its top, they share by their logarithms nevertheless.
    scaling : Evaluation, optional
        The family ``scaling``, where the run is compared with another one.

    Returns
    -------
    tuple of Cost
        The costliest first. They add up to one minus `efficiency`, unless the metrics at which the
        search begins show no loss where the top does.
    """
    found: list[Cost] = []
    share = 1.0
    for each in _factors(evaluation, scaling):
        _split(each, share, found)
        share *= _left(each)
    return tuple(sorted(found, key=lambda one: -one.cost))


def efficiency(evaluation: Evaluation, scaling: Evaluation | None = None) -> float:
    """Global efficiency: what of the core time is left, useful and as fast as in the reference."""
    return math.prod(_left(each) for each in _factors(evaluation, scaling))


def _factors(evaluation: Evaluation, scaling: Evaluation | None) -> list[Evaluation]:
    if scaling is None or scaling.family.id == evaluation.family.id:
        return [evaluation]
    return [evaluation, scaling]


def _left(evaluation: Evaluation) -> float:
    """The top of a family; 1 where it has no value."""
    return evaluation.values.get(evaluation.family.top, 1.0)


def _split(evaluation: Evaluation, share: float, found: list[Cost]) -> None:
    """Divide the loss that a family sees of a share of the core time."""
    begin = [name for name in evaluation.family.search if name in evaluation.values]
    product = math.prod(max(evaluation.values[name], _LEAST) for name in begin)
    left = _left(evaluation)
    weight = _mean(product)
    if product < 1 and left < 1:  # where the search does not begin at the top
        weight *= (1 - left) / (1 - product)
    for name in begin:
        _divide(evaluation, name, share * weight, found)


def _divide(evaluation: Evaluation, metric: str, weight: float, found: list[Cost]) -> None:
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
    found.append(Cost(evaluation, metric, value, weight / _mean(value) * (1 - value)))


def _mean(value: float) -> float:
    """Logarithmic mean of 1 and a value: what turns minus its logarithm into its lack to 1."""
    value = max(value, _LEAST)
    logarithm = math.log(value)
    return (value - 1) / logarithm if abs(logarithm) > 1e-9 else 1.0
