"""Reads the TOML of a signature: checks every key and formula, and says in which line one is wrong.

Everything that is not understood is refused: an item that were skipped would make every prediction
wrong without a sign.
"""

from __future__ import annotations

import difflib
import keyword
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from functools import partial
from typing import Any, TypeVar

from popmodel import shell
from popmodel.errors import FileError, UsageError
from popmodel.expressions import Expression, ExpressionError, parse
from popmodel.expressions.grammar import FUNCTIONS
from popmodel.machine.quantity import Quantity, read_quantity
from popmodel.model.signature import toml_lines
from popmodel.model.signature.keys import KEYS, Domain, Key, key_of
from popmodel.model.signature.program import (
    Collective,
    Communicator,
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
    SharedWrites,
    Shift,
    Signature,
    Task,
)
from popmodel.model.symbols import RESERVED
from popmodel.network.collectives import DEFAULT_ALGORITHM
from popmodel.units import SIZE_UNITS, TIME_UNITS
from popmodel.values import dataclass

SCHEMA = "popmodel/signature/1"
ORIGINS = ("user", "static", "trace", "fit")
EXTRA_FUNCTIONS = {"if_fits": 3}
MAX_DIMENSIONS = 3
EXTENTS = frozenset(f"{letter}{dim}" for letter in "Pn" for dim in range(MAX_DIMENSIONS))
"""Names that a decomposition defines: processes and local cells along each dimension."""

BASE_UNITS = ("B", "s", "1")

Part = TypeVar("Part")
_UNREADABLE = parse("1")  # stands for a formula with a mistake while others are looked for

