"""Reads schedules in GOAL, the language of LogGOPSim: operations of every rank and what they need.

``rank 0 { a: calc 1000`` computes for 1000 ns, ``b: send 8b to 1 tag 5`` sends, ``c: recv 8b from 1
tag 5`` receives; ``b requires a`` begins b when a is complete, ``b irequires a`` when a has begun.

A schedule is a graph, what a process does is a sequence: the operations of a rank are taken in an
order in which each comes after what it needs, those that need no message first, and else as they
are written. A receive is posted in its place and waited for where the first operation needs it, at
the latest at the end. Operations that GOAL leaves unordered, but that wait for different messages,
are ordered by this; how many is a warning. Core and adapter (``cpu``, ``nic``) are read past: a
rank has one of each.

Source: T. Hoefler, C. Siebert, A. Lumsdaine, "Group Operation Assembly Language", ICPP 2009;
LogGOPSim (https://github.com/spcl/LogGOPSim), ``txt2bin.re``.
"""

from __future__ import annotations

import os
import re
from heapq import heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from popmodel.errors import TraceError, UsageError
from popmodel.trace.tables import TraceWarning
from popmodel.trace.untimed.lines import LineError, lines, whole
from popmodel.trace.untimed.sequence import Actions, trace_of

if TYPE_CHECKING:
    from popmodel.trace.trace import Trace

__all__ = ["read"]

_RANKS = re.compile(r"num_ranks\s+(\d+)")
_RANK = re.compile(r"rank\s+(\d+)\s*\{")
_PLACE = r"(?:\s+(cpu|nic)\s+\d+){0,2}"
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
    """``calc``, ``send`` or ``recv``: ns or bytes, partner and tag."""

    what: str
    amount: int
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


def read(path: str | os.PathLike[str], application: int = 1, cache: bool = True) -> Trace:
    """Read a schedule in GOAL.

    Parameters
    ----------
    path : path
        The text of the schedule, plain or compressed with gzip.
    application : int
        1: a schedule has one.
    cache : bool
        Without effect: schedules are not cached.

    Raises
    ------
    TraceError
        If the file cannot be read or is not a schedule; it names the line.
    UsageError
        If another application is asked for.
    """
    del cache
    if application != 1:
        raise UsageError(
            f"{path}: no application {application}", "a schedule has application 1 only"
        )
    schedule = _Schedule()
    for number, line in lines(Path(path)):
        try:
            schedule.do(line)
        except LineError as error:
            raise TraceError(path, str(error), line=number, hint=_ADVICE) from None
    if schedule.inside is not None:
        raise TraceError(path, f"rank {schedule.inside} has no end: }} is missing", hint=_ADVICE)
    lacking = next((rank for rank in range(schedule.count) if rank not in schedule.ranks), None)
    if lacking is not None or not schedule.count:
        problem = "the file has no schedule"
        if lacking is not None:
            problem = f"no operations of rank {lacking}"
        raise TraceError(path, problem, hint=_ADVICE)
    processes, later = [], 0
    for rank in range(schedule.count):
        try:
            mine, held = _sequence(rank, schedule.ranks[rank])
        except LineError as error:
            raise TraceError(path, str(error), hint=_ADVICE) from None
        processes.append(mine)
        later += held
    ordered = [TraceWarning(_ORDERED, later)] if later else []
    return trace_of(path, processes, {}, (TraceWarning(_SAID), *ordered), _ADVICE)


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
            rank.add(found[1], _Operation("calc", whole(found[2])))
        elif found := _MESSAGE.fullmatch(text):
            label, sends, sent, received, partner, tag, _ = found.groups()
            if "-1" in (partner, tag):
                raise LineError("a receive from any rank or with any tag: name them")
            what = "send" if sends else "recv"
            size = whole(sent or received)
            if (other := whole(partner)) >= self.count:
                raise LineError(f"rank {partner} of num_ranks {self.count}")
            rank.add(label, _Operation(what, size, other, whole(tag or "0")))
        elif found := _NEEDS.fullmatch(text):
            rank.need(found[1], found[3], complete=found[2] == "requires")
        else:
            raise LineError(f"not an operation of a rank: {text[:40]!r}")


def _sequence(rank: int, schedule: _Rank) -> tuple[Actions, int]:
    """What a rank does one after the other, and how many operations this holds back."""
    mine = Actions(rank)
    order = _order(rank, schedule)
    level = [0] * len(order)  # the last of the operations that wait, from 1, that each comes after
    waits = held = 0
    of_last: set[tuple[int, bool]] = set()  # what the last of them needed
    open_: dict[int, None] = {}
    for place, number in enumerate(order):
        needs = schedule.needs[number]
        level[number] = max((level[other] for other, _ in needs), default=0)
        if waits and of_last.issubset(needs):
            level[number] = waits
        held += level[number] < waits
        completed = [other for other, complete in needs if complete and other in open_]
        for other in completed:
            del open_[other]
            mine.wait(other, "")
        operation = schedule.operations[number]
        following = order[place + 1 : place + 2]
        at_once = any((number, True) in schedule.needs[after] for after in following)
        if operation.what == "calc":
            mine.compute(operation.amount)
        else:
            blocking, request = _CALLS[operation.what]
            name = blocking if at_once else request
            key = None if at_once else number
            mine.message(name, operation.partner, operation.tag, operation.amount, key)
            if not at_once:
                open_[number] = None
        if completed or (at_once and operation.what != "calc"):
            waits += 1
            level[number] = waits
            of_last = {(number, True)} if at_once else set(needs)
    for other in open_:
        mine.wait(other, "")
    return mine, held


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
