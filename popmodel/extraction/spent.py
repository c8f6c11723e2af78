"""What several runs spend at the points of the first one: seconds, and instructions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from popmodel.extraction.beside import Beside
    from popmodel.extraction.outline import Outline
    from popmodel.extraction.spread import Description
    from popmodel.fitting.samples import Sample

ERROR_OF_COUNTS = 0.003
"""Relative error of instructions: what they repeat to between runs."""


def seconds(
    outline: Outline, point: int, one: Description, runs: Sequence[Beside], by_run: bool
) -> list[Sample]:
    """Return the seconds of an average process in every run, of an average thread in regions."""
    computing, team = outline.points[point], outline.teams[point]
    error = _error_of(one)
    if team is not None:
        return [run.sample(run.useful(point), error) for run in runs]
    spent = [
        value / run.processes
        for run, value in zip(
            runs, _per_execution(computing.place, runs, "computing", by_run=by_run), strict=True
        )
    ]
    return [
        run.sample(one.mean * value / spent[0] if spent[0] else 0.0, error)
        for run, value in zip(runs, spent, strict=True)
    ]


def executed(
    outline: Outline, point: int, one: Description, runs: Sequence[Beside], by_run: bool
) -> list[Sample] | None:
    """Return the instructions of an average process in every run, of an average thread in regions.

    Parameters are those of `seconds`. None where nobody counted them in one of the runs.
    """
    computing = outline.points[point]
    if computing.instructions is None or any(run.counted is None for run in runs):
        return None
    in_team = outline.teams[point] is not None
    mean = float(computing.instructions.sum()) / (len(computing.seconds) * max(one.executions, 1))
    which = "inside" if in_team else "before"
    found = [
        value / (run.processes * (run.threads if in_team else 1))
        for run, value in zip(
            runs, _per_execution(computing.place, runs, which, by_run=by_run), strict=True
        )
    ]
    first = mean / (runs[0].threads if in_team else 1)
    return [
        run.sample(first * value / found[0] if found[0] else 0.0, ERROR_OF_COUNTS)
        for run, value in zip(runs, found, strict=True)
    ]


def _per_execution(place: int, runs: Sequence[Beside], what: str, *, by_run: bool) -> list[float]:
    """What all processes spend or count at a place, per execution of each or of the first run."""
    base = runs[0]
    group = np.array([place]) if what == "inside" else _group(place, runs)
    own = place if all(run.both[place] for run in runs) else int(group[-1])

    def of(run: Beside) -> float:
        table = run.totals if what == "computing" else run.counted
        often = (run if by_run else base).totals.executions[own]
        return float(getattr(table, what)[group].sum()) / max(float(often), 1.0)

    return [of(run) for run in runs]


def _group(place: int, runs: Sequence[Beside]) -> NDArray[np.int64]:
    """Places around one that end where all runs have a place: their times are known together."""
    common = np.flatnonzero(np.logical_and.reduce([run.both for run in runs]))
    place = len(runs[0].both) - 1 if place < 0 else place
    last = int(common[np.searchsorted(common, place)])
    before = common[common < last]
    return np.arange(int(before[-1]) + 1 if len(before) else 0, last + 1)


def _error_of(one: Description) -> float | None:
    """Relative error of a mean, from its interval; None if nobody knows."""
    if one.low is None or one.high is None or not one.low > 0:
        return None
    return max(math.log(one.high / one.low) / (2 * 1.645), 0.01)
