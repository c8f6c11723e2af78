"""How imbalance between processes grows with their number.

The coefficient of variation is ``cv (P/P_ref)**H`` with H from 0, where the cost of neighbouring
cells is alike, to 1/2, where cells are independent (splitting a domain averages over fewer cells).
Before any run is looked at, H is in the middle, and with 90 % between both: a normal prior, which
the runs correct.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from popmodel.fit.law import ASSUMED, FIT, TRACE, Constant
from popmodel.fit.samples import END, SMALLEST_ERROR, Sample
from popmodel.values import dataclass

LARGEST = 0.5
"""Exponent of independent cells."""
_MIDDLE = 0.25
_PULL = 2.6  # residual in standard deviations, from which no exponent fits


@dataclass(frozen=True)
class LawGrowth:
    """Imbalance between processes by their number."""

    cv: Constant  # Coefficient of variation at the reference
    reference_processes: int  # Where that is: the middle of what was measured
    exponent: Constant  # H
    notes: tuple[str, ...]  # What contradicts the law, and what is not known

    def at(self, processes: int) -> float:
        """Return the best estimate at a number of processes."""
        return self.cv.value * math.pow(processes / self.reference_processes, self.exponent.value)


def growth(samples: Sequence[Sample]) -> LawGrowth:
    """Fit the growth of an imbalance."""
    usable = [one for one in samples if one.processes > 1]
    if not usable:
        raise ValueError("imbalance between processes needs a run with more than one")
    notes = []
    above = [one for one in usable if one.value > 0]
    if not above:
        reference = max(one.processes for one in usable)
        zero = Constant(0.0, 0.0, 0.0, FIT, f"variation between {reference} processes")
        return LawGrowth(zero, reference, Constant(0.0, 0.0, LARGEST, ASSUMED, _MEANING), ())
    if len(above) < len(usable):
        places = ", ".join(str(one.processes) for one in usable if not one.value)
        notes.append(f"no imbalance at P = {places}, left out")
    logs = np.log([one.processes for one in above])
    values = np.log([one.value for one in above])
    errors = np.array([_error(one) for one in above])
    weights = errors**-2.0
    middle = float(weights @ logs / weights.sum())
    reference = above[int(np.abs(logs - middle).argmin())].processes
    lever = float(weights @ (logs - middle) ** 2)
    if lever == 0:
        exponent = Constant(_MIDDLE, 0.0, LARGEST, ASSUMED, _MEANING)
        notes.append(f"known at P = {reference} only: the growth of imbalance is assumed")
    else:
        slope = float(weights @ ((logs - middle) * values)) / lever
        half = END / math.sqrt(lever)
        # few processes tell little: what they do is weighed against the middle of what is possible
        prior = (_MIDDLE / END) ** -2.0
        likely = (lever * slope + prior * _MIDDLE) / (lever + prior)
        around = END / math.sqrt(lever + prior)
        value = min(max(likely, 0.0), LARGEST)
        low, high = max(likely - around, 0.0), min(likely + around, LARGEST)
        exponent = Constant(value, min(low, value), max(high, value), FIT, _MEANING)
        if not -half <= slope <= LARGEST + half:
            notes.append(
                f"imbalance grows as P**{slope:.2g}, outside of 0 to 1/2: not a law of cells"
            )
    shift = values - exponent.value * (logs - math.log(reference))
    mean = float(weights @ shift / weights.sum())
    pull = float(np.sqrt(weights @ (shift - mean) ** 2 / max(len(above) - 1, 1)))
    if pull > _PULL:
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


_MEANING = "growth of the imbalance with the number of processes"


def _error(sample: Sample) -> float:
    stated = max(sample.relative_error or 0.0, SMALLEST_ERROR)
    return math.hypot(stated, 1 / math.sqrt(2 * (sample.processes - 1)))
