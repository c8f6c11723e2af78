"""How many MPI calls a run makes, how much it computes between them, how much they send."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.simulator.program import Op
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator.program import Program
    from popmodel.structure.structure import Structure

__all__ = ["CallUse", "calls"]

_NS = 1e9


@dataclass(frozen=True)
class CallUse:
    """The calls of one name.

    Attributes
    ----------
    name : str
    calls : int
        Of all sequences.
    time : float
        Time in them, s; 0 of a trace without measured times.
    before : float
        Mean computing before each, s: how granular the communication is.
    bytes : float or None
        Mean bytes that a call sends; of a collective what a member contributes at most. None where
        a call of this name sends nothing.
    """

    name: str
    calls: int
    time: float
    before: float
    bytes: float | None


def calls(structure: Structure, begin: int, end: int) -> tuple[CallUse, ...]:
    """Sum up the MPI calls that begin in a window, and the time of all calls in it.

    The longest in all first. Calls that do nothing (probes that find nothing) are not among them.
    """
    events = structure.events
    is_call = ~np.asarray(events.is_region)
    names, number = np.asarray(events.name), len(events.names)
    held = np.minimum(events.end, end) - np.maximum(events.begin, begin)
    times = np.bincount(names, np.where(is_call, np.maximum(held, 0), 0), number) / _NS
    rows = np.flatnonzero((events.begin >= begin) & (events.begin < end) & is_call)
    names = names[rows]
    before = np.bincount(names, events.before[rows], number) / _NS
    sent, sends = _sent(structure.program, np.asarray(events.first))
    sizes = np.bincount(names, sent[rows], number)
    sending = np.bincount(names, sends[rows], number)
    counts = np.bincount(names, minlength=number)
    found = [
        CallUse(
            events.names[name],
            int(counts[name]),
            float(times[name]),
            float(before[name] / counts[name]),
            float(sizes[name] / counts[name]) if sending[name] else None,
        )
        for name in np.flatnonzero(counts).tolist()
    ]
    return tuple(sorted(found, key=lambda use: (-use.time, -use.calls, use.name)))


def _sent(
    program: Program, first: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Bytes that each event sends, and whether it has an operation that sends."""
    kind, target = np.asarray(program.kind), np.asarray(program.target)
    message = (kind == Op.SEND) | (kind == Op.ISEND)
    collective = (kind == Op.COLLECTIVE) | (kind == Op.ARRIVE)
    sizes = np.zeros(len(kind))
    sizes[message] = program.messages.size[target[message]]
    sizes[collective] = program.collectives.sent[target[collective]]
    passed = np.concatenate([[0.0], np.cumsum(sizes)])
    operations = np.concatenate([[0], np.cumsum(message | collective)])
    return passed[first[1:]] - passed[first[:-1]], operations[first[1:]] - operations[first[:-1]]
