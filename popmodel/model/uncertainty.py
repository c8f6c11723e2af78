"""Draws of uncertain quantities: reproducible, vectorised, each quantity only when it is used.

A quantity with an interval is drawn from a two-piece log-normal distribution whose median is the
value and whose 5 % and 95 % quantiles are the interval's ends. Ratios, such as efficiencies, are
then computed inside each draw, so every identity between them holds in every draw; formulas for
the propagation of errors would break them.

An array over the draws begins with `FIRST` entries that are none: the best estimate, and the best
estimate under either end of what forms the model may take (`FORMS`). They bound every interval, so
that none is narrower than the difference between forms that nobody has decided.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Mapping
from dataclasses import field, replace
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.base import arrays
from popmodel.base.arrays import quantiles
from popmodel.base.expressions.elementary import Value, numbers
from popmodel.base.values import NamedTuple, dataclass
from popmodel.machines.quantity import END, Quantity, around
from popmodel.machines.register import BY_CORES
from popmodel.model.symbols import beginnings

Array = NDArray[np.float64]

DEFAULT_COUNT = 400
FORMS = ("core.overlap",)
"""Quantities that stand for forms of the model between two extremes, their low and high ends."""
FIRST = 3
"""Entries before the draws: the best estimate; with all `FORMS` at their low, their high ends."""
_BINS = 10
_SMALLEST_SHARE = 0.03  # three standard deviations of what chance gives with 400 draws
# Quantiles of the standard normal distribution, written out: `statistics` takes long to import.
_THIRD = 0.43072729929545733  # a third of the distribution lies within so many deviations
REACH = 2.3263478740408408  # 99 %: draws beyond are cut: intervals say nothing about tails


class Draws:
    """Values of named quantities, as arrays over the draws; entry 0 is the best estimate.

    Entries of one table or list (``openmp.parallel_for.seconds[3]``, ``core.freq.16``) vary
    together: they come from the same measurement, and what makes one of them large makes the
    others large.
    """

    def __init__(
        self,
        quantities: Mapping[str, Quantity],
        count: int = DEFAULT_COUNT,
        seed: int = 0,
        factors: Mapping[str, Value] | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        self.quantities = quantities
        self.count = count
        self.seed = seed
        self.factors = dict(factors or {})
        self.calibration = calibration
        self._values: dict[str, Value] = {}
        self._scores: dict[str, Array] = {}
        self._unchanged: dict[str, Value] = {}

    def __getitem__(self, path: str) -> Value:
        """Return a quantity: a float if it is exact, else an array of shape (FIRST + count,)."""
        if path not in self._values:
            self._values[path] = self.unchanged(path) * self.factor(path)
        return self._values[path]

    def unchanged(self, path: str) -> Value:
        """Return a quantity without what-if factors, in the same draws."""
        if path not in self._unchanged:
            quantity, name = self.quantities[path], group(path)
            value: Value = quantity.value
            if (self.count or self._is_calibrated(name)) and quantity.is_uncertain:
                found = spread(quantity, self.scores(name))
                value = found if self.count else float(found[0])
            self._unchanged[path] = value
        return self._unchanged[path]

    @property
    def used(self) -> list[str]:
        return sorted(self._values)

    def scores(self, name: str) -> Array:
        """Return the standard normal scores of a group of quantities, 0 for the best estimate.

        One value from each of ``count`` equally likely strata (Latin hypercube), so that few draws
        give steady quantiles. A form of the model lies between its ends, which draws do not leave;
        where nothing is known of it, either end and all that is between are equally likely. Scores
        that runs have calibrated have the mean, the spread and the correlations that these left.
        """
        if name not in self._scores:
            self._scores[name] = (
                self._calibrated(name) if self._is_calibrated(name) else self._standard(name)
            )
        return self._scores[name]

    def score(self, name: str) -> Value:
        """Return the scores of a name; without draws a number, that of the best estimate."""
        found = self.scores(name)
        return found if self.count else float(found[0])

    def _standard(self, name: str) -> Array:
        found = _unit(name, self.count, self.seed)
        if name in FORMS:  # a new array
            wide = deviation_of(name, self.quantities[name])
            found = np.clip(wide * found, -END, END)
            found[1:FIRST] = -END, END
        return found

    def _is_calibrated(self, name: str) -> bool:
        return self.calibration is not None and name in self.calibration.index

    def _calibrated(self, name: str) -> Array:
        """Scores with the mean and the covariance that runs have left."""
        known = self.calibration
        assert known is not None
        row = known.root[known.index[name]]
        found = np.full(FIRST + self.count, float(known.means[known.index[name]]))
        for other, weight in zip(known.names, row, strict=True):
            if weight:
                found[FIRST:] += weight * drawn_only(_unit(other, self.count, self.seed))
        if name in FORMS:
            deviation = math.sqrt(float(row @ row))
            found[1:FIRST] += END * deviation * np.array([-1.0, 1.0])
            found = np.clip(found, -END, END)
        return found

    def factor(self, path: str) -> Value:
        """Return the what-if factor on a quantity, that of the longest beginning of its path."""
        if not self.factors:
            return 1.0
        return next((self.factors[one] for one in beginnings(path) if one in self.factors), 1.0)


@lru_cache(maxsize=64)  # the runs of a study draw alike
def _unit(name: str, count: int, seed: int) -> Array:
    """Independent standard normal scores, by the name of what they are behind; read only."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    found = np.concatenate([np.zeros(FIRST), rng.permutation(_strata(count).copy())])
    found.flags.writeable = False
    return found


