"""Sweeps through a grid of processes, event by event: what the model of pipelines is held to.

Nothing here is the package's: processes are generators with a clock each, which wait for messages
of others.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Sweep:
    """One sweep: way along each dimension (1, -1, or 0 for not at all), blocks, times in s."""

    ways: tuple[int, ...]
    blocks: int
    seconds: float
    latency: float
    gap: float = 0.0
    overhead: float = 0.0
    waits: bool = False

    @property
    def message(self) -> float:
        return self.latency + self.gap


Where = tuple[int, ...]
Moment = tuple[object, ...]
"""What happens once: a block that arrives, a receive that is posted."""


class Times:
    """Moments and when they are; processes that wait for one go on as soon as it is known."""

    def __init__(self) -> None:
        self.known: dict[Moment, float] = {}
        self.sleeping: dict[Moment, list[Iterator[Moment]]] = {}
        self.ready: list[Iterator[Moment]] = []

    def tell(self, moment: Moment, time: float) -> None:
        """Let those go on who wait for something."""
        self.known[moment] = time
        self.ready += self.sleeping.pop(moment, ())

    def run(self, processes: Iterable[Iterator[Moment]]) -> None:
        self.ready += processes
        while self.ready:
            process = self.ready.pop()
            if (moment := next(process, None)) is not None:
                self.sleeping.setdefault(moment, []).append(process)
        assert not self.sleeping


def runtime(extent: Where, sweeps: Sequence[Sweep]) -> float:
    """Time of sweeps that follow each other on a grid of processes, s.

    A process waits for a block from each process before it, computes, and sends to each after it,
    one after the other. It goes on after the overhead, or, where senders wait, when the message
    has arrived; its port carries one message after the other. Receives are posted one block ahead.
    """
    times = Times()
    known, ends = times.known, []

    def neighbour(at: Where, dim: int, by: int) -> Where | None:
        there = (*at[:dim], at[dim] + by, *at[dim + 1 :])
        return there if 0 <= there[dim] < extent[dim] else None

    def process(at: Where) -> Iterator[Moment]:
        """Run by its own clock; moments are yielded that are not known yet."""
        now = free = 0.0
        for number, sweep in enumerate(sweeps):
            crossed = [dim for dim, way in enumerate(sweep.ways) if way]
            sources = [neighbour(at, dim, -sweep.ways[dim]) for dim in crossed]
            targets = [neighbour(at, dim, sweep.ways[dim]) for dim in crossed]
            before, after = ([one for one in each if one] for each in (sources, targets))
            rest = sweep.message - (0.0 if sweep.waits else sweep.overhead)
            times.tell(("posted", number, 0, at), now)
            for block in range(sweep.blocks):
                for source in before:
                    arrived = number, block, source, at
                    if arrived not in known:
                        yield arrived
                    now = max(now, known[arrived])
                now += sweep.seconds / sweep.blocks
                times.tell(("posted", number, block + 1, at), now)
                for target in after:
                    if sweep.waits:
                        posted = "posted", number, block, target
                        if posted not in known:
                            yield posted
                        now = max(now, known[posted])
                    else:
                        now += sweep.overhead
                    begin = max(now, free)
                    free = begin + sweep.gap
                    times.tell((number, block, at, target), begin + rest)
                    if sweep.waits:
                        now += rest
        ends.append(now)

    times.run(process(place) for place in itertools.product(*map(range, extent)))
    return max(ends)
