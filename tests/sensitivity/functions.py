"""Greatest of some lines or planes: convex functions whose pieces are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from popmodel.sensitivity.piecewise_linear import Plane, Tangent


@dataclass
class Lines:
    """The greatest of some lines, given by value at 0 and slope; counts what it is asked."""

    lines: Sequence[tuple[float, float]]
    asked: list[float] = field(default_factory=list)

    def value(self, x: float) -> float:
        return max(value + slope * x for value, slope in self.lines)

    def tangent(self, point: float, *, from_right: bool = True) -> Tangent:
        self.asked.append(point)
        value = self.value(point)
        slopes = [s for v, s in self.lines if v + s * point >= value * (1 - 1e-14)]
        return Tangent(point, value, max(slopes) if from_right else min(slopes))

    def tangents(self, points: Sequence[float]) -> list[Tangent]:
        return [self.tangent(x) for x in points]


@dataclass
class Hull:
    """The greatest of some planes."""

    made_of: Sequence[Plane]

    def heights(self, points: Sequence[tuple[float, ...]]) -> list[float]:
        return [max(plane(*point) for plane in self.made_of) for point in points]

    def plane(self, point: tuple[float, ...]) -> Plane:
        return max(self.made_of, key=lambda one: one(*point))
