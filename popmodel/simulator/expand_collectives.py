"""The messages of collectives as SimGrid SMPI sends them, as operations of each rank.

SMPI posts all messages of a linear algorithm at once, so that those that wait for their receiver
overlap. With its selector ``default``: Bcast by a binomial tree, Reduce, Gather and Scatter to and
from the root at once, Allreduce as Reduce and Bcast, Barrier over rank 0, Allgather and Scan to all
at once, Reduce_scatter as Reduce and Scatter, of different parts pairwise or by recursive doubling,
Alltoall by members and size as its selector ``ompi`` (all at once, pairwise, Bruck), Alltoallv at
once. With ``rdb``: Allreduce and Barrier by recursive doubling.

Source: SimGrid 3.32 to 4.1, ``src/smpi/colls`` (``smpi_default_selector.cpp``,
``smpi_nbc_impl.cpp``, ``smpi_openmpi_selector.cpp``); its runtimes are in
``tests/simulator/test_simgrid.py``.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from popmodel.base.arrays import spread
from popmodel.base.values import NamedTuple, dataclass
from popmodel.simulator.algorithms import CarriedData, carry_out
from popmodel.simulator.execution import CriticalPath, PathPart
from popmodel.simulator.program import (
    COLLECTIVES,
    Collectives,
    Op,
    Program,
    ProgramMessages,
    UnevenBytes,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


Exchange: TypeAlias = tuple[Op, int, float]
"""An operation, the rank of its partner, and which part of the collective's bytes it moves."""

# Members below which a row holds, and the sizes, B for one peer, from and below which Alltoall is
# pairwise and Bruck's; else all messages are sent at once.
_ALLTOALL = (
    (8, (2**19, 2**20), (0, 0)),
    (16, (0, 0), (0, 0)),
    (32, (0, 0), (4, 512)),
    (64, (0, 0), (0, 512)),
    (256, (2**18, math.inf), (0, 1024)),
    (512, (2**15, math.inf), (0, 1024)),
    (1024, (2**18, math.inf), (0, 512)),
    (2048, (0, 0), (0, 512)),
    (4096, (0, 0), (0, 1024)),
    (math.inf, (0, 0), (0, 2048)),
)
_DOUBLED = 1 << 19  # B of a Reduce_scatter of different parts, up to which it doubles


def operations(
    kind: str,
    members: int,
    root: int,
    rank: int,
    size: int,
    recursive_doubling: bool,
    by_peer: bool = False,
    parts: Sequence[int] = (),
) -> Iterator[Exchange]:
    """Yield the operations of a member."""
    others = [other for other in range(members) if other != rank]
    if members < 2:
        return
    if kind in ("init", "allreduce", "barrier") and recursive_doubling:
        yield from _doubling(members, rank, 1.0, adjacent=kind == "allreduce")
    elif kind in ("init", "barrier"):
        yield from _to_root(0, rank, others, 0.0)
        yield from _from_root(0, rank, others, 0.0)
    elif kind == "bcast":
        yield from _down_the_tree(members, root, rank)
    elif kind in ("reduce", "gather"):
        yield from _to_root(root, rank, others, 1.0)
    elif kind == "scatter":
        yield from _from_root(root, rank, others, 1.0)
    elif kind == "allreduce":
        yield from _to_root(0, rank, others, 1.0)
        yield from _down_the_tree(members, 0, rank)
    elif kind == "reduce_scatter" and parts:
        yield from _reduce_scatter(rank, parts)
    elif kind == "reduce_scatter":
        yield from _to_root(0, rank, others, 1.0)
        yield from _from_root(0, rank, others, 1 / members)
    elif kind == "scan":
        yield from _at_once(range(rank), range(rank + 1, members), 1.0)
    elif kind == "allgather" or by_peer:
        yield from _at_once(others, others, 1.0)
    else:
        yield from _alltoall(members, rank, others, size)


