"""The kinds of items of a program, one file each: their list, their keys, what they do in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from popmodel.model.kinds.collective import Collective
from popmodel.model.kinds.halo import Halo
from popmodel.model.kinds.item import Entry, Further, Item, ItemTable, ordinal
from popmodel.model.kinds.loops import LoopItem, Parallel, Serial, Task
from popmodel.model.kinds.messages import MessagesItem
from popmodel.model.kinds.p2p import PointToPoint, Shift
from popmodel.model.kinds.pipeline import Pipeline
from popmodel.model.run.memory_domains import FIRST_TOUCH
from popmodel.model.signature.keys import GrammarKey, page_tables
from popmodel.model.signature.reading import Path

KINDS: Mapping[str, type[Item]] = {
    kind.kind: kind
    for kind in (
        LoopItem,
        Serial,
        Parallel,
        Task,
        Halo,
        Pipeline,
        Shift,
        PointToPoint,
        MessagesItem,
        Collective,
    )
}
"""Every kind by its name, in the order of pages and messages."""


def remedy(label: str) -> str | None:
    """Return the meaning of a remedy of an item by its label; None if no kind has it."""
    for pattern, meaning in (one for kind in KINDS.values() for one in kind.remedies.values()):
        before, after = pattern.split("{}")
        named = len(label) > len(before) + len(after)
        if named and label.startswith(before) and label.endswith(after):
            return meaning
    return None


# Every table of a signature: its keys, and what it describes, as the page bundled/README.md shows.


_INSIDE: Mapping[str, type[ItemTable]] = {
    table.kind: table
    for kind in KINDS.values()
    for table in (kind, *(key.table for key in kind.own if key.table is not None))
}
_FURTHER: Mapping[str, Further] = {
    "app": {"basis": {"choices": ("none", "source")}},
    "memory": {"first_touch": {"choices": FIRST_TOUCH}},
}

KEYS: Mapping[str, tuple[GrammarKey, ...]] = {
    name: _INSIDE[name].keys()
    if name in _INSIDE
    else tuple(
        replace(key, **_FURTHER.get(name, {}).get(key.name, {})) for key in table.keys.values()
    )
    for name, table in page_tables().items()
}
"""The keys of every table of a signature, by its name; the document itself has none."""

TABLES: Mapping[str, str] = {name: table.about for name, table in page_tables().items()}
"""What each table describes."""


def key_of(table: str, name: str) -> GrammarKey:
    return next(key for key in KEYS[table] if key.name == name)


def key_at(path: Path) -> GrammarKey | None:
    """Return the entry of the formula at a place; None for a name that ``let`` defines."""
    if path[0] == "let":
        return None
    *_, outer, table, name = ("", *(part for part in path if isinstance(part, str)))
    return key_of(table, name) if table in KEYS else key_of(outer, table)


def label_of(path: Path) -> str:
    """Name a place as it is written, such as ``parallel.bytes.MEM`` or ``limits.require``."""
    # an item is numbered in its body; what is numbered in it are entries of a list
    numbers = [
        index
        for index, part in enumerate(path)
        if isinstance(part, int) and path[index - 1] in ("program", "body")
    ]
    inside = path[numbers[-1] + 1 :] if path[0] == "program" else path
    return ".".join(part for part in inside if isinstance(part, str))


# The program of a signature in words: a sentence for each item, with its formulas.


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
