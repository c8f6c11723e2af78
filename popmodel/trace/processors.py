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

    from popmodel.trace.instants import Instants
    from popmodel.trace.trace import Trace

_NOTEWORTHY = 0.02  # of the time of all threads
_HARMLESS = 0.005


def crowding(trace: Trace) -> list[str]:
    """Say whether threads waited for CPUs; a sentence each."""
    whole = trace.whole or trace
    cpus, sharing = (first_values(whole, mark) for mark in (Event.CPUS, Event.SHARING))
    used, waited = (whole.marks(mark).total() for mark in (Event.USED, Event.WAITED))
    return [
        said + ("; times of phases and signatures do not" if len(delays(whole)) else "")
        for said in crowded(cpus, sharing, used, waited, whole.process_offsets)
    ]


def crowded(
    cpus: NDArray[np.int64],
    sharing: NDArray[np.int64],
    used: NDArray[np.int64],
    waited: NDArray[np.int64],
    offsets: NDArray[np.int64],
) -> list[str]:
    """Say the same of what is known of each thread."""
    rows = np.flatnonzero((cpus > 0) & (sharing > cpus))
    known = used + waited > 0
    share = int(waited.sum()) / max(int((used + waited).sum()), 1)
    if len(rows) and not (known.all() and share < _HARMLESS):
        worst = int(rows[np.argmax(sharing[rows] / cpus[rows])])
        text = (
            f"more threads than CPUs: {int(sharing[worst])} threads may use only "
            f"{plural(int(cpus[worst]), 'CPU')} ({_who(offsets, worst)} is one of them"
        )
        if len(rows) < len(cpus):
            text += f"; {len(rows)} of {len(cpus)} threads share a CPU"
        text += ")"
        if known.any():
            text += (
                f"; they waited for a CPU {_percent(share)} of the time that they were ready to run"
            )
        return [text + "; the measured times include this waiting"]
    if share >= _NOTEWORTHY:
        return [
            f"threads waited for a CPU {_percent(share)} of the time that they were ready to run "
            f"(most: {_who(offsets, int(np.argmax(waited)))}): other programs ran on the same "
            "CPUs; the measured times include this waiting"
        ]
    return []


def waiting(trace: Trace) -> float:
    """Share of the time in which threads were ready to run that they waited for a CPU.

    Of the whole run, all threads together; 0 where nothing is known.
    """
    whole = trace.whole or trace
    used, waited = (int(whole.marks(mark).total().sum()) for mark in (Event.USED, Event.WAITED))
    return waited / max(used + waited, 1)


def delays(trace: Trace, kind: Event = Event.DELAYED) -> Instants:
    """What threads waited for a CPU in the computing that ends at each instant, ns.

    Times of a program's own computing are without it: those of signatures, phases and studies.
    Metrics of a trace are of its time as it passed. `Event.WOKEN`: when their team woke them up.
    """

    def told(trace: Trace) -> Instants:
        return trace.records.counters((kind,), slice(0, trace.locations))[0]

    return trace.derived(f"delays {kind.name}", told)


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _who(offsets: NDArray[np.int64], location: int) -> str:
    process = int(np.searchsorted(offsets, location, side="right")) - 1
    return f"thread {location - int(offsets[process])} of rank {process}"


def first_values(trace: Trace, mark: Event) -> NDArray[np.int64]:
    """The first value that each location tells of a kind; 0 for none."""
    marks = trace.marks(mark)
    found = np.zeros(trace.locations, np.int64)
    found[marks.location[::-1]] = marks.value[::-1]  # of equal indices the last assignment stays
    return found
