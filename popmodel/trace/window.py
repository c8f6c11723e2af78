"""Cuts a trace to a window of time, or to several stretches that then follow one another."""

from __future__ import annotations

import dataclasses

import numpy as np

from popmodel.errors import PartError, UsageError
from popmodel.trace.columns import offsets_of
from popmodel.trace.pieces import Pieces, joined, spread
from popmodel.trace.trace import Int64, Messages, States, Trace, location_of_row
from popmodel.trace.window_events import events_of_pieces
from popmodel.units import format_time, plural

__all__ = ["cut", "splice"]


def cut(trace: Trace, begin: int, end: int) -> Trace:
    """Return the part of a trace between two times.

    States are clipped; those of which nothing is left are dropped. Events inside are kept, both
    edges included. A call, a region or another thing of MPI or OpenMP that is open at `begin` is
    opened there, and one that is open at `end` is closed there. A counter's reading counts since
    the reading before it: where that time extends over an edge, the count is divided in proportion
    to the time, as if it had risen evenly, and a reading at the edge is added (of 0 at `begin`).
    Messages are kept when one of their times lies inside.

    Cutting twice gives the same as cutting once to the common part, except that a counter that is
    divided twice is rounded twice.

    Parameters
    ----------
    begin, end : int
        Nanoseconds; what lies outside the trace's own window is left out.

    Raises
    ------
    UsageError
        `end` is not after `begin`.
    PartError
        The trace covers nothing of the window.
    """
    if not begin < end:
        raise UsageError(
            f"a window must end after it begins, not from {_seconds(begin)} to {_seconds(end)}",
            "give the earlier time first",
        )
    if end <= trace.begin or begin >= trace.end:
        raise PartError(
            trace.path,
            f"the window {_seconds(begin)} to {_seconds(end)} is outside the trace",
            hint=_covers(trace),
        )
    return _taken(trace, Pieces.window(max(begin, trace.begin), min(end, trace.end)))


def splice(trace: Trace, begin: Int64, end: Int64) -> Trace:
    """Return several stretches of a trace, one after the other, as if nothing had been between.

    Stretches that overlap or touch are one. Each is cut as `cut` does it; the first keeps its
    times, the times of the others are less what is left out before them. What goes on from one into
    the next is closed and opened again where they meet. Messages are kept as by `cut`; a time of
    theirs between two stretches is where these meet.

    Parameters
    ----------
    begin, end : int64[N]
        Nanoseconds, in any order; what lies outside the trace's own window is left out.

    Raises
    ------
    PartError
        The trace covers nothing of them.
    """
    first, last = joined(*(np.clip(time, trace.begin, trace.end) for time in (begin, end)))
    if not len(first):
        stretches = plural(len(begin), "stretch", "stretches")
        raise PartError(trace.path, f"{stretches} of time outside the trace", hint=_covers(trace))
    return _taken(trace, Pieces.in_a_row(first, last))


def _covers(trace: Trace) -> str:
    return f"the trace covers {_seconds(trace.begin)} to {_seconds(trace.end)}"


def _seconds(nanoseconds: int) -> str:
    return format_time(nanoseconds / 1e9, digits=9, trim=True)


def _taken(trace: Trace, pieces: Pieces) -> Trace:
    begin = int(pieces.start[0])
    return dataclasses.replace(
        trace,
        begin=begin,
        end=begin + pieces.length,
        states=_states(trace.states, pieces),
        events=events_of_pieces(trace.events, pieces),
        messages=_messages(trace.messages, pieces),
        whole=trace.whole or trace,
        pieces=pieces if trace.pieces is None else trace.pieces.of_pieces(pieces),
        _derived={},
    )


def _states(states: States, pieces: Pieces) -> States:
    first, count = pieces.overlap(states.begin, states.end)
    some = np.flatnonzero(count)
    which, piece = spread(first[some], count[some])
    row, shift = some[which], pieces.shift[piece]
    begin = np.maximum(states.begin[row], pieces.begin[piece]) + shift
    end = np.minimum(states.end[row], pieces.end[piece]) + shift
    location = location_of_row(states.offsets)[row]
    if len(pieces) > 1 and np.any((np.diff(begin) < 0) & (np.diff(location) == 0)):
        order = np.lexsort((begin, location))  # states that overlap, each in several pieces
        row, begin, end = row[order], begin[order], end[order]
    counts = np.bincount(location, minlength=len(states.offsets) - 1)
    return States(offsets_of(counts), begin, end, states.state[row])


def _messages(messages: Messages, pieces: Pieces) -> Messages:
    times = ("logical_send", "physical_send", "logical_receive", "physical_receive")
    kept = np.zeros(len(messages.size), bool)
    for name in times:
        kept |= pieces.holding(getattr(messages, name)) >= 0
    columns = {
        field.name: getattr(messages, field.name)[kept]
        for field in dataclasses.fields(Messages)
        if field.name != "offsets"
    }
    # Times before all pieces and after them stay so.
    until = np.append(pieces.end[:-1], np.iinfo(np.int64).max)
    for name in times:
        piece = np.maximum(np.searchsorted(pieces.begin, columns[name], side="right") - 1, 0)
        columns[name] = np.minimum(columns[name], until[piece]) + pieces.shift[piece]
    before = np.zeros(len(kept) + 1, np.int64)
    np.cumsum(kept, out=before[1:])
    return Messages(before[messages.offsets], **columns)
