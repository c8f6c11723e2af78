"""The performance model: walks the region tree of a program and adds up its terms.

The walk uses the same functions for numbers, arrays of draws and traced numbers, so one pass over
`Model.work` gives a prediction with its intervals, or the formulas behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popmodel.arrays import distinct
from popmodel.errors import UsageError
from popmodel.expressions import Expression
from popmodel.expressions.elementary import Value, maximum
from popmodel.machine.profile import MissingQuantity
from popmodel.model.run import grid
from popmodel.model.run.communication import Communication
from popmodel.model.run.computation import Computation, Counts, Schedule, Section, Writes
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.placement import Placement
from popmodel.model.run.work import Work
from popmodel.model.signature import amounts
from popmodel.model.signature.keys import key_of
from popmodel.model.signature.program import (
    Collective,
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
    Signature,
    Task,
)
from popmodel.model.terms import halo, memory, pipeline
from popmodel.units import format_size
from popmodel.values import dataclass


@dataclass(frozen=True)
class Model:
    """A program on a machine in a placement, ready to be evaluated.

    Attributes
    ----------
    signature : Signature
        The program.
    placement : Placement
        Processes, threads, nodes.
    parameters : Parameters
        The machine.
    values : mapping of str to value
        Every name of the signature's formulas.
    extent : tuple of int
        Processes along each grid dimension; empty without a grid.
    overlap : {'none', 'ecm', 'full'} or None
        How all loops overlap arithmetic and transfers; None is as loops and machine say.
    """

    signature: Signature
    placement: Placement
    parameters: Parameters
    values: Mapping[str, Value]
    extent: tuple[int, ...]
    overlap: str | None = None

    def work(self) -> Work:
        """Add up the whole program for an average process.

        Raises
        ------
        UsageError
            If a formula gives a number that makes no sense, or the times are too large for one.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # checked part by part
            return self._sequence(self.signature.program)

    def value(self, expression: Expression) -> Value:
        """Evaluate a formula of the signature."""
        return self._evaluate(expression, self.values, f"{self.signature.name}: a formula")

    def amount(
        self, item: Item, key: str, of: Costs | Critical | SharedWrites | None = None
    ) -> Value:
        """Evaluate the formula of a key of an item, or of a table in it, and check its domain.

        Raises
        ------
        UsageError
            If the formula has no value, or one that makes no sense for this key.
        """
        table = item.kind
        if isinstance(of, Critical | SharedWrites):
            table = "critical" if isinstance(of, Critical) else "shared_writes"
        expression = getattr(item if of is None else of, key)
        return self._checked(expression, item, table, key)

    def whole(self, expression: Expression, what: str = "a formula") -> int:
        """Evaluate a formula that must give a whole number, the same in all draws."""
        numbers = distinct(np.asarray(self.value(expression), dtype=np.float64))
        if numbers.size != 1 or numbers[0] != round(float(numbers[0])):
            raise UsageError(
                f"{self.signature.name}: {what} is {expression.text!r}, which must give a whole "
                f"number at {self._point}, not {numbers[0]:g}"
            )
        return int(numbers[0])

    def memory_per_rank(self) -> Value | None:
        """Return the memory of a process, bytes; None if the signature does not say it."""
        formula = self.signature.limits.memory_per_rank
        if formula is None:
            return None
        what = f"{self.signature.name}: memory_per_rank"
        value = self._evaluate(formula, self.values, what)
        amounts.check(value, key_of("limits", "memory_per_rank").domain, formula, self.values, what)
        return value

    def _whole_amount(self, item: Item, key: str) -> int:
        self.amount(item, key)  # refuses what is outside the domain
        return self.whole(getattr(item, key), f"{key} of {item.name!r}")

    @property
    def _point(self) -> str:
        return f"P={self.placement.processes} T={self.placement.threads}"

    def _what(self, item: Item, key: str) -> str:
        return f"{self.signature.name}: {key} of {item.name!r}"

    def _checked(
        self, expression: Expression, item: Item, table: str, key: str, shown: str = ""
    ) -> Value:
        what = self._what(item, shown or (key if table == item.kind else f"{table}.{key}"))
        value = self._evaluate(expression, self.values, what)
        amounts.check(value, key_of(table, key).domain, expression, self.values, what)
        return value

    def _named(self, item: Item, key: str, formulas: Mapping[str, Expression]) -> dict[str, Value]:
        return {
            name: self._checked(formula, item, item.kind, key, f"{key}.{name}")
            for name, formula in formulas.items()
        }

    def _evaluate(self, expression: Expression, values: Mapping[str, Value], what: str) -> Value:
        return amounts.evaluate(expression, values, what, self._functions())

    def _functions(self) -> dict[str, Any]:
        def if_fits(working_set: Value, hit: Value, miss: Value) -> Value:
            profile = self.parameters.profile
            cache = profile.topology.last_level_cache
            if cache is None:
                raise profile.missing("topology.caches")
            sharing = profile.topology.processes_per_cache(
                cache, self.placement.per_node, self.placement.threads
            )
            capacity = memory.cache_capacity(
                self.parameters.get("memory.kappa"), cache.bytes, sharing
            )
            self._remark_threshold(working_set, capacity)
            return memory.if_fits(working_set, capacity, hit, miss)

        return {"if_fits": if_fits}

    def _remark_threshold(self, working_set: Value, capacity: Value) -> None:
        """Say so if the draws do not agree whether a working set stays in the cache."""
        fits = np.ravel(working_set <= capacity)
        if fits.any() and not fits.all():
            size = format_size(float(np.ravel(working_set)[0]), digits=3)
            self.parameters.remarks.add(
                f"a working set of {size} fits the cache in {100 * fits[1:].mean():.0f} % of the "
                "draws: intervals span both cases"
            )

    # -- the tree

    def _sequence(self, body: tuple[Item, ...]) -> Work:
        total, looped = Work(), 0.0
        for item in body:
            try:
                once = self.work_of(item)
            except MissingQuantity as error:
                if isinstance(item, Loop):  # what is in it is named already
                    raise
                raise error.needed_by(item.name) from None
            every = self.amount(item, "every")
            once = once if _is_one(every) else once.times(1 / every)
            self._check_finite(once, item)
            total = total.plus(once)
            if isinstance(item, Loop):
                looped = looped + once.steps
        # what communicates side by side meets in the same step, loops have steps of their own
        return replace(total, steps=maximum(total.steps, looped))

    def _check_finite(self, work: Work, item: Item) -> None:
        for name in ("serial", "stretched", "overhead", "waiting", "transfer"):
            value = getattr(work, name)
            if not np.all(np.isfinite(np.asarray(value, float))):
                raise UsageError(
                    f"{self.signature.name}: the time of {item.name!r} at {self._point} is too "
                    "large to represent",
                    "use smaller parameters, or check its counts and sizes",
                )

    def work_of(self, item: Item) -> Work:
        """Return one execution of an item by an average process."""
        match item:
            case Loop():
                return self._sequence(item.body).times(self.amount(item, "count"))
            case Serial():
                return self._computation.serial(self.amount(item, "trip"), self._counts(item))
            case Parallel():
                return self._parallel(item)
            case Shift():
                return self._shift(item)
            case PointToPoint():
                return self._point_to_point(item)
            case Halo():
                return self._halo(item)
            case Pipeline():
                return self._pipeline(item)
            case Collective():
                return self._collective(item)
            case Task():
                return self._task(item)

    # -- computation

    @property
    def _computation(self) -> Computation:
        return Computation(self.parameters, self.placement, self.overlap, self.values["T"])

    def _counts(self, item: Serial | Parallel) -> Counts:
        costs = item.costs
        flops, loads, stores, chain = (
            self.amount(item, key, costs) for key in ("flops", "loads", "stores", "chain")
        )
        counted = costs.instructions is not None
        return Counts(
            flops,
            loads,
            stores,
            chain,
            self._named(item, "bytes", costs.bytes),
            self.amount(item, "instructions", costs) if counted else None,
            costs.mode,
            None if costs.seconds is None else self.amount(item, "seconds", costs),
        )

    def _parallel(self, item: Parallel) -> Work:
        section = writes = None
        if item.critical is not None:
            section = Section(
                *(self.amount(item, key, item.critical) for key in ("entries", "seconds"))
            )
        if item.shared_writes is not None:
            keys = ("count", "bytes", "chunk")
            writes = Writes(*(self.amount(item, key, item.shared_writes) for key in keys))
        chunk = None if item.chunk is None else self.amount(item, "chunk")
        return self._computation.parallel(
            self.amount(item, "trip"),
            self.amount(item, "inner"),
            self._counts(item),
            Schedule(item.schedule, chunk, self.amount(item, "iteration_cv")),
            self._named(item, "constructs", item.constructs),
            section,
            writes,
        )

    def _task(self, item: Task) -> Work:
        count, seconds = self.amount(item, "count"), self.amount(item, "seconds")
        span = seconds if item.span is None else self.amount(item, "span")
        return self._computation.tasks(count, seconds, span)

    # -- communication

    @property
    def communication(self) -> Communication:
        """What messages and collectives cost in this placement."""
        grid = self.signature.grid
        periodic = () if grid is None else grid.periodic
        return Communication(self.parameters, self.placement, self.extent, periodic)

    def comm_threads(self, item: Halo | Shift | PointToPoint) -> int:
        """Return the threads of a process that send the messages of an item.

        Raises
        ------
        UsageError
            If that is no whole number from 1 to T.
        """
        count = self._whole_amount(item, "comm_threads")
        if count > self.placement.threads:
            raise UsageError(
                f"{self._what(item, 'comm_threads')} is {item.comm_threads.text!r} = {count} at "
                f"{self._point}, more than the threads of a process",
                "at most T threads of a process can send: write min(T, ...), or ask for more",
            )
        return count

    def root(self, item: Collective) -> int:
        """Return the rank in its communicators of the process that has or gets the data.

        Raises
        ------
        UsageError
            If there is no such rank in the smallest of them.
        """
        root = self._whole_amount(item, "root")
        size = min(ranks.size for ranks in self.communication.members(item.comm))
        if root >= size:
            raise UsageError(
                f"{self._what(item, 'root')} is {item.root.text!r} = {root} at "
                f"{self._point}: the smallest communicator has the ranks 0 to {size - 1}",
                "a root is a rank in the communicator, not in the whole program",
            )
        return root

    def targets(self, item: PointToPoint) -> NDArray[np.int64]:
        """Return the rank that each rank sends to, shape (P,); one outside 0..P-1 is none."""
        ranks = np.arange(self.placement.processes)
        values = {**self.values, "rank": ranks.astype(np.float64)}
        target = np.asarray(self._evaluate(item.to, values, self._what(item, "to")), float)
        found: NDArray[np.int64] = np.rint(np.broadcast_to(target, ranks.shape)).astype(np.int64)
        return found

    def _shift(self, item: Shift) -> Work:
        time = self.communication.shift(
            item.dim,
            self._whole_amount(item, "by"),
            self.amount(item, "bytes"),
            self.comm_threads(item),
        )
        return Work(transfer=time, steps=1.0)

    def _point_to_point(self, item: PointToPoint) -> Work:
        time = self.communication.point_to_point(
            self.targets(item), self.amount(item, "bytes"), item.mode, self.comm_threads(item)
        )
        return Work(transfer=time, steps=1.0)

    def _halo(self, item: Halo) -> Work:
        sizes = self.face_bytes(item)
        time = self.communication.halo(sizes, item.mode, self.comm_threads(item))
        exposed = Work(transfer=time * (1 - self.amount(item, "overlap")), steps=1.0)
        if item.pack == "none" or self.placement.processes == 1:
            return exposed
        bandwidth = self.parameters.optional("memory.copy_bw")
        if bandwidth is None:
            return exposed
        counts = halo.neighbours(self.extent, self.communication.periodic)
        copied = halo.packing_bytes(sizes, counts)
        return exposed.plus(
            self._computation.copying(copied, bandwidth, shared=item.pack == "parallel")
        )

    def face_bytes(self, item: Halo) -> list[Value]:
        """Return the bytes of the message of a halo along each dimension."""
        cells = [self.values[f"n{dim}"] for dim in range(len(self.extent))]
        width, cell = self.amount(item, "width"), self.amount(item, "bytes_per_cell")
        return halo.face_bytes(cells, width, cell)

    def _pipeline(self, item: Pipeline) -> Work:
        extent = [self.extent[dim] for dim in item.dims]
        blocks, sweep = self.amount(item, "blocks"), self.amount(item, "seconds")
        message = self.communication.to_neighbours(item.dims, self.amount(item, "bytes"))
        waiting = pipeline.ideal_time(extent, blocks, sweep) - sweep
        transfer = pipeline.transfer_time(extent, blocks, message)
        return self._computation.sweep(sweep, waiting).plus(Work(transfer=transfer, steps=1.0))

    def _collective(self, item: Collective) -> Work:
        self.root(item)
        time = self.communication.collective(item.op, self.amount(item, "bytes"), item.comm)
        return Work(transfer=time, steps=1.0)


def prepare(
    signature: Signature,
    placement: Placement,
    parameters: Parameters,
    params: Mapping[str, Value],
    overlap: str | None = None,
) -> Model:
    """Evaluate the names of a signature and make the model.

    Parameters
    ----------
    signature, placement, parameters
        Program, where it runs, machine.
    params : mapping of str to value
        A value for every parameter of the signature.
    overlap : str, optional
        Of all loops, instead of what they and the machine profile say.
    """
    values, extent = grid.names(signature, placement.processes, placement.threads, params)
    return Model(signature, placement, parameters, values, extent, overlap)


def _is_one(value: Value) -> bool:
    return bool(np.all(value == 1))
