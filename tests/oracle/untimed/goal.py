"""A plain reader of schedules in GOAL, beside which that of the compiled core is put.

``rank 0 { a: calc 1000`` computes for 1000 ns, ``b: send 8b to 1 tag 5`` sends, ``c: recv 8b from 1
tag 5`` receives; ``b requires a`` begins b when a is complete, ``b irequires a`` when a has begun.

A schedule is a graph, what a process does is a sequence: the operations of a rank are taken in an
order in which each comes after what it needs, those that need no message first, and else as they
are written. A receive is posted in its place and waited for where the first operation needs it, at
the latest at the end. Operations that GOAL leaves unordered, but that wait for different messages,
are ordered by this; how many is a warning. The operations of a rank on different processors
(``cpu``) are sequences of their own; the adapter (``nic``) is read past: it has no gap here.

Source: T. Hoefler, C. Siebert, A. Lumsdaine, "Group Operation Assembly Language", ICPP 2009;
LogGOPSim (https://github.com/spcl/LogGOPSim), ``txt2bin.re``.
"""

from __future__ import annotations

import os
import re
from heapq import heappop, heappush
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from oracle.untimed.sequence import Actions, do_lines, trace_of
from popmodel.base.errors import TraceError
from popmodel.traces.source import LineError, whole
from popmodel.traces.tables import TraceWarning

if TYPE_CHECKING:
    from popmodel.traces.recorded_run import Trace

_RANKS = re.compile(r"num_ranks\s+(\d+)")
_RANK = re.compile(r"rank\s+(\d+)\s*\{")
_PLACE = r"(?:\s+cpu\s+(\d{1,3}))?(?:\s+nic\s+\d+)?"
_CALC = re.compile(r"(?:(\w+)\s*:\s*)?calc\s+(\d+)" + _PLACE)
_MESSAGE = re.compile(
    r"(?:(\w+)\s*:\s*)?(?:(send)\s+(\d+)\s*b\s+to|recv\s+(\d+)\s*b\s+from)\s+(-1|\d+)"
    r"(?:\s+tag\s+(-1|\d+))?" + _PLACE
)
_CALLS = {"send": ("Send", "Isend"), "recv": ("Recv", "Irecv")}
"""The call that an operation is if the next one needs it complete, and else."""
_REMARK = re.compile(r"/[/*]")
_NEEDS = re.compile(r"(\w+)\s+(i?requires)\s+(\w+)")
_SAID = "no measured times: computation takes as many ns as the schedule says, MPI calls take none"
_ORDERED = (
    "operations that begin later than the schedule asks for (they need fewer than those before "
    "them, whose order is kept)"
)
_ADVICE = "give a schedule as text, such as LogGOPSim's schedgen writes it"


class _Operation(NamedTuple):
    """``calc``, ``send`` or ``recv``: ns or bytes, processor, partner and tag."""

    what: str
    amount: int
    cpu: int = 0
    partner: int = -1
    tag: int = 0


class _Rank:
    """The operations of a rank, and what each needs: (number, whether it must be complete)."""

    def __init__(self) -> None:
        self.operations: list[_Operation] = []
        self.needs: list[list[tuple[int, bool]]] = []
        self.labels: dict[str, int] = {}

    def add(self, label: str | None, operation: _Operation) -> None:
        """Take an operation."""
        if label is not None:
            if label in self.labels:
                raise LineError(f"label {label!r} is used twice")
            self.labels[label] = len(self.operations)
        self.operations.append(operation)
        self.needs.append([])

    def need(self, later: str, earlier: str, *, complete: bool) -> None:
        """Let an operation need another one."""
        for label in (later, earlier):
            if label not in self.labels:
                raise LineError(f"no operation {label!r} before this line")
        self.needs[self.labels[later]].append((self.labels[earlier], complete))

    def waits(self, number: int) -> bool:
        """Whether an operation needs a message to be complete."""
        return any(
            complete and self.operations[other].what != "calc"
            for other, complete in self.needs[number]
        )


def read(path: str | os.PathLike[str], application: int = 1) -> Trace:
    """Read a schedule in GOAL."""
    schedule = _Schedule()
    do_lines(path, schedule.do, _ADVICE, application, "schedule")
    if schedule.inside is not None:
        raise TraceError(path, f"rank {schedule.inside} has no end: }} is missing", hint=_ADVICE)
    lacking = next((rank for rank in range(schedule.count) if rank not in schedule.ranks), None)
    if lacking is not None or not schedule.count:
        problem = "the file has no schedule"
        if lacking is not None:
            problem = f"no operations of rank {lacking}"
        raise TraceError(path, problem, hint=_ADVICE)
    ranks = [schedule.ranks[rank] for rank in range(schedule.count)]
    cpus = [sorted({0, *(each.cpu for each in rank.operations)}) for rank in ranks]
    first = np.cumsum([0, *map(len, cpus)]).tolist()
    partners = _partners(ranks, cpus, first)
    processes: list[Actions] = []
    later = 0
    for number, rank in enumerate(ranks):
        sequences = _Sequences(number, rank, cpus[number], first[number], partners)
        try:
            later += sequences.fill()
        except LineError as error:
            raise TraceError(path, str(error), hint=_ADVICE) from None
        processes += [each.actions for each in sequences.processors]
    ordered = [TraceWarning(_ORDERED, later)] if later else []
    rank_of = np.repeat(np.arange(len(ranks)), np.diff(first)).tolist()
    return trace_of(path, processes, {}, (TraceWarning(_SAID), *ordered), _ADVICE, rank_of)


