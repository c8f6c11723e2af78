"""Whether a part of the work is all that more processes would wait for.

Work that comes in blocks of unequal size is dealt out, the largest block to one process however
many there are. What a process computes in all is known, the blocks are not, but: if a process has
more than twice the work of another, it has a single block, else up to half of its work could be
moved there, and the slowest would be faster. A process that does nothing of the kind, such as a
master, must not count as the other one, so that the slowest is held against the middle of all.

Where processes have about the same, larger blocks than their shares are impossible, and nothing is
known of smaller ones. That a program has blocks shows in its messages: without a grid processes
send unequal numbers of bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.fit.law import ASSUMED, FIT
from popmodel.signature.computing import timing
from popmodel.signature.toml import number
from popmodel.simulator.program import Op
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.structure.structure import Structure


_TWICE = 2.0
_EVEN = 0.5
"""Where runs speak for a part that divides as much as for a block."""
_UNEQUAL = 0.1
"""Coefficient of variation of sent bytes from which processes have unequal blocks."""
_NOISE = 0.03
"""What the work of a process is off on a quiet machine."""
_DIGITS = 4


@dataclass(frozen=True)
class Dealt:
    """How the work of a run is dealt out to its processes."""

    processes: int  # P
    parameters: Mapping[str, float]  # Of the problem
    # float64[P]: Part of each process of all work that is done again and again.
    parts: NDArray[np.float64]
    sends_unequal: bool  # Whether processes send unequal numbers of bytes there

    @property
    def most(self) -> float:
        """Part of the slowest process."""
        return float(self.parts.max())

    @property
    def is_one(self) -> bool:
        """Whether the slowest process has more than twice the work of the one in the middle."""
        return self.processes > _FEWEST and self.most > _TWICE * float(np.median(self.parts))


_FEWEST = 2  # processes: of two the slowest is in the middle, too


@dataclass(frozen=True)
class LargestBlock:
    """The largest part of the work that cannot be divided."""

    entry: Mapping[str, Any]  # As a signature has it
    without: int | None  # Process of the run on the most that has it; None if no part is told
    note: str  # One line, for users; empty for none


def dealt(structure: Structure, parameters: Mapping[str, float]) -> Dealt | None:
    """Return how the work of a run is dealt out; None if nothing is done again and again."""
    events, program = structure.events, structure.program
    times, processes = timing(events), program.sequences
    often = np.bincount(structure.place, minlength=len(structure.places))
    again = often[structure.place] >= 2 * processes
    spent = np.bincount(
        events.sequence[again], (times.before + times.inside)[again], minlength=processes
    )
    if not spent.sum() > 0:
        return None
    sends = np.flatnonzero(np.isin(program.kind, (Op.SEND, Op.ISEND)))
    event = np.searchsorted(events.first, sends, side="right") - 1
    mine = again[event]
    sent = np.bincount(
        events.sequence[event][mine],
        program.messages.size[program.target[sends]][mine],
        minlength=processes,
    )
    mean = float(sent.mean())
    unequal = mean > 0 and float(sent.std()) > _UNEQUAL * mean
    return Dealt(processes, dict(parameters), spent / spent.sum(), unequal)


def largest(runs: Sequence[Dealt | None], *, has_grid: bool) -> LargestBlock | None:
    """Find the largest part of the work that cannot be divided; None if nothing speaks for one."""
    first = runs[0]
    if first is None or first.processes == 1:
        return None
    smaller = [
        one
        for one in runs
        if one is not None
        and 1 < one.processes < first.processes
        and one.parameters == first.parameters
    ]
    before = max(smaller, key=lambda one: one.processes, default=None)
    in_blocks = first.sends_unequal and not has_grid
    if first.is_one:  # with equal shares nothing tells a block from a part that divides
        divides = None if before is None else _divides(before, first)
        if in_blocks if divides is None else divides < _EVEN:
            return _told(first, divides)
    return _possible(first) if in_blocks else None


def _divides(before: Dealt, now: Dealt) -> float:
    """How much a run on fewer processes speaks for a part that divides: 0 for a block, 1 for that.

    The slowest process has at least an equal share there. With one block it has no more than
    that block; had it been divided since, it had as many times its part now as there are more
    processes.
    """
    block = max(1 / before.processes, now.most)
    divided = now.most * now.processes / before.processes
    from_block = abs(math.log(before.most / block))
    from_divided = abs(math.log(before.most / divided))
    return from_block / (from_block + from_divided)


def _told(first: Dealt, divides: float | None) -> LargestBlock:
    part, holder = first.most, int(np.argmax(first.parts))
    # of two blocks of a size the larger number of processes has one
    low = part * min(2 ** -(1.0 if divides is None else divides), 1 - _NOISE)
    source = f"part of process {holder} of {first.processes}, more than twice that of most"
    origin = ASSUMED if divides is None else FIT
    note = (
        f"process {holder} has {100 * part:.3g} % of the work and most have less than half of "
        "that: taken for a block that more processes do not divide"
    )
    return LargestBlock(
        _entry(part, low, min(part * (1 + _NOISE), 1.0), origin, source), holder, note
    )


def _possible(first: Dealt) -> LargestBlock:
    """Nothing is known of blocks that are smaller than the shares, but that there are some.

    One that is in the way comes with the next j doublings of P, after k without one, by Laplace's
    rule of succession with probability j/(k + 1 + j), in the half of programs that may have one.
    The upper end is where that makes one in twenty.
    """
    doublings = math.log2(first.processes)
    high = first.most * 2 ** (-(doublings + 1) / 9)
    source = f"blocks of unknown size, at most {100 * first.most:.3g} % of the work"
    note = (
        "processes without a grid send unequal numbers of bytes: the largest of some blocks may be "
        "all that more processes wait for; a run on more of them would tell"
    )
    return LargestBlock(_entry(0.0, 0.0, high, ASSUMED, source), None, note)


def _entry(value: float, low: float, high: float, origin: str, source: str) -> dict[str, Any]:
    ends = {"value": value, "low": low, "high": high}
    found: dict[str, Any] = {name: number(one, _DIGITS) for name, one in ends.items()}
    return {**found, "origin": origin, "source": source}
