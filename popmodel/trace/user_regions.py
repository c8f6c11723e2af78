"""Regions that users mark in their programs, and how long each thread is inside.

They open with their number and close the innermost with 0, as Extrae's user functions do (the same
event type). Where a region goes on around the one that ends, popmodel's tracer writes its number
again on the same line, for tools that show the last value. A region that ends before one that was
begun inside it ends with it; that one begins again at the same time.
The value of any other event type of a user's own holds until the next one, 0 for nothing, as
Paraver shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from popmodel.arrays import distinct
from popmodel.trace.blocks import rows_where_type, take, walk
from popmodel.trace.function_names import full_name
from popmodel.trace.names import SHORT_OPENMP, USER_EVENTS, USER_FUNCTION
from popmodel.trace.pieces import spread
from popmodel.trace.trace import location_of_row
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.trace.trace import Events, Trace

__all__ = ["Occurrences", "user_regions"]


@dataclass(frozen=True, eq=False)
class Occurrences:
    """When threads are inside regions; a region inside itself counts once.

    Attributes
    ----------
    names : tuple of str
        Of the regions, each once, in alphabetical order.
    label : int64[N]
        Index into `names`.
    location : int64[N]
    begin, end : int64[N]
        Nanoseconds; of one region and location in order.
    """

    names: tuple[str, ...]
    label: NDArray[np.int64]
    location: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]

    def of(self, name: str) -> Occurrences:
        """The occurrences of one of the regions."""
        mine = np.flatnonzero(self.label == self.names.index(name))
        columns = (self.label, self.location, self.begin, self.end)
        return Occurrences(self.names, *(column[mine] for column in columns))


def user_regions(trace: Trace) -> Occurrences:
    """Find the regions that a user has marked; found once for each trace.

    In a part of a run they are what lies inside it of those of the whole run.
    """
    return trace.derived("user_regions", _find)


def _find(trace: Trace) -> Occurrences:
    if trace.whole is not None and trace.pieces is not None:
        found, pieces = user_regions(trace.whole), trace.pieces
        which, piece = spread(*pieces.overlap(found.begin, found.end))
        begin = np.maximum(found.begin[which], pieces.begin[piece]) + pieces.shift[piece]
        end = np.minimum(found.end[which], pieces.end[piece]) + pieces.shift[piece]
        return _in_order(found.names, found.label[which], found.location[which], begin, end)
    typed = [each for type_ in _types(trace.events) if (each := _of_type(trace, type_))]
    names = tuple(sorted({name for mine, _ in typed for name in mine}))
    number = {name: index for index, name in enumerate(names)}
    columns = [np.empty((4, 0), np.int64)]
    for mine, (index, *others) in typed:
        label = np.array([number[name] for name in mine], np.int64)[index]
        columns.append(np.stack([label, *others]))
    return _in_order(names, *np.concatenate(columns, axis=1))


def _in_order(names: tuple[str, ...], *columns: NDArray[np.int64]) -> Occurrences:
    label, location, begin, _ = columns
    order = np.lexsort((begin, location, label))
    return Occurrences(names, *(column[order] for column in columns))


def _types(events: Events) -> list[int]:
    """Event types of the user's own that occur, ascending."""
    found: set[int] = set()
    for block in walk(events.type):
        types = distinct(events.type[block]).tolist()
        found |= {
            type_
            for type_ in types
            if type_ == USER_FUNCTION or (type_ in USER_EVENTS and type_ not in SHORT_OPENMP)
        }
    return sorted(found)


def _of_type(trace: Trace, type_: int) -> tuple[list[str], tuple[NDArray[np.int64], ...]] | None:
    """Names, and for each interval the index of its name, its location, begin and end.

    None for a type whose values never end: a number that a user records is no region.
    """
    events = trace.events
    rows = rows_where_type(events.type, (type_,))
    time, value = take(events.time, rows), take(events.value, rows)
    offsets = np.searchsorted(rows, events.offsets)
    location = location_of_row(offsets).astype(np.int64)
    follows = location[1:] == location[:-1]
    if type_ == USER_FUNCTION and np.any(follows & (value[1:] != 0) & (value[:-1] != 0)):
        nested = [
            (location, *each)
            for location, mine in enumerate(map(slice, offsets[:-1].tolist(), offsets[1:].tolist()))
            for each in _nested(time[mine].tolist(), value[mine].tolist(), trace.end)
        ]
        columns = np.array(nested, np.int64).reshape(-1, 4)
        location, open_, begin, end = columns.T
    elif type_ != USER_FUNCTION and not np.any(value == 0):
        return None
    else:
        until = np.append(time[1:], trace.end)
        until[np.flatnonzero(~follows)] = trace.end
        some = np.flatnonzero(value)
        location, open_, begin, end = location[some], value[some], time[some], until[some]
    values, index = np.unique(open_, return_inverse=True)
    return [_name(trace, type_, each) for each in values.tolist()], (index, location, begin, end)


def _nested(times: Sequence[int], values: Sequence[int], last: int) -> list[tuple[int, int, int]]:
    """Value, begin and end of what is open on a thread; inside itself nothing is opened again.

    Parameters
    ----------
    times, values : sequence of int
        Of the events.
    last : int
        When what is still open ends.
    """
    found: dict[int, tuple[int, int, int]] = {}
    stack: list[int] = []
    since: dict[int, int] = {}
    now, ended = -1, dict[int, int]()  # what ended last, and the number of its end
    for number, (time, value) in enumerate(zip(times, values, strict=True)):
        if time != now:
            now, ended = time, {}
        newest = max(ended.values(), default=-1)
        if not value and stack:
            value = stack.pop()
            ended[value] = number
            if value not in stack:
                found[number] = value, since.pop(value), time
        elif value and not (stack and newest == number - 1 and value == stack[-1]):
            if value not in since:
                crossed = ended.get(value, newest) < newest
                since[value] = found.pop(ended[value])[1] if crossed else time
            stack.append(value)
    return [*found.values(), *((value, begin, last) for value, begin in since.items())]


def _name(trace: Trace, type_: int, value: int) -> str:
    """Name of a region: that of its value, else of its type."""
    labels = trace.labels
    named = labels.event_values.get(type_, {})
    if type_ == USER_FUNCTION:
        return full_name(named.get(value, "")) or f"user function {value}"
    if not named:
        return labels.event_type(type_)
    return full_name(named.get(value, "")) or f"{labels.event_type(type_)}: {value}"
