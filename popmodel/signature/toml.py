"""A signature as TOML that people read and change: one key a line, with a comment of origin.

The standard library reads TOML but writes none, and what writers there are keep neither comments
nor an order of keys. The same signature always gives the same text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from popmodel.values import dataclass

if TYPE_CHECKING:
    from typing import TypeAlias


WIDTH = 100
"""Columns that comments and lists keep to where they can."""
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


@dataclass(frozen=True)
class Noted:
    """A value with a comment behind it."""

    value: Any  # What TOML can hold
    note: str  # One line


@dataclass(frozen=True)
class TomlTable:
    """A table of the document."""

    name: str  # Its header; empty for what stands before the first one
    entries: Mapping[str, Any]  # A `Noted` value has a comment
    notes: tuple[str, ...] = ()  # Comments above its entries, a paragraph each


@dataclass(frozen=True)
class TomlItem:
    """An item of the program."""

    kind: str  # Such as ``serial``
    entries: Mapping[str, Any]  # Its keys
    body: tuple[TomlItem, ...] = ()  # What a loop repeats
    notes: tuple[str, ...] = ()  # Comments above it, a paragraph each


Rows: TypeAlias = "Iterator[str]"


def text_of(
    head: Sequence[str],
    before: Iterable[TomlTable],
    program: Sequence[TomlItem],
    after: Iterable[TomlTable] = (),
) -> str:
    """Write a document."""
    lines = [*_comments(head)]
    for table in before:
        lines += _table(table)
    for item in program:
        lines += ["", *_item(item, ("program",))]
    for table in after:
        lines += _table(table)
    return "\n".join(lines).strip("\n") + "\n"


def number(value: float, digits: int = 6) -> float:
    """Round to as many significant digits, which is what the file then says."""
    return float(f"{value:.{digits}g}")


def _comments(paragraphs: Sequence[str], indent: str = "") -> Rows:
    from textwrap import wrap

    for paragraph in paragraphs:
        room = max(WIDTH - len(indent) - 2, 20)
        for line in wrap(paragraph, room, break_long_words=False, break_on_hyphens=False):
            yield f"{indent}# {line}"


def _table(table: TomlTable) -> Rows:
    if not table.entries:
        return
    if table.name:
        yield ""
        yield from _comments(table.notes)
        yield f"[{table.name}]"
    else:
        yield from _comments(table.notes)
    for key, value in table.entries.items():
        yield from _entry(key, value, "")


def _item(item: TomlItem, path: tuple[str, ...]) -> Rows:
    indent = "  " * (len(path) - 1)
    yield from _comments(item.notes, indent)
    yield f"{indent}[[{'.'.join(path)}]]"
    inline = f"{indent}{item.kind} = {_value(_bare(item.entries))}"
    noted = [f"{key}: {value.note}" for key, value in item.entries.items() if _is_noted(value)]
    if len(inline) <= WIDTH and "\n" not in inline and len(noted) <= 1:
        yield inline + _behind(noted[0] if noted else "")
    else:
        yield f"{indent}[{'.'.join((*path, item.kind))}]"
        for key, value in item.entries.items():
            yield from _entry(key, value, indent)
    for one in item.body:
        yield from _item(one, (*path, "body"))


def _is_noted(value: Any) -> bool:
    return isinstance(value, Noted)


def _bare(value: Any) -> Any:
    if isinstance(value, Noted):
        return _bare(value.value)
    if isinstance(value, Mapping):
        return {key: _bare(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_bare(one) for one in value]
    return value


def _behind(note: str) -> str:
    return f"  # {note}" if note else ""


def _entry(key: str, value: Any, indent: str) -> Rows:
    note = value.note if isinstance(value, Noted) else ""
    bare = _bare(value)
    line = f"{indent}{_key(key)} = {_value(bare)}"
    if isinstance(bare, list | tuple) and len(line) > WIDTH:
        yield f"{indent}{_key(key)} = [{_behind(note)}"
        yield from _elements(bare, indent + "  ")
        yield f"{indent}]"
    else:
        yield line + _behind(note)


def _elements(values: Sequence[Any], indent: str) -> Rows:
    """Tables a line each; numbers as many as fit."""
    if _is_rows(values):
        for value in values:
            yield from _row(value, indent)
        return
    line = ""
    for value in values:
        piece = f"{_value(value)}, "
        if line and len(indent) + len(line) + len(piece) > WIDTH:
            yield indent + line.rstrip()
            line = ""
        line += piece
    if line:
        yield indent + line.rstrip()


def _row(value: Any, indent: str) -> Rows:
    """A table of a list; one that holds a list of tables again is broken inside of that."""
    line = f"{indent}{_value(value)},"
    inner = [key for key, one in value.items() if _is_rows(one)]
    if len(line) <= WIDTH or len(inner) != 1:
        yield line
        return
    (key,) = inner
    first = {name: one for name, one in value.items() if name != key}
    begin = "".join(f"{_key(name)} = {_value(one)}, " for name, one in first.items())
    yield f"{indent}{{ {begin}{key} = ["
    for one in value[key]:
        yield from _row(one, indent + "  ")
    yield f"{indent}] }},"


def _is_rows(value: Any) -> bool:
    is_list = isinstance(value, list | tuple) and bool(value)
    return is_list and all(isinstance(one, Mapping) for one in value)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(value: str) -> str:
    escaped = "".join(
        _ESCAPES.get(letter) or (letter if letter.isprintable() else f"\\U{ord(letter):08x}")
        for letter in value
    )
    return f'"{escaped}"'


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _float(value)
        case str():
            return _text(value)
        case Mapping():
            inside = ", ".join(f"{_key(key)} = {_value(one)}" for key, one in value.items())
            return f"{{ {inside} }}" if inside else "{}"
        case _:
            return f"[{', '.join(_value(one) for one in value)}]"


def _float(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError(f"{value} is no number of a signature")
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return repr(value)
