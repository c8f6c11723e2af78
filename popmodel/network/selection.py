"""Which algorithm a collective operation takes, by its size: ``allreduce=ring``.

Written ``OPERATION=NAME``, or with sizes up to which an algorithm is taken,
``allreduce=recursive_doubling:8KiB,ring``: recursive doubling up to 8 KiB, a ring above. The size
is the m of the closed forms (`popmodel.network.collectives`): the vector of a process for bcast,
reduce, allreduce, scan and reduce_scatter, its block for gather, scatter and allgather, its block
for one peer for alltoall.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from popmodel.errors import UsageError, did_you_mean
from popmodel.network.collectives import OPERATIONS
from popmodel.units import format_size, parse_size
from popmodel.values import dataclass

# carried out in replays, without a closed form of their own
_REPLAYED = {
    "barrier": ("linear_posted",),
    "reduce": ("linear_posted",),
    "allreduce": ("linear_posted",),
}

NAMES: Mapping[str, tuple[str, ...]] = {
    name: (*one.algorithms, *_REPLAYED.get(name, ())) for name, one in OPERATIONS.items()
}
"""Names of algorithms that a replay carries out, by operation."""


@dataclass(frozen=True)
class Selection:
    """Algorithms of an operation by size."""

    operation: str  # One of `NAMES`
    # Largest size in bytes and the algorithm up to it, ascending; the last size is infinite.
    steps: tuple[tuple[float, str], ...]

    def __post_init__(self) -> None:
        """Refuse operations and algorithms that are not known, and sizes that do not ascend."""
        names = NAMES.get(self.operation)
        if names is None:
            raise UsageError(
                f"unknown collective operation {self.operation!r}",
                did_you_mean(self.operation, NAMES, f"choose one of {', '.join(NAMES)}"),
            )
        for _, name in self.steps:
            if name not in names:
                raise UsageError(
                    f"unknown algorithm {name!r} of {self.operation}",
                    did_you_mean(name, names, f"choose one of {', '.join(names)}"),
                )
        sizes = [size for size, _ in self.steps]
        if not sizes or sizes != sorted(set(sizes)) or not math.isinf(sizes[-1]):
            raise UsageError(
                f"algorithms of {self.operation}: sizes must ascend, and the last algorithm must "
                "have none",
                "write allreduce=recursive_doubling:8KiB,ring for a ring above 8 KiB",
            )

    def __str__(self) -> str:
        """Return what `parse_selection` reads."""
        steps = [
            name + ("" if math.isinf(size) else f":{_size(size)}") for size, name in self.steps
        ]
        return f"{self.operation}={','.join(steps)}"

    def at(self, size: float) -> str:
        """Return the name of the algorithm for a size in bytes."""
        return next(name for most, name in self.steps if size <= most)


def parse_selection(text: str) -> Selection:
    """Read a selection."""
    operation, equals, rest = text.partition("=")
    if not equals or not operation.strip() or not rest.strip():
        raise UsageError(
            f"must be OPERATION=ALGORITHM, not '{text}'",
            "write allreduce=ring, or allreduce=recursive_doubling:8KiB,ring to choose by size",
        )
    steps = []
    for step in rest.split(","):
        name, colon, size = step.partition(":")
        steps.append((parse_size(size) if colon else math.inf, name.strip()))
    return Selection(operation.strip(), tuple(steps))


def _size(size: float) -> str:
    short = format_size(size).replace(" ", "")
    return short if parse_size(short) == size else f"{size:.17g}"
