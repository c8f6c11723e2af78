"""A program whose collectives are messages of its own, for algorithms that post several at once.

The compiled engine carries a collective out one exchange after the other
(`popmodel.simulator.algorithms`), which is all that most algorithms ask for. Those of
`popmodel.simulator.exchanges` have several messages under way at a time: their operations are
written into the program. Collectives that are alike share one template.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from popmodel.simulator.algorithms import Carried, carry_out
from popmodel.simulator.exchanges import operations
from popmodel.simulator.program import (
    COLLECTIVES,
    Collectives,
    Messages,
    Op,
    Program,
    Uneven,
)
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
        found: NDArray[np.int64]
        if self.kind in ("scatter", "reduce_scatter"):
            found = self.received[receiver]
        elif self.kind != "alltoall":
            found = self.sent[sender]
        elif self.parts is not None:
            found = self.parts[sender, receiver]
        else:
            share = self.received / max(int(self.received.sum()), 1)
            found = np.rint(self.sent[sender] * share[receiver]).astype(np.int64)
        return found


def uneven_amounts(program: Program, carried: Carried) -> dict[int, Amounts]:
    """Amounts of the members of each collective where they differ and messages carry them."""
    uneven, found = program.uneven, dict[int, Amounts]()
    if not len(uneven.operation):
        return found
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
        told = [uneven.parts[each] for each in mine.tolist() if each in uneven.parts]
        parts = None
        if len(told) == members:
            parts = np.empty((members, members), np.int64)
            parts[rank[mine]] = np.stack(told)
        found[row] = Amounts(kind, sent, received, parts)
    return found


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
    known: dict[tuple[int, int, int], int] = {}
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
            message = known.setdefault((*ends, turn), len(rows))
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
        source, goal = _spread(
            template.offsets[rank[mine]], begins[place[mine]], count[place[mine]]
        )
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
    own: Messages,
    carried: Carried,
    sizes: NDArray[np.int64],
    templates: list[_Template],
    which: NDArray[np.int64],
    meant: NDArray[np.bool_],
) -> tuple[Messages, NDArray[np.int64]]:
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
    return Messages(sender, receiver, size, tag, mode), first


def _members_by_rank(carried: Carried) -> NDArray[np.int32]:
    """Process of each rank of each group; the engine has them by process."""
    group = np.repeat(np.arange(len(carried.group_offsets) - 1), np.diff(carried.group_offsets))
    member = np.empty_like(carried.group_process)
    member[carried.group_offsets[group] + carried.group_rank] = carried.group_process
    return member


def _ranks(
    carried: Carried, collective: NDArray[np.int32], process: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Rank of a process in a collective."""
    group = np.repeat(np.arange(len(carried.group_offsets) - 1), np.diff(carried.group_offsets))
    wide = int(carried.group_process.max(initial=0)) + 1
    keys = group * wide + carried.group_process  # ascending: groups, and processes inside them
    found = np.searchsorted(keys, carried.group[collective].astype(np.int64) * wide + process)
    return carried.group_rank[found].astype(np.int64)


def _carried_here(program: Program, process: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which operations become those of a template."""
    key = process * (len(program.collectives) + 1) + program.target
    waits = program.kind == Op.WAIT_COLLECTIVE
    waited = np.isin(key, key[waits])
    arrives = program.kind == Op.ARRIVE
    found: NDArray[np.bool_] = (program.kind == Op.COLLECTIVE) | waits | (arrives & ~waited)
    return found


def _spread(
    first: NDArray[np.int64], goal: NDArray[np.int64], count: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Runs of rows from some first ones, and where they go."""
    turn = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    return np.repeat(first, count) + turn, np.repeat(goal, count) + turn


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
    uneven: Uneven,
    stays: NDArray[np.bool_],
    row: NDArray[np.int32],
    begins: NDArray[np.int64],
) -> Uneven:
    """Arrivals at the collectives that stay."""
    kept = stays[uneven.collective]
    place = (np.cumsum(kept) - 1).tolist()
    return Uneven(
        begins[uneven.operation[kept]],
        row[uneven.collective[kept]],
        uneven.sent[kept],
        uneven.received[kept],
        {place[each]: parts for each, parts in uneven.parts.items() if kept[each]},
    )
