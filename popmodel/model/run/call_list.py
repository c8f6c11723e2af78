"""A list of calls of MPI, carried out: who sends what to whom, and in which order.

Calls are given by row, each with its values for all ranks. A repeated row is described once. The
k-th send from a to b with a tag meets the k-th receive of b from a with it; every request is
completed in the list. All of that is checked for the number of processes at hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from popmodel.base.arrays import numbered
from popmodel.base.expressions.elementary import Value
from popmodel.base.values import NamedTuple, dataclass
from popmodel.model.run.operations import ELSEWHERE, NOWHERE, ON_NODE, TIERS, RunMessages
from popmodel.model.uncertainty import nominal
from popmodel.network import point_to_point as p2p
from popmodel.simulator.costs import Charges, core, costs
from popmodel.simulator.program import Collectives, Op, Program
from popmodel.simulator.program import ProgramMessages as Sent

SENDS, RECEIVES = ("send", "isend", "sendrecv"), ("recv", "irecv", "sendrecv")
OPENS, WAITS = ("isend", "irecv"), ("wait", "waitall")
MOST_CALLS = 20_000_000
"""Calls of all processes that are carried out."""
_SUB = {"send": 0, "isend": 0, "recv": 0, "irecv": 0, "sendrecv": 1}
_OPS = {"send": Op.SEND, "isend": Op.ISEND, "sendrecv": Op.SEND}
_ENDS = {"recv": Op.RECEIVE, "irecv": Op.POST, "sendrecv": Op.POST}


# The rows of a list of calls of MPI, with their values for every rank.


Ranks = NDArray[np.int64]

CALLS = ("send", "recv", "isend", "irecv", "sendrecv", "wait", "waitall", "compute")
"""What a row may do."""


class CallError(Exception):
    """A list of calls cannot be carried out: which row, and why."""

    def __init__(self, row: int | None, problem: str) -> None:
        super().__init__(problem)
        self.row = row
        self.problem = problem


class CallRow(NamedTuple):
    """A call, with its values for every rank."""

    number: int  # Its own
    do: str  # One of `CALLS`
    on: NDArray[np.bool_]  # bool[P]: Who carries it out
    # int64[P]: Partners; one outside 0..P-1 is none, and the call has no message.
    to: Ranks
    source: Ranks
    # int64[P]: Bytes that are sent, and that are received where the row says so; -1 where it does
    # not.
    size: Ranks
    accepted: Ranks
    # int64[P]: Tag of the messages; of a wait, which open request it is for, 0 for the oldest.
    tag: Ranks
    which: Ranks


class RowRepeat(NamedTuple):
    """Rows that are carried out several times."""

    times: int
    rows: tuple[CallRow | RowRepeat, ...]


Rows: TypeAlias = "tuple[CallRow | RowRepeat, ...]"


# Carried out: messages and computations of all processes.


@dataclass(frozen=True)
class ListExchange:
    """Messages of a list, by number."""

    # int64[M]: Who sends how many bytes to whom.
    sender: Ranks
    receiver: Ranks
    size: Ranks
    tag: Ranks
    # int64[M]: Places of the calls that send it and that post its receive.
    sent: Ranks
    received: Ranks
    # int64[M]: Groups of messages that a process sends, or receives, at once: those that one call
    # completes.
    sent_by: Ranks
    received_by: Ranks

    def __len__(self) -> int:
        return self.sender.size


class ListPlan(NamedTuple):
    """What all processes do in one execution of a list."""

    offsets: Ranks  # int64[P + 1]: Operations of process p are ``offsets[p] .. offsets[p + 1]``
    kind: NDArray[np.uint8]  # uint8[N]: `Op` of each operation
    target: Ranks  # int64[N]: Its message
    row: Ranks  # int64[N]: Row that it comes from
    messages: ListExchange  # What is sent
    # int64[C]: Computations: their rows, processes, and the operation before which they are; -1
    # where none follows.
    computing: Ranks
    process: Ranks
    where: Ranks

    @property
    def processes(self) -> int:
        return self.offsets.size - 1

    @property
    def operations(self) -> int:
        return self.kind.size

    def executions(self, rows: int) -> Ranks:
        """Return how often each process carries out each computation, shape (rows, P)."""
        size = rows * self.processes
        found = np.bincount(self.computing * self.processes + self.process, minlength=size)
        return found.reshape(rows, self.processes)


def carried_out(rows: Rows, processes: int) -> ListPlan:
    """Carry out a list of calls on all processes."""
    leaves: list[CallRow] = []
    order = np.array(_order(rows, leaves, processes), dtype=np.int64)
    turns = _turns(order, len(leaves))
    length = max(order.size, 1)
    sends, receives = _sides(leaves, turns, processes)
    numbers = _matched(sends, receives)
    closed, place = _closed(leaves, order, processes)
    named = np.array([leaf.number for leaf in leaves], dtype=np.int64)[order]
    parts: list[tuple[Ranks, ...]] = []  # rank, turn, place in its call, kind, message, row
    groups = []
    for side, message, wait in zip(
        (sends, receives), numbers, (Op.WAIT_SEND, Op.WAIT_RECEIVE), strict=True
    ):
        first = np.where(side.op == Op.SEND, side.sub, 0)
        parts.append((side.rank, side.turn, first, side.op, message, side.row))
        opened, both = np.flatnonzero(side.opens), np.flatnonzero(side.is_both)
        rank, turn = side.rank[opened], side.turn[opened]
        at = closed[turn, rank]
        kind = np.full(opened.size, wait)
        parts.append((rank, at, place[turn, rank], kind, message[opened], named[at]))
        rank, turn, last = side.rank[both], side.turn[both], np.full(both.size, 2)
        parts.append((rank, turn, last, np.full(both.size, wait), message[both], side.row[both]))
        ends = side.turn.copy()
        ends[opened] = at
        groups.append(side.rank * length + ends)
    rank, turn, sub, kind, target, row = _columns(parts, 6)
    width = int(sub.max(initial=0)) + 1
    key = (rank * length + turn) * width + sub
    sort = np.argsort(key, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rank, minlength=processes))])
    computing, process, where = _computations(leaves, turns, processes)
    at = np.searchsorted(key[sort], (process * length + where) * width)
    left, right = (np.argsort(message) for message in numbers)
    exchanged = ListExchange(
        sends.rank[left],
        sends.partner[left],
        sends.size[left],
        sends.tag[left],
        sends.turn[left],
        receives.turn[right],
        groups[0][left],
        groups[1][right],
    )
    return ListPlan(
        offsets.astype(np.int64),
        kind[sort].astype(np.uint8),
        target[sort],
        row[sort],
        exchanged,
        computing,
        process,
        np.where(at < offsets[process + 1], at, -1),
    )


def _order(rows: Rows, leaves: list[CallRow], processes: int) -> list[int]:
    """Rows in the order in which they are carried out, by their index in ``leaves``."""
    found: list[int] = []
    for one in rows:
        if isinstance(one, RowRepeat):
            inside = _order(one.rows, leaves, processes)
            if len(inside) * one.times * processes > MOST_CALLS:
                raise CallError(None, f"has more than {MOST_CALLS:,} calls of all processes")
            found += inside * one.times
        else:
            found.append(len(leaves))
            leaves.append(one)
    return found


def _turns(order: Ranks, count: int) -> list[Ranks]:
    """When each row is carried out: its places in the order."""
    sort = np.argsort(order, kind="stable")
    return np.split(sort, np.cumsum(np.bincount(order, minlength=count))[:-1]) if count else []


class _ListSide(NamedTuple):
    """Sends or receives of a list: a row for each message."""

    rank: Ranks
    partner: Ranks
    tag: Ranks
    turn: Ranks
    size: Ranks
    op: Ranks
    sub: Ranks
    row: Ranks

    @property
    def opens(self) -> NDArray[np.bool_]:
        """Whether a request is left open."""
        found: NDArray[np.bool_] = (self.op == Op.ISEND) | (self.op == Op.POST) & (self.sub == 0)
        return found

    @property
    def is_both(self) -> NDArray[np.bool_]:
        """Whether it is the receive of a call that sends as well."""
        found: NDArray[np.bool_] = (self.op == Op.POST) & (self.sub == 1)
        return found


def _sides(
    leaves: Sequence[CallRow], turns: list[Ranks], processes: int
) -> tuple[_ListSide, _ListSide]:
    def side(does: Sequence[str], *, sends: bool) -> _ListSide:
        found: list[tuple[Ranks, ...]] = []
        for row, when in zip(leaves, turns, strict=True):
            if row.do not in does:
                continue
            partner = row.to if sends else row.source
            rank = np.flatnonzero(row.on & (partner >= 0) & (partner < processes))
            count = when.size * rank.size
            size = row.size if sends else row.accepted
            of_rank = (np.tile(one, when.size) for one in (rank, partner[rank], row.tag[rank]))
            op = (_OPS if sends else _ENDS)[row.do]
            of_row = (np.full(count, one) for one in (op, _SUB[row.do], row.number))
            turn = np.repeat(when, rank.size)
            found.append((*of_rank, turn, np.tile(size[rank], when.size), *of_row))
        return _ListSide(*_columns(found, len(_ListSide._fields)))

    return side(SENDS, sends=True), side(RECEIVES, sends=False)


def _matched(sends: _ListSide, receives: _ListSide) -> tuple[Ranks, Ranks]:
    """Number of the message of every send and every receive."""
    one = np.lexsort((sends.turn, sends.tag, sends.partner, sends.rank))
    other = np.lexsort((receives.turn, receives.tag, receives.rank, receives.partner))
    left = np.stack([sends.rank, sends.partner, sends.tag])[:, one]
    right = np.stack([receives.partner, receives.rank, receives.tag])[:, other]
    common = min(one.size, other.size)
    differ = np.flatnonzero((left[:, :common] != right[:, :common]).any(axis=0))
    if differ.size or one.size != other.size:
        at = int(differ[0]) if differ.size else common
        is_send = at >= other.size or (at < one.size and tuple(left[:, at]) < tuple(right[:, at]))
        sender, receiver, tag = (left if is_send else right)[:, at].tolist()
        row = int((sends.row[one] if is_send else receives.row[other])[at])
        what = f"from rank {sender} to rank {receiver} with tag {tag}"
        if is_send:
            raise CallError(row, f"sends a message {what} that nobody receives")
        raise CallError(row, f"receives a message {what} that nobody sends")
    accepted, size = receives.size[other], sends.size[one]
    wrong = np.flatnonzero((accepted >= 0) & (accepted != size))
    if wrong.size:
        at = int(wrong[0])
        sender, receiver, _ = left[:, at].tolist()
        raise CallError(
            int(receives.row[other][at]),
            f"receives {accepted[at]} bytes on rank {receiver}, rank {sender} sends {size[at]}",
        )
    message, numbers = np.empty(one.size, np.int64), np.empty(other.size, np.int64)
    message[one] = numbers[other] = np.arange(one.size)
    return message, numbers


def _closed(leaves: Sequence[CallRow], order: Ranks, processes: int) -> tuple[Ranks, Ranks]:
    """Find in which turn each rank completes the request that it opens in a turn.

    With it, which one of that call it is; both of shape (turns, P), -1 where nothing is opened.
    """
    closed = np.full((order.size, processes), -1)
    place = np.full_like(closed, -1)
    asking = [index for index, row in enumerate(leaves) if row.do in OPENS + WAITS]
    if not asking:
        return closed, place
    # once for all ranks that do the same; one that takes part is told apart by what it waits for
    what = np.stack([np.where(leaves[index].on, leaves[index].which, -1) for index in asking])
    kinds, group = np.unique(what, axis=1, return_inverse=True)
    for number, kind in enumerate(kinds.T):
        ranks = np.flatnonzero(group.ravel() == number)
        which = np.full(len(leaves), -1)
        which[asking] = kind
        completed = list(_completed(leaves, order, which, int(ranks[0])))
        opened, turn, sub = np.array(completed, dtype=np.int64).reshape(-1, 3).T
        closed[np.ix_(opened, ranks)] = turn[:, None]
        place[np.ix_(opened, ranks)] = sub[:, None]
    return closed, place


def _completed(
    leaves: Sequence[CallRow], order: Ranks, which: Ranks, rank: int
) -> Iterator[tuple[int, int, int]]:
    """Requests that a rank completes: when they were opened, when completed, and which it is."""
    opened: list[int] = []
    for turn in np.flatnonzero(which[order] >= 0).tolist():
        row = leaves[order[turn]]
        if row.do in OPENS:
            opened.append(turn)
            continue
        if row.do == "waitall":
            done, opened = opened, []
        else:
            index = int(which[order[turn]])
            if index >= len(opened):
                raise CallError(
                    row.number,
                    f"waits for a request that is not open on rank {rank}: "
                    f"{len(opened)} of them are",
                )
            done = [opened.pop(index)]
        yield from ((at, turn, sub) for sub, at in enumerate(done))
    if opened:
        raise CallError(
            leaves[order[opened[0]]].number,
            f"leaves a request open at the end of the list on rank {rank}",
        )


def _computations(
    leaves: Sequence[CallRow], turns: list[Ranks], processes: int
) -> tuple[Ranks, Ranks, Ranks]:
    """Computations: rows, processes, and when."""
    found = [
        (
            np.full(when.size * ranks.size, row.number),
            np.tile(ranks, when.size),
            np.repeat(when, ranks.size),
        )
        for row, when in zip(leaves, turns, strict=True)
        if row.do == "compute"
        for ranks in [np.flatnonzero(row.on[:processes])]
    ]
    rows, process, where = _columns(found, 3)
    return rows, process, where


def _columns(parts: Sequence[tuple[Ranks, ...]], count: int) -> tuple[Ranks, ...]:
    """Put tables of some columns below each other; there may be none."""
    none = [np.empty((count, 0), np.int64)]
    return tuple(
        np.concatenate([*none, *(np.stack(one) for one in parts)], axis=1).astype(np.int64)
    )


# What the messages of a list cost. Those that one call completes follow each other through the port
# of a process: one latency, and the time that each takes for its bytes.


Seconds = NDArray[np.float64]
_NS = 1e9


@dataclass(frozen=True)
class Priced:
    """Messages of a list with what they cost; best estimates. Made by `Priced.of`."""

    exchanged: ListExchange  # The messages
    where: RunMessages  # Processes on nodes
    place: Ranks  # int64[M]: Where each goes; a message of a process to itself goes nowhere
    kind: Ranks  # int64[M]: Row of ``sizes`` and ``places``
    # int64[K]: Different sizes and places.
    sizes: Ranks
    places: Ranks
    # float64[M]: Time of an empty message, and what its bytes add, s.
    latency: Seconds
    gap: Seconds
    waits: NDArray[np.bool_]  # bool[M]: Whether a blocking send of it waits for its receive

    @staticmethod
    def of(exchanged: ListExchange, where: RunMessages) -> Priced:
        """Find what messages cost on a placement."""
        sender, receiver, nodes = exchanged.sender, exchanged.receiver, where.nodes
        place = np.where(nodes[sender] == nodes[receiver], ON_NODE, ELSEWHERE)
        place[sender == receiver] = NOWHERE
        width = ELSEWHERE + 1
        pairs, kind = numbered(exchanged.size * width + place)
        sizes, places = np.divmod(pairs, width)
        nothing, each = np.zeros(place.size), kind.ravel()
        costs_nothing = (nothing, nothing, np.zeros(place.size, dtype=bool))
        found = Priced(exchanged, where, place, each, sizes, places, *costs_nothing)
        latency, whole = np.zeros(sizes.size), np.zeros(sizes.size)
        waits = np.zeros(sizes.size, dtype=bool)
        for tier, classes in found.classes().items():
            mine = places == tier
            largest = where.parameters.get(f"net.{TIERS[tier]}.eager_threshold")
            waits[mine] = p2p.waits_for_receiver(sizes[mine], nominal(p2p.eager_threshold(largest)))
            best = [_best(one) for one in classes]
            latency[mine] = p2p.by_size(0, best)
            whole[mine] = p2p.by_size(sizes[mine].astype(np.float64), best)
        gap = whole - latency
        return replace(found, latency=latency[each], gap=gap[each], waits=waits[each])

    def classes(self) -> dict[int, list[p2p.SizeClass]]:
        staying, leaving = (self._flows(place) for place in (ON_NODE, ELSEWHERE))
        return self.where.classes(staying, leaving)

    def _flows(self, place: int) -> int:
        """Processes of a node that send to a place, at most."""
        senders = np.unique(self.exchanged.sender[self.place == place])
        return int(np.bincount(self.where.nodes[senders]).max(initial=0))

    def times(self) -> Seconds:
        """Return how long each message is on its way, behind those that are sent before it."""
        sides = (
            (self.exchanged.sent_by, self.exchanged.sent),
            (self.exchanged.received_by, self.exchanged.received),
        )
        queued = [_queued(group, turn, self.gap) for group, turn in sides]
        found: Seconds = self.latency + np.maximum(*queued)
        return found

    def slowest(self) -> Value:
        """Return the time that the process takes for its messages which has the most of them."""
        sent, received = self.exchanged.sender, self.exchanged.receiver
        sides = [(sent, self.exchanged.sent_by), (received, self.exchanged.received_by)]
        firsts = [_furthest(group, self.place) for _, group in sides]
        processes = self.where.placement.processes
        spent = np.stack(
            [
                np.bincount(rank, self.gap, processes)
                + np.bincount(rank[first], self.latency[first], processes)
                for (rank, _), first in zip(sides, firsts, strict=True)
            ]
        )
        side, slowest = np.unravel_index(int(spent.argmax()), spent.shape)
        rank, first = sides[int(side)][0], firsts[int(side)]
        count = np.bincount(self.kind[rank == slowest], minlength=self.sizes.size)
        once = np.bincount(self.place[first][rank[first] == slowest], minlength=ELSEWHERE + 1)
        return self._time(count, once)

    def _time(self, count: Ranks, once: Ranks) -> Value:
        """Time of so many messages of each kind, with so many latencies of each place."""
        total: Value = 0.0
        for tier, classes in self.classes().items():
            mine = np.flatnonzero((self.places == tier) & (count > 0))
            if not mine.size:
                continue
            sizes = self.sizes[mine]
            self.where.use(tier, float(sizes.max()))
            self.where.use(tier, float(sizes.min()))
            latency = p2p.by_size(0, classes)
            total = total + float(once[tier]) * latency
            for size, times in zip(sizes.tolist(), count[mine].tolist(), strict=True):
                total = total + float(times) * (p2p.by_size(float(size), classes) - latency)
        return total


def _best(one: p2p.SizeClass) -> p2p.SizeClass:
    """Return a size class of best estimates."""
    upto = None if one.upto is None else nominal(one.upto)
    return p2p.SizeClass(upto, nominal(one.alpha), nominal(one.beta))


def _queued(group: Ranks, turn: Ranks, gap: Seconds) -> Seconds:
    """Sum of the gaps of the messages of a group up to each one."""
    order = np.lexsort((turn, group))
    total = np.cumsum(gap[order])
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    before = np.repeat(total[starts] - gap[order][starts], np.diff(starts, append=group.size))
    found = np.empty_like(gap)
    found[order] = total - before
    return found


def _furthest(group: Ranks, place: Ranks) -> Ranks:
    """Return one message of each group, of those that go furthest."""
    order = np.lexsort((place, group))
    last: Ranks = order[np.flatnonzero(np.diff(group[order], append=-1))]
    return last


def program(plan: ListPlan, priced: Priced) -> tuple[Program, Charges]:
    """Return what all processes do as a program in which nothing is computed, and its charges."""
    sent, count = plan.messages, len(plan.messages)
    zeros, none = np.zeros(count), np.empty(0, np.int64)
    names = tuple(op.name.lower() for op in Op)
    made = Program(
        offsets=plan.offsets,
        kind=plan.kind,
        target=plan.target.astype(np.int32),
        burst=np.zeros(plan.operations),
        tail=np.zeros(plan.processes),
        messages=Sent(
            sent.sender.astype(np.int32),
            sent.receiver.astype(np.int32),
            sent.size,
            sent.tag,
            np.zeros(count, np.int8),
        ),
        collectives=Collectives(
            none.astype(np.int8),
            none,
            none.astype(np.int32),
            none.astype(np.int32),
            none,
            none,
            none,
            none.astype(bool),
        ),
        call=np.arange(plan.operations, dtype=np.int32),
        call_name=names,
        call_code=plan.kind.astype(np.int32),
        call_time=np.zeros(plan.operations, np.int64),
        communicators={0: np.arange(plan.processes, dtype=np.int32)},
        nodes=np.zeros(plan.processes, np.int32),
    )
    charges = Charges(
        transfer=priced.times() * _NS,
        rendezvous=priced.waits.astype(np.uint8),
        send_overhead=zeros,
        receive_before=zeros,
        receive_after=zeros,
        sender_waits_for_transfer=True,
        collective_cost=np.empty(0),
        member_cost=np.empty(0),
        collective_rule=np.empty(0, np.uint8),
        request_cost=np.empty(0),
    )
    return made, charges


def stuck(plan: ListPlan, priced: Priced) -> tuple[int, int] | None:
    """Return a process that waits forever, and the row of its call; None if all come to the end."""
    made, charges = program(plan, priced)
    messages = np.arange(len(plan.messages), dtype=np.int32)
    lanes = costs([charges], [np.ones(plan.processes)])
    _, at = core(made, messages, np.empty(0, np.int32)).run(lanes, None)
    waiting = np.flatnonzero(at < plan.offsets[1:])
    if not waiting.size:
        return None
    process = int(waiting[0])
    return process, int(plan.row[at[process]])
