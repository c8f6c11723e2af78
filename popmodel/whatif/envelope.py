"""The greatest of some planes over a box, by the corners of what lies above it.

Double description (T. S. Motzkin, H. Raiffa, G. L. Thompson, R. M. Thrall, Contributions to the
Theory of Games II (1953) 51): the solid above the planes is known by its faces and its corners at
once. Another plane cuts off the corners below it; the new ones are where it crosses the edges
between those that go and those that stay. Two corners have an edge between them if no third one
lies on all faces that they share (K. Fukuda, A. Prodon, LNCS 1120 (1996) 91), which also holds
where more faces than needed meet in a corner.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

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
        found: list[float] = self.points[1:, -2].tolist()
        return found

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
