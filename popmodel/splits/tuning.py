"""How to set a parameter of an application: the value with which a split takes the least time.

SciPy searches on best estimates between the best of some values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import Any

import numpy as np

from popmodel.errors import UsageError, did_you_mean
from popmodel.model.replayed.agreement import REPLAY
from popmodel.model.run.placement import Placement
from popmodel.model.study import Study
from popmodel.model.uncertainty import Draws, Estimate, nominal
from popmodel.plain import fields_of
from popmodel.splits.splits import Evaluated, estimated, evaluate
from popmodel.values import dataclass

WITHIN = 0.01
"""Values of a parameter that are no more than this part slower than the best are as good."""

LEAST_GAIN = 0.001
"""A parameter stays as it is if no value is faster by more than this part: replays are no finer."""

_RANGE = 1000.0  # a parameter is searched from its value over this to its value times this
_COARSE = 31  # values tried first: the runtime may have several valleys
_SAME_WORK = 1e-9


@dataclass(frozen=True)
class Tuned:
    """The best value of a parameter of the application for one split."""

    name: str  # The parameter
    split: tuple[int, int]  # Processes and threads
    # Its value, and the one with the least runtime.
    now: float
    best: float
    change: Estimate  # Runtime with the best value over that with the value now, minus 1
    # What all values are compared by: replays, or the closed form where the value now has none.
    source: str
    tried: tuple[float, float]  # Least and largest value that were tried and are possible
    # Least and largest of the tried values around the best one whose runtime is no more than
    # `WITHIN` above the least.
    good: tuple[float, float]

    def to_dict(self) -> dict[str, Any]:
        """Return the value as JSON types."""
        cores = self.split[0] * self.split[1]
        return {"name": self.name, "cores": cores, **fields_of(self)}


def tune(
    study: Study,
    name: str,
    placement: Placement,
    with_value: Callable[[float], Study],
    max_memory: float | None = None,
) -> Tuned:
    """Find the value of a parameter of the application that gives one split the least runtime.

    Values around the one now are tried, evenly spaced on a logarithmic scale; between the
    neighbours of the best one the minimum is searched (golden section and parabolas). A parameter
    whose value is a whole number gets a whole number. Runtimes are those that predictions show;
    values of which nothing can be replayed are not tried where the value now has a replay.
    """
    now, split = parameter(study, name), (placement.processes, placement.threads)
    whole = now == round(now)
    amount = _work(study, placement)
    known: dict[float, float] = {}

    source = study.outcome(placement, study.sources(draws=0)).source

    def split_of(study: Study, drawn: Draws, max_memory: float | None = None) -> Evaluated:
        return evaluate(study, drawn, *split, max_memory, replayed=source == REPLAY)

    def runtime(value: float) -> float:
        """The runtime, infinite where the value is not possible or cannot be compared."""
        if value not in known:
            other = with_value(value)
            try:
                change = abs(_work(other, placement) / amount - 1)
                one = split_of(other, other.sources(draws=0), max_memory)
            except UsageError:
                known[value] = math.inf
                return math.inf
            if change > _SAME_WORK:
                raise UsageError(
                    f"{name} changes the amount of work of {study.signature.name}: less work is "
                    "always faster",
                    "tune a parameter that only divides the work, such as a number of blocks",
                )
            known[value] = nominal(one.runtime) if one.source == source else math.inf
        return known[value]

    _explore(runtime, now, whole=whole)
    tried = [value for value, time in known.items() if math.isfinite(time)]
    allowed = [value for value in tried if not whole or value == round(value)]
    # of values that are as good, the one nearest to what it is now
    best = min(allowed, key=lambda value: (known[value], abs(math.log(value / now))))
    if known[best] >= known[now] * (1 - LEAST_GAIN):
        best = now
    return Tuned(
        name,
        split,
        now,
        best,
        _change(*(split_of(one, one.sources()) for one in (with_value(now), with_value(best)))),
        source,
        (min(tried), max(tried)),
        _good({value: known[value] for value in allowed}, best),
    )


def _explore(runtime: Callable[[float], float], now: float, *, whole: bool) -> None:
    """Evaluate values around the one now, then those around the best of them."""
    from scipy.optimize import minimize_scalar

    lowest = max(now / _RANGE, 1.0) if whole else now / _RANGE
    grid = np.geomspace(lowest, now * _RANGE, _COARSE)
    values = sorted({float(round(value)) if whole else float(value) for value in grid} | {now})
    at = int(np.argmin([runtime(value) for value in values]))
    low, high = values[max(at - 1, 0)], values[min(at + 1, len(values) - 1)]
    if not math.isfinite(max(runtime(low), runtime(high))):
        return
    found = minimize_scalar(
        lambda logarithm: runtime(math.exp(logarithm)),
        bounds=(math.log(low), math.log(high)),
        method="bounded",
        options={"xatol": 1e-4},
    )
    near = math.exp(found.x)
    if whole:
        for value in {math.floor(near), math.ceil(near)}:
            runtime(float(value))


def _change(before: Evaluated, after: Evaluated) -> Estimate:
    """Return the change of the runtime from one value to the other."""
    validities = before.validity, after.validity
    worse = min(validities, key=lambda one: one.has_interval)
    return estimated(after.runtime / before.runtime - 1, worse)


def _good(known: Mapping[float, float], best: float) -> tuple[float, float]:
    """Ends of the values around the best one that are as good."""
    limit = known[best] * (1 + WITHIN)
    below = takewhile(
        lambda v: known[v] <= limit, sorted((v for v in known if v < best), reverse=True)
    )
    above = takewhile(lambda v: known[v] <= limit, sorted(v for v in known if v > best))
    return min([best, *below]), max([best, *above])


def parameter(study: Study, name: str) -> float:
    """Return the value of a parameter of the application."""
    if name not in study.params:
        known = ", ".join(study.params) or "none"
        raise UsageError(
            f"{study.signature.name} has no parameter {name!r} to tune",
            did_you_mean(name, study.params, f"its parameters: {known}"),
        )
    return study.params[name].value


def _work(study: Study, placement: Placement) -> float:
    """The amount of work: operations, or the time that they take where none are counted."""
    work = study.run(placement, study.sources(draws=0)).work
    flops = nominal(work.flops)
    return flops or nominal(work.serial + work.single_thread) or 1.0
