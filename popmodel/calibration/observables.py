"""What of a measured run is compared with the model: its runtime, and the parts that it adds up to.

The losses of the additive hybrid family and the useful time of a process add up to the runtime. So
a run whose efficiencies are known says which part of a prediction is wrong, one of which only the
runtime is known says that something is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from popmodel.efficiency.hierarchy import load_families
from popmodel.expressions.elementary import numbers
from popmodel.model.run.observe import ModelledObservables
from popmodel.prediction.prediction import MAIN_FAMILY
from popmodel.runs.measurement import LEAST_NOISE, NOISE_OF_LOSS, MeasuredRow
from popmodel.values import dataclass

Array = NDArray[np.float64]

RUNTIME = "runtime"
USEFUL = "useful"
LOSSES: Mapping[str, str] = {
    "process_load_balance": "unequal work",
    "process_serialisation_efficiency": "waiting",
    "process_transfer_efficiency": "transfer",
    "openmp_region_efficiency": "OpenMP",
    "serial_region_efficiency": "serial code",
}
"""Leaves of `MAIN_FAMILY`, whose losses and the useful time add up to the runtime; in words."""
_BETWEEN = ("process_serialisation_efficiency", "process_transfer_efficiency")
"""Those that one process does not have."""
_TOP = "parallel_efficiency"


@dataclass(frozen=True)
class Part:
    """A measured part of the runtime of a run."""

    name: str  # `RUNTIME`, `USEFUL`, or one of `LOSSES`
    seconds: float  # What was measured
    # How much it varies from run to run: standard deviations as multiples of that of the logarithm
    # of the runtime, of the part and of the runtime.
    relative: float
    absolute: float

    def deviation(self, noise: float, runtime: float) -> float:
        """Return its standard deviation from run to run, s."""
        return noise * math.hypot(self.relative * self.seconds, self.absolute * runtime)


def parts_of(run: MeasuredRow) -> tuple[Part, ...]:
    """Return what a run says: its parts where they are all known, or else its runtime and some.

    Parts that are all known add up to the runtime, which would count twice beside them.
    """
    known = run.metrics.get(MAIN_FAMILY, {})
    parts = []
    if _TOP in known:
        parts.append(Part(USEFUL, known[_TOP] * run.runtime, 1.0, 0.0))
    parts += [
        Part(name, (1 - known[name]) * run.runtime, NOISE_OF_LOSS, LEAST_NOISE)
        for name in LOSSES
        if name in known
    ]
    there = {part.name for part in parts}
    without = _BETWEEN if run.processes == 1 else ()
    if all(name in there or name in without for name in (USEFUL, *LOSSES)):
        return tuple(parts)
    return (Part(RUNTIME, run.runtime, 1.0, 0.0), *parts)


def modelled(run: ModelledObservables, names: Sequence[str], size: int) -> dict[str, Array]:
    """Return the parts of a modelled run, s; float64[size] each."""
    runtime = np.broadcast_to(numbers(run.runtime), (size,))
    family = load_families()[MAIN_FAMILY]
    values = family.evaluate_samples(run.aggregates, run.absent).values
    found = {RUNTIME: runtime}
    for name in names:
        if name == USEFUL:
            found[name] = np.broadcast_to(numbers(values[_TOP]), (size,)) * runtime
        elif name in values:
            found[name] = (1 - np.broadcast_to(numbers(values[name]), (size,))) * runtime
        elif name != RUNTIME:
            found[name] = np.zeros(size)  # a program without messages loses nothing by them
    return found
