"""What the loops and tasks of a program cost on the cores of a placement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from popmodel.expressions.elementary import Value, maximum
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.placement import Placement
from popmodel.model.run.work import Work
from popmodel.model.terms import (
    compute,
    critical,
    false_sharing,
    memory,
    openmp,
    schedule,
    task,
)
from popmodel.values import dataclass

MEMORY_LEVEL = "MEM"

# how a signature calls the combinations of `terms.compute.loop_time`
_OVERLAP = {"sum": "none", "ecm": "ecm", "roofline": "full"}


@dataclass(frozen=True)
class Counts:
    """What an innermost iteration does, as numbers.

    Attributes
    ----------
    flops, loads, stores : value
        Operations, and loads and stores of 8 bytes.
    chain : value
        Cycles of the longest chain of operations that wait for each other.
    bytes : mapping of str to value
        Traffic by level, bytes.
    instructions : value or None
        Instructions; None where nobody counted them.
    mode : {'sum', 'ecm', 'roofline'} or None
        Overlap in this loop; None is as the machine profile says.
    seconds : value or None
        Measured time of the iteration, s, in place of what follows from the amounts.
    """

    flops: Value = 0.0
    loads: Value = 0.0
    stores: Value = 0.0
    chain: Value = 0.0
    bytes: Mapping[str, Value] = field(default_factory=dict)
    instructions: Value | None = None
    mode: str | None = None
    seconds: Value | None = None

    def total(self, iterations: Value) -> Work:
        """Return the amounts, not the times, of some iterations."""
        counted = None if self.instructions is None else iterations * self.instructions
        return Work(
            flops=iterations * self.flops,
            memory_bytes=iterations * self.bytes.get(MEMORY_LEVEL, 0.0),
            instructions=counted,
        )


@dataclass(frozen=True)
class Schedule:
    """How the iterations of a loop are handed out.

    Attributes
    ----------
    kind : {'static', 'dynamic', 'guided'}
        As in OpenMP.
    chunk : value or None
        Iterations of a chunk; None is one block per thread if static, else 1.
    spread : value
        Coefficient of variation of the cost of an iteration.
    """

    kind: str = "static"
    chunk: Value | None = None
    spread: Value = 0.0


@dataclass(frozen=True)
class Section:
    """A critical section: entries of a thread, and the time of one without its lock, s."""

    entries: Value
    seconds: Value


@dataclass(frozen=True)
class Writes:
    """Writes to shared lines: how many by a process, bytes of an element, elements together."""

    count: Value
    bytes: Value
    chunk: Value


@dataclass(frozen=True)
class Computation:
    """Cores that execute loops.

    Attributes
    ----------
    parameters : Parameters
        The machine.
    placement : Placement
        Processes, threads, nodes.
    overlap : {'none', 'ecm', 'full'} or None
        How all loops overlap arithmetic and transfers; None is as loops and machine say.
    threads : value or None
        T in the formulas, a traced number where they are wanted; None is that of the placement.
    """

    parameters: Parameters
    placement: Placement
    overlap: str | None = None
    threads: Value | None = None

    @property
    def _team(self) -> Value:
        return self.placement.threads if self.threads is None else self.threads

    def serial(self, trip: Value, counts: Counts) -> Work:
        """Return the work of a loop that the master of every process executes alone."""
        time, frequency = self._one_thread(counts, trip)
        return Work(serial=time, serial_cycles=time * frequency).plus(counts.total(trip))

    def parallel(
        self,
        trip: Value,
        inner: Value,
        counts: Counts,
        plan: Schedule,
        constructs: Mapping[str, Value],
        section: Section | None = None,
        writes: Writes | None = None,
    ) -> Work:
        """Return the work of a loop that the threads share.

        Parameters
        ----------
        trip, inner : value
            Iterations that are shared, and innermost iterations of each.
        counts : Counts
            What an innermost iteration does.
        plan : Schedule
            How iterations are handed out.
        constructs : mapping of str to value
            How often each OpenMP construct is entered.
        section : Section, optional
            Critical section that the threads enter.
        writes : Writes, optional
            Writes to cache lines that they share.
        """
        threads = self.placement.threads
        iterations = trip * inner
        busy = self.placement.per_node * threads
        frequency = self.parameters.frequency(busy)
        share = self._loop(counts, iterations / self._team, busy, frequency)
        fetching: Value = 0.0
        if threads == 1 and plan.kind == "static":
            busiest = share  # no other to wait for, even if the average block has a part of a trip
        elif plan.kind == "static":
            stretch = 1 + openmp.static_stretch(trip, self._team, plan.chunk, plan.spread)
            busiest = self._loop(counts, iterations / self._team, busy, frequency, stretch)
        else:
            busiest, fetching = self._scheduled(plan, trip, share)
        inside, queueing = self._critical(section, share)
        single_thread, _ = self._one_thread(counts, iterations)
        entered = {
            construct: count * self.parameters.overhead(construct, threads)
            for construct, count in constructs.items()
        }
        waiting = sum(
            time for construct, time in entered.items() if construct in openmp.SYNCHRONISING
        )
        more = inside + self._false_sharing(writes)
        return Work(
            share=share + more,
            stretched=busiest + more,
            overhead=sum(entered.values()) + fetching + queueing,
            synchronising=waiting + queueing,
            single_thread=single_thread + self._team * inside,
            region_cycles=(share + more) * frequency,
            # nobody counts the instructions of what is given in seconds
            instructions=0.0 if section is None else None,
        ).plus(counts.total(iterations))

    def tasks(self, count: Value, seconds: Value, span: Value) -> Work:
        """Return the work of ``count`` tasks of some ``seconds``, ``span`` that of their chain."""
        threads = self.placement.threads
        create = self.parameters.overhead("task", threads)
        useful = count * seconds
        whole = task.task_time(count, seconds, span, self._team, create)
        working = task.task_time(count, seconds, span, self._team)
        frequency = self.parameters.frequency(self.placement.per_node * threads)
        return Work(
            share=useful / self._team,
            stretched=working,
            overhead=whole - working + self.parameters.overhead("parallel", threads),
            single_thread=useful,
            region_cycles=useful / self._team * frequency,
            instructions=None,
        )

    def copying(self, size: Value, bandwidth: Value, *, shared: bool) -> Work:
        """Return the work of copying ``size`` bytes, by the master or shared by the threads.

        A copy is a load and a store for every 8 bytes.
        """
        threads = self.placement.threads if shared else 1
        frequency = self.parameters.frequency(self.placement.per_node * threads)
        time = size / bandwidth
        instructions = size / 4
        if not shared:
            return Work(serial=time, serial_cycles=time * frequency, instructions=instructions)
        share = time / self._team
        return Work(
            share=share,
            stretched=share,
            single_thread=time,
            region_cycles=share * frequency,
            instructions=instructions,
        )

    def sweep(self, seconds: Value, waiting: Value) -> Work:
        """Return the work of the master in a pipeline, and its waiting for the start."""
        frequency = self.parameters.frequency(self.placement.per_node)
        return Work(
            serial=seconds, waiting=waiting, serial_cycles=seconds * frequency, instructions=None
        )

    # -- parts of a parallel loop

    def _scheduled(self, plan: Schedule, trip: Value, share: Value) -> tuple[Value, Value]:
        """Time of the busiest thread of a loop handed out in chunks, and that of fetching them."""
        team = self._team
        law = schedule.dynamic_time if plan.kind == "dynamic" else schedule.guided_time
        fetch = self.parameters.overhead(f"{plan.kind}_chunk", self.placement.threads)
        iteration = share * team / trip
        size = 1.0 if plan.chunk is None else plan.chunk
        busiest = law(trip, iteration, team, size, spread=plan.spread)
        whole = law(trip, iteration, team, size, spread=plan.spread, overhead=fetch)
        return busiest, whole - busiest

    def _critical(self, section: Section | None, share: Value) -> tuple[Value, Value]:
        """Time of a thread inside its critical sections, and waiting for them."""
        if section is None or _is_zero(section.entries):
            return 0.0, 0.0
        threads = self.placement.threads
        entries, seconds = section.entries, section.seconds
        inside = seconds + self.parameters.overhead("critical", 1)
        round_ = critical.random_round(threads, share / entries, inside)
        return entries * seconds, entries * (round_ - seconds) - share

    def _false_sharing(self, writes: Writes | None) -> Value:
        """Time of a thread until lines that others wrote to have come over."""
        threads = self.placement.threads
        if writes is None or threads == 1:
            return 0.0
        profile = self.parameters.profile
        line = profile.document.get("memory", {}).get("line")
        if line is None:
            raise profile.missing("memory.line")
        is_far = self.placement.sockets_spanned > 1
        return false_sharing.false_sharing_time(
            writes.count,
            self._team,
            writes.chunk,
            maximum(line / writes.bytes, 1.0),
            self.parameters.get(f"memory.line_transfer.{'far' if is_far else 'near'}"),
            self.parameters.get("memory.kappa_fs"),
        )

    # -- loops

    def _one_thread(self, counts: Counts, iterations: Value) -> tuple[Value, Value]:
        """Time of a loop on the master of every process while other threads idle; the clock."""
        busy = self.placement.per_node
        frequency = self.parameters.frequency(busy)
        return self._loop(counts, iterations, busy, frequency), frequency

    def _loop(
        self,
        counts: Counts,
        iterations: Value,
        busy: int,
        frequency: Value,
        stretch: Value = 1,
    ) -> Value:
        """Time of a core for ``stretch`` times the average iterations of a core."""
        if counts.seconds is not None:
            return iterations * stretch * counts.seconds
        core = compute.core_time(
            iterations,
            arithmetic_cycles=maximum(
                self._cycles(counts.flops, "core.flop_per_cycle"), counts.chain
            ),
            data_cycles=maximum(
                self._cycles(counts.loads, "core.load_per_cycle"),
                self._cycles(counts.stores, "core.store_per_cycle"),
            ),
            overhead_cycles=self._loop_cycles(),
            frequency=frequency,
        ).scaled(stretch)
        caches: Value = 0.0
        for level, traffic in counts.bytes.items():
            if level != MEMORY_LEVEL:
                rate = self.parameters.get(f"memory.cache_bw.{level}")
                caches = caches + iterations * stretch * traffic / rate
        traffic = iterations * counts.bytes.get(MEMORY_LEVEL, 0.0)
        overlap = self._overlap(counts.mode)
        if _is_zero(traffic):  # a machine whose memory is unknown will do
            return compute.loop_time(core, caches, 0.0, overlap)
        masters_only = busy == self.placement.per_node
        active = self.placement.active_serial if masters_only else self.placement.active
        transfer = memory.transfer_time(
            traffic,
            traffic * stretch,
            active,
            self.parameters.bandwidth(1),
            self.parameters.bandwidth(active),
        )
        return compute.loop_time(core, caches, transfer, overlap)

    def _overlap(self, mode: str | None) -> str:
        if self.overlap is not None:
            return self.overlap
        return self.parameters.profile.overlap if mode is None else _OVERLAP[mode]

    def _cycles(self, operations: Value, rate: str) -> Value:
        return 0.0 if _is_zero(operations) else operations / self.parameters.get(rate)

    def _loop_cycles(self) -> Value:
        cycles = self.parameters.optional("core.loop_cycles")
        return 0.0 if cycles is None else cycles


def _is_zero(value: Value) -> bool:
    return not np.any(value)