def _partners(
    ranks: list[_Rank], cpus: list[list[int]], first: list[int]
) -> dict[tuple[int, int], int]:
    """Processor of the other end of each send and receive, by rank and operation.

    The k-th send of a rank to another with a tag meets the k-th receive; one of which there is
    none is taken to the first processor, so that it is missed there.
    """
    ends: dict[tuple[int, int, int, bool], list[tuple[int, int]]] = {}
    for number, rank in enumerate(ranks):
        for row, each in enumerate(rank.operations):
            if each.what != "calc":
                sends = each.what == "send"
                way = (number, each.partner) if sends else (each.partner, number)
                ends.setdefault((*way, each.tag, sends), []).append((number, row))
    found = {}
    for (sender, receiver, tag, sends), mine in ends.items():
        partner = receiver if sends else sender
        others = ends.get((sender, receiver, tag, not sends), [])
        for end, other in zip_longest(mine, others[: len(mine)]):
            cpu = 0 if other is None else ranks[partner].operations[other[1]].cpu
            found[end] = first[partner] + cpus[partner].index(cpu)
    return found


class _Schedule:
    """The ranks of a schedule, as lines tell them."""

    def __init__(self) -> None:
        self.ranks: dict[int, _Rank] = {}
        self.count = 0
        self.inside: int | None = None
        self._remark = False

    def do(self, line: str) -> None:
        """Take a line."""
        text = self._without_remarks(line).strip()
        if not text:
            return
        if self.inside is None:
            self._outside(text)
        elif text == "}":
            self.inside = None
        else:
            self._inside(self.ranks[self.inside], text)

    def _without_remarks(self, line: str) -> str:
        kept, at = [], 0
        while at < len(line):
            if self._remark:
                end = line.find("*/", at)
                self._remark, at = end < 0, len(line) if end < 0 else end + 2
                continue
            begin = _REMARK.search(line, at)
            kept.append(line[at : begin.start() if begin else len(line)])
            if not begin or begin[0] == "//":
                break
            self._remark, at = True, begin.end()
        return "".join(kept)

    def _outside(self, text: str) -> None:
        if found := _RANKS.fullmatch(text):
            if self.count:
                raise LineError("num_ranks is given twice")
            self.count = whole(found[1])
        elif found := _RANK.fullmatch(text):
            rank = whole(found[1])
            if rank >= self.count:
                raise LineError(f"rank {rank} of num_ranks {self.count}")
            if rank in self.ranks:
                raise LineError(f"rank {rank} is given twice")
            self.ranks[rank], self.inside = _Rank(), rank
        else:
            raise LineError(f"must be num_ranks or rank, not {text[:40]!r}")

    def _inside(self, rank: _Rank, text: str) -> None:
        if found := _CALC.fullmatch(text):
            rank.add(found[1], _Operation("calc", whole(found[2]), int(found[3] or 0)))
        elif found := _MESSAGE.fullmatch(text):
            label, sends, sent, received, partner, tag, cpu = found.groups()
            if "-1" in (partner, tag):
                raise LineError("a receive from any rank or with any tag: name them")
            what = "send" if sends else "recv"
            size = whole(sent or received)
            if (other := whole(partner)) >= self.count:
                raise LineError(f"rank {partner} of num_ranks {self.count}")
            place = int(cpu or 0), other, whole(tag or "0")
            rank.add(label, _Operation(what, size, *place))
        elif found := _NEEDS.fullmatch(text):
            rank.need(found[1], found[3], complete=found[2] == "requires")
        else:
            raise LineError(f"not an operation of a rank: {text[:40]!r}")


class _Processor:
    """What a processor does one after the other."""

    def __init__(self, location: int) -> None:
        self.actions = Actions(location)
        self.waits = 0  # how often it has waited
        self.of_last: set[tuple[int, bool]] = set()  # what the last operation that waited needed
        self.open: dict[int, None] = {}  # messages that it has not waited for

    def complete(self, message: int) -> bool:
        """Wait for a message, unless this is done."""
        if message not in self.open:
            return False
        del self.open[message]
        self.actions.wait(message, "")
        return True