def _alltoall(members: int, rank: int, others: list[int], size: int) -> Iterator[Exchange]:
    pairwise, bruck = next(row[1:] for row in _ALLTOALL if members < row[0])
    if bruck[0] <= size < bruck[1]:
        for log in range((members - 1).bit_length()):
            parts = sum(peer >> log & 1 for peer in range(members))
            yield from _shift(members, rank, 1 << log, float(parts))
    elif pairwise[0] <= size < pairwise[1]:
        for hop in range(1, members):
            if members & (members - 1):  # SMPI has none for these, and ends with an error
                yield from _shift(members, rank, hop, 1.0)
            else:
                yield from _swap(rank ^ hop, rank ^ hop, 1.0)
    else:
        yield from _at_once(others, others, 1.0)


def _to_root(root: int, rank: int, others: list[int], part: float) -> Iterator[Exchange]:
    if rank == root:
        yield from _at_once(others, (), part)
    else:
        yield Op.SEND, root, part


def _from_root(root: int, rank: int, others: list[int], part: float) -> Iterator[Exchange]:
    if rank == root:
        yield from _at_once((), others, part)
    else:
        yield Op.RECEIVE, root, part


def _at_once(
    sources: range | list[int] | tuple[()], goals: range | list[int] | tuple[()], part: float
) -> Iterator[Exchange]:
    """Post all receives, send all, wait for all."""
    for op, partners in (
        (Op.POST, sources),
        (Op.ISEND, goals),
        (Op.WAIT_RECEIVE, sources),
        (Op.WAIT_SEND, goals),
    ):
        for partner in partners:
            yield op, partner, part


def _down_the_tree(members: int, root: int, rank: int) -> Iterator[Exchange]:
    """A binomial tree: the farthest child first."""
    place = (rank - root) % members
    hop = 1
    while hop < members and not place & hop:
        hop <<= 1
    if place:
        yield Op.RECEIVE, (place - hop + root) % members, 1.0
    while hop := hop >> 1:
        if place + hop < members:
            yield Op.SEND, (place + hop + root) % members, 1.0


def _doubling(members: int, rank: int, part: float, adjacent: bool) -> Iterator[Exchange]:
    """Recursive doubling; the surplus over a power of two folds into the first places and out.

    The surplus is every other one of the first ranks, beside its partner (adjacent), or the last.
    """
    power = 1 << (members.bit_length() - 1)
    surplus = members - power
    places: Sequence[int] = range(power)
    folded = range(power, members)
    if adjacent:
        places = [*range(1, 2 * surplus, 2), *range(2 * surplus, members)]
        folded = range(0, 2 * surplus, 2)
    if rank in folded:
        partner = places[folded.index(rank)]
        yield Op.SEND, partner, part
        yield Op.RECEIVE, partner, part
        return
    place = places.index(rank)
    if place < surplus:
        yield Op.RECEIVE, folded[place], part
    hop = 1
    while hop < power:
        partner = places[place ^ hop]
        yield from _swap(partner, partner, part)
        hop <<= 1
    if place < surplus:
        yield Op.SEND, folded[place], part


def _reduce_scatter(rank: int, parts: Sequence[int]) -> Iterator[Exchange]:
    """Of different parts: to each its own, or all but their own by recursive doubling.

    SMPI counts elements where it decides; they are taken to have one byte.
    """
    members, whole = len(parts), sum(parts)
    if whole > _DOUBLED:
        for hop in range(1, members):
            to, source = (rank + hop) % members, (rank - hop) % members
            yield from _swap(to, source, parts[to] / whole, parts[rank] / whole)
        return
    mask = 1
    while mask < members:
        other = rank ^ mask
        mine, theirs = rank // mask * mask, other // mask * mask
        out, back = (1 - sum(parts[each : each + mask]) / whole for each in (mine, theirs))
        if other < members:
            yield from _swap(other, other, out, back)
        # Of a group without all of its partners, those that heard of theirs tell the rest.
        heard, half = members - mine - mask, mask >> 1
        while theirs + mask > members and half:
            edge = rank // (2 * half) * (2 * half) + heard
            if rank < edge <= rank ^ half:
                yield Op.SEND, rank ^ half, back
            elif rank ^ half < edge <= rank:
                yield Op.RECEIVE, rank ^ half, back
            half >>= 1
        mask <<= 1


