"""Who talks to whom, how much, in messages of which size, and in which patterns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.base.units import count, format_size, plural
from popmodel.reports.html.contents import Contents
from popmodel.reports.html.section import Section
from popmodel.reports.message_tables import (
    SHOWN,
    MatrixCell,
    MatrixPair,
    alike,
    binned,
    drawn,
    facts,
    inexact,
    pairs_of,
    quantity_of,
    ranks,
    size_class,
)
from popmodel.reports.names import run_names
from popmodel.reports.views import Document

if TYPE_CHECKING:
    from numpy.typing import NDArray

ID = "communication"
_MOST_ROWS = 64  # of the matrix without script, which draws more
_MOST_PAIRS, _MOST_CALLS = 50, 30  # lines of tables
_SIDE, _CELL = 420, 32  # pixels of the matrix, and of a cell of it, at most
_LEFT, _TOP = 64, 40  # room for what names its rows and columns
_DIGIT = 8  # pixels of a digit of a label


def section(contents: Contents) -> Section | None:
    """The communication of each trace that was asked about."""
    documents = contents.inspected("communication")
    if not documents:
        return None
    names = run_names([one["trace"] for one in documents])
    runs = [_run(name, one) for name, one in zip(names, documents, strict=True)]
    data = {"runs": [_for_script(one) for one in documents]}
    packed = {
        f"{ID}-{number}-{name}": values
        for number, one in enumerate(documents)
        for name, values in _packed(one).items()
    }
    return Section(ID, "Communication", {"runs": runs}, data, packed)


def _run(name: str, document: Document) -> dict[str, Any]:
    return {
        "name": name,
        "caveats": document["caveats"],
        "facts": facts(document),
        "matrix": _matrix(document) if document["messages"] else None,
        "pairs": _pairs(document),
        "several_nodes": _several_nodes(document),
        "sizes": list(_sizes(document)),
        "calls": _calls(document),
        "patterns": _patterns(document),
        "notes": document["notes"],
    }


def _several_nodes(document: Document) -> bool:
    return (document["nodes"] or 1) > 1


def _matrix(document: Document) -> dict[str, Any]:
    """The matrix as it is without script: paths, and where its labels are."""
    found = binned(document, _MOST_ROWS)
    processes = document["processes"]
    names = [ranks(row, found.each, processes) for row in range(found.rows)]
    quantity = quantity_of(document)
    cells, legend = drawn(found, names, quantity)
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


def _sizes(document: Document) -> Iterator[dict[str, Any]]:
    """Classes of sizes with their shares of the largest one, for bars."""
    sizes = document["sizes"]
    messages = max((one["messages"] for one in sizes), default=0)
    size = max((one["bytes"] for one in sizes), default=0) or 1
    for one in sizes:
        yield {
            "text": size_class(one["from"], one["below"]),
            "messages": count(one["messages"]),
            "messages_share": one["messages"] / messages,
            "bytes": format_size(one["bytes"], digits=3),
            "bytes_share": one["bytes"] / size,
        }


def _calls(document: Document) -> dict[str, Any]:
    """Calls, those that take most time first; `time` is None where none was measured."""
    used = [one for one in document["calls"] if one["calls"]]
    ordered = sorted(used, key=lambda one: -(one.get("time") or 0.0))
    longest = max((one.get("time") or 0.0 for one in used), default=0.0) or 1.0
    left = ordered[_MOST_CALLS:]
    return {
        "shown": [
            {
                "name": one["name"],
                "calls": count(one["calls"]),
                "time": one.get("time"),
                "time_share": (one.get("time") or 0.0) / longest,
                "bytes": format_size(one["bytes"], digits=3) if one["bytes"] else "",
                "mean": format_size(one["bytes"] / one["calls"], digits=3) if one["bytes"] else "",
            }
            for one in ordered[:_MOST_CALLS]
        ],
        "left": _left(len(left), "call", sum(one["bytes"] for one in left)),
    }


def _patterns(document: Document) -> dict[str, Any]:
    """Patterns in words, alike ones together: as many as on a screen; the document has all."""
    ordered = alike(document)
    left = ordered[SHOWN:]
    size = sum(one["bytes"] for _, same in left for one in same)

    def line(text: str, same: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        sums = {key: sum(one[key] for one in same) for key in ("executions", "messages", "bytes")}
        return {
            "text": text,
            "why": "" if same[0]["kind"] == "list" else inexact(same).strip(),
            "executions": count(sums["executions"]),
            "messages": count(sums["messages"]),
            "bytes": format_size(sums["bytes"], digits=3) if sums["bytes"] else "",
        }

    return {
        "shown": [line(text, same) for text, same in ordered[:SHOWN]],
        "left": _left(len(left), "pattern", size),
    }


def _for_script(document: Document) -> dict[str, Any]:
    return {
        "processes": document["processes"],
        "together": document["ranks_together"],
        "nodes": _several_nodes(document),
        "show": quantity_of(document),
    }


def _packed(document: Document) -> dict[str, NDArray[Any]]:
    """The pairs: rises of the sender, how far off the receiver is, sums, whether on one node."""
    if not document["messages"]:
        return {}
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
