"""Wavefronts: every process waits for its predecessors block by block.

The time of successive sweeps is the longest path through their blocks. It goes through all blocks
of some process one after the other and, along each dimension of the grid, once across all
processes for every change of direction: sweeps that follow each other in the same direction fill
the pipeline once, each way of a forward and a backward sweep fills it anew.

Against sweeps that run event by event on 1-, 2- and 3-dimensional grids of 4 to 64 processes with
1 to 64 blocks (one sweep; five the same way; forward and back three times; corners in turn), with
messages of 0.01, 0.1 and 1 times the computation of a block, the largest error of a runtime is

====================================================  ===========  ======
a message of a block                                  closed form  replay
====================================================  ===========  ======
keeps its sender busy for its overhead                      0.1 %   0.1 %
keeps its sender busy as long as it takes                   0.1 %   0.1 %
waits for its receiver (corners in turn; else 0.1 %)        4   %   0.1 %
needs the port longer than a block takes                    0.1 %   0.1 %
====================================================  ===========  ======

and of ideal runtimes nothing. Where the blocks of successive sweeps differ in time, the ideal
runtime is exact as well; what messages add is nearly so: half of 200 random orders of one to three
different sweeps are exact, nine in ten within 2 %, the worst, with messages as long as blocks, is
wrong by 12 %.

Source: A. Hoisie, O. Lubeck, H. Wasserman, Int. J. High Perform. Comput. Appl. 14 (2000) 330
(pipelined wavefront sweeps, and successive ones from the same and from other corners).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from popmodel.base.expressions.elementary import Value, maximum, minimum
from popmodel.base.values import dataclass


@dataclass(frozen=True)
class Front:
    """What a wave pays along one dimension of the grid, s.

    Attributes
    ----------
    filling : value
        Computation until the last process starts.
    hops : value
        Messages until then, one from each process to the next.
    between : value
        What sending costs a process between its first block and its last one.
    joining : value
        What sending its last block costs before the first one of a wave that goes the same way.
    """

    filling: Value = 0.0
    hops: Value = 0.0
    between: Value = 0.0
    joining: Value = 0.0


Fronts: TypeAlias = Mapping[tuple[int, int], Front]
"""By dimension of the grid and direction along it, 1 or -1."""


def sending_time(message: Value, gap: Value, meanwhile: Value, overhead: Value) -> Value:
    """Return how long a message that is sent keeps its process from the next block, s.

    The sender's overhead; or what the port, through which messages follow each other, needs longer
    than the computation meanwhile; at most the whole message.

    Parameters
    ----------
    message : value
        The whole message, s.
    gap : value
        Its time beyond that of an empty one, s.
    meanwhile : value
        Computation until the port is needed again, s.
    overhead : value
        Time in which a process is busy with sending a message, s.
    """
    return minimum(message, maximum(overhead, gap - meanwhile))


def front(
    processes: int, blocks: Value, sweep: Value, hops: Value, sending: Value, late: Value = 0.0
) -> Front:
    """Return what a wave pays along a dimension: ``(P_d - 1) t/K`` and its messages.

    Parameters
    ----------
    processes : int
        P_d along the dimension.
    blocks : value
        Blocks K of the sweep of a process.
    sweep : value
        Time t of the whole sweep of a process, s.
    hops : value
        Messages of a block from the first process to the last one, s.
    sending : value
        What sending a block costs its process, s.
    late : value
        By how much the receives of the next wave are posted too late for senders that wait, s.
    """
    filling = (processes - 1) * (sweep / blocks)
    return Front(filling, hops, (blocks - 1) * sending, sending + late)


def waiting(mine: Fronts, before: Fronts) -> Value:
    """Return the computation that a wave waits for, with others before it, s.

    Where one went the same way, the pipeline is full; blocks that take longer than those before
    make it longer: of waves in the same direction, the slowest fills.
    """
    return sum(one.filling - _same(before, way, "filling", one) for way, one in mine.items())


def transfer(mine: Fronts, before: Fronts) -> Value:
    """Return what messages add to a wave, with others before it, s.

    The last block of a wave is sent before the first one of the next is computed. Receives are
    posted a block ahead, but not before a wave begins: a process in the middle posts the first one
    after it has sent its last block, and where senders wait, the one before it waits for that.
    """
    return sum(
        one.hops
        - _same(before, way, "hops", one)
        + one.between
        + (before[way].joining if way in before else 0.0)
        for way, one in mine.items()
    )


def _same(before: Fronts, way: tuple[int, int], name: str, one: Front) -> Value:
    """What both waves pay, which is paid once."""
    if way not in before:
        return 0.0
    return minimum(getattr(one, name), getattr(before[way], name))


def after(mine: Fronts, before: Fronts) -> Fronts:
    """Return what the waves until now have paid; those the other way start at their end."""
    kept = {(dim, way): one for (dim, way), one in before.items() if (dim, -way) not in mine}
    joined = {
        way: Front(
            maximum(one.filling, kept[way].filling) if way in kept else one.filling,
            maximum(one.hops, kept[way].hops) if way in kept else one.hops,
            joining=one.joining,
        )
        for way, one in mine.items()
    }
    return kept | joined


def sometimes(part: Value, executed: Fronts, skipped: Fronts) -> Fronts:
    """Return what is paid on average where something is executed in a part of all cases only."""
    mixed = {}
    for way in dict.fromkeys((*executed, *skipped)):
        one, other = executed.get(way, Front()), skipped.get(way, Front())
        mixed[way] = Front(
            *(part * value + (1 - part) * vars(other)[name] for name, value in vars(one).items())
        )
    return mixed