def _shift(members: int, rank: int, hop: int, part: float) -> Iterator[Exchange]:
    return _swap((rank + hop) % members, (rank - hop) % members, part)


def _swap(to: int, source: int, part: float, back: float | None = None) -> Iterator[Exchange]:
    """A Sendrecv: the receive is posted, the send blocks."""
    back = part if back is None else back
    yield Op.POST, source, back
    yield Op.SEND, to, part
    yield Op.WAIT_RECEIVE, source, back


# A program whose collectives are messages of its own, for algorithms that post several at once.
#
# The compiled engine carries a collective out one exchange after the other
# (`popmodel.simulator.algorithms`), which is all that most algorithms ask for. Those of SMPI have
# several messages under way at a time: their operations are written into the program. Collectives
# that are alike share one template.


_RECEIVES = (Op.RECEIVE, Op.POST, Op.WAIT_RECEIVE)
_BY_MEMBER = ("alltoall", "gather", "scatter", "allgather", "reduce_scatter")
_FIRST = (Op.SEND, Op.ISEND, Op.RECEIVE, Op.POST)  # these begin a message, others end it


@dataclass(frozen=True)
class LaidOut:
    """A program whose collectives, all or some of them, are messages."""

    program: Program  # The operations of the other one, those of its collectives as messages
    # int64[N]: The operation of the other program that each stems from, ascending.
    origin: NDArray[np.int64]
    # int32[M]: The collective of the other program that each message stems from; -1 of its own
    # messages.
    sent_for: NDArray[np.int32]
    stay: NDArray[np.int32]  # int32[C]: The collectives of the other program that are still there


class Amounts(NamedTuple):
    """What members of a collective have that differs, by rank; and for whom, where it is told."""

    kind: str
    sent: NDArray[np.int64]
    received: NDArray[np.int64]
    parts: NDArray[np.int64] | None

    def between(
        self, sender: NDArray[np.integer[Any]], receiver: NDArray[np.integer[Any]]
    ) -> NDArray[np.int64]:
        """Bytes of some ranks for others.

        Of an Alltoallv of which only sums are told, as the receivers share what all receive.
        """
        size: NDArray[np.int64]
        if self.kind in ("scatter", "reduce_scatter"):
            size = self.received[receiver]
        elif self.kind != "alltoall":
            size = self.sent[sender]
        elif self.parts is not None:
            size = self.parts[sender, receiver]
        else:
            share = self.received / max(int(self.received.sum()), 1)
            size = np.rint(self.sent[sender] * share[receiver]).astype(np.int64)
        return size


def uneven_amounts(program: Program, carried: CarriedData) -> dict[int, Amounts]:
    """Amounts of the members of each collective where they differ and messages carry them."""
    uneven, amounts = program.uneven, dict[int, Amounts]()
    if not len(uneven.operation):
        return amounts
    process = np.searchsorted(program.offsets, uneven.operation, side="right") - 1
    rank = _ranks(carried, uneven.collective, process)
    order = np.argsort(uneven.collective, kind="stable")
    rows, begins = np.unique(uneven.collective[order], return_index=True)
    for row, mine in zip(rows.tolist(), np.split(order, begins[1:]), strict=True):
        group = carried.group[row]
        members = int(np.diff(carried.group_offsets)[group])
        kind = COLLECTIVES[program.collectives.kind[row]]
        plain = kind == "alltoall" and not program.collectives.by_peer[row]
        if kind not in _BY_MEMBER or plain:
            continue
        sent, received = np.zeros((2, members), np.int64)
        sent[rank[mine]], received[rank[mine]] = uneven.sent[mine], uneven.received[mine]
        listed = [uneven.parts[each] for each in mine.tolist() if each in uneven.parts]
        parts = None
        if len(listed) == members:
            parts = np.empty((members, members), np.int64)
            parts[rank[mine]] = np.stack(listed)
        amounts[row] = Amounts(kind, sent, received, parts)
    return amounts


