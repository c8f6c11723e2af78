"""Collectives laid out as point-to-point messages, in plain Python.

The compiled engine finds the same messages one step at a time; the algorithms are those that
`popmodel.simulator.algorithms` names. A program carried out here has all of them in its columns, so
its size grows with the square of the members of an all-to-all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popmodel.simulator.program import COLLECTIVES, Collectives, Messages, Op, Program


class Exchange(NamedTuple):
    """One step of one member: at the same time a message out, a message in, or one of them.

    Partners are ranks in the communicator, -1 for none; `share` is the part of the collective's
    bytes in the outgoing message.
    """

    to: int
    source: int
    share: float = 1.0


def exchanges(kind: str, members: int, root: int, rank: int) -> list[Exchange]:
    """Steps of member `rank` of a collective of `members` ranks, in order.

    Shares are of the bytes that `message_bytes` names for the kind.
    """
    return list(_ALGORITHMS[kind](members, root, rank)) if members > 1 else []


def _dissemination(n: int, _root: int, r: int) -> Iterator[Exchange]:
    hop = 1
    while hop < n:
        yield Exchange((r + hop) % n, (r - hop) % n, 0.0)
        hop *= 2


def _binomial_bcast(n: int, root: int, r: int) -> Iterator[Exchange]:
    v = (r - root) % n
    hop = 1
    while hop < n and not v & hop:
        hop *= 2
    if v:
        yield Exchange(-1, (v - hop + root) % n)
    while hop > 1:
        hop //= 2
        if v + hop < n:
            yield Exchange((v + hop + root) % n, -1)


def _reversed(
    forward: Callable[[int, int, int], Iterator[Exchange]],
) -> Callable[[int, int, int], Iterator[Exchange]]:
    """The same tree with the messages in the other direction and order."""

    def backward(n: int, root: int, r: int) -> Iterator[Exchange]:
        for to, source, share in reversed(list(forward(n, root, r))):
            yield Exchange(source, to, share)

    return backward


def _binomial_scatter(n: int, root: int, r: int) -> Iterator[Exchange]:
    v = (r - root) % n
    for to, source, _ in _binomial_bcast(n, root, r):
        # The subtree below relative rank w, first reached over `hop`, has min(hop, n - w) ranks.
        if to >= 0:
            w = (to - root) % n
            yield Exchange(to, source, float(min(w - v, n - w)))
        else:
            parent = (source - root) % n
            yield Exchange(to, source, float(min(v - parent, n - v)))


def _recursive_doubling(n: int, _root: int, r: int) -> Iterator[Exchange]:
    power = 1 << (n.bit_length() - 1)
    extra = n - power
    if r >= power:  # folds into a rank of the power of two, and gets the result back
        yield Exchange(r - power, -1)
        yield Exchange(-1, r - power)
        return
    if r < extra:
        yield Exchange(-1, r + power)
    hop = 1
    while hop < power:
        yield Exchange(r ^ hop, r ^ hop)
        hop *= 2
    if r < extra:
        yield Exchange(r + power, -1)


def _scan(n: int, _root: int, r: int) -> Iterator[Exchange]:
    hop = 1
    while hop < n:
        to, source = (r + hop if r + hop < n else -1), (r - hop if r >= hop else -1)
        if to >= 0 or source >= 0:
            yield Exchange(to, source)
        hop *= 2


def _ring(n: int, _root: int, r: int) -> Iterator[Exchange]:
    for _ in range(n - 1):
        yield Exchange((r + 1) % n, (r - 1) % n)


def _pairwise(n: int, _root: int, r: int) -> Iterator[Exchange]:
    for step in range(1, n):
        yield Exchange((r + step) % n, (r - step) % n)


def _pairwise_parts(n: int, _root: int, r: int) -> Iterator[Exchange]:
    for to, source, _ in _pairwise(n, _root, r):
        yield Exchange(to, source, 1 / n)


_ALGORITHMS: dict[str, Callable[[int, int, int], Iterator[Exchange]]] = {
    "init": _dissemination,
    "barrier": _dissemination,
    "bcast": _binomial_bcast,
    "reduce": _reversed(_binomial_bcast),
    "allreduce": _recursive_doubling,
    "alltoall": _pairwise,
    "gather": _reversed(_binomial_scatter),
    "scatter": _binomial_scatter,
    "allgather": _ring,
    "scan": _scan,
    "reduce_scatter": _pairwise_parts,
}


def message_bytes(collectives: Collectives) -> NDArray[np.int64]:
    """Bytes that the shares of each collective's messages refer to."""
    columns = (collectives.kind, collectives.sent, collectives.received)
    found = [
        _bytes(COLLECTIVES[kind], sent, received)
        for kind, sent, received in zip(*(column.tolist() for column in columns), strict=True)
    ]
    return np.array(found, dtype=np.int64)