SCHEDULES = ("static", "dynamic", "guided")
MODES = ("sum", "ecm", "roofline")
COMMUNICATORS = ("world", "node", "leaders")
PARTS_OF_TIME = ("flops", "loads", "stores", "chain", "bytes", "mode")
"""What the time of an iteration is made of where nobody measured it."""
ROOTED = ("bcast", "reduce", "gather", "scatter")


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
            problem = "schema is missing"
            if "schema" in document:
                problem = f"schema must be {SCHEMA!r}, not {document['schema']!r}"
            raise self.error(("schema",), problem, f'a signature begins with schema = "{SCHEMA}"')
        self.keys(document, ())
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
        self.keys(table, ("app",))
        for key in table:
            self.text(table, ("app", key))
        name = str(table["name"])
        try:
            return shell.plain(name, "name")  # it becomes that of a program in launch lines
        except UsageError as error:
            raise self.error(("app", "name"), error.message, error.hint) from None

    def params(self, table: Mapping[str, Any]) -> dict[str, Quantity]:
        found = {}
        for name, value in table.items():
            where = ("params", name)
            self.new_name(name, where)
            if isinstance(value, Mapping) and "unit" in value:
                value = dict(value)
                unit = self.part(partial(self.unit, value.pop("unit"), where), None)
                self.units |= {} if unit is None else {name: unit}
            read = partial(self.quantity, value, where)
            found[name] = self.part(read, Quantity(1.0))
        return found

    def unit(self, value: object, where: toml_lines.Path) -> str | None:
        """Read the unit of a parameter: bytes, seconds, or what is counted."""
        known = isinstance(value, str) and (value in BASE_UNITS or value.isidentifier())
        scaled = {*SIZE_UNITS, *TIME_UNITS}.difference(BASE_UNITS)
        if not known or value in scaled:
            problem = f"{where[-1]}: the unit must be B, s, 1 or what is counted, not {value!r}"
            raise self.error(where, problem, "for example cells; sizes are in B, times in s")
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
        self.names |= EXTENTS
        every = (_UNREADABLE,) * MAX_DIMENSIONS
        return Grid(every, every, (False,) * MAX_DIMENSIONS)

    def decomposition(self, document: Mapping[str, Any]) -> Grid | None:
        if "decomp" not in document:
            return None
        table = self.table(document, ("decomp",))
        self.keys(table, ("decomp",))
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
        self.names |= {f"P{d}" for d in range(size)}
        if cells is not None:
            self.names |= {f"n{d}" for d in range(size)}
        return Grid(dims, cells, tuple(flags))

    def limits(self, table: Mapping[str, Any]) -> Limits:
        self.keys(table, ("limits",))
        require = self.expressions(table, ("limits", "require")) if "require" in table else ()
        memory = None
        if "memory_per_rank" in table:
            memory = self.formula(table, ("limits", "memory_per_rank"))
        return Limits(require, memory)

    def imbalance(self, table: Mapping[str, Any]) -> dict[str, Quantity]:
        self.keys(table, ("imbalance",))
        found = {}
        for key in KEYS["imbalance"]:
            if key.name in table:
                read = partial(self.spread, key, table[key.name])
                found[key.name] = self.part(read, Quantity(0.0))
        return found

    def spread(self, key: Key, value: object) -> Quantity:
        """Read a number of ``imbalance``."""
        where = ("imbalance", key.name)
        quantity = self.quantity(value, where)
        if key.domain is not None and not key.domain.holds(quantity.value):
            problem = f"{key.name} must be {key.domain.text}, not {quantity.value:g}"
            raise self.error(where, problem)
        return quantity

    # -- the program

    def body(self, value: object, where: toml_lines.Path) -> tuple[Item, ...]:
        if not isinstance(value, list) or not value:
            raise self.error(where, f"{where[-1]} must be a list with at least one item")
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
            raise self.error(where, "an item must be a table with one kind, such as parallel")
        kinds = [key for key in entry if key in readers]
        for key in entry:
            if key not in kinds and not (key == "body" and "loop" in entry):
                near = difflib.get_close_matches(key, readers, n=1)
                hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(readers)}"
                if key == "critical":  # near to none of them
                    hint = "put critical inside parallel"
                raise self.error((*where, key), f"unknown kind of item {key!r}", hint)
        if len(kinds) != 1:
            listed = ", ".join(kinds) or "none"
            raise self.error(where, f"an item must have exactly one kind, not {listed}")
        kind = kinds[0]
        inner = (*where, kind)
        table = entry[kind]
        if not isinstance(table, Mapping):
            raise self.error(inner, f"{kind} must be a table")
        if kind == "loop" and "body" in entry:
            table = {**table, "body": entry["body"]}
        table = self.one_comm_thread(table, kind, inner)
        self.keys(table, inner)
        name = self.text(table, (*inner, "name")) if "name" in table else kind
        if "every" in table and "body" not in where:
            raise self.error(
                (*inner, "every"),
                f"every counts the iterations of a loop, but {name!r} is not in a loop",
                "move the item into the body of a loop, or remove every",
            )
        return readers[kind](table, inner, name, self.formula(table, (*inner, "every")))

    def one_comm_thread(
        self, table: Mapping[str, Any], kind: str, where: toml_lines.Path
    ) -> Mapping[str, Any]:
        """Take comm_threads = 1 out of an item without messages that threads could share."""
        if any(key.name == "comm_threads" for key in KEYS[kind]) or "comm_threads" not in table:
            return table
        if table["comm_threads"] != 1:
            why = {
                "collective": "a collective is called by one thread",
                "pipeline": "the blocks of a pipeline are sent one after the other",
            }
            raise self.error(
                (*where, "comm_threads"),
                f"comm_threads in {kind}: {why.get(kind, 'it sends no messages')}",
                "only halo, shift and p2p can send with several threads",
            )
        return {name: value for name, value in table.items() if name != "comm_threads"}

    def loop(
        self, table: Mapping[str, Any], where: toml_lines.Path, name: str, every: Expression
    ) -> Loop:
        # [[program.body]] stands beside loop, an inline body inside it
        inline = (*where, "body") in self.lines
        body_at = (*where, "body") if inline else (*where[:-1], "body")
        count = self.formula(table, (*where, "count"))
        return Loop(name, count, self.body(table["body"], body_at), every)

    def serial(
        self, table: Mapping[str, Any], where: toml_lines.Path, name: str, every: Expression
    ) -> Serial:
        return Serial(name, self.formula(table, (*where, "trip")), self.costs(table, where), every)

    def parallel(
        self, table: Mapping[str, Any], where: toml_lines.Path, name: str, every: Expression
    ) -> Parallel:
        constructs = table.get("constructs", {"parallel_for": 1})
        if not isinstance(constructs, Mapping):
            raise self.error((*where, "constructs"), "constructs must be a table of counts")
        return Parallel(
            name,
            trip=self.formula(table, (*where, "trip")),
            inner=self.formula(table, (*where, "inner")),
            costs=self.costs(table, where),
            constructs=self.named(constructs, (*where, "constructs")),
            schedule=self.choice(table, (*where, "schedule"), SCHEDULES),
            chunk=self.formula(table, (*where, "chunk")) if "chunk" in table else None,
            iteration_cv=self.formula(table, (*where, "iteration_cv")),
            critical=self.critical(table, where),
            shared_writes=self.shared_writes(table, where),
            every=every,
        )

    def critical(self, table: Mapping[str, Any], where: toml_lines.Path) -> Critical | None:
        found = self.inner_table(table, (*where, "critical"))
        return None if found is None else Critical(**found)

    def shared_writes(
        self, table: Mapping[str, Any], where: toml_lines.Path
    ) -> SharedWrites | None:
        found = self.inner_table(table, (*where, "shared_writes"))
        return None if found is None else SharedWrites(**found)

    def task(
        self, table: Mapping[str, Any], where: toml_lines.Path, name: str, every: Expression
    ) -> Task:
        span = self.formula(table, (*where, "span")) if "span" in table else None
        count, seconds = self.all_of(table, where, ("count", "seconds"))
        return Task(name, count, seconds, span, every)

    def halo(
        self, table: Mapping[str, Any], where: toml_lines.Path, name: str, every: Expression
    ) -> Halo:
        if self.grid is None or self.grid.cells is None:
            raise self.error(where, "halo needs decomp with global (cells)")
        return Halo(
            name,
            width=self.formula(table, (*where, "width")),
            bytes_per_cell=self.formula(table, (*where, "bytes_per_cell")),
            mode=self.choice(table, (*where, "mode"), ("nonblocking", "blocking")),
            pack=self.choice(table, (*where, "pack"), ("serial", "parallel", "none")),
            overlap=self.formula(table, (*where, "overlap")),
            comm_threads=self.formula(table, (*where, "comm_threads")),
            every=every,
        )

    def pipeline(
        self, table: Mapping[str, Any], where: toml_lines.Path, name: str, every: Expression
    ) -> Pipeline:
        if self.grid is None:
            raise self.error(where, "pipeline needs decomp")
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
                f"dims must list grid dimensions, each once, not {dims!r}",
                _dimensions(count),
            )
        blocks, seconds, size = self.all_of(table, where, ("blocks", "seconds", "bytes"))
        return Pipeline(name, tuple(dims), blocks, seconds, size, every)

    def shift(
        self, table: Mapping[str, Any], where: toml_lines.Path, name: str, every: Expression
    ) -> Shift:
        size = 0 if self.grid is None else len(self.grid.periodic)
        if not size:
            raise self.error(where, "shift needs decomp")
        dim = table["dim"]
        if isinstance(dim, bool) or not isinstance(dim, int) or not 0 <= dim < size:
            raise self.error(
                (*where, "dim"), f"dim must be a grid dimension, not {dim!r}", _dimensions(size)
            )
        by, bytes_, threads = self.all_of(table, where, ("by", "bytes", "comm_threads"))
        return Shift(name, dim, by, bytes_, threads, every)

    def point_to_point(
        self, table: Mapping[str, Any], where: toml_lines.Path, name: str, every: Expression
    ) -> PointToPoint:
        return PointToPoint(
            name,
            to=self.expression(table["to"], (*where, "to"), extra=("rank",)),
            bytes=self.formula(table, (*where, "bytes")),
            mode=self.choice(table, (*where, "mode"), ("send", "sendrecv")),
            comm_threads=self.formula(table, (*where, "comm_threads")),
            every=every,
        )

    def collective(
        self, table: Mapping[str, Any], where: toml_lines.Path, name: str, every: Expression
    ) -> Collective:
        op = table["op"]
        if op not in DEFAULT_ALGORITHM:
            near = difflib.get_close_matches(str(op), DEFAULT_ALGORITHM, n=1)
            raise self.error(
                (*where, "op"),
                f"unknown collective {op!r}",
                f"did you mean {near[0]}?" if near else f"known: {', '.join(DEFAULT_ALGORITHM)}",
            )
        if "bytes" not in table and op != "barrier":
            raise self.error(where, "collective needs bytes")
        if "root" in table and op not in ROOTED:
            raise self.error(
                (*where, "root"), f"{op} has no root", f"only {', '.join(ROOTED)} have one"
            )
        bytes_ = self.formula({"bytes": 0, **table}, (*where, "bytes"))
        comm = self.communicator(table.get("comm", "world"), (*where, "comm"))
        return Collective(name, op, bytes_, comm, self.formula(table, (*where, "root")), every)

    def communicator(self, value: object, where: toml_lines.Path) -> Communicator:
        """Read ``world``, ``node``, ``leaders``, or one or several of ``dim0`` to ``dim2``."""
        if isinstance(value, str) and value in COMMUNICATORS:
            return value
        size = 0 if self.grid is None else len(self.grid.periodic)
        known = [f"dim{dim}" for dim in range(size)]
        names = [value] if isinstance(value, str) else value
        if isinstance(names, list) and names and all(name in known for name in names):
            dims = tuple(sorted(known.index(name) for name in names))
            if len(set(dims)) == len(dims):
                return dims
        possible = ", ".join(COMMUNICATORS)
        raise self.error(
            where,
            f"comm must be {possible} or grid dimensions, not {value!r}",
            f"dimensions of this decomp: {', '.join(known)}"
            if known
            else "grid dimensions need decomp",
        )

    def costs(self, table: Mapping[str, Any], where: toml_lines.Path) -> Costs:
        levels = table.get("bytes", {})
        if not isinstance(levels, Mapping):
            raise self.error((*where, "bytes"), "bytes must give a level, such as bytes.MEM")
        flops, loads, stores, chain = self.all_of(
            table, where, ("flops", "loads", "stores", "chain")
        )
        instructions = None
        if "instructions" in table:
            instructions = self.formula(table, (*where, "instructions"))
        mode = self.choice(table, (*where, "mode"), MODES) if "mode" in table else None
        return Costs(
            flops,
            loads,
            stores,
            self.named(levels, (*where, "bytes")),
            chain,
            instructions,
            mode,
            self.measured_seconds(table, where),
        )

    def measured_seconds(
        self, table: Mapping[str, Any], where: toml_lines.Path
    ) -> Expression | None:
        """Read the measured time of an iteration, which leaves nothing for its parts to say."""
        if "seconds" not in table:
            return None
        parts = [name for name in PARTS_OF_TIME if name in table]
        if parts:
            raise self.error(
                (*where, parts[0]),
                f"{where[-1]} has seconds, the time of the whole iteration, and {parts[0]}",
                f"remove seconds, or remove {', '.join(parts)}",
            )
        return self.formula(table, (*where, "seconds"))

    # -- values

    def keys(self, table: Mapping[str, Any], where: toml_lines.Path) -> None:
        """Refuse keys that `KEYS` does not know, and the absence of required ones."""
        keys = KEYS[str(where[-1]) if where else ""]
        known = [key.name for key in keys]
        place = f" in {where[-1]}" if where else ""
        for name in table:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
                self.note(self.error((*where, name), f"unknown key {name!r}{place}", hint))
        for key in keys:
            if key.default is None and key.name not in table:
                raise self.error(where, f"{key.name} is missing{place}")

    def table(self, document: Mapping[str, Any], where: toml_lines.Path) -> Mapping[str, Any]:
        value = document.get(str(where[-1]), {})
        if not isinstance(value, Mapping):
            raise self.error(where, f"{where[-1]} must be a table")
        return value

    def text(self, table: Mapping[str, Any], where: toml_lines.Path) -> str:
        value = table[str(where[-1])]
        if not isinstance(value, str) or not value:
            problem = "must not be empty" if value == "" else f"must be text, not {value!r}"
            raise self.error(where, f"{where[-1]} {problem}")
        return value

    def choice(
        self, table: Mapping[str, Any], where: toml_lines.Path, choices: tuple[str, ...]
    ) -> str:
        """Read one of some words; the first is the default."""
        value = table.get(str(where[-1]), choices[0])
        if value not in choices:
            listed = ", ".join(choices[:-1]) + f" or {choices[-1]}"
            raise self.error(where, f"{where[-1]} must be {listed}, not {value!r}")
        return str(value)

    def inner_table(
        self, table: Mapping[str, Any], where: toml_lines.Path
    ) -> dict[str, Expression] | None:
        """Read a table of formulas inside an item."""
        name = str(where[-1])
        if name not in table:
            return None
        if not isinstance(table[name], Mapping):
            raise self.error(where, f"{name} must be a table")
        self.keys(table[name], where)
        return {key.name: self.formula(table[name], (*where, key.name)) for key in KEYS[name]}

    def named(self, table: Mapping[str, Any], where: toml_lines.Path) -> dict[str, Expression]:
        """Read a table whose keys are free: levels of the memory, OpenMP constructs."""
        domain = key_of(str(where[-2]), str(where[-1])).domain
        return {
            name: self.within(domain, self.expression(value, (*where, name)), (*where, name))
            for name, value in table.items()
        }

    def all_of(
        self, table: Mapping[str, Any], where: toml_lines.Path, names: Iterable[str]
    ) -> list[Expression]:
        return [self.formula(table, (*where, name)) for name in names]

    def formula(self, table: Mapping[str, Any], where: toml_lines.Path) -> Expression:
        """Read the formula of a key, or its default."""
        key = key_of(str(where[-2]), str(where[-1]))
        expression = self.expression(table.get(key.name, key.default), where)
        return self.within(key.domain_of(is_constant=True), expression, where)

    def within(
        self, domain: Domain | None, expression: Expression, where: toml_lines.Path
    ) -> Expression:
        """Refuse a formula without names whose value makes no sense; others depend on the run."""
        if expression.names or expression.calls & EXTRA_FUNCTIONS.keys():
            return expression
        try:
            value = expression.evaluate({})
        except ExpressionError as error:
            self.note(self.error(where, f"{where[-1]}: {error.message}", error.hint))
            return expression
        if domain is not None and not domain.holds(value):
            problem = f"{where[-1]} must be {domain.text}, not {float(value):g}"
            self.note(self.error(where, problem))
        return expression

    def quantity(self, value: object, where: toml_lines.Path) -> Quantity:
        """Read a number, or a table with value, low, high and origin."""
        entry = value if isinstance(value, Mapping) else {"value": value}
        try:
            return read_quantity(entry, "1", zero=True, origins=ORIGINS)
        except ValueError as error:
            raise self.error(where, f"{where[-1]}: {error}") from None

    def new_name(self, name: str, where: toml_lines.Path) -> None:
        if not name.isidentifier() or keyword.iskeyword(name):
            problem = f"{name!r} cannot be a name in formulas"
            self.note(self.error(where, problem, "use letters, digits and _"))
        elif name in RESERVED or name in FUNCTIONS or name in EXTRA_FUNCTIONS:
            meaning = RESERVED.get(name, "a function")
            self.note(self.error(where, f"the name {name} is reserved: {meaning}"))
        elif name in self.names:
            self.note(self.error(where, f"{name} is defined twice"))
        self.names.add(name)

    def expressions(
        self, table: Mapping[str, Any], where: toml_lines.Path
    ) -> tuple[Expression, ...]:
        value = table[str(where[-1])]
        if not isinstance(value, list) or not value:
            raise self.error(where, f"{where[-1]} must be a list of formulas")
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
            raise self.error(where, f"{key} must be a number or a formula, not {value!r}")
        try:
            expression = parse(str(value), functions=functions)
        except ExpressionError as error:
            raise self.error(where, f"{key}: {error.message}", error.hint) from None
        for name in sorted(expression.names - known):
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(sorted(known))}"
            raise self.error(where, f"{key}: unknown name {name!r} in {value!r}", hint)
        return expression


def _dimensions(count: int) -> str:
    """Say which grid dimensions there are."""
    return (
        "the grid has one dimension: 0"
        if count == 1
        else f"the grid has dimensions 0 to {count - 1}"
    )
