"""A convex function of two parameters as the few planes that make it.

Cutting planes (J. E. Kelley, J. SIAM 8 (1960) 703): the greatest of some tangent planes lies below
the function. Over each plane's part of the rectangle their quotient is quasi-concave, a linear
function over a convex one, so that it is least at a corner of a part. The next plane touches there,
until no corner shows more than is allowed; the last gap bounds the error everywhere, not only where
it was looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from popmodel.values import dataclass

__all__ = ["Plane", "Planes", "Surface", "planes"]

Corner: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Plane:
    """``constant + latency x + inverse_bandwidth y``: s, from seconds and seconds per byte.

    The constant is the time of a chain of computation and overheads, the factors are the latencies
    and the bytes that the chain pays.
    """

    constant: float
    latency: float
    inverse_bandwidth: float

    def __call__(self, x: float, y: float) -> float:
        """Height of the plane."""
        return self.constant + self.latency * x + self.inverse_bandwidth * y


class Surface(Protocol):
    """A convex function of two parameters."""

    def heights(self, points: Sequence[Corner]) -> Sequence[float]:
        """Value at each point."""
        ...

    def plane(self, point: Corner) -> Plane:
        """A plane that touches the function at a point and lies nowhere above it."""
        ...


@dataclass(frozen=True)
class Planes:
    """The greatest of some planes over a rectangle.

    Attributes
    ----------
    planes : tuple of Plane
        Each is the greatest somewhere.
    error : float
        The largest part of its value by which the function lies above them.
    """

    planes: tuple[Plane, ...]
    error: float

    def __call__(self, x: float, y: float) -> float:
        """Height of the greatest plane."""
        return max(plane(x, y) for plane in self.planes)


def planes(
    surface: Surface,
    x: tuple[float, float],
    y: tuple[float, float],
    *,
    error: float,
    most: int = 64,
) -> Planes:
    """Find few planes whose greatest is a convex function up to an error.

    Parameters
    ----------
    surface : Surface
        The function, at least 0.
    x, y : pair of float
        The rectangle.
    error : float
        The part of its value by which the function may lie above the planes.
    most : int
        Planes at most.

    Returns
    -------
    Planes
        Those that are greatest somewhere, and the largest gap that is left.
    """
    rectangle = [(x[0], y[0]), (x[1], y[0]), (x[1], y[1]), (x[0], y[1])]
    first = surface.plane(rectangle[0])
    parts: list[tuple[Plane, list[Corner]]] = [(first, rectangle)]
    heights: dict[Corner, float] = {}
    found = 1
    while True:
        new = dict.fromkeys(c for _, part in parts for c in part if c not in heights)
        heights.update(zip(new, surface.heights(list(new)), strict=True))
        gap, corner = max(
            (1 - plane(*corner) / heights[corner] if heights[corner] else 0.0, corner)
            for plane, part in parts
            for corner in part
        )
        if gap <= error or found >= most:
            return Planes(tuple(plane for plane, _ in parts), max(gap, 0.0))
        cut = _with(surface.plane(corner), parts, rectangle)
        if cut == parts:  # the gap is of rounding
            return Planes(tuple(plane for plane, _ in parts), gap)
        parts = cut
        found += 1


def _with(
    new: Plane, parts: Sequence[tuple[Plane, list[Corner]]], rectangle: list[Corner]
) -> list[tuple[Plane, list[Corner]]]:
    """The parts of all planes when one more takes its own from the others."""
    own = rectangle
    kept = []
    for plane, part in parts:
        rest = _where_above(plane, new, part)
        if rest:
            kept.append((plane, rest))
        own = _where_above(new, plane, own)
    return [*kept, (new, own)] if own else kept


def _where_above(plane: Plane, other: Plane, part: list[Corner]) -> list[Corner]:
    """The part of a convex polygon in which one plane is above another; empty without area.

    Source: I. Sutherland, G. Hodgman, Commun. ACM 17 (1974) 32.
    """
    above = [plane(*corner) - other(*corner) for corner in part]
    if all(height >= 0 for height in above):
        return part
    if all(height <= 0 for height in above):
        return []
    found: list[Corner] = []
    for index, (x, y) in enumerate(part):
        (x0, y0), before, here = part[index - 1], above[index - 1], above[index]
        if min(before, here) < 0 < max(before, here):
            share = before / (before - here)
            found.append((x0 + share * (x - x0), y0 + share * (y - y0)))
        if here >= 0:
            found.append((x, y))
    return found
