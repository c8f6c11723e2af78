"""What recording costs, measured where it is asked for."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from popmodel.host.processes import output_of
from popmodel.tracer.environment import DIRECTORY, PRELOAD
from popmodel.tracer.merge import Merged
from popmodel.units import plural
from popmodel.values import dataclass

_PATIENCE = 60.0


class TracingCost(NamedTuple):
    """Seconds, the least and the most: for a thread whose own data stay in the caches, or not."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """Between both, s."""
        return (self.low + self.high) / 2


@dataclass(frozen=True)
class TracingCosts:
    """What it costs a thread to be recorded."""

    record: TracingCost  # Of a record, with its share of the pages that the file takes
    # Of a lock that was free and of a critical section, which are summed up.
    lock: TracingCost
    section: TracingCost
    measured: bool = True  # Whether that was measured where the run was made


CALL = TracingCost(10e-9, 60e-9)
"""What the wrapper of an MPI call adds to its records: handles that it looks up, requests that it
remembers. From paired runs (``tests/benchmarks/tracer.py``): it takes an MPI program to measure."""

USUAL = TracingCosts(
    TracingCost(25e-9, 80e-9), TracingCost(4e-9, 15e-9), TracingCost(40e-9, 150e-9), measured=False
)
"""Where it could not be measured."""


def measured_by(program: Path, folder: Path, environment: Mapping[str, str]) -> TracingCosts | None:
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
    return TracingCosts(found["record"], found["lock"], found["section"])


def _cost(values: list[str]) -> TracingCost | None:
    try:
        low, high = (float(value) * 1e-9 for value in values)
    except ValueError:
        return None
    sensible = math.isfinite(low) and math.isfinite(high) and 0 <= low <= high < 1e-3 and high > 0
    return TracingCost(low, high) if sensible else None


# What a merged trace is worth: how much the tracer cost, and what it could not see.


_MARGIN = TracingCost(0.75, 1.5)
"""What loops that measure leave out: the program's own calls, its branches, the luck of the caches.
In paired runs (message rates, LULESH, NPB UA) what was added lay in the range that this gives."""


def held_up(merged: Merged, costs: TracingCosts = USUAL) -> TracingCost:
    """Estimate for how long the thread was held up that was held up most, s."""
    each = zip(costs.record, CALL, costs.lock, costs.section, strict=True)
    return TracingCost(
        *(
            margin * max((_seconds(load, kinds) for load in merged.loads), default=0.0)
            for margin, kinds in zip(_MARGIN, each, strict=True)
        )
    )


def overhead(merged: Merged, costs: TracingCosts = USUAL) -> TracingCost:
    """Estimate what was added to the time of the thread that was held up most."""
    whole = merged.duration * 1e-9
    parts = held_up(merged, costs)
    return TracingCost(*(part / (whole - part) if 2 * part < whole else 1.0 for part in parts))


def _seconds(counts: Sequence[int], costs: Sequence[float]) -> float:
    return sum(count * cost for count, cost in zip(counts, costs, strict=True))


def not_seen(merged: Merged) -> list[str]:
    """What a reader of the trace might miss, and why it is not there; one line each."""
    lines = []
    if not merged.library:
        lines.append("no MPI: the program did not call MPI_Init, or its MPI is statically linked")
    if blind := merged.openmp.get("none", 0):
        who = plural(blind, "process", "processes")
        lines.append(f"no OpenMP in {who}: switched off (--openmp off)")
    for why, processes in sorted(merged.counters.items()):
        if why:
            who = plural(processes, "process", "processes")
            lines.append(f"no hardware counters in {who}: {why}")
    if merged.clock_residual is None:
        lines.append("agreement of the clocks of the hosts unknown: they were not compared")
    lines += [
        f"{warning.text} ({warning.count:,})" if warning.count > 1 else warning.text
        for warning in merged.warnings
    ]
    return lines
