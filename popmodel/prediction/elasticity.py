"""Elasticities: by how many per cent a result changes if an input grows by one.

``d ln(result) / d ln(input)``, by central differences. All inputs are changed in
one evaluation: column 0 of every array is the best estimate, and each input has two columns of its
own. Where the model has a kink or a step (a maximum of two times, whole shares of a loop, a cache
that a working set just fits) both sides are told, since no single number is right there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.errors import UsageError
from popmodel.expressions.elementary import Value, numbers
from popmodel.model.changes import GROUPS
from popmodel.model.replayed.agreement import Agreement
from popmodel.model.run.observe import Modelled
from popmodel.model.run.placement import Placement
from popmodel.model.study import Study, expand
from popmodel.model.uncertainty import Draws
from popmodel.prediction.prediction import Elasticity

STEP = 0.005
"""Relative change of an input to either side."""

_Input = tuple[str, dict[str, int]]
_Inputs = dict[str, _Input]


def elasticities(
    study: Study,
    placement: Placement,
    result: Callable[[Modelled], Value] = lambda modelled: modelled.runtime,
    agreement: Agreement | None = None,
) -> tuple[Elasticity, ...]:
    """Return the elasticities of a result with respect to all that enters and that a factor suits.

    A parameter that cannot change a little, such as a number of blocks that is 1, has none.
    """

    def changed(inputs: _Inputs) -> tuple[NDArray[np.float64], Draws]:
        drawn = study.sources(_factors(inputs), draws=0)
        modelled = study.run(placement, drawn, agreement=agreement).modelled
        return np.broadcast_to(numbers(result(modelled)), 1 + 2 * len(inputs)), drawn

    inputs = _inputs(study)
    try:
        values, drawn = changed(inputs)
    except UsageError:  # a parameter is at the edge of what makes sense
        inputs = {name: one for name, one in inputs.items() if _is_possible(changed, name, one)}
        values, drawn = changed(inputs)
    if not np.all(values > 0):
        raise ValueError(f"a result of {values.min():g} has no elasticity")
    every = [
        _one(name, label, values[0], values[1 + 2 * index], values[2 + 2 * index])
        for index, (name, (label, paths)) in enumerate(inputs.items())
        if not paths.keys().isdisjoint(drawn.used)
    ]
    return tuple(sorted(every, key=lambda one: -one.largest))


def _is_possible(changed: Callable[[_Inputs], Any], name: str, one: _Input) -> bool:
    """Whether a result has a value with one input changed."""
    try:
        changed({name: one})
    except UsageError:
        return False
    return True


def _inputs(study: Study) -> _Inputs:
    """By name, what grows, and by path the power of its factor on each quantity."""
    inputs: _Inputs = {}
    for name, group in GROUPS.items():
        paths = {
            path: power
            for beginning, power in group.powers.items()
            for path in expand({beginning: 1.0}, study.quantities)
        }
        if paths:
            inputs[name] = (group.label, paths)
    for name in study.params:
        inputs[f"params.{name}"] = (name, {f"params.{name}": 1})
    return inputs


def _factors(inputs: _Inputs) -> dict[str, NDArray[np.float64]]:
    factors = {}
    for index, (_, paths) in enumerate(inputs.values()):
        for path, power in paths.items():
            column = np.ones(1 + 2 * len(inputs))
            column[1 + 2 * index] = (1 - STEP) ** power
            column[2 + 2 * index] = (1 + STEP) ** power
            factors[path] = column
    return factors


def _one(name: str, label: str, middle: float, below: float, above: float) -> Elasticity:
    less, more = math.log1p(-STEP), math.log1p(STEP)
    falling, rising = math.log(below / middle) / less, math.log(above / middle) / more
    return Elasticity(name, label, math.log(above / below) / (more - less), falling, rising)
