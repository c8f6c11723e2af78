"""The text of a signature: TOML that people read and change, a key a line, with its origin.

The standard library reads TOML but writes none, and what writers there are keep neither comments
nor an order of keys. The same signature always gives the same text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from popmodel.base.units import count, format_size
from popmodel.base.values import dataclass
from popmodel.model.kinds.spread import encode
from popmodel.signatures.outline import (
    RECORDED,
    OutlineCalls,
    OutlineMeeting,
    OutlineRepeat,
    OutlineWork,
)

if TYPE_CHECKING:
    from popmodel.signatures.amounts import Key, SignatureAmount
    from popmodel.signatures.outline import Node, Outline
    from popmodel.signatures.recorded_times import Fidelity

WIDTH = 100  # columns that comments and lists keep to where they can
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_DIGITS = 4  # of relative times
_IDLE = 0.02  # share of the busiest one's time below which a process does not take part in a phase
_RECORDED = (
    "Times of each process in each execution, relative to their mean, where no law of chance "
    "gives the runtime back; at another number of processes the quantiles beside them stand."
)


# -- TOML


@dataclass(frozen=True)
class Noted:
    """A value with a comment behind it."""

    value: Any  # What TOML can hold
    note: str  # One line


class TomlTable(NamedTuple):
    """A table of the document."""

    name: str  # Its header; empty for what stands before the first one
    entries: Mapping[str, Any]  # A `Noted` value has a comment
    notes: tuple[str, ...] = ()  # Comments above its entries, a paragraph each


class TomlItem(NamedTuple):
    """An item of the program."""

    kind: str  # Such as ``serial``
    entries: Mapping[str, Any]  # Its keys
    body: tuple[TomlItem, ...] = ()  # What a loop repeats
    notes: tuple[str, ...] = ()  # Comments above it, a paragraph each


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


def _comments(paragraphs: Sequence[str], indent: str = "") -> Iterator[str]:
    for paragraph in paragraphs:
        room = max(WIDTH - len(indent) - 2, 20)
        for line in wrap(paragraph, room, break_long_words=False, break_on_hyphens=False):
            yield f"{indent}# {line}"


def _table(table: TomlTable) -> Iterator[str]:
    if not table.entries:
        return
    if table.name:
        yield ""
    yield from _comments(table.notes)
    if table.name:
        yield f"[{table.name}]"
    for key, value in table.entries.items():
        yield from _entry(key, value, "")


def _item(item: TomlItem, path: tuple[str, ...]) -> Iterator[str]:
    indent = "  " * (len(path) - 1)
    yield from _comments(item.notes, indent)
    yield f"{indent}[[{'.'.join(path)}]]"
    inline = f"{indent}{item.kind} = {_value(_bare(item.entries))}"
    noted = [
        f"{key}: {value.note}" for key, value in item.entries.items() if isinstance(value, Noted)
    ]
    if len(inline) <= WIDTH and "\n" not in inline and len(noted) <= 1:
        yield inline + _behind(noted[0] if noted else "")
    else:
        yield f"{indent}[{'.'.join((*path, item.kind))}]"
        for key, value in item.entries.items():
            is_long = len(f"{key} = {_value(_bare(value))}") > WIDTH
            if isinstance(value, Mapping) and is_long and all(map(_BARE.fullmatch, value)):
                for part, inside in value.items():
                    line = f"{indent}{_key(key)}.{part} = {_value(_bare(inside))}"
                    yield line + _behind(inside.note if isinstance(inside, Noted) else "")
                continue
            yield from _entry(key, value, indent)
    for inner in item.body:
        yield from _item(inner, (*path, "body"))


def _bare(value: Any) -> Any:
    """A value without comments."""
    if isinstance(value, Noted):
        return _bare(value.value)
    if isinstance(value, Mapping):
        return {key: _bare(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_bare(inner) for inner in value]
    return value


def _behind(note: str) -> str:
    return f"  # {note}" if note else ""


def _entry(key: str, value: Any, indent: str) -> Iterator[str]:
    note = value.note if isinstance(value, Noted) else ""
    bare = _bare(value)
    line = f"{indent}{_key(key)} = {_value(bare)}"
    if isinstance(bare, list) and len(line) > WIDTH:
        yield f"{indent}{_key(key)} = [{_behind(note)}"
        yield from _elements(bare, indent + "  ")
        yield f"{indent}]"
    else:
        yield line + _behind(note)


def _elements(values: Sequence[Any], indent: str) -> Iterator[str]:
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


def _row(value: Any, indent: str) -> Iterator[str]:
    """A table of a list; one that holds a list of tables again is broken inside of that."""
    line = f"{indent}{_value(value)},"
    inner = [key for key, entry in value.items() if _is_rows(entry)]
    if len(line) <= WIDTH or len(inner) != 1:
        yield line
        return
    (key,) = inner
    begin = "".join(f"{_key(name)} = {_value(value[name])}, " for name in value if name != key)
    yield f"{indent}{{ {begin}{_key(key)} = ["
    for row in value[key]:
        yield from _row(row, indent + "  ")
    yield f"{indent}] }},"


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(r, Mapping) for r in value)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(value: str) -> str:
    escaped = "".join(
        _ESCAPES.get(letter) or (letter if letter.isprintable() else f"\\U{ord(letter):08x}")
        for letter in value.encode(errors="backslashreplace").decode()  # bytes that are no UTF-8
    )
    return f'"{escaped}"'


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            if not math.isfinite(value):
                raise ValueError(f"{value} is no number of a signature")
            return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
        case str():
            return _text(value)
        case Mapping():
            inside = ", ".join(f"{_key(key)} = {_value(entry)}" for key, entry in value.items())
            return f"{{ {inside} }}" if inside else "{}"
        case _:
            return f"[{', '.join(map(_value, value))}]"


# -- a signature


def signature_text(
    tables: Mapping[str, Mapping[str, Any]],
    amounts: Mapping[Key, SignatureAmount],
    outline: Outline,
    fidelity: Fidelity,
) -> str:
    """Write a signature: tables before its program, and the program with its amounts.

    Amounts are ``(what, point)`` for ``seconds``, ``instructions``, ``persistent_cv``, ``overhead``
    and ``thread_imbalance``; ``("count", path)``, ``("bytes", path)`` and those of rows of calls,
    ``("bytes", path, row)``; paths are those of nodes in the outline.
    """
    writer = _ProgramWriter(amounts, outline, fidelity)
    program = list(writer.items(outline.body, ()))
    before = [
        TomlTable("", {"schema": "popmodel/signature/1"}),
        *(TomlTable(name, entries) for name, entries in tables.items()),
    ]
    return text_of((), before, program, (TomlTable("recorded", writer.recorded, (_RECORDED,)),))


class _ProgramWriter:
    def __init__(
        self, amounts: Mapping[Key, SignatureAmount], outline: Outline, fidelity: Fidelity
    ) -> None:
        self.amounts, self.outline, self.fidelity = amounts, outline, fidelity
        self.recorded: dict[str, str] = {}

    def items(self, body: Sequence[Node], path: tuple[int, ...]) -> Iterator[TomlItem]:
        for index, node in enumerate(body):
            yield self.item(node, (*path, index))

    def item(self, node: Node, path: tuple[int, ...]) -> TomlItem:
        amounts = self.amounts
        entries: dict[str, Any] = {"name": node.name}
        every = {"every": node.every} if node.every else {}
        match node:
            case OutlineRepeat():
                entries |= {"count": amounts["count", path].noted, **every}
                return TomlItem("loop", entries, tuple(self.items(node.body, path)))
            case OutlineWork():
                return self.work(node.point, entries, every)
            case OutlineMeeting():
                entries["op"] = node.op
                if node.op != "barrier":
                    entries["bytes"] = amounts["bytes", path].noted
                is_world = node.comm == "world"
                entries |= {} if is_world else {"comm": node.comm}
                if node.root > 0:  # also where there are fewer processes
                    entries["root"] = f"min({node.root}, P - 1)" if is_world else node.root
                return TomlItem("collective", entries | every)
            case OutlineCalls():
                said = f"{count(round(node.messages))} messages, {format_size(node.bytes)} in all"
                said += "".join(f"; bytes: {note}" for note in self.origins(path))
                entries["calls"] = [self.row(row, (*path, i)) for i, row in enumerate(node.rows)]
                limit = amounts.get(("processes", path))
                entries |= {"processes": limit.noted} if limit else {}
                entries |= self.scaled(node, path)
                return TomlItem("messages", entries | every, notes=(said,))

    def origins(self, path: tuple[int, ...]) -> list[str]:
        """Where the sizes of the rows of a list come from."""
        notes = [
            amount.note
            for key, amount in self.amounts.items()
            if key[0] == "bytes" and len(key[1]) > len(path) and key[1][: len(path)] == path
        ]
        return [note for note in dict.fromkeys(notes) if note]

    def scaled(self, node: OutlineCalls, path: tuple[int, ...]) -> dict[str, Any]:
        """What stands for a list at another number of processes."""
        messages = self.amounts.get(("scaled messages", path))
        size = self.amounts.get(("scaled size", path))
        if messages is None or size is None:
            return {}
        volume = _product(messages.formula, size.formula)
        table = {"messages": messages.formula, "bytes": volume, "offsets": [*node.offsets]}
        return {"scaled": Noted(table, f"messages: {messages.note}; bytes: {size.note}")}

    def row(self, row: Mapping[str, Any], path: tuple[int, ...]) -> dict[str, Any]:
        if "point" in row:
            return {"do": "compute", **self.times(row["point"])}
        if "calls" in row:
            inner = [self.row(call, (*path, i)) for i, call in enumerate(row["calls"])]
            return {**row, "calls": inner}
        size = self.amounts.get(("bytes", path))
        return {**row, "bytes": size.formula} if size else dict(row)

    def work(self, point: int, entries: dict[str, Any], every: dict[str, str]) -> TomlItem:
        team = self.outline.points[point].team
        entries |= {"trip": 1 if team is None else "T", **self.times(point)}
        # how processes differ where there are others than those of ``by_rank``
        if differing := self.amounts.get(("persistent_cv", point)):
            entries["persistent_cv"] = differing.noted
        if team is None:
            return TomlItem("serial", entries | every)
        for key, value in (("thread_imbalance", team.imbalance), ("overhead", team.overhead)):
            law = self.amounts.get((key, point))
            if law is not None or value > 0 or key == "overhead":
                entries[key] = number(value, _DIGITS) if law is None else law.noted
        if team.synchronisation > 0:
            entries["synchronisation"] = number(team.synchronisation, _DIGITS)
        return TomlItem("parallel", entries | every)

    def times(self, point: int) -> dict[str, Any]:
        """Keys that say how long something takes."""
        times = self.fidelity.descriptions[point]
        entries: dict[str, Any] = {"seconds": self.amounts["seconds", point].noted}
        if amount := self.amounts.get(("instructions", point)):
            entries["instructions"] = amount.noted
        if times.by_rank:
            few = _working(times.by_rank)
            entries["by_rank"] = few or [number(part, _DIGITS) for part in times.by_rank]
        if times.quantiles:
            entries["quantiles"] = [number(part, _DIGITS) for part in times.quantiles]
        if point in self.fidelity.recorded:
            name = RECORDED + self.outline.points[point].name
            entries["recorded"] = name
            self.recorded[name] = encode(self.outline.points[point].sequence / times.mean)
        return entries


def _working(by_rank: Sequence[float]) -> str | None:
    """Which processes do a phase, whatever their number: the first, the last, or all but one."""
    works = np.asarray(by_rank) > _IDLE * max(by_rank)
    first, last = "max(1 - rank, 0)", "max(rank - P + 2, 0)"
    for formula, others, alone in ((first, works[1:], works[0]), (last, works[:-1], works[-1])):
        if alone and not others.any():
            return formula
        if not alone and others.all() and len(others) > 1:
            return f"1 - {formula}"
    return None


def _product(first: str | float, second: str | float) -> str | float:
    """Two factors as one number, or as a formula."""
    if not isinstance(first, str) and not isinstance(second, str):
        return number(first * second)
    parts = [part if isinstance(part, str) else f"{part:.12g}" for part in (first, second)]
    return "*".join(f"({part})" if " " in part else part for part in parts)
