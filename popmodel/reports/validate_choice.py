"""Whether the right split would have been chosen, and what usual defaults would have cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from popmodel.reports.blocks import Block, TableBlock, TableRow, heads, texts
from popmodel.reports.splits import name as split_name
from popmodel.reports.splits import varied
from popmodel.reports.views import Document

Decision = Mapping[str, Any]

_DEFAULTS = {
    "all MPI": "all MPI",
    "one process per socket": "1/socket",
    "one process per node": "1/node",
}
_HEADS = ("take", "fastest", "loss, %", "expected", "tied", "tau")
LEGEND = (
    ("loss", "runtime of what is recommended (take) over that of the fastest, less 1"),
    ("tied", "splits predicted to be equally good; !: the fastest is not among them"),
)


def choices(document: Document) -> list[Block]:
    """A line for each number of cores of which several splits were measured."""
    decisions = document["decisions"]
    if not decisions:
        return []
    differing = varied(decisions)
    usual = [
        name
        for name in _DEFAULTS
        if any(
            one["name"] == name and one["loss"] is not None
            for found in decisions
            for one in found["defaults"]
        )
    ]
    rows = []
    for one in decisions:
        told = [f"{key}={one['parameters'][key]:g}" for key in differing]
        losses = {default["name"]: default["loss"] for default in one["defaults"]}
        cells = [
            split_name(one["take"]),
            split_name(one["best"]),
            _loss(one["regret"]),
            _loss(one["announced"]),
            _tied(one),
            "-" if one["rank_correlation"] is None else f"{one['rank_correlation']:+.2f}",
            *(_loss(losses.get(name)) for name in usual),
        ]
        rows.append(TableRow(" ".join([str(one["cores"]), *told]), texts(cells)))
    names = (*_HEADS, *(_DEFAULTS[name] for name in usual))
    return [TableBlock(heads(names), tuple(rows), first="cores")]


def _loss(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def _tied(one: Decision) -> str:
    """How many splits are predicted to be equally good, and whether the fastest is among them."""
    held = "" if one["best"] in one["tied"] else " !"
    return f"{len(one['tied'])} of {len(one['options'])}{held}"
