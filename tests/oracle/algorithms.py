"""Collectives laid out as point-to-point messages, in plain Python.

The compiled engine finds the same messages one step at a time; the algorithms are those that
`popmodel.simulator.algorithms` names. A program carried out here has all of them in its columns, so
its size grows with the square of the members of an all-to-all.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popmodel.simulator.program import COLLECTIVES, Collectives, Op, Program, ProgramMessages


class Exchange(NamedTuple):
    """One step of one member: at the same time a message out, a message in, or one of them.

    Partners are ranks in the communicator, -1 for none; `share` is the part of the collective's
    bytes in the outgoing message. `content` names what is in it, for those who follow the data:
    parts of a vector, or blocks by owner (of an all-to-all by owner and goal).
    """

    to: int
    source: int
    share: float = 1.0
    content: tuple = ()
    posted: bool = False  # the receive is posted with the first one of its row


Schedule = Iterator[Exchange]


def exchanges(
    kind: str, members: int, root: int, rank: int, algorithm: str | None = None, size: float = 0
) -> list[Exchange]:
    """Steps of member `rank` of a collective of `members` ranks, in order.

    Shares are of the bytes that `message_bytes` names for the kind; `size` are these.
    """
    names = ALGORITHMS[kind]
    plan = names[algorithm or next(iter(names))]
    return list(plan(members, root, rank, size)) if members > 1 else []


def _power(n: int) -> int:
    return 1 << (n.bit_length() - 1)


def _dissemination(n: int, _root: int, r: int, _size: float) -> Schedule:
    hop = 1
    while hop < n:
        yield Exchange((r + hop) % n, (r - hop) % n, 0.0)
        hop *= 2


def _bruck_allgather(n: int, _root: int, r: int, _size: float) -> Schedule:
    """Each passes on the blocks that it has so far: its own and those of the ranks before it."""
    have = 1
    while have < n:
        count = min(have, n - have)
        content = tuple((r - i) % n for i in range(count))
        yield Exchange((r + have) % n, (r - have) % n, count, content)
        have *= 2


def _bruck_alltoall(n: int, _root: int, r: int, _size: float) -> Schedule:
    """A block whose distance to its goal has bit j moves 2**j on in round j."""
    hop = 1
    while hop < n:
        moving = [d for d in range(n) if d & hop]
        # Blocks with distance d have moved d modulo hop so far.
        content = tuple(((r - d % hop) % n, (r - d % hop + d) % n) for d in moving)
        yield Exchange((r + hop) % n, (r - hop) % n, len(moving), content)
        hop *= 2


def _binomial_bcast(n: int, root: int, r: int, _size: float, content: tuple = (0,)) -> Schedule:
    v = (r - root) % n
    hop = 1
    while hop < n and not v & hop:
        hop *= 2
    if v:
        yield Exchange(-1, (v - hop + root) % n)
    while hop > 1:
        hop //= 2
        if v + hop < n:
            yield Exchange((v + hop + root) % n, -1, 1.0, content)


def _reversed(forward: Callable[..., Schedule]) -> Callable[..., Schedule]:
    """The same tree with the messages in the other direction and order."""

    def backward(n: int, root: int, r: int, size: float) -> Schedule:
        for to, source, share, content, _ in reversed(list(forward(n, root, r, size))):
            yield Exchange(source, to, share, content or (0,))

    return backward


def _binomial_scatter(n: int, root: int, r: int, size: float) -> Schedule:
    v = (r - root) % n
    for to, source, *_ in _binomial_bcast(n, root, r, size):
        # The subtree below relative rank w, first reached over `hop`, has min(hop, n - w) ranks.
        below, above = ((to - root) % n, v) if to >= 0 else (v, (source - root) % n)
        count = min(below - above, n - below)
        content = tuple((below + i + root) % n for i in range(count))
        yield Exchange(to, source, float(count), content)


def _linear_down(n: int, root: int, r: int, _size: float) -> Schedule:
    if r != root:
        yield Exchange(-1, root)
        return
    for i in range(1, n):
        yield Exchange((root + i) % n, -1, 1.0, (0,))


def _linear_scatter(n: int, root: int, r: int, size: float) -> Schedule:
    for x in _linear_down(n, root, r, size):
        yield x._replace(content=(x.to,))


def _linear_up(n: int, root: int, r: int, _size: float) -> Schedule:
    if r != root:
        yield Exchange(root, -1, 1.0, (0,))
        return
    for i in range(1, n):
        yield Exchange(-1, (root + i) % n)


def _linear_gather(n: int, root: int, r: int, size: float) -> Schedule:
    for x in _linear_up(n, root, r, size):
        yield x._replace(content=(r,))


def _posted_up(n: int, root: int, r: int, size: float) -> Schedule:
    for x in _linear_up(n, root, r, size):
        yield x._replace(posted=x.source >= 0)


def _fold_in(n: int, r: int, content: tuple = (0,)) -> Schedule:
    power = _power(n)
    if r >= power:
        yield Exchange(r - power, -1, 1.0, content)
    elif r < n - power:
        yield Exchange(-1, r + power)


def _fold_out(n: int, r: int, share: float = 1.0, content: tuple = (0,)) -> Schedule:
    power = _power(n)
    if r >= power:
        yield Exchange(-1, r - power)
    elif r < n - power:
        yield Exchange(r + power, -1, share, content)


def _recursive_doubling(n: int, _root: int, r: int, _size: float) -> Schedule:
    yield from _fold_in(n, r)
    hop = 1
    while r < _power(n) and hop < _power(n):
        yield Exchange(r ^ hop, r ^ hop, 1.0, (0,))
        hop *= 2
    yield from _fold_out(n, r)


def _halving(n: int, v: int) -> Schedule:
    """Parts 0 .. power - 1 of a vector: what a member works on halves until its own is left."""
    power = _power(n)
    begin, count = 0, power
    while v < power and count > 1:
        count //= 2
        kept = v & count
        sent = begin if kept else begin + count
        yield Exchange(v ^ count, v ^ count, count / power, tuple(range(sent, sent + count)))
        begin += kept and count


def _doubling_parts(n: int, v: int) -> Schedule:
    power = _power(n)
    hop = 1
    while v < power and hop < power:
        first = v & ~(hop - 1)
        yield Exchange(v ^ hop, v ^ hop, hop / power, tuple(range(first, first + hop)))
        hop *= 2


def _every_part(n: int) -> tuple:
    return tuple(range(_power(n)))


def _rabenseifner(n: int, _root: int, r: int, _size: float) -> Schedule:
    yield from _fold_in(n, r, _every_part(n))
    yield from _halving(n, r)
    yield from _doubling_parts(n, r)
    yield from _fold_out(n, r, 1.0, _every_part(n))


def _rabenseifner_reduce(n: int, root: int, r: int, size: float) -> Schedule:
    """Around ranks relative to the root, which is then part of the power of two."""
    v, power = (r - root) % n, _power(n)
    plan = [*_fold_in(n, v, _every_part(n)), *_halving(n, v)]
    if v < power > 1:
        gather = _reversed(_binomial_scatter)(power, 0, v, size)
        plan += [x._replace(share=x.share / power) for x in gather]
    for x in plan:
        to, source = (-1 if p < 0 else (p + root) % n for p in (x.to, x.source))
        yield x._replace(to=to, source=source)


def _halving_parts(n: int, _root: int, r: int, _size: float) -> Schedule:
    yield from _fold_in(n, r, _every_part(n))
    yield from _halving(n, r)
    yield from _fold_out(n, r, 1 / n, (r,))


def _doubling_allgather(n: int, _root: int, r: int, _size: float) -> Schedule:
    """A member holds the block of the surplus that it stands for beside its own."""
    power = _power(n)

    def held(parts: tuple) -> tuple:
        return tuple(b for p in parts for b in (p, p + power) if b < n)

    yield from _fold_in(n, r, (r,))
    for x in _doubling_parts(n, r):
        yield x._replace(share=x.share * n, content=held(x.content))
    yield from _fold_out(n, r, n, tuple(range(n)))


def _scan(n: int, _root: int, r: int, _size: float) -> Schedule:
    hop = 1
    while hop < n:
        to, source = (r + hop if r + hop < n else -1), (r - hop if r >= hop else -1)
        if to >= 0 or source >= 0:
            yield Exchange(to, source, 1.0, (0,))
        hop *= 2


def _linear_scan(n: int, _root: int, r: int, _size: float) -> Schedule:
    if r > 0:
        yield Exchange(-1, r - 1)
    if r < n - 1:
        yield Exchange(r + 1, -1, 1.0, (0,))


def _chain(n: int, root: int, r: int, size: float) -> Schedule:
    v = (r - root) % n
    segments = max(math.ceil(size / 65536), 1)
    after, before = (r + 1) % n, (r - 1) % n
    for k in range(segments + 1):
        to = after if v < n - 1 and (k > 0 or v == 0) else -1
        source = before if v > 0 and k < segments else -1
        if v == 0 and k == segments:
            to = -1
        if to >= 0 or source >= 0:
            sent = () if to < 0 else (k if v == 0 else k - 1,)
            yield Exchange(to, source, 1 / segments, sent)


def _around(n: int, r: int, share: float, shift: int) -> Schedule:
    """Pass on the block that came last; at first that of `shift` ranks before."""
    for step in range(n - 1):
        yield Exchange((r + 1) % n, (r - 1) % n, share, ((r - shift - step) % n,))


def _ring(n: int, _root: int, r: int, _size: float) -> Schedule:
    yield from _around(n, r, 1.0, 0)


def _ring_allreduce(n: int, _root: int, r: int, _size: float) -> Schedule:
    yield from _around(n, r, 1 / n, 0)  # then the next part is complete
    yield from _around(n, r, 1 / n, -1)


def _scatter_allgather(n: int, root: int, r: int, size: float) -> Schedule:
    for x in _binomial_scatter(n, root, r, size):
        yield x._replace(share=x.share / n)
    yield from _around(n, r, 1 / n, 0)


def _pairwise(n: int, _root: int, r: int, _size: float) -> Schedule:
    for step in range(1, n):
        to = (r + step) % n
        yield Exchange(to, (r - step) % n, 1.0, ((r, to),))


def _pairwise_parts(n: int, _root: int, r: int, size: float) -> Schedule:
    for x in _pairwise(n, 0, r, size):
        yield x._replace(share=1 / n, content=(x.to,))


def _then(*plans: Callable[..., Schedule]) -> Callable[..., Schedule]:
    """One algorithm after the other, the second from rank 0."""

    def both(n: int, root: int, r: int, size: float) -> Schedule:
        for plan in plans:
            yield from plan(n, root, r, size)

    return both


def _empty(plan: Callable[..., Schedule]) -> Callable[..., Schedule]:
    def without(n: int, _root: int, r: int, size: float) -> Schedule:
        for x in plan(n, 0, r, size):
            yield x._replace(share=0.0)

    return without


def _rootless(plan: Callable[..., Schedule]) -> Callable[..., Schedule]:
    return lambda n, _root, r, size: plan(n, 0, r, size)


_BARRIER = {
    "dissemination": _dissemination,
    "recursive_doubling": _empty(_recursive_doubling),
    "linear": _empty(_then(_linear_up, _linear_down)),
    "linear_posted": _empty(_then(_posted_up, _linear_down)),
}
_binomial_reduce = _reversed(_binomial_bcast)

ALGORITHMS: dict[str, dict[str, Callable[..., Schedule]]] = {
    "init": _BARRIER,
    "barrier": _BARRIER,
    "bcast": {
        "binomial": _binomial_bcast,
        "scatter_allgather": _scatter_allgather,
        "chain": _chain,
        "linear": _linear_down,
    },
    "reduce": {
        "binomial": _binomial_reduce,
        "rabenseifner": _rabenseifner_reduce,
        "linear": _linear_up,
        "linear_posted": _posted_up,
    },
    "allreduce": {
        "recursive_doubling": _recursive_doubling,
        "rabenseifner": _rabenseifner,
        "ring": _ring_allreduce,
        "reduce_bcast": _rootless(_then(_binomial_reduce, _binomial_bcast)),
        "linear_posted": _rootless(_then(_posted_up, _binomial_bcast)),
    },
    "alltoall": {"pairwise": _pairwise, "bruck": _bruck_alltoall},
    "gather": {"binomial": _reversed(_binomial_scatter), "linear": _linear_gather},
    "scatter": {"binomial": _binomial_scatter, "linear": _linear_scatter},
    "allgather": {
        "ring": _ring,
        "bruck": _bruck_allgather,
        "recursive_doubling": _doubling_allgather,
    },
    "scan": {"recursive_doubling": _scan, "linear": _linear_scan},
    "reduce_scatter": {"recursive_halving": _halving_parts, "pairwise": _pairwise_parts},
}


def message_bytes(collectives: Collectives) -> NDArray[np.int64]:
    """Bytes that the shares of each collective's messages refer to."""
    columns = (collectives.kind, collectives.members, collectives.sent, collectives.received)
    found = [
        _bytes(COLLECTIVES[kind], members, sent, received)
        for kind, members, sent, received in zip(
            *(column.tolist() for column in columns), strict=True
        )
    ]
    return np.array(found, dtype=np.int64)