@cache
def _strata(count: int) -> Array:
    """Middles of equally likely strata of the standard normal distribution; read only."""
    from statistics import NormalDist

    normal = NormalDist()
    middles = [normal.inv_cdf((i + 0.5) / count) for i in range(count)]
    strata: Array = np.clip(middles, -REACH, REACH)
    strata.flags.writeable = False
    return strata


@cache
def group(path: str) -> str:
    """Return the name under which a quantity varies together with its neighbours."""
    without_index = re.sub(r"\[\d+\]", "", path)
    table = without_index.rpartition(".")[0]
    return table if table in BY_CORES else without_index


def deviation_of(name: str, quantity: Quantity) -> float:
    """Return the standard deviation of a score before anything was measured of the program.

    1, but for a form of the model of which nothing is known: either end is as likely as the rest.
    """
    return END / _THIRD if name in FORMS and quantity.origin == "assumed" else 1.0


def widened(quantity: Quantity, deviation: float) -> Quantity:
    """Return a quantity with an independent standard deviation of its logarithm added.

    Where it reaches down to 0, which has no logarithm, the upper end moves only.
    """
    value, least, most = quantity.value, *around(quantity.value, deviation)
    low = value if quantity.low is None else quantity.low
    high = value if quantity.high is None else quantity.high
    if low <= 0:
        return replace(quantity, low=low, high=value + math.hypot(high - value, most - value))
    below = math.hypot(math.log(value / low), math.log(value / least))
    above = math.hypot(math.log(high / value), math.log(most / value))
    return replace(quantity, low=value * math.exp(-below), high=value * math.exp(above))


def spread(quantity: Quantity, scores: Array) -> Array:
    """Return the values of an uncertain quantity at standard normal scores."""
    assert quantity.low is not None and quantity.high is not None
    relative = scores / END
    if quantity.low <= 0 or quantity.value <= 0:  # no logarithm of 0
        below, above = quantity.value - quantity.low, quantity.high - quantity.value
        step = np.where(relative < 0, below, above)
        linear = np.maximum(quantity.value + relative * step, min(quantity.low, 0.0))
        return np.clip(linear, quantity.least, quantity.most)
    below = np.log(quantity.value / quantity.low)
    above = np.log(quantity.high / quantity.value)
    result = quantity.value * np.exp(relative * np.where(relative < 0, below, above))
    return np.clip(result, quantity.least, quantity.most)


def score_bounds(quantity: Quantity) -> tuple[float, float]:
    """Return the scores at which an uncertain quantity reaches its bounds."""
    assert quantity.low is not None and quantity.high is not None
    value, least, most = quantity.value, quantity.least, quantity.most
    if quantity.low <= 0 or value <= 0:
        below, above = value - quantity.low, quantity.high - value
        to_least, to_most = value - max(least, min(quantity.low, 0.0)), most - value
    else:
        below, above = math.log(value / quantity.low), math.log(quantity.high / value)
        to_least = math.log(value / least) if least > 0 else math.inf
        to_most = math.log(most / value)
    low = -END * to_least / below if below else -math.inf
    return low, END * to_most / above if above else math.inf


