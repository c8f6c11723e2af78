"""What a merged trace is worth: how much the tracer cost, and what it could not see."""

from __future__ import annotations

from popmodel.tracer.merge import Merged
from popmodel.units import plural

__all__ = ["RECORD_COST", "not_seen", "overhead"]

RECORD_COST = 22e-9
"""Seconds that a record costs, about: a barrier's two took 44 ns, the five of a send with a receive
67 ns (Open MPI 5.0, a virtual machine)."""


def overhead(merged: Merged, cost: float = RECORD_COST) -> float:
    """Estimate by which part of its time the busiest thread was held up.

    Parameters
    ----------
    merged : Merged
        The trace.
    cost : float
        Seconds per record.
    """
    return merged.busiest * cost * 1e9 / merged.duration if merged.duration else 0.0


def not_seen(merged: Merged) -> list[str]:
    """What a reader of the trace might miss, and why it is not there; one line each."""
    lines = []
    if not merged.library:
        lines.append("no MPI: the program never called MPI_Init, or its MPI is linked statically")
    if blind := merged.openmp.get("none", 0):
        who = plural(blind, "process", "processes")
        lines.append(f"no OpenMP in {who}: switched off (--openmp off)")
    for why, processes in sorted(merged.counters.items()):
        if why:
            who = plural(processes, "process", "processes")
            lines.append(f"no hardware counters in {who}: {why}")
    if merged.clock_residual is None:
        lines.append("how well the clocks of the hosts agree is not known: they were not compared")
    lines += [
        f"{warning.text} ({warning.count:,})" if warning.count > 1 else warning.text
        for warning in merged.warnings
    ]
    return lines
