"""Reads and checks the files that define the metric families.

A family is one TOML file: its formulas are written once and everything else (the values, the
trees, the explanations, the proofs in the tests) is derived from them.
"""

from __future__ import annotations

import difflib
import functools
import os
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from popmodel.base.documents import (
    Flag,
    Items,
    Real,
    Shape,
    ShapeError,
    TableShape,
    Text,
    parse_toml,
    read_text,
    record,
)
from popmodel.base.errors import FileError
from popmodel.base.expressions import Expression, ExpressionError, parse
from popmodel.efficiency.family import (
    AGGREGATES,
    CAUSES,
    Decomposition,
    Family,
    FamilyNote,
    Metric,
)

BUNDLED = (
    "mpi",
    "mpi-additive",
    "hybrid-additive",
    "hybrid-multiplicative",
    "talp",
    "gpu-bsc",
    "gpu-talp",
    "gpu-classic",
    "io",
    "vector",
    "scaling",
)


class _Later:
    """A table that is read by itself, with its line."""

    def read(self, value: Any) -> Any:
        return value


_TEXT, _NUMBER = Text(), Real()
_FAMILY = TableShape(
    {
        **dict.fromkeys(("id", "title", "use", "source", "top", "requires"), _TEXT),
        "search": Items(_TEXT),
        **dict.fromkeys(("metric", "decomposition", "note"), Items(_Later())),
    },
    ("id", "title", "use", "source", "top", "metric"),
)
_REQUIRED = ("id", "name", "formula", "meaning", "advice", "source")
_TABLES = {
    "metric": TableShape(
        {
            **dict.fromkeys((*_REQUIRED, "at_most_plus", "view_of"), _TEXT),
            **{"cause": Text(CAUSES), "at_least": _NUMBER, "at_most": _NUMBER},
        },
        _REQUIRED,
    ),
    "decomposition": record(
        {
            "of": _TEXT,
            "by": Text(("product", "sum")),
            "parts": Items(_TEXT, least=2),
            "proved": Flag(),
        }
    ),
    "note": TableShape({"text": _TEXT, "when": _TEXT}, ("text",)),
}


@functools.cache
def load_families() -> Mapping[str, Family]:
    """Return the bundled families by id, in display order.

    Examples
    --------
    >>> import popmodel
    >>> families = popmodel.load_families()
    >>> list(families)[:3]
    ['mpi', 'mpi-additive', 'hybrid-additive']
    >>> families["mpi"].metrics["transfer_efficiency"].formula.text
    'ideal_runtime / runtime'
    """
    # importlib.resources would cost as much time as reading all the files, and a package with a
    # compiled core always lies in a directory.
    folder = Path(__file__).parent / "families"
    return MappingProxyType({id: read_family(folder / f"{id}.toml") for id in BUNDLED})


def read_family(path: str | os.PathLike[str]) -> Family:
    """Read a family and check it."""
    text = read_text(path)
    table = parse_toml(text, path)
    return _FamilyReader(os.fspath(path), text).family(table)


