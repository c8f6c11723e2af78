"""How large the times may be that a signature lacks, before anything was measured of the program.

A term that has a shape in some of the runs is as large as these allow (`term_selection`
asks them). One that none of them has (no team of theirs spans two memory domains, all were on one
node) may be there all the same: nothing speaks against it, and it grows where nobody measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from popmodel.machine.quantity import Topology
from popmodel.model.evaluation import ModelEvaluation
from popmodel.model.residual import RESIDUALS, Residual
from popmodel.model.run.placement import Placement
from popmodel.model.uncertainty import nominal
from popmodel.values import dataclass

_SHARE = 0.1  # of the runtime: a residual term where it is looked at
_FARTHER = 4.0  # times as many processes, or threads, as were measured, where that is
POSSIBLE = 0.3
"""Standard deviation of the score of a term for which the runs do not ask."""


@dataclass(frozen=True)
class Lacking:
    """A residual term beside the runs."""

    unit: float  # What one standard deviation of its score is, in the unit of the term
    is_seen: bool  # Whether it has a shape in some run

    @property
    def prior(self) -> float:
        """Standard deviation of its score, unless runs ask for it."""
        return POSSIBLE if self.is_seen else 1.0


def lacking(
    placements: Sequence[Placement], runs: Sequence[ModelEvaluation], topology: Topology
) -> dict[str, Lacking]:
    """Return the residual terms that a program may have on a machine.

    One standard deviation is `_SHARE` of the runtime where the term is largest: a time in a run of
    `_FARTHER` times as many processes as that, which computes so much less, a part of the loops in
    the run itself. What grew faster would make runs impossible that people make every day. A term
    that no run has is looked at in runs that are `_FARTHER` times as large.
    """
    found = {}
    for name, term in RESIDUALS.items():
        shapes = [term.shape(one) for one in placements]
        is_seen = any(shapes)
        if not is_seen and not term.is_possible(topology):
            continue
        parts = [
            _part(term, shape, run, is_seen=is_seen)
            for shape, run in zip(shapes, runs, strict=True)
            if shape or not is_seen
        ]
        largest = max(parts)
        if largest > 0 and math.isfinite(largest):
            found[name] = Lacking(_SHARE / largest, is_seen)
    return found


def _part(term: Residual, shape: float, run: ModelEvaluation, *, is_seen: bool) -> float:
    """Part of the runtime that a term with amplitude 1 takes where it is looked at."""
    is_farther = term.unit == "s" or not is_seen
    there = term.grown(shape, _FARTHER) if is_farther else shape
    after = term.added(run.work, there)
    seconds = nominal(after.transfer + after.stretched) - nominal(
        run.work.transfer + run.work.stretched
    )
    shorter = _FARTHER if is_farther and term.is_fixed else 1.0
    return seconds * shorter / nominal(run.modelled.runtime)
