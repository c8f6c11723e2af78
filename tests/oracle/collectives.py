"""Collectives as plain schedules of messages: what each rank sends, receives and adds up, in order.

Written from the descriptions of the algorithms, apart from the closed forms that are tested
against them. `run` carries a schedule out with the replay engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from popmodel.network.network import PRESETS
from popmodel.simulator import replay
from popmodel.simulator.program import Op, ProgramBuilder


class Step(NamedTuple):
    """Messages out and in at the same time, then an operation on ``reduced`` bytes."""

    to: int | None = None
    source: int | None = None
    size: float = 0.0
    reduced: float = 0.0


Schedule = list[list[Step]]  # by rank


def run(schedule: Schedule, alpha: float, beta: float, gamma: float) -> float:
    """Seconds on a one-port full-duplex network whose senders are busy for alpha + beta m."""
    network = PRESETS["alpha-beta"].with_(latency=alpha, bandwidth=1 / beta, eager_threshold=0)
    builder = ProgramBuilder(len(schedule))
    # the k-th message between a pair is the k-th that is received
    queued: dict[tuple[int, int], list[int]] = {}
    for rank, steps in enumerate(schedule):
        for step in steps:
            if step.to is not None:
                assert step.size == int(step.size)
                message = builder.message(rank, step.to, int(step.size))
                queued.setdefault((rank, step.to), []).append(message)
    waiting = {pair: list(messages) for pair, messages in queued.items()}
    for rank, steps in enumerate(schedule):
        for step in steps:
            incoming = None if step.source is None else waiting[step.source, rank].pop(0)
            outgoing = None if step.to is None else queued[rank, step.to].pop(0)
            if incoming is not None:
                builder.do(rank, Op.POST, incoming)
            if outgoing is not None:
                builder.do(rank, Op.SEND, outgoing)
            if incoming is not None:
                builder.do(rank, Op.WAIT_RECEIVE, incoming)
            builder.compute(rank, gamma * step.reduced)
    assert not any(waiting.values())
    return replay(builder.build(), network).runtime


def _power(p: int) -> int:
    return 1 << (p.bit_length() - 1)


def dissemination(p: int, _m: float) -> Schedule:
    hops = [1 << j for j in range((p - 1).bit_length())]
    return [[Step((r + h) % p, (r - h) % p) for h in hops] for r in range(p)]


def binomial_bcast(p: int, m: float) -> Schedule:
    plan: Schedule = [[] for _ in range(p)]
    hop = 1 << (p - 1).bit_length()
    while hop > 1:
        hop //= 2
        for r in range(0, p, 2 * hop):
            if r + hop < p:
                plan[r].append(Step(to=r + hop, size=m))
                plan[r + hop].append(Step(source=r))
    return plan


def binomial_reduce(p: int, m: float) -> Schedule:
    plan: Schedule = [[] for _ in range(p)]
    hop = 1
    while hop < p:
        for r in range(0, p, 2 * hop):
            if r + hop < p:
                plan[r + hop].append(Step(to=r, size=m))
                plan[r].append(Step(source=r + hop, reduced=m))
        hop *= 2
    return plan


def binomial_scatter(p: int, m: float) -> Schedule:
    """Blocks of m bytes from rank 0, a subtree's blocks in one message."""
    plan: Schedule = [[] for _ in range(p)]
    hop = 1 << (p - 1).bit_length()
    while hop > 1:
        hop //= 2
        for r in range(0, p, 2 * hop):
            if r + hop < p:
                plan[r].append(Step(to=r + hop, size=m * min(hop, p - r - hop)))
                plan[r + hop].append(Step(source=r))
    return plan


def binomial_gather(p: int, m: float) -> Schedule:
    forward = binomial_scatter(p, m)
    sizes = {(r, s.to): s.size for r, steps in enumerate(forward) for s in steps if s.to}
    plan: Schedule = []
    for r, steps in enumerate(forward):
        mine = []
        for s in reversed(steps):
            if s.to is not None:
                mine.append(Step(source=s.to))
            else:
                assert s.source is not None
                mine.append(Step(to=s.source, size=sizes[s.source, r]))
        plan.append(mine)
    return plan


def linear_scatter(p: int, m: float) -> Schedule:
    return [[Step(to=r, size=m) for r in range(1, p)]] + [[Step(source=0)] for _ in range(1, p)]


def linear_gather(p: int, m: float) -> Schedule:
    return [[Step(source=r) for r in range(1, p)]] + [[Step(to=0, size=m)] for _ in range(1, p)]


def ring_allgather(p: int, m: float) -> Schedule:
    return [[Step((r + 1) % p, (r - 1) % p, m)] * (p - 1) for r in range(p)]


def bruck_allgather(p: int, m: float) -> Schedule:
    """In round j everybody passes on what it has, up to the blocks that are still missing."""
    plan: Schedule = [[] for _ in range(p)]
    have = 1
    while have < p:
        size = m * min(have, p - have)
        for r in range(p):
            plan[r].append(Step((r - have) % p, (r + have) % p, size))
        have *= 2
    return plan


def scatter_allgather_bcast(p: int, m: float) -> Schedule:
    parts = zip(binomial_scatter(p, m / p), ring_allgather(p, m / p), strict=True)
    return [scatter + ring for scatter, ring in parts]


