"""How much latency, or time per byte, a run tolerates before it takes a given time."""

from __future__ import annotations

import math

from popmodel.whatif.breakpoints import SAME, Curve, Pieces, Tangent

_MOST = 200  # steps; each ends on another piece, and pieces get longer with distance
_FAR = 1e3  # times the runtime: there, whatever waits for a message waits for nothing else


def reaches(curve: Curve, target: float, pieces: Pieces | None = None) -> float | None:
    """Return where a convex function that does not fall reaches a value: exact, by its pieces.

    Newton's method, which needs a finite number of steps on a function of pieces: beyond the
    value tangents lead back to it and never past it.
    """
    if pieces is not None and pieces.values[0] <= target < pieces.values[-1]:
        return _inside(pieces, target)
    start = 0.0 if pieces is None else pieces.points[-1 if pieces.values[-1] <= target else 0]
    return _beyond(curve, target, curve.tangent(start))


def _inside(pieces: Pieces, target: float) -> float:
    """By the piece that goes through the value."""
    index = max(i for i, value in enumerate(pieces.values) if value <= target)
    return pieces.points[index] + (target - pieces.values[index]) / pieces.slopes[index]


def _beyond(curve: Curve, target: float, tangent: Tangent) -> float | None:
    """By tangents, each of which leads to the next."""
    near = SAME * target
    for _ in range(_MOST):
        above = tangent.value - target
        if above > near and (tangent.at == 0 or tangent.slope == 0):
            return None
        if abs(above) <= near and tangent.slope > 0:
            return tangent.at - above / tangent.slope
        if tangent.slope > 0:
            following = max(tangent.at - above / tangent.slope, 0.0)
        elif tangent.at >= _FAR * target:
            return math.inf
        else:
            following = _FAR * target
        tangent = curve.tangent(following)
    raise ArithmeticError(f"no end of the pieces before {target}")
