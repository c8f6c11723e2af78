"""Reads the TOML of a signature: checks every key and formula, and says in which line one is wrong.

Everything that is not understood is refused: an item that were skipped would make every prediction
wrong without a sign.
"""

from __future__ import annotations

import difflib
import keyword
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from popmodel.errors import FileError
from popmodel.expressions import Expression, ExpressionError, parse
from popmodel.expressions.grammar import FUNCTIONS
from popmodel.machine.quantity import Quantity, read_quantity
from popmodel.model import toml_lines
from popmodel.model.program import (
    Collective,
    Costs,
    Critical,
    Grid,
    Halo,
    Item,
    Limits,
    Loop,
    Parallel,
    Pipeline,
    PointToPoint,
    Serial,
    Shift,
    Signature,
    Task,
)
from popmodel.model.symbols import RESERVED
from popmodel.network.collectives import DEFAULT_ALGORITHM
from popmodel.units import SIZE_UNITS, TIME_UNITS

SCHEMA = "popmodel/signature/1"
ORIGINS = ("user", "static", "trace", "fit")
EXTRA_FUNCTIONS = {"if_fits": 3}
MAX_DIMENSIONS = 3
BASE_UNITS = ("B", "s", "1")

Part = TypeVar("Part")
_UNREADABLE = parse("1")  # stands for a formula with a mistake while others are looked for

SCHEDULES = ("static", "dynamic", "guided")
_COMMON = ("name", "every", "comm_threads")
_COSTS = ("flops", "loads", "stores", "bytes")
_IMBALANCE = ("persistent_cv", "transient_cv", "reference_processes", "growth_exponent")


class SignatureError(FileError):
    """A signature cannot be read or contradicts itself."""


