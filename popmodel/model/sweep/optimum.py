"""Best values found by search: how many cores are worth their cost, how to set a parameter.

Both use SciPy, which is imported only here, on best estimates; the model has
steps (threads that do not share a loop evenly, grids that fit badly), so that what the search of
a continuous function finds is tried beside its neighbours.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import Any

import numpy as np

from popmodel.errors import UsageError
from popmodel.model.prediction import Estimate
from popmodel.model.replayed.agreement import REPLAY
from popmodel.model.run.placement import Placement
from popmodel.model.study import Study
from popmodel.model.sweep.candidate import Evaluated, estimated, is_compared
from popmodel.model.sweep.checking import check
from popmodel.model.sweep.splits import evaluate, evaluate_all
from popmodel.model.uncertainty import nominal
from popmodel.model.validity import assess
from popmodel.units import plural
from popmodel.values import dataclass

WITHIN = 0.01
"""Values of a parameter that are no more than this part slower than the best are as good."""

LEAST_GAIN = 0.001
"""A parameter stays as it is if no value is faster by more than this part: replays are no finer."""

_NEIGHBOURS = 4  # counts beside the root of the efficiency that are tried too
_FARTHEST = 8  # steps between a count that is not possible and one taken instead
_RANGE = 1000.0  # a parameter is searched from its value over this to its value times this
_COARSE = 31  # values tried first: the runtime may have several valleys
_SAME_WORK = 1e-9


@dataclass(frozen=True)
class Largest:
    """The largest number of cores that keeps a parallel efficiency.

    Attributes
    ----------
    target : float
        The parallel efficiency to be kept by the fastest split.
    cores : int
        The number.
    efficiency : float
        What the fastest split of it has.
    beyond : tuple of (int, float), or None
        The next number with its efficiency, which is too low; None if the machine has no more.
    """

    target: float
    cores: int
    efficiency: float
    beyond: tuple[int, float] | None

    def to_dict(self) -> dict[str, Any]:
        """Return the number as JSON types."""
        cores, efficiency = self.beyond or (None, None)
        return {
            "parallel_efficiency": self.target,
            "cores": self.cores,
            "reached": self.efficiency,
            "beyond": {"cores": cores, "parallel_efficiency": efficiency},
        }


@dataclass(frozen=True)
class Tuned:
    """The best value of a parameter of the application for one split.

    Attributes
    ----------
    name : str
        The parameter.
    split : tuple of int
        Processes and threads.
    now, best : float
        Its value, and the one with the least runtime.
    change : Estimate
        Runtime with the best value over that with the value now, minus 1.
    source : str
        What all values are compared by: replays, or the closed form where the value now has none.
    tried : tuple of float
        Least and largest value that were tried and are possible.
    good : tuple of float
        Least and largest of the tried values around the best one whose runtime is no more than
        `WITHIN` above the least.
    """

    name: str
    split: tuple[int, int]
    now: float
    best: float
    change: Estimate
    source: str
    tried: tuple[float, float]
    good: tuple[float, float]

    def to_dict(self) -> dict[str, Any]:
        """Return the value as JSON types."""
        return {
            "name": self.name,
            "cores": self.split[0] * self.split[1],
            "split": list(self.split),
            "now": self.now,
            "best": self.best,
            "change": self.change.to_dict(),
            "source": self.source,
            "tried": list(self.tried),
            "good": list(self.good),
        }


def largest_cores(study: Study, target: float, max_memory: float | None = None) -> Largest:
    """Find the largest number of cores whose fastest split keeps a parallel efficiency.

    Beyond one node only whole nodes are looked at. Powers of two, up to the size of the machine,
    show where the efficiency falls below the target for the last time; the root in between is
    found on the logarithm of the number of cores (Brent's method), and its neighbours are tried,
    because numbers that divide well are better than those beside them. One that divides well and
    lies farther beyond may be missed.

    Parameters
    ----------
    study : Study
        Program and machine.
    target : float
        Parallel efficiency, above 0 and at most 1.
    max_memory : float, optional
        Bytes that a process may take at most.

    Raises
    ------
    UsageError
        If no number of cores keeps it.
    """
    counts = _Counts(study, max_memory)
    rungs = counts.ladder()
    # from above: what lies below the last one that keeps it is not replayed
    low = next((rung for rung in reversed(rungs) if counts.efficiency(rung) >= target), None)
    if low is None:
        best = max(rungs, key=counts.efficiency, default=None)
        hint = None
        if best is not None:
            most = f"{100 * counts.efficiency(best):.1f}"
            near = float(most) >= 100 * target  # as it is printed it would be enough
            hint = (
                f"the highest is {'slightly less' if near else f'{most} %'}, on "
                f"{plural(best, 'core')}"
            )
        raise UsageError(
            f"{study.signature.name}: no number of cores has a parallel efficiency of "
            f"{100 * target:g} %",
            hint,
        )
    high = next((rung for rung in rungs if rung > low), None)
    if high is None:
        return Largest(target, low, counts.efficiency(low), None)
    _search_root(counts, target, low, high)
    # what the search has seen on its way tells where the last one that keeps it may be
    last = max(n for n in counts.known() if n < high and counts.efficiency(n) >= target)
    last, beyond = _last_of_neighbours(counts, target, last, high)
    return Largest(target, last, counts.efficiency(last), (beyond, counts.efficiency(beyond)))


def _search_root(counts: _Counts, target: float, low: int, high: int) -> None:
    """Look where the efficiency crosses the target between two numbers on either side of it."""
    from scipy.optimize import brentq

    def excess(logarithm: float) -> float:
        cores = counts.nearest(counts.further(round(math.exp(logarithm)), 0), low, high)
        return counts.efficiency(low if cores is None else cores) - target

    step = math.log(counts.further(low, 1) / low)
    if counts.further(low, 1) < high:
        brentq(excess, math.log(low), math.log(high), xtol=step / 4)


def _last_of_neighbours(counts: _Counts, target: float, last: int, high: int) -> tuple[int, int]:
    """The last number that keeps the target, and the next one, which does not."""
    beyond, misses, cores = high, 0, last
    while misses < _NEIGHBOURS and cores < high:
        cores = counts.further(cores, 1)
        if not counts.is_possible(cores):
            continue
        if counts.efficiency(cores) >= target:
            last, beyond, misses = cores, high, 0
        else:
            beyond, misses = min(beyond, cores), misses + 1
    return last, beyond


class _Counts:
    """Numbers of cores, single ones within a node and whole nodes beyond, with their efficiency.

    Parameters
    ----------
    study, max_memory
        As for `largest_cores`.
    """

    def __init__(self, study: Study, max_memory: float | None) -> None:
        self._study = study
        self._max_memory = max_memory
        self._drawn = study.sources(draws=0)
        nodes, self._node = study.allocation.available(study.profile.topology)
        self._most = self._node * nodes
        self._splits: dict[int, list[Evaluated]] = {}
        self._known: dict[int, float] = {}

    def known(self) -> list[int]:
        """Numbers whose efficiency has been looked at."""
        return list(self._known)

    def is_possible(self, cores: int) -> bool:
        """Whether the number has a split."""
        if cores not in self._splits:
            found, _ = evaluate_all(self._study, self._drawn, cores, self._max_memory)
            self._splits[cores] = found
        return bool(self._splits[cores])

    def efficiency(self, cores: int) -> float:
        """Parallel efficiency of the fastest split; ValueError without any."""
        if cores not in self._known:
            if not self.is_possible(cores):
                raise ValueError(f"{cores} cores have no split")
            found, _ = check(self._study, self._drawn, self._splits[cores])
            compared = [one for one in found if is_compared(one, found)]
            fastest = min(compared, key=lambda one: nominal(one.runtime))
            self._known[cores] = nominal(fastest.efficiency)
        return self._known[cores]

    def further(self, cores: int, steps: int) -> int:
        """Some steps up or down: a core within a node, else a whole node."""
        if cores + steps <= self._node:
            return max(cores + steps, 1)
        return self._node * max(math.ceil(cores / self._node) + steps, 1)

    def nearest(self, cores: int, low: int, high: int) -> int | None:
        """The nearest number that has a split; None if that is too far."""
        near = (self.further(cores, sign * n) for n in range(_FARTHEST + 1) for sign in (-1, 1))
        return next((n for n in near if low <= n <= high and self.is_possible(n)), None)

    def ladder(self) -> list[int]:
        """Numbers near the powers of two within a node and of nodes, and near the whole machine."""
        rungs = [*_powers(self._node), *(self._node * n for n in _powers(self._most // self._node))]
        found = (self.nearest(rung, 1, self._most) for rung in [*rungs, self._most])
        return sorted({cores for cores in found if cores is not None})


def _powers(limit: int) -> list[int]:
    """Powers of two below a limit."""
    return [2**n for n in range((limit - 1).bit_length())]


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
    values that are too large for a replay are not tried where the value now has one.

    Parameters
    ----------
    study : Study
        Program and machine as they are.
    name : str
        The parameter.
    placement : Placement
        The split.
    with_value : callable
        Gives the same study with another value of the parameter.
    max_memory : float, optional
        Bytes that a process may take at most.

    Raises
    ------
    UsageError
        If there is no such parameter, or it changes the work itself.
    """
    now = parameter(study, name)
    whole = now == round(now)
    amount = _work(study, placement)
    known: dict[float, float] = {}

    source = study.outcome(placement, study.sources(draws=0)).source

    def runtime(value: float) -> float:
        """The runtime, infinite where the value is not possible or cannot be compared."""
        if value not in known:
            other = with_value(value)
            best = other.sources(draws=0)
            try:
                one = evaluate(other, best, *_split(placement), max_memory)
            except UsageError:
                known[value] = math.inf
                return math.inf
            if abs(_work(other, placement) / amount - 1) > _SAME_WORK:
                raise UsageError(
                    f"{name} changes the amount of work of {study.signature.name}: less work is "
                    "always faster",
                    "tune a parameter that only divides the work, such as a number of blocks",
                )
            known[value] = nominal(one.runtime)
            if source == REPLAY:
                found = other.outcome(placement, best)
                replayed = nominal(found.run.modelled.runtime)
                known[value] = replayed if found.source == REPLAY else math.inf
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
        _split(placement),
        now,
        best,
        _change(with_value(now), with_value(best), placement, source),
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


def _split(placement: Placement) -> tuple[int, int]:
    return placement.processes, placement.threads


def _change(before: Study, after: Study, placement: Placement, source: str) -> Estimate:
    """Return the change of the runtime from one study to the other."""
    runs = [
        study.outcome(placement, study.sources()).run
        if source == REPLAY
        else study.run(placement, study.sources())
        for study in (before, after)
    ]
    validities = [assess(before.profile, placement, run.used) for run in runs]
    times = [run.modelled.runtime for run in runs]
    return estimated(times[1] / times[0] - 1, min(validities, key=lambda one: one.has_interval))


def _good(known: Mapping[float, float], best: float) -> tuple[float, float]:
    """Ends of the values around the best one that are as good."""
    limit = known[best] * (1 + WITHIN)
    below = takewhile(
        lambda v: known[v] <= limit, sorted((v for v in known if v < best), reverse=True)
    )
    above = takewhile(lambda v: known[v] <= limit, sorted(v for v in known if v > best))
    return min([best, *below]), max([best, *above])


def parameter(study: Study, name: str) -> float:
    """Return the value of a parameter of the application.

    Raises
    ------
    UsageError
        If there is no such parameter.
    """
    if name not in study.params:
        near = difflib.get_close_matches(name, study.params, n=1)
        known = ", ".join(study.params) or "none"
        raise UsageError(
            f"{study.signature.name} has no parameter {name!r} to tune",
            f"did you mean {near[0]}?" if near else f"its parameters: {known}",
        )
    return study.params[name].value


def _work(study: Study, placement: Placement) -> float:
    """The amount of work: operations, or the time that they take where none are counted."""
    work = study.run(placement, study.sources(draws=0)).work
    flops = nominal(work.flops)
    return flops or nominal(work.serial + work.single_thread) or 1.0
