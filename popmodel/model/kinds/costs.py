"""What an innermost iteration of a loop does, and how long a core takes for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from popmodel.base.expressions import Expression
from popmodel.base.expressions.elementary import (
    TracedExpression,
    Value,
    choose,
    maximum,
    numbers,
    some,
)
from popmodel.base.values import dataclass
from popmodel.model.kinds.item import Amount, Entry, Further, ItemTable, many, quantity
from popmodel.model.run.context import ModelPoint
from popmodel.model.run.memory_domains import FIRST_TOUCH, Demand, demand
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.work import RunWork
from popmodel.model.signature.reading import LEVELS, GrammarReading, Path
from popmodel.model.terms import compute

MEMORY_LEVEL = "MEM"

# how a signature calls the combinations of `terms.compute.loop_time`
_OVERLAP = {"sum": "none", "ecm": "ecm", "roofline": "full"}
_ISSUE = "issue"
_MODES = (*_OVERLAP, _ISSUE)
_TOUCH_WORDS = {
    "threads": "data where the threads touched it first",
    "master": "data where the master touched it first",
    "interleaved": "data interleaved over memory domains",
}
_OVERLAP_WORDS = {
    "sum": "no overlap (sum)",
    "ecm": "arithmetic and transfers overlap partly (ecm)",
    "roofline": "arithmetic and transfers overlap (roofline)",
    _ISSUE: "transfers overlap with the issue of instructions as measured",
}


@dataclass(frozen=True)
class ItemCosts(ItemTable, among="serial"):
    """What one innermost iteration of a loop does."""

    further: ClassVar[Further] = {
        "bytes": {"names": "give a level, such as bytes.MEM"},
        "written": {"names": "give a level, such as written.L2"},
        "mode": {"choices": _MODES},
        "first_touch": {"choices": FIRST_TOUCH},
    }

    flops: Amount = 0.0
    loads: Amount = 0.0
    stores: Amount = 0.0
    # Traffic through each level, and what of it is written back there, bytes.
    bytes: Mapping[str, Value] = field(default_factory=dict)
    written: Mapping[str, Value] = field(default_factory=dict)
    chain: Amount = 0.0
    # Instructions, those of the loop's control included; None where nobody counted them.
    instructions: Amount | None = None
    # From the first operation of an iteration to the last that waits for it, cycles.
    latency: Amount = 0.0
    # Cache lines that another thread of the process wrote last and still has.
    taken_over: Amount = 0.0
    # How arithmetic and transfers overlap in this loop; None is as the machine profile says of
    # arithmetic, ``issue`` as it says of loops that take as long as their instructions.
    mode: str | None = None
    # Who touched the data first, so in whose memory domain it lies; None is as the signature says
    # of all loops.
    first_touch: str | None = None
    # Measured time of the iteration on one core whose memory is idle otherwise, s; None where it
    # follows from the counts.
    seconds: Amount | None = None
    # Where a cache keeps a part of a working set: what share of the iterations finds which of their
    # data in which cache, and what these do. Empty if all do the same.
    portions: tuple[tuple[Value, ItemCosts], ...] = ()

    @classmethod
    def read(cls, reading: GrammarReading, table: Mapping[str, Any], where: Path) -> Self:
        """Read the keys; beside a measured time is no place for what only says parts of it."""
        found = super().read(reading, table, where)
        for level in found.written.keys() - found.bytes.keys():
            raise reading.error(
                (*where, "written", level),
                f"{where[-1]} has written.{level} and no bytes.{level}",
                f"add bytes.{level}: all that moves, with what is written back",
            )
        if "latency" in table and found.instructions is None:
            raise reading.error(
                (*where, "latency"),
                f"{where[-1]} has latency and no instructions",
                "add instructions: how many iterations a core works on at a time follows from them",
            )
        if found.mode == _ISSUE and found.instructions is None:
            raise reading.error(
                (*where, "mode"),
                f"{where[-1]} has mode issue and no instructions",
                "add instructions: those that the loop takes as long as",
            )
        levels = [f"bytes.{level}" for level in found.bytes if level != MEMORY_LEVEL]
        parts = [name for name in ("chain", "latency", "mode") if name in table] + levels
        if found.seconds is not None and parts:
            raise reading.error(
                (*where, *parts[0].split(".")),
                f"{where[-1]} has seconds, the time of the whole iteration, and {parts[0]}",
                f"remove seconds, or remove {', '.join(parts)}",
            )
        return found

    @classmethod
    def field_names(cls) -> list[str]:
        return [name for name in super().field_names() if name != "portions"]

    def at(self, point: ModelPoint, of: str, inside: str = "") -> Self:
        """Return the costs with numbers for their formulas; see `ItemTable.at`."""
        traffic = (*self.bytes.values(), *self.written.values())
        fits = [one for one in traffic if isinstance(one, Expression) and "if_fits" in one.calls]
        if point.within is not None or not fits:
            return super().at(point, of, inside)
        asked: dict[object, Value] = {}
        found = super().at(replace(point, asked=asked), of, inside)
        lost = [one for one in asked.values() if _in_part(one)]
        if not lost:
            return found
        parts = list(_between(lost))
        moved = self._traffic_of(point, [within for _, within in parts], of, inside)
        portions = [
            (share, replace(found, bytes=one.bytes, written=one.written))
            for (share, _), one in zip(parts, moved, strict=True)
        ]
        return replace(found, portions=tuple(portions))

    def _traffic_of(
        self, point: ModelPoint, within: Sequence[Value], of: str, inside: str
    ) -> list[ItemCosts]:
        """Bytes and written bytes of the data at some places, see `ModelPoint.within`."""
        if any(isinstance(one, TracedExpression) for one in within):
            return [self._traffic.at(replace(point, within=one), of, inside) for one in within]
        each = np.broadcast_arrays(*(np.asarray(one, dtype=np.float64) for one in within))
        places = np.stack(each).reshape(len(within), -1)
        every = self._traffic.at(replace(point, within=places), of, inside)
        return [
            ItemCosts(bytes=_row(every.bytes, index), written=_row(every.written, index))
            for index in range(len(within))
        ]

    @cached_property
    def _traffic(self) -> ItemCosts:
        return ItemCosts(bytes=self.bytes, written=self.written)

    def total(self, iterations: Value) -> RunWork:
        """Return the amounts, not the times, of some iterations."""
        return RunWork(
            flops=iterations * self.flops,
            memory_bytes=iterations * self.bytes.get(MEMORY_LEVEL, 0.0),
            instructions=None if self.instructions is None else iterations * self.instructions,
        )

    def taking_over(self, point: ModelPoint, iterations: Value) -> Value:
        """Return the time until lines of other threads have come over, s."""
        if point.placement.threads == 1 or not some(self.taken_over):
            return 0.0
        parameters = point.parameters
        each = parameters.get(
            parameters.profile.of_lines("line_takeover", point.placement.distance)
        )
        time: Value = iterations * self.taken_over * each
        return time

    def alone(
        self, point: ModelPoint, iterations: Value, first_touch: str | None = None
    ) -> tuple[Value, Value]:
        """Return the time of the master of every process while other threads idle; the clock.

        With ``first_touch`` of another one than `time` takes: ``master`` for data of its own.
        """
        busy = point.placement.per_node
        frequency = point.parameters.frequency(busy)
        time = self.time(point, iterations, busy, frequency, first_touch=first_touch)
        return time, frequency

    def time(
        self,
        point: ModelPoint,
        iterations: Value,
        busy: int,
        frequency: Value,
        stretch: Value = 1,
        *,
        first_touch: str | None = None,
        without_others: bool = False,
    ) -> Value:
        """Return the time of a core for ``stretch`` times the average iterations of a core, s."""
        parameters, placement = point.parameters, point.placement
        traffic = iterations * self.bytes.get(MEMORY_LEVEL, 0.0)
        if not np.any(traffic):  # a machine whose memory is unknown will do
            return self._one_core(point, iterations, frequency, 0.0) * stretch
        masters_only = busy == placement.per_node
        asked = demand(
            placement,
            parameters,
            first_touch or self.first_touch or point.first_touch,
            masters_only=masters_only,
        )
        if without_others and asked.is_local:
            asked = Demand(1 if masters_only else placement.threads)
        local = traffic / parameters.bandwidth(1)
        transfers = local * asked.slowdown
        if asked.is_local and asked.served == 1:
            return self._one_core(point, iterations, frequency, transfers) * stretch
        # data in one domain may be asked for by more cores than a domain has
        active = max(1, min(asked.served, parameters.profile.topology.cores_per_domain))
        contended = traffic * (asked.served / parameters.bandwidth(active))
        if not asked.is_local:
            contended = maximum(contended, traffic * asked.connections)
        named = parameters.named
        moving = "data of a core to and from memory"
        transfers = named("t_data", transfers, "s", f"{moving}, one core at it")
        contended = named("t_full", contended, "s", f"{moving}, {asked.served:g} cores at it")
        alone = self._one_core(point, iterations, frequency, transfers)
        if self.seconds is not None and not asked.is_local:
            alone = alone + (transfers - local)  # they were measured with the data of the core
        alone = named("t_alone", alone, "s", "loop on one core, the others idle")
        sharpness = compute.sharpness(alone, transfers, parameters.get("memory.q"))
        sharpness = named("p_sat", sharpness, "1", "sharpness of the saturation for a loop")
        return compute.shared_time(alone, transfers, contended, sharpness, stretch)

    def crowding(self, point: ModelPoint, iterations: Value, busy: int) -> Value:
        """Return the part of `time` that other processes of the memory domain cost, s.

        It is told of teams in one domain, whose data is there, only.
        """
        if point.placement.domains_spanned > 1:
            return 0.0
        frequency = point.parameters.frequency(busy)
        among = self.time(point, iterations, busy, frequency)
        return among - self.time(point, iterations, busy, frequency, without_others=True)

    def _one_core(
        self, point: ModelPoint, iterations: Value, frequency: Value, transfers: Value
    ) -> Value:
        """Time of iterations on a core that has the memory for itself, s."""
        if self.seconds is not None:
            time: Value = iterations * self.seconds
            return time
        parameters = point.parameters

        def cycles(operations: Value, rate: str) -> Value:
            return operations / parameters.get(f"core.{rate}") if some(operations) else 0.0

        counted = self._instruction_cycles(parameters)
        # those that control the loop are among them; where none are known they come on top
        known = None if counted else parameters.optional("core.loop_cycles")
        core = compute.core_time(
            iterations,
            arithmetic_cycles=maximum(cycles(self.flops, "flop_per_cycle"), self.chain, *counted),
            data_cycles=maximum(
                cycles(self.loads, "load_per_cycle"), cycles(self.stores, "store_per_cycle")
            ),
            overhead_cycles=0.0 if known is None else known,
            frequency=frequency,
        )
        if not self.portions:
            return self._with_transfers(point, core, iterations, transfers)
        # a page stays in a cache or is lost: what takes longer hides the rest now here, now there
        through = self.bytes.get(MEMORY_LEVEL, 0.0)
        time = 0.0
        for share, one in self.portions:
            more = _ratio(one.bytes.get(MEMORY_LEVEL, 0.0), through)
            time = time + share * one._with_transfers(point, core, iterations, transfers * more)
        return time

    def _with_transfers(
        self, point: ModelPoint, core: compute.CoreTime, iterations: Value, transfers: Value
    ) -> Value:
        """Time on one core with what iterations move that are all alike, s."""
        times = self._in_caches(point.parameters)
        caches = {level: iterations * time for level, time in times.items()}
        moving = {
            level: time
            for level, time in (caches | {MEMORY_LEVEL: transfers}).items()
            if some(time)
        }
        if not moving:
            return compute.loop_time(core, 0.0, 0.0, "none")  # nothing to overlap
        overlap = point.overlap or self._overlap(point.parameters, moving)
        return compute.loop_time(core, sum(caches.values()), transfers, overlap)

    def _overlap(self, parameters: Parameters, moving: Mapping[str, Value]) -> str | Value:
        """How arithmetic and the transfers of some levels overlap: a word, or a share."""
        if self.mode in _OVERLAP:
            return _OVERLAP[self.mode]
        table = "overlap_issue" if self.mode == _ISSUE else "overlap_with"
        return parameters.overlap(moving, table)

    def _instruction_cycles(self, parameters: Parameters) -> tuple[Value, ...]:
        """Cycles of an iteration for its instructions, whatever they do; none if nobody knows."""
        if self.instructions is None:
            return ()
        path = "core.instructions_per_cycle"
        # the peak of vectors is far from what compilers make of source that nobody measured
        rate = parameters.get(path) if parameters.from_source else parameters.optional(path)
        if rate is None:
            return ()
        window = parameters.optional("core.window") if some(self.latency) else None
        issued = self.instructions / rate
        if window is None:
            return (issued,)
        # a core has room for so many iterations at once: J. D. C. Little, Oper. Res. 9 (1961) 383
        return (issued, self.latency * self.instructions / window)

    def _in_caches(self, parameters: Parameters) -> dict[str, Value]:
        """Time of an iteration for what each cache serves, s."""
        there = parameters.profile.topology.levels
        lacking = set(LEVELS) - set(there) if there else set()  # the next level serves theirs
        levels = [level for level in sorted(self.bytes) if level not in lacking]  # MEM is last
        traffic = compute.served({name: self.bytes[name] for name in levels})
        written = compute.served({name: self.written.get(name, 0.0) for name in levels})
        times: dict[str, Value] = {}
        for level, through in traffic.items():
            if level == MEMORY_LEVEL or not some(through):
                continue
            path = f"memory.cache_bw.{level}"
            if level in there:
                rate = parameters.optional(path)
            else:
                of_level = parameters.profile.of_level("memory.cache_bw", level)
                rate = parameters.get(path if there else of_level)
            if rate is None:
                continue
            if some(written[level]):
                back = parameters.write_back(level)
                times[level] = compute.moved(through, written[level], back) / rate
            else:
                times[level] = through / rate
        return times

    @staticmethod
    def sentence(entry: Entry) -> str:
        counted, measured = entry["instructions"], entry["seconds"]
        parts = [
            many(entry[key], noun)
            for key, noun in (("flops", "flop"), ("loads", "load"), ("stores", "store"))
            if entry[key]["formula"] != "0"
        ]
        parts += [
            f"{quantity(one)} "
            f"{'of memory traffic' if level == MEMORY_LEVEL else f'through {level}'}"
            + (
                f" ({quantity(entry['written'][level])} of it written back)"
                if level in entry["written"]
                else ""
            )
            for level, one in entry["bytes"].items()
        ]
        parts += [
            f"{what} of {many(entry[key], 'cycle')}"
            for key, what in (("chain", "a dependency chain"), ("latency", "a latency"))
            if entry[key]["formula"] != "0"
        ]
        if counted is not None:
            parts.append(many(counted, "instruction"))
        if entry["taken_over"]["formula"] != "0":
            parts.append(f"{many(entry['taken_over'], 'cache line')} of other threads")
        if entry["mode"] is not None:
            parts.append(_OVERLAP_WORDS[entry["mode"]])
        if entry["first_touch"] is not None:
            parts.append(_TOUCH_WORDS[entry["first_touch"]])
        if measured is not None:
            return ", ".join([f"each takes {quantity(measured)}, as measured", *parts])
        return f"each: {', '.join(parts)}" if parts else "loop control only"


def _row(table: Mapping[str, Value], index: int) -> dict[str, Value]:
    """Values at one of several places, which are rows where they differ."""

    def value(every: Value) -> Value:
        if not isinstance(every, np.ndarray) or every.ndim < 2:
            return every
        row: NDArray[np.float64] = every[index]
        return float(row[0]) if row.size == 1 else row

    return {name: value(every) for name, every in table.items()}


def _in_part(lost: Value) -> bool:
    """Whether a part of a working set is lost and another stays, in any draw."""
    share = numbers(lost)
    return bool(((share > 0) & (share < 1)).any())


def _between(lost: Sequence[Value]) -> Iterator[tuple[Value, Value]]:
    """Divide 0 to 1 by the parts that are lost: the width of each interval, and its middle."""
    rising: Sequence[Value]
    if any(isinstance(one, TracedExpression) for one in lost):
        rising = sorted(lost, key=float)
    else:
        each = np.broadcast_arrays(*(np.asarray(one, dtype=np.float64) for one in lost))
        rising = list(np.sort(np.stack(each), axis=0))
    for below, above in pairwise([0.0, *rising, 1.0]):
        if some(above - below):
            yield above - below, (below + above) / 2


def _ratio(some: Value, whole: Value) -> Value:
    """Return some over the whole; 1 where there is nothing."""
    there = whole != 0
    return choose(there, some / choose(there, whole, 1.0), 1.0)