def chain_bcast(segments: int) -> Callable[[int, float], Schedule]:
    def plan(p: int, m: float) -> Schedule:
        ranks: Schedule = []
        for r in range(p):
            before, after = (r - 1 if r else None), (r + 1 if r + 1 < p else None)
            steps = []
            for k in range(segments + 1):  # receives a segment while it sends the one before
                source = before if k < segments else None
                to = after if k > 0 else None
                if r == 0:
                    source, to = None, after if k < segments else None
                if source is not None or to is not None:
                    steps.append(Step(to, source, m / segments))
            ranks.append(steps)
        return ranks

    return plan


def _folded(p: int, m: float, inner: Callable[[int], list[Step]], *, back: bool) -> Schedule:
    """Ranks beyond the power of two hand their vector over, and may get the result back."""
    power = _power(p)
    plan: Schedule = []
    for r in range(p):
        if r >= power:
            steps = [Step(to=r - power, size=m)]
            plan.append([*steps, Step(source=r - power)] if back else steps)
            continue
        fold = [Step(source=r + power, reduced=m)] if r + power < p else []
        unfold = [Step(to=r + power, size=m)] if back and r + power < p else []
        plan.append([*fold, *inner(r), *unfold])
    return plan


def doubling_allreduce(p: int, m: float) -> Schedule:
    hops = [1 << j for j in range(_power(p).bit_length() - 1)]
    return _folded(p, m, lambda r: [Step(r ^ h, r ^ h, m, reduced=m) for h in hops], back=True)


def doubling_barrier(p: int, m: float) -> Schedule:
    return [[Step(s.to, s.source) for s in steps] for steps in doubling_allreduce(p, m)]


def linear_barrier(p: int, _m: float) -> Schedule:
    return _after(linear_gather(p, 0), linear_scatter(p, 0))


def linear_reduce(p: int, m: float) -> Schedule:
    first, *others = linear_gather(p, m)
    return [[Step(source=s.source, reduced=m) for s in first], *others]


def reduce_bcast(p: int, m: float) -> Schedule:
    return _after(binomial_reduce(p, m), binomial_bcast(p, m))


def linear_scan(p: int, m: float) -> Schedule:
    return [
        ([Step(source=r - 1, reduced=m)] if r else [])
        + ([Step(to=r + 1, size=m)] if r < p - 1 else [])
        for r in range(p)
    ]


def doubling_allgather(p: int, m: float) -> Schedule:
    """Parts as large as the mean of what the ranks of the power of two stand for."""
    among = _folded(p, m, lambda r: _doubling_parts(p, m * p, r), back=True)
    for steps in among[: p - _power(p)]:
        steps[-1] = steps[-1]._replace(size=m * p)
    for steps in among:
        steps[:] = [s._replace(reduced=0) for s in steps]
    return among


def _after(*parts: Schedule) -> Schedule:
    return [[step for steps in mine for step in steps] for mine in zip(*parts, strict=True)]


def _halving(p: int, m: float, r: int) -> list[Step]:
    """Each exchange halves the vector that a rank works on."""
    steps, size, hop = [], m / 2, _power(p) // 2
    while hop:
        steps.append(Step(r ^ hop, r ^ hop, size, reduced=size))
        size, hop = size / 2, hop // 2
    return steps


def _doubling_parts(p: int, m: float, r: int) -> list[Step]:
    steps, hop = [], 1
    while hop < _power(p):
        steps.append(Step(r ^ hop, r ^ hop, m * hop / _power(p)))
        hop *= 2
    return steps


def rabenseifner_allreduce(p: int, m: float) -> Schedule:
    return _folded(p, m, lambda r: _halving(p, m, r) + _doubling_parts(p, m, r), back=True)


def rabenseifner_reduce(p: int, m: float) -> Schedule:
    power = _power(p)
    gather = binomial_gather(power, m / power)
    return _folded(p, m, lambda r: _halving(p, m, r) + gather[r], back=False)


def ring_allreduce(p: int, m: float) -> Schedule:
    around = [
        [Step((r + 1) % p, (r - 1) % p, m / p, reduced=m / p)] * (p - 1)
        + [Step((r + 1) % p, (r - 1) % p, m / p)] * (p - 1)
        for r in range(p)
    ]
    return around if p > 1 else [[]]


def halving_reduce_scatter(p: int, m: float) -> Schedule:
    assert p == _power(p)
    return [_halving(p, m, r) for r in range(p)]


def pairwise_reduce_scatter(p: int, m: float) -> Schedule:
    return [
        [Step((r + k) % p, (r - k) % p, m / p, reduced=m / p) for k in range(1, p)]
        for r in range(p)
    ]


def pairwise_alltoall(p: int, m: float) -> Schedule:
    return [[Step((r + k) % p, (r - k) % p, m) for k in range(1, p)] for r in range(p)]


def bruck_alltoall(p: int, m: float) -> Schedule:
    """In round j every block whose distance has bit j moves 2**j ranks on."""
    hops = [1 << j for j in range((p - 1).bit_length())]
    blocks = {h: sum(1 for distance in range(p) if distance & h) for h in hops}
    return [[Step((r + h) % p, (r - h) % p, m * blocks[h]) for h in hops] for r in range(p)]


def doubling_scan(p: int, m: float) -> Schedule:
    hops = [1 << j for j in range((p - 1).bit_length())]
    return [
        [
            Step(
                r + h if r + h < p else None,
                r - h if r >= h else None,
                m,
                reduced=m if r >= h else 0.0,
            )
            for h in hops
            if r + h < p or r >= h
        ]
        for r in range(p)
    ]
