"""What measured runs have taught of the uncertain inputs of predictions: carried by a signature.

Every uncertain input of a prediction is a function of a standard normal score
(`popmodel.model.uncertainty`). Measured runs move these scores, narrow them, and tie them to each
other; so what is learnt is a normal distribution of the scores, from which predictions draw in
place of the standard one. `popmodel.fit.calibrate` makes it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from popmodel.base import arrays
from popmodel.base.values import NamedTuple, dataclass

Array = NDArray[np.float64]

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
