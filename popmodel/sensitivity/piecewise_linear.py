"""A convex piecewise linear function of one parameter from few of its values and slopes.

Where the tangents at the ends of an interval cross, the function either lies on them, and the
crossing is its breakpoint, or above them, and a tangent there splits the interval. k pieces take at
most 2k + 1 values. The tangents support the function everywhere, so the greatest of them is the
function itself as soon as every crossing lies on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from popmodel.base.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray


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


class LinearCurve(Protocol):
    """A convex piecewise linear function that does not fall."""

    def tangent(self, point: float, *, from_right: bool = True) -> Tangent:
        """The tangent at a point; at a breakpoint that of the piece to its right or left."""
        ...

    def tangents(self, points: Sequence[float]) -> Sequence[Tangent]:
        """Those of the pieces to the right of some points."""
        ...


@dataclass(frozen=True)
class LinearPieces:
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


def pieces(curve: LinearCurve, low: float, high: float, *, most: int = MOST) -> LinearPieces:
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
        middles = curve.tangents([x for _, _, x in crossings])
        for (left, right, x), middle in zip(crossings, middles, strict=True):
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
) -> LinearPieces:
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
    return LinearPieces(
        points, (*values, kept[-1](high)), tuple(line.slope for line in kept), error
    )


def _overtakes(line: Tangent, other: Tangent, low: float) -> float:
    """Where a line of larger or equal slope rises above another."""
    rise = line.slope - other.slope
    below = other(low) - line(low)
    if rise <= 0:
        return math.inf if below > 0 else low
    return low + below / rise if below > 0 else low


# The greatest of some planes over a box, by the corners of what lies above it.
#
# Double description (T. S. Motzkin, H. Raiffa, G. L. Thompson, R. M. Thrall, Contributions to the
# Theory of Games II (1953) 51): the solid above the planes is known by its faces and its corners at
# once. Another plane cuts off the corners below it; the new ones are where it crosses the edges
# between those that go and those that stay. Two corners have an edge between them if no third one
# lies on all faces that they share (K. Fukuda, A. Prodon, LNCS 1120 (1996) 91), which also holds
# where more faces than needed meet in a corner.


_SAME = 1e-12
"""Of what a height is the sum of: planes that are nearer meet."""


@dataclass(frozen=True)
class Plane:
    """A linear function ``constant + slopes[0] x[0] + slopes[1] x[1] + ...``."""

    constant: float
    slopes: tuple[float, ...]

    def __call__(self, *point: float) -> float:
        """Height at a point."""
        return self.constant + sum(s * x for s, x in zip(self.slopes, point, strict=True))


@dataclass(frozen=True, eq=False)
class Envelope:
    """The greatest of some planes over a box of D dimensions."""

    # float64[K, D + 2]: Of the corners of what lies above: the point in the box, the height, and 1;
    # then the direction upwards, whose last number is 0, as the first row.
    points: NDArray[np.float64]
    # bool[K, F]: Which corner lies on which face: two sides of the box for each dimension, then the
    # planes.
    on: NDArray[np.bool_]
    planes: tuple[Plane, ...]  # All that were added

    @property
    def corners(self) -> list[tuple[float, ...]]:
        """The points of the box above which the corners are."""
        return [tuple(row) for row in self.points[1:, :-2].tolist()]

    @property
    def heights(self) -> list[float]:
        """Heights of the corners."""
        heights: list[float] = self.points[1:, -2].tolist()
        return heights

    def greatest(self) -> tuple[Plane, ...]:
        """Planes that are greatest on more than an edge; no other face has all their corners."""
        on = self.on[1:].astype(np.int64)
        shared, size = on.T @ on, on.sum(axis=0)
        within = shared == size[:, None]  # face i has no corner that face j has not
        smaller = within & (size[:, None] < size)
        count = np.arange(len(size))
        again = within & (size[:, None] == size) & (count[:, None] > count)
        kept = ~(smaller | again).any(axis=1)
        first = len(kept) - len(self.planes)
        return tuple(plane for plane, one in zip(self.planes, kept[first:], strict=True) if one)

    def with_(self, plane: Plane) -> Envelope:
        """Add a plane. It is returned as it is where the plane is above it nowhere."""
        face = np.array([*plane.slopes, -1.0, plane.constant])
        slack = -self.points @ face
        slack[np.abs(slack) <= _SAME * (np.abs(self.points) @ np.abs(face))] = 0.0
        below = np.flatnonzero(slack < 0)
        if not len(below):
            return self
        keeps, goes = self._edges(np.flatnonzero(slack > 0), below)
        high, low = slack[keeps, None], slack[goes, None]
        new = high * self.points[goes] - low * self.points[keeps]
        new /= new[:, -1:]
        stay = slack >= 0
        on = np.concatenate([self.on[stay], self.on[keeps] & self.on[goes]])
        mine = np.concatenate([slack[stay] == 0, np.ones(len(new), np.bool_)])
        points = np.concatenate([self.points[stay], new])
        return Envelope(points, np.column_stack([on, mine]), (*self.planes, plane))

    def _edges(
        self, some: NDArray[np.int64], others: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Pairs of corners, one of some and one of others, with an edge between them."""
        dimensions = self.points.shape[1] - 2
        on = self.on.astype(np.float32)  # products of small whole numbers, exact and fast
        one, other = np.nonzero(on[some] @ on[others].T >= dimensions)
        one, other = some[one], others[other]
        shared = on[one] * on[other]
        with_all = (shared @ on.T == shared.sum(axis=1)[:, None]).sum(axis=1)
        edge = with_all == 2
        return one[edge], other[edge]


