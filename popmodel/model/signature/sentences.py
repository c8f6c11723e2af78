"""The program of a signature in words: a sentence for each item, with its formulas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from popmodel.model.kinds import KINDS
from popmodel.model.kinds.words import Entry, ordinal


def tree(program: Sequence[Entry], depth: int = 0) -> Iterator[tuple[int, str]]:
    """Every item of a program in words, with its depth."""
    for item in program:
        yield depth, sentence(item)
        yield from tree(item.get("body", ()), depth + 1)


def sentence(item: Entry) -> str:
    """What an item does, in words with its formulas."""
    text = KINDS[item["kind"]].sentence(item)
    if item["every"]["formula"] != "1":
        text = f"in every {ordinal(item['every'])} iteration: {text}"
    return f"{item['name']}: {text}"
