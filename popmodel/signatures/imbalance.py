"""How unequal the work of processes is with other numbers of them than were traced.

What differs by chance from one execution to the next is no property of a process. It is left out
without knowing its law: what a process computes in every other execution of the places of a program
and what it computes in those between have only in common what lasts, so that their covariance over
the processes is the variance of that.

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
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.base.values import dataclass
from popmodel.fit.law import ASSUMED, FIT
from popmodel.fit.physical_laws import growth
from popmodel.fit.samples import Sample
from popmodel.signatures.amounts import LawSet, SignatureAmount, SignatureConstant
from popmodel.signatures.document import number
from popmodel.signatures.outline import timing
from popmodel.signatures.place_calls import operations_of
from popmodel.simulator.program import Op

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from popmodel.fit.physical_laws import LawGrowth
    from popmodel.signatures.recorded_times import Description
    from popmodel.structure.structure import Structure

_NAME = "imbalance"
_WHAT = "imbalance between processes"
_MOST = 0.5  # coefficient of variation beyond which processes do different things
_UNTOLD = 1.0  # relative error of an imbalance from which it may be chance
_DIGITS = 4
_TWICE = 2.0
_FEWEST = 2  # processes: of two the slowest is in the middle, too
_EVEN = 0.5  # where runs speak for a part that divides as much as for a block
_UNEQUAL = 0.1  # coefficient of variation of sent bytes from which there are unequal blocks
_NOISE = 0.03  # what the work of a process is off on a quiet machine


@dataclass(frozen=True, eq=False)
class WorkShares:
    """How the work of a run that is done again and again is shared by its processes."""

    threads: int
    parameters: Mapping[str, float]  # Of the problem
    halves: NDArray[np.float64]  # float64[P, 2]: In every other execution of places, and between
    sends_unequal: bool  # Whether processes send unequal numbers of bytes there

    @property
    def processes(self) -> int:
        """P."""
        return len(self.halves)

    @property
    def parts(self) -> NDArray[np.float64]:
        """Part of each process of all work: float64[P]."""
        return np.asarray(self.halves.sum(axis=1) / self.halves.sum(), dtype=np.float64)

    @property
    def most(self) -> float:
        """Part of the slowest process."""
        return float(self.parts.max())

    @property
    def is_block(self) -> bool:
        """Whether the slowest process has more than twice the work of the one in the middle."""
        return self.processes > _FEWEST and self.most > _TWICE * float(np.median(self.parts))

    def variation(self, without: int | None = None) -> Sample | None:
        """By how much processes differ for good, one of them left out; None if nobody can say."""
        halves = self.halves if without is None else np.delete(self.halves, without, axis=0)
        mean = halves.mean(axis=0)
        if len(halves) < _FEWEST or not mean.all():
            return None
        table = np.cov((halves / mean).T)
        lasting, by_chance = float(table[0, 1]), float(np.diag(table).mean() - table[0, 1])
        cv = math.sqrt(max(lasting, 0.0))
        if cv > _MOST:
            return None
        chance = by_chance / (2 * lasting * math.sqrt(len(halves) - 1)) if lasting > 0 else 0.0
        return Sample(self.processes, self.threads, cv, dict(self.parameters), max(chance, 0.0))


def work_shares(
    structure: Structure, threads: int, parameters: Mapping[str, float]
) -> WorkShares | None:
    """Return how the work of a run is shared; None if nothing is done again and again."""
    events, program, times = structure.events, structure.program, timing(structure.events)
    processes = program.sequences
    often = np.bincount(structure.place, minlength=len(structure.places))
    again = often[structure.place] >= 2 * processes  # each has some of both halves
    spent = (times.before + times.inside)[again]
    if not spent.any():
        return None
    half = events.sequence[again].astype(np.int64) * 2 + structure.execution[again] % 2
    halves = np.bincount(half, spent, 2 * processes).reshape(processes, 2).astype(np.float64)
    sends, event = operations_of(structure, (Op.SEND, Op.ISEND))
    mine = again[event]
    sizes = program.messages.size[program.target[sends]][mine]
    sent = np.bincount(events.sequence[event][mine], sizes, minlength=processes)
    unequal = float(sent.std()) > _UNEQUAL * float(sent.mean()) > 0
    return WorkShares(threads, dict(parameters), halves, unequal)


def add_imbalance(
    laws: LawSet,
    descriptions: Sequence[Description],
    runs: Sequence[WorkShares | None],
    has_grid: bool,
) -> dict[str, Any]:
    """Add how unequal processes are; return the table ``[imbalance]`` of a signature."""
    variations = [None if run is None else run.variation() for run in runs]
    table: dict[str, Any] = {}
    if (block := _largest_block(runs, has_grid)) is not None:
        table["largest"], holder, note = block
        laws.notes.append(note)
        if holder is not None and runs[0] is not None:
            variations[0] = runs[0].variation(holder)
    law = _add_growth(laws, descriptions, variations)
    if law is None:
        return table
    meaning = law.exponent.meaning
    if law.exponent.origin == ASSUMED:
        meaning = "cells between alike and independent"
    ends = law.exponent.value, law.exponent.low, law.exponent.high
    exponent = _entry(*ends, law.exponent.origin, meaning)
    return {"reference_processes": law.reference_processes, "growth_exponent": exponent, **table}


def _add_growth(
    laws: LawSet, descriptions: Sequence[Description], variations: Sequence[Sample | None]
) -> LawGrowth | None:
    """Find how imbalance grows with the number of processes; None if there is none."""
    cvs = {
        point: times.persistent_cv * math.sqrt(len(times.by_rank) / (len(times.by_rank) - 1))
        for point, times in enumerate(descriptions)
        if times.by_rank and 0 < times.persistent_cv <= _MOST
    }
    if not cvs:
        return None
    first = variations[0]
    known = [sample for sample in variations if sample is not None and sample.value > 0]
    chance = (first and first.relative_error) or 0.0
    if first is None or len(known) < 2 or not first.value > 0 or chance >= _UNTOLD:
        for point, cv in cvs.items():
            amount = SignatureAmount(number(cv, _DIGITS), note="trace; its growth assumed")
            laws.amounts["persistent_cv", point] = amount
        point, cv = next(iter(cvs.items()))
        return growth([Sample(len(descriptions[point].by_rank), 1, cv)])
    law = growth(known)
    source = f"{law.cv.meaning} for good, all work"
    constant = SignatureConstant(
        _NAME, law.cv.value, law.cv.low, law.cv.high, "1", law.cv.origin, source
    )
    for point, cv in cvs.items():
        # as the law of all work, as it was in the first run; of what is executed once nobody can
        # tell what lasts
        amount = SignatureAmount(number(cv, _DIGITS), note="trace; executed once")
        if descriptions[point].executions > 1:
            formula = f"{cv / first.value:.{_DIGITS}g}*{_NAME}"
            amount = SignatureAmount(formula, (constant,), f"{law.exponent.origin}: of other P")
        laws.amounts["persistent_cv", point] = amount
    laws.add_law(
        _WHAT,
        f"P**{law.exponent.value:.2g}",
        f"{{a}}*(P/{law.reference_processes})**{{p}}",
        law.exponent.origin,
        len(known),
        constants={"a": law.cv, "p": law.exponent},
        notes=law.notes,
    )
    return law


def _largest_block(
    runs: Sequence[WorkShares | None], has_grid: bool
) -> tuple[dict[str, Any], int | None, str] | None:
    """The largest part of the work that cannot be divided; None if nothing speaks for one.

    Its entry in a signature, the process of the first run, that on the most, that has it (None if
    no part is told), and a note.
    """
    first = runs[0]
    if first is None or first.processes == 1:
        return None
    smaller = [
        run
        for run in runs
        if run is not None
        and 1 < run.processes < first.processes
        and run.parameters == first.parameters
    ]
    before = max(smaller, key=lambda run: run.processes, default=None)
    in_blocks = first.sends_unequal and not has_grid
    # with equal shares nothing tells a block from a part that divides
    divides = None if before is None or not first.is_block else _divides(before, first)
    if not (first.is_block and (in_blocks if divides is None else divides < _EVEN)):
        return _possible_block(first) if in_blocks else None
    part, holder = first.most, int(np.argmax(first.parts))
    # of two blocks of a size the larger number of processes has one
    low = part * min(2 ** -(1.0 if divides is None else divides), 1 - _NOISE)
    source = f"part of process {holder} of {first.processes}, more than twice that of most"
    note = (
        f"process {holder} has {100 * part:.3g} % of the work and most have less than half of "
        "that: taken for a block that more processes do not divide"
    )
    origin = ASSUMED if divides is None else FIT
    return _entry(part, low, min(part * (1 + _NOISE), 1.0), origin, source), holder, note


def _divides(before: WorkShares, now: WorkShares) -> float:
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


def _possible_block(first: WorkShares) -> tuple[dict[str, Any], None, str]:
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
    return _entry(0.0, 0.0, high, ASSUMED, source), None, note


def _entry(value: float, low: float, high: float, origin: str, source: str) -> dict[str, Any]:
    ends = {"value": value, "low": low, "high": high}
    entry: dict[str, Any] = {name: number(end, _DIGITS) for name, end in ends.items()}
    return {**entry, "origin": origin, "source": source}