def _bytes(kind: str, members: int, sent: int, received: int) -> int:
    match kind:
        case "gather" | "allgather":
            return sent  # what one rank contributes
        case "scatter":
            return received  # what one rank gets
        case "alltoall":
            return math.ceil(max(sent, received) / members)  # what one rank has for one peer
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


def _pattern(
    kind: str, members: int, root: int, algorithm: str | None = None, size: float = 0
) -> _Pattern:
    steps = [exchanges(kind, members, root, r, algorithm, size) for r in range(members)]
    # The k-th message from one rank to another is the k-th that the other receives from it.
    sent = [(r, x.to, x.share) for r, mine in enumerate(steps) for x in mine if x.to >= 0]
    number = _Turns()
    ids = {number.of(s, r): i for i, (s, r, _) in enumerate(sent)}
    outgoing, incoming = _Turns(), _Turns()
    operations = []
    for r, mine in enumerate(steps):
        ops: list[tuple[Op, int]] = []
        ends = [
            (
                x,
                ids[outgoing.of(r, x.to)] if x.to >= 0 else -1,
                ids[incoming.of(x.source, r)] if x.source >= 0 else -1,
            )
            for x in mine
        ]
        ops += [(Op.POST, receive) for x, _, receive in ends if x.posted]
        for (to, source, *_, posted), send, receive in ends:
            if posted:
                ops.append((Op.WAIT_RECEIVE, receive))
            elif to < 0:
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