@dataclass
class SignatureReader:
    """Turns the TOML document into a `Signature`; knows where everything stands in the text.

    Attributes
    ----------
    path : str
        File, for messages.
    lines : mapping of path to int
        Lines of the keys.
    mistakes : list of SignatureError, or None
        Where mistakes are collected; None ends the reading at the first.
    formulas : dict of path to Expression
        Every formula that was read, by its place in the document.
    """

    path: str
    lines: Mapping[toml_lines.Path, int]
    mistakes: list[SignatureError] | None = None
    formulas: dict[toml_lines.Path, Expression] = field(default_factory=dict)
    names: set[str] = field(default_factory=lambda: {"P", "T"})
    grid: Grid | None = None
    units: dict[str, str] = field(default_factory=dict)

    def note(self, mistake: SignatureError) -> None:
        """Collect a mistake that does not keep the rest from being read, or end the reading."""
        if self.mistakes is None:
            raise mistake
        self.mistakes.append(mistake)

    def part(self, read: Callable[[], Part], instead: Part) -> Part:
        """Read a part; if it is beyond reading, note why and go on without it."""
        try:
            return read()
        except SignatureError as mistake:
            self.note(mistake)
            return instead

    def error(
        self, where: toml_lines.Path, problem: str, hint: str | None = None
    ) -> SignatureError:
        line = toml_lines.line_of(self.lines, where)
        return SignatureError(self.path, problem, line=line, hint=hint)

    def signature(self, document: Mapping[str, Any], is_bundled: bool) -> Signature:
        if document.get("schema") != SCHEMA:
            raise self.error(("schema",), f"schema is {document.get('schema')!r}, not {SCHEMA!r}")
        self.keys(
            document,
            (),
            ("app", "program"),
            ("schema", "params", "let", "limits", "decomp", "imbalance"),
        )
        name = self.part(lambda: self.application(self.table(document, ("app",))), "")
        no_values: dict[str, Quantity] = {}
        no_entries: tuple[Any, ...] = ()
        params = self.part(lambda: self.params(self.table(document, ("params",))), no_values)
        let = self.part(lambda: self.let(self.table(document, ("let",))), no_entries)
        self.grid = self.any_decomposition(document)
        limits = self.part(lambda: self.limits(self.table(document, ("limits",))), Limits())
        imbalance = self.part(
            lambda: self.imbalance(self.table(document, ("imbalance",))), no_values
        )
        program = self.part(lambda: self.body(document["program"], ("program",)), no_entries)
        return Signature(
            name,
            self.path,
            is_bundled,
            params,
            let,
            limits,
            self.grid,
            imbalance,
            program,
            self.units,
        )

    # -- the parts before the program

    def application(self, table: Mapping[str, Any]) -> str:
        self.keys(table, ("app",), ("name",), ("description", "source"))
        for key in table:
            self.text(table, ("app", key))
        return str(table["name"])

    def params(self, table: Mapping[str, Any]) -> dict[str, Quantity]:
        found = {}
        for name, value in table.items():
            where = ("params", name)
            self.new_name(name, where)
            if isinstance(value, Mapping) and "unit" in value:
                value = dict(value)
                self.units[name] = self.unit(value.pop("unit"), where)
            read = partial(self.quantity, value, where)
            found[name] = self.part(read, Quantity(1.0))
        return found

    def unit(self, value: object, where: toml_lines.Path) -> str:
        """Read the unit of a parameter: bytes, seconds, or what is counted."""
        known = value in BASE_UNITS or (isinstance(value, str) and value.isidentifier())
        scaled = value in {*SIZE_UNITS, *TIME_UNITS} - set(BASE_UNITS)
        if not known or scaled:
            problem = f"{where[-1]}: the unit should be B, s, 1 or what is counted, not {value!r}"
            self.note(self.error(where, problem, "such as cells; sizes are in B, times in s"))
            return "1"
        return str(value)

    def let(self, table: Mapping[str, Any]) -> tuple[tuple[str, Expression], ...]:
        found = []
        for name, value in table.items():
            where = ("let", name)
            expression = self.expression(value, where, functions={})
            self.new_name(name, where)
            found.append((name, expression))
        return tuple(found)

    def any_decomposition(self, document: Mapping[str, Any]) -> Grid | None:
        """Read the decomposition; for one that cannot be read stands one with all its names."""
        try:
            return self.decomposition(document)
        except SignatureError as mistake:
            self.note(mistake)
        self.names |= {f"{letter}{d}" for letter in "Pn" for d in range(MAX_DIMENSIONS)}
        every = (_UNREADABLE,) * MAX_DIMENSIONS
        return Grid(every, every, (False,) * MAX_DIMENSIONS)

    def decomposition(self, document: Mapping[str, Any]) -> Grid | None:
        if "decomp" not in document:
            return None
        table = self.table(document, ("decomp",))
        self.keys(table, ("decomp",), (), ("global", "grid", "periodic"))
        cells = self.expressions(table, ("decomp", "global")) if "global" in table else None
        dims = None
        if table.get("grid", "auto") != "auto":
            dims = self.expressions(table, ("decomp", "grid"))
        if dims is None and cells is None:
            raise self.error(("decomp",), "decomp needs grid, or global to choose a grid for")
        if dims is not None and cells is not None and len(dims) != len(cells):
            raise self.error(
                ("decomp", "grid"), f"grid has {len(dims)} dimensions, global {len(cells)}"
            )
        size = len(dims or cells or ())
        if size > MAX_DIMENSIONS:
            raise self.error(("decomp",), f"decomp has {size} dimensions, more than three")
        periodic = table.get("periodic", False)
        flags = [periodic] * size if isinstance(periodic, bool) else periodic
        if (
            not isinstance(flags, list)
            or len(flags) != size
            or not all(isinstance(flag, bool) for flag in flags)
        ):
            raise self.error(
                ("decomp", "periodic"), f"periodic should be true, false, or {size} of them"
            )
        self.names |= {f"P{d}" for d in range(size)}
        if cells is not None:
            self.names |= {f"n{d}" for d in range(size)}
        return Grid(dims, cells, tuple(flags))

    def limits(self, table: Mapping[str, Any]) -> Limits:
        self.keys(table, ("limits",), (), ("require", "memory_per_rank"))
        require = self.expressions(table, ("limits", "require")) if "require" in table else ()
        memory = None
        if "memory_per_rank" in table:
            memory = self.expression(table["memory_per_rank"], ("limits", "memory_per_rank"))
        return Limits(require, memory)

    def imbalance(self, table: Mapping[str, Any]) -> dict[str, Quantity]:
        self.keys(table, ("imbalance",), (), _IMBALANCE)
        found = {name: self.quantity(table[name], ("imbalance", name)) for name in table}
        exponent = found.get("growth_exponent")
        if exponent is not None and exponent.value > 0.5:
            raise self.error(
                ("imbalance", "growth_exponent"),
                f"growth_exponent should be between 0 (smooth) and 0.5 (independent cells), "
                f"not {exponent.value:g}",
            )
        return found

    # -- the program

    def body(self, value: object, where: toml_lines.Path) -> tuple[Item, ...]:
        if not isinstance(value, list) or not value:
            raise self.error(where, f"{where[-1]} should be a list with at least one item")
        read: list[Item] = []
        for index, entry in enumerate(value):
            try:
                read.append(self.item(entry, (*where, index)))
            except SignatureError as mistake:
                self.note(mistake)
        return tuple(read)

    def item(self, entry: object, where: toml_lines.Path) -> Item:
        readers: dict[str, Callable[[Mapping[str, Any], toml_lines.Path, str, Expression], Item]]
        readers = {
            "loop": self.loop,
            "serial": self.serial,
            "parallel": self.parallel,
            "task": self.task,
            "halo": self.halo,
            "pipeline": self.pipeline,
            "shift": self.shift,
            "p2p": self.point_to_point,
            "collective": self.collective,
        }
        if not isinstance(entry, Mapping):
            raise self.error(where, "an item should be a table with one kind, such as parallel")
        kinds = [key for key in entry if key in readers]
        for key in entry:
            if key not in kinds and not (key == "body" and "loop" in entry):
                near = difflib.get_close_matches(key, readers, n=1)
                hint = f"did you mean {near[0]}?" if near else f"kinds are {', '.join(readers)}"
                if key == "critical":  # near to none of them
                    hint = "a critical section stands inside parallel"
                raise self.error((*where, key), f"unknown kind of item {key!r}", hint)
        if len(kinds) != 1:
            listed = ", ".join(kinds) or "none"
            raise self.error(where, f"an item should have exactly one kind, not {listed}")
        kind = kinds[0]
        inner = (*where, kind)
        table = entry[kind]
        if not isinstance(table, Mapping):
            raise self.error(inner, f"{kind} should be a table")
        if kind == "loop" and "body" in entry:
            table = {**table, "body": entry["body"]}
        name = self.text(table, (*inner, "name")) if "name" in table else kind
        every = self.expression(table.get("every", 1), (*inner, "every"))
        if table.get("comm_threads", 1) != 1:
            raise self.error(
                (*inner, "comm_threads"),
                "the model has no term for several communicating threads yet",
                "comm_threads = 1 is supported",
            )
        return readers[kind](table, inner, name, every)

    def loop(
        self, table: Mapping[str, Any], where: toml_lines.Path, name: str, every: Expression
    ) -> Loop:
        self.keys(table, where, ("count", "body"), _COMMON)
        # [[program.body]] stands beside loop, an inline body inside it
        inline = (*where, "body") in self.lines
        body_at = (*where, "body") if inline else (*where[:-1], "body")
        count = self.expression(table["count"], (*where, "count"))
        return Loop(name, count, self.body(table["body"], body_at), every)

    def serial(
        self, table: Mapping[str, Any], where: toml_lines.Path, name: str, every: Expression
    ) -> Serial:
        self.keys(table, where, ("trip",), (*_COMMON, *_COSTS))
        trip = self.expression(table["trip"], (*where, "trip"))
        return Serial(name, trip, self.costs(table, where), every)

    def parallel(
        self, table: Mapping[str, Any], where: toml_lines.Path, name: str, every: Expression
    ) -> Parallel:
        optional = (*_COMMON, *_COSTS, "inner", "schedule", "chunk", "constructs", "critical")
        self.keys(table, where, ("trip",), optional)
        schedule = self.choice(table, (*where, "schedule"), SCHEDULES)
        constructs = table.get("constructs", {"parallel_for": 1})
        if not isinstance(constructs, Mapping):
            raise self.error((*where, "constructs"), "constructs should be a table of counts")
        chunk = None
        if "chunk" in table:
            chunk = self.expression(table["chunk"], (*where, "chunk"))
        return Parallel(
            name,
            self.expression(table["trip"], (*where, "trip")),
            self.expression(table.get("inner", 1), (*where, "inner")),
            self.costs(table, where),
            {
                key: self.expression(value, (*where, "constructs", key))
                for key, value in constructs.items()
            },
            schedule,
            chunk,
            self.critical(table, where),
            every,
        )

    def critical(self, table: Mapping[str, Any], where: toml_lines.Path) -> Critical | None:
        if "critical" not in table:
            return None
        inner = (*where, "critical")
        entry = table["critical"]
        if not isinstance(entry, Mapping):
            raise self.error(inner, "critical should be a table")
        self.keys(entry, inner, ("entries", "seconds"), ())
        return Critical(*self.all_of(entry, inner, ("entries", "seconds")))

    def task(
        self, table: Mapping[str, Any], where: toml_lines.Path, name: str, every: Expression
    ) -> Task:
        self.keys(table, where, ("count", "seconds"), (*_COMMON, "span"))
        count, seconds = self.all_of(table, where, ("count", "seconds"))
        span = self.expression(table["span"], (*where, "span")) if "span" in table else None
        return Task(name, count, seconds, span, every)

    def halo(
        self, table: Mapping[str, Any], where: toml_lines.Path, name: str, every: Expression
    ) -> Halo:
        self.keys(table, where, ("width", "bytes_per_cell"), (*_COMMON, "mode", "pack", "overlap"))
        if self.grid is None or self.grid.cells is None:
            raise self.error(where, "halo needs a decomp with global, the cells to be shared")
        width, cell = self.all_of(table, where, ("width", "bytes_per_cell"))
        return Halo(
            name,
            width,
            cell,
            self.choice(table, (*where, "mode"), ("nonblocking", "blocking")),
            self.choice(table, (*where, "pack"), ("serial", "parallel", "none")),
            self.expression(table.get("overlap", 0), (*where, "overlap")),
            every,
        )

    def pipeline(
        self, table: Mapping[str, Any], where: toml_lines.Path, name: str, every: Expression
    ) -> Pipeline:
        self.keys(table, where, ("dims", "blocks", "seconds", "bytes"), _COMMON)
        if self.grid is None:
            raise self.error(where, "pipeline needs a decomp with a grid")
        dims = table["dims"]
        count = len(self.grid.periodic)
        if (
            not isinstance(dims, list)
            or not dims
            or len(set(map(str, dims))) != len(dims)
            or not all(type(dim) is int and 0 <= dim < count for dim in dims)
        ):
            raise self.error(
                (*where, "dims"),
                f"dims should be a list of different grid dimensions, 0 to {count - 1}, "
                f"not {dims!r}",
            )
        blocks, seconds, size = self.all_of(table, where, ("blocks", "seconds", "bytes"))
        return Pipeline(name, tuple(dims), blocks, seconds, size, every)

    def shift(
        self, table: Mapping[str, Any], where: toml_lines.Path, name: str, every: Expression
    ) -> Shift:
        self.keys(table, where, ("dim", "by", "bytes"), _COMMON)
        size = 0 if self.grid is None else len(self.grid.periodic)
        if not size:
            raise self.error(where, "shift needs a decomp with a grid")
        dim = table["dim"]
        if isinstance(dim, bool) or not isinstance(dim, int) or not 0 <= dim < size:
            raise self.error((*where, "dim"), f"dim should be 0 to {size - 1}, not {dim!r}")
        by = self.expression(table["by"], (*where, "by"))
        return Shift(name, dim, by, self.expression(table["bytes"], (*where, "bytes")), every)

    def point_to_point(
        self, table: Mapping[str, Any], where: toml_lines.Path, name: str, every: Expression
    ) -> PointToPoint:
        self.keys(table, where, ("to", "bytes"), (*_COMMON, "mode"))
        mode = self.choice(table, (*where, "mode"), ("send", "sendrecv"))
        to = self.expression(table["to"], (*where, "to"), extra=("rank",))
        size = self.expression(table["bytes"], (*where, "bytes"))
        return PointToPoint(name, to, size, mode, every)

    def collective(
        self, table: Mapping[str, Any], where: toml_lines.Path, name: str, every: Expression
    ) -> Collective:
        self.keys(table, where, ("op",), (*_COMMON, "bytes", "comm", "root"))
        op = table["op"]
        if op not in DEFAULT_ALGORITHM:
            near = difflib.get_close_matches(str(op), DEFAULT_ALGORITHM, n=1)
            raise self.error(
                (*where, "op"),
                f"unknown collective {op!r}",
                f"did you mean {near[0]}?" if near else f"known: {', '.join(DEFAULT_ALGORITHM)}",
            )
        if table.get("comm", "world") != "world":
            raise self.error(
                (*where, "comm"), "the model has no term for collectives of a part of the ranks yet"
            )
        if "bytes" not in table and op != "barrier":
            raise self.error(where, "collective needs bytes")
        return Collective(
            name, op, self.expression(table.get("bytes", 0), (*where, "bytes")), every
        )

    def costs(self, table: Mapping[str, Any], where: toml_lines.Path) -> Costs:
        levels = table.get("bytes", {})
        if not isinstance(levels, Mapping):
            raise self.error(
                (*where, "bytes"), "bytes should be a table by level, such as bytes.MEM"
            )
        flops, loads, stores = (
            self.expression(table.get(key, 0), (*where, key)) for key in _COSTS[:3]
        )
        return Costs(
            flops,
            loads,
            stores,
            {
                level: self.expression(value, (*where, "bytes", level))
                for level, value in levels.items()
            },
        )

    # -- values

    def keys(
        self,
        table: Mapping[str, Any],
        where: toml_lines.Path,
        required: Iterable[str],
        optional: Iterable[str],
    ) -> None:
        """Refuse keys that are not known, and the absence of required ones."""
        required = tuple(required)
        known = (*required, *optional)
        place = f" in {where[-1]}" if where else ""
        for key in table:
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
                self.note(self.error((*where, key), f"unknown key {key!r}{place}", hint))
        for key in required:
            if key not in table:
                raise self.error(where, f"{key} is missing{place}")

    def table(self, document: Mapping[str, Any], where: toml_lines.Path) -> Mapping[str, Any]:
        value = document.get(str(where[-1]), {})
        if not isinstance(value, Mapping):
            raise self.error(where, f"{where[-1]} should be a table")
        return value

    def text(self, table: Mapping[str, Any], where: toml_lines.Path) -> str:
        value = table[str(where[-1])]
        if not isinstance(value, str) or not value:
            raise self.error(where, f"{where[-1]} should be text, not {value!r}")
        return value

    def choice(
        self, table: Mapping[str, Any], where: toml_lines.Path, choices: tuple[str, ...]
    ) -> str:
        """Read one of some words; the first is the default."""
        value = table.get(str(where[-1]), choices[0])
        if value not in choices:
            listed = ", ".join(choices[:-1]) + f" or {choices[-1]}"
            raise self.error(where, f"{where[-1]} should be {listed}, not {value!r}")
        return str(value)

    def all_of(
        self, table: Mapping[str, Any], where: toml_lines.Path, keys: Iterable[str]
    ) -> list[Expression]:
        return [self.expression(table[key], (*where, key)) for key in keys]

    def quantity(self, value: object, where: toml_lines.Path) -> Quantity:
        """Read a number, or a table with value, low, high and origin."""
        entry = value if isinstance(value, Mapping) else {"value": value}
        try:
            return read_quantity(entry, "1", zero=True, origins=ORIGINS)
        except ValueError as error:
            raise self.error(where, f"{where[-1]}: {error}") from None

    def new_name(self, name: str, where: toml_lines.Path) -> None:
        if not name.isidentifier() or keyword.iskeyword(name):
            self.note(self.error(where, f"{name!r} cannot be used as a name in formulas"))
        elif name in RESERVED or name in FUNCTIONS or name in EXTRA_FUNCTIONS:
            meaning = RESERVED.get(name, "a function")
            self.note(self.error(where, f"the name {name} is taken: it is {meaning}"))
        elif name in self.names:
            self.note(self.error(where, f"the name {name} is defined twice"))
        self.names.add(name)

    def expressions(
        self, table: Mapping[str, Any], where: toml_lines.Path
    ) -> tuple[Expression, ...]:
        value = table[str(where[-1])]
        if not isinstance(value, list) or not value:
            raise self.error(where, f"{where[-1]} should be a list of formulas")
        return tuple(
            self.expression(entry, (*where, index), functions={})
            for index, entry in enumerate(value)
        )

    def expression(
        self,
        value: object,
        where: toml_lines.Path,
        extra: Iterable[str] = (),
        functions: Mapping[str, int] = EXTRA_FUNCTIONS,
    ) -> Expression:
        """Read a formula; what holds whatever the machine is gets none of its `functions`."""
        read = partial(self._formula, value, where, self.names | set(extra), functions)
        self.formulas[where] = self.part(read, _UNREADABLE)
        return self.formulas[where]

    def _formula(
        self,
        value: object,
        where: toml_lines.Path,
        known: set[str],
        functions: Mapping[str, int],
    ) -> Expression:
        key = next(part for part in reversed(where) if isinstance(part, str))
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self.error(where, f"{key} should be a number or a formula, not {value!r}")
        try:
            expression = parse(str(value), functions=functions)
        except ExpressionError as error:
            raise self.error(where, f"{key}: {error.message}", error.hint) from None
        for name in sorted(expression.names - known):
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(sorted(known))}"
            raise self.error(where, f"{key}: unknown name {name!r} in {value!r}", hint)
        return expression
