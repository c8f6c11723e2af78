"""What more cores bring, each number of cores with its recommended split."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from popmodel.model.uncertainty import Estimate
from popmodel.plain import fields_of
from popmodel.splits.candidate import ratio
from popmodel.splits.choice import Choice
from popmodel.values import dataclass


@dataclass(frozen=True)
class Growth:
    """What more cores bring, each number of cores with the split to take."""

    cores: tuple[int, int]  # The smaller and the larger number
    speedup: Estimate  # Runtime on the smaller number over that on the larger
    efficiency: tuple[float, float]  # Parallel efficiency of both

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON types."""
        return {
            **fields_of(self, "cores", "speedup"),
            "efficiency": self.speedup.value * self.cores[0] / self.cores[1],
            "parallel_efficiency": self.efficiency,
        }


def growth(choices: Sequence[Choice]) -> list[Growth]:
    """Compare every number of cores with the next larger one."""
    rising = sorted(choices, key=lambda choice: choice.cores)
    return [
        Growth(
            (one.cores, more.cores),
            ratio(one.taken, more.taken),
            (one.taken.parallel_efficiency.value, more.taken.parallel_efficiency.value),
        )
        for one, more in pairwise(rising)
    ]