def _bytes(kind: str, sent: int, received: int) -> int:
    match kind:
        case "gather" | "allgather":
            return sent  # what one rank contributes
        case "scatter":
            return received  # what one rank gets
        case "alltoall":
            return min(sent, received)  # what one rank has for one peer
        case _:
            return max(
                sent, received
            )  # the whole buffer, which ranks that only send do not receive


class _Pattern(NamedTuple):
    """One collective as messages: their ends (ranks) and shares, and what each rank does."""

    sender: NDArray[np.int32]
    receiver: NDArray[np.int32]
    share: NDArray[np.float64]
    operations: list[tuple[NDArray[np.uint8], NDArray[np.int32]]]


def _pattern(kind: str, members: int, root: int) -> _Pattern:
    steps = [exchanges(kind, members, root, r) for r in range(members)]
    # The k-th message from one rank to another is the k-th that the other receives from it.
    sent = [(r, x.to, x.share) for r, mine in enumerate(steps) for x in mine if x.to >= 0]
    number = _Turns()
    ids = {number.of(s, r): i for i, (s, r, _) in enumerate(sent)}
    outgoing, incoming = _Turns(), _Turns()
    operations = []
    for r, mine in enumerate(steps):
        ops: list[tuple[Op, int]] = []
        for to, source, _ in mine:
            send = ids[outgoing.of(r, to)] if to >= 0 else -1
            receive = ids[incoming.of(source, r)] if source >= 0 else -1
            if to < 0:
                ops.append((Op.RECEIVE, receive))
            elif source < 0:
                ops.append((Op.SEND, send))
            else:
                ops += [(Op.POST, receive), (Op.SEND, send), (Op.WAIT_RECEIVE, receive)]
        operations.append(
            (np.array([o for o, _ in ops], np.uint8), np.array([m for _, m in ops], np.int32))
        )
    return _Pattern(
        np.array([s for s, _, _ in sent], np.int32),
        np.array([r for _, r, _ in sent], np.int32),
        np.array([x for _, _, x in sent], np.float64),
        operations,
    )


class _Turns:
    """Numbers the messages between each pair of ranks."""

    def __init__(self) -> None:
        self._next: dict[tuple[int, int], int] = {}

    def of(self, sender: int, receiver: int) -> tuple[int, int, int]:
        turn = self._next.get((sender, receiver), 0)
        self._next[sender, receiver] = turn + 1
        return sender, receiver, turn


def carry_out(program: Program) -> Program:
    """The same program with every collective carried out as messages."""
    collectives = program.collectives
    process = np.repeat(np.arange(program.processes), np.diff(program.offsets))
    expanded = (program.kind == Op.COLLECTIVE) | (program.kind == Op.WAIT_COLLECTIVE)
    rows = np.flatnonzero(expanded)
    members = _members(program, process)
    rooted = np.flatnonzero(collectives.root >= 0)
    roots = np.zeros(len(collectives), dtype=np.int64)
    roots[rooted] = _ranks(members, program.processes, rooted, collectives.root[rooted])
    ranks = _ranks(members, program.processes, program.target[rows], process[rows])
    patterns = [
        _pattern(COLLECTIVES[k], len(m), r)
        for k, m, r in zip(collectives.kind.tolist(), members, roots.tolist(), strict=True)
    ]
    first = len(program.messages) + np.concatenate(
        [[0], np.cumsum([len(p.share) for p in patterns])]
    ).astype(np.int64)

    length = np.ones(program.operations, dtype=np.int64)
    length[program.kind == Op.ARRIVE] = 0
    own = [
        patterns[c].operations[r]
        for c, r in zip(program.target[rows].tolist(), ranks.tolist(), strict=True)
    ]
    length[rows] = [len(kinds) for kinds, _ in own]
    start = np.concatenate([[0], np.cumsum(length)])
    kind = np.repeat(program.kind, length)
    target = np.repeat(program.target, length)
    for row, (kinds, messages) in zip(rows.tolist(), own, strict=True):
        where = slice(start[row], start[row + 1])
        kind[where] = kinds
        target[where] = messages + first[program.target[row]]
    burst, tail = _moved_bursts(program, length, start)
    return replace(
        program,
        offsets=start[program.offsets].astype(np.int64),
        kind=kind,
        target=target.astype(np.int32),
        burst=burst,
        tail=tail,
        messages=_all_messages(program.messages, collectives, members, patterns),
        collectives=Collectives(*(np.empty(0, c.dtype) for c in vars(collectives).values())),
        call=np.repeat(program.call, length),
    )