def nominal(value: Value) -> float:
    """Return the best estimate, which is entry 0, of a value with or without draws."""
    return value if type(value) is float else float(numbers(value).flat[0])


def drawn_only(values: Array) -> Array:
    """Drop the entries along the last axis that are no draws."""
    return values[..., FIRST:]


LEVEL = 0.90
"""Probability that an interval contains the value, by what is known of its inputs and laws."""


def interval(values: Value, level: float = LEVEL) -> tuple[float | None, float | None]:
    """Return the central interval of draws, (None, None) if they do not differ.

    The interval is widened to the best estimate, which a threshold in the model, such as a working
    set that just fits a cache, may put outside, and to the ends of the `FORMS`.
    """
    array = numbers(values)
    if array.size <= FIRST or float(np.ptp(array)) == 0.0:
        return None, None
    drawn = drawn_only(array)
    low, high = quantiles(drawn, ((1 - level) / 2, (1 + level) / 2))
    return min(low, float(array[:FIRST].min())), max(high, float(array[:FIRST].max()))


@dataclass(frozen=True)
class Estimate:
    """A predicted number with its 90 % interval."""

    value: float  # Best estimate
    # 5 % and 95 % quantiles over the uncertain inputs and laws, or the ends of the `FORMS` if they
    # lie farther apart; None if there is no interval.
    low: float | None = None
    high: float | None = None
    why: str = "no uncertain input acts on it"  # Why there is none, then

    def to_dict(self) -> dict[str, Any]:
        """Return value, low, high, and why there is no interval where there is none."""
        entry: dict[str, Any] = {"value": self.value, "low": self.low, "high": self.high}
        if self.low is None:
            entry["why"] = self.why
        return entry


def estimate(value: Value) -> Estimate:
    return Estimate(nominal(value), *interval(value))


def shares(scores: Mapping[str, Array], result: Value) -> dict[str, float]:
    """Return the share of each group of quantities in the variance of the logarithm of a result.

    First-order variance indices from given draws: the variance of the means over `_BINS` classes
    of a group's scores, less what chance alone gives, over the whole variance (E. Plischke,
    Reliab. Eng. Syst. Saf. 95 (2010) 354, treats such estimators). Thresholds count as well as
    slopes; effects of two groups together do not, so shares need not add up to 1.
    """
    array = np.log(drawn_only(numbers(result)))
    total = float(np.var(array)) if array.size else 0.0
    if array.size < 4 * _BINS or total <= 1e-24:
        return {}
    starts = np.array([part[0] for part in np.array_split(np.arange(array.size), _BINS)])
    sizes = np.diff(starts, append=array.size)
    found = {}
    for name, values in scores.items():
        ordered = array[np.argsort(drawn_only(values), kind="stable")]
        means = np.add.reduceat(ordered, starts) / sizes
        between = (sizes * (means - array.mean()) ** 2).sum()
        within = ((ordered - np.repeat(means, sizes)) ** 2).sum()
        chance = within / (array.size - _BINS) * (_BINS - 1)
        share = float((between - chance) / (total * array.size))
        if share > _SMALLEST_SHARE:
            found[name] = share
    return dict(sorted(found.items(), key=lambda item: -item[1]))


# What measured runs have taught of the uncertain inputs of predictions: carried by a signature.
#
# Every uncertain input of a prediction is a function of a standard normal score
# (`popmodel.model.uncertainty`). Measured runs move these scores, narrow them, and tie them to each
# other; so what is learnt is a normal distribution of the scores, from which predictions draw in
# place of the standard one. `popmodel.fit.calibrate` makes it.


RESIDUAL = "residual."
"""What the names of residual terms begin with, see `popmodel.model.model_error`."""
TRUSTED = 8.0
"""How many times the largest calibrated P, T, nodes or parameter predictions have an interval."""


class Drift(NamedTuple):
    """A slow change of the speed of computing, see `popmodel.model.model_error`."""

    # By how much the logarithm of a time changes over a doubling: standard deviation.
    deviation: float
    origin: float  # Where it is nothing, in doublings


