"""How far the laws of the model hold, beside the numbers that enter them.

Right parameters in a law that simplifies give a wrong time. So every part of the time of a process
has a factor whose best estimate is 1 and whose spread is the error of its law, from comparisons
that a reader can look up. A split shares a part of that error with all others (an operation that
the signature does not count is missing everywhere) and has the rest for itself (the shape of its
blocks, where its messages go).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from popmodel.machine.quantity import Quantity, around
from popmodel.values import dataclass


@dataclass(frozen=True)
class ModelLaw:
    """What gives a part of the time of a process."""

    path: str  # Of its factor among the inputs
    meaning: str  # For people
    spread: float  # Standard deviation of the logarithm of the factor, inside of what was measured
    own: float  # Part of the variance that every split has for itself
    sections: tuple[str, ...]  # Sections of the machine profile that it extrapolates
    source: str  # Where the spread comes from

    def deviation(self, distance: float) -> float:
        """Return the standard deviation of the factor's logarithm at a distance from measurements.

        ``sd(d) = sd0 sqrt(1 + (d/d0)**2)``, with d0 half of the way to where predictions have no
        interval any more.
        """
        return self.spread * math.sqrt(1 + (distance / _HALF_WAY) ** 2)

    def at(self, distance: float) -> Quantity:
        """Return the factor at a distance from what was measured, as of `deviation`."""
        ends = around(1.0, self.deviation(distance))
        return Quantity(1.0, *ends, origin=OF_MODEL, source=self.source)


PROGRAM = {
    "program.form": "which law the runtime of the whole program follows",
    "program.error": "what predictions of runs that are left out are off",
}
"""Scores behind predictions from learnt runs (`popmodel.prediction.learnt_study`), in words."""
OF_MODEL = "model"
"""Origin of the factors of laws."""
_HALF_WAY = 0.5

_OWN = 1 / 3
"""Of the variance: assumed, since what a signature does not count is missing in all splits."""

LOOPS = ModelLaw(
    "law.loops",
    "law of parallel loops",
    0.08,
    _OWN,
    ("core", "memory"),
    "average error of PPT-Multicore for OpenMP programs: 9 %, its parameters included (A. Barai et "
    "al., J. Supercomput. 78 (2022) 2354)",
)
SERIAL = ModelLaw(
    "law.serial",
    "law of serial code",
    0.42,
    _OWN,
    ("core", "memory"),
    "walls and packing of examples/stencil3d: single lines far apart take up to twice as long, "
    "which is the end of the interval",
)
OPENMP = ModelLaw(
    "law.openmp",
    "law of OpenMP overheads",
    0.25,
    _OWN,
    ("openmp",),
    "assumed, as for messages: measured in empty loops, unlike those of programs",
)
WAITING = ModelLaw(
    "law.waiting",
    "law of imbalance and waiting",
    0.25,
    _OWN,
    (),
    "half of the difference between closed form and replay of stencil3d, 4 to 256 processes",
)
MESSAGES = ModelLaw(
    "law.messages",
    "law of messages",
    0.25,
    _OWN,
    ("net", "topology"),
    "average errors of LogGP for CG and Sweep3D: 38 % and 9 % (W. Chen et al., Sci. China Ser. F "
    "52 (2009) 1785)",
)
LAWS: Mapping[str, ModelLaw] = {one.path: one for one in (LOOPS, SERIAL, OPENMP, WAITING, MESSAGES)}
"""All laws by path."""
