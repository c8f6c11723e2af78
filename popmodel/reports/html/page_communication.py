"""Who talks to whom: the matrix of a run, and its largest pairs."""

from __future__ import annotations

import math
from itertools import groupby
from typing import Any

from popmodel.base.units import count, format_size, plural
from popmodel.reports.blocks import Role, TableBlock, TableRow, heads, notes, texts
from popmodel.reports.blocks import Section as BlockSection
from popmodel.reports.figures import run_names
from popmodel.reports.html.contents import Contents, Section
from popmodel.reports.message_tables import (
    Binned,
    MatrixPair,
    binned,
    index_of,
    level,
    pairs_of,
    quantity_of,
    ranks,
)
from popmodel.reports.renderers.html import html
from popmodel.reports.views import Document

_MOST_ROWS = 64  # of the matrix
_MOST_PAIRS = 50  # lines of the table
_SIDE, _CELL = 420, 32  # pixels of the matrix, and of a cell of it, at most
_LEFT, _TOP = 64, 40  # room for what names its rows and columns
_LEGEND = ("at least half of the largest", "a tenth", "a hundredth", "less")
_DIGIT = 8  # pixels of a digit of a label


def section(contents: Contents) -> Section | None:
    """The communication of each trace that was asked about."""
    documents = [one for one in contents.inspected("communication") if one["messages"]]
    if not documents:
        return None
    names = run_names([one["trace"] for one in documents])
    runs = [
        {"name": name, "matrix": _matrix(one), "pairs": html([_pairs(one)])}
        for name, one in zip(names, documents, strict=True)
    ]
    sizes = [int(one["processes"]) for one in documents]
    context = {"runs": runs, "largest": sizes.index(max(sizes))}
    return Section("communication", "Who sends to whom", context)


def _matrix(document: Document) -> dict[str, Any]:
    """The matrix as it is without script: paths, and where its labels are."""
    found = binned(document, _MOST_ROWS)
    processes = document["processes"]
    quantity = quantity_of(document)
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
        "paths": _outlines(found, index_of(quantity)),
        "legend": enumerate(_LEGEND),
    }


def _pairs(document: Document) -> BlockSection:
    """The pairs with most bytes, and what the others are."""
    each, processes = document["ranks_together"], document["processes"]
    several = (document["nodes"] or 1) > 1
    ordered = sorted(pairs_of(document), key=lambda pair: (-pair.bytes, -pair.messages))

    def row(pair: MatrixPair) -> TableRow:
        ends = (ranks(rank // each, each, processes) for rank in (pair.sender, pair.receiver))
        where = ["one node" if pair.within else "between nodes"] if several else []
        sizes = (format_size(size, digits=3) for size in (pair.bytes, pair.bytes / pair.messages))
        return TableRow(" to ".join(ends), texts([count(pair.messages), *sizes, *where]))

    columns = heads(["messages", "bytes", "mean size", *(["where"] if several else [])])
    table = TableBlock(columns, tuple(map(row, ordered[:_MOST_PAIRS])), first="ranks")
    left = ordered[_MOST_PAIRS:]
    messages, size = (sum(pair[at] for pair in left) for at in (2, 3))
    more = (
        f"and {plural(len(left), 'pair')} more with {format_size(size, digits=3)} in "
        f"{plural(messages, 'message')}"
    )
    return (table, *notes([more] if left else [], Role.REMARK))


def _outlines(found: Binned, index: int) -> dict[int, str]:
    """Path around the cells of each level, a cell being 1 wide and high; neighbours in one go."""
    largest = max(values[index] for values in found.cells.values())
    cells = [
        (level(values[index], largest), row, column)
        for (row, column), values in found.cells.items()
        if values[index]
    ]
    paths: dict[int, str] = {}
    # In a run of neighbours the column rises as fast as the place in order.
    for (shade, row, _), run in groupby(
        enumerate(sorted(cells)), key=lambda item: (*item[1][:2], item[1][2] - item[0])
    ):
        columns = [column for _, (_, _, column) in run]
        length = len(columns)
        paths[shade] = paths.get(shade, "") + f"M{columns[0]} {row}h{length}v1h-{length}z"
    return paths
