"""How many MPI calls a run makes, how much it computes between them, how much they send."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.patterns.traffic import given
from popmodel.simulator.program import Op
from popmodel.trace.calls import by_call, calls_made
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator.program import Program
    from popmodel.structure.structure import Structure
    from popmodel.trace import Trace

_NS = 1e9


@dataclass(frozen=True)
class CallUse:
    """The calls of one name."""

    name: str
    calls: int  # Of all threads
    time: float  # Time in them, s; 0 of a trace without measured times
    # Mean computing before each, s: how granular the communication is. None for calls that do
    # nothing (probes that find nothing) and those that communicate nothing.
    before: float | None
    # Mean bytes that a call sends; of a collective what a member contributes at most. None where a
    # call of this name sends nothing.
    bytes: float | None


def calls(
    structure: Structure, trace: Trace, begin: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[CallUse, ...]:
    """Sum up the MPI calls of which something lies in a part of a run, and their time in it."""
    found = trace.calls()
    number = len(found.names)
    acts = _acts(structure, begin, end)
    process = np.repeat(trace.process_of_location(), np.diff(found.offsets))
    begin, end = begin[process], end[process]
    held = np.minimum(found.exit, end) - np.maximum(found.entry, begin)
    times = np.bincount(found.name, np.maximum(held, 0), number) / _NS
    inside = (found.entry < end) & ((found.exit > begin) | (found.entry >= begin))
    made = calls_made(trace, inside) if trace.whole is None else calls_made(trace)
    time_in = by_call(found.names, times.tolist())
    uses = [
        CallUse(name, count, time_in.get(name, 0.0), *acts.get(name, (None, None)))
        for name, count in made.items()
    ]
    return tuple(sorted(uses, key=lambda use: (-use.time, -use.calls, use.name)))


def _acts(
    structure: Structure, begin: NDArray[np.int64], end: NDArray[np.int64]
) -> dict[str, tuple[float, float | None]]:
    """Mean computing before the calls that act, and mean bytes that they send, by name."""
    events = structure.events
    begin, end = begin[events.sequence], end[events.sequence]
    inside = (events.begin >= begin) & (events.begin < end) & ~np.asarray(events.is_region)
    rows = np.flatnonzero(inside)
    names, number = np.asarray(events.name)[rows], len(events.names)
    counts = np.bincount(names, minlength=number)
    before = np.bincount(names, events.before[rows], number) / _NS
    sent, sends = _sent(structure.program, np.asarray(events.first))
    sizes = np.bincount(names, sent[rows], number)
    sending = np.bincount(names, sends[rows], number)
    return {
        events.names[name]: (
            float(before[name] / counts[name]),
            float(sizes[name] / counts[name]) if sending[name] else None,
        )
        for name in np.flatnonzero(counts).tolist()
    }


def _sent(
    program: Program, first: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Bytes that each event sends, and whether it has an operation that sends."""
    sends = np.isin(program.kind, (Op.SEND, Op.ISEND, Op.COLLECTIVE, Op.ARRIVE))
    passed = np.concatenate([[0.0], np.cumsum(given(program))])
    operations = np.concatenate([[0], np.cumsum(sends)])
    return passed[first[1:]] - passed[first[:-1]], operations[first[1:]] - operations[first[:-1]]