@dataclass(frozen=True)
class Calibration:
    """What runs on one machine have taught."""

    machine: str  # Name of the profile that the scores refer to
    machine_digest: str  # SHA-256 of the values of its quantities
    # Groups of quantities, laws and residual terms, `popmodel.model.uncertainty.group`.
    names: tuple[str, ...]
    means: Array  # float64[n]: Of their scores
    # float64[n, n]: Lower triangular: scores are ``means + root @ z`` with independent standard
    # normal z.
    root: Array
    # Deviation of what every split has for itself of the error of the law of loops, as a part of
    # that without calibration.
    own: float = 1.0
    noise: float = 0.0  # Standard deviation of the logarithm of the runtime from run to run
    # Residual terms by name: what one standard deviation of their score is, in their unit.
    residuals: Mapping[str, float] = field(default_factory=dict)
    # Slow changes of the speed of computing, by `popmodel.model.model_error.SIZE` and ``ACTIVE``.
    drifts: Mapping[str, Drift] = field(default_factory=dict)
    # Smallest and largest calibrated value of ``P``, ``T``, ``nodes`` and parameters.
    hull: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    # The runs that were used: what they are called, by their digest.
    runs: Mapping[str, str] = field(default_factory=dict)
    # Constants that were changed by hand since: what was learnt of them is forgotten.
    changed: tuple[str, ...] = ()

    @cached_property
    def index(self) -> Mapping[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    @property
    def covariance(self) -> Array:
        """Of the scores; float64[n, n]."""
        return self.root @ self.root.T

    @property
    def deviations(self) -> Array:
        """Standard deviations of the scores; float64[n]."""
        found: Array = np.sqrt(np.sum(self.root**2, axis=1))
        return found

    def only(self, names: set[str]) -> Calibration:
        """Return what is known of some names, the others forgotten."""
        kept = [number for number, name in enumerate(self.names) if name in names]
        if len(kept) == len(self.names):
            return self
        return replace(
            self,
            names=tuple(self.names[number] for number in kept),
            means=self.means[kept],
            root=_triangular(self.root[kept]),
            residuals={name: unit for name, unit in self.residuals.items() if name in names},
        )


def root_of(covariance: Array) -> Array:
    """Return a lower triangular root of a covariance that rounding may have made indefinite."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return _triangular(vectors * np.sqrt(np.maximum(values, 0.0)))


def _triangular(half: Array) -> Array:
    """Return the lower triangular root of ``half @ half.T``."""
    if not len(half):
        return np.zeros((0, 0))
    upper = np.linalg.qr(half.T)[1]
    signs = np.where(np.diag(upper) < 0, -1.0, 1.0)
    root: Array = (upper * signs[:, None]).T
    return root


_SHAPE = re.compile(r"([0-9]{1,4}):")
_MOST = 1e-3  # by which a row of `packed` may differ from length 1


def packed(root: Array) -> str:
    """Return what ties scores to each other as a text: a root of their correlations.

    Rows of a lower triangle of length 1 in single precision, by column, packed by zlib and written
    in the letters of base 85 (RFC 1924); ``"12:..."`` is of 12 scores.
    """
    length = np.sqrt(np.sum(root**2, axis=1))
    rows = root / np.where(length > 0, length, 1.0)[:, None]
    columns = [rows[number:, number] for number in range(len(rows))]
    single = np.concatenate([np.zeros(0), *columns]).astype("<f4")
    return f"{len(rows)}:{arrays.packed(single)}"


def unpacked(text: str) -> Array:
    """Return the root of correlations of `packed`; float64[n, n]."""
    shape = _SHAPE.match(text)
    if shape is None:
        raise ValueError('must begin with the number of scores, such as "12:"')
    count = int(shape[1])
    try:
        values = arrays.unpacked(text[shape.end() :], "<f4", count * (count + 1) // 2)
    except ValueError:
        raise ValueError("is damaged: it cannot be unpacked") from None
    if values is None:
        raise ValueError(f"is damaged: not the correlations of {count} scores")
    root: Array = np.zeros((count, count))
    first = 0
    for number in range(count):
        root[number:, number] = values[first : first + count - number]
        first += count - number
    length = np.sqrt(np.sum(root**2, axis=1))
    if not (np.abs(length - 1) < _MOST).all():  # NaN fails, too
        raise ValueError(f"is damaged: not the correlations of {count} scores")
    root /= length[:, None]
    return root
