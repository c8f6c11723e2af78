"""How much more or less phases take with other P, T and parameters, as names of a signature."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.fitting.samples import END, UNKNOWN_ERROR
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from popmodel.extraction.amounts import Constant


@dataclass(frozen=True)
class Factor:
    """A factor on the time of phases that grow alike."""

    let: Mapping[str, Any]  # Its name, and those that it needs
    constants: tuple[Constant, ...]  # Those in them
    values: tuple[float, ...]  # What it is in the runs
    meaning: str  # What the time of a phase is where the factor is 1
    laws: tuple[dict[str, Any], ...]  # What is told of it
    notes: tuple[str, ...] = ()  # What the runs leave open

    def size(self, times: Sequence[float]) -> tuple[float, float, float]:
        """Return the time of a phase where the factor is 1, and its 90 % interval."""
        some = [
            math.log(time / value)
            for time, value in zip(times, self.values, strict=True)
            if time > 0
        ]
        mean = float(np.mean(some))
        scatter = float(np.std(some, ddof=1)) if len(some) > 1 else 0.0
        half = END * max(scatter, UNKNOWN_ERROR) / math.sqrt(len(some))
        return math.exp(mean), math.exp(mean - half), math.exp(mean + half)
