"""Numbers as text, a whole column at a time: lines of a Paraver trace from arrays.

A line is put together in a row of bytes that is as wide as its longest possible text; zero bytes
fill what is not needed and are removed at the end. Lines of different kinds are brought into one
order by cells of 16 bytes, of which each line takes as many as it needs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

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
    """Lines of one kind."""

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
