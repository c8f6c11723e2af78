"""What a merged trace is worth: how much the tracer cost, and what it could not see."""

from __future__ import annotations

from collections.abc import Sequence

from popmodel.tracer.cost import CALL, USUAL, Cost, Costs
from popmodel.tracer.merge import Merged
from popmodel.units import plural

_MARGIN = Cost(0.75, 1.5)
"""What loops that measure leave out: the program's own calls, its branches, the luck of the caches.
In paired runs (message rates, LULESH, NPB UA) what was added lay in the range that this gives."""


def held_up(merged: Merged, costs: Costs = USUAL) -> Cost:
    """Estimate for how long the thread was held up that was held up most, s."""
    each = zip(costs.record, CALL, costs.lock, costs.section, strict=True)
    return Cost(
        *(
            margin * max((_seconds(load, kinds) for load in merged.loads), default=0.0)
            for margin, kinds in zip(_MARGIN, each, strict=True)
        )
    )


def overhead(merged: Merged, costs: Costs = USUAL) -> Cost:
    """Estimate what was added to the time of the thread that was held up most."""
    whole = merged.duration * 1e-9
    parts = held_up(merged, costs)
    return Cost(*(part / (whole - part) if 2 * part < whole else 1.0 for part in parts))


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
