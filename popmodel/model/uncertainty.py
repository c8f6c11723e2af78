"""Draws of uncertain quantities: reproducible, vectorised, each quantity only when it is used.

A quantity with an interval is drawn from a two-piece log-normal distribution whose median is the
value and whose 5 % and 95 % quantiles are the interval's ends. Ratios, such as efficiencies, are
then computed inside each draw, so every identity between them holds in every draw; formulas for
the propagation of errors would break them.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.arrays import quantile
from popmodel.expressions.elementary import Value, numbers
from popmodel.machine.quantity import Quantity
from popmodel.machine.register import BY_CORES
from popmodel.model.changes import acts_on
from popmodel.values import dataclass

Array = NDArray[np.float64]

DEFAULT_COUNT = 400
_BINS = 10
_SMALLEST_SHARE = 0.03  # three standard deviations of what chance gives with 400 draws
# Quantiles of the standard normal distribution, written out: `statistics` takes long to import.
_END = 1.6448536269514715  # 95 %: where low and high lie, in standard deviations
_REACH = 2.3263478740408408  # 99 %: draws beyond are cut: intervals say nothing about tails


class Draws:
    """Values of named quantities, as arrays over the draws; draw 0 is the best estimate.

    Entries of one table or list (``openmp.parallel_for.seconds[3]``, ``core.freq.16``) vary
    together: they come from the same measurement, and what makes one of them large makes the
    others large.

    Parameters
    ----------
    quantities : mapping of str to Quantity
        By path.
    count : int
        Number of draws besides the best estimate.
    seed : int
        Seed; a quantity's draws depend on it and on the quantity's name only.
    factors : mapping of str to value, optional
        What-if factors: a quantity is multiplied by that of the longest path it begins with. A
        factor may be an array over the draws.
    """

    def __init__(
        self,
        quantities: Mapping[str, Quantity],
        count: int = DEFAULT_COUNT,
        seed: int = 0,
        factors: Mapping[str, Value] | None = None,
    ) -> None:
        self.quantities = quantities
        self.count = count
        self.seed = seed
        self.factors = dict(factors or {})
        self._values: dict[str, Value] = {}
        self._unchanged: dict[str, Value] = {}

    def __getitem__(self, path: str) -> Value:
        """Return a quantity: a float if it is exact, else an array of shape (count + 1,)."""
        if path not in self._values:
            self._values[path] = self.unchanged(path) * self._factor(path)
        return self._values[path]

    def unchanged(self, path: str) -> Value:
        """Return a quantity without what-if factors, in the same draws."""
        if path not in self._unchanged:
            quantity = self.quantities[path]
            value: Value = quantity.value
            if quantity.is_uncertain and self.count:
                value = _spread(quantity, self.scores(group(path)))
            self._unchanged[path] = value
        return self._unchanged[path]

    @property
    def used(self) -> list[str]:
        """Paths of the quantities that were asked for."""
        return sorted(self._values)

    def scores(self, name: str) -> Array:
        """Return the standard normal scores of a group of quantities, 0 for the best estimate.

        One value from each of ``count`` equally likely strata (Latin hypercube), so that few draws
        give steady quantiles.
        """
        rng = np.random.default_rng([self.seed, zlib.crc32(name.encode())])
        return np.concatenate([[0.0], rng.permutation(_strata(self.count))])

    def _factor(self, path: str) -> Value:
        matching = [prefix for prefix in self.factors if acts_on(prefix, path)]
        return self.factors[max(matching, key=len)] if matching else 1.0


@cache
def _strata(count: int) -> Array:
    """Middles of equally likely strata of the standard normal distribution; read only."""
    from statistics import NormalDist

    normal = NormalDist()
    middles = [normal.inv_cdf((i + 0.5) / count) for i in range(count)]
    strata: Array = np.clip(middles, -_REACH, _REACH)
    strata.flags.writeable = False
    return strata


def group(path: str) -> str:
    """Return the name under which a quantity varies together with its neighbours."""
    without_index = re.sub(r"\[\d+\]", "", path)
    table = without_index.rpartition(".")[0]
    return table if table in BY_CORES else without_index


def _spread(quantity: Quantity, scores: Array) -> Array:
    assert quantity.low is not None and quantity.high is not None
    relative = scores / _END
    if quantity.low <= 0 or quantity.value <= 0:  # no logarithm of 0
        below, above = quantity.value - quantity.low, quantity.high - quantity.value
        step = np.where(relative < 0, below, above)
        linear: Array = np.maximum(quantity.value + relative * step, 0.0)
        return linear
    below = np.log(quantity.value / quantity.low)
    above = np.log(quantity.high / quantity.value)
    result: Array = quantity.value * np.exp(relative * np.where(relative < 0, below, above))
    return result


def nominal(value: Value) -> float:
    """Return the best estimate, which is draw 0, of a value with or without draws."""
    return float(numbers(value).flat[0])


LEVEL = 0.90
"""Probability that an interval contains the value, as far as the parameters are concerned."""


def interval(values: Value, level: float = LEVEL) -> tuple[float | None, float | None]:
    """Return the central interval of draws, (None, None) if they do not differ.

    The interval is widened to the best estimate (draw 0) where a threshold in the model, such as a
    working set that just fits a cache, puts it outside.
    """
    array = numbers(values)
    if array.size < 2 or float(np.ptp(array)) == 0.0:
        return None, None
    low, high = (quantile(array[1:], share) for share in ((1 - level) / 2, (1 + level) / 2))
    return min(low, float(array[0])), max(high, float(array[0]))


@dataclass(frozen=True)
class Estimate:
    """A predicted number with its 90 % interval.

    Attributes
    ----------
    value : float
        Best estimate.
    low, high : float or None
        5 % and 95 % quantiles over the uncertain inputs; None if there is no interval.
    why : str
        Why there is none, then.
    """

    value: float
    low: float | None = None
    high: float | None = None
    why: str = "no uncertain input acts on it"

    def to_dict(self) -> dict[str, Any]:
        """Return value, low, high, and why there is no interval where there is none."""
        entry: dict[str, Any] = {"value": self.value, "low": self.low, "high": self.high}
        if self.low is None:
            entry["why"] = self.why
        return entry


def estimate(value: Value) -> Estimate:
    """Return the best estimate of a value with the interval of its draws."""
    return Estimate(nominal(value), *interval(value))


def shares(scores: Mapping[str, Array], result: Value) -> dict[str, float]:
    """Return the share of each group of quantities in the variance of the logarithm of a result.

    First-order variance indices from given draws: the variance of the means over `_BINS` classes
    of a group's scores, less what chance alone gives, over the whole variance (E. Plischke,
    Reliab. Eng. Syst. Saf. 95 (2010) 354, treats such estimators). Thresholds count as well as
    slopes; effects of two groups together do not, so shares need not add up to 1.

    Parameters
    ----------
    scores : mapping of str to array of shape (n + 1,)
        By group, entry 0 for the best estimate.
    result : array of shape (n + 1,)
        Positive values of the result.

    Returns
    -------
    dict of str to float
        Shares above `_SMALLEST_SHARE`, largest first; empty if the result does not vary.
    """
    array = np.log(numbers(result)[1:])
    total = float(np.var(array)) if array.size else 0.0
    if array.size < 4 * _BINS or total <= 1e-24:
        return {}
    found = {}
    for name, values in scores.items():
        classes = np.array_split(array[np.argsort(values[1:], kind="stable")], _BINS)
        between = sum(part.size * (part.mean() - array.mean()) ** 2 for part in classes)
        within = sum(((part - part.mean()) ** 2).sum() for part in classes)
        chance = within / (array.size - _BINS) * (_BINS - 1)
        share = float((between - chance) / (total * array.size))
        if share > _SMALLEST_SHARE:
            found[name] = share
    return dict(sorted(found.items(), key=lambda item: -item[1]))
