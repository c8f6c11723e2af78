"""One communication of a program as operations of all its processes, for the replay.

What a message costs is what the closed form says of it (`popmodel.model.run.communication`); when
it is sent, and who waits for whom, is left to the replay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from popmodel.expressions import Expression
from popmodel.model.run.communication import ELSEWHERE, ON_NODE
from popmodel.model.run.performance import Model
from popmodel.model.signature.program import Collective, Halo, Pipeline, PointToPoint, Shift
from popmodel.model.terms import message
from popmodel.model.uncertainty import nominal
from popmodel.network import point_to_point as p2p
from popmodel.network.collectives import ROOTED
from popmodel.simulator.build import ProgramBuilder
from popmodel.simulator.charges import Charges, rules
from popmodel.simulator.program import Op, Program
from popmodel.values import dataclass

Ranks = NDArray[np.int64]
Seconds = NDArray[np.float64]
Classes = Mapping[int, Sequence[p2p.SizeClass]]

Communicating: TypeAlias = Halo | Shift | PointToPoint | Pipeline | Collective

MOST_AT_ONCE = 200_000  # operations of one communication, which are described one by one
READING = "dimemas"  # of collectives: that with which ideal runtimes are published
_TIER = {ON_NODE: "intra", ELSEWHERE: "inter"}
_NS = 1e9


class NotUnrolled(Exception):
    """A program cannot be carried out step by step; the text says why."""


@dataclass(frozen=True)
class Exchange:
    """What all processes do in one execution of a communication, and what it costs.

    Attributes
    ----------
    program : Program
        Operations; bursts are the computation of an average process among them.
    charges : Charges
        Costs of its messages and collectives.
    """

    program: Program
    charges: Charges


def exchange(model: Model, item: Communicating) -> Exchange:
    """Return the operations of a communication.

    Parameters
    ----------
    model : Model
        With numbers for its values, not draws.
    item : Item
        The communication.

    Raises
    ------
    NotUnrolled
        If it has too many operations, or blocks that are no whole number.
    """
    largest = model.placement.processes * _most_operations(model, item)
    if largest > MOST_AT_ONCE:
        raise NotUnrolled(f"too large to replay: {item.name} alone has {largest:,.0f} operations")
    script = _Script(model.placement.processes)
    match item:
        case Halo():
            _halo(model, item, script)
        case Shift():
            by, wraps = model.whole(item.by), model.communication.periodic[item.dim]
            targets = message.grid_neighbours(model.extent, item.dim, by, periodic=wraps)
            _send_all(script, targets, *_part_cost(model, item, targets))
        case PointToPoint():
            targets, at_once = model.targets(item), item.mode == "sendrecv"
            _send_all(script, targets, *_part_cost(model, item, targets), at_once=at_once)
        case Pipeline():
            _pipeline(model, item, script)
        case Collective():
            _collective(model, item, script)
    return script.exchange()


def _most_operations(model: Model, item: Communicating) -> int:
    """Operations of a process in a communication, at most."""
    match item:
        case Halo():
            return 8 * len(model.extent)
        case Pipeline():
            return 4 * len(item.dims) * repetitions(model, item.blocks, item.name)
        case _:
            return 3


def repetitions(model: Model, count: Expression, name: str) -> int:
    """Return how often something is repeated.

    Raises
    ------
    NotUnrolled
        If that is no whole number.
    """
    value = nominal(model.value(count))
    if abs(value - round(value)) > 1e-9 * max(1.0, value):
        raise NotUnrolled(f"the count of {name} is {value:g}, not a whole number")
    return round(value)


class _Script:
    """A program in the making, with what its messages and collectives cost in seconds."""

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self.builder = ProgramBuilder(processes)
        self._messages: list[tuple[float, bool, float]] = []
        self._collectives: list[float] = []

    def message(
        self, sender: int, receiver: int, size: float, time: float, waits: bool, busy: float = 0.0
    ) -> int:
        """Describe a message of which ``time`` passes after its sender was ``busy`` with it."""
        self._messages.append((time, waits, busy))
        return self.builder.message(sender, receiver, round(size))

    def collective(
        self, kind: str, size: float, root: int, cost: float, team: Sequence[int]
    ) -> int:
        """Describe a collective of some processes, of which none leaves before ``cost`` is paid."""
        self._collectives.append(cost)
        sent = round(size)
        communicator = 0 if len(team) == self.processes else self.builder.communicator(team)
        return self.builder.collective(kind, sent, sent, root, communicator, sent)

    def busy(self, row: int) -> float:
        """Time in which the sender of a message is busy with it, s."""
        return self._messages[row][2]

    def exchange(self) -> Exchange:
        program = self.builder.build()
        columns = np.array(self._messages, dtype=np.float64).reshape(-1, 3).T
        nothing = np.zeros(len(self._messages))
        cost = np.array(self._collectives, dtype=np.float64) * _NS
        charges = Charges(
            transfer=columns[0] * _NS,
            rendezvous=columns[1].astype(np.uint8),
            send_overhead=columns[2] * _NS,
            receive_before=nothing,
            sender_waits_for_transfer=True,
            collective_cost=cost,
            member_cost=cost,
            collective_rule=rules(program.collectives, READING),
            request_cost=np.zeros(len(cost)),
        )
        return Exchange(program, charges)


def _messages(script: _Script, targets: Ranks, size: float, cost: _Cost) -> dict[int, int]:
    """Describe the message of every rank that sends; gives their numbers by rank."""
    return {
        rank: script.message(
            rank,
            int(targets[rank]),
            size,
            float(cost.time[rank]),
            bool(cost.waits[rank]),
            float(cost.busy[rank]),
        )
        for rank in np.flatnonzero(cost.place).tolist()
    }


def _send_all(
    script: _Script, targets: Ranks, size: float, cost: _Cost, *, at_once: bool = True
) -> None:
    """Let rank r send to ``targets[r]``; not at once means a blocking send before the receives."""
    rows = _messages(script, targets, size, cost)
    arriving: dict[int, list[int]] = {}
    for rank, row in rows.items():
        arriving.setdefault(int(targets[rank]), []).append(row)
    do = script.builder.do
    receives_first = set() if at_once else _one_of_each_ring(targets, cost)
    for rank in range(targets.size):
        mine, theirs = rows.get(rank), arriving.get(rank, ())
        if at_once:
            for row in theirs:
                do(rank, Op.POST, row)
        if mine is not None and rank not in receives_first:
            do(rank, Op.SEND, mine)
        for row in theirs:
            do(rank, Op.WAIT_RECEIVE if at_once else Op.RECEIVE, row)
        if mine is not None and rank in receives_first:
            do(rank, Op.SEND, mine)


def _one_of_each_ring(targets: Ranks, cost: _Cost) -> set[int]:
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


@dataclass(frozen=True)
class _Cost:
    """Of the message that each rank sends.

    Attributes
    ----------
    place : int8[P]
        Where it goes.
    time : float64[P]
        How long it is on its way, s.
    waits : bool[P]
        Whether its sender waits for the receiver.
    busy : float64[P]
        How long its sender is busy before it leaves, s.
    """

    place: NDArray[np.int8]
    time: Seconds
    waits: NDArray[np.bool_]
    busy: Seconds


def _cost(model: Model, place: NDArray[np.int8], size: float, classes: Classes) -> _Cost:
    time = np.zeros(place.shape)
    waits = np.zeros(place.shape, dtype=bool)
    for tier in (ON_NODE, ELSEWHERE):
        mine = place == tier
        if mine.any():
            time[mine] = nominal(p2p.by_size(size, classes[tier]))
            waits[mine] = p2p.waits_for_receiver(size, _threshold(model, tier))
    return _Cost(place, time, waits, np.zeros(place.shape))


def _part_cost(model: Model, item: Shift | PointToPoint, targets: Ranks) -> tuple[float, _Cost]:
    """Bytes and cost of what one of the threads of a process sends; they send at the same time."""
    threads = model.comm_threads(item)
    size = nominal(model.amount(item, "bytes")) / threads
    return size, _pattern_cost(model, targets, size, threads)


def _pattern_cost(model: Model, targets: Ranks, size: float, threads: int = 1) -> _Cost:
    """Cost of a communication in which rank r sends to ``targets[r]``."""
    communication = model.communication
    where = message.traffic(targets, model.placement.per_node)
    classes = {
        ON_NODE: communication.within(where.staying, threads) if where.staying else [],
        ELSEWHERE: communication.between(where.leaving, threads) if where.leaving else [],
    }
    return _cost(model, communication.places([targets])[0], size, classes)


def _threshold(model: Model, tier: int) -> float:
    return nominal(p2p.eager_threshold(model.parameters.get(f"net.{_TIER[tier]}.eager_threshold")))


def _halo(model: Model, item: Halo, script: _Script) -> None:
    communication = model.communication
    sizes = [nominal(size) for size in model.face_bytes(item)]
    exposed = 1 - nominal(model.amount(item, "overlap"))
    threads = model.comm_threads(item)
    towards, places, classes = communication.around(threads)
    if item.mode == "blocking":
        sizes = [size / threads for size in sizes]
        costs = [
            _cost(model, place, sizes[dim], classes)
            for (dim, _), place in zip(towards, places, strict=True)
        ]
        shorter = [replace(cost, time=exposed * cost.time) for cost in costs]
        _one_partner_at_a_time(model, script, towards, sizes, shorter)
        return
    count, ranks = len(towards), np.arange(places.shape[1])
    arriving = np.zeros_like(places)
    for index, (_, targets) in enumerate(towards):
        sending = places[index] > 0
        arriving[index, targets[sending]] = places[index, sending]
    in_order = [sizes[dim] for dim, _ in towards]
    departed, arrived = (
        _through_ports(model, where, in_order, classes, threads) for where in (places, arriving)
    )
    rows = np.full((count, ranks.size), -1)
    received: list[list[int]] = [[] for _ in ranks]
    for index, (dim, targets) in enumerate(towards):
        for rank in np.flatnonzero(places[index]).tolist():
            target = int(targets[rank])
            time = exposed * max(departed[index, rank], arrived[index, target])
            waits = p2p.waits_for_receiver(sizes[dim], _threshold(model, int(places[index, rank])))
            rows[index, rank] = script.message(rank, target, sizes[dim], time, waits)
            received[target].append(int(rows[index, rank]))
    do = script.builder.do
    for rank in ranks.tolist():
        sent = [int(row) for row in rows[:, rank] if row >= 0]
        for op, messages in (
            (Op.POST, received[rank]),
            (Op.ISEND, sent),
            (Op.WAIT_RECEIVE, received[rank]),
            (Op.WAIT_SEND, sent),
        ):
            for row in messages:
                do(rank, op, row)


def _one_partner_at_a_time(
    model: Model,
    script: _Script,
    towards: Sequence[tuple[int, Ranks]],
    sizes: Sequence[float],
    costs: Sequence[_Cost],
) -> None:
    """Let every process exchange with each of its neighbours in turn.

    Even and odd coordinates start on different sides, so that nobody waits for a whole line.
    """
    rows = [
        _messages(script, targets, sizes[dim], cost)
        for (dim, targets), cost in zip(towards, costs, strict=True)
    ]
    ranks = np.arange(model.placement.processes)
    coordinates = np.unravel_index(ranks, model.extent)
    do = script.builder.do
    for dim in range(len(model.extent)):
        down, up = 2 * dim, 2 * dim + 1  # directions, as `Communication.around` has them
        for rank in ranks.tolist():
            sides = (up, down) if coordinates[dim][rank] % 2 == 0 else (down, up)
            for side in sides:
                if rank not in rows[side]:
                    continue
                opposite = down if side == up else up
                received = rows[opposite][int(towards[side][1][rank])]
                do(rank, Op.POST, received)
                do(rank, Op.SEND, rows[side][rank])
                do(rank, Op.WAIT_RECEIVE, received)


def _through_ports(
    model: Model,
    places: NDArray[np.int8],
    sizes: Sequence[float],
    classes: Classes,
    threads: int,
) -> Seconds:
    """Time of every message through the port of its process, shape (directions, P)."""
    time = np.zeros(places.shape)
    patterns, which = np.unique(places, axis=1, return_inverse=True)
    for index, pattern in enumerate(patterns.T):
        found = model.communication.through_port(pattern, sizes, classes, threads)
        for direction, value in found.items():
            time[direction, which.ravel() == index] = nominal(value)
    return time


def _pipeline(model: Model, item: Pipeline, script: _Script) -> None:
    """Let every process receive a block, compute and send, block by block.

    A short message keeps its sender busy as long as it takes; of several, the slowest does.
    """
    extent = model.extent
    processes = model.placement.processes
    blocks = repetitions(model, item.blocks, item.name)
    block = nominal(model.amount(item, "seconds")) / blocks
    size = nominal(model.amount(item, "bytes"))
    towards = [
        message.grid_neighbours(extent, dim, 1, periodic=False)
        for dim in item.dims
        if extent[dim] > 1
    ]
    costs = _slowest_busy([_pattern_cost(model, targets, size) for targets in towards])
    builder, do = script.builder, script.builder.do
    sources = [
        {int(targets[rank]): rank for rank in np.flatnonzero(cost.place).tolist()}
        for targets, cost in zip(towards, costs, strict=True)
    ]
    block_messages = [
        [
            _messages(script, targets, size, cost)
            for targets, cost in zip(towards, costs, strict=True)
        ]
        for _ in range(blocks)
    ]
    for rank in range(processes):
        received = [
            [row[source[rank]] for row, source in zip(rows, sources, strict=True) if rank in source]
            for rows in block_messages
        ]
        for row in received[0]:
            do(rank, Op.POST, row)
        for turn, rows in enumerate(block_messages):
            for row in received[turn]:
                do(rank, Op.WAIT_RECEIVE, row)
            builder.compute(rank, block)
            # posted before the block is sent, so that both messages move at the same time
            for row in received[turn + 1] if turn + 1 < blocks else ():
                do(rank, Op.POST, row)
            # the one that keeps the sender busy goes last, lest the others leave after it
            sent = sorted((of[rank] for of in rows if rank in of), key=script.busy)
            for op in (Op.ISEND, Op.WAIT_SEND):
                for row in sent:
                    do(rank, op, row)


def _slowest_busy(costs: Sequence[_Cost]) -> list[_Cost]:
    """Let the slowest message of each sender, unless it waits, keep it busy all its time."""
    if not costs:
        return []
    slowest = np.array([cost.time for cost in costs]).argmax(axis=0)
    kept = [(slowest == index) & ~cost.waits for index, cost in enumerate(costs)]
    return [
        replace(cost, time=np.where(keeps, 0.0, cost.time), busy=np.where(keeps, cost.time, 0.0))
        for cost, keeps in zip(costs, kept, strict=True)
    ]


def _collective(model: Model, item: Collective, script: _Script) -> None:
    size = nominal(model.amount(item, "bytes"))
    root = model.root(item)
    for ranks, cost in model.communication.in_teams(item.op, size, item.comm):
        team = ranks.tolist()
        row = script.collective(
            item.op, size, team[root] if item.op in ROOTED else -1, nominal(cost), team
        )
        for rank in team:
            script.builder.do(rank, Op.COLLECTIVE, row)