@dataclass(frozen=True)
class _Template:
    """The messages of a collective by rank, the part of its bytes that each moves, and operations.

    Those of rank r are ``offsets[r] .. offsets[r + 1]``; `target` is a row of the messages.
    """

    sender: NDArray[np.int32]
    receiver: NDArray[np.int32]
    part: NDArray[np.float64]
    offsets: NDArray[np.int64]
    kind: NDArray[np.uint8]
    target: NDArray[np.int32]


@lru_cache(maxsize=128)  # programs that differ in computing alone have the same collectives
def _template(
    kind: str,
    members: int,
    root: int,
    size: int,
    recursive_doubling: bool,
    by_peer: bool,
    parts: tuple[int, ...],
) -> _Template:
    rows: list[tuple[int, int, float]] = []
    numbers: dict[tuple[int, int, int], int] = {}
    offsets, kinds, targets = [0], list[Op](), list[int]()
    for rank in range(members):
        turns: dict[tuple[bool, bool, int], int] = defaultdict(int)
        mine = operations(kind, members, root, rank, size, recursive_doubling, by_peer, parts)
        for op, partner, part in mine:
            receives = op in _RECEIVES
            side = receives, op in _FIRST, partner
            turn = turns[side]
            turns[side] += 1
            ends = (partner, rank) if receives else (rank, partner)
            message = numbers.setdefault((*ends, turn), len(rows))
            if message == len(rows):
                rows.append((*ends, part))
            kinds.append(op)
            targets.append(message)
        offsets.append(len(kinds))
    columns = np.array(rows, np.float64).reshape(-1, 3).T
    return _Template(
        columns[0].astype(np.int32),
        columns[1].astype(np.int32),
        columns[2].copy(),
        np.array(offsets, np.int64),
        np.array(kinds, np.uint8),
        np.array(targets, np.int32),
    )


