"""Measured points, and numbers with their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popmodel.base.values import dataclass

Array = NDArray[np.float64]

END = 1.6448536269514715
"""Quantile of 95 % of the standard normal distribution."""
SMALLEST_ERROR = 1e-6
"""Relative; a value without error, such as a count, is taken as known to this."""
UNKNOWN_ERROR = 0.015
"""Relative error of a value whose error nobody stated: what runs on a quiet machine repeat to."""
_STATED_FREEDOM = 4  # degrees of freedom that a stated error is worth
_UNKNOWN_FREEDOM = 1  # and `UNKNOWN_ERROR`
_CHANCE = 1.6  # of an error of n points, over its expectation, times the root of n
_APART = 3.0  # standard deviations
_FAR_APART = 0.2  # of the values, where no error is known


@dataclass(frozen=True)
class Sample:
    """A quantity at one configuration."""

    # P and T.
    processes: int
    threads: int
    value: float  # Of the quantity; not negative
    # Of the problem, such as N; all above 0.
    parameters: Mapping[str, float] = field(default_factory=dict)
    # Standard deviation of the logarithm of the value, other runs of the same configuration
    # considered; 0 for what is exact, None if it is not known.
    relative_error: float | None = None

    def __post_init__(self) -> None:
        if self.processes < 1 or self.threads < 1:
            raise ValueError("processes and threads must be at least 1")
        if not (math.isfinite(self.value) and self.value >= 0):
            raise ValueError(f"a value must be finite and not negative, not {self.value!r}")
        if self.relative_error is not None and not 0 <= self.relative_error < math.inf:
            raise ValueError("a relative error must be finite and not negative")
        for name, value in self.parameters.items():
            if not 0 < value < math.inf:
                raise ValueError(f"parameter {name} must be above 0, not {value!r}")

    @property
    def configuration(self) -> dict[str, float]:
        """P, T and the parameters, by name."""
        return {"P": float(self.processes), "T": float(self.threads), **self.parameters}

    @property
    def place(self) -> str:
        """The configuration for people: ``P = 8, T = 2, N = 64``."""
        return described(self.configuration)


class Interval(NamedTuple):
    """A number with the ends of its 90 % interval."""

    value: float
    low: float
    high: float


def student(freedom: float) -> float:
    """Quantile of 95 % of Student's distribution."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.95)) if freedom < 1000 else END


def described(configuration: Mapping[str, float]) -> str:
    """Name a configuration for people: ``P = 8, T = 2, N = 64``."""
    return ", ".join(f"{name} = {value:.12g}" for name, value in configuration.items())


@dataclass(frozen=True)
class LawPoints:
    """Samples as arrays, those of the same configuration as one."""

    configurations: Mapping[str, Array]  # P, T and the parameters
    # Values, and the standard deviations of their logarithms.
    values: Array
    errors: Array
    freedom: int  # Degrees of freedom that stand behind the errors
    notes: tuple[str, ...]  # Where samples of the same configuration contradict each other

    def __len__(self) -> int:
        return len(self.values)

    def configuration(self, row: int) -> dict[str, float]:
        """The configuration of one point."""
        return {name: float(column[row]) for name, column in self.configurations.items()}

    def chosen(self, rows: NDArray[np.bool_]) -> LawPoints:
        """Some of the points."""
        columns = {name: column[rows] for name, column in self.configurations.items()}
        return LawPoints(columns, self.values[rows], self.errors[rows], self.freedom, self.notes)

    @property
    def varied(self) -> tuple[str, ...]:
        """Names of what differs between points."""
        return tuple(name for name, column in self.configurations.items() if np.ptp(column) > 0)

    @property
    def middle(self) -> int:
        """The point next to the middle on logarithmic scales; of two, the one with more P."""
        columns = np.log(np.array([*self.configurations.values()]).T)
        spread = np.ptp(columns, axis=0)
        middle = (columns.max(axis=0) + columns.min(axis=0)) / 2
        apart = (columns - middle) / np.where(spread > 0, spread, 1)
        distance = np.round((apart**2).sum(axis=1), 9)
        return int(np.lexsort((-columns[:, 1], -columns[:, 0], distance))[0])

    @property
    def expected_error(self) -> float:
        """What a true form is off at points that are left out, at most by chance."""
        mean = len(self) / float((self.errors**-2.0).sum())
        return math.sqrt(mean) * (1 + _CHANCE / math.sqrt(len(self)))

    def known_at(self, name: str) -> str:
        """Say where all points are of what does not differ between them."""
        return f"known at {name} = {self.configurations[name][0]:g} only"


