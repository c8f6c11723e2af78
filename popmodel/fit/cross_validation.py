"""What a fit says of runs that it does not use: configurations left out, and the next to measure.

Each configuration is foretold from the others. Where runs differ in parameters, such as the size of
the problem, each has others of the same parameters, which say little of a size that nobody
measured: so each size is foretold from the other sizes as well. Residual terms are taken where
configurations that are left out ask for them.

A linear model around the fit to all of them answers at once; the difference from a fit of its own
is of second order. In it the variance that a new run leaves does not depend on what it will measure
(K. Chaloner, I. Verdinelli, Bayesian experimental design, Stat. Sci. 10 (1995) 273).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from popmodel.base.errors import PopmodelError
from popmodel.fit.problem import POSSIBLE, Configuration, Problem
from popmodel.fit.samples import Array
from popmodel.fit.scores import CalibrationFit, fit, log_runtimes, solved
from popmodel.model.symbols import LOOPS

_LARGEST = 1e3  # deviations
_GAIN = 1.0
"""By how much the logarithm of the probability of what is left out must grow: e is some 3."""
_SHOWN = 3  # next runs
_FARTHER = 4
"""Times the largest number of cores that was measured: a next run is no larger."""
_NOTHING = 0.02  # a run that narrows by less is not worth its time


class LeftOut(NamedTuple):
    """A configuration foretold from the others."""

    configuration: int  # Its number in `popmodel.fit.problem.Problem`
    measured: tuple[float, ...]  # Runtimes of its runs, s
    value: float  # Runtime, s, as the other configurations have it
    deviation: float  # Standard deviation of the logarithm of a new run
    density: float  # Logarithm of the probability density of all that was measured of it

    @property
    def errors(self) -> tuple[float, ...]:
        """Logarithms of measured over foretold runtimes."""
        return tuple(math.log(runtime / self.value) for runtime in self.measured)


def left_out(fitted: CalibrationFit, prior: Array | None = None) -> list[LeftOut]:
    """Foretell every configuration from the others."""
    alone = [[number] for number in range(len(fitted.problem.configurations))]
    return _without(fitted, alone, fitted.problem.prior if prior is None else prior)


def sizes_left_out(fitted: CalibrationFit) -> list[LeftOut]:
    """Foretell the configurations of all parameters from those of other parameters."""
    groups: dict[tuple[tuple[str, float], ...], list[int]] = {}
    for number, configuration in enumerate(fitted.problem.configurations):
        groups.setdefault(tuple(sorted(configuration.study.values.items())), []).append(number)
    if len(groups) < 2:
        return []
    return _without(fitted, list(groups.values()), fitted.problem.prior)


def error_scale(
    fitted: CalibrationFit, foretold: Sequence[LeftOut], ignored: Collection[int]
) -> float:
    """Return by how much errors of what is left out exceed what is announced of them, at least 1.

    The root of the mean square of errors over their deviations; some runs may be ignored.
    """
    errors = [
        error / left.deviation
        for left in foretold
        for run, error in zip(
            fitted.problem.configurations[left.configuration].runs, left.errors, strict=True
        )
        if run not in ignored
    ]
    return max(1.0, math.sqrt(np.mean(np.square(errors)))) if errors else 1.0


def _without(
    fitted: CalibrationFit, groups: Sequence[Sequence[int]], prior: Array
) -> list[LeftOut]:
    """Foretell groups of configurations, each from the others."""
    problem, at = fitted.problem, fitted.linear
    runtimes, slopes = fitted.runtimes
    results = []
    for group in groups:
        runs = [run for number in group for run in problem.configurations[number].runs]
        others = at.only(~np.isin(at.run, runs))
        scores, covariance = solved(others, fitted.means, prior, problem.bounds)
        moved = scores - fitted.means
        for number in group:
            own = problem.configurations[number].runs
            mine = np.isin(at.run, own)
            value = runtimes[number] * math.exp(float(slopes[number] @ moved))
            variance = float(slopes[number] @ covariance @ slopes[number]) + fitted.noise**2
            gap = at.gap[mine] - at.slope[mine] @ moved
            within = at.slope[mine] @ covariance @ at.slope[mine].T + np.eye(int(mine.sum()))
            density = _density(gap, within) - float(np.log(at.unit[mine]).sum())
            measured = tuple(problem.runs[run].runtime for run in own)
            results.append(LeftOut(number, measured, value, math.sqrt(variance), density))
    return results


def _density(gap: Array, covariance: Array) -> float:
    """Logarithm of a normal density, but for a constant."""
    root = np.linalg.cholesky(covariance)
    inside = np.clip(np.linalg.solve(root, gap), -_LARGEST, _LARGEST)
    return float(-0.5 * inside @ inside - np.log(np.diag(root)).sum())


class ResidualTerm(NamedTuple):
    """A residual term that was offered to the fit."""

    name: str  # Of `popmodel.model.model_error.RESIDUALS`
    is_taken: bool  # Whether it is part of the model
    # By how much it makes what is left out more probable, all configurations together: the
    # logarithm of a factor.
    gain: float


def with_terms(fitted: CalibrationFit) -> tuple[CalibrationFit, tuple[ResidualTerm, ...]]:
    """Take the residual terms that left-out configurations ask for, one after the other.

    A term that the runs do not ask for may be there all the same, and grow where nobody measured:
    it stays in the interval, as large as the runs allow.
    """
    taken: list[ResidualTerm] = []
    while True:
        problem = fitted.problem
        before = sum(left.density for left in left_out(fitted))
        gains = {
            name: sum(left.density for left in left_out(fitted, _taken(problem, name).prior))
            - before
            for name in problem.residuals
            if name not in {term.name for term in taken}
        }
        best = max(gains, key=lambda name: gains[name], default=None)
        if best is None or gains[best] < _GAIN:
            others = (ResidualTerm(name, is_taken=False, gain=gain) for name, gain in gains.items())
            return fitted, (*taken, *others)
        taken.append(ResidualTerm(best, is_taken=True, gain=gains[best]))
        fitted = fit(_taken(problem, best), fitted.noise, fitted.means)


def _taken(problem: Problem, name: str) -> Problem:
    prior = problem.prior.copy()
    prior[problem.names.index(name)] /= POSSIBLE
    return replace(problem, prior=prior)


class NextRun(NamedTuple):
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
    fitted: CalibrationFit, targets: Sequence[tuple[int, int]], settings: Mapping[str, float]
) -> tuple[NextRun, ...]:
    """Find the runs that narrow the runtime of some splits most."""
    possible = (_configuration(fitted, settings, *split) for split in targets)
    asked = [configuration for configuration in possible if configuration is not None]
    if not asked:
        return ()
    _, aims = log_runtimes(fitted, asked)
    before = np.einsum("ij,jk,ik->i", aims, fitted.covariance, aims)
    if not before.any():
        return ()
    candidates = list(_candidates(fitted, {(*split,) for split in targets}, settings))
    if not candidates:
        return ()
    logs, slopes = log_runtimes(fitted, candidates)
    # of the logarithm of a runtime that a split has for itself: mostly that of loops
    alone = fitted.noise**2 + LOOPS.own * (fitted.problem.own * LOOPS.spread) ** 2
    results = []
    for configuration, log, slope in zip(candidates, logs, slopes, strict=True):
        shared = aims @ fitted.covariance @ slope
        left = before - shared**2 / (float(slope @ fitted.covariance @ slope) + alone)
        narrows = 1 - float(np.sqrt(max(left.sum(), 0.0) / before.sum()))
        at, values = configuration.placement, configuration.study.values
        if narrows > _NOTHING:
            results.append(
                NextRun(at.processes, at.threads, at.nodes, values, narrows, float(np.exp(log)))
            )
    return tuple(
        sorted(results, key=lambda run: (-round(run.narrows, 2), run.core_seconds))[:_SHOWN]
    )


def _configuration(
    fitted: CalibrationFit, settings: Mapping[str, float], processes: int, threads: int
) -> Configuration | None:
    """Return a split as a configuration without runs; None where it is not possible."""
    study = fitted.problem.configurations[0].study.with_settings(settings)
    try:
        return Configuration(study, study.admit(processes, threads), ())
    except PopmodelError:
        return None


def _candidates(
    fitted: CalibrationFit, targets: set[tuple[int, ...]], settings: Mapping[str, float]
) -> Iterator[Configuration]:
    """Runs that may be measured next: of no more cores than a few times those of before.

    Powers of two, and squares of processes, which some programs ask for.
    """
    problem = fitted.problem
    measured = {
        (each.placement.processes, each.placement.threads, *sorted(each.study.values.items()))
        for each in problem.configurations
    }
    placements = [each.placement for each in problem.configurations]
    cores = max(at.processes * at.threads for at in placements)
    topology = problem.profile.topology
    most = min(_FARTHER * cores, topology.nodes * topology.cores_per_node)
    powers = [2**power for power in range(most.bit_length()) if 2**power <= most]
    counts = sorted({*powers, *(side**2 for side in range(1, int(most**0.5) + 1))})
    splits = [(p, t) for p in counts for t in powers if p * t <= most]
    every = {tuple(sorted(each.study.values.items())) for each in problem.configurations}
    asked = {**problem.configurations[0].study.values, **settings}
    for values in sorted(every | {tuple(sorted(asked.items()))}):
        for split in splits:
            if (*split, *values) in measured or split in targets:
                continue
            configuration = _configuration(fitted, dict(values), *split)
            if configuration is not None:
                yield configuration
