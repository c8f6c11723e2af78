"""A window of time as text: states, events and messages of all threads in one order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from popmodel.arrays import distinct
from popmodel.trace.event import Event
from popmodel.trace.paraver.numbers import NUMBERS
from popmodel.trace.paraver.text import Bytes, Lines, digits, in_order, table

_NUMBER = np.zeros(max(Event) + 1, np.int64)
for _event, _number in NUMBERS.items():
    _NUMBER[_event] = _number


def event_of(number: int) -> Event:
    """The event that has a number."""
    return next(event for event, own in NUMBERS.items() if own == number)


def _types(events: NDArray[np.void]) -> NDArray[np.int64]:
    if "type" in (events.dtype.names or ()):
        return events["type"].astype(np.int64)
    found: NDArray[np.int64] = _NUMBER[events["event"]]
    return found


class Renderer:
    """Renders windows."""

    def __init__(self, where: Sequence[tuple[int, int, int]]) -> None:
        self._where = table([b"%d:1:%d:%d:" % each for each in where])

    def render(
        self,
        states: NDArray[np.void],
        events: NDArray[np.void],
        messages: NDArray[np.void],
        state_location: NDArray[np.int64],
        event_location: NDArray[np.int64],
    ) -> bytes:
        """Return the lines of a window.

        Events have a field ``event`` (`Event`) or ``type`` (a number of Paraver). At one time
        states come first, then events, then messages; those of one thread stay in their order.
        """
        first = np.flatnonzero(events["joined"] == 0)
        time = np.concatenate([states["begin"], events["time"][first], messages["physical_send"]])
        order = np.argsort(time, kind="stable")
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        edges = np.cumsum([len(states), len(first)])
        of_states, of_events, of_messages = np.split(place, edges)
        return in_order(
            [
                *self._states(states, state_location, of_states),
                *self._events(events, event_location, first, of_events),
                *self._messages(messages, of_messages),
            ]
        )

    def _states(
        self, states: NDArray[np.void], location: NDArray[np.int64], place: NDArray[np.int64]
    ) -> list[Lines]:
        if not len(states):
            return []
        begin, end, state = (digits(states[name]) for name in ("begin", "end", "state"))
        return [Lines(place, [b"1:", self._where[location], begin, b":", end, b":", state, b"\n"])]

    def _events(
        self,
        events: NDArray[np.void],
        location: NDArray[np.int64],
        first: NDArray[np.int64],
        place: NDArray[np.int64],
    ) -> list[Lines]:
        many = np.diff(np.append(first, len(events)))
        types = _types(events)
        kinds = []
        for count in distinct(many).tolist():
            chosen = np.flatnonzero(many == count)
            rows = first[chosen]
            columns: list[Bytes | bytes] = [
                b"2:",
                self._where[location[rows]],
                digits(events["time"][rows]),
            ]
            for _ in range(count):
                columns += [
                    b":",
                    digits(types[rows]),
                    b":",
                    digits(events["value"][rows]),
                ]
                rows = rows + 1
            kinds.append(Lines(place[chosen], [*columns, b"\n"]))
        return kinds

    def _messages(self, messages: NDArray[np.void], place: NDArray[np.int64]) -> list[Lines]:
        if not len(messages):
            return []
        columns: list[Bytes | bytes] = [b"3:", self._where[messages["sender"]]]
        columns += [digits(messages["logical_send"]), b":", digits(messages["physical_send"]), b":"]
        columns += [self._where[messages["receiver"]], digits(messages["logical_receive"]), b":"]
        columns += [digits(messages["physical_receive"]), b":", digits(messages["size"]), b":"]
        return [Lines(place, [*columns, digits(messages["tag"]), b"\n"])]
