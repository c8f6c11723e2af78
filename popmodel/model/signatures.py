"""Reads signatures: what an application does, as expressions of its parameters, P and T.

The format is TOML, schema ``popmodel/signature/1``; `load` reads a file or a bundled signature.
Every key and formula is checked, with the line in which one is wrong; what is not understood is
refused: an item that were skipped would make every prediction wrong without a sign.
"""

from __future__ import annotations

import math
import os
import pathlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.base import shell
from popmodel.base.documents import (
    Bundled,
    Flag,
    Items,
    NamedShape,
    Real,
    RowShape,
    ShapeError,
    TableShape,
    Text,
    WholeShape,
    parse_toml,
    read_text,
    record,
)
from popmodel.base.errors import UsageError, did_you_mean
from popmodel.base.expressions import Expression
from popmodel.base.units import SIZE_UNITS, TIME_UNITS
from popmodel.machines.quantity import Quantity
from popmodel.model.kinds import KEYS, KINDS, key_of, label_of
from popmodel.model.kinds.item import Item
from popmodel.model.kinds.spread import decode
from popmodel.model.signature.application import (
    EXTENTS,
    MAX_DIMENSIONS,
    LearntRun,
    LearntRuns,
    Signature,
    SignatureGrid,
    SignatureLimits,
    Unknown,
)
from popmodel.model.signature.keys import GrammarKey
from popmodel.model.signature.reading import (
    UNREADABLE,
    GrammarReading,
    Part,
    Path,
    SignatureError,
    key_lines,
    line_of,
)
from popmodel.model.uncertainty import RESIDUAL, Calibration, Drift, unpacked

_INSIDE = {
    key.name: kind.kind for kind in KINDS.values() for key in kind.own if key.table is not None
}
"""Kinds by the tables that belong into them."""


SCHEMA = "popmodel/signature/1"
BASE_UNITS = ("B", "s", "1")


def _any_grid() -> SignatureGrid:
    """A grid that stands for one that cannot be read."""
    every = (UNREADABLE,) * MAX_DIMENSIONS
    return SignatureGrid(every, every, (False,) * MAX_DIMENSIONS)


def _in_order(let: Mapping[str, Expression]) -> list[str]:
    """Put names behind those that their formulas need; as written, if they are so already."""
    needs = {name: sorted(one.names & let.keys()) for name, one in let.items()}
    before: set[str] = set()
    for name, needed in needs.items():
        if not before.issuperset(needed):
            return list(TopologicalSorter(needs).static_order())
        before.add(name)
    return list(let)


