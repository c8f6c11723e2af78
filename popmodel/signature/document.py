"""From an outline and its amounts to the text of a signature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.model.recorded import encode
from popmodel.signature.assumed_scaling import table_of
from popmodel.signature.names import RECORDED
from popmodel.signature.outline import OutlineCalls, OutlineMeeting, OutlineRepeat, OutlineWork
from popmodel.signature.toml import Noted, TomlItem, TomlTable, number, text_of
from popmodel.units import count, format_size
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from popmodel.signature.assumed_scaling import Key, SignatureAmount
    from popmodel.signature.outline import Node, Outline
    from popmodel.signature.recorded_times import Fidelity


_DIGITS = 4
"""Of relative times."""
_IDLE = 0.02
"""Share of the busiest process's time below which a process does not take part in a phase."""


@dataclass(frozen=True)
class Draft:
    """A signature in the making."""

    name: str  # Of the application
    omitted: Mapping[str, str]  # What of the program it does not contain
    head: tuple[str, ...]  # Comments at its top
    # Tables of the signature.
    params: Mapping[str, Any]
    let: Mapping[str, Any]
    # Tables of the signature; empty ones are left out.
    limits: Mapping[str, Any]
    decomp: Mapping[str, Any]
    imbalance: Mapping[str, Any]
    # ``(what, point)`` of ``seconds``, ``instructions``, ``persistent_cv``, ``overhead`` and
    # ``thread_imbalance``, ``("count", path)``, ``("bytes", path)`` and those of rows of calls,
    # ``("bytes", path, row)``; paths are those of nodes in the outline.
    amounts: Mapping[Key, SignatureAmount]
    processes: int  # Of the run whose spreads are kept


def rendered(draft: Draft, outline: Outline, fidelity: Fidelity) -> str:
    """Write a signature."""
    writer = _SignatureWriter(draft, outline, fidelity)
    before = [
        TomlTable("", {"schema": "popmodel/signature/1"}),
        TomlTable("app", {"name": draft.name, **draft.omitted}),
        TomlTable("params", draft.params),
        TomlTable("constants", table_of(draft.amounts.values())),
        TomlTable("let", draft.let),
        TomlTable("limits", draft.limits),
        TomlTable("decomp", draft.decomp),
        TomlTable("imbalance", draft.imbalance),
    ]
    program = list(writer.items(outline.body, ()))
    recorded = TomlTable("recorded", writer.recorded, (_RECORDED,))
    return text_of(draft.head, before, program, (recorded,))


_RECORDED = (
    "Times of each process in each execution, relative to their mean, where no law of chance "
    "gives the runtime back; at another number of processes the quantiles beside them stand."
)


