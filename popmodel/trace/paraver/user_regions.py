"""Regions that users mark, in the events of a Paraver trace.

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

from popmodel.trace.blocks import take
from popmodel.trace.event import Event
from popmodel.trace.function_names import full_name
from popmodel.trace.paraver.events import rows_where_type, types_of
from popmodel.trace.paraver.numbers import NUMBERS, SHORT_OPENMP, USER_EVENTS
from popmodel.trace.tables import location_of_row
from popmodel.trace.user_regions import Occurrences

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.trace.paraver.labels import Labels
    from popmodel.trace.tables import EventTable

_USER_FUNCTION = NUMBERS[Event.USER_REGION]


def user_regions(events: EventTable, labels: Labels, last: int) -> Occurrences:
    """Find the regions that a user has marked; what is still open ends at `last`, ns."""
    typed = [each for type_ in _types(events) if (each := _of_type(events, labels, type_, last))]
    names = tuple(sorted({name for mine, _ in typed for name in mine}))
    number = {name: index for index, name in enumerate(names)}
    columns = [np.empty((4, 0), np.int64)]
    for mine, (index, *others) in typed:
        label = np.array([number[name] for name in mine], np.int64)[index]
        columns.append(np.stack([label, *others]))
    return Occurrences.in_order(names, *np.concatenate(columns, axis=1))


def _types(events: EventTable) -> list[int]:
    """Event types of the user's own that occur, ascending."""
    return sorted(
        type_
        for type_ in types_of(events)
        if type_ == _USER_FUNCTION or (type_ in USER_EVENTS and type_ not in SHORT_OPENMP)
    )


def _of_type(
    events: EventTable, labels: Labels, type_: int, last: int
) -> tuple[list[str], tuple[NDArray[np.int64], ...]] | None:
    """Names, and for each interval the index of its name, its location, begin and end.

    None for a type whose values never end: a number that a user records is no region.
    """
    rows = rows_where_type(events.type, (type_,))
    time, value = take(events.time, rows), take(events.value, rows)
    offsets = np.searchsorted(rows, events.offsets)
    location = location_of_row(offsets).astype(np.int64)
    follows = location[1:] == location[:-1]
    if type_ == _USER_FUNCTION and np.any(follows & (value[1:] != 0) & (value[:-1] != 0)):
        nested = [
            (location, *each)
            for location, mine in enumerate(map(slice, offsets[:-1].tolist(), offsets[1:].tolist()))
            for each in _nested(time[mine].tolist(), value[mine].tolist(), last)
        ]
        columns = np.array(nested, np.int64).reshape(-1, 4)
        location, open_, begin, end = columns.T
    elif type_ != _USER_FUNCTION and not np.any(value == 0):
        return None
    else:
        until = np.append(time[1:], last)
        until[np.flatnonzero(~follows)] = last
        some = np.flatnonzero(value)
        location, open_, begin, end = location[some], value[some], time[some], until[some]
    values, index = np.unique(open_, return_inverse=True)
    return [_name(labels, type_, each) for each in values.tolist()], (index, location, begin, end)


def _nested(times: Sequence[int], values: Sequence[int], last: int) -> list[tuple[int, int, int]]:
    """Value, begin and end of what is open on a thread; inside itself nothing is opened again."""
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


def _name(labels: Labels, type_: int, value: int) -> str:
    """Name of a region: that of its value, else of its type."""
    named = labels.event_values.get(type_, {})
    if type_ == _USER_FUNCTION:
        return full_name(named.get(value, "")) or f"user function {value}"
    if not named:
        return labels.event_type(type_)
    return full_name(named.get(value, "")) or f"{labels.event_type(type_)}: {value}"
