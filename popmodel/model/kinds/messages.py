"""A list of calls that all processes carry out, for what fits no pattern."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from popmodel.base.errors import UsageError
from popmodel.base.expressions import Expression
from popmodel.base.expressions.elementary import Value
from popmodel.base.units import plural
from popmodel.base.values import NamedTuple, dataclass
from popmodel.model.kinds.calls import CallList, ListedCall, idle, read_calls
from popmodel.model.kinds.item import (
    COMMON,
    Amount,
    Entry,
    Further,
    Item,
    ItemTable,
    listed,
    many,
    quantity,
)
from popmodel.model.run import call_list
from popmodel.model.run.call_list import (
    CallError,
    CallRow,
    ListPlan,
    Priced,
    RowRepeat,
    Rows,
    carried_out,
)
from popmodel.model.run.context import ModelPoint
from popmodel.model.run.operations import Inside, Operations, OperationsBuilder
from popmodel.model.run.work import RunWork, UnevenWork
from popmodel.model.signature.keys import GrammarKey
from popmodel.model.signature.reading import GrammarReading, Path
from popmodel.model.uncertainty import nominal

_AT_ONCE = 1 / 8
_KNOWN = 8  # numbers of processes for which a list is kept as carried out
_SENDING = ("send", "isend", "sendrecv")


def _processes(reading: GrammarReading, table: Mapping[str, Any], where: Path) -> int | None:
    if "processes" not in table:
        return None
    value = table["processes"]
    if type(value) is not int or value < 1:
        raise reading.error(where, f"processes must be a whole number above 0, not {value!r}")
    return value


def _offsets(reading: GrammarReading, table: Mapping[str, Any], where: Path) -> tuple[int, ...]:
    value = table["offsets"]
    if not isinstance(value, list) or not value or not all(type(one) is int for one in value):
        raise reading.error(where, f"offsets must be a list of whole numbers, not {value!r}")
    return tuple(value)


def _calls(reading: GrammarReading, table: Mapping[str, Any], where: Path) -> CallList:
    found = read_calls(reading, table, where)
    if not any(call.do in _SENDING for call in found.leaves()):
        raise reading.error(where, "calls has no message", "use serial for computation alone")
    return found


@dataclass(frozen=True)
class Scaled(ItemTable):
    """What processes exchange where the list does not hold: so much with partners that far away."""

    kind: ClassVar[str] = "scaled"
    further: ClassVar[Further] = {"offsets": {"read": _offsets}}

    messages: Amount
    bytes: Amount
    offsets: tuple[int, ...]

    def rows(self, processes: int, first: int) -> Rows:
        ranks = np.arange(processes)
        offsets = [one for one in self.offsets if one % processes]
        total = round(nominal(self.messages))
        if not offsets or not total:
            return ()
        size = np.full(processes, round(nominal(self.bytes) / total))
        everybody, none = np.ones(processes, dtype=bool), np.zeros(processes, np.int64)
        found: list[CallRow | RowRepeat] = []
        for index, offset in enumerate(offsets):
            times = total // len(offsets) + (index < total % len(offsets))
            partners = (ranks + offset) % processes, (ranks - offset) % processes
            both = tuple(
                CallRow(first + 2 * index + more, do, everybody, *partners, size, size, none, none)
                for more, do in enumerate(("irecv", "isend"))
            )
            found.append(RowRepeat(times, both))
        return (*found, idle(first + 2 * len(offsets), "waitall", everybody))


@dataclass(frozen=True)
class MessagesItem(Item):
    """All processes carry out a list of calls."""

    kind: ClassVar[str] = "messages"
    further: ClassVar[Further] = {
        "calls": {"table": ListedCall, "read": _calls},
        "processes": {"read": _processes},
        "scaled": {"table": Scaled},
    }
    communicates: ClassVar[bool] = True
    computes_between: ClassVar[bool] = True
    one_sender: ClassVar[str] = "the list says which calls a process makes"

    calls: CallList
    processes: int | None = None
    scaled: Scaled | None = None

    def formulas(self) -> list[Expression]:
        return [*super().formulas(), *self.calls.formulas()]

    def shown(self) -> Iterator[tuple[GrammarKey, Any]]:
        known = {key.name: key for key in (*self.own, *COMMON)}
        yield known["name"], self.name
        yield known["calls"], self.calls.calls
        for name in ("processes", "scaled", "every"):
            yield known[name], getattr(self, name)

    @property
    def stated_spreads(self) -> Set[str]:
        return set().union(*(call.spread.stated() for call in self.calls.leaves()))

    @property
    def only_at(self) -> int | None:
        return self.processes

    @cached_property
    def worked(self) -> dict[str, Any]:
        """What was worked out of an item with numbers, which belongs to one point."""
        return {}

    def work(self, point: ModelPoint) -> RunWork:
        plan, priced = self._planned(point)
        computed = self._computed(point)
        seconds = computed.mean
        frequency = point.parameters.frequency(point.placement.per_node)
        return RunWork(
            serial=seconds,
            stated=seconds,
            serial_cycles=seconds * frequency,
            transfer=priced.slowest() if len(plan.messages) else 0.0,
            steps=1.0,
            instructions=computed.instructions,
        )

    def uneven(self, point: ModelPoint) -> tuple[UnevenWork, ...]:
        return self._computed(point).uneven

    def most_operations(self, point: ModelPoint) -> float:
        """Return the operations of an average process, for what they take of a replay's time.

        Those of a list are worked out at once: they take a part of the time of others.
        """
        plan, _ = self._planned(point)
        return _AT_ONCE * plan.operations / plan.processes

    def operations(self, point: ModelPoint, build: OperationsBuilder) -> None:
        plan, priced = self._planned(point)
        program, charges = call_list.program(plan, priced)
        build.take(Operations(program, charges, self._computed(point).inside(plan)))

    # -- what is worked out of the list

    def _planned(self, point: ModelPoint) -> tuple[ListPlan, Priced]:
        """Return what all processes do, and what it costs."""
        if "plan" not in self.worked:
            plan, came_to_end = self._plan(point)
            priced = Priced.of(plan.messages, point.messages)
            limits = priced.waits.tobytes()
            if limits not in came_to_end:
                self._refuse_stuck(point, plan, priced)
                came_to_end.add(limits)
            self.worked["plan"] = plan, priced
        found: tuple[ListPlan, Priced] = self.worked["plan"]
        return found

    def _plan(self, point: ModelPoint) -> tuple[ListPlan, set[bytes]]:
        """Return what all processes do, worked out once for like points.

        With it, for which messages waiting for their receivers it was seen to come to its end.
        """
        names = sorted({name for one in self.formulas() for name in one.names} - {"rank"})
        amounts = () if self.scaled is None else (self.scaled.messages, self.scaled.bytes)
        values = (*map(point.best, names), *map(nominal, amounts))
        key = (point.placement.processes, values)
        known = self.calls.known
        if key not in known:
            while len(known) >= _KNOWN:
                del known[next(iter(known))]
            known[key] = self._carried_out(point), set()
        found: tuple[ListPlan, set[bytes]] = known[key]
        return found

    def _holds(self, point: ModelPoint) -> bool:
        return self.processes in (None, point.placement.processes)

    def _carried_out(self, point: ModelPoint) -> ListPlan:
        processes, holds = point.placement.processes, self._holds(point)
        rows = self.calls.rows(point, self.name, computing=not holds)
        if not holds:
            if self.scaled is None:
                those = plural(self.processes or 0, "process", "processes")
                raise point.refuse(
                    f"{self.name!r}",
                    f": its calls are those of {those}",
                    "scaled = { messages, bytes, offsets } says what others exchange",
                )
            rows += self.scaled.rows(processes, len(self.calls.leaves()))
        try:
            return carried_out(rows, processes)
        except CallError as error:
            raise self._refused(point, error.row, error.problem) from None

    def _refuse_stuck(self, point: ModelPoint, plan: ListPlan, priced: Priced) -> None:
        found = call_list.stuck(plan, priced)
        if found is not None:
            process, row = found
            problem = f"rank {process} waits there forever, for calls that wait for others"
            raise self._refused(point, row, problem)

    def _refused(self, point: ModelPoint, row: int | None, problem: str) -> UsageError:
        leaves = self.calls.leaves()
        where = "" if row is None else f", {leaves[row].title}"
        return point.refuse(
            f"{self.name!r}",
            f"{where}: {problem}",
            "correct the conditions, partners and order of the calls",
        )

    def _computed(self, point: ModelPoint) -> Computed:
        if "computed" not in self.worked:
            plan, _ = self._planned(point)
            executions = plan.executions(len(self.calls.leaves()))
            other = None if self._holds(point) else self.processes
            self.worked["computed"] = Computed.of(self.calls, executions, point, self.name, other)
        found: Computed = self.worked["computed"]
        return found

    @staticmethod
    def sentence(entry: Entry) -> str:
        done = Counter(call["do"] for call in _leaves(entry["calls"]))
        text = f"a list of {plural(sum(done.values()), 'call')}: "
        text += listed([f"{number} {do}" for do, number in done.items()])
        if entry["processes"] is not None:
            text += f", of {plural(entry['processes'], 'process', 'processes')}"
        if entry["scaled"] is not None:
            scaled = entry["scaled"]
            offsets = listed([f"{one:+d}" for one in scaled["offsets"]])
            text += (
                f"; others exchange {many(scaled['messages'], 'message')} of "
                f"{quantity(scaled['bytes'])} in all with the ranks {offsets} away"
            )
        return text


def _leaves(calls: Sequence[Entry]) -> Iterator[Entry]:
    for call in calls:
        if "calls" in call:
            yield from _leaves(call["calls"])
        else:
            yield call


# What processes compute between the calls of a list, row by row.


_SECONDS, _INSTRUCTIONS = map(ListedCall.key, ("seconds", "instructions"))
_BY_PROCESS, _UNKNOWN = 0, 1


class Computed(NamedTuple):
    """Computation of a list; made by `Computed.of`."""

    mean: Value  # Of an average process, s
    # float64[rows, P]: Of one execution of each row by each process, s; of the best estimate.
    seconds: NDArray[np.float64]
    part: NDArray[np.int64]  # int64[rows]: Which of ``parts`` it is
    parts: tuple[UnevenWork, ...]  # How they differ
    instructions: Value | None  # Of an average process; None where nobody counted those of a row

    @staticmethod
    def of(
        calls: CallList,
        executions: NDArray[np.int64],
        point: ModelPoint,
        of: str,
        only_at: int | None,
    ) -> Computed:
        """Add up the computations of a list."""
        leaves = calls.leaves()
        seconds, part = np.zeros(executions.shape), np.full(len(leaves), _UNKNOWN)
        mean: Value = 0.0
        instructions: Value | None = 0.0
        turns: list[NDArray[np.float64] | None] = [None, None]
        sequences: list[NDArray[np.float64] | None] = [None, None]
        evaluated: dict[str, Value] = {}
        for row, (call, times) in enumerate(zip(leaves, executions, strict=True)):
            if call.do != "compute" or not times.any():
                continue
            given, counted = call.given["seconds"], call.given.get("instructions")
            if instructions is not None and isinstance(counted, Expression):
                what = f"instructions of {call.title} of {of!r}"
                by = 1.0 if only_at is None else _share(calls, call, point, of, only_at)
                count = point.amount(counted, _INSTRUCTIONS, what)
                instructions = instructions + count * (by * float(times.mean()))
            else:
                instructions = None
            uneven = call.spread.uneven(point)
            levels = np.ones(times.size) if uneven is None or uneven.ranks is None else uneven.ranks
            if isinstance(given, Expression) and "rank" not in given.names:
                if given.text not in evaluated:
                    what = f"seconds of {call.title} of {of!r}"
                    evaluated[given.text] = point.amount(given, _SECONDS, what)
                one = evaluated[given.text]
                if only_at is not None:
                    levels = levels * _share(calls, call, point, of, only_at)
                seconds[row] = nominal(one) * levels
                mean = mean + one * float((levels * times).mean())
            elif only_at is not None:
                on = calls.on(call, _with(point, only_at, ranked=True), of).astype(np.float64)
                best, average = _by_rank(given, call, _with(point, only_at), of, on)
                seconds[row] = (best * on).mean()
                mean = mean + average * float(times.mean())
            else:
                seconds[row], average = _by_rank(given, call, point, of, times.astype(np.float64))
                mean = mean + average
                levels = seconds[row]
            is_known = bool(np.ptp(levels * times))
            part[row] = _BY_PROCESS if is_known else _UNKNOWN
            if uneven is not None and uneven.turns is not None:
                part[row] = len(turns)
                turns.append(uneven.turns)
                sequences.append(uneven.sequence)
        parts = _parts(seconds * executions, part, turns, sequences)
        return Computed(mean, seconds, part, parts, instructions)

    @property
    def uneven(self) -> tuple[UnevenWork, ...]:
        """The parts, if more is known of any than a spread."""
        plain = all(one.ranks is None and one.turns is None for one in self.parts if one.share)
        return () if plain else self.parts

    def inside(self, plan: ListPlan) -> Inside:
        """Return the computations where they stand."""
        return Inside(
            plan.where,
            plan.process,
            self.seconds[plan.computing, plan.process],
            self.part[plan.computing],
            self.parts,
        )


def _with(point: ModelPoint, processes: int, *, ranked: bool = False) -> ModelPoint:
    """Return the point with the ranks of as many processes, and P as it is or as many."""
    placement = replace(point.placement, processes=processes)
    names = {**point.ranked, "P": float(processes)} if ranked else point.ranked
    return replace(point, placement=placement, ranked=names)


def _share(calls: CallList, call: ListedCall, point: ModelPoint, of: str, processes: int) -> float:
    """Part of so many processes that carry out a call."""
    return float(calls.on(call, _with(point, processes, ranked=True), of).mean())


def _by_rank(
    given: Expression | tuple[float, ...],
    call: ListedCall,
    point: ModelPoint,
    of: str,
    weights: NDArray[np.float64],
) -> tuple[NDArray[np.float64], Value]:
    """Seconds of every rank, of the best estimate, and their mean with weights."""
    what = f"seconds of {call.title} of {of!r}"
    if isinstance(given, Expression):
        mean = point.mean_by_rank(given, _SECONDS, what, weights)
        return point.by_rank(given, _SECONDS, what), mean
    found = point.listed(given, what)
    return found, float((found * weights).mean())


def _parts(
    by_rank: NDArray[np.float64],
    part: NDArray[np.int64],
    turns: Sequence[NDArray[np.float64] | None],
    sequences: Sequence[NDArray[np.float64] | None],
) -> tuple[UnevenWork, ...]:
    """Put rows together that differ alike."""
    levels = np.zeros((len(turns), by_rank.shape[1]))
    np.add.at(levels, part, by_rank)
    whole = float(levels.sum(axis=0).mean())
    found = []
    every = zip(levels, turns, sequences, strict=True)
    for index, (level, values, sequence) in enumerate(every):
        mean = float(level.mean())
        is_known = index != _UNKNOWN and mean > 0 and bool(np.ptp(level))
        share = mean / whole if whole else 0.0
        found.append(UnevenWork(share, level / mean if is_known else None, values, sequence))
    return tuple(found)
