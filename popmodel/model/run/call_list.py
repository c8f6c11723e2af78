"""A list of calls of MPI, carried out: who sends what to whom, and in which order.

Calls are given by row, each with its values for all ranks. A repeated row is described once. The
k-th send from a to b with a tag meets the k-th receive of b from a with it; every request is
completed in the list. All of that is checked for the number of processes at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    message, numbers = _matched(sends, receives)
    waits = _waits(leaves, order)
    sent_at, received_at = (_Lookup.of(side, processes) for side in (sends, receives))
    waited = _completed(waits, (sent_at, message), (received_at, numbers))
    both = np.flatnonzero(receives.is_both)
    rank = np.concatenate([sends.rank, receives.rank, receives.rank[both], waited.rank])
    turn = np.concatenate([sends.turn, receives.turn, receives.turn[both], waited.turn])
    first, last = np.zeros(receives.rank.size, np.int64), np.full(both.size, 2)
    sub = np.concatenate([sends.sub, first, last, waited.sub])
    ended = np.full(both.size, Op.WAIT_RECEIVE)
    kind = np.concatenate([sends.op, receives.op, ended, waited.kind]).astype(np.uint8)
    target = np.concatenate([message, numbers, numbers[both], waited.message])
    named = np.array([leaf.number for leaf in leaves], dtype=np.int64)[order]
    row = np.concatenate([sends.row, receives.row, receives.row[both], named[waited.turn]])
    width = int(sub.max(initial=0)) + 1
    key = (rank * length + turn) * width + sub
    sort = np.argsort(key, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rank, minlength=processes))])
    sent_by = _groups(sends, message, waited, Op.WAIT_SEND, length)
    received_by = _groups(receives, numbers, waited, Op.WAIT_RECEIVE, length)
    computing, process, where = _computations(leaves, turns, processes)
    at = np.searchsorted(key[sort], (process * length + where) * width)
    left, right = np.argsort(message), np.argsort(numbers)
    exchanged = ListExchange(
        sends.rank[left],
        sends.partner[left],
        sends.size[left],
        sends.tag[left],
        sends.turn[left],
        receives.turn[right],
        sent_by[left],
        received_by[right],
    )
    return ListPlan(
        offsets.astype(np.int64),
        kind[sort],
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


class _Waits(NamedTuple):
    """Requests that some ranks complete alike: in which turn which turns' requests, one by one."""

    ranks: Ranks
    turn: Ranks
    opened: Ranks
    sub: Ranks


def _waits(leaves: Sequence[CallRow], order: Ranks) -> list[_Waits]:
    """Find which requests each wait completes, once for all ranks that do the same."""
    asking = [index for index, row in enumerate(leaves) if row.do in OPENS + WAITS]
    if not asking:
        return []
    # a rank that takes part is told apart by which request it waits for
    what = np.stack([np.where(leaves[index].on, leaves[index].which, -1) for index in asking])
    kinds, group = np.unique(what, axis=1, return_inverse=True)
    found = []
    for number, kind in enumerate(kinds.T):
        ranks = np.flatnonzero(group.ravel() == number)
        which = np.full(len(leaves), -1)
        which[asking] = kind
        found.append(_of_group(leaves, order, which, ranks))
    return found


def _of_group(leaves: Sequence[CallRow], order: Ranks, which: Ranks, ranks: Ranks) -> _Waits:
    opened: list[int] = []
    turns: list[int] = []
    of: list[int] = []
    subs: list[int] = []
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
                    f"waits for a request that is not open on rank {ranks[0]}: "
                    f"{len(opened)} of them are",
                )
            done = [opened.pop(index)]
        turns += [turn] * len(done)
        of += done
        subs += range(len(done))
    if opened:
        raise CallError(
            leaves[order[opened[0]]].number,
            f"leaves a request open at the end of the list on rank {ranks[0]}",
        )
    return _Waits(ranks, *(np.array(one, dtype=np.int64) for one in (turns, of, subs)))


class _Lookup(NamedTuple):
    """Finds the message that a rank opened a request for in some turn."""

    keys: Ranks
    rows: Ranks
    processes: int

    @staticmethod
    def of(side: _ListSide, processes: int) -> _Lookup:
        rows = np.flatnonzero(side.opens)
        keys = side.turn[rows] * processes + side.rank[rows]
        sort = np.argsort(keys)
        return _Lookup(keys[sort], rows[sort], processes)

    def find(self, turn: Ranks, rank: Ranks) -> Ranks:
        """Row of the side, -1 where there is none."""
        wanted = turn * self.processes + rank
        if not self.keys.size:
            return np.full(wanted.shape, -1)
        at = np.minimum(np.searchsorted(self.keys, wanted), self.keys.size - 1)
        return np.where(self.keys[at] == wanted, self.rows[at], -1)


class _Waited(NamedTuple):
    """Operations that complete requests."""

    rank: Ranks
    turn: Ranks
    sub: Ranks
    kind: Ranks
    message: Ranks


def _completed(
    waits: Sequence[_Waits], sends: tuple[_Lookup, Ranks], receives: tuple[_Lookup, Ranks]
) -> _Waited:
    """Find the operations that complete the requests of each side, given its messages."""
    found: list[tuple[Ranks, ...]] = []
    for one in waits:
        rank = np.tile(one.ranks, one.turn.size)
        turn, opened, sub = (
            np.repeat(column, one.ranks.size) for column in (one.turn, one.opened, one.sub)
        )
        for (lookup, numbers), op in ((sends, Op.WAIT_SEND), (receives, Op.WAIT_RECEIVE)):
            at = lookup.find(opened, rank)
            there = at >= 0  # else a call without a message
            kind = np.full(int(there.sum()), op)
            found.append((rank[there], turn[there], sub[there], kind, numbers[at[there]]))
    return _Waited(*_columns(found, len(_Waited._fields)))


def _groups(side: _ListSide, numbers: Ranks, waited: _Waited, op: Op, length: int) -> Ranks:
    """Number the calls that complete the messages of a side, by process."""
    own: Ranks = side.rank * length + side.turn
    mine = waited.kind == op
    by_wait = np.full(numbers.size, -1)
    by_wait[waited.message[mine]] = waited.rank[mine] * length + waited.turn[mine]
    return np.where(side.opens, by_wait[numbers], own)


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