def _members(program: Program, process: NDArray[np.int64]) -> list[NDArray[np.int32]]:
    """Processes of each collective, in the order of their ranks."""
    callers: dict[int, set[int]] = {}
    for row in np.flatnonzero(program.kind >= Op.COLLECTIVE).tolist():
        callers.setdefault(int(program.target[row]), set()).add(int(process[row]))
    found = []
    for number, communicator in enumerate(program.collectives.communicator.tolist()):
        count = program.collectives.members[number]
        members = program.communicators.get(communicator, ())
        if len(members) != count and count == program.processes:
            members = range(count)
        elif len(members) != count:
            members = sorted(callers[number])
        found.append(np.array(members, dtype=np.int32))
    return found


def _ranks(
    members: list[NDArray[np.int32]],
    processes: int,
    collective: NDArray[np.integer],
    process: NDArray[np.integer],
) -> NDArray[np.int64]:
    """Rank of each process among the members of each collective, which it is one of."""
    lengths = np.array([len(m) for m in members], dtype=np.int64)
    # A pair of collective and process as one number.
    pairs = np.repeat(np.arange(len(members)) * processes, lengths)
    pairs += np.concatenate([np.empty(0, np.int32), *members])
    order = np.argsort(pairs, kind="stable")
    wanted = collective.astype(np.int64) * processes + process
    first = np.cumsum(lengths) - lengths
    rank: NDArray[np.int64] = order[np.searchsorted(pairs, wanted, sorter=order)]
    rank -= first[collective]
    return rank


def _moved_bursts(
    program: Program, length: NDArray[np.int64], start: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bursts before the new operations; of one that became nothing, before the next or the end."""
    burst = np.zeros(int(start[-1]))
    tail = program.tail.copy()
    kept = np.flatnonzero(length > 0)
    bound = np.searchsorted(kept, program.offsets)
    for p in range(program.processes):
        mine = kept[bound[p] : bound[p + 1]]
        passed = np.concatenate(
            [[0.0], np.cumsum(program.burst[program.offsets[p] : program.offsets[p + 1]])]
        )
        until = passed[mine - program.offsets[p] + 1]
        burst[start[mine]] = np.diff(until, prepend=0.0)
        tail[p] += passed[-1] - (until[-1] if len(until) else 0.0)
    return burst, tail


def _all_messages(
    own: Messages,
    collectives: Collectives,
    members: list[NDArray[np.int32]],
    patterns: list[_Pattern],
) -> Messages:
    whole = message_bytes(collectives)
    sender = [m[p.sender] for m, p in zip(members, patterns, strict=True)]
    receiver = [m[p.receiver] for m, p in zip(members, patterns, strict=True)]
    size = [np.rint(p.share * n) for n, p in zip(whole.tolist(), patterns, strict=True)]
    added = sum(len(p.share) for p in patterns)
    return Messages(
        np.concatenate([own.sender, *sender]).astype(np.int32),
        np.concatenate([own.receiver, *receiver]).astype(np.int32),
        np.concatenate([own.size, *size]).astype(np.int64),
        np.concatenate([own.tag, np.full(added, -1)]).astype(np.int64),
        np.concatenate([own.mode, np.zeros(added)]).astype(np.int8),
    )
