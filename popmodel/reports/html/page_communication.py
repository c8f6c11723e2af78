"""Who talks to whom: the matrix of a run, which a script draws in detail."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.base.units import count, format_size, plural
from popmodel.reports.figures import run_names
from popmodel.reports.html.contents import Contents, Section
from popmodel.reports.message_tables import (
    MatrixCell,
    MatrixPair,
    binned,
    drawn,
    pairs_of,
    quantity_of,
    ranks,
)
from popmodel.reports.views import Document

if TYPE_CHECKING:
    from numpy.typing import NDArray

ID = "communication"
_MOST_ROWS = 64  # of the matrix without script, which draws more
_MOST_PAIRS = 50  # lines of the table
_SIDE, _CELL = 420, 32  # pixels of the matrix, and of a cell of it, at most
_LEFT, _TOP = 64, 40  # room for what names its rows and columns
_DIGIT = 8  # pixels of a digit of a label


def section(contents: Contents) -> Section | None:
    """The communication of each trace that was asked about."""
    documents = [one for one in contents.inspected("communication") if one["messages"]]
    if not documents:
        return None
    names = run_names([one["trace"] for one in documents])
    runs = [_run(name, one) for name, one in zip(names, documents, strict=True)]
    largest = max(range(len(documents)), key=lambda number: int(documents[number]["processes"]))
    data = {"runs": [_for_script(one) for one in documents], "run": largest}
    packed = {
        f"{ID}-{number}-{name}": values
        for number, one in enumerate(documents)
        for name, values in _packed(one).items()
    }
    return Section(ID, "Who sends to whom", {"runs": runs}, data, packed)


def _run(name: str, document: Document) -> dict[str, Any]:
    return {
        "name": name,
        "matrix": _matrix(document),
        "pairs": _pairs(document),
        "several_nodes": _several_nodes(document),
    }


def _several_nodes(document: Document) -> bool:
    return (document["nodes"] or 1) > 1


def _matrix(document: Document) -> dict[str, Any]:
    """The matrix as it is without script: paths, and where its labels are."""
    found = binned(document, _MOST_ROWS)
    processes = document["processes"]
    quantity = quantity_of(document)
    cells, legend = drawn(found, quantity)
    cell = min(_CELL, _SIDE / found.rows)
    side = found.rows * cell
    step = math.ceil((_DIGIT * len(str(processes)) + 6) / cell)
    return {
        "quantity": quantity,
        "each": found.each,
        "width": round(_LEFT + side + 12),
        "height": round(_TOP + side + 4),
        "left": _LEFT,
        "top": _TOP,
        "side": round(side, 2),
        "cell": round(cell, 4),
        "labels": [
            {"at": round((row + 0.5) * cell, 1), "text": str(row * found.each)}
            for row in range(0, found.rows, step)
        ],
        "paths": _outlines(cells),
        "legend": legend,
    }


def _pairs(document: Document) -> dict[str, Any]:
    """The pairs with most bytes, in words, and what the others are."""
    each, processes = document["ranks_together"], document["processes"]
    ordered = sorted(pairs_of(document), key=lambda one: (-one.bytes, -one.messages))
    left = ordered[_MOST_PAIRS:]

    def line(one: MatrixPair) -> dict[str, Any]:
        ends = (ranks(rank // each, each, processes) for rank in (one.sender, one.receiver))
        return {
            "name": " to ".join(ends),
            "messages": count(one.messages),
            "bytes": format_size(one.bytes, digits=3),
            "mean": format_size(one.bytes / one.messages, digits=3),
            "within": one.within,
        }

    return {
        "shown": [line(one) for one in ordered[:_MOST_PAIRS]],
        "left": _left(len(left), "pair", sum(one.bytes for one in left)),
        "messages_left": count(sum(one.messages for one in left)),
    }


def _left(number: int, what: str, size: float) -> str:
    """What a table leaves out."""
    return f"and {plural(number, what)} more with {format_size(size, digits=3)}" if number else ""


def _for_script(document: Document) -> dict[str, Any]:
    return {
        "processes": document["processes"],
        "together": document["ranks_together"],
        "nodes": _several_nodes(document),
        "show": quantity_of(document),
    }


def _packed(document: Document) -> dict[str, NDArray[Any]]:
    """The pairs: rises of the sender, how far off the receiver is, sums, whether on one node."""
    pairs = document["pairs"]
    sender, receiver = (np.asarray(pairs[name], np.int64) for name in ("from", "to"))
    found = {
        "rise": _small(np.diff(sender, prepend=0)),
        "offset": (receiver - sender).astype(np.int32),
        "messages": _small(np.asarray(pairs["messages"], np.int64)),
        "bytes": _small(np.asarray(pairs["bytes"], np.int64)),
    }
    if _several_nodes(document):
        found["within"] = np.asarray(pairs["within_node"], np.uint8)
    return found


def _small(values: NDArray[np.int64]) -> NDArray[Any]:
    """Numbers of at least 0 in the smallest type that a browser has; beyond, as exact floats."""
    largest = int(values.max(initial=0))
    for kind in (np.uint8, np.uint16, np.uint32):
        if largest <= np.iinfo(kind).max:
            return values.astype(kind)
    return values.astype(np.float64)


def _outlines(cells: Iterable[MatrixCell]) -> dict[int, str]:
    """Path around the cells of each shade, a cell being 1 wide and high; neighbours in one go."""
    paths: dict[int, str] = {}
    ordered = sorted(cells, key=lambda cell: (cell.shade, cell.row, cell.column))
    # In a run of neighbours the column rises as fast as the place in order.
    for (shade, row, _), run in groupby(
        enumerate(ordered), key=lambda item: (item[1].shade, item[1].row, item[1].column - item[0])
    ):
        places = [cell.column for _, cell in run]
        length = len(places)
        paths[shade] = paths.get(shade, "") + f"M{places[0]} {row}h{length}v1h-{length}z"
    return paths
