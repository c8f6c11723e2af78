"""The performance model: walks the region tree of a program and adds up its terms.

The walk uses the same functions for numbers, arrays of draws and SymPy symbols, so one pass
over `Model.work` gives a prediction with its intervals, and `symbolic_work` the formulas behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.errors import UsageError
from popmodel.expressions import Expression
from popmodel.expressions.elementary import Value, is_symbolic, maximum
from popmodel.machine.profile import Profile
from popmodel.model import grid
from popmodel.model.parameters import Parameters
from popmodel.model.placement import Placement
from popmodel.model.program import (
    Collective,
    Costs,
    Item,
    Loop,
    Parallel,
    PointToPoint,
    Serial,
    Shift,
)
from popmodel.model.signature import Signature
from popmodel.model.terms import compute, memory, message, openmp
from popmodel.model.work import Work
from popmodel.network import collectives
from popmodel.network import point_to_point as p2p
from popmodel.units import format_size

if TYPE_CHECKING:
    import sympy

MEMORY_LEVEL = "MEM"
_REDUCING = ("reduce", "allreduce")


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
            topology = self.parameters.profile.topology
            sharing = topology.processes_per_last_level_cache(
                self.placement.per_node, self.placement.threads
            )
            capacity = memory.cache_capacity(
                self.parameters.get("memory.kappa"), topology.last_level_cache.bytes, sharing
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
            once = self._item(item)
            every = self.value(item.every)
            total = total.plus(once if _is_one(every) else once.times(1 / every))
        return total

    def _item(self, item: Item) -> Work:
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
            case Collective():
                return self._collective(item)

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
        trip = self.value(item.trip)
        iterations = trip * self.value(item.inner)
        chunk = None if item.chunk is None else self.value(item.chunk)
        stretch = 1 + openmp.static_stretch(trip, threads, chunk)
        busy = self.placement.per_node * threads
        frequency = self.parameters.frequency(busy)
        share, busiest = (
            self._loop(item.costs, iterations / threads, busy, frequency, factor)
            for factor in (1, stretch)
        )
        single_thread, _ = self._one_thread(item.costs, iterations)
        entered = {
            construct: self.value(count) * self.parameters.overhead(construct, threads)
            for construct, count in item.constructs.items()
        }
        return Work(
            share=share,
            stretched=busiest,
            overhead=sum(entered.values()),
            synchronising=sum(
                time for construct, time in entered.items() if construct in openmp.SYNCHRONISING
            ),
            single_thread=single_thread,
            region_cycles=share * frequency,
            flops=iterations * self.value(item.costs.flops),
            memory_bytes=iterations * self._memory_bytes(item.costs),
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

    def _shift(self, item: Shift) -> Work:
        assert self.signature.grid is not None
        targets = message.grid_neighbours(
            self.extent,
            item.dim,
            self.whole(item.by),
            periodic=self.signature.grid.periodic[item.dim],
        )
        size = self.value(item.bytes)
        one = self._exchange(size, message.traffic(targets, self.placement.per_node))
        return Work(transfer=p2p.exchange(one, one), steps=1.0)

    def _point_to_point(self, item: PointToPoint) -> Work:
        ranks = np.arange(self.placement.processes)
        values = {**self.values, "rank": ranks.astype(np.float64)}
        target = np.broadcast_to(self._evaluate(item.to, values), ranks.shape)
        where = message.traffic(np.rint(target).astype(np.int64), self.placement.per_node)
        size = self.value(item.bytes)
        one = self._exchange(size, where)
        if item.mode == "sendrecv":
            return Work(transfer=p2p.exchange(one, one), steps=1.0)
        tier = "inter" if where.flows else "intra"
        threshold = self.parameters.get(f"net.{tier}.eager_threshold")
        time = p2p.ring_of_blocking_sends(one, where.chain, size <= threshold)
        return Work(transfer=time, steps=1.0)

    def _exchange(self, size: Value, where: message.Traffic) -> Value:
        within = self._within(where.messages) if where.within else None
        between = self._between(where.flows) if where.flows else None
        return message.exchange_time(size, where, within, between)

    def _collective(self, item: Collective) -> Work:
        processes, per_node = self.placement.processes, self.placement.per_node
        if processes == 1:
            return Work(steps=1.0)
        size = self.value(item.bytes)
        within = p2p.by_size(size, self._within(per_node)) if per_node > 1 else 0.0
        between = p2p.by_size(size, self._between(per_node)) if self.placement.nodes > 1 else within
        reduction: Value = 0.0
        if item.op in _REDUCING:
            reduction = size * self.parameters.get("net.reduce_gamma")
        algorithm = collectives.DEFAULT_ALGORITHM[item.op]
        time = collectives.over_nodes(
            item.op, algorithm, processes, per_node, within, between, reduction
        )
        return Work(transfer=time, steps=1.0)

    def _within(self, flows: int) -> list[p2p.SizeClass]:
        """Messages inside a node, of which ``flows`` at once."""
        classes = self.parameters.size_classes("intra")
        capacity = self.parameters.optional("net.shm_k") if flows > 1 else None
        if capacity is None:
            return classes
        crowding = maximum(1.0, flows / capacity)
        return [p2p.SizeClass(c.upto, c.alpha, c.beta * crowding) for c in classes]

    def _between(self, flows: int) -> list[p2p.SizeClass]:
        """Messages between nodes, of which ``flows`` leave one node at once."""
        classes = self.parameters.size_classes("inter")
        gap = self.parameters.optional("net.nic_G") if flows > 1 else None
        return classes if gap is None else p2p.contended(classes, flows, gap)


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
