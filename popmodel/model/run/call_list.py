"""A list of calls of MPI, carried out: who sends what to whom, and in which order.

Calls are given by row, each with its values for all ranks. A repeated row is described once. The
k-th send from a to b with a tag meets the k-th receive of b from a with it; every request is
completed in the list. All of that is checked for the number of processes at hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from popmodel.base.values import NamedTuple, dataclass
from popmodel.simulator.program import Op

SENDS, RECEIVES = ("send", "isend", "sendrecv"), ("recv", "irecv", "sendrecv")
OPENS, WAITS = ("isend", "irecv"), ("wait", "waitall")
MOST_CALLS = 20_000_000
"""Calls of all processes that are carried out."""
_SUB = {"send": 0, "isend": 0, "recv": 0, "irecv": 0, "sendrecv": 1}
_OPS = {"send": Op.SEND, "isend": Op.ISEND, "sendrecv": Op.SEND}
_ENDS = {"recv": Op.RECEIVE, "irecv": Op.POST, "sendrecv": Op.POST}


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
