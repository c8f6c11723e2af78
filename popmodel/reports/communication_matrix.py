"""Who sends how much to whom, as a heat map: of characters, and as a drawing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from popmodel.base.units import count, format_size, plural
from popmodel.base.values import dataclass
from popmodel.reports.views import Document

MOST = 32
"""Rows of characters; more processes share rows."""
SHADES = 9
"""Shades of a drawing."""
_WIDE = 16
"""Processes up to which a cell has two characters, and every column its number."""
_MOST_DRAWN = 128
_LEVELS = ((0.5, "#"), (0.1, "+"), (0.01, ":"), (0.0, "."))
LEGEND = "# at least half of the largest, + a tenth, : a hundredth, . less"

Quantity = Literal["bytes", "messages"]


@dataclass(frozen=True)
class MatrixPair:
    """Messages from one process to another, or between processes that are taken together."""

    # Ranks; the first ones of those together.
    sender: int
    receiver: int
    # How many, and how much.
    messages: int
    bytes: int
    within: bool  # Whether both are on one node


class MatrixCell(NamedTuple):
    """A cell with something in it."""

    # Where it is.
    row: int
    column: int
    shade: int  # From 1 to `SHADES`, higher for more
    told: str  # What is in it, in words


@dataclass(frozen=True)
class Binned:
    """Sums over square cells of neighbouring ranks."""

    each: int  # Ranks of a row and of a column
    rows: int  # Rows, and as many columns
    # By row and column: messages and bytes, where there are any messages.
    cells: Mapping[tuple[int, int], tuple[int, int]]


def pairs_of(document: Document) -> Iterator[MatrixPair]:
    """The pairs of a document."""
    columns = ("from", "to", "messages", "bytes", "within_node")
    for row in zip(*(document["pairs"][name] for name in columns), strict=True):
        yield MatrixPair(*row)


def binned(document: Document, most: int) -> Binned:
    """Take neighbouring ranks together, so that there are at most `most` rows."""
    processes, together = document["processes"], document["ranks_together"]
    each = -(-processes // most)
    each = -(-each // together) * together
    cells: dict[tuple[int, int], tuple[int, int]] = {}
    for pair in pairs_of(document):
        place = pair.sender // each, pair.receiver // each
        messages, size = cells.get(place, (0, 0))
        cells[place] = messages + pair.messages, size + pair.bytes
    return Binned(each, -(-processes // each), cells)


def ranks(row: int, each: int, processes: int) -> str:
    """Ranks of a row: ``8`` or ``8-11``."""
    first, last = row * each, min((row + 1) * each, processes) - 1
    return str(first) if first == last else f"{first}-{last}"


def told(sender: str, receiver: str, messages: int, size: int) -> str:
    """Some messages in words."""
    text = f"{sender} to {receiver}: {plural(messages, 'message')}"
    return f"{text}, {format_size(size, digits=3)}" if size else text


@dataclass(frozen=True)
class MatrixScale:
    """Classes of values, each from a power of two to another, and their shades."""

    low: int  # Exponent of the lower end of the first class
    step: int  # A class is 2**step wide
    classes: int  # How many there are, at most `SHADES`

    def shade(self, value: float) -> int:
        """From 1 to `SHADES`, higher for more; 0 of nothing."""
        return self._shade((math.frexp(value)[1] - 1 - self.low) // self.step) if value else 0

    def ends(self) -> list[tuple[int, int]]:
        """Shade and lower end of each class, ascending."""
        return [
            (self._shade(number), 2 ** (self.low + number * self.step))
            for number in range(self.classes)
        ]

    def _shade(self, number: int) -> int:
        if self.classes == 1:
            return SHADES
        return 1 + (2 * number * (SHADES - 1) + self.classes - 1) // (2 * (self.classes - 1))


def scale(values: Iterable[float]) -> MatrixScale:
    """A scale for values of at least 1, or 0."""
    exponents = [math.frexp(value)[1] - 1 for value in values if value]
    if not exponents:
        return MatrixScale(0, 1, 0)
    low, octaves = min(exponents), max(exponents) - min(exponents) + 1
    step = -(-octaves // SHADES)
    return MatrixScale(low, step, -(-octaves // step))


def lines(document: Document) -> list[str]:
    """The matrix as lines of characters, not more than 80 of them wide."""
    found = binned(document, MOST)
    index = _index(quantity_of(document))
    names = [ranks(row, found.each, document["processes"]) for row in range(found.rows)]
    label = max(map(len, names))
    largest = max(values[index] for values in found.cells.values())
    wide = found.rows <= _WIDE and found.each == 1
    drawn = [f"{'':{label}} {_columns(names, wide=wide)}".rstrip()]
    for row, name in enumerate(names):
        values = (found.cells.get((row, column), (0, 0))[index] for column in range(found.rows))
        cells = (_character(value, largest) for value in values)
        text = "".join(f"{cell:>3}" for cell in cells) if wide else "".join(cells)
        drawn.append(f"{name:>{label}} {text}".rstrip())
    return drawn


def quantity_of(document: Document) -> Quantity:
    """What a matrix shows: bytes, or messages where all are empty."""
    return "bytes" if document["bytes"] else "messages"


def _index(quantity: Quantity) -> int:
    return ("messages", "bytes").index(quantity)


def _columns(names: Sequence[str], *, wide: bool) -> str:
    if wide:
        return "".join(f"{name:>3}" for name in names)
    text = ""
    for place in range(0, len(names), 8):
        text = text.ljust(place) + names[place].partition("-")[0]
    return text


def _character(value: int, largest: int) -> str:
    if not value:
        return " "
    return next(sign for least, sign in _LEVELS if value >= least * largest)


picture = "communication_matrix"


def drawn(
    found: Binned, names: Sequence[str], quantity: Quantity
) -> tuple[tuple[MatrixCell, ...], tuple[tuple[int, str], ...]]:
    """Shaded cells, and what the shades mean."""
    index = _index(quantity)
    made = scale(values[index] for values in found.cells.values())
    cells = tuple(
        MatrixCell(row, column, shade, told(names[row], names[column], *values))
        for (row, column), values in sorted(found.cells.items())
        if (shade := made.shade(values[index]))
    )
    written: Any = format_size if quantity == "bytes" else count
    return cells, tuple((shade, written(low)) for shade, low in made.ends())
