"""Where in the program MPI is called, and how much time is lost there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from popmodel.arrays import alike
from popmodel.kernel import _kernel
from popmodel.trace.blocks import rows_where_type, take
from popmodel.trace.function_names import full_name
from popmodel.trace.names import CALLER, CALLER_LINE
from popmodel.trace.trace import location_of_row
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator import Execution, Program
    from popmodel.trace import Trace

__all__ = ["CallSite", "measure_call_sites", "site_name"]

_NS = 1e9
_LINE = re.compile(r"(\d+) \((.+?)(?:, [^,]+)?\)")
_SHORTENED = re.compile(r".+\) \[(.+)\]")
_NOT_FOUND = ("Unresolved", "_NOT_Found")  # what Extrae calls them


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
    calls = trace.calls()
    events = trace.events
    values = [_callers(trace, type_) for type_ in (CALLER, CALLER_LINE)]
    distinct, index = alike(calls.type.astype(np.int64), calls.value, *values)
    time = np.bincount(index, calls.exit - calls.entry, len(distinct))
    count = np.bincount(index, minlength=len(distinct))
    waiting = None
    if ideal is not None:
        waiting = np.bincount(index, _waiting(trace, *ideal), len(distinct)).tolist()
    all_threads = runtime * (len(events.offsets) - 1)
    found = [
        CallSite(
            trace.mpi_name(type_, value),
            _function(trace, caller),
            _place(trace, line),
            int(count[row]),
            float(time[row]) / _NS,
            float(time[row]) / all_threads if all_threads else 0.0,
            None if waiting is None else waiting[row],
        )
        for row, (type_, value, caller, line) in enumerate(distinct.tolist())
        if time[row] > 0  # at the edges of a window there are calls of which nothing is left
    ]
    return tuple(sorted(found, key=lambda site: (-site.time, site.call, site.function, site.place)))


def _callers(trace: Trace, type_: int) -> NDArray[np.int64]:
    """Value of a caller's event of each call; 0 for none."""
    found = _beside(trace, type_)
    if trace.whole is not None and trace.pieces is not None:
        # A call that is open where a piece begins has its callers where it was entered.
        calls, whole, pieces = trace.calls(), trace.whole.calls(), trace.pieces
        piece = np.searchsorted(pieces.start, calls.entry, side="right") - 1
        cut = np.flatnonzero((calls.entry == pieces.start[piece]) & (found == 0))
        location = location_of_row(calls.offsets)[cut].astype(np.int64)
        at = _kernel.locate(whole.offsets, whole.entry, location, pieces.begin[piece[cut]])
        there = at >= whole.offsets[location]
        found[cut[there]] = _beside(trace.whole, type_)[at[there]]
    return found


def _beside(trace: Trace, type_: int) -> NDArray[np.int64]:
    """Value of the first event of a type that stands beside the entry of each call; 0 for none."""
    calls, events = trace.calls(), trace.events
    rows = rows_where_type(events.type, (type_,))
    found = np.zeros(len(calls.row), np.int64)
    if not len(rows) or not len(found):
        return found
    # Up to the next call, which can begin at the same time.
    end = np.append(calls.row[1:], len(events.type))
    at = np.searchsorted(rows, calls.row)
    row = rows[np.minimum(at, len(rows) - 1)]
    there = (at < len(rows)) & (row < end)
    there[there] = take(events.time, row[there]) == calls.entry[there]
    found[there] = take(events.value, row[there])
    return found


def _waiting(trace: Trace, program: Program, execution: Execution) -> NDArray[np.float64]:
    """Time in each call of the trace as it was replayed, s."""
    calls = trace.calls()
    assert execution.spent is not None
    process = np.repeat(np.arange(program.processes), np.diff(program.offsets))
    location = np.asarray(trace.process_offsets, dtype=np.int64)[process]
    entry = program.call_time[program.call]
    if trace.pieces is not None:
        entry = trace.pieces.moved(entry)
    # Masters call nothing else meanwhile, so that the time names the call.
    at = _kernel.locate(calls.offsets, calls.entry, location, entry)
    at = np.maximum(at, calls.offsets[location])  # entered before the window
    return np.bincount(at, execution.spent, len(calls.entry)).astype(np.float64)


def _function(trace: Trace, value: int) -> str:
    label = trace.labels.event_values.get(CALLER, {}).get(value, "").strip()
    if not value or label in _NOT_FOUND:
        return ""
    return full_name(label) if label else f"function {value}"


def _place(trace: Trace, value: int) -> str:
    label = trace.labels.event_values.get(CALLER_LINE, {}).get(value, "").strip()
    whole = _SHORTENED.fullmatch(label)
    line = _LINE.fullmatch(whole[1] if whole else label)
    if line is None:
        return "" if not value or label in _NOT_FOUND else label or f"line {value}"
    if line[2] in _NOT_FOUND:
        return ""
    return line[2] if line[1] == "0" else f"{line[2]}:{line[1]}"
