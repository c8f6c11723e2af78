"""Measured runs whose threads had no cores of their own: they say nothing about a prediction.

A run with more threads than cores, one that as many threads do not shorten, and one whose repeats
differ far more than those of all others are left out of the comparison, each with its reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from popmodel.model.terms.openmp import NO_SPEEDUP
from popmodel.runs.measurement import MeasuredRow
from popmodel.units import plural
from popmodel.validation.comparison import Split, describe_run
from popmodel.values import dataclass

EXPECTED_SPEEDUP = 1.5
"""Predicted speed-up by threads from which none at all tells of the binding, not of the model."""
LARGE_SPREAD = 0.3
"""Longest over shortest of some repeats, less 1, from which they may be disturbed."""
FAR_ABOVE = 5.0
"""By what factor that exceeds what is usual in the other runs, then."""


@dataclass(frozen=True)
class ExcludedRuns:
    """Runs that are not compared."""

    # P and T.
    processes: int
    threads: int
    parameters: Mapping[str, float]  # Those of the application
    sources: tuple[str, ...]  # The files that the runs come from
    measured: tuple[float, ...]  # Their runtimes, s
    why: str  # What stands against them

    @classmethod
    def of(cls, runs: Sequence[MeasuredRow], why: str) -> ExcludedRuns:
        """Runs of one split and one set of parameters."""
        return cls(
            runs[0].processes,
            runs[0].threads,
            runs[0].parameters,
            tuple(dict.fromkeys(run.source for run in runs)),
            tuple(run.runtime for run in runs),
            why,
        )

    def sentence(self, names: Sequence[str] = ()) -> str:
        """Say which runs are left out, and why."""
        split = describe_run(self.processes, self.threads, self.parameters, names)
        return f"left out: {plural(len(self.measured), 'run')} of {split}: {self.why}"


def oversubscribed(run: MeasuredRow, nodes: int, cores: int) -> str | None:
    """Say that a run had more threads than cores; None if it need not have had."""
    threads = math.ceil(run.processes / nodes) * run.threads  # of the fullest node at least
    if threads <= cores:
        return None
    return f"more threads ({threads}) than cores ({cores}) on a node of the machine"


def excluded(runs: Iterable[tuple[MeasuredRow, str]]) -> tuple[ExcludedRuns, ...]:
    """Take runs that are left out for one reason each together by split and parameters."""
    groups: dict[tuple[object, ...], list[MeasuredRow]] = {}
    for run, why in runs:
        groups.setdefault((*run.configuration, why), []).append(run)
    return tuple(ExcludedRuns.of(same, str(why)) for (*_, why), same in groups.items())


def suspicious(splits: Sequence[Split]) -> tuple[tuple[Split, ...], tuple[ExcludedRuns, ...]]:
    """Part the splits into those to be judged and those that look disturbed.

    A split is left out if

    - it is no faster than the same processes with one thread each, where the prediction is faster
      by `EXPECTED_SPEEDUP`: so it looks if the threads of a process are bound to one core;
    - the longest of its repeats exceeds the shortest by more than `LARGE_SPREAD`, and by more than
      `FAR_ABOVE` times what is the median of the other splits; that takes two others with repeats.
    """
    kept: list[Split] = []
    left: list[ExcludedRuns] = []
    for split in splits:
        why = _uneven(split, splits) or _no_speedup(split, splits)
        if why is None:
            kept.append(split)
        else:
            left.append(ExcludedRuns.of([pair.run for pair in split.runs], why))
    return tuple(kept), tuple(left)


def _no_speedup(split: Split, splits: Sequence[Split]) -> str | None:
    if split.threads == 1:
        return None
    for one in splits:
        if (one.processes, one.threads, one.parameters) != (split.processes, 1, split.parameters):
            continue
        measured = one.runtime.mean / split.runtime.mean
        predicted = one.runtime.predicted / split.runtime.predicted
        if measured <= 1 + NO_SPEEDUP and predicted >= EXPECTED_SPEEDUP:
            return (
                f"{measured:.2f} times as fast as {one.describe()}, {predicted:.2g} times "
                "predicted: as if the threads of a process shared a core"
            )
    return None


def _uneven(split: Split, splits: Sequence[Split]) -> str | None:
    others = [_spread(one) for one in splits if one is not split and len(one.runtime.measured) > 1]
    if len(split.runtime.measured) < 2 or len(others) < 2:
        return None
    spread, usual = _spread(split), median(others)
    if spread <= max(LARGE_SPREAD, FAR_ABOVE * usual):
        return None
    times = split.runtime.measured
    return (
        f"they took {min(times):.3g} to {max(times):.3g} s, while repeats of the others differ by "
        f"{100 * usual:.2g} %: something else ran on their cores"
    )


def _spread(split: Split) -> float:
    return max(split.runtime.measured) / min(split.runtime.measured) - 1
