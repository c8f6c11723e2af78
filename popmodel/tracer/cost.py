"""What recording costs, measured where it is asked for."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from popmodel.host.processes import output_of
from popmodel.tracer.environment import DIRECTORY, PRELOAD
from popmodel.values import dataclass

_PATIENCE = 60.0


class Cost(NamedTuple):
    """Seconds, the least and the most: for a thread whose own data stay in the caches, or not."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """Between both, s."""
        return (self.low + self.high) / 2


@dataclass(frozen=True)
class Costs:
    """What it costs a thread to be recorded."""

    record: Cost  # Of a record, with its share of the pages that the file takes
    # Of a lock that was free and of a critical section, which are summed up.
    lock: Cost
    section: Cost
    measured: bool = True  # Whether that was measured where the run was made


CALL = Cost(10e-9, 60e-9)
"""What the wrapper of an MPI call adds to its records: handles that it looks up, requests that it
remembers. From paired runs (``tests/benchmarks/tracer.py``): it takes an MPI program to measure."""

USUAL = Costs(Cost(25e-9, 80e-9), Cost(4e-9, 15e-9), Cost(40e-9, 150e-9), measured=False)
"""Where it could not be measured."""


def measured_by(program: Path, folder: Path, environment: Mapping[str, str]) -> Costs | None:
    """Measure what recording costs; None if that cannot be done."""
    with tempfile.TemporaryDirectory(prefix=".popmodel-cost-", dir=folder) as scratch:
        own = {name: value for name, value in environment.items() if name != PRELOAD}
        done = output_of([str(program)], timeout=_PATIENCE, environment={**own, DIRECTORY: scratch})
    found = {}
    for line in done.text.splitlines() if done.status == 0 else ():
        name, *values = line.split()
        if (cost := _cost(values)) is not None:
            found[name] = cost
    if found.keys() != {"record", "lock", "section"}:
        return None
    return Costs(found["record"], found["lock"], found["section"])


def _cost(values: list[str]) -> Cost | None:
    try:
        low, high = (float(value) * 1e-9 for value in values)
    except ValueError:
        return None
    sensible = math.isfinite(low) and math.isfinite(high) and 0 <= low <= high < 1e-3 and high > 0
    return Cost(low, high) if sensible else None
