"""Reads the program of a signature: one method for each kind of item."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

from popmodel.expressions import Expression
from popmodel.model.signature import toml_lines
from popmodel.model.signature.keys import KEYS
from popmodel.model.signature.program import (
    Collective,
    Communicator,
    Costs,
    Critical,
    Halo,
    Item,
    Loop,
    Parallel,
    Pipeline,
    PointToPoint,
    Serial,
    SharedWrites,
    Shift,
    Task,
)
from popmodel.model.signature.reading import Reading, SignatureError
from popmodel.network.collectives import DEFAULT_ALGORITHM, ROOTED

SCHEDULES = ("static", "dynamic", "guided")
MODES = ("sum", "ecm", "roofline")
COMMUNICATORS = ("world", "node", "leaders")
PARTS_OF_TIME = ("flops", "loads", "stores", "chain", "bytes", "mode")
"""What the time of an iteration is made of where nobody measured it."""


class ProgramReader(Reading):
    """Reads the items of a program."""

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


def _dimensions(count: int) -> str:
    """Say which grid dimensions there are."""
    return (
        "the grid has one dimension: 0"
        if count == 1
        else f"the grid has dimensions 0 to {count - 1}"
    )
