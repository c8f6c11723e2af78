"""A signature beside a trace: what both take, compute and exchange."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from popmodel.base.units import count, format_size, format_time
from popmodel.efficiency.hierarchy import load_families
from popmodel.reports.blocks import (
    Brief,
    Facts,
    Further,
    NoteBlock,
    Section,
    TableBlock,
    TableRow,
    heads,
    notes,
    texts,
    titled,
)
from popmodel.reports.views import Document, Record, Views

_SHOWN = 2
"""Processes whose first difference is named."""
_MOST = 3
"""Rows of a table on the screen."""


def blocks(checked: Document) -> list[Section]:
    """How far off it is, then efficiencies, phases and messages; a screen shows what differs."""
    document = checked["against"]
    runtime = [{**document["runtime"], "name": "runtime"}]
    tables = [
        (_table("replayed on the ideal network", runtime, format_time),),
        *(_efficiencies(family, pairs) for family, pairs in document["metrics"].items()),
        (_table("computing of all processes", document["phases"], format_time),),
        (_table("messages and collectives", document["counts"], lambda x: count(round(x))),),
        (_table("their bytes", document["bytes"], lambda x: format_size(x, digits=4)),),
    ]
    return [
        notes(document["caveats"]),
        (NoteBlock(_verdict(document)),),
        (Facts(tuple(_facts(document))),),
        (Brief(tuple(tables), (tables[0], *_differing(document))),),
        titled("first operation that differs", list(_differences(document))),
        (Further((notes(document["notes"]),)),),
    ]


def _verdict(document: Document) -> str:
    off = f"off by {100 * document['worst']:.2g} % at most (runtime, or points of an efficiency)"
    differing = len(document["differences"])
    same = "all operations are the same, in the same order"
    if differing:
        number = f"{count(differing)} of {count(document['processes'])} processes"
        same = f"operations differ on {number}"
    return f"{off}; {same}"


def _differing(document: Document) -> Iterator[Section]:
    """Efficiencies and phases that differ most, and what is exchanged differently."""
    for family, pairs in document["metrics"].items():
        far = sorted(pairs, key=lambda one: -abs(one["signature"] - one["trace"]))
        yield _efficiencies(family, far[:_MOST])
    far = sorted(document["phases"], key=lambda one: -abs(one["signature"] - one["trace"]))
    yield (_table("computing of all processes", far[:_MOST], format_time),)
    unlike = [one for one in document["counts"] if one["signature"] != one["trace"]]
    if unlike:
        yield (_table("messages and collectives", unlike[:_MOST], lambda x: count(round(x))),)


def records(checked: Document) -> list[Record]:
    """One line per quantity: group, name, of the signature, of the trace."""
    document = checked["against"]
    groups = [("runtime", [document["runtime"]]), *document["metrics"].items()]
    groups += [(name, document[name]) for name in ("phases", "counts", "bytes")]
    head = {"signature_file": document["signature"], "trace_file": document["trace"]}
    return [{**head, "group": group, **pair} for group, pairs in groups for pair in pairs]


def _facts(document: Document) -> list[tuple[str, str]]:
    return [
        ("signature", document["signature"]),
        (
            "trace",
            f"{document['trace']} ({count(document['processes'])} x {count(document['threads'])})",
        ),
    ]


def _table(
    title: str, pairs: Sequence[dict[str, Any]], shown: Callable[[float], str]
) -> TableBlock:
    rows = tuple(
        TableRow(one["name"], texts((shown(one["signature"]), shown(one["trace"]), _beside(one))))
        for one in pairs
    )
    return TableBlock(heads(("signature", "trace", "beside")), rows, title=title)


def _beside(one: dict[str, Any]) -> str:
    """How far off the signature is, in percent of the trace."""
    if one["signature"] == one["trace"]:
        return "same"
    if not one["trace"]:
        return "none"
    return f"{100 * (one['signature'] / one['trace'] - 1):+.2f} %"


def _efficiencies(family: str, pairs: Sequence[dict[str, Any]]) -> Section:
    metrics = load_families()[family].metrics
    rows = tuple(
        TableRow(
            metrics[one["name"]].name,
            texts(
                (
                    f"{100 * one['signature']:.1f}",
                    f"{100 * one['trace']:.1f}",
                    f"{100 * (one['signature'] - one['trace']):+.2f}",
                )
            ),
        )
        for one in pairs
    )
    return (TableBlock(heads(("signature", "trace", "points")), rows, title="efficiencies, %"),)


def _differences(document: Document) -> Iterator[str]:
    for one in document["differences"][:_SHOWN]:
        yield (
            f"rank {one['rank']}, operation {count(one['number'])}: {one['mine']} in the "
            f"signature, {one['other']} in the trace"
        )
    rest = len(document["differences"]) - _SHOWN
    if rest > 0:
        yield f"and {count(rest)} more ranks"


VIEWS = Views(blocks, records)
