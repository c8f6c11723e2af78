"""Classes of message sizes with a line each, and the size at which the protocol changes.

A late receiver tells between which two sizes the change is: the larger message waits for its
receiver, the smaller does not. Where in between, the times of ping-pongs tell, if they jump there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.bench.calibration.fits import Points, fitted, of_fit
from popmodel.bench.calibration.intervals import LEVEL, quantities
from popmodel.bench.calibration.series import Series
from popmodel.machine.checks import may_follow
from popmodel.values import dataclass

Array = NDArray[np.float64]

_MOST_CLASSES = 4
_MARGIN = 0.999  # for numbers that are rounded in the profile
_KNOWN_TO = 0.01  # no size is known better, relatively, than this
_PLAUSIBLE = 6.0  # by how much the criterion may be worse: 20 times less likely


@dataclass(frozen=True)
class Switch:
    """Where messages cease to be sent eagerly."""

    eager: int  # Largest message known to be sent without waiting, bytes
    waiting: int  # Smallest known to wait for its receiver

    def interval(self) -> tuple[int, int]:
        """Ends of the 90 % interval of the largest eager message.

        Thresholds are round numbers as a rule, and so are the sizes that are measured: the lower
        end belongs to it. Otherwise any size in between is as likely on a logarithmic scale.
        """
        reach = self.eager * (self.waiting / self.eager) ** LEVEL if self.eager else 0.0
        return self.eager, max(self.eager, min(int(reach), self.waiting - 1))


@dataclass(frozen=True)
class _Line:
    """A line over consecutive sizes; ``first`` and ``last`` are their indices."""

    first: int
    last: int
    alpha: float
    beta: float
    error: float  # sum of squared relative errors

    def at(self, size: float) -> float:
        return self.alpha + self.beta * size


@dataclass(frozen=True)
class _Cut:
    """Classes as first and last indices of sizes, and how good they are (less is better)."""

    parts: tuple[tuple[int, int], ...]
    score: float


def cut_into_classes(
    sizes: Sequence[int], points: Points, switch: Switch | None = None
) -> tuple[list[dict[str, Any]], Switch | None]:
    """Cut the sizes into classes with a line each, by the corrected Akaike criterion.

    Lines meet as a profile demands (`popmodel.machine.checks.may_follow`). They are fitted to the
    mean of the launches; lines fitted to every launch tell how uncertain they are. Latencies are at
    least the shortest time.
    """
    bytes_ = np.array(sizes, dtype=np.float64)
    typical = np.exp(np.log(points.values).mean(axis=0))
    lines = _lines(bytes_, typical)
    if switch is None:
        cut = _segmentation(bytes_, lines, None)
    else:
        cut, switch = _at_the_jump(bytes_, lines, switch)
    series: dict[str, Series] = {}
    for index, (first, last) in enumerate(cut.parts):
        part = slice(first, last + 1)
        fits, errors = fitted(points, partial(_parameters, bytes_, part))
        best = lines[first, last].alpha, lines[first, last].beta
        source = f"fit to half ping-pongs of {sizes[first]} to {sizes[last]} B, p10"
        for column, name in enumerate(("alpha", "beta")):
            series[f"{index}.{name}"] = _around(
                best[column], fits[:, column], float(errors[column]), points, source
            )
    # a time per byte may be nothing, a latency not
    zero = frozenset(name for name, one in series.items() if one.scale and name.endswith("beta"))
    found = quantities(series, zero=zero, alike=False)
    classes = []
    for index, (_, last) in enumerate(cut.parts):
        upto = sizes[last] if index + 1 < len(cut.parts) else None
        if upto is not None and switch is not None and upto <= switch.eager < sizes[last + 1]:
            upto = switch.eager
        classes.append(
            {"upto": upto, "alpha": found[f"{index}.alpha"], "beta": found[f"{index}.beta"]}
        )
    return classes, switch


def _parameters(sizes: Array, part: slice, times: Array) -> Array:
    """Latency and time per byte of a class, for the times of all sizes."""
    mine = times[part]
    return np.array(_line(sizes[part], mine, mine.min())[:2])


def _around(best: float, fits: Array, error: float, points: Points, source: str) -> Series:
    """Return the series with the spread of the fits to the launches, and the best value as mean.

    Where there is one launch, `error` is what is known of the fit to it.
    """
    if best > 0 and fits.min() > 0:
        fits = fits * best / math.exp(float(np.log(fits).mean()))
        return of_fit(fits, error, points, source)
    fits = fits - fits.mean() + best
    scale = max(float(np.abs(fits).max()), error) or 1e-15
    return Series(
        tuple(fits.tolist()), source, points.batches, scale, error / scale, points.launches
    )


def _at_the_jump(
    sizes: Array, lines: Mapping[tuple[int, int], _Line], switch: Switch
) -> tuple[_Cut, Switch]:
    """Try every measured size that the late receivers leave possible as the end of eager messages.

    The interval spans all that are nearly as good as the best; without a jump that is all there is.
    """
    inside = [int(size) for size in sizes if switch.eager < size < switch.waiting]
    tried = {at: _segmentation(sizes, lines, at) for at in (switch.eager, *inside)}
    best = min(tried, key=lambda at: tried[at].score)
    plausible = [at for at, cut in tried.items() if cut.score < tried[best].score + _PLAUSIBLE]
    if len(plausible) == len(tried):
        return tried[switch.eager], switch
    beyond = min((size for size in inside if size > plausible[-1]), default=switch.waiting)
    # the bound of the class is the best size; the sizes between it and the first plausible one
    # cannot be told from it, and a threshold is stated by where it may begin
    return tried[plausible[0]], Switch(plausible[0], beyond)


def _lines(sizes: Array, times: Array) -> dict[tuple[int, int], _Line]:
    """Fit a line to every run of two sizes or more."""
    least = float(times.min())
    count = len(sizes)
    return {
        (i, j): _Line(i, j, *_line(sizes[i : j + 1], times[i : j + 1], least))
        for i, j in itertools.combinations(range(count), 2)
    }


def _segmentation(sizes: Array, lines: Mapping[tuple[int, int], _Line], switch: int | None) -> _Cut:
    """Choose the number of classes and their bounds; the one at the switch is given."""
    count = len(sizes)
    bytes_ = sizes.tolist()  # thousands of comparisons: plain numbers are faster
    best = _Cut(((0, count - 1),), _criterion(count, lines[0, count - 1].error, 2))
    for classes in range(2, _MOST_CLASSES + 1):
        for ends in itertools.combinations(range(1, count - 2), classes - 1):
            bounds = (-1, *ends, count - 1)
            runs = tuple((a + 1, b) for a, b in itertools.pairwise(bounds))
            if not all(run in lines for run in runs):
                continue
            parts = [lines[run] for run in runs]
            free = 3 * classes - 1 - _at_switch(parts, bytes_, switch)
            if free >= count - 1:
                continue
            score = _criterion(count, sum(part.error for part in parts), free)
            if score < best.score - 1e-9 and _all_meet(parts, bytes_, switch):
                best = _Cut(runs, score)
    return best


def _criterion(count: int, error: float, free: int) -> float:
    """Corrected Akaike criterion of least squares (Hurvich and Tsai, Biometrika 76 (1989) 297)."""
    score = count * math.log(error / count + _KNOWN_TO**2) + 2 * free
    if count - free - 1 > 0:
        score += 2 * free * (free + 1) / (count - free - 1)
    return score


def _is_at(lower: _Line, upper: _Line, sizes: Sequence[float], switch: int | None) -> bool:
    return switch is not None and sizes[lower.last] <= switch < sizes[upper.first]


def _at_switch(parts: Sequence[_Line], sizes: Sequence[float], switch: int | None) -> bool:
    return any(_is_at(a, b, sizes, switch) for a, b in itertools.pairwise(parts))


def _all_meet(parts: Sequence[_Line], sizes: Sequence[float], switch: int | None) -> bool:
    for lower, upper in itertools.pairwise(parts):
        at_switch = _is_at(lower, upper, sizes, switch)
        bound = switch if at_switch and switch is not None else sizes[lower.last]
        if not may_follow(lower.at(bound), upper.at(bound) * _MARGIN, at_switch=at_switch):
            return False
    return True


def _line(sizes: Array, times: Array, least: float) -> tuple[float, float, float]:
    """Fit ``alpha + beta m`` by least squares of relative errors; alpha >= least, beta >= 0.

    Fitted a second time with errors relative to the line: relative to the times, those that came
    out short would count more.
    """
    alpha, beta, _ = _weighted_line(sizes, times, least, times)
    return _weighted_line(sizes, times, least, alpha + beta * sizes)


def _weighted_line(
    sizes: Array, times: Array, least: float, unit: Array
) -> tuple[float, float, float]:
    a, b, one = 1 / unit, sizes / unit, times / unit  # minimise sum (alpha a + beta b - one)**2
    aa, ab, bb = float(a @ a), float(a @ b), float(b @ b)
    sa, sb = float(a @ one), float(b @ one)
    determinant = aa * bb - ab * ab
    alpha, beta = least, 0.0
    if determinant > 1e-12 * aa * bb:
        alpha = (sa * bb - sb * ab) / determinant
        beta = (sb * aa - sa * ab) / determinant
    if beta < 0 or determinant <= 1e-12 * aa * bb:
        alpha, beta = sa / aa, 0.0
    if alpha < least:
        alpha = least
        beta = max((sb - least * ab) / bb, 0.0) if bb else 0.0
    return alpha, beta, float(((alpha * a + beta * b - one) ** 2).sum())
