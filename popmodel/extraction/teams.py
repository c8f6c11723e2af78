"""What the threads of processes do in a parallel region."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.extraction.outline import Team
from popmodel.trace.states import RUNNING

if TYPE_CHECKING:
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
    running = trace.derived("running", lambda one: one.records.in_state(RUNNING))
    bounds = np.asarray(trace.process_offsets, dtype=np.int64)
    process, turn = np.nonzero(region.event >= 0)
    event = region.event[process, turn]
    threads = np.diff(bounds)[process]
    starts = np.cumsum(threads) - threads
    number = np.arange(threads.sum()) - np.repeat(starts, threads)
    location = np.repeat(bounds[process], threads) + number
    begin = np.repeat(structure.events.begin[event], threads)
    end = np.repeat(structure.events.end[event], threads)
    useful = running.inside(location, begin, end).astype(np.float64)
    mean = np.add.reduceat(useful, starts) / threads
    busiest = np.maximum.reduceat(useful, starts)
    wall = (structure.events.end[event] - structure.events.begin[event]).astype(np.float64)
    all_useful = float(mean.sum())
    return Team(
        float(mean.mean()) / _NS,
        float((busiest - mean).sum()) / all_useful if all_useful else 0.0,
        float(np.maximum(wall - busiest, 0.0).mean()) / _NS,
    )
