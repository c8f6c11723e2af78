"""Reads the program of a signature: what each item is, and its body; its kind reads the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from popmodel.errors import did_you_mean
from popmodel.model.grammar.reading import GrammarReading, SignatureError
from popmodel.model.grammar.toml_lines import Path
from popmodel.model.kinds import KINDS
from popmodel.model.kinds.item import Item

_INSIDE = {
    key.name: kind.kind for kind in KINDS.values() for key in kind.own if key.table is not None
}
"""Kinds by the tables that belong into them."""


class ProgramReader(GrammarReading):
    """Reads the items of a program."""

    def body(self, value: object, where: Path) -> tuple[Item, ...]:
        if not isinstance(value, list) or not value:
            raise self.error(where, f"{where[-1]} must be a list with at least one item")
        read: list[Item] = []
        for index, entry in enumerate(value):
            try:
                read.append(self.item(entry, (*where, index)))
            except SignatureError as mistake:
                self.note(mistake)
        return tuple(read)

    def item(self, entry: object, where: Path) -> Item:
        if not isinstance(entry, Mapping):
            raise self.error(where, "an item must be a table with one kind, such as parallel")
        kinds = [key for key in entry if key in KINDS]
        for key in entry:
            if key not in kinds and not (key == "body" and any(map(_has_body, kinds))):
                hint = did_you_mean(key, KINDS, f"known: {', '.join(KINDS)}")
                if key in _INSIDE:
                    hint = f"put {key} inside {_INSIDE[key]}"
                raise self.error((*where, key), f"unknown kind of item {key!r}", hint)
        if len(kinds) != 1:
            listed = ", ".join(kinds) or "none"
            raise self.error(where, f"an item must have exactly one kind, not {listed}")
        kind = KINDS[kinds[0]]
        inner = (*where, kind.kind)
        table = entry[kind.kind]
        if not isinstance(table, Mapping):
            raise self.error(inner, f"{kind.kind} must be a table")
        if "body" in entry:
            table = {**table, "body": entry["body"]}
        table = self._of_one_sender(kind, table, inner)
        self.check_keys(kind.keys(), table, inner)
        return kind.read(self, table, inner)

    def _of_one_sender(
        self, kind: type[Item], table: Mapping[str, Any], where: Path
    ) -> Mapping[str, Any]:
        """Take comm_threads = 1 out of an item without messages that threads could share."""
        if not kind.one_sender or "comm_threads" not in table:
            return table
        if table["comm_threads"] != 1:
            *others, last = (one.kind for one in KINDS.values() if not one.one_sender)
            raise self.error(
                (*where, "comm_threads"),
                f"comm_threads in {kind.kind}: {kind.one_sender}",
                f"only {', '.join(others)} and {last} can send with several threads",
            )
        return {name: value for name, value in table.items() if name != "comm_threads"}


def _has_body(kind: str) -> bool:
    return any(key.name == "body" for key in KINDS[kind].own)
