"""The events of some pieces of a run: what is open at an edge is closed there and opened again."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from popmodel.arrays import distinct
from popmodel.kernel import _kernel
from popmodel.trace.blocks import walk_locations
from popmodel.trace.columns import offsets_of
from popmodel.trace.names import COUNTER_RANGE, MPI_TYPES, OPENMP_TYPES
from popmodel.trace.pieces import Pieces, spread
from popmodel.trace.trace import Events, Int64, location_of_row

__all__ = ["events_of_pieces"]

_ROWS = 1 << 17  # events that are cut together: a hundred bytes are taken for each
_SPANNING = {*MPI_TYPES, *OPENMP_TYPES}
_NEVER = np.iinfo(np.int64).max
_BEGIN, _READING, _CLOSING = range(3)
_Side: TypeAlias = Literal["left", "right"]


def events_of_pieces(events: Events, pieces: Pieces) -> Events:
    """Cut the events of some locations after those of others, so that little memory is taken."""
    parts = [
        _cut(_of_locations(events, locations), pieces)
        for locations in walk_locations(
            events.offsets, events.time, events.type, events.value, rows=_ROWS
        )
    ]
    if len(parts) == 1:
        return parts[0]
    rows = np.cumsum([0, *(len(part.time) for part in parts)])
    offsets = [part.offsets[:-1] + before for part, before in zip(parts, rows, strict=False)]
    return Events(
        np.concatenate([*offsets, rows[-1:]]),
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("time", "type", "value")
        ),
    )


def _of_locations(events: Events, locations: slice) -> Events:
    offsets = events.offsets[locations.start : locations.stop + 1]
    rows = slice(int(offsets[0]), int(offsets[-1]))
    return Events(offsets - offsets[0], events.time[rows], events.type[rows], events.value[rows])


class _Added(NamedTuple):
    """Events that are added at edges of pieces.

    Attributes
    ----------
    group : int64[n]
        `_BEGIN` at the begin of a piece; `_READING`, and behind it `_CLOSING`, at its end.
    row : int64[n]
        The event whose location and type each has.
    piece : int64[n]
    value : int64[n]
    """

    group: Int64
    row: Int64
    piece: Int64
    value: Int64

    @classmethod
    def of(cls, group: int, row: Int64, piece: Int64, value: Int64 | int) -> _Added:
        """Events of one group."""
        return cls(np.full(len(row), group), row, piece, np.broadcast_to(value, row.shape))


class _Neighbours(NamedTuple):
    """Events of one type that have an edge between them and the next of their location.

    Attributes
    ----------
    row, next_row : int64[n]
        Where there is no next one, any.
    time, next_time : int64[n]
        Where there is no next one, `_NEVER`.
    """

    row: Int64
    next_row: Int64
    time: Int64
    next_time: Int64

    def over(self, edges: Int64, first: _Side, last: _Side) -> tuple[Int64, Int64]:
        """Edges between the times of each pair, in order: the pair and the edge.

        An edge at the earlier time counts if `first` is ``left``, one at the later time if `last`
        is ``right``.
        """
        begin = np.searchsorted(edges, self.time, side=first)
        end = np.searchsorted(edges, self.next_time, side=last)
        return spread(begin, np.maximum(end - begin, 0))


def _cut(events: Events, pieces: Pieces) -> Events:
    piece = pieces.holding(events.time)
    added, changes = [_Added.of(_BEGIN, *np.empty((3, 0), np.int64))], []
    for type_ in distinct(events.type).tolist():
        if type_ in _SPANNING:
            added += _opened_and_closed(events, _neighbours(events, type_, piece), pieces)
        elif type_ in COUNTER_RANGE:
            pairs = _neighbours(events, type_, piece)
            added += _readings(events, pairs, pieces)
            changes.append(_divided(events, pairs, pieces, piece))
    group, row, of, value = (np.concatenate(each) for each in zip(*added, strict=True))
    location = location_of_row(events.offsets)
    tie = np.where(group == _READING, events.type[row], row)
    order = np.lexsort((tie, group, of, location[row]))
    group, row, of, value = (each[order] for each in (group, row, of, value))

    # Each is put before one of the events inside.
    time = np.where(group == _BEGIN, pieces.begin[of], pieces.end[of])
    inside = np.flatnonzero(piece >= 0)
    earlier = _kernel.locate(
        events.offsets, events.time, location[row].astype(np.int64), time - (group == _BEGIN)
    )
    before = np.searchsorted(inside, earlier + 1)
    taken = np.insert(inside, before, row)
    place = before + np.arange(len(before))
    times, values = events.time[taken], events.value[taken]
    times[place], values[place] = time, value
    for changed, counted in changes:
        at = np.searchsorted(inside, changed)
        values[at + np.searchsorted(before, at, side="right")] = counted
    if np.any(pieces.shift):
        times += pieces.shift[np.insert(piece[inside], before, of)]
    offsets = np.searchsorted(inside, events.offsets)
    offsets += offsets_of(np.bincount(location[row], minlength=len(offsets) - 1))
    return Events(offsets, times, events.type[taken], values)


def _neighbours(events: Events, type_: int, piece: Int64) -> _Neighbours:
    rows = np.flatnonzero(events.type == type_)
    last = np.searchsorted(rows, events.offsets[1:]) - 1
    last = last[last >= 0]  # of each location that has one, some repeatedly
    mine = piece[rows]
    near = mine < 0
    near[:-1] |= mine[1:] != mine[:-1]
    near[last] = True
    some = np.flatnonzero(near)
    row, next_row = rows[some], rows[np.minimum(some + 1, len(rows) - 1)]
    ends = np.zeros(len(rows), bool)
    ends[last] = True
    next_time = np.where(ends[some], _NEVER, events.time[next_row])
    return _Neighbours(row, next_row, events.time[row], next_time)


def _opened_and_closed(events: Events, pairs: _Neighbours, pieces: Pieces) -> list[_Added]:
    """What is open at the begin of pieces, and at their end."""
    held = np.flatnonzero(events.value[pairs.row] != 0)
    pairs = _Neighbours(*(column[held] for column in pairs))
    pair, begun = pairs.over(pieces.begin, "right", "right")
    opened = _Added.of(_BEGIN, pairs.row[pair], begun, events.value[pairs.row[pair]])
    pair, ended = pairs.over(pieces.end, "left", "left")
    return [opened, _Added.of(_CLOSING, pairs.row[pair], ended, 0)]


def _readings(events: Events, pairs: _Neighbours, pieces: Pieces) -> list[_Added]:
    """Readings of a counter at the begin of pieces, which count nothing, and at their end."""
    follows = np.flatnonzero(pairs.next_time < _NEVER)
    pairs = _Neighbours(*(column[follows] for column in pairs))
    pair, begun = pairs.over(pieces.begin, "right", "left")
    zero = _Added.of(_BEGIN, pairs.row[pair], begun, 0)
    pair, ended = pairs.over(pieces.end, "right", "left")
    passed = pieces.end[ended] - np.maximum(pairs.time[pair], pieces.begin[ended])
    share = passed / (pairs.next_time[pair] - pairs.time[pair])
    counted = np.rint(events.value[pairs.next_row[pair]] * share).astype(np.int64)
    return [zero, _Added.of(_READING, pairs.row[pair], ended, counted)]


def _divided(
    events: Events, pairs: _Neighbours, pieces: Pieces, piece: Int64
) -> tuple[Int64, Int64]:
    """Readings of a counter behind the begin of their piece, less what was counted before it."""
    mine = piece[pairs.next_row]
    begin = pieces.begin[mine]
    over = (pairs.next_time < _NEVER) & (mine >= 0)
    over &= (pairs.time < begin) & (begin < pairs.next_time)
    row, time, next_time = pairs.next_row[over], pairs.time[over], pairs.next_time[over]
    share = (next_time - begin[over]) / (next_time - time)
    return row, np.rint(events.value[row] * share).astype(np.int64)
