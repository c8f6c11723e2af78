"""A convex function of a few parameters as the few planes that make it.

Cutting planes (J. E. Kelley, J. SIAM 8 (1960) 703): the greatest of some tangent planes lies below
the function. Over each plane's part of the box their quotient is quasi-concave, a linear function
over a convex one, so that it is least at a corner of a part. The next plane touches there, until no
corner shows more than is allowed; the last gap bounds the error everywhere, not only where it was
looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

from popmodel.values import dataclass
from popmodel.whatif.envelope import Envelope, Plane, above

__all__ = ["Plane", "Planes", "Point", "Surface", "planes"]

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

    planes: tuple[Plane, ...]  # Each is the greatest somewhere
    error: float  # The largest part of its value by which the function lies above them

    def __call__(self, *point: float) -> float:
        """Height of the greatest plane."""
        return max(plane(*point) for plane in self.planes)


def planes(
    surface: Surface,
    box: Sequence[tuple[float, float]],
    *,
    error: float,
    touching: Sequence[Point] = (),
    most: int = 128,
) -> Planes:
    """Find few planes whose greatest is a convex function up to an error."""
    found = above(surface.plane(tuple(low for low, _ in box)), box)
    for point in touching:
        found = found.with_(surface.plane(point))
    most += len(found.planes) - 1
    heights: dict[Point, float] = {}
    while True:
        new = [corner for corner in dict.fromkeys(found.corners) if corner not in heights]
        heights.update(zip(new, surface.heights(new), strict=True))
        gap, corner = _worst(found, heights)
        if gap <= error or len(found.planes) >= most:
            return Planes(found.greatest(), max(gap, 0.0))
        cut = found.with_(surface.plane(corner))
        if cut is found:  # the gap is of rounding
            return Planes(found.greatest(), gap)
        for _ in range(_BESIDE):
            gap, corner = _worst(cut, heights)
            if gap > error and len(cut.planes) < most:
                cut = cut.with_(surface.plane(corner))
        found = cut


def _worst(found: Envelope, heights: Mapping[Point, float]) -> tuple[float, Point]:
    """The largest gap at a corner whose height is known."""
    gaps = [
        (1 - low / heights[corner] if heights[corner] else 0.0, corner)
        for corner, low in zip(found.corners, found.heights, strict=True)
        if corner in heights
    ]
    return max(gaps, default=(0.0, ()))
