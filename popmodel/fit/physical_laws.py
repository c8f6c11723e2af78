"""Laws whose form physics gives: imbalance by processes, memory and OpenMP by threads.

The coefficient of variation of work between processes is ``cv (P/P_ref)**H`` with H from 0, where
the cost of neighbouring cells is alike, to 1/2, where cells are independent (splitting a domain
averages over fewer cells). Before any run is looked at, H is in the middle, and with 90 % between
both: a normal prior, which the runs correct. A change of the number of threads tells of memory that
saturates, serial parts and overheads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from popmodel.fit.law import ASSUMED, FIT, TRACE, Constant, Law, law
from popmodel.fit.samples import END, SMALLEST_ERROR, Array, Sample, fit_two, points_of, student

LARGEST_GROWTH = 0.5
"""Exponent of independent cells."""
_MIDDLE = 0.25
_MEANING = "growth of the imbalance with the number of processes"
_GROWTH_PULL = 2.6  # residual in standard deviations, from which no exponent fits


class LawGrowth(NamedTuple):
    """Imbalance between processes by their number."""

    cv: Constant  # Coefficient of variation at the reference
    reference_processes: int  # Where that is: the middle of what was measured
    exponent: Constant  # H
    notes: tuple[str, ...]  # What contradicts the law, and what is not known


def growth(samples: Sequence[Sample]) -> LawGrowth:
    """Fit the growth of an imbalance."""
    usable = [sample for sample in samples if sample.processes > 1]
    if not usable:
        raise ValueError("imbalance between processes needs a run with more than one")
    notes = []
    above = [sample for sample in usable if sample.value > 0]
    if not above:
        reference = max(sample.processes for sample in usable)
        zero = Constant(0.0, 0.0, 0.0, FIT, f"variation between {reference} processes")
        return LawGrowth(zero, reference, Constant(0.0, 0.0, LARGEST_GROWTH, ASSUMED, _MEANING), ())
    if len(above) < len(usable):
        places = ", ".join(str(sample.processes) for sample in usable if not sample.value)
        notes.append(f"no imbalance at P = {places}, left out")
    logs = np.log([sample.processes for sample in above])
    values = np.log([sample.value for sample in above])
    counts = np.array([sample.processes for sample in above])
    stated = np.maximum([sample.relative_error or 0.0 for sample in above], SMALLEST_ERROR)
    weights = np.hypot(stated, 1 / np.sqrt(2 * (counts - 1.0))) ** -2.0
    middle = float(weights @ logs / weights.sum())
    reference = above[int(np.abs(logs - middle).argmin())].processes
    lever = float(weights @ (logs - middle) ** 2)
    if lever == 0:
        exponent = Constant(_MIDDLE, 0.0, LARGEST_GROWTH, ASSUMED, _MEANING)
        notes.append(f"known at P = {reference} only: the growth of imbalance is assumed")
    else:
        slope = float(weights @ ((logs - middle) * values)) / lever
        half = END / math.sqrt(lever)
        # few processes tell little: what they do is weighed against the middle of what is possible
        prior = (_MIDDLE / END) ** -2.0
        likely = (lever * slope + prior * _MIDDLE) / (lever + prior)
        around = END / math.sqrt(lever + prior)
        value = min(max(likely, 0.0), LARGEST_GROWTH)
        low, high = max(likely - around, 0.0), min(likely + around, LARGEST_GROWTH)
        exponent = Constant(value, min(low, value), max(high, value), FIT, _MEANING)
        if not -half <= slope <= LARGEST_GROWTH + half:
            notes.append(
                f"imbalance grows as P**{slope:.2g}, outside of 0 to 1/2: not a law of cells"
            )
    shift = values - exponent.value * (logs - math.log(reference))
    mean = float(weights @ shift / weights.sum())
    pull = float(np.sqrt(weights @ (shift - mean) ** 2 / max(len(above) - 1, 1)))
    if pull > _GROWTH_PULL:
        notes.append("imbalance follows no power of P within the errors of the points")
    half = END * max(pull, 1.0) / math.sqrt(float(weights.sum()))
    cv = Constant(
        math.exp(mean),
        math.exp(mean - half),
        math.exp(mean + half),
        FIT if len(above) > 1 else TRACE,
        f"variation between {reference} processes",
    )
    return LawGrowth(cv, reference, exponent, tuple(notes))


OVERHEADS = ("1", "1 + log2(T)", "1 + T", "log2(T) + T", "log2(T)", "T")
"""Forms of the cost of OpenMP constructs; at most two of a + b log2 T + d T can be told apart by
few thread counts."""

SHARPNESS = (2.5, 3.0, 4.0, 6.0)
"""Of the knee where memory saturates; a property of the machine, so only bounded here."""
_OF_LAW = 1.05  # what the law itself may be off, against queues: see `model.terms.memory`
_LEAST_COUNTS = 3  # thread counts that tell a share at all
_DEMANDS: Array = np.concatenate([[0.0], np.geomspace(1e-3, 1.0, 400)])
_SHARPER = 0.7  # error of the better law over that of the other, from which they are told apart


class Saturation(NamedTuple):
    """Work that is shared by threads which also share a memory."""

    alone: Constant  # Time of one thread, s
    # Part of that time that its traffic takes at the bandwidth of the whole memory: the inverse is
    # the number of threads that saturate it; 0 where nothing saturates.
    demand: Constant
    sharpness: float  # The q that fits best
    is_tested: bool  # Whether the points tell saturation from a serial part
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
    _, serial = fit_two(1 / threads[None], np.ones((1, len(points))), points.values, points.errors)
    precision = float(weights.sum())
    error, theirs = (math.sqrt(float(one) / precision) for one in (table[at_q, at], serial[0]))
    half = width / math.sqrt(precision)
    floor = points.expected_error
    is_tested = len(points) > 2 and (
        error <= floor < theirs or (error < _SHARPER * theirs and theirs > floor)
    )
    notes = []
    if len(points) < _LEAST_COUNTS:
        notes.append(f"{len(points)} thread counts do not tell saturation from a serial part")
    elif not is_tested and demands.max() > 0 and not (theirs < _SHARPER * error and error > floor):
        notes.append("a serial part fits as well as a memory that saturates")
    elif not is_tested:
        notes.append("a serial part fits better than a memory that saturates")
    origin = FIT if is_tested else ASSUMED
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
        is_tested,
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