def carry_out(program: Program, algorithms: Mapping[str, str] = MappingProxyType({})) -> Program:
    """The same program with every collective carried out as messages.

    `algorithms` names those of operations that do not take their first one.
    """
    collectives = program.collectives
    process = np.repeat(np.arange(program.processes), np.diff(program.offsets))
    expanded = (program.kind == Op.COLLECTIVE) | (program.kind == Op.WAIT_COLLECTIVE)
    rows = np.flatnonzero(expanded)
    members = _members(program, process)
    rooted = np.flatnonzero(collectives.root >= 0)
    roots = np.zeros(len(collectives), dtype=np.int64)
    roots[rooted] = _ranks(members, program.processes, rooted, collectives.root[rooted])
    ranks = _ranks(members, program.processes, program.target[rows], process[rows])
    whole = message_bytes(collectives).tolist()
    patterns = [
        _pattern(COLLECTIVES[k], len(m), r, algorithms.get(COLLECTIVES[k]), size)
        for k, m, r, size in zip(
            collectives.kind.tolist(), members, roots.tolist(), whole, strict=True
        )
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
    own: ProgramMessages,
    collectives: Collectives,
    members: list[NDArray[np.int32]],
    patterns: list[_Pattern],
) -> ProgramMessages:
    whole = message_bytes(collectives)
    sender = [m[p.sender] for m, p in zip(members, patterns, strict=True)]
    receiver = [m[p.receiver] for m, p in zip(members, patterns, strict=True)]
    size = [np.rint(p.share * n) for n, p in zip(whole.tolist(), patterns, strict=True)]
    added = sum(len(p.share) for p in patterns)
    return ProgramMessages(
        np.concatenate([own.sender, *sender]).astype(np.int32),
        np.concatenate([own.receiver, *receiver]).astype(np.int32),
        np.concatenate([own.size, *size]).astype(np.int64),
        np.concatenate([own.tag, np.full(added, -1)]).astype(np.int64),
        np.concatenate([own.mode, np.zeros(added)]).astype(np.int8),
    )
