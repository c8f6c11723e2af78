"""A convex piecewise linear function of one parameter from few of its values and slopes.

Where the tangents at the ends of an interval cross, the function either lies on them, and the
crossing is its breakpoint, or above them, and a tangent there splits the interval. k pieces take at
most 2k + 1 values. The tangents support the function everywhere, so the greatest of them is the
function itself as soon as every crossing lies on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Protocol

from popmodel.values import dataclass

SAME = 1e-11
"""Of the largest value: what is nearer is equal. Clocks of a million operations round to less."""
MOST = 4096
"""Tangents at most; far more than runs of today have pieces."""


@dataclass(frozen=True)
class Tangent:
    """A line that touches a function at a point and lies nowhere above it."""

    at: float
    value: float
    slope: float

    def __call__(self, x: float) -> float:
        """Value of the line at x."""
        return self.value + self.slope * (x - self.at)


class Curve(Protocol):
    """A convex piecewise linear function that does not fall."""

    def tangent(self, point: float, *, from_right: bool = True) -> Tangent:
        """The tangent at a point; at a breakpoint that of the piece to its right or left."""
        ...

    def tangents(self, points: Sequence[float]) -> Sequence[Tangent]:
        """Those of the pieces to the right of some points."""
        ...


@dataclass(frozen=True)
class Pieces:
    """A convex piecewise linear function on an interval."""

    # Ends of the pieces, from the lower end of the interval to the upper: k + 1 of k pieces.
    points: tuple[float, ...]
    values: tuple[float, ...]  # The function there
    slopes: tuple[float, ...]  # Slope of each piece, rising
    # How far the function may lie above the pieces; 0 where all breakpoints are found.
    error: float = 0.0

    def __call__(self, x: float) -> float:
        """Value at a point of the interval."""
        return max(
            value + slope * (x - point)
            for point, value, slope in zip(self.points, self.values, self.slopes, strict=False)
        )

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """Where the slope changes: the ends of pieces inside the interval."""
        return self.points[1:-1]


def pieces(curve: Curve, low: float, high: float, *, most: int = MOST) -> Pieces:
    """Find all pieces of a convex piecewise linear function on an interval."""
    if not low < high:
        raise ValueError(f"an interval from {low} to {high} is empty")
    first, last = curve.tangent(low), curve.tangent(high, from_right=False)
    near = SAME * max(abs(first.value), abs(last.value))
    tangents = [first, last]
    unknown = [(first, last)]
    error = 0.0
    while unknown:
        crossings = [
            (left, right, x)
            for left, right in unknown
            for x in [_crossing(left, right, near)]
            if x is not None
        ]
        unknown = []
        found = curve.tangents([x for _, _, x in crossings])
        for (left, right, x), middle in zip(crossings, found, strict=True):
            above = middle.value - max(left(x), right(x))
            if above <= near:
                continue
            if len(tangents) >= most:
                error = max(error, above)
                continue
            tangents.append(middle)
            unknown += [(left, middle), (middle, right)]
    return _greatest(tangents, low, high, near, error)


def _crossing(left: Tangent, right: Tangent, near: float) -> float | None:
    """Where two tangents cross; None if nothing can lie between them."""
    if left(right.at) >= right.value - near or right(left.at) >= left.value - near:
        return None  # one line goes through both points, and so does the function
    rise = right.slope - left.slope
    x = (left.value - left.slope * left.at - right.value + right.slope * right.at) / rise
    return x if left.at < x < right.at else None


def _greatest(
    tangents: Iterable[Tangent], low: float, high: float, near: float, error: float
) -> Pieces:
    """The greatest of the tangents as pieces."""
    kept: list[Tangent] = []
    begins: list[float] = []
    for line in sorted(tangents, key=lambda one: (one.slope, one(low))):
        if kept and line(high) <= kept[-1](high) + near and line(low) <= kept[-1](low) + near:
            continue
        begin = low
        while kept:
            begin = _overtakes(line, kept[-1], low)
            if begin > begins[-1]:
                break
            kept.pop()
            begins.pop()
            begin = low
        if begin < high and line(high) > (kept[-1](high) + near if kept else -math.inf):
            kept.append(line)
            begins.append(begin)
    points = (*begins, high)
    values = [line(point) for line, point in zip(kept, begins, strict=True)]
    return Pieces(points, (*values, kept[-1](high)), tuple(line.slope for line in kept), error)


def _overtakes(line: Tangent, other: Tangent, low: float) -> float:
    """Where a line of larger or equal slope rises above another."""
    rise = line.slope - other.slope
    below = other(low) - line(low)
    if rise <= 0:
        return math.inf if below > 0 else low
    return low + below / rise if below > 0 else low
