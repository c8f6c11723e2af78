"""The performance model: walks the region tree of a program and adds up its terms.

The walk uses the same functions for numbers, arrays of draws and SymPy symbols, so one pass
over `Model.work` gives a prediction with its intervals, and `symbolic_work` the formulas behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from popmodel.errors import UsageError
from popmodel.expressions import Expression
from popmodel.expressions.elementary import Value, is_symbolic, maximum
from popmodel.machine.profile import Profile
from popmodel.model import grid
from popmodel.model.communication import Communication
from popmodel.model.parameters import Parameters
from popmodel.model.placement import Placement
from popmodel.model.program import (
    Collective,
    Costs,
    Halo,
    Item,
    Loop,
    Parallel,
    Pipeline,
    PointToPoint,
    Serial,
    Shift,
    Task,
)
from popmodel.model.signature import Signature
from popmodel.model.terms import compute, critical, halo, memory, openmp, pipeline, schedule, task
from popmodel.model.work import Work
from popmodel.units import format_size

if TYPE_CHECKING:
    import sympy

MEMORY_LEVEL = "MEM"


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
    overlap : {'none', 'ecm', 'full'}
        How the core overlaps arithmetic and transfers.
    """

    signature: Signature
    placement: Placement
    parameters: Parameters
    values: Mapping[str, Value]
    extent: tuple[int, ...]
    overlap: str

    def work(self) -> Work:
        """Add up the whole program for an average process."""
        return self._sequence(self.signature.program)

    def value(self, expression: Expression) -> Value:
        """Evaluate a formula of the signature."""
        return self._evaluate(expression, self.values)

    def whole(self, expression: Expression) -> int:
        """Evaluate a formula that must give a whole number, the same in all draws."""
        value = self.value(expression)
        numbers = np.unique(np.asarray(value, dtype=np.float64))
        if numbers.size != 1 or numbers[0] != round(float(numbers[0])):
            raise UsageError(
                f"{self.signature.name}: {expression.text!r} should give a whole number, "
                f"not {numbers[0]:g}"
            )
        return int(numbers[0])

    def _evaluate(self, expression: Expression, values: Mapping[str, Value]) -> Value:
        functions = self._functions()
        inputs = [values[name] for name in expression.names]
        # a function takes values from the machine, which are symbols when a formula is wanted
        machine_enters = self.parameters.symbolic and bool(expression.calls & functions.keys())
        if machine_enters or is_symbolic(*inputs):
            return expression.sympy(values, functions)
        return expression.evaluate(values, functions)

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
        if is_symbolic(working_set, capacity):
            return
        fits = np.ravel(working_set <= capacity)
        if fits.any() and not fits.all():
            size = format_size(float(np.ravel(working_set)[0]), digits=3)
            self.parameters.remarks.add(
                f"it is not certain that a working set of {size} stays in the cache: it does in "
                f"{100 * fits[1:].mean():.0f} % of the draws, and intervals span both cases"
            )

    # -- the tree

    def _sequence(self, body: tuple[Item, ...]) -> Work:
        total = Work()
        for item in body:
            once = self.work_of(item)
            every = self.value(item.every)
            total = total.plus(once if _is_one(every) else once.times(1 / every))
        return total

    def work_of(self, item: Item) -> Work:
        """Give one execution of an item by an average process."""
        match item:
            case Loop():
                return self._sequence(item.body).times(self.value(item.count))
            case Serial():
                return self._serial(item)
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

    def _serial(self, item: Serial) -> Work:
        trip = self.value(item.trip)
        time, frequency = self._one_thread(item.costs, trip)
        return Work(
            serial=time,
            serial_cycles=time * frequency,
            flops=trip * self.value(item.costs.flops),
            memory_bytes=trip * self._memory_bytes(item.costs),
        )

    def _parallel(self, item: Parallel) -> Work:
        threads = self.placement.threads
        team = self.values["T"]  # the same, as a symbol where a formula is wanted
        trip = self.value(item.trip)
        iterations = trip * self.value(item.inner)
        busy = self.placement.per_node * threads
        frequency = self.parameters.frequency(busy)
        chunk = None if item.chunk is None else self.value(item.chunk)
        share = self._loop(item.costs, iterations / team, busy, frequency, 1)
        fetching: Value = 0.0
        if item.schedule == "static":
            stretch = 1 + openmp.static_stretch(trip, team, chunk)
            busiest = self._loop(item.costs, iterations / team, busy, frequency, stretch)
        else:
            busiest, fetching = self._scheduled(item.schedule, trip, share, chunk)
        inside, queueing = self._critical(item, share)
        single_thread, _ = self._one_thread(item.costs, iterations)
        entered = {
            construct: self.value(count) * self.parameters.overhead(construct, threads)
            for construct, count in item.constructs.items()
        }
        waiting = sum(
            time for construct, time in entered.items() if construct in openmp.SYNCHRONISING
        )
        return Work(
            share=share + inside,
            stretched=busiest + inside,
            overhead=sum(entered.values()) + fetching + queueing,
            synchronising=waiting + queueing,
            single_thread=single_thread + team * inside,
            region_cycles=(share + inside) * frequency,
            flops=iterations * self.value(item.costs.flops),
            memory_bytes=iterations * self._memory_bytes(item.costs),
        )

    def _scheduled(
        self, kind: str, trip: Value, share: Value, chunk: Value | None
    ) -> tuple[Value, Value]:
        """Time of the busiest thread of a loop handed out in chunks, and that of fetching them."""
        team = self.values["T"]
        law = schedule.dynamic_time if kind == "dynamic" else schedule.guided_time
        fetch = self.parameters.overhead(f"{kind}_chunk", self.placement.threads)
        iteration = share * team / trip
        size = 1.0 if chunk is None else chunk
        busiest = law(trip, iteration, team, size)
        return busiest, law(trip, iteration, team, size, overhead=fetch) - busiest

    def _critical(self, item: Parallel, share: Value) -> tuple[Value, Value]:
        """Time of a thread inside its critical sections, and waiting for them."""
        if item.critical is None:
            return 0.0, 0.0
        threads = self.placement.threads
        entries, seconds = self.value(item.critical.entries), self.value(item.critical.seconds)
        if _is_zero(entries):
            return 0.0, 0.0
        inside = seconds + self.parameters.overhead("critical", 1)
        round_ = critical.random_round(threads, share / entries, inside)
        return entries * seconds, entries * (round_ - seconds) - share

    def _task(self, item: Task) -> Work:
        threads = self.placement.threads
        team = self.values["T"]
        count, seconds = self.value(item.count), self.value(item.seconds)
        span = seconds if item.span is None else self.value(item.span)
        create = self.parameters.overhead("task", threads)
        useful = count * seconds
        whole = task.task_time(count, seconds, span, team, create)
        working = task.task_time(count, seconds, span, team)
        frequency = self.parameters.frequency(self.placement.per_node * threads)
        return Work(
            share=useful / team,
            stretched=working,
            overhead=whole - working + self.parameters.overhead("parallel", threads),
            single_thread=useful,
            region_cycles=useful / team * frequency,
        )

    def _one_thread(self, costs: Costs, iterations: Value) -> tuple[Value, Value]:
        """Time of a loop on the master of every process while other threads idle; the clock."""
        busy = self.placement.per_node
        frequency = self.parameters.frequency(busy)
        return self._loop(costs, iterations, busy, frequency, 1), frequency

    def _loop(
        self, costs: Costs, iterations: Value, busy: int, frequency: Value, stretch: Value
    ) -> Value:
        """Time of a core for ``stretch`` times the average iterations of a core."""
        core = compute.core_time(
            iterations,
            arithmetic_cycles=self._cycles(costs.flops, "core.flop_per_cycle"),
            data_cycles=maximum(
                self._cycles(costs.loads, "core.load_per_cycle"),
                self._cycles(costs.stores, "core.store_per_cycle"),
            ),
            overhead_cycles=self._loop_cycles(),
            frequency=frequency,
        ).scaled(stretch)
        caches: Value = 0.0
        for level, traffic in costs.bytes.items():
            if level != MEMORY_LEVEL:
                rate = self.parameters.get(f"memory.cache_bw.{level}")
                caches = caches + iterations * stretch * self.value(traffic) / rate
        traffic = iterations * self._memory_bytes(costs)
        if _is_zero(traffic):  # a machine whose memory is unknown will do
            return compute.loop_time(core, caches, 0.0, self.overlap)
        active = self.parameters.profile.topology.active_per_domain(busy)
        transfer = memory.transfer_time(
            traffic,
            traffic * stretch,
            active,
            self.parameters.bandwidth(1),
            self.parameters.bandwidth(active),
        )
        return compute.loop_time(core, caches, transfer, self.overlap)

    def _cycles(self, operations: Expression, rate: str) -> Value:
        count = self.value(operations)
        return 0.0 if _is_zero(count) else count / self.parameters.get(rate)

    def _loop_cycles(self) -> Value:
        cycles = self.parameters.optional("core.loop_cycles")
        return 0.0 if cycles is None else cycles

    def _memory_bytes(self, costs: Costs) -> Value:
        return self.value(costs.bytes[MEMORY_LEVEL]) if MEMORY_LEVEL in costs.bytes else 0.0

    # -- communication

    @property
    def communication(self) -> Communication:
        """The processes and where they are."""
        grid = self.signature.grid
        periodic = () if grid is None else grid.periodic
        return Communication(self.parameters, self.placement, self.extent, periodic)

    def _shift(self, item: Shift) -> Work:
        time = self.communication.shift(item.dim, self.whole(item.by), self.value(item.bytes))
        return Work(transfer=time, steps=1.0)

    def _point_to_point(self, item: PointToPoint) -> Work:
        time = self.communication.point_to_point(
            self.targets(item), self.value(item.bytes), item.mode
        )
        return Work(transfer=time, steps=1.0)

    def targets(self, item: PointToPoint) -> NDArray[np.int64]:
        """Give the rank that each rank sends to; one outside 0..P-1 is none."""
        ranks = np.arange(self.placement.processes)
        values = {**self.values, "rank": ranks.astype(np.float64)}
        target = np.broadcast_to(np.asarray(self._evaluate(item.to, values), float), ranks.shape)
        found: NDArray[np.int64] = np.rint(target).astype(np.int64)
        return found

    def _halo(self, item: Halo) -> Work:
        sizes = self.face_bytes(item)
        time = self.communication.halo(sizes, item.mode)
        copying: Value = 0.0
        if item.pack != "none" and self.placement.processes > 1:
            bandwidth = self.parameters.optional("memory.copy_bw")
            if bandwidth is not None:
                counts = halo.neighbours(self.extent, self.communication.periodic)
                copying = halo.packing_time(sizes, counts, bandwidth)
        exposed = time * (1 - self.value(item.overlap))
        if item.pack == "parallel":  # copying is useful work of all threads
            share = copying / self.values["T"]
            return Work(
                share=share, stretched=share, single_thread=copying, transfer=exposed, steps=1.0
            )
        return Work(serial=copying, transfer=exposed, steps=1.0)

    def face_bytes(self, item: Halo) -> list[Value]:
        """Give the bytes of the message of a halo along each dimension."""
        cells = [self.values[f"n{dim}"] for dim in range(len(self.extent))]
        return halo.face_bytes(cells, self.value(item.width), self.value(item.bytes_per_cell))

    def _pipeline(self, item: Pipeline) -> Work:
        extent = [self.extent[dim] for dim in item.dims]
        blocks, sweep = self.value(item.blocks), self.value(item.seconds)
        message = self.communication.to_neighbours(item.dims, self.value(item.bytes))
        return Work(
            serial=sweep,
            waiting=pipeline.ideal_time(extent, blocks, sweep) - sweep,
            transfer=pipeline.transfer_time(extent, blocks, message),
            steps=1.0,
        )

    def _collective(self, item: Collective) -> Work:
        time = self.communication.collective(item.op, self.value(item.bytes))
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
        Instead of what the machine profile says.
    """
    values, extent = grid.names(signature, placement.processes, placement.threads, params)
    return Model(
        signature, placement, parameters, values, extent, overlap or parameters.profile.overlap
    )


def symbolic_work(
    signature: Signature, profile: Profile, placement: Placement, params: Mapping[str, float]
) -> tuple[Work, dict[str, sympy.Symbol]]:
    """Give the work of a process as formulas of the machine's quantities.

    Parameters
    ----------
    signature, profile, placement
        Program, machine, where it runs.
    params : mapping of str to float
        Values of the parameters of the signature.

    Returns
    -------
    work : Work
        SymPy expressions.
    symbols : dict of str to sympy.Symbol
        The symbol of each quantity of the profile by its path.
    """
    import sympy

    symbols = {path: sympy.Symbol(path, positive=True) for path in profile.quantities}
    parameters = Parameters(profile, symbols.__getitem__, symbolic=True)
    return prepare(signature, placement, parameters, params).work(), symbols


def _is_zero(value: Value) -> bool:
    return not is_symbolic(value) and not np.any(value)


def _is_one(value: Value) -> bool:
    return not is_symbolic(value) and bool(np.all(value == 1))
