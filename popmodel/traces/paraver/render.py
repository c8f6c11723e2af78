"""Lines of a Paraver trace from arrays, a window of time after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from popmodel.base.arrays import distinct
from popmodel.traces.codes import Event
from popmodel.traces.paraver.numbers import NUMBERS

# Numbers as text, a whole column at a time: lines of a Paraver trace from arrays.
#
# A line is put together in a row of bytes that is as wide as its longest possible text; zero bytes
# fill what is not needed and are removed at the end. Lines of different kinds are brought into one
# order by cells of 16 bytes, of which each line takes as many as it needs.


_CELL = 16
_TEN_THOUSAND = 10_000

Bytes = NDArray[np.uint8]
Column = Bytes | bytes
"""Bytes of each line, or bytes that all lines share."""


def _tables() -> NDArray[np.uint32]:
    """Four digits of each number below 10000: without leading zeros, the same with 0, with them."""
    numbers = np.arange(_TEN_THOUSAND)
    parts = np.stack([numbers // 1000, numbers // 100 % 10, numbers // 10 % 10, numbers % 10], 1)
    full = (parts + ord("0")).astype(np.uint8)
    bare = np.where(np.maximum.accumulate(parts > 0, axis=1), full, 0).astype(np.uint8)
    least_one = bare.copy()
    least_one[0, 3] = ord("0")
    return np.concatenate([bare, least_one, full]).reshape(-1).view(np.uint32)


_FOUR = _tables()


def digits(values: NDArray[np.int64]) -> Bytes:
    """Decimal digits of numbers that are not negative, one row each, zero bytes in front."""
    largest = int(values.max(initial=0))
    groups = -(-len(str(largest)) // 4)
    text = np.empty((len(values), groups), np.uint32)
    rest: NDArray[np.int64] | NDArray[np.uint32] = values
    for group in reversed(range(groups)):
        if largest < 2**32:
            rest = rest.astype(np.uint32, copy=False)
        higher = rest // _TEN_THOUSAND
        row = (rest - higher * _TEN_THOUSAND).astype(np.intp)
        row[higher > 0] += 2 * _TEN_THOUSAND
        if group == groups - 1:
            row[higher == 0] += _TEN_THOUSAND
        text[:, group] = _FOUR[row]
        rest, largest = higher, largest // _TEN_THOUSAND
    return text.view(np.uint8)


def table(texts: Sequence[bytes]) -> Bytes:
    """Texts as rows of one width."""
    width = max(map(len, texts), default=0)
    padded = b"".join(text.ljust(width, b"\0") for text in texts)
    return np.frombuffer(padded, np.uint8).reshape(len(texts), width)


class Lines:
    def __init__(self, place: NDArray[np.int64], columns: Sequence[Column]) -> None:
        self.place = place
        widths = [len(c) if isinstance(c, bytes) else c.shape[1] for c in columns]
        self.cells = -(-sum(widths) // _CELL)
        text = np.zeros((len(place), self.cells * _CELL), np.uint8)
        at = 0
        for column, width in zip(columns, widths, strict=True):
            text[:, at : at + width] = (
                np.frombuffer(column, np.uint8) if isinstance(column, bytes) else column
            )
            at += width
        # Sixteen bytes that move as one; as numbers they mean nothing.
        self.text = text.view(np.complex128)


def in_order(kinds: Sequence[Lines]) -> bytes:
    """Text of all lines, each at its place; the places are 0, 1, 2, ... once."""
    count = sum(len(kind.place) for kind in kinds)
    cells = np.empty(count + 1, np.int64)
    cells[0] = 0
    for kind in kinds:
        cells[kind.place + 1] = kind.cells
    first = np.cumsum(cells, out=cells)
    text = np.empty(int(first[-1]), np.complex128)
    for kind in kinds:
        at = first[kind.place]
        for cell in range(kind.cells):
            text[at + cell] = kind.text[:, cell]
    return text.tobytes().translate(None, b"\0")


# A window of time as text: states, events and messages of all threads in one order.


_NUMBER = np.zeros(max(Event) + 1, np.int64)
for _event, _number in NUMBERS.items():
    _NUMBER[_event] = _number


def event_of(number: int) -> Event:
    return next(event for event, own in NUMBERS.items() if own == number)


class Renderer:
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
        has_types = "type" in (events.dtype.names or ())
        types = events["type"].astype(np.int64) if has_types else _NUMBER[events["event"]]
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