class _Sequences:
    """The operations of a rank as a sequence for each of its processors.

    What an operation needs of another processor is an empty message from there.
    """

    def __init__(
        self,
        rank: int,
        schedule: _Rank,
        cpus: list[int],
        first: int,
        partners: dict[tuple[int, int], int],
    ) -> None:
        self.processors = [_Processor(first + place) for place in range(len(cpus))]
        self._rank, self._schedule, self._partners = rank, schedule, partners
        self._place = [cpus.index(each.cpu) for each in schedule.operations]
        self._following: dict[int, int] = {}  # the next operation of the same processor
        self._elsewhere: dict[int, list[int]] = {}  # on other processors, can go on when it begins
        self._tags: dict[tuple[int, int], int] = {}  # of what tells one that another is ready

    def fill(self) -> int:
        """Fill the sequences; how many operations this holds back."""
        order = _order(self._rank, self._schedule)
        last: dict[int, int] = {}
        for number in order:
            if (place := self._place[number]) in last:
                self._following[last[place]] = number
            last[place] = number
            for other in self._abroad(number):
                self._tags[other, number] = -1 - len(self._tags)
                complete = (other, True) in self._schedule.needs[number]
                if not complete or self._schedule.operations[other].what == "calc":
                    self._elsewhere.setdefault(other, []).append(number)
        level = [0] * len(order)  # the last of the operations that wait, from 1, that each is after
        held = sum(self._do(number, level) for number in order)
        for each in self.processors:
            for message in tuple(each.open):
                each.complete(message)
        return held

    def _abroad(self, number: int) -> list[int]:
        """The operations of other processors that an operation needs."""
        needs = dict(self._schedule.needs[number])
        return [other for other in needs if self._place[other] != self._place[number]]

    def _do(self, number: int, level: list[int]) -> bool:
        """Do the next operation; whether it begins later than the schedule asks for."""
        mine, needs = self.processors[self._place[number]], self._schedule.needs[number]
        here = [each for each in needs if self._place[each[0]] == self._place[number]]
        level[number] = max((level[other] for other, _ in here), default=0)
        if mine.waits and mine.of_last.issubset(needs):
            level[number] = mine.waits
        held = level[number] < mine.waits
        waited = len(here) < len(needs)
        for other in self._abroad(number):
            self._hear(number, other)
        for other, complete in here:
            waited |= complete and mine.complete(other)
        operation = self._schedule.operations[number]
        after = self._following.get(number)
        at_once = after is not None and (number, True) in self._schedule.needs[after]
        if operation.what == "calc":
            mine.actions.compute(operation.amount)
        else:
            name = _CALLS[operation.what][not at_once]
            partner = self._partners[self._rank, number]
            key = None if at_once else number
            mine.actions.message(name, partner, operation.tag, operation.amount, key)
            if not at_once:
                mine.open[number] = None
            waited |= at_once
        if waited:
            mine.waits += 1
            level[number] = mine.waits
            mine.of_last = {(number, True)} if at_once else set(needs)
        for later in self._elsewhere.get(number, ()):
            self._tell(later, number)
        return held

    def _tell(self, later: int, earlier: int) -> None:
        """Send the message that lets an operation of another processor begin."""
        goal = self.processors[self._place[later]].actions.rank
        here = self.processors[self._place[earlier]].actions
        here.message("Isend", goal, self._tags[earlier, later], 0)

    def _hear(self, later: int, earlier: int) -> None:
        """Wait until an operation of another processor is as far as one needs it."""
        there = self.processors[self._place[earlier]]
        if later not in self._elsewhere.get(earlier, ()):  # it needs a message to be complete
            if there.complete(earlier):
                there.waits += 1
                there.of_last = {(earlier, True)}
            self._tell(later, earlier)
        mine = self.processors[self._place[later]].actions
        mine.message("Recv", there.actions.rank, self._tags[earlier, later], 0)


def _order(rank: int, schedule: _Rank) -> list[int]:
    """The operations as they are written, but each after those that it needs.

    One that waits for a message comes after those that are ready and do not.
    """
    after: list[list[int]] = [[] for _ in schedule.operations]
    missing = [len(needs) for needs in schedule.needs]
    for number, needs in enumerate(schedule.needs):
        for other, _ in needs:
            after[other].append(number)
    ready = [(False, number) for number, count in enumerate(missing) if not count]
    order = []
    while ready:
        _, number = heappop(ready)
        order.append(number)
        for later in after[number]:
            missing[later] -= 1
            if not missing[later]:
                heappush(ready, (schedule.waits(later), later))
    if len(order) < len(missing):
        labels = {number: label for label, number in schedule.labels.items()}
        stuck = next(number for number, count in enumerate(missing) if count)
        raise LineError(f"operations of rank {rank} need one another ({labels[stuck]!r} first)")
    return order
