"""What computes: loops of the master, loops and tasks of the threads; and repeated bodies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from popmodel.base.expressions import parse
from popmodel.base.expressions.elementary import Value, maximum
from popmodel.base.values import dataclass
from popmodel.model.kinds.costs import ItemCosts
from popmodel.model.kinds.item import (
    Amount,
    Entry,
    Further,
    Item,
    ItemTable,
    listed,
    many,
    quantity,
    symbol,
)
from popmodel.model.kinds.spread import ItemSpread, Varied
from popmodel.model.run.context import ModelPoint
from popmodel.model.run.work import RunWork
from popmodel.model.signature.keys import POSITIVE
from popmodel.model.signature.reading import GrammarReading, Path
from popmodel.model.terms import openmp
from popmodel.model.terms.openmp import (
    dynamic_time,
    false_sharing_time,
    guided_time,
    random_round,
    task_time,
)

# A body that is repeated.


LEAST_STEPS = 20
"""Iterations of a loop that say at least how long the others take."""


def _body(reading: GrammarReading, table: Mapping[str, Any], where: Path) -> tuple[Item, ...]:
    # [[program.body]] stands beside loop, an inline body inside it
    beside = where if where in reading.lines else (*where[:-2], "body")
    return reading.body(table["body"], beside)


@dataclass(frozen=True)
class LoopItem(Item):
    """A body that is executed ``count`` times."""

    kind: ClassVar[str] = "loop"
    further: ClassVar[Further] = {"count": {"constant": POSITIVE}, "body": {"read": _body}}

    count: Amount
    body: tuple[Item, ...]

    @property
    def inside(self) -> tuple[Item, ...]:
        return self.body

    def around(self, inside: tuple[Item, ...]) -> LoopItem:
        return replace(self, body=inside)

    def lighter(self, part: float, point: ModelPoint) -> Self:  # noqa: ARG002
        least = min(round(self.count), LEAST_STEPS)
        count = max(round(part * self.count), least, 1)
        return self if count == self.count else replace(self, count=count)

    @property
    def repeats(self) -> Amount:
        return self.count

    @staticmethod
    def sentence(entry: Entry) -> str:
        if entry["count"]["formula"] == "1":
            return "once:"
        return f"repeat {symbol(entry['count'])} times:"


# A loop whose iterations the threads of a process share.


_INSTEAD = {
    "thread_imbalance": ("schedule", "chunk", "iteration_cv"),
    "overhead": ("constructs",),
}
"""What was measured, and the keys that it follows from otherwise."""


@dataclass(frozen=True)
class Critical(ItemTable):
    """A section that one thread at a time executes: entries of each thread, seconds of each."""

    kind: ClassVar[str] = "critical"

    entries: Amount
    seconds: Amount

    def times(self, point: ModelPoint, share: Value) -> tuple[Value, Value]:
        """Return the time of a thread inside, and waiting for it, beside ``share`` outside, s."""
        if not np.any(self.entries):
            return 0.0, 0.0
        threads = point.placement.threads
        inside = self.seconds + point.parameters.overhead("critical", 1)
        round_ = random_round(threads, share / self.entries, inside)
        return self.entries * self.seconds, self.entries * (round_ - self.seconds) - share


@dataclass(frozen=True)
class SharedWrites(ItemTable):
    """Writes of threads to elements that lie so near to each other that they share cache lines."""

    kind: ClassVar[str] = "shared_writes"

    count: Amount
    bytes: Amount
    chunk: Amount

    def time(self, point: ModelPoint) -> Value:
        """Return the time of a thread until lines that others wrote to have come over, s."""
        if point.placement.threads == 1:
            return 0.0
        parameters = point.parameters
        transfer = parameters.profile.of_lines("line_transfer", point.placement.distance)
        return false_sharing_time(
            self.count,
            point.team,
            self.chunk,
            maximum(parameters.get("memory.line") / self.bytes, 1.0),
            parameters.get(transfer),
            parameters.get("memory.kappa_fs"),
        )


@dataclass(frozen=True)
class Parallel(Varied):
    """A loop whose ``trip`` iterations are shared by the threads, ``inner`` iterations in each."""

    kind: ClassVar[str] = "parallel"
    further: ClassVar[Further] = {
        "schedule": {"choices": ("static", "dynamic", "guided")},
        "constructs": {"names": "be a table of counts"},
        "critical": {"table": Critical},
        "shared_writes": {"table": SharedWrites},
    }
    parts: ClassVar[Mapping[str, type[ItemTable]]] = {"costs": ItemCosts, "spread": ItemSpread}
    remedies: ClassVar[Mapping[str, tuple[str, str]]] = {
        "critical": ("no critical section in {}", "The threads do not wait for each other's turn."),
        "lines": ("no false sharing in {}", "Threads write to different cache lines."),
        "dynamic": ("schedule(dynamic) for {}", "Free threads fetch iterations one by one."),
        "balance": ("equal shares of threads in {}", "No thread has more to do than the others."),
        "guided": ("schedule(guided) for {}", "Free threads fetch shrinking chunks."),
    }

    trip: Amount
    inner: Amount
    costs: ItemCosts
    constructs: Mapping[str, Amount]
    schedule: str = "static"
    chunk: Amount | None = None
    iteration_cv: Amount = 0.0
    critical: Critical | None = None
    shared_writes: SharedWrites | None = None
    thread_imbalance: Amount | None = None
    overhead: Amount | None = None
    synchronisation: Amount = 0.0
    spread: ItemSpread = ItemSpread()

    @classmethod
    def read(cls, reading: GrammarReading, table: Mapping[str, Any], where: Path) -> Self:
        """Read the keys; beside what was measured is no place for what it follows from."""
        for measured, instead in _INSTEAD.items():
            for name in instead:
                if measured in table and name in table:
                    raise reading.error(
                        (*where, name),
                        f"{where[-1]} has {measured}, which was measured, and {name}",
                        f"remove {measured}, or remove {name}",
                    )
        return super().read(
            reading, {"constructs": {}, **table} if "overhead" in table else table, where
        )

    def work(self, point: ModelPoint) -> RunWork:
        threads = point.placement.threads
        parameters = point.parameters
        iterations = self.trip * self.inner
        busy = point.placement.per_node * threads
        frequency = parameters.frequency(busy)
        share = self.costs.time(point, iterations / point.team, busy, frequency)
        fetching: Value = 0.0
        if threads == 1 and self.schedule == "static":
            busiest = share  # no other to wait for, even if the average block has a part of a trip
        elif self.thread_imbalance is not None:
            stretch = 1 + self.thread_imbalance
            busiest = self.costs.time(point, iterations / point.team, busy, frequency, stretch)
        elif self.schedule == "static":
            stretch = 1 + openmp.static_stretch(
                self.trip, point.team, self.chunk, self.iteration_cv
            )
            busiest = self.costs.time(point, iterations / point.team, busy, frequency, stretch)
        else:
            busiest, fetching = self._in_chunks(point, share)
        inside: Value = 0.0
        queueing: Value = 0.0
        if self.critical is not None:
            inside, queueing = self.critical.times(point, share)
        single_thread, _ = self.costs.alone(point, iterations, "master")
        entered = {
            construct: count * parameters.overhead(construct, threads)
            for construct, count in self.constructs.items()
        }
        waiting = sum(
            time for construct, time in entered.items() if construct in openmp.SYNCHRONISING
        )
        measured = self.measured_overhead
        more = inside + self.costs.taking_over(point, iterations / point.team)
        if self.shared_writes is not None:
            more = more + self.shared_writes.time(point)
        return RunWork(
            share=share + more,
            stretched=busiest + more,
            overhead=sum(entered.values()) + measured + fetching + queueing,
            synchronising=waiting + self.synchronisation * measured + queueing,
            awaiting=self.synchronisation * (busiest - share),
            single_thread=single_thread + point.team * inside,
            region_cycles=(share + more) * frequency,
            # nobody counts the instructions of what is given in seconds
            instructions=0.0 if self.critical is None else None,
        ).plus(self.costs.total(iterations))

    @property
    def measured_overhead(self) -> Amount:
        return 0.0 if self.overhead is None else self.overhead

    def crowding(self, point: ModelPoint) -> Value:
        busy = point.placement.per_node * point.placement.threads
        return self.costs.crowding(point, self.trip * self.inner / point.team, busy)

    def _in_chunks(self, point: ModelPoint, share: Value) -> tuple[Value, Value]:
        """Time of the busiest thread of a loop handed out in chunks, and that of fetching them."""
        law = dynamic_time if self.schedule == "dynamic" else guided_time
        fetch = point.parameters.overhead(f"{self.schedule}_chunk", point.placement.threads)
        chunk = 1.0 if self.chunk is None else self.chunk
        given = (self.trip, share * point.team / self.trip, point.team, chunk)
        busiest = law(*given, spread=self.iteration_cv)
        return busiest, law(*given, spread=self.iteration_cv, overhead=fetch) - busiest

    def faster(self, threads: int) -> Iterator[tuple[str, Item]]:
        if self.critical is not None:
            yield "critical", replace(self, critical=None)
        if self.shared_writes is not None:
            yield "lines", replace(self, shared_writes=None)
        if self.thread_imbalance is not None and threads > 1:
            yield "balance", replace(self, thread_imbalance=parse("0"))
        elif self.schedule == "static" and threads > 1:
            for kind in ("dynamic", "guided"):
                yield kind, replace(self, schedule=kind, chunk=None)

    @staticmethod
    def sentence(entry: Entry) -> str:
        text = f"the threads share {many(entry['trip'], 'iteration')}"
        if entry["inner"]["formula"] != "1":
            text += f" of {many(entry['inner'], 'inner iteration')}"
        text += f", {entry['schedule']}"
        if entry["chunk"] is not None:
            text += f" in chunks of {symbol(entry['chunk'])}"
        if entry["iteration_cv"]["formula"] != "0":
            varies = symbol(entry["iteration_cv"])
            text += f", the cost of an iteration varies by {varies} (cv)"
        if entry["thread_imbalance"] is not None:
            more = symbol(entry["thread_imbalance"])
            text += f", the busiest thread has {more} of the mean more to do, as measured"
        text += f"; {ItemCosts.sentence(entry)}"
        if entry["overhead"] is not None:
            text += f"; plus {quantity(entry['overhead'])} of OpenMP, as measured"
        if entry["synchronisation"]["formula"] != "0":
            part = symbol(entry["synchronisation"])
            text += f"; a share of {part} of what threads idle is in barriers and locks"
        paid = [
            name if number["formula"] == "1" else f"{symbol(number)} times {name}"
            for name, number in entry["constructs"].items()
        ]
        if paid:
            text += f"; plus the overhead of {listed(paid)}"
        if entry["critical"] is not None:
            section = entry["critical"]
            text += (
                f"; every thread enters a critical section {symbol(section['entries'])} "
                f"times, {quantity(section['seconds'])} each"
            )
        if entry["shared_writes"] is not None:
            writes = entry["shared_writes"]
            text += (
                f"; {many(writes['count'], 'write')} to elements of "
                f"{quantity(writes['bytes'])} in cache lines shared by threads, "
                f"{symbol(writes['chunk'])} adjacent elements by the same thread"
            )
        return text + ItemSpread.sentence(entry)


# A loop that only the master thread of each process executes.


@dataclass(frozen=True)
class Serial(Varied):
    """A loop of ``trip`` iterations that only the master thread executes."""

    kind: ClassVar[str] = "serial"
    further: ClassVar[Further] = {"trip": {"constant": POSITIVE}}
    parts: ClassVar[Mapping[str, type[ItemTable]]] = {"costs": ItemCosts, "spread": ItemSpread}
    remedies: ClassVar[Mapping[str, tuple[str, str]]] = {
        "share": ("parallelise {}", "The threads share the serial part as a parallel loop.")
    }

    trip: Amount
    costs: ItemCosts
    spread: ItemSpread = ItemSpread()

    def at(self, point: ModelPoint, of: str, inside: str = "") -> Self:
        """Return the loop with numbers; its data are not divided among the threads."""
        return super().at(replace(point, master_alone=True), of, inside)

    def work(self, point: ModelPoint) -> RunWork:
        own, frequency = self.costs.alone(point, self.trip)
        stated = 0.0 if self.costs.seconds is None else own
        time = own + self.costs.taking_over(point, self.trip)
        one = RunWork(serial=time, stated=stated, serial_cycles=time * frequency)
        return one.plus(self.costs.total(self.trip))

    def crowding(self, point: ModelPoint) -> Value:
        return self.costs.crowding(point, self.trip, point.placement.per_node)

    def faster(self, threads: int) -> Iterator[tuple[str, Item]]:
        if threads > 1:
            one, nothing = parse("1"), parse("0")
            yield (
                "share",
                Parallel(
                    self.name,
                    self.every,
                    self.trip,
                    one,
                    self.costs,
                    {"parallel_for": one},
                    iteration_cv=nothing,
                    spread=self.spread,
                ),
            )

    @staticmethod
    def sentence(entry: Entry) -> str:
        iterations = many(entry["trip"], "iteration")
        text = f"the master thread executes {iterations}; {ItemCosts.sentence(entry)}"
        return text + ItemSpread.sentence(entry)


# Explicit OpenMP tasks.


@dataclass(frozen=True)
class Task(Item):
    """Explicit tasks in a parallel region; independent if ``span`` is None."""

    kind: ClassVar[str] = "task"

    count: Amount
    seconds: Amount
    span: Amount | None = None

    def work(self, point: ModelPoint) -> RunWork:
        threads, parameters = point.placement.threads, point.parameters
        span = self.seconds if self.span is None else self.span
        create = parameters.overhead("task", threads)
        useful = self.count * self.seconds
        whole = task_time(self.count, self.seconds, span, point.team, create)
        working = task_time(self.count, self.seconds, span, point.team)
        frequency = parameters.frequency(point.placement.per_node * threads)
        return RunWork(
            share=useful / point.team,
            stretched=working,
            overhead=whole - working + parameters.overhead("parallel", threads),
            single_thread=useful,
            region_cycles=useful / point.team * frequency,
            instructions=None,
        )

    @staticmethod
    def sentence(entry: Entry) -> str:
        text = f"{many(entry['count'], 'task')} of {quantity(entry['seconds'])} each, "
        if entry["span"] is None:
            return text + "independent"
        return text + f"longest chain of dependent tasks {quantity(entry['span'])}"
