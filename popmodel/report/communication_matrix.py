"""Who sends how much to whom, as a heat map: of characters, and as a drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from popmodel.report.communication_words import grid_text
from popmodel.report.pictures import Cells, Picture
from popmodel.report.views import Document
from popmodel.units import count, format_size, plural

MOST = 32
"""Rows of characters; more processes share rows."""
_WIDE = 16
"""Processes up to which a cell has two characters, and every column its number."""
_MOST_DRAWN = 128
_LEVELS = ((0.5, "#"), (0.1, "+"), (0.01, ":"), (0.0, "."))
LEGEND = "# at least half of the largest, + a tenth, : a hundredth, . less"


def binned(
    processes: int, pairs: Sequence[Mapping[str, Any]], most: int, key: str = "bytes"
) -> tuple[int, list[list[int]]]:
    """Ranks of a row, and sums over such rows and columns."""
    each = -(-processes // most)
    rows = -(-processes // each)
    found = [[0] * rows for _ in range(rows)]
    for pair in pairs:
        found[pair["from"] // each][pair["to"] // each] += pair[key]
    return each, found


def lines(processes: int, pairs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The matrix as lines of characters, not more than 80 of them wide."""
    key = "bytes" if any(pair["bytes"] for pair in pairs) else "messages"
    each, found = binned(processes, pairs, MOST, key)
    names = [_ranks(row, each, processes) for row in range(len(found))]
    label = max(map(len, names))
    largest = max(max(row) for row in found)
    wide = len(found) <= _WIDE and each == 1
    drawn = [f"{'':{label}} {_columns(names, wide=wide)}".rstrip()]
    for name, row in zip(names, found, strict=True):
        cells = (_shade(value, largest) for value in row)
        text = "".join(f"{cell:>3}" for cell in cells) if wide else "".join(cells)
        drawn.append(f"{name:>{label}} {text}".rstrip())
    return drawn


def _columns(names: Sequence[str], *, wide: bool) -> str:
    if wide:
        return "".join(f"{name:>3}" for name in names)
    text = ""
    for place in range(0, len(names), 8):
        text = text.ljust(place) + names[place].partition("-")[0]
    return text


def _ranks(row: int, each: int, processes: int) -> str:
    """Ranks of a row: ``8`` or ``8-11``."""
    first, last = row * each, min((row + 1) * each, processes) - 1
    return str(first) if first == last else f"{first}-{last}"


def _shade(value: int, largest: int) -> str:
    if not value:
        return " "
    return next(sign for least, sign in _LEVELS if value >= least * largest)


def picture(document: Document) -> Picture:
    """The matrix as squares, darker for more bytes."""
    processes, pairs = document["processes"], document["pairs"]
    each, found = binned(processes, pairs, _MOST_DRAWN)
    names = tuple(_ranks(row, each, processes) for row in range(len(found)))
    largest = max((max(row) for row in found), default=0)
    told = tuple(
        tuple(
            f"{a} to {b}: {format_size(value, digits=3)}" if value else ""
            for b, value in zip(names, row, strict=True)
        )
        for a, row in zip(names, found, strict=True)
    )
    facts = [
        f"{count(processes)} processes, {plural(document['messages'], 'message')}, "
        f"{format_size(document['bytes'])}",
        f"grid: {grid_text(document)}",
    ]
    return Picture(
        "Bytes sent, from each process to each",
        facts,
        Cells(
            names,
            tuple(tuple(value / largest if largest else 0.0 for value in row) for row in found),
            told,
            "from",
            "to",
            f"darkest: {format_size(largest, digits=3)}; scale of the square root",
        ),
        [],
    )
