"""Errors by term: useful time and losses in seconds, predicted and measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from popmodel.efficiency.evaluation import TERMS
from popmodel.reports.blocks import Block, Brief, FitBlock, TableBlock, TableRow, heads, texts
from popmodel.reports.splits import described, varied
from popmodel.reports.views import Document

_LABELS = {term.name: term.label for term in TERMS}
_COLUMNS = ("predicted", "90 %", "measured", "error")

Split = Mapping[str, Any]


def terms(document: Document) -> list[Block]:
    """Splits with efficiencies beside each other; of several a screen shows the errors only."""
    splits = document["terms"]
    if not splits:
        return []
    forms = []
    for number in range(len(splits), 0, -1):
        groups = (splits[first : first + number] for first in range(0, len(splits), number))
        forms.append(tuple((beside(group),) for group in groups))
    every = FitBlock(tuple(forms))
    if len(splits) == 1 or not document["by_term"]:
        return [every]
    found = errors(document["by_term"])
    return [Brief(((every,), (found,)), ((found,),))]


def errors(found: Sequence[Mapping[str, Any]]) -> TableBlock:
    """How large the errors of each term are, over all tests."""
    rows = [
        TableRow(
            _LABELS[one["term"]],
            texts(
                [
                    str(one["splits"]),
                    f"{100 * one['median_error']:.1f}",
                    f"{100 * one['largest_error']:.1f}",
                    f"{100 * one['bias']:+.1f}",
                ]
            ),
        )
        for one in found
    ]
    return TableBlock(heads(("splits", "median", "largest", "bias")), tuple(rows), first="time")


def beside(splits: Sequence[Split]) -> TableBlock:
    """The terms of some splits beside each other."""
    columns = [name for name in _COLUMNS if name != "90 %" or len(splits) == 1]
    differing = varied(splits)
    heads = tuple(
        (described(split, differing) if name == columns[0] else "", name)
        for split in splits
        for name in columns
    )
    by_name = [{one["term"]: one for one in split["terms"]} for split in splits]
    rows = tuple(
        TableRow(
            label, texts(_cell(one.get(name), column) for one in by_name for column in columns)
        )
        for name, label in _LABELS.items()
        if any(name in one for one in by_name)
    )
    return TableBlock(heads, rows, first="time, s")


def _cell(one: Mapping[str, Any] | None, column: str) -> str:
    if one is None:
        return "-"
    if column == "90 %":
        return "-" if one["low"] is None else f"{one['low']:.3g}..{one['high']:.3g}"
    if column == "error":
        return f"{100 * one['error']:+.1f}"
    return f"{one['mean' if column == 'measured' else 'predicted']:.3g}"
