"""What a change of the number of threads tells: memory that saturates, serial parts, overheads."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from popmodel.fit.law import ASSUMED, FIT, Constant, Law, law
from popmodel.fit.least_squares import fit_two
from popmodel.fit.samples import Array, LawPoints, Sample, points_of, student
from popmodel.values import dataclass

OVERHEADS = ("1", "1 + log2(T)", "1 + T", "log2(T) + T", "log2(T)", "T")
"""Forms of the cost of OpenMP constructs; at most two of a + b log2 T + d T can be told apart by
few thread counts."""

SHARPNESS = (2.5, 3.0, 4.0, 6.0)
"""Of the knee where memory saturates; a property of the machine, so only bounded here."""
_OF_LAW = 1.05  # what the law itself may be off, against queues: see `model.terms.memory`
_LEAST = 3  # thread counts that tell a share at all
_DEMANDS: Array = np.concatenate([[0.0], np.geomspace(1e-3, 1.0, 400)])
_SHARPER = 0.7  # error of the better law over that of the other, from which they are told apart


@dataclass(frozen=True)
class Saturation:
    """Work that is shared by threads which also share a memory."""

    alone: Constant  # Time of one thread, s
    # Part of that time that its traffic takes at the bandwidth of the whole memory: the inverse is
    # the number of threads that saturate it; 0 where nothing saturates.
    demand: Constant
    sharpness: float  # The q that fits best
    told: bool  # Whether the points tell saturation from a serial part
    # Root mean square of the relative residuals of this law, and of work with a serial part.
    error: float
    serial_error: float
    notes: tuple[str, ...]  # What is not known

    def at(self, threads: int) -> float:
        """Return the best estimate of the time with some threads, s."""
        relative = _relative(np.array([self.demand.value]), threads, self.sharpness)
        return self.alone.value * float(relative[0, 0])


def saturation(samples: Sequence[Sample]) -> Saturation:
    """Find how much memory bandwidth work takes, from its time by threads.

    With t_1 the time of one thread and x the demand, T threads take
    ``t_1/T (1 - x**q + (T x)**q)**(1/q)``: a T-th each while the memory is not busy, x t_1 once it
    is. The sharpness q is one of `SHARPNESS`; the interval covers all.
    """
    points = points_of(samples)
    if points.varied != ("T",):
        raise ValueError("saturation is told by samples that differ in their threads only")
    threads, logs = points.configurations["T"], np.log(points.values)
    weights = points.errors**-2.0
    misfits, scales = [], []
    for q in SHARPNESS:
        gaps = logs - np.log(_relative(_DEMANDS, threads, q))
        scale = gaps @ weights / weights.sum()
        scales.append(scale)
        misfits.append((gaps - scale[:, None]) ** 2 @ weights)
    table, values = np.array(misfits), np.array(scales)  # (q, demands)
    at_q, at = np.unravel_index(int(table.argmin()), table.shape)
    freedom = points.freedom + max(len(points) - 2, 0)
    width = student(freedom) * math.sqrt((points.freedom + float(table[at_q, at])) / freedom)
    within = table - table[at_q, at] <= width**2
    demands = np.broadcast_to(_DEMANDS, table.shape)[within]
    half = width / math.sqrt(float(weights.sum()))
    _, serial = fit_two(1 / threads[None], np.ones((1, len(points))), points.values, points.errors)
    error, theirs = (_residual(points, float(one)) for one in (table[at_q, at], serial[0]))
    floor = points.expected_error
    told = len(points) > 2 and (
        error <= floor < theirs or (error < _SHARPER * theirs and theirs > floor)
    )
    notes = []
    if len(points) < _LEAST:
        notes.append(f"{len(points)} thread counts do not tell saturation from a serial part")
    elif not told and demands.max() > 0 and not (theirs < _SHARPER * error and error > floor):
        notes.append("a serial part fits as well as a memory that saturates")
    elif not told:
        notes.append("a serial part fits better than a memory that saturates")
    origin = FIT if told else ASSUMED
    alone = values[within]
    least, most = float(demands.min()) / _OF_LAW, float(demands.max()) * _OF_LAW
    value = float(values[at_q, at])
    return Saturation(
        Constant(
            math.exp(value), math.exp(alone.min() - half), math.exp(alone.max() + half),
            FIT, "time of one thread",
        ),
        Constant(
            float(_DEMANDS[at]), least, min(most, 1.0), origin,
            "part of the time that traffic takes at the bandwidth of the memory",
        ),
        SHARPNESS[int(at_q)],
        told,
        error,
        theirs,
        tuple(notes),
    )  # fmt: skip


def overhead(samples: Sequence[Sample]) -> Law:
    """Fit the cost of OpenMP constructs by threads, two of a + b log2 T + d T at most."""
    return law(samples, forms=OVERHEADS, hints=("1 + log2(T)",))


def _relative(demands: Array, threads: Array | int, q: float) -> Array:
    """Time over that of one thread, shape (demands, points)."""
    x, count = demands[:, None], np.atleast_1d(np.asarray(threads, dtype=np.float64))
    relative: Array = (1 - x**q + (count * x) ** q) ** (1 / q) / count
    return relative


def _residual(points: LawPoints, misfit: float) -> float:
    return math.sqrt(misfit / float((points.errors**-2.0).sum()))