class _FamilyReader:
    """Turns the tables of one file into a `Family`; knows the file for its messages."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text

    def family(self, table: dict[str, Any]) -> Family:
        table = self.checked(table, _FAMILY, "the family")
        metrics: dict[str, Metric] = {}
        for index, entry in enumerate(self.tables(table, "metric")):
            metric = self.metric(entry, index)
            if metric.id in metrics:
                raise self.error(f"metric {metric.id!r} is defined twice", "metric", index)
            metrics[metric.id] = metric
        names = metrics.keys() | AGGREGATES.keys()
        for index, metric in enumerate(metrics.values()):
            self.check_known(
                sorted(metric.formula.names),
                names,
                f"the formula of {metric.id} uses",
                "metric",
                index,
            )
            if metric.view_of is not None:
                self.check_known(
                    [metric.view_of], metrics, f"{metric.id} is a view of", "metric", index
                )
        decompositions = tuple(
            self.decomposition(entry, metrics, index)
            for index, entry in enumerate(self.tables(table, "decomposition"))
        )
        notes = tuple(
            self.note(entry, names, index) for index, entry in enumerate(self.tables(table, "note"))
        )
        self.check_known([table["top"]], metrics, "top is", None, 0)
        search = tuple(table.get("search", [table["top"]]))
        self.check_known(search, metrics, "search begins at", None, 0)
        required = table.get("requires", "")
        self.check_known([required] if required else [], AGGREGATES, "requires", None, 0)
        explained: dict[str, set[str]] = {id: set() for id in metrics}
        for each in decompositions:
            explained[each.parent] |= set(each.parts) & metrics.keys()
        self.ordered(explained, "is a part of itself")
        return Family(
            id=table["id"],
            title=table["title"],
            use=_one_line(table["use"]),
            source=_one_line(table["source"]),
            top=table["top"],
            search=search,
            metrics=metrics,
            decompositions=decompositions,
            notes=notes,
            order=self.ordered(
                {id: metric.formula.names & metrics.keys() for id, metric in metrics.items()},
                "is computed from itself",
            ),
            requires=required,
        )

    def metric(self, entry: dict[str, Any], index: int) -> Metric:
        id = entry["id"]
        if not re.fullmatch(r"[a-z][a-z0-9_]*", id):
            raise self.error(
                f"metric id {id!r} is not a name in lower case letters, digits and _",
                "metric",
                index,
            )
        least, most = entry.get("at_least"), entry.get("at_most")
        if least is not None and most is not None and least > most:
            raise self.error(
                f"{id}: at_least ({least:g}) is more than at_most ({most:g})", "metric", index
            )
        return Metric(
            id=id,
            name=entry["name"],
            formula=self.expression(entry["formula"], f"formula of {id}", "metric", index),
            meaning=_one_line(entry["meaning"]),
            advice=_one_line(entry["advice"]),
            cause=entry.get("cause"),
            source=_one_line(entry["source"]),
            at_least=least,
            at_most=most,
            at_most_plus=self.expression(
                entry["at_most_plus"], f"at_most_plus of {id}", "metric", index
            )
            if "at_most_plus" in entry
            else None,
            view_of=entry.get("view_of"),
        )

    def decomposition(
        self, entry: dict[str, Any], metrics: Mapping[str, Metric], index: int
    ) -> Decomposition:
        parent, parts = entry["of"], entry["parts"]
        self.check_known([parent], metrics, "decomposition of", "decomposition", index)
        self.check_known(
            parts,
            metrics.keys() | AGGREGATES.keys(),
            f"decomposition of {parent} has the part",
            "decomposition",
            index,
        )
        return Decomposition(parent, entry["by"], tuple(parts), entry["proved"])

    def note(self, entry: dict[str, Any], names: Collection[str], index: int) -> FamilyNote:
        if "when" not in entry:
            return FamilyNote(_one_line(entry["text"]))
        when = self.expression(entry["when"], "condition of the note", "note", index)
        self.check_known(sorted(when.names), names, "the condition of the note uses", "note", index)
        return FamilyNote(_one_line(entry["text"]), when)

    def expression(self, text: str, what: str, kind: str, index: int) -> Expression:
        try:
            return parse(_one_line(text))
        except ExpressionError as error:
            raise self.error(f"{what}: {error.message}", kind, index, error.hint) from None

    def tables(self, table: dict[str, Any], kind: str) -> Iterable[dict[str, Any]]:
        for index, entry in enumerate(table.get(kind, [])):
            name = entry.get("id") if isinstance(entry, dict) else None
            what = f"{kind} {name or index + 1}"
            yield self.checked(entry, _TABLES[kind], what, kind, index)

    def checked(
        self, table: Any, shape: Shape, what: str, kind: str | None = None, index: int = 0
    ) -> dict[str, Any]:
        try:
            found: dict[str, Any] = shape.read(table)
        except ShapeError as error:
            problem = f"{what}: {error.path} {error.problem}".replace(":  ", " ")
            raise self.error(problem, kind, index, error.hint) from None
        return found

    def check_known(
        self,
        wanted: Iterable[str],
        known: Collection[str],
        what: str,
        kind: str | None,
        index: int,
    ) -> None:
        for name in wanted:
            if name not in known:
                hint = _near(name, known) or "use a metric of the family or an aggregate"
                raise self.error(f"{what} {name!r}, which is not known", kind, index, hint)

    def ordered(self, needs: Mapping[str, Collection[str]], problem: str) -> tuple[str, ...]:
        """The ids such that each comes after those it needs."""
        order: dict[str, None] = {}
        below: list[str] = []

        def visit(id: str) -> None:
            if id in below:
                chain = " -> ".join((*below[below.index(id) :], id))
                raise self.error(f"{id} {problem}: {chain}", "metric", list(needs).index(id))
            if id in order:
                return
            below.append(id)
            for other in sorted(needs[id]):
                visit(other)
            below.pop()
            order[id] = None

        for id in needs:
            visit(id)
        return tuple(order)

    def error(
        self, problem: str, kind: str | None, index: int, hint: str | None = None
    ) -> FileError:
        line = None
        if kind is not None:
            headers = re.finditer(rf"^\s*\[\[\s*{kind}\s*\]\]", self.text, re.MULTILINE)
            starts = [header.end() for header in headers]
            if index < len(starts):
                line = self.text.count("\n", 0, starts[index]) + 1
        return FileError(self.path, problem, line=line, hint=hint)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _near(name: str, known: Iterable[str]) -> str | None:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]!r}?" if near else None
