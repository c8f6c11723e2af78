"""Cuts a trace to a window of time, or to several stretches that then follow one another."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from popmodel.errors import PartError, UsageError
from popmodel.trace.calls import cut_calls
from popmodel.trace.event import MARKS
from popmodel.trace.intervals import Intervals
from popmodel.trace.pieces import TracePieces, cut_instants, joined, spread
from popmodel.trace.records import Records, Synchronisation
from popmodel.trace.tables import EventTable, MessageTable, States, location_of_row, offsets_of
from popmodel.trace.user_regions import user_regions
from popmodel.units import format_time, plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from popmodel.trace.calls import CallTable
    from popmodel.trace.event import Event
    from popmodel.trace.instants import Instants
    from popmodel.trace.records import OpenMP
    from popmodel.trace.tables import Int64
    from popmodel.trace.trace import Trace
    from popmodel.trace.user_regions import Occurrences


def cut(trace: Trace, begin: int, end: int) -> Trace:
    """Return the part of a trace between two times.

    States are clipped; those of which nothing is left are dropped. A call, a region or another
    thing of MPI or OpenMP that goes on over an edge is clipped to it. A counter's reading counts
    since the reading before it: where that time extends over an edge, the count is divided in
    proportion to the time, as if it had risen evenly, and a reading at the edge is added (of 0 at
    `begin`). Messages are kept when one of their times lies inside, events when theirs does, both
    edges included.

    Cutting twice gives the same as cutting once to the common part.
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
    return _taken(trace, TracePieces.window(max(begin, trace.begin), min(end, trace.end)))


def splice(trace: Trace, begin: Int64, end: Int64) -> Trace:
    """Return several stretches of a trace, one after the other, as if nothing had been between.

    Stretches that overlap or touch are one. Each is cut as `cut` does it; the first keeps its
    times, the times of the others are less what is left out before them. What goes on from one into
    the next ends and begins again where they meet. Messages are kept as by `cut`; a time of
    theirs between two stretches is where these meet.
    """
    first, last = joined(*(np.clip(time, trace.begin, trace.end) for time in (begin, end)))
    if not len(first):
        stretches = plural(len(begin), "stretch", "stretches")
        raise PartError(trace.path, f"{stretches} of time outside the trace", hint=_covers(trace))
    return _taken(trace, TracePieces.in_a_row(first, last))


def _covers(trace: Trace) -> str:
    covered = f"the trace covers {_seconds(trace.begin)} to {_seconds(trace.end)}"
    if not trace.origin:
        return covered
    return f"{covered}, from its first record on ({_seconds(trace.origin)} in the file)"


def _seconds(nanoseconds: int) -> str:
    return format_time(nanoseconds / 1e9, digits=9, trim=True)


def _taken(trace: Trace, pieces: TracePieces) -> Trace:
    whole = trace.whole or trace
    kept = pieces if trace.pieces is None else trace.pieces.of_pieces(pieces)
    begin = int(pieces.start[0])
    return dataclasses.replace(
        trace,
        begin=begin,
        end=begin + pieces.length,
        records=WindowPart(whole, kept),
        whole=whole,
        pieces=kept,
        _derived={},
    )


class WindowPart(Records):
    """What is left of the records of a run in some pieces of it."""

    def __init__(self, whole: Trace, pieces: TracePieces) -> None:
        super().__init__(whole.locations)
        self._whole, self._pieces = whole, pieces

    @property
    def states(self) -> States:
        """States, clipped; those of which nothing is left are dropped."""
        return _states(self._whole.states, self._pieces)

    def in_state(self, state: int) -> Intervals:
        """When threads are in a state, clipped."""
        return Intervals.in_state(self._whole.states, state, self._pieces)

    @property
    def messages(self) -> MessageTable:
        """Messages with a time inside."""
        return _messages(self._whole.messages, self._pieces)

    @property
    def events(self) -> EventTable:
        """Events inside, both edges included."""
        events = self._whole.records.events
        row, offsets, time = cut_instants(events.offsets, events.time, self._pieces)
        return EventTable(offsets, time, events.type[row], events.value[row])

    def calls(self) -> CallTable:
        """MPI calls, clipped."""
        return cut_calls(self._whole.calls(), self._pieces)

    def openmp(self) -> OpenMP:
        """Parallel regions, clipped."""
        found = self._whole.derived("openmp", lambda whole: whole.records.openmp())
        return dataclasses.replace(
            found,
            constructs=found.constructs.cut(self._pieces),
            functions=found.functions.cut(self._pieces),
        )

    def synchronisation(self) -> Synchronisation:
        """When threads wait for each other, clipped."""
        found = self._whole.records.synchronisation()
        return Synchronisation(
            tuple(each.cut(self._pieces) for each in found.barriers),
            tuple(each.cut(self._pieces) for each in found.locks),
        )

    def user_regions(self) -> Occurrences:
        """Regions that users mark, clipped."""
        return user_regions(self._whole).cut(self._pieces)

    def lock_waits(self) -> Instants:
        """Time waited for locks that is told inside, ns."""
        return self._whole.records.lock_waits().cut(self._pieces)

    def counters(self, counters: Sequence[Event], locations: slice) -> list[Instants]:
        """Readings of hardware counters of some locations, divided at the edges."""
        found = self._whole.records.counters(counters, locations)
        return [each.divided(self._pieces) for each in found]

    def counter_names(self) -> list[str]:
        """Hardware counters of the whole run."""
        return self._whole.records.counter_names()

    def marks(self) -> Mapping[Event, Instants]:
        """What the tracer tells inside."""
        return {mark: self._whole.marks(mark).cut(self._pieces) for mark in MARKS}


def _states(states: States, pieces: TracePieces) -> States:
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


def _messages(messages: MessageTable, pieces: TracePieces) -> MessageTable:
    times = ("logical_send", "physical_send", "logical_receive", "physical_receive")
    kept = np.zeros(len(messages.size), bool)
    for name in times:
        kept |= pieces.holding(getattr(messages, name)) >= 0
    columns = {
        field.name: getattr(messages, field.name)[kept]
        for field in dataclasses.fields(MessageTable)
        if field.name != "offsets"
    }
    # Times before all pieces and after them stay so.
    until = np.append(pieces.end[:-1], np.iinfo(np.int64).max)
    for name in times:
        piece = np.maximum(np.searchsorted(pieces.begin, columns[name], side="right") - 1, 0)
        columns[name] = np.minimum(columns[name], until[piece]) + pieces.shift[piece]
    before = np.zeros(len(kept) + 1, np.int64)
    np.cumsum(kept, out=before[1:])
    return MessageTable(before[messages.offsets], **columns)