def lay_out(
    program: Program,
    recursive_doubling: bool = False,
    only: NDArray[np.bool_] | None = None,
) -> LaidOut:
    """Write the messages of collectives into a program.

    A nonblocking collective makes its exchanges where it is waited for, as in
    `popmodel.simulator.algorithms`; one that nobody waits for where it is called.
    """
    carried, _ = carry_out(program, 0)
    collectives = program.collectives
    sizes = collectives.part()
    members = np.diff(carried.group_offsets)[carried.group]
    uneven = uneven_amounts(program, carried)
    parts: dict[tuple[int, ...], int] = {(): 0}  # and their numbers
    different = np.zeros(len(collectives), np.int64)  # parts of a Reduce_scatter
    for number, amounts in uneven.items():
        if amounts.kind == "reduce_scatter":
            different[number] = parts.setdefault(tuple(amounts.received.tolist()), len(parts))
    columns = collectives.kind, members, carried.root_rank, sizes, collectives.by_peer, different
    alike = np.stack(columns, axis=1)
    distinct, which = np.unique(alike.astype(np.int64), axis=0, return_inverse=True)
    which = which.reshape(-1)
    listed = list(parts)
    templates = [
        _template(
            COLLECTIVES[kind], count, root, size, recursive_doubling, bool(by_peer), listed[number]
        )
        for kind, count, root, size, by_peer, number in distinct.tolist()
    ]
    meant = np.ones(len(collectives), bool) if only is None else only
    messages, first = _messages(program.messages, carried, sizes, templates, which, meant)
    for number, amounts in uneven.items():
        template = templates[which[number]]
        if meant[number] and amounts.kind != "reduce_scatter":
            rows = first[number] + np.arange(len(template.part))
            messages.size[rows] = amounts.between(template.sender, template.receiver)
    process = np.repeat(np.arange(program.processes), np.diff(program.offsets))
    collective = program.kind >= Op.COLLECTIVE
    collective[collective] = meant[program.target[collective]]
    # Operations that become those of a template.
    place = np.flatnonzero(collective & _carried_here(program, process))
    about = program.target[place]
    rank = _ranks(carried, about, process[place])
    count = np.where(collective, 0, 1)
    for number, template in enumerate(templates):
        mine = which[about] == number
        count[place[mine]] = np.diff(template.offsets)[rank[mine]]
    ends = np.cumsum(count)
    begins = ends - count
    kind = np.repeat(program.kind, count)
    target = np.repeat(program.target, count)
    for number, template in enumerate(templates):
        mine = which[about] == number
        _, source = spread(template.offsets[rank[mine]], count[place[mine]])
        _, goal = spread(begins[place[mine]], count[place[mine]])
        kind[goal] = template.kind[source]
        base = np.repeat(first[about[mine]], count[place[mine]])
        target[goal] = base + template.target[source]
    row = (np.cumsum(~meant) - 1).astype(np.int32)  # of those that stay
    stays = kind >= Op.COLLECTIVE
    target[stays] = row[target[stays]]
    origin = np.repeat(np.arange(program.operations), count)
    offsets = np.concatenate([[0], ends])[program.offsets]
    burst, tail = _bursts(program, process, begins, offsets)
    return LaidOut(
        replace(
            program,
            offsets=offsets,
            kind=kind,
            target=target,
            burst=burst,
            tail=tail,
            messages=messages,
            collectives=Collectives(
                **{name: column[~meant] for name, column in vars(collectives).items()}
            ),
            call=program.call[origin],
            uneven=_uneven(program.uneven, ~meant, row, begins),
        ),
        origin,
        np.repeat(
            np.arange(-1, len(collectives), dtype=np.int32),
            [len(program.messages), *np.diff(first, append=len(messages))],
        ),
        np.flatnonzero(~meant).astype(np.int32),
    )


def _messages(
    own: ProgramMessages,
    carried: CarriedData,
    sizes: NDArray[np.int64],
    templates: list[_Template],
    which: NDArray[np.int64],
    meant: NDArray[np.bool_],
) -> tuple[ProgramMessages, NDArray[np.int64]]:
    """A program's own messages and those of its collectives, and the first row of each of these."""
    count = np.array([len(template.part) for template in templates], np.int64)[which] * meant
    first = len(own) + np.cumsum(count) - count
    total = len(own) + int(count.sum())
    sender, receiver = np.empty(total, np.int32), np.empty(total, np.int32)
    size = np.empty(total, np.int64)
    for column, mine in ((sender, own.sender), (receiver, own.receiver), (size, own.size)):
        column[: len(own)] = mine
    member = _members_by_rank(carried)
    for number, template in enumerate(templates):
        mine = np.flatnonzero((which == number) & meant)
        if not len(template.part):
            continue
        rows = first[mine][:, None] + np.arange(len(template.part))
        begin = carried.group_offsets[carried.group[mine]][:, None]
        sender[rows] = member[begin + template.sender]
        receiver[rows] = member[begin + template.receiver]
        size[rows] = np.rint(sizes[mine][:, None] * template.part).astype(np.int64)
    added = total - len(own)
    tag = np.concatenate([own.tag, np.full(added, -1, np.int64)])
    mode = np.concatenate([own.mode, np.zeros(added, np.int8)])
    return ProgramMessages(sender, receiver, size, tag, mode), first


def _members_by_rank(carried: CarriedData) -> NDArray[np.int32]:
    """Process of each rank of each group; the engine has them by process."""
    group = np.repeat(np.arange(len(carried.group_offsets) - 1), np.diff(carried.group_offsets))
    member = np.empty_like(carried.group_process)
    member[carried.group_offsets[group] + carried.group_rank] = carried.group_process
    return member


