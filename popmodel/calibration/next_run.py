"""Which run to measure next: the one that narrows the answer most, and what it costs.

In the linear model around a fit the variance that a new run leaves does not depend on what it will
measure (K. Chaloner, I. Verdinelli, Bayesian experimental design, Stat. Sci. 10 (1995) 273).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from popmodel.calibration.fit import CalibrationFit, log_runtimes
from popmodel.calibration.problem import Configuration
from popmodel.errors import PopmodelError
from popmodel.model.laws import LOOPS
from popmodel.values import dataclass

Array = NDArray[np.float64]

SHOWN = 3
_FARTHER = 4
"""Times the largest number of cores that was measured: a next run is no larger."""


@dataclass(frozen=True)
class NextRun:
    """A run that is worth measuring."""

    # P, T and the nodes that it needs.
    processes: int
    threads: int
    nodes: int
    parameters: Mapping[str, float]  # Of the signature
    narrows: float  # By what part the interval of the answer becomes narrower, 0 to 1
    runtime: float  # Seconds that it takes, as far as is known now

    @property
    def core_seconds(self) -> float:
        """What it costs."""
        return self.processes * self.threads * self.runtime


def next_runs(
    found: CalibrationFit, targets: Sequence[tuple[int, int]], settings: Mapping[str, float]
) -> tuple[NextRun, ...]:
    """Find the runs that narrow the runtime of some splits most."""
    asked = [one for one in (_at(found, settings, *split) for split in targets) if one is not None]
    if not asked:
        return ()
    _, aims = log_runtimes(found, asked)
    before = np.einsum("ij,jk,ik->i", aims, found.covariance, aims)
    if not before.any():
        return ()
    candidates = list(_candidates(found, {(*split,) for split in targets}, settings))
    if not candidates:
        return ()
    logs, slopes = log_runtimes(found, candidates)
    results = []
    for one, log, slope in zip(candidates, logs, slopes, strict=True):
        shared = aims @ found.covariance @ slope
        own = float(slope @ found.covariance @ slope) + found.noise**2 + _own(found)
        left = before - shared**2 / own
        narrows = 1 - float(np.sqrt(max(left.sum(), 0.0) / before.sum()))
        at = one.placement
        results.append(
            NextRun(
                at.processes, at.threads, at.nodes, one.study.values, narrows, float(np.exp(log))
            )
        )
    useful = [one for one in results if one.narrows > _NOTHING]
    return tuple(sorted(useful, key=lambda one: (-round(one.narrows, 2), one.core_seconds))[:SHOWN])


def _own(found: CalibrationFit) -> float:
    """Variance of the logarithm of a runtime that a split has for itself: mostly that of loops."""
    return LOOPS.own * (found.problem.own * LOOPS.spread) ** 2


def _at(
    found: CalibrationFit, settings: Mapping[str, float], processes: int, threads: int
) -> Configuration | None:
    """Return a split as a configuration without runs; None where it is not possible."""
    first = found.problem.configurations[0].study
    study = first.with_settings(settings)
    try:
        placement = study.admit(processes, threads)
    except PopmodelError:
        return None
    return Configuration(study, placement, ())


def _candidates(
    found: CalibrationFit, targets: set[tuple[int, ...]], settings: Mapping[str, float]
) -> Iterator[Configuration]:
    """Runs that may be measured next: of no more cores than a few times those of before."""
    problem = found.problem
    measured = {
        (one.placement.processes, one.placement.threads, *sorted(one.study.values.items()))
        for one in problem.configurations
    }
    cores = max(one.placement.processes * one.placement.threads for one in problem.configurations)
    topology = problem.profile.topology
    most = min(_FARTHER * cores, topology.nodes * topology.cores_per_node)
    every = {tuple(sorted(one.study.values.items())) for one in problem.configurations}
    asked = {**problem.configurations[0].study.values, **settings}
    for values in sorted(every | {tuple(sorted(asked.items()))}):
        for processes, threads in _splits(most):
            if (processes, threads, *values) in measured or (processes, threads) in targets:
                continue
            one = _at(found, dict(values), processes, threads)
            if one is not None:
                yield one


def _splits(most: int) -> Iterator[tuple[int, int]]:
    """Powers of two, and squares, which some programs ask for."""
    powers = [2**power for power in range(most.bit_length()) if 2**power <= most]
    counts = sorted({*powers, *(side**2 for side in range(1, int(most**0.5) + 1))})
    for processes in counts:
        for threads in powers:
            if processes * threads <= most:
                yield processes, threads


_NOTHING = 0.02  # a run that narrows by less is not worth its time
