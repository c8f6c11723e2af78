"""Elasticities: by how many per cent a result changes if an input grows by one.

``d ln(result) / d ln(input)``, by central differences. All inputs are changed in
one evaluation: column 0 of every array is the best estimate, and each input has two columns of its
own. Where the model has a kink or a step (a maximum of two times, whole shares of a loop, a cache
that a working set just fits) both sides are told, since no single number is right there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from popmodel.expressions.elementary import Value
from popmodel.model.changes import GROUPS
from popmodel.model.prediction import Elasticity
from popmodel.model.replayed.agreement import Agreement
from popmodel.model.run.observe import Modelled
from popmodel.model.run.placement import Placement
from popmodel.model.study import Study, expand
from popmodel.model.uncertainty import Draws

STEP = 0.005
"""Relative change of an input to either side."""


def elasticities(
    study: Study,
    placement: Placement,
    result: Callable[[Modelled], Value] = lambda modelled: modelled.runtime,
    agreement: Agreement | None = None,
) -> tuple[Elasticity, ...]:
    """Give the elasticities of a result with respect to all that enters and that a factor suits.

    Parameters
    ----------
    study : Study
        Program and machine.
    placement : Placement
        P and T, which stay as they are.
    result : callable
        From a modelled run to a positive result; the runtime by default.
    agreement : Agreement, optional
        Closed form and replay of this placement: elasticities of what is shown. Those of the
        closed form without it.

    Returns
    -------
    tuple of Elasticity
        Those with the largest effect first.

    Raises
    ------
    ValueError
        If the result is not positive: it has no logarithm.
    """
    inputs = _inputs(study)
    drawn = study.sources(_factors(inputs), draws=0)
    values = _columns(
        result(study.run(placement, drawn, agreement=agreement).modelled), 1 + 2 * len(inputs)
    )
    if not np.all(values > 0):
        raise ValueError(f"a result of {values.min():g} has no elasticity")
    every = [
        _one(name, label, values[0], values[1 + 2 * index], values[2 + 2 * index])
        for index, (name, (label, paths)) in enumerate(inputs.items())
        if _enters(paths, drawn)
    ]
    return tuple(sorted(every, key=lambda one: -one.largest))


def _inputs(study: Study) -> dict[str, tuple[str, dict[str, int]]]:
    """By name, what grows, and by path the power of its factor on each quantity."""
    inputs: dict[str, tuple[str, dict[str, int]]] = {}
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


def _factors(inputs: Mapping[str, tuple[str, Mapping[str, int]]]) -> dict[str, NDArray[np.float64]]:
    factors = {}
    for index, (_, paths) in enumerate(inputs.values()):
        for path, power in paths.items():
            column = np.ones(1 + 2 * len(inputs))
            column[1 + 2 * index] = (1 - STEP) ** power
            column[2 + 2 * index] = (1 + STEP) ** power
            factors[path] = column
    return factors


def _columns(result: Value, count: int) -> NDArray[np.float64]:
    columns: NDArray[np.float64] = np.broadcast_to(np.asarray(result, dtype=np.float64), count)
    return columns


def _one(name: str, label: str, middle: float, below: float, above: float) -> Elasticity:
    less, more = math.log1p(-STEP), math.log1p(STEP)
    return Elasticity(
        name,
        label,
        float(math.log(above / below) / (more - less)),
        float(math.log(below / middle) / less),
        float(math.log(above / middle) / more),
    )


def _enters(paths: Mapping[str, int], drawn: Draws) -> bool:
    used = set(drawn.used)
    return not used.isdisjoint(paths)
