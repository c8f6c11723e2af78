"""How many cores are worth their cost: the largest number that keeps a parallel efficiency.

The model has steps (threads that do not share a loop evenly, grids that fit badly): a number of
nodes that divides well may keep an efficiency that many smaller ones do not. So on few nodes every
number is tried. On many SciPy searches on best estimates, as of a continuous function, and what it
finds is tried beside its neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from popmodel.errors import UsageError
from popmodel.model.study import Study
from popmodel.model.uncertainty import nominal
from popmodel.splits.splits import Evaluated, evaluate_all, is_compared
from popmodel.units import plural
from popmodel.values import dataclass

_EACH = 16  # as many numbers are tried one by one
_NEIGHBOURS = 4  # counts beside the root of the efficiency that are tried too
_FARTHEST = 8  # steps between a count that is not possible and one taken instead


@dataclass(frozen=True)
class LargestSplit:
    """The largest number of cores that keeps a parallel efficiency."""

    target: float  # The parallel efficiency to be kept by the fastest split
    cores: int  # The number
    efficiency: float  # What the fastest split of it has
    # The next number with its efficiency, which is too low; None if the machine has no more.
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


def largest_cores(study: Study, target: float, max_memory: float | None = None) -> LargestSplit:
    """Find the largest number of cores whose fastest split keeps a parallel efficiency.

    Beyond one node only whole nodes are looked at, from the whole machine down: each number of up
    to 16 nodes, and each number of cores of a node that has no more. On larger machines powers of
    two show where the efficiency falls below the target for the last time. Of up to 16 numbers in
    between each is tried; else the root is found on the logarithm of the number of cores (Brent's
    method), and its neighbours are tried, because numbers that divide well are better than those
    beside them. There one that divides well and lies farther beyond may be missed.
    """
    counts = _Counts(study, max_memory)
    beyond: int | None = None
    # from above: what lies below the last one that keeps it is not replayed
    for rung in counts.ladder():
        if counts.efficiency(rung) >= target:
            last, beyond = _last_between(counts, target, rung, beyond)
            above = None if beyond is None else (beyond, counts.efficiency(beyond))
            return LargestSplit(target, last, counts.efficiency(last), above)
        beyond = rung
    best = max(counts.known(), key=counts.efficiency, default=None)
    hint = None
    if best is not None:
        most = f"{100 * counts.efficiency(best):.1f}"
        near = float(most) >= 100 * target  # as it is printed it would be enough
        hint = (
            f"the highest is {'slightly less' if near else f'{most} %'}, on {plural(best, 'core')}"
        )
    raise UsageError(
        f"{study.signature.name}: no number of cores has a parallel efficiency of "
        f"{100 * target:g} %",
        hint,
    )


def _last_between(
    counts: _Counts, target: float, low: int, high: int | None
) -> tuple[int, int | None]:
    """The last number that keeps the target below one that does not, and the next that does not."""
    if high is None:
        return low, None
    if (between := counts.few_between(low, high)) is not None:
        for cores in reversed(between):
            if counts.is_possible(cores):
                if counts.efficiency(cores) >= target:
                    return cores, high
                high = cores
        return low, high
    _search_root(counts, target, low, high)
    # what the search has seen on its way tells where the last one that keeps it may be
    last = max(n for n in counts.known() if n < high and counts.efficiency(n) >= target)
    return _last_of_neighbours(counts, target, last, high)


def _search_root(counts: _Counts, target: float, low: int, high: int) -> None:
    """Look where the efficiency crosses the target between two numbers on either side of it."""
    from scipy.optimize import brentq

    def excess(logarithm: float) -> float:
        cores = counts.nearest(counts.further(round(math.exp(logarithm)), 0), low, high)
        return counts.efficiency(low if cores is None else cores) - target

    step = math.log(counts.further(low, 1) / low)
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
    """Numbers of cores, single ones within a node and whole nodes beyond, with their efficiency."""

    def __init__(self, study: Study, max_memory: float | None) -> None:
        self._study = study
        self._max_memory = max_memory
        self._drawn = study.sources(draws=0)
        nodes, self._node = study.allocation.available(study.profile.topology)
        self._most = self._node * nodes
        self._possible: dict[int, bool] = {}
        self._known: dict[int, float] = {}

    def known(self) -> list[int]:
        """Numbers whose efficiency has been looked at."""
        return list(self._known)

    def is_possible(self, cores: int) -> bool:
        """Whether the number has a split."""
        if cores not in self._possible:
            self._possible[cores] = bool(self._evaluated(cores, replayed=False))
        return self._possible[cores]

    def efficiency(self, cores: int) -> float:
        """Parallel efficiency of the fastest split; ValueError without any."""
        if cores not in self._known:
            if not self.is_possible(cores):
                raise ValueError(f"{cores} cores have no split")
            found = self._evaluated(cores)
            compared = [one for one in found if is_compared(one, found)]
            fastest = min(compared, key=lambda one: nominal(one.runtime))
            self._known[cores] = nominal(fastest.efficiency)
        return self._known[cores]

    def _evaluated(self, cores: int, *, replayed: bool = True) -> list[Evaluated]:
        study, drawn = self._study, self._drawn
        return evaluate_all(study, drawn, cores, self._max_memory, replayed=replayed)[0]

    def further(self, cores: int, steps: int) -> int:
        """Some steps up or down: a core within a node, else a whole node."""
        if cores + steps <= self._node:
            return max(cores + steps, 1)
        return self._node * max(math.ceil(cores / self._node) + steps, 1)

    def nearest(self, cores: int, low: int, high: int) -> int | None:
        """The nearest number that has a split; None if that is too far."""
        near = (self.further(cores, sign * n) for n in range(_FARTHEST + 1) for sign in (-1, 1))
        return next((n for n in near if low <= n <= high and self.is_possible(n)), None)

    def few_between(self, low: int, high: int) -> list[int] | None:
        """Numbers between two, ascending; None if they are many."""
        steps = (self.further(low, step) for step in range(1, _EACH + 2))
        found = list(takewhile(lambda cores: cores < high, steps))
        return found if len(found) <= _EACH else None

    def ladder(self) -> Iterator[int]:
        """Numbers that have a split, descending: each of few, else near the powers of two."""
        nodes = self._most // self._node
        single = range(1, self._node) if self._node <= _EACH else _powers(self._node)
        whole = range(1, nodes + 1) if nodes <= _EACH else [*_powers(nodes), nodes]
        lower = self._most + 1
        for rung in reversed([*single, *(self._node * n for n in whole)]):
            found = self.nearest(rung, 1, self._most)
            if found is not None and found < lower:
                lower = found
                yield found


def _powers(limit: int) -> list[int]:
    """Powers of two below a limit."""
    return [2**n for n in range((limit - 1).bit_length())]
