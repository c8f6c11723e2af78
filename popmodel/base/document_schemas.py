"""Schemas of popmodel's own JSON documents: the tables of their page, ``docs/json.md``.

A row of the page gives a key and what may stand there: a kind (``text``, ``count``, ``share``, ...)
or the unit of a number. What is read back from a file is checked against these rows before anything
uses it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from popmodel.base.documents import (
    LARGEST,
    MOST_EFFICIENCY,
    Flag,
    Items,
    NamedShape,
    OneOf,
    Optional,
    Plain,
    Real,
    Shape,
    ShapeError,
    TableShape,
    Text,
    WholeShape,
    read_shape,
    schema_of,
)
from popmodel.base.errors import FileError

_ROUNDING = 1e-9
"""By this computed shares are above 1, and differences of times below 0, that should not be."""
PROFILE = "popmodel/machine/1"
"""Profiles are checked by their own reader: all that is in them may be left out."""
EVERY = "every"
"""Stands for the section of what is in every document."""
_PAGE = Path(__file__).parents[1] / "docs" / "json.md"
_SECTION = re.compile(
    r"^## (?:(popmodel/[\w-]+/\d+)(?: with `(\w+)`)?|([A-Z][a-z]+)$|)", re.MULTILINE
)
_ROW = re.compile(r"^\| `([^`]+)` \| ([^|]*?) ?\| .+ \|$", re.MULTILINE)
_FREE = re.compile(r"[A-Z]{2,}")


class _FromZero(Real):
    """A number from 0, but for rounding."""

    def __init__(self, most: float = LARGEST) -> None:
        super().__init__(least=0, most=most)

    def read(self, value: Any) -> float:
        is_rounded = isinstance(value, float) and -_ROUNDING <= value < 0
        return super().read(0.0 if is_rounded else value)


EFFICIENCY = _FromZero(MOST_EFFICIENCY)
"""Of ratios that programs reach."""
_KINDS: dict[str, Shape] = {
    "": Plain(),
    "any": Plain(),
    "count": WholeShape(0),
    "efficiency": EFFICIENCY,
    "flag": Flag(),
    "number": Real(),
    "share": _FromZero(1 + _ROUNDING),
    "text": Text(),
    "whole": WholeShape(),
}
"""What may stand in a place, by the word for it; other words are units of numbers from 0."""


def check(
    document: Any,
    path: str | os.PathLike[str],
    error: type[FileError] = FileError,
    *,
    hint: str = "save the result again",
) -> None:
    """Check a document, or a report with its documents, against the schema that it names."""
    read_shape(document, _Document(), path, error, hint=hint)


def schemas() -> tuple[str, ...]:
    """Names of all schemas."""
    return tuple(name for name in rows() if "/" in name and " " not in name)


class _Document:
    """A document of any schema of the page."""

    def read(self, value: Any) -> Any:
        declared = value.get("schema") if isinstance(value, dict) else None
        if not isinstance(declared, str) or declared not in schemas():
            raise ShapeError(
                f"is no document that popmodel knows: {schema_of(value)}",
                hint="save a result with --format json; update popmodel if a newer one wrote it",
            )
        if declared == PROFILE:
            return value
        variants = (name for name in rows() if name.startswith(f"{declared} with "))
        form = next((name for name in variants if name.split()[-1] in value), declared)
        return _shape(form).read(value)


@cache
def rows() -> dict[str, dict[str, str]]:
    """What may stand under each key, by schema or, of parts that documents share, by their name."""
    text = _PAGE.read_text(encoding="utf-8")
    heads = [*_SECTION.finditer(text)]
    ends = [*(head.start() for head in heads[1:]), len(text)]
    return {
        _section(head): dict(_ROW.findall(text, head.start(), end))
        for head, end in zip(heads, ends, strict=True)
    }


def _section(head: re.Match[str]) -> str:
    """Name of a section: a schema, which may be that of documents with some key, or a part."""
    schema, key, part = head.groups()
    if schema and key:
        return f"{schema} with {key}"
    return schema or (part or EVERY).lower()


@cache
def _shape(section: str, unit: str = "number") -> Shape:
    """Shape of a document by its schema, or of a part that documents share, in a unit."""
    cells = rows()[section] | (rows()[EVERY] if "/" in section else {})
    top = _Node()
    for key, cell in cells.items():
        node = top
        for step in _steps(key):
            node = node.below.setdefault(step, _Node())
        node.cell = re.sub(r"\bunit\b", unit, cell)
    return top.shape()


def _steps(key: str) -> Iterator[str]:
    """Steps to a place: names of keys, ``[]`` into a list, ``*`` for a name in capitals."""
    for part in key.split("."):
        name = part.rstrip("[]")
        yield "*" if _FREE.fullmatch(name) else name
        yield from ["[]"] * part.count("[]")


class _Node:
    """A place in documents: what its row says, and what the rows below it do."""

    def __init__(self) -> None:
        self.cell: str | None = None
        self.below: dict[str, _Node] = {}

    @property
    def is_optional(self) -> bool:
        """Whether the key may be missing."""
        return self.cell is not None and self.cell.startswith("(")

    def shape(self) -> Shape:
        """Shape of what stands here."""
        kind, _, unit = (self.cell or "").strip("()").partition(", ")
        may_be_null, kind = kind.endswith("?"), kind.rstrip("?")
        below = self._below()
        if self.cell is None or kind in ("table", "list"):
            found = below[0]
        elif kind == "document":
            found = _Document()
        elif kind in rows():
            # what else stands in a part that is shared has rows of its own
            found = _Both(_shape(kind, unit or "number"), *below)
        elif below:
            found = OneOf(f"{_words(kind)}, or a list or table of it", _leaf(kind), *below)
        else:
            found = _leaf(kind)
        return Optional(found) if may_be_null else found

    def _below(self) -> list[Shape]:
        """Shapes of a list or a table with the rows below."""
        names = {step: node for step, node in self.below.items() if step not in ("[]", "*")}
        found: list[Shape] = []
        if "[]" in self.below:
            found.append(Items(self.below["[]"].shape()))
        if "*" in self.below and not names:
            found.append(NamedShape(self.below["*"].shape()))
        elif names:
            others = self.below["*"].shape() if "*" in self.below else Plain()
            required = [name for name, node in names.items() if not node.is_optional]
            keys = {name: node.shape() for name, node in names.items()}
            found.append(TableShape(keys, required, others=others))
        return found


class _Both:
    """A value that has all of several shapes."""

    def __init__(self, *of: Shape) -> None:
        self.of = of

    def read(self, value: Any) -> Any:
        for shape in self.of:
            shape.read(value)
        return value


def _leaf(kind: str) -> Shape:
    """Shape of a value that is neither list nor table."""
    if kind in _KINDS:
        return _KINDS[kind]
    return Real() if kind.startswith("+-") else _FromZero()


def _words(kind: str) -> str:
    return {"flag": "true or false", "text": "text", "any": "a value"}.get(kind, "a number")
