"""Parts of a run: records cut to a window, or to several stretches one after the other."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.arrays import spread
from popmodel.base.errors import PartError, UsageError
from popmodel.base.units import format_time, plural
from popmodel.traces.calls import CallTable, cut_calls
from popmodel.traces.codes import MARKS, Event
from popmodel.traces.intervals import Instants, Intervals, TracePieces, cut_instants, joined
from popmodel.traces.records import FunctionTimes, OpenMP, Records, Synchronisation
from popmodel.traces.regions import Occurrences, user_regions
from popmodel.traces.tables import (
    EventTable,
    Int64,
    MessageTable,
    States,
    location_of_row,
    offsets_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from popmodel.traces.device_rows import DeviceRows
    from popmodel.traces.recorded_run import Trace

_NS = 1e9


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
            "a window must end after it begins, not from "
            f"{_exact_seconds(begin)} to {_exact_seconds(end)}",
            "give the earlier time first",
        )
    if end <= trace.begin or begin >= trace.end:
        outside = f"the window {span_text(begin, end)} is outside the trace"
        raise PartError(trace.path, outside, hint=_covers(trace))
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
    covered = f"the trace covers {span_text(trace.begin, trace.end)}"
    if not trace.origin:
        return covered
    return f"{covered}, from its first record on ({_exact_seconds(trace.origin)} in the file)"


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
        states, pieces = self._whole.states, self._pieces
        first, number = pieces.overlap(states.begin, states.end)
        some = np.flatnonzero(number)
        which, piece = spread(first[some], number[some])
        row, shift = some[which], pieces.shift[piece]
        begin = np.maximum(states.begin[row], pieces.begin[piece]) + shift
        end = np.minimum(states.end[row], pieces.end[piece]) + shift
        location = location_of_row(states.offsets)[row]
        if len(pieces) > 1 and np.any((np.diff(begin) < 0) & (np.diff(location) == 0)):
            order = np.lexsort((begin, location))  # states that overlap, each in several pieces
            row, begin, end = row[order], begin[order], end[order]
        counts = np.bincount(location, minlength=self.locations)
        return States(offsets_of(counts), begin, end, states.state[row])

    def in_state(self, state: int) -> Intervals:
        return Intervals.in_state(self._whole.states, state, self._pieces)

    @property
    def messages(self) -> MessageTable:
        messages, pieces = self._whole.messages, self._pieces
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
        return MessageTable(np.append(0, np.cumsum(kept))[messages.offsets], **columns)

    @property
    def events(self) -> EventTable:
        events = self._whole.records.events
        row, offsets, time = cut_instants(events.offsets, events.time, self._pieces)
        return EventTable(offsets, time, events.type[row], events.value[row])

    def calls(self) -> CallTable:
        return cut_calls(self._whole.calls(), self._pieces)

    def openmp(self) -> OpenMP:
        found = self._whole.derived("openmp", lambda whole: whole.records.openmp())
        return found._replace(
            constructs=found.constructs.cut(self._pieces),
            functions=found.functions.cut(self._pieces),
        )

    def synchronisation(self) -> Synchronisation:
        found = self._whole.records.synchronisation()
        return Synchronisation(
            tuple(intervals.cut(self._pieces) for intervals in found.barriers),
            tuple(intervals.cut(self._pieces) for intervals in found.locks),
        )

    def user_regions(self) -> Occurrences:
        return user_regions(self._whole).cut(self._pieces)

    def functions(
        self, process_offsets: NDArray[np.int64], pieces: TracePieces | None = None
    ) -> FunctionTimes | None:
        of_whole = self._pieces if pieces is None else self._pieces.of_pieces(pieces)
        return self._whole.records.functions(process_offsets, of_whole)

    def file_io(self) -> Intervals:
        found = self._whole.derived("file_io", lambda whole: whole.records.file_io())
        return found.cut(self._pieces)

    def devices(self) -> DeviceRows:
        return self._whole.devices.cut(self._pieces)

    def lock_waits(self) -> Instants:
        return self._whole.records.lock_waits().cut(self._pieces)

    def counters(self, counters: Sequence[Event | str], locations: slice) -> list[Instants]:
        found = self._whole.records.counters(counters, locations)
        return [readings.divided(self._pieces) for readings in found]

    def counter_names(self) -> list[str]:
        return self._whole.records.counter_names()

    def marks(self) -> Mapping[Event, Instants]:
        return {mark: self._whole.marks(mark).cut(self._pieces) for mark in MARKS}


def span_text(begin: int, end: int) -> str:
    """Two times in words, as exact as they are."""
    return f"{_exact_seconds(begin)} to {_exact_seconds(end)}"


def _exact_seconds(nanoseconds: int) -> str:
    return format_time(nanoseconds / _NS, digits=9, trim=True)
