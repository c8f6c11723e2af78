"""Where in the program MPI is called, and how much time is lost there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.arrays import alike, distinct
from popmodel.kernel import _kernel
from popmodel.trace.tables import part_of
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator import Execution, Program
    from popmodel.trace import Trace

__all__ = ["CallSite", "measure_call_sites", "site_name"]

_NS = 1e9


@dataclass(frozen=True)
class CallSite:
    """One place in the program that calls MPI, over all threads.

    Attributes
    ----------
    call : str
        Such as ``MPI_Allreduce``.
    function : str
        That calls it; empty where it is not known.
    place : str
        Such as ``solver.c:42``, or a place in the program's file where its lines are not known;
        empty where nothing is.
    count : int
        How often it was called.
    time : float
        Time of all threads in these calls, s.
    share : float
        The same as part of the time of all threads of the run.
    waiting : float or None
        What of the time is left on the ideal network, s: waiting for others. The rest is transfer.
        None where the run cannot be replayed.
    """

    call: str
    function: str
    place: str
    count: int
    time: float
    share: float
    waiting: float | None = None

    @property
    def name(self) -> str:
        """The call and where it is, as `site_name` writes it."""
        return site_name(self.call, self.function, self.place)


def site_name(call: str, function: str, place: str) -> str:
    """Write a call and where it is, as far as that is known: ``MPI_Bcast in main (app.c:12)``."""
    return call + (f" in {function}" if function else "") + (f" ({place})" if place else "")


def measure_call_sites(
    trace: Trace, runtime: int, ideal: tuple[Program, Execution] | None = None
) -> tuple[CallSite, ...]:
    """Measure the call sites of MPI of a run, those that cost most time first.

    Parameters
    ----------
    trace : Trace
        The run.
    runtime : int
        Its runtime, ns.
    ideal : Program and Execution, optional
        The run on the ideal network, with the times of its operations.

    Returns
    -------
    tuple of CallSite
        One for each kind of call where the trace names no callers.
    """
    calls, sites = trace.calls(), trace.records.sites()
    kinds, index = alike(calls.name.astype(np.int64), sites.site.astype(np.int64))
    time = np.bincount(index, calls.exit - calls.entry, len(kinds))
    count = np.bincount(index, minlength=len(kinds))
    waiting = None
    if ideal is not None:
        waiting = np.bincount(index, _waiting(trace, *ideal), len(kinds)).tolist()
    all_threads = runtime * trace.locations
    found = [
        CallSite(
            calls.names[name],
            sites.places[site][0],
            sites.places[site][1],
            int(count[row]),
            float(time[row]) / _NS,
            float(time[row]) / all_threads if all_threads else 0.0,
            None if waiting is None else waiting[row],
        )
        for row, (name, site) in enumerate(kinds.tolist())
        if time[row] > 0  # at the edges of a window there are calls of which nothing is left
    ]
    return tuple(sorted(found, key=lambda site: (-site.time, site.call, site.function, site.place)))


def _waiting(trace: Trace, program: Program, execution: Execution) -> NDArray[np.float64]:
    """Time in each call of the trace as it was replayed, s."""
    whole = trace.whole or trace
    calls, called = trace.calls(), whole.calls()
    assert execution.spent is not None
    spent = np.bincount(program.call, execution.spent, len(called)).astype(np.float64)
    if trace.pieces is None:
        return spent
    row = distinct(program.call)
    location = part_of(called.offsets, row)
    # Masters call nothing else meanwhile, so that the time names the call.
    at = _kernel.locate(calls.offsets, calls.entry, location, trace.pieces.moved(called.entry[row]))
    at = np.maximum(at, calls.offsets[location])  # entered before the window
    return np.bincount(at, spent[row], len(calls)).astype(np.float64)