def _ranks(
    carried: CarriedData, collective: NDArray[np.int32], process: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Rank of a process in a collective."""
    group = np.repeat(np.arange(len(carried.group_offsets) - 1), np.diff(carried.group_offsets))
    wide = int(carried.group_process.max(initial=0)) + 1
    keys = group * wide + carried.group_process  # ascending: groups, and processes inside them
    row = np.searchsorted(keys, carried.group[collective].astype(np.int64) * wide + process)
    return carried.group_rank[row].astype(np.int64)


def _carried_here(program: Program, process: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which operations become those of a template."""
    key = process * (len(program.collectives) + 1) + program.target
    waits = program.kind == Op.WAIT_COLLECTIVE
    waited = np.isin(key, key[waits])
    arrives = program.kind == Op.ARRIVE
    here: NDArray[np.bool_] = (program.kind == Op.COLLECTIVE) | waits | (arrives & ~waited)
    return here


def _bursts(
    program: Program,
    process: NDArray[np.int64],
    begins: NDArray[np.int64],
    offsets: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bursts before the first of what an operation became, or before the next that is left."""
    burst, tail = np.zeros(int(offsets[-1])), program.tail.copy()
    inside = begins < offsets[process + 1]
    np.add.at(burst, begins[inside], program.burst[inside])
    np.add.at(tail, process[~inside], program.burst[~inside])
    return burst, tail


def _uneven(
    uneven: UnevenBytes,
    stays: NDArray[np.bool_],
    row: NDArray[np.int32],
    begins: NDArray[np.int64],
) -> UnevenBytes:
    """Arrivals at the collectives that stay."""
    kept = stays[uneven.collective]
    place = (np.cumsum(kept) - 1).tolist()
    return UnevenBytes(
        begins[uneven.operation[kept]],
        row[uneven.collective[kept]],
        uneven.sent[kept],
        uneven.received[kept],
        {place[each]: parts for each, parts in uneven.parts.items() if kept[each]},
    )


# What a replay of a laid-out program says of the program that it was made of.


_OF_COLLECTIVES = {
    PathPart.SEND: PathPart.MESSAGE_SEND,
    PathPart.RECEIVE: PathPart.MESSAGE_RECEIVE,
    PathPart.TRANSFER: PathPart.MESSAGE,
}


def moments_of(
    program: Program,
    laid: LaidOut,
    begin: NDArray[np.float64],
    end: NDArray[np.float64],
    cpu: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return when the operations of a program begin and end, ns."""
    operations = np.arange(program.operations)
    first = np.searchsorted(laid.origin, operations, side="left")
    last = np.searchsorted(laid.origin, operations, side="right") - 1
    some = last >= first
    began, ended = np.zeros((2, program.operations))
    began[some], ended[some] = begin[first[some]], end[last[some]]
    # What came to nothing takes no time after its burst.
    nothing = np.flatnonzero(~some)
    process = np.searchsorted(program.offsets, nothing, side="right") - 1
    for at, p in zip(nothing.tolist(), process.tolist(), strict=True):
        before = ended[at - 1] if at > program.offsets[p] else 0.0
        began[at] = ended[at] = before + program.burst[at] * cpu[p]
    return began, ended


def path_of(laid: LaidOut, path: CriticalPath) -> CriticalPath:
    """Return the critical path of a program by the operations and collectives that it has."""
    operation, part, row = path.operation.copy(), path.part.copy(), path.row.copy()
    operation[operation >= 0] = laid.origin[operation[operation >= 0]]
    for own, of_collective in _OF_COLLECTIVES.items():
        mine = np.flatnonzero(path.part == own)
        mine = mine[laid.sent_for[path.row[mine]] >= 0]
        part[mine], row[mine] = of_collective, laid.sent_for[path.row[mine]]
    stays = np.isin(path.part, [PathPart.COLLECTIVE, PathPart.REQUEST, *_OF_COLLECTIVES.values()])
    row[stays] = laid.stay[path.row[stays]]
    return replace(path, operation=operation, part=part, row=row)