def above(plane: Plane, box: Sequence[tuple[float, float]]) -> Envelope:
    """Return the envelope of one plane."""
    corners = list(product(*box))
    points = [[*corner, plane(*corner), 1.0] for corner in corners]
    up = [*[0.0] * len(box), 1.0, 0.0]
    sides = list(product(*[((True, False), (False, True))] * len(box)))
    on = [[one for side in corner for one in side] + [True] for corner in sides]
    return Envelope(
        np.array([up, *points]),
        np.array([[True] * (2 * len(box)) + [False], *on]),
        (plane,),
    )


# A convex function of a few parameters as the few planes that make it.
#
# Cutting planes (J. E. Kelley, J. SIAM 8 (1960) 703): the greatest of some tangent planes lies
# below the function. Over each plane's part of the box their quotient is quasi-concave, a linear
# function over a convex one, so that it is least at a corner of a part. The next plane touches
# there, until no corner shows more than is allowed; the last gap bounds the error everywhere, not
# only where it was looked at.


Point: TypeAlias = tuple[float, ...]

_BESIDE = 2
"""Planes that are added with the best one, before heights at new corners are asked for: heights of
many points at once cost less."""


class Surface(Protocol):
    """A convex function."""

    def heights(self, points: Sequence[Point]) -> Sequence[float]:
        """Value at each point."""
        ...

    def plane(self, point: Point) -> Plane:
        """A plane that touches the function at a point and lies nowhere above it."""
        ...


@dataclass(frozen=True)
class Planes:
    """The greatest of some planes over a box."""

    planes: tuple[Any, ...]  # Each is the greatest somewhere
    error: float  # The largest part of its value by which the function lies above them

    def __call__(self, *point: float) -> float:
        """Height of the greatest plane."""
        return float(max(plane(*point) for plane in self.planes))


def planes(
    surface: Surface,
    box: Sequence[tuple[float, float]],
    *,
    error: float,
    touching: Sequence[Point] = (),
    most: int = 128,
) -> Planes:
    """Find few planes whose greatest is a convex function up to an error."""
    envelope = above(surface.plane(tuple(low for low, _ in box)), box)
    for point in touching:
        envelope = envelope.with_(surface.plane(point))
    most += len(envelope.planes) - 1
    heights: dict[Point, float] = {}
    while True:
        new = [corner for corner in dict.fromkeys(envelope.corners) if corner not in heights]
        heights.update(zip(new, surface.heights(new), strict=True))
        gap, corner = _worst(envelope, heights)
        if gap <= error or len(envelope.planes) >= most:
            return Planes(envelope.greatest(), max(gap, 0.0))
        cut = envelope.with_(surface.plane(corner))
        if cut is envelope:  # the gap is of rounding
            return Planes(envelope.greatest(), gap)
        for _ in range(_BESIDE):
            gap, corner = _worst(cut, heights)
            if gap > error and len(cut.planes) < most:
                cut = cut.with_(surface.plane(corner))
        envelope = cut


def _worst(envelope: Envelope, heights: Mapping[Point, float]) -> tuple[float, Point]:
    """The largest gap at a corner whose height is known."""
    gaps = [
        (1 - low / heights[corner] if heights[corner] else 0.0, corner)
        for corner, low in zip(envelope.corners, envelope.heights, strict=True)
        if corner in heights
    ]
    return max(gaps, default=(0.0, ()))
