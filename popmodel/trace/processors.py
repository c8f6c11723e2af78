"""Whether threads had a processor each: what they waited for one, and how many share theirs.

The tracer writes at the begin of a thread how many processors it may use and how many threads have
no others, and at its end how long the kernel let it run and wait: of the threads that start and
stop MPI, in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.trace.event import Event
from popmodel.units import plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.trace.trace import Trace

__all__ = ["crowding", "first_values", "waiting"]

_NOTEWORTHY = 0.02  # of the time of all threads
_HARMLESS = 0.005


def crowding(trace: Trace) -> list[str]:
    """Say whether threads waited for CPUs; a sentence each.

    Parameters
    ----------
    trace : Trace
        A run or a window of it: what is known is of the whole run.
    """
    whole = trace.whole or trace
    cpus, sharing = (first_values(whole, mark) for mark in (Event.CPUS, Event.SHARING))
    used, waited = (whole.marks(mark).total() for mark in (Event.USED, Event.WAITED))
    crowded = np.flatnonzero((cpus > 0) & (sharing > cpus))
    known = used + waited > 0
    share = waiting(trace)
    if len(crowded) and not (known.all() and share < _HARMLESS):
        return [_crowded(whole, crowded, cpus, sharing, share if known.any() else None)]
    if share >= _NOTEWORTHY:
        most = int(np.argmax(waited))
        return [
            f"threads waited for a CPU {_percent(share)} of the time that they were ready to run "
            f"(most: {_who(whole, most)}): other programs ran on the same CPUs; the measured "
            "times include this waiting"
        ]
    return []


def waiting(trace: Trace) -> float:
    """Share of the time in which threads were ready to run that they waited for a CPU.

    Of the whole run, all threads together; 0 where nothing is known.
    """
    whole = trace.whole or trace
    used, waited = (int(whole.marks(mark).total().sum()) for mark in (Event.USED, Event.WAITED))
    return waited / max(used + waited, 1)


def _crowded(
    trace: Trace,
    crowded: NDArray[np.int64],
    cpus: NDArray[np.int64],
    sharing: NDArray[np.int64],
    share: float | None,
) -> str:
    worst = int(crowded[np.argmax(sharing[crowded] / cpus[crowded])])
    text = (
        f"more threads than CPUs: {int(sharing[worst])} threads may use only "
        f"{plural(int(cpus[worst]), 'CPU')} ({_who(trace, worst)} is one of them"
    )
    if len(crowded) < trace.locations:
        text += f"; {len(crowded)} of {trace.locations} threads share a CPU"
    text += ")"
    if share is not None:
        text += f"; they waited for a CPU {_percent(share)} of the time that they were ready to run"
    return text + "; the measured times include this waiting"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _who(trace: Trace, location: int) -> str:
    process = int(np.searchsorted(trace.process_offsets, location, side="right")) - 1
    thread = location - int(trace.process_offsets[process])
    return f"thread {thread} of rank {process}"


def first_values(trace: Trace, mark: Event) -> NDArray[np.int64]:
    """The first value that each location tells of a kind; 0 for none."""
    marks = trace.marks(mark)
    found = np.zeros(trace.locations, np.int64)
    found[marks.location[::-1]] = marks.value[::-1]  # of equal indices the last assignment stays
    return found
