"""One communication of a program as operations of all its processes, for the replay.

What a message costs is what the closed form says of it (`RunMessages`); when it is
sent, and who waits for whom, is left to the replay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partialmethod

import numpy as np
from numpy.typing import NDArray

from popmodel.base.arrays import ArrayRows
from popmodel.base.expressions.elementary import Value, maximum
from popmodel.base.values import NamedTuple, dataclass
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.process_placement import Placement
from popmodel.model.run.work import UnevenWork
from popmodel.model.terms import message
from popmodel.model.uncertainty import nominal
from popmodel.network import point_to_point as p2p
from popmodel.simulator.costs import Charges, rules
from popmodel.simulator.program import Op, Program, ProgramBuilder, amounts

NOWHERE, ON_NODE, ELSEWHERE = 0, 1, 2
"""Where a partner is: there is none, on the same node, on another one."""
TIERS = {ON_NODE: "intra", ELSEWHERE: "inter"}
"""Tiers of the network by where a partner is."""


@dataclass(frozen=True)
class RunMessages:
    """Processes on nodes that exchange messages."""

    parameters: Parameters  # The machine
    placement: Placement  # Processes, threads, nodes

    @property
    def nodes(self) -> NDArray[np.int64]:
        """The node of every process."""
        return np.arange(self.placement.processes) // self.placement.per_node

    def places(self, towards: Sequence[NDArray[np.int64]]) -> NDArray[np.int8]:
        """Tell where the partner of every process is, by direction."""
        return places_of(towards, self.nodes)

    def exchange(self, size: Value, where: message.Traffic, threads: int = 1) -> Value:
        """Return the time of one message of every process that has a partner, the slowest one."""
        classes = self.classes(where.staying, where.leaving, threads)
        for place in classes:
            self.use(place, size)
        times = [p2p.by_size(size, one) for one in classes.values()]
        return maximum(*times) if times else 0.0

    def use(self, place: int, size: Value) -> None:
        """Note that a message of some size goes to a place."""
        if place != NOWHERE:
            self.parameters.use(f"net.{TIERS[place]}", "bytes", size)

    def classes(
        self, staying: int, leaving: int, threads: int = 1
    ) -> dict[int, list[p2p.SizeClass]]:
        """Return the size classes by place: of messages inside a node, and of those leaving it.

        A place to which none goes is left out; parameters as in `within`.
        """
        flows = {ON_NODE: (staying, self.within), ELSEWHERE: (leaving, self.between)}
        return {place: of(count, threads) for place, (count, of) in flows.items() if count}

    def within(self, flows: int, threads: int = 1) -> list[p2p.SizeClass]:
        """Return the size classes of messages inside a node, ``flows`` of them at once."""
        classes = self._by_threads(self.parameters.size_classes("intra"), threads)
        flows *= threads
        self.parameters.use("net.intra", "pairs", flows)
        capacity = self.parameters.optional("net.shm_k") if flows > 1 else None
        if capacity is None:
            return classes
        crowding = maximum(1.0, flows / capacity)
        return [p2p.SizeClass(c.upto, c.alpha, c.beta * crowding) for c in classes]

    def between(self, flows: int, threads: int = 1) -> list[p2p.SizeClass]:
        """Return the size classes of messages between nodes, ``flows`` leaving one at once.

        Parameters as in `within`.
        """
        classes = self._by_threads(self.parameters.size_classes("inter"), threads)
        flows *= threads
        self.parameters.use("net.inter", "pairs", flows)
        gap = self.parameters.optional("net.nic_G") if flows > 1 else None
        return classes if gap is None else p2p.contended(classes, flows, gap)

    def _by_threads(self, classes: list[p2p.SizeClass], threads: int) -> list[p2p.SizeClass]:
        """Return the size classes of messages that several threads of a process send at once."""
        if threads == 1:
            return classes
        # a library that is told to expect several threads takes longer even for one of them
        more = self.parameters.optional("net.multiple_overhead")
        slower = self.slowdown(threads)
        return [
            p2p.SizeClass(c.upto, (c.alpha + (0.0 if more is None else more)) * slower, c.beta)
            for c in classes
        ]

    def slowdown(self, threads: int) -> Value:
        """How much longer the processor takes for a message while other threads send, too."""
        factor = self.parameters.optional("net.thread_factor") if threads > 1 else None
        return 1.0 if factor is None else message.thread_slowdown(threads, factor)


def places_of(towards: Sequence[NDArray[np.int64]], nodes: NDArray[np.int64]) -> NDArray[np.int8]:
    """Tell where the partner of every process is, by direction, given the node of each process."""
    ranks = np.arange(nodes.size)
    rows = []
    for targets in towards:
        there = (targets >= 0) & (targets < ranks.size) & (targets != ranks)
        same = nodes[np.where(there, targets, 0)] == nodes
        rows.append(np.where(there, np.where(same, ON_NODE, ELSEWHERE), NOWHERE))
    return np.array(rows, dtype=np.int8)


Ranks = NDArray[np.int64]
Seconds = NDArray[np.float64]
Classes = Mapping[int, Sequence[p2p.SizeClass]]

READING = "dimemas"  # of collectives: that with which ideal runtimes are published
_NS = 1e9


class NotUnrolled(Exception):
    """A program cannot be carried out step by step; the text says why."""


class Operations(NamedTuple):
    """What all processes do in one execution of a communication, and what it costs."""

    program: Program  # Operations; bursts are the computation of an average process among them
    charges: Charges  # Costs of its messages and collectives
    inside: Inside | None = None  # Further bursts


class Inside(NamedTuple):
    """Computation among the operations of a communication that processes share unevenly."""

    # int64[n]: Operation before which something is computed, -1 behind the last one, and by whom.
    where: Ranks
    process: Ranks
    seconds: Seconds  # float64[n]: For how long on average, s
    part: Ranks  # int64[n]: Row of ``parts``
    # How it differs: where the work of every process is known, it is that of ``seconds``.
    parts: tuple[UnevenWork, ...]


class OperationCost(NamedTuple):
    """Of the message that each rank sends."""

    place: NDArray[np.int8]  # int8[P]: Where it goes
    time: Seconds  # float64[P]: How long it is on its way, s
    waits: NDArray[np.bool_]  # bool[P]: Whether its sender waits for the receiver
    busy: Seconds  # float64[P]: How long its sender is busy before it leaves, s


def repetitions(count: Value, name: str) -> int:
    """Return how often something is repeated."""
    value = nominal(count)
    if abs(value - round(value)) > 1e-9 * max(1.0, value):
        raise NotUnrolled(f"the count of {name} is {value:g}, not a whole number")
    return round(value)


class OperationsBuilder:
    """Operations in the making, with what messages and collectives cost in seconds."""

    def __init__(self, messages: RunMessages) -> None:
        self.messages = messages
        self.processes = messages.placement.processes
        self._builder = ProgramBuilder(self.processes)
        self._messages = ArrayRows(3)  # time, waits, busy
        self._collectives: list[float] = []
        self._whole: Operations | None = None

    repetitions = staticmethod(repetitions)

    # -- what messages cost

    def waits(self, place: int, size: float) -> bool:
        """Tell whether the sender of a message to a place waits for its receiver."""
        largest = self.messages.parameters.get(f"net.{TIERS[place]}.eager_threshold")
        return bool(p2p.waits_for_receiver(size, nominal(p2p.eager_threshold(largest))))

    def cost(self, place: NDArray[np.int8], size: float, classes: Classes) -> OperationCost:
        """Return the cost of messages of one size to some places."""
        time, busy = np.zeros(place.shape), np.zeros(place.shape)
        waits = np.zeros(place.shape, dtype=bool)
        for tier in (ON_NODE, ELSEWHERE):
            mine = place == tier
            if mine.any():
                time[mine] = nominal(p2p.by_size(size, classes[tier]))
                waits[mine] = self.waits(tier, size)
        return OperationCost(place, time, waits, busy)

    def pattern(self, targets: Ranks, size: float, threads: int = 1) -> OperationCost:
        """Return the cost of a communication in which rank r sends to ``targets[r]``."""
        where = message.traffic(targets, self.messages.placement.per_node)
        classes = self.messages.classes(where.staying, where.leaving, threads)
        return self.cost(self.messages.places([targets])[0], size, classes)

    # -- what is sent

    def message(
        self, sender: int, receiver: int, size: float, time: float, waits: bool, busy: float = 0.0
    ) -> int:
        """Describe a message of which ``time`` passes after its sender was ``busy`` with it."""
        self._messages.append((time, waits, busy))
        return self._builder.message(sender, receiver, round(size))

    def each(
        self, targets: Ranks, size: float, cost: OperationCost, threads: int = 1
    ) -> dict[int, int]:
        """Describe the message of every rank that sends; gives their numbers by rank.

        One stands for those of all threads, each of which sends ``size`` bytes.
        """
        return {
            rank: self.message(
                rank,
                int(targets[rank]),
                size * threads,
                float(cost.time[rank]),
                bool(cost.waits[rank]),
                float(cost.busy[rank]),
            )
            for rank in np.flatnonzero(cost.place).tolist()
        }

    def messages_again(self, count: int, times: int) -> None:
        """Describe the last messages so many more times, numbered on."""
        self._messages.again(count, times)
        self._builder.messages_again(count, times)

    def collective(
        self, kind: str, size: float, root: int, cost: Value, team: Sequence[int]
    ) -> None:
        """Let some processes take part in a collective; none leaves before ``cost`` is paid."""
        self._collectives.append(nominal(cost))
        communicator = 0 if len(team) == self.processes else self._builder.communicator(team)
        sent, received, root_sent = amounts(kind, len(team), round(size))
        row = self._builder.collective(kind, sent, received, root, communicator, root_sent)
        for rank in team:
            self._builder.do(rank, Op.COLLECTIVE, row)

    # -- who does what

    def _do(self, op: Op, rank: int, rows: Sequence[int]) -> None:
        for row in rows:
            self._builder.do(rank, op, row)

    # a process carries out an operation on some messages, one after the other
    send = partialmethod(_do, Op.SEND)
    isend = partialmethod(_do, Op.ISEND)
    post = partialmethod(_do, Op.POST)
    receive = partialmethod(_do, Op.RECEIVE)
    wait_receive = partialmethod(_do, Op.WAIT_RECEIVE)
    wait_send = partialmethod(_do, Op.WAIT_SEND)

    def compute(self, rank: int, seconds: float) -> None:
        self._builder.compute(rank, seconds)

    def repeated(self, rank: int, times: int, step: int) -> AbstractContextManager[None]:
        """Let a process do what it does inside so often, each time on messages a step further."""
        return self._builder.repeated(rank, times, step)

    def send_all(
        self,
        targets: Ranks,
        size: float,
        cost: OperationCost,
        threads: int = 1,
        *,
        at_once: bool = True,
    ) -> None:
        """Let rank r send to ``targets[r]``, each of its threads ``size`` bytes.

        Not at once means a blocking send before the receives.
        """
        rows = self.each(targets, size, cost, threads)
        arriving: dict[int, list[int]] = {}
        for rank, row in rows.items():
            arriving.setdefault(int(targets[rank]), []).append(row)
        receives_first = set() if at_once else _one_of_each_ring(targets, cost)
        for rank in range(targets.size):
            mine, theirs = [rows[rank]] if rank in rows else [], arriving.get(rank, [])
            if at_once:
                self.post(rank, theirs)
            if rank not in receives_first:
                self.send(rank, mine)
            (self.wait_receive if at_once else self.receive)(rank, theirs)
            if rank in receives_first:
                self.send(rank, mine)

    def take(self, operations: Operations) -> None:
        self._whole = operations

    def build(self) -> Operations:
        if self._whole is not None:
            return self._whole
        program = self._builder.build()
        columns = self._messages.array()
        nothing = np.zeros(columns.shape[1])
        cost = np.array(self._collectives, dtype=np.float64) * _NS
        charges = Charges(
            transfer=columns[0] * _NS,
            rendezvous=columns[1].astype(np.uint8),
            send_overhead=columns[2] * _NS,
            receive_before=nothing,
            receive_after=nothing,
            sender_waits_for_transfer=True,
            collective_cost=cost,
            member_cost=cost,
            collective_rule=rules(program.collectives.kind, program.collectives.root >= 0, READING),
            request_cost=np.zeros(len(cost)),
        )
        return Operations(program, charges)


def _one_of_each_ring(targets: Ranks, cost: OperationCost) -> set[int]:
    """Processes that have to receive before they send.

    Where every send of a ring waits for its receive none would ever start.
    """
    reached_from: dict[int, int] = {}
    first = set()
    for start in range(targets.size):
        rank = start
        while cost.place[rank] and rank not in reached_from:
            reached_from[rank] = start
            rank = int(targets[rank])
        if cost.place[rank] and reached_from[rank] == start:
            ring = [rank]
            while int(targets[ring[-1]]) != rank:
                ring.append(int(targets[ring[-1]]))
            if cost.waits[ring].all():
                first.add(min(ring))
    return first
