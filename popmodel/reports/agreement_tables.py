"""A signature beside a trace: what both take, compute and exchange."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from popmodel.base.units import count, format_size, format_time
from popmodel.efficiency.hierarchy import load_families
from popmodel.reports.blocks import (
    Brief,
    Facts,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableRow,
    folded,
    heads,
    notes,
    texts,
    titled,
)
from popmodel.reports.views import Document, Views

_MOST = 3
"""Rows of a table on the screen."""
_RANKS = 8
"""Processes whose first difference is named."""


def blocks(checked: Document) -> list[Section]:
    """How far off it is, then efficiencies, phases and messages; a screen shows what differs."""
    document = checked["against"]
    tables = [
        *(_efficiencies(family, pairs) for family, pairs in document["metrics"].items()),
        (_table("computing of all processes", document["phases"], format_time),),
        (_table("messages and collectives", document["counts"], lambda x: count(round(x))),),
        (_table("their bytes", document["bytes"], lambda x: format_size(x, digits=4)),),
    ]
    return [
        notes(document["caveats"]),
        (NoteBlock(_verdict(document), Role.VERDICT),),
        (Facts(tuple(_facts(document))),),
        (Brief(tuple(tables), tuple(_differing(document))),),
        _differences(document),
        (folded((notes(document["notes"]),)),),
    ]


def _verdict(document: Document) -> str:
    same = "all operations are the same, in the same order"
    if differing := len(document["differences"]):
        of = f"{count(differing)} of {count(document['processes'])} processes"
        same = f"operations differ on {of}"
    worst = 100 * document["worst"]
    off = f"{worst:.0f}" if worst >= 100 else f"{worst:.2g}"
    return f"off by {off} % at most (runtime, or points of an efficiency); {same}"


def _facts(document: Document) -> list[tuple[str, str]]:
    runtime = document["runtime"]
    size = f"{count(document['processes'])} x {count(document['threads'])}"
    return [
        ("signature", document["signature"]),
        ("trace", f"{document['trace']} ({size})"),
        (
            "runtime",
            f"{format_time(runtime['signature'])}, the trace's {format_time(runtime['trace'])} "
            f"({_beside(runtime)}), both on the ideal network",
        ),
    ]


def _differing(document: Document) -> Iterator[Section]:
    """Efficiencies and phases that differ most, and what is exchanged differently."""

    def far(pairs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return sorted(pairs, key=lambda one: -abs(one["signature"] - one["trace"]))[:_MOST]

    for family, pairs in document["metrics"].items():
        yield _efficiencies(family, far(pairs))
    yield (_table("computing of all processes", far(document["phases"]), format_time),)
    unlike = [one for one in document["counts"] if one["signature"] != one["trace"]]
    if unlike and not document["differences"]:  # which are shown below
        yield (_table("messages and collectives", unlike[:1], lambda x: count(round(x))),)


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


def _differences(document: Document) -> Section:
    """The first operation of processes that differs; a screen shows that of one."""
    lines = [
        f"rank {one['rank']}, operation {count(one['number'])}: {one['mine']} in the "
        f"signature, {one['other']} in the trace"
        for one in document["differences"][:_RANKS]
    ]
    if (rest := len(document["differences"]) - _RANKS) > 0:
        lines.append(f"and {count(rest)} more ranks")
    whole = titled("first operation that differs", lines)
    return (Brief((whole,), (whole[:2],)),) if lines else ()


VIEWS = Views(
    blocks,
    (
        "against.runtime",
        "against.metrics.FAMILY[]",
        "against.phases[]",
        "against.counts[]",
        "against.bytes[]",
    ),
)
