"""What the threads of processes do in a parallel region."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.extraction.outline import Team
from popmodel.trace.states import RUNNING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.extraction.computing import Computing
    from popmodel.structure.structure import Structure
    from popmodel.trace import Trace

__all__ = ["team"]

_NS = 1e9


def team(trace: Trace, structure: Structure, region: Computing) -> Team:
    """Return how the executions of a region spend their time, on average.

    Parameters
    ----------
    trace : Trace
        The run.
    structure : Structure
        Its events.
    region : Computing
        The executions.
    """
    mean, busiest, wall = _times(trace, structure, region.event[region.event >= 0])
    all_useful = float(mean.sum())
    # a process that does not execute it has no time in it: of all of them is the mean
    executions = region.event.shape[0] * int((region.event >= 0).sum(axis=1).max(initial=1))
    return Team(
        all_useful / executions,
        float((busiest - mean).sum()) / all_useful if all_useful else 0.0,
        float(np.maximum(wall - busiest, 0.0).sum()) / executions,
    )


def useful_of(trace: Trace, structure: Structure, places: NDArray[np.int64]) -> float:
    """Useful time of the average thread of all processes in an execution of regions, s."""
    events = np.flatnonzero(np.isin(structure.place, places) & structure.events.is_region)
    if not len(events):
        return 0.0
    processes = structure.program.processes
    executions = int(np.bincount(structure.events.sequence[events], minlength=processes).max())
    return float(_times(trace, structure, events)[0].sum()) / (processes * executions)


def _times(
    trace: Trace, structure: Structure, event: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Useful time of the average and of the busiest thread of each region, and its length, s."""
    running = trace.derived("running", lambda one: one.records.in_state(RUNNING))
    bounds = np.asarray(trace.process_offsets, dtype=np.int64)
    process = structure.events.sequence[event]
    threads = np.diff(bounds)[process]
    starts = np.cumsum(threads) - threads
    number = np.arange(threads.sum()) - np.repeat(starts, threads)
    location = np.repeat(bounds[process], threads) + number
    begin, end = structure.events.begin[event], structure.events.end[event]
    inside = running.inside(location, np.repeat(begin, threads), np.repeat(end, threads))
    useful = inside / _NS
    mean = np.add.reduceat(useful, starts) / threads
    return mean, np.maximum.reduceat(useful, starts), (end - begin) / _NS