class SignatureReader(GrammarReading):
    """Turns the TOML document into a `Signature`."""

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
        of_kinds = {key.name for kind in kinds for key in KINDS[kind].own}
        for key in entry:
            if key not in kinds and not (key == "body" and key in of_kinds):
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

    def signature(self, document: Mapping[str, Any], is_bundled: bool) -> Signature:
        if document.get("schema") != SCHEMA:
            problem = "schema is missing"
            if "schema" in document:
                problem = f"schema must be {SCHEMA!r}, not {document['schema']!r}"
            raise self.error(("schema",), problem, f'a signature begins with schema = "{SCHEMA}"')
        self.check_keys(KEYS[""], document, ())
        no_entries: tuple[Any, ...] = ()
        nothing: dict[str, Any] = {}
        no_app: tuple[str, str, tuple[str, ...], str] = ("", "", (), "none")
        name, omitted, command, basis = self.section(document, "app", self.application, no_app)
        params, units = self.section(document, "params", self.numbers("params"), (nothing, nothing))
        constants, more = self.section(
            document, "constants", self.numbers("constants"), (nothing, nothing)
        )
        formulas = self.section(document, "let", self.let_names, nothing)
        grid = self.any_decomposition(document)
        let = self.let(formulas)
        grid = self.before_the_grid(grid, let)
        limits = self.section(document, "limits", self.limits, SignatureLimits())
        imbalance = self.section(document, "imbalance", self.imbalance, nothing)
        first_touch = self.section(document, "memory", self.first_touch, "threads")
        self.recorded |= self.section(document, "recorded", self.recordings, nothing)
        program = self.part(lambda: self.body(document["program"], ("program",)), no_entries)
        params, constants = self.bounded(params), self.bounded(constants)
        unknown = tuple(Unknown(label_of(path), line_of(self.lines, path)) for path in self.unknown)
        before = (name, self.path, is_bundled, params, constants, let, limits, grid, imbalance)
        inputs = {"params": params, "constants": constants, "imbalance": imbalance}
        known = self.section(document, "calibration", partial(calibration, self, inputs), None)
        runs = self.section(document, "learnt", partial(learnt_runs, self, params), None)
        units = {**units, **more}
        after = (first_touch, unknown, omitted, known, command, runs, basis)
        return Signature(*before, program, units, *after)

    def section(
        self,
        document: Mapping[str, Any],
        name: str,
        read: Callable[[Mapping[str, Any]], Part],
        instead: Part,
    ) -> Part:
        """Read a table of the document; note why, and go on without it, if it is beyond that."""
        if name in ("calibration", "learnt") and name not in document:
            return instead  # all of its keys have to be there, if it is

        def checked() -> Part:
            table = self.table(document, (name,))
            if name in KEYS:
                self.check_keys(KEYS[name], table, (name,))
            return read(table)

        return self.part(checked, instead)

    # -- the parts before the program

    def application(self, table: Mapping[str, Any]) -> tuple[str, str, tuple[str, ...], str]:
        for key in table:
            self.text(table, ("app", key))
        key = "name"
        try:
            name = shell.plain(str(table[key]), key)
            key = "command"
            words = shell.split(shell.plain(str(table.get(key, shell.quote(f"./{name}"))), key))
        except UsageError as error:
            raise self.error(("app", key), error.message, error.hint) from None
        basis = self.choice(key_of("app", "basis"), table, ("app", "basis"))
        return name, str(table.get("not_modelled", "")), words, basis

    def numbers(
        self, title: str
    ) -> Callable[[Mapping[str, Any]], tuple[dict[str, Quantity], dict[str, str]]]:
        """Return what reads a table of names with numbers, and the units that are stated."""

        def read(table: Mapping[str, Any]) -> tuple[dict[str, Quantity], dict[str, str]]:
            found: dict[str, Quantity] = {}
            units: dict[str, str] = {}
            for name, value in table.items():
                where = (title, name)
                self.new_name(name, where)
                if isinstance(value, Mapping) and "unit" in value:
                    value = dict(value)
                    unit = self.part(partial(self.unit, value.pop("unit"), where), None)
                    units |= {} if unit is None else {name: unit}
                found[name] = self.part(partial(self.quantity, value, where), Quantity(1.0))
            return found, units

        return read

    def recordings(self, table: Mapping[str, Any]) -> dict[str, NDArray[np.float64]]:
        found: dict[str, NDArray[np.float64]] = {}
        for name in table:
            where = ("recorded", name)
            try:
                found[name] = decode(self.text(table, where))
            except ValueError as error:
                self.note(self.error(where, f"{name}: {error}", "extract the signature again"))
                found[name] = np.ones((1, 1))
        return found

    def unit(self, value: object, where: Path) -> str | None:
        known = isinstance(value, str) and (value in BASE_UNITS or value.isidentifier())
        scaled = {*SIZE_UNITS, *TIME_UNITS}.difference(BASE_UNITS)
        if not known or value in scaled:
            problem = f"{where[-1]}: the unit must be B, s, 1 or what is counted, not {value!r}"
            raise self.error(where, problem, "for example cells; sizes are in B, times in s")
        return str(value)

    def let_names(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """Note which names ``let`` defines: they may be used before their line."""
        for name in table:
            self.new_name(name, ("let", name))
        return dict(table)

    def let(self, table: Mapping[str, Any]) -> tuple[tuple[str, Expression], ...]:
        """Read the formulas of ``let``, and put each behind those that it needs."""
        found: dict[str, Expression] = {}
        for name, value in table.items():
            found[name] = self.expression(value, ("let", name), functions={})
        while True:
            try:
                return tuple((name, found[name]) for name in _in_order(found))
            except CycleError as circle:
                names = circle.args[1][::-1]  # each needs the next one
                needed = " needs ".join(names) if len(names) > 2 else f"{names[0]} needs itself"
                self.note(self.error(("let", names[0]), f"let defines a name by itself: {needed}"))
                found |= dict.fromkeys(names, UNREADABLE)

    def before_the_grid(
        self, grid: SignatureGrid | None, let: tuple[tuple[str, Expression], ...]
    ) -> SignatureGrid | None:
        """Refuse a grid by names that need it; put formulas in the order of their evaluation."""
        needs = EXTENTS
        for name, expression in let:
            if expression.names & needs:
                needs |= {name}
        of_decomp = {path: one for path, one in self.formulas.items() if path[0] == "decomp"}
        for path, expression in of_decomp.items():
            for name in sorted(expression.names & needs):
                problem = f"{path[1]} uses {name}, which needs the grid that it defines"
                self.note(self.error(path, problem, "write it with parameters, P and T"))
                of_decomp[path] = UNREADABLE
                grid = _any_grid()
        defined: dict[Path, Expression] = {("let", name): one for name, one in let}
        early = {path: one for path, one in defined.items() if path[1] not in needs}
        self.formulas = early | of_decomp | defined
        return grid

    def any_decomposition(self, document: Mapping[str, Any]) -> SignatureGrid | None:
        """Read the decomposition; for one that cannot be read stands one with all its names."""
        try:
            return self.decomposition(document)
        except SignatureError as mistake:
            self.note(mistake)
        self.names |= EXTENTS
        self.dimensions, self.has_cells = MAX_DIMENSIONS, True
        return _any_grid()

    def decomposition(self, document: Mapping[str, Any]) -> SignatureGrid | None:
        if "decomp" not in document:
            return None
        table = self.table(document, ("decomp",))
        self.check_keys(KEYS["decomp"], table, ("decomp",))
        cells = self.expressions(table, ("decomp", "global")) if "global" in table else None
        dims = None
        if table.get("grid", "auto") != "auto":
            dims = self.expressions(table, ("decomp", "grid"))
        if dims is None and cells is None:
            raise self.error(("decomp",), "decomp needs global (cells) or grid (processes)")
        if dims is not None and cells is not None and len(dims) != len(cells):
            raise self.error(
                ("decomp", "grid"), f"grid has {len(dims)} dimensions but global has {len(cells)}"
            )
        size = len(dims or cells or ())
        if size > MAX_DIMENSIONS:
            raise self.error(
                ("decomp",), f"decomp has {size} dimensions; at most {MAX_DIMENSIONS} are possible"
            )
        periodic = table.get("periodic", False)
        flags = [periodic] * size if isinstance(periodic, bool) else periodic
        if (
            not isinstance(flags, list)
            or len(flags) != size
            or not all(isinstance(flag, bool) for flag in flags)
        ):
            raise self.error(
                ("decomp", "periodic"), f"periodic must be true, false, or a list of {size} of them"
            )
        self.dimensions, self.has_cells = size, cells is not None
        letters = "Pn" if self.has_cells else "P"
        self.names |= {f"{letter}{d}" for letter in letters for d in range(size)}
        return SignatureGrid(dims, cells, tuple(flags))

    def limits(self, table: Mapping[str, Any]) -> SignatureLimits:
        require = self.expressions(table, ("limits", "require")) if "require" in table else ()
        memory = None
        if "memory_per_rank" in table:
            where = ("limits", "memory_per_rank")
            memory = self.formula(key_of(*where), table, where)
        return SignatureLimits(require, memory)

    def imbalance(self, table: Mapping[str, Any]) -> dict[str, Quantity]:
        found = {}
        for key in KEYS["imbalance"]:
            if key.name in table:
                read = partial(self.spread, key, table[key.name])
                found[key.name] = self.part(read, Quantity(0.0))
        return found

    def first_touch(self, table: Mapping[str, Any]) -> str:
        where = ("memory", "first_touch")
        return self.choice(key_of(*where), table, where)

    def spread(self, key: GrammarKey, value: object) -> Quantity:
        where = ("imbalance", key.name)
        quantity = self.quantity(value, where)
        assert key.domain is not None
        if math.isfinite(quantity.value) and not key.domain.holds(quantity.value):
            problem = f"{key.name} must be {key.domain.text}, not {quantity.value:g}"
            raise self.error(where, problem)
        return replace(quantity, least=key.domain.least, most=key.domain.most)

    def bounded(self, table: Mapping[str, Quantity]) -> dict[str, Quantity]:
        """Bound numbers by what the keys allow of which they are the whole formula."""
        found = dict(table)
        for name, domain in self.domains:
            if name in found and domain.holds(found[name].value):
                one = found[name]
                least, most = max(one.least, domain.least), min(one.most, domain.most)
                found[name] = replace(one, least=least, most=most)
        return found


# The tables ``calibration`` and ``learnt``: what measured runs have taught, and which runs.


_AT, _AGAIN = ("calibration",), "calibrate the signature again"
_POSITIVE, _NOT_NEGATIVE = Real(above=0), Real(least=0)
_SAME = 1e-6  # relative: values that differ by less were written from the same number

_SCORE = {"mean": Real(), "deviation": _POSITIVE, "value": _NOT_NEGATIVE}
"""What a score has; a value only that of a constant of the program."""
_CALIBRATION = record(
    {
        "machine": Text(),
        "machine_digest": Text(),
        "own": _POSITIVE,
        "noise": _NOT_NEGATIVE,
        "terms": NamedShape(_POSITIVE),
        "drifts": NamedShape(record({"deviation": _NOT_NEGATIVE, "origin": Real()})),
        "hull": NamedShape(RowShape(_POSITIVE, _POSITIVE)),
        "runs": NamedShape(Text()),
        "scores": NamedShape(TableShape(_SCORE, ("mean", "deviation"))),
        "tied": Text(),
    }
)
_NONE: Mapping[str, Any] = {name: {} for name in ("terms", "drifts", "hull", "runs", "scores")}


def calibration(
    reading: GrammarReading,
    inputs: Mapping[str, Mapping[str, Quantity]],
    table: Mapping[str, Any],
) -> Calibration:
    places = {".".join(map(str, path[1:])): path for path in reading.lines if path[0] == _AT[0]}

    def wrong(place: str, problem: str, hint: str = _AGAIN) -> SignatureError:
        around = max((known for known in places if place.startswith(known)), key=len, default="")
        return reading.error(places.get(around, _AT), f"{place} {problem}", hint)

    try:
        read = _CALIBRATION.read({**_NONE, **table})
        tied = unpacked(read["tied"])
    except ShapeError as error:
        raise wrong(error.path, error.problem, error.hint or _AGAIN) from None
    except ValueError as error:
        raise wrong("tied", str(error)) from None
    scores, terms, drifts = read["scores"], read["terms"], read["drifts"]
    if len(tied) != len(scores):
        raise wrong("tied", f"is of {len(tied)} scores, the file has {len(scores)}")
    for name, (low, high) in read["hull"].items():
        if low > high:
            raise wrong(f"hull.{name}", f"must be [smallest, largest], not [{low:g}, {high:g}]")
    changed = []
    for name, score in scores.items():
        place = f"scores.{name}"
        kind, doubling, _ = name.removeprefix(RESIDUAL).partition("[")
        if name.startswith(RESIDUAL) and name not in terms and not (doubling and kind in drifts):
            raise wrong(place, "is not among terms and drifts")
        group, _, key = name.partition(".")
        if group not in inputs:
            continue
        if key not in inputs[group]:
            back = f"put it back, or {_AGAIN}"
            raise wrong(place, f"is calibrated, but {group} has no {key}", back)
        if "value" not in score:
            raise wrong(f"{place}.value", "is missing")
        now, then = inputs[group][key], score["value"]
        if not now.is_uncertain or not abs(now.value - then) <= _SAME * then:
            changed.append(name)  # by hand
    known = Calibration(
        read["machine"],
        read["machine_digest"],
        tuple(scores),
        np.array([score["mean"] for score in scores.values()]),
        np.array([score["deviation"] for score in scores.values()])[:, None] * tied,
        read["own"],
        read["noise"],
        terms,
        {name: Drift(**drift) for name, drift in drifts.items()},
        read["hull"],
        read["runs"],
        tuple(changed),
    )
    return known.only(set(known.names) - set(changed)) if changed else known


_LEARNT = TableShape(
    {
        "openmp": Flag(),
        "runs": Items(
            TableShape(
                {
                    "P": WholeShape(1),
                    "T": WholeShape(1),
                    "parameters": NamedShape(Real(above=0)),
                    "runtime": Real(above=0),
                    "waited": Real(least=0, most=1),
                    "ideal": Real(above=0),
                    "written": Real(above=0),
                    "left_out": Real(above=0),
                },
                ("P", "T", "ideal", "written"),
            ),
            least=1,
        ),
    },
    ("openmp", "runs"),
)


def learnt_runs(
    reading: GrammarReading, params: Mapping[str, Any], table: Mapping[str, Any]
) -> LearntRuns:
    try:
        read = _LEARNT.read(table)
        for number, row in enumerate(read["runs"]):
            if row.get("parameters", {}).keys() != params.keys():
                names = ", ".join(params) or "none"
                problem = f"must have the parameters of the signature ({names})"
                raise ShapeError(problem, f"runs[{number}]")
    except ShapeError as error:
        hint = error.hint or "find the signature in the runs again"
        raise reading.error(("learnt",), f"learnt: {error}", hint) from None
    rows = ({"processes": row.pop("P"), "threads": row.pop("T"), **row} for row in read["runs"])
    return LearntRuns(read["openmp"], tuple(LearntRun(**row) for row in rows))


def summaries() -> list[dict[str, Any]]:
    """Return name, description, parameters and path of each bundled signature."""
    found = []
    for name in bundled():
        path, _, text = read(name)
        document = parse_toml(text, path, SignatureError)
        params = {key: one.value for key, one in load(name).params.items()}
        about = document["app"].get("description", "")
        found.append({"name": name, "description": about, "params": params, "path": path})
    return found


def load(source: str | os.PathLike[str]) -> Signature:
    """Read a signature from a file, or a bundled one by its name.

    Raises
    ------
    SignatureError
        If the file cannot be read or is not a valid signature; the message names file and line.
    UsageError
        If neither a file nor a bundled signature has that name.

    Examples
    --------
    >>> import popmodel
    >>> popmodel.load_signature("stencil3d")
    <Signature stencil3d (bundled): 8 items, N=512 steps=100>
    """
    path, is_bundled, text = read(source)
    # the units of bundled ones are tested
    return from_text(text, path, is_bundled=is_bundled, checked=not is_bundled)


def from_text(
    text: str, path: str = "signature", *, is_bundled: bool = False, checked: bool = True
) -> Signature:
    """Read a signature from its TOML text; units need no check in what popmodel has just made."""
    document = parse_toml(text, path, SignatureError)
    reader = SignatureReader(path, key_lines(text))
    signature = reader.signature(document, is_bundled)
    if not checked:
        return signature
    from popmodel.model.signature.formula_units import units_of  # fractions take long to import

    for clash in units_of(signature, reader.formulas, reader.lines)[1]:
        raise clash  # a number in the wrong unit would pass for a prediction
    return signature


DEFAULT = "stencil3d"
"""The bundled signature that commands take if they are given none."""

_BUNDLED = Bundled(
    pathlib.Path(__file__).parent / "signature" / "bundled",
    ".toml",
    "application",
    "neither a signature file nor a bundled signature",
)


def bundled() -> list[str]:
    """Return the names of the bundled signatures."""
    return _BUNDLED.names()


def read(source: str | os.PathLike[str]) -> tuple[str, bool, str]:
    """Find a signature: its path, whether it is bundled, and its text."""
    path, is_bundled = _BUNDLED.find(source)
    return os.fspath(path), is_bundled, read_text(path, SignatureError)