def points_of(samples: Sequence[Sample]) -> LawPoints:
    """Merge samples of the same configuration; say which of them contradict each other.

    Where errors are not stated, `UNKNOWN_ERROR` stands for them, together with the differences
    between samples of the same configuration.
    """
    if not samples:
        raise ValueError("a law needs at least one sample")
    names = list(samples[0].configuration)
    groups: dict[tuple[float, ...], list[Sample]] = {}
    for sample in samples:
        if set(sample.configuration) != set(names):
            raise ValueError(f"{sample.place}: all samples must have the same parameters")
        groups.setdefault(tuple(sample.configuration[name] for name in names), []).append(sample)
    unknown, freedom = _error_of_unstated(list(groups.values()))
    values, errors, notes = [], [], []
    for group in groups.values():
        stated = np.array(
            [
                unknown if sample.relative_error is None else sample.relative_error
                for sample in group
            ]
        )
        stated = np.maximum(stated, SMALLEST_ERROR)
        value, error, note = _merged(group, stated)
        values.append(value)
        errors.append(error)
        notes += note
    columns = np.array(list(groups)).T
    return LawPoints(
        dict(zip(names, columns, strict=True)),
        np.array(values),
        np.array(errors),
        freedom,
        tuple(notes),
    )


def _error_of_unstated(groups: Sequence[Sequence[Sample]]) -> tuple[float, int]:
    """Relative error of one sample from repeats, and its degrees of freedom."""
    if all(sample.relative_error is not None for group in groups for sample in group):
        return UNKNOWN_ERROR, _STATED_FREEDOM
    squares, freedom = _UNKNOWN_FREEDOM * UNKNOWN_ERROR**2, _UNKNOWN_FREEDOM
    for group in groups:
        logs = [
            math.log(sample.value)
            for sample in group
            if sample.value and sample.relative_error is None
        ]
        if len(logs) > 1:
            squares += float(np.var(logs)) * len(logs)
            freedom += len(logs) - 1
    return math.sqrt(squares / freedom), freedom


def _merged(group: Sequence[Sample], errors: Array) -> tuple[float, float, list[str]]:
    """Weighted geometric mean of samples of one configuration, its error, and a contradiction."""
    values = np.array([sample.value for sample in group])
    if len(group) == 1:
        return float(values[0]), float(errors[0]), []
    if not values.all():
        note = [] if not values.any() else [f"{group[0].place}: once 0 and once not"]
        return float(values.mean()), float(errors.min()), note
    logs, weights = np.log(values), errors**-2
    mean = float(logs @ weights / weights.sum())
    error = float(weights.sum() ** -0.5)
    pulls = np.abs(logs - mean) / errors
    known = all(sample.relative_error is not None for sample in group)
    apart = bool(pulls.max() > _APART) if known else float(np.ptp(logs)) > _FAR_APART
    if not apart:
        return math.exp(mean), error, []
    error = max(error, float(np.std(logs, ddof=1)) / math.sqrt(len(group)))
    listed = f"{values.min():.4g} and {values.max():.4g}"
    return math.exp(mean), error, [f"{group[0].place}: values contradict each other: {listed}"]


def fit_two(first: Array, second: Array, values: Array, errors: Array) -> tuple[Array, Array]:
    """Coefficients of many sums of two terms at once, and their misfits.

    As `scipy.optimize.nnls` of each: both coefficients where these are not negative, else the
    better of the two terms alone. A law with no value above 0 at some point has an infinite misfit.

    Parameters
    ----------
    first, second
        Terms at the points, shape (m, n).
    values, errors
        Of the points, and their relative errors, shape (n).

    Returns
    -------
    Coefficients, shape (m, 2), and the sum of squares of the relative residuals over the errors,
    shape (m).
    """
    terms = np.stack([first, second], axis=-1) / (values * errors)[:, None]  # (m, n, 2)
    wanted = 1 / errors
    products = np.einsum("mni,mnj->mij", terms, terms)
    sums = np.einsum("mni,n->mi", terms, wanted)
    with np.errstate(all="ignore"):
        determinant = products[:, 0, 0] * products[:, 1, 1] - products[:, 0, 1] ** 2
        both = np.stack(
            [
                products[:, 1, 1] * sums[:, 0] - products[:, 0, 1] * sums[:, 1],
                products[:, 0, 0] * sums[:, 1] - products[:, 0, 1] * sums[:, 0],
            ],
            axis=1,
        ) / determinant[:, None]  # fmt: skip
        alone = sums / np.diagonal(products, axis1=1, axis2=2)
        none = np.zeros(len(both))
        tried = np.stack(
            [both, np.stack([alone[:, 0], none], 1), np.stack([none, alone[:, 1]], 1)]
        )  # (3, m, 2)
        model = np.einsum("mni,kmi->kmn", terms, tried)
        misfit = ((model - wanted) ** 2).sum(axis=2)
        able = (tried >= 0).all(axis=2) & (model > 0).all(axis=2) & np.isfinite(misfit)
    misfit = np.where(able, misfit, np.inf)
    best, rows = misfit.argmin(axis=0), np.arange(len(both))
    return tried[best, rows], misfit[best, rows]