class _SignatureWriter:
    def __init__(self, draft: Draft, outline: Outline, fidelity: Fidelity) -> None:
        self.draft, self.outline, self.fidelity = draft, outline, fidelity
        self.recorded: dict[str, str] = {}

    def items(self, body: Sequence[Node], path: tuple[int, ...]) -> Iterator[TomlItem]:
        for number_, node in enumerate(body):
            yield self.item(node, (*path, number_))

    def item(self, node: Node, path: tuple[int, ...]) -> TomlItem:
        amounts = self.draft.amounts
        match node:
            case OutlineRepeat():
                entries = {"name": node.name, "count": amounts["count", path].noted}
                entries |= _every(node)
                return TomlItem("loop", entries, tuple(self.items(node.body, path)))
            case OutlineWork():
                return self.work(node)
            case OutlineMeeting():
                entries = {"name": node.name, "op": node.op}
                if node.op != "barrier":
                    entries["bytes"] = amounts["bytes", path].noted
                entries |= {} if node.comm == "world" else {"comm": node.comm}
                if node.root > 0:  # also where there are fewer processes
                    is_world = node.comm == "world"
                    entries["root"] = f"min({node.root}, P - 1)" if is_world else node.root
                return TomlItem("collective", entries | _every(node))
            case OutlineCalls():
                said = f"{count(round(node.messages))} messages, {format_size(node.bytes)} in all"
                said += "".join(f"; bytes: {note}" for note in self.origins(path))
                rows = [self.row(row, (*path, i)) for i, row in enumerate(node.rows)]
                entries = {"name": node.name, "calls": rows}
                limit = amounts.get(("processes", path))
                entries |= {"processes": limit.noted} if limit else {}
                entries |= self.scaled(node, path)
                return TomlItem("messages", entries | _every(node), notes=(said,))

    def origins(self, path: tuple[int, ...]) -> list[str]:
        """Where the sizes of the rows of a list come from."""
        under = len(path) + 1
        notes = [
            amount.note
            for key, amount in self.draft.amounts.items()
            if key[0] == "bytes" and len(key[1]) >= under and key[1][: len(path)] == path
        ]
        return [note for note in dict.fromkeys(notes) if note]

    def scaled(self, node: OutlineCalls, path: tuple[int, ...]) -> dict[str, Any]:
        """What stands for a list at another number of processes."""
        messages, size = (
            self.draft.amounts.get((f"scaled {what}", path)) for what in ("messages", "size")
        )
        if messages is None or size is None:
            return {}
        volume = _product(messages.formula, size.formula)
        table = {"messages": messages.formula, "bytes": volume, "offsets": [*node.offsets]}
        return {"scaled": Noted(table, f"messages: {messages.note}; bytes: {size.note}")}

    def row(self, row: Mapping[str, Any], path: tuple[int, ...]) -> dict[str, Any]:
        if "point" in row:
            return {"do": "compute", **self.times(row["point"])}
        if "calls" in row:
            inner = [self.row(one, (*path, i)) for i, one in enumerate(row["calls"])]
            return {**row, "calls": inner}
        size = self.draft.amounts.get(("bytes", path))
        return {**row, "bytes": size.formula} if size else dict(row)

    def work(self, node: OutlineWork) -> TomlItem:
        threads = self.outline.teams[node.point]
        if threads is None:
            entries = {"name": node.name, "trip": 1, **self.times(node.point)}
            return TomlItem("serial", entries | self.elsewhere(node.point) | _every(node))
        entries = {"name": node.name, "trip": "T", **self.times(node.point)}
        entries |= self.elsewhere(node.point)
        for key, value in (
            ("thread_imbalance", threads.imbalance),
            ("overhead", threads.overhead),
        ):
            law = self.draft.amounts.get((key, node.point))
            if law is not None or value > 0 or key == "overhead":
                entries[key] = number(value, _DIGITS) if law is None else law.noted
        if threads.synchronisation > 0:
            entries["synchronisation"] = number(threads.synchronisation, _DIGITS)
        return TomlItem("parallel", entries | _every(node))

    def elsewhere(self, point: int) -> dict[str, Any]:
        """How processes differ where there are others than those of ``by_rank``."""
        amount = self.draft.amounts.get(("persistent_cv", point))
        return {"persistent_cv": amount.noted} if amount else {}

    def times(self, point: int) -> dict[str, Any]:
        """Keys that say how long something takes."""
        one = self.fidelity.descriptions[point]
        found: dict[str, Any] = {"seconds": self.draft.amounts["seconds", point].noted}
        if amount := self.draft.amounts.get(("instructions", point)):
            found["instructions"] = amount.noted
        if one.by_rank:
            few = _working(one.by_rank)
            found["by_rank"] = few or [number(each, _DIGITS) for each in one.by_rank]
        if one.quantiles:
            found["quantiles"] = [number(each, _DIGITS) for each in one.quantiles]
        if point in self.fidelity.recorded:
            name = RECORDED + self.outline.names[point]
            found["recorded"] = name
            self.recorded[name] = encode(self.outline.points[point].sequence / one.mean)
        return found


def _every(node: Node) -> dict[str, str]:
    """In how many turns of its loop an item is executed once, where that is not each."""
    return {"every": node.every} if node.every else {}


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
    parts = [one if isinstance(one, str) else f"{one:.12g}" for one in (first, second)]
    return "*".join(f"({one})" if " " in one else one for one in parts)
