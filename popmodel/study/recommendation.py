"""The answer of a study: every split's time, anchored at the runs, and which of them to take.

The model says how times go from a run that was made to a split that was not; the run says how long
it took. So a prediction is the time of the nearest run times the model's ratio. Beside it stands
the plain rule: the same time by the power of the sizes that the runs show, in proportion to the
cores. The two are averaged by what is known of their errors; where they disagree the interval has
both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from popmodel.study.executor import own_time, undisturbed
from popmodel.study.manifest import Step
from popmodel.study.plan import LEAST, Run

_QUANTILE = float(ndtri(0.95))
_PRIOR_SPREAD = 0.05
"""Relative standard deviation of repeats where there are none; it weighs as much as one repeat."""
_OF_POWER = 0.1
"""Standard deviation of the power of a size beyond the measured ones: caches, lower terms."""
_OF_CORES = 0.3
"""Standard deviation of the power of cores by which the plain rule goes beyond the runs."""
_OF_WAITING = 0.5
"""Part of the logarithm by which waiting for CPUs made a run longer that may not be its own."""
_WITHIN = math.log(1.02)
"""Splits nearer than this are equally good."""


class ModelledSplit(NamedTuple):
    """A split as a model sees it, s: its time, and times in draws of what is uncertain."""

    cores: int
    run: Run
    value: float
    draws: np.ndarray


class Answer(NamedTuple):
    """A split's time, s, with its 90 % interval."""

    cores: int
    run: Run
    value: float
    low: float
    high: float
    plain: float  # By the plain rule
    anchor: Run  # The configuration that it is scaled from
    tied: bool  # Whether it may be the fastest of its cores, as far as the study can tell


class MeasuredTime(NamedTuple):
    """Measured times of a configuration: mean and standard error, of logarithms."""

    log: float
    error: float


def times_of(runs: Mapping[Run, Step]) -> dict[Run, MeasuredTime]:
    """Return the times of configurations without waiting for CPUs; all share their spread.

    Of a configuration only the repeats count whose threads had their CPUs, if there are any.
    """
    repeats: dict[Run, list[Step]] = {}
    for run, step in undisturbed(runs).items():
        repeats.setdefault(run.configuration, []).append(step)
    logs = {run: np.log([own_time(step) for step in steps]) for run, steps in repeats.items()}
    squares = sum(float(np.var(some)) * len(some) for some in logs.values())
    freedom = sum(len(some) - 1 for some in logs.values())
    pooled = (squares + _PRIOR_SPREAD**2) / (freedom + 1)
    found = {}
    for run, some in logs.items():
        variance = (float(np.var(some)) * len(some) + pooled) / len(some)
        waited = float(np.mean([step.facts["waited"] for step in repeats[run]]))
        error = math.hypot(math.sqrt(variance / len(some)), _OF_WAITING * math.log1p(-waited))
        found[run] = MeasuredTime(float(np.mean(some)), error)
    return found


def answers(
    splits: Sequence[ModelledSplit],
    times: Mapping[Run, MeasuredTime],
    modelled: Mapping[Run, float],
    missed: float,
) -> list[Answer]:
    """Predict splits from the runs that were made.

    Parameters
    ----------
    splits : sequence of ModelledSplit
        What the model says of them.
    times : mapping of Run to MeasuredTime
        What was measured.
    modelled : mapping of Run to float
        What the model says of the same runs, s.
    missed : float
        By how much the model missed the configuration that was left out, as a logarithm.
    """
    powers = size_powers(times)
    estimates = [_estimate(split, times, modelled, missed, powers) for split in splits]
    found = []
    for one in estimates:
        rivals = [other for other in estimates if other.split.cores == one.split.cores]
        best = min(rivals, key=lambda other: other.log)
        half = _QUANTILE * one.error
        found.append(
            Answer(
                one.split.cores,
                one.split.run,
                math.exp(one.log),
                math.exp(one.log - half),
                math.exp(one.log + half),
                math.exp(one.plain),
                one.anchor,
                one is best or one.log - best.log <= max(_WITHIN, _doubt(one, best, missed)),
            )
        )
    return found


class _Estimate(NamedTuple):
    """A split's time as a logarithm, with its standard errors."""

    split: ModelledSplit
    anchor: Run
    log: float
    error: float  # In all
    own: float  # What it does not share with other splits: of its anchor, between the two rules
    model: float  # Weight of the model
    plain: float  # By the plain rule


def _estimate(
    split: ModelledSplit,
    times: Mapping[Run, MeasuredTime],
    modelled: Mapping[Run, float],
    missed: float,
    powers: Sequence[float],
) -> _Estimate:
    anchor = nearest(split.run, modelled)
    measured = times[anchor]
    sizes = [
        math.log(a / b) if a > 0 and b > 0 else 0.0
        for (_, a), (_, b) in zip(split.run.settings, anchor.settings, strict=True)
    ]
    apart = _OF_CORES * abs(math.log(split.run.cores / anchor.cores))
    plain = measured.log + math.log(anchor.cores / split.run.cores)
    plain += sum(power * size for power, size in zip(powers, sizes, strict=True))
    logs = np.array([measured.log + math.log(split.value / modelled[anchor]), plain])
    drawn = float(np.std(np.log(split.draws)))
    errors = np.array(
        [math.hypot(drawn, missed), math.hypot(_OF_POWER * math.hypot(*sizes), apart)]
    )
    weights = 1 / np.maximum(errors, 1e-3) ** 2
    weights /= weights.sum()
    log = float(weights @ logs)
    between = math.sqrt(float(weights @ (logs - log) ** 2))
    own = math.hypot(measured.error, between, weights[1] * apart)
    error = math.hypot(measured.error, between, math.sqrt(float(weights @ errors**2)))
    return _Estimate(split, anchor, log, error, own, float(weights[0]), plain)


def _doubt(one: _Estimate, best: _Estimate, missed: float) -> float:
    """By how much two splits may be the other way round; what moves both alike is left out."""
    apart = float(np.std(np.log(one.split.draws) - np.log(best.split.draws)))
    modelled = max(one.model, best.model) * math.hypot(apart, missed)
    return _QUANTILE * math.hypot(modelled, one.own, best.own)


def nearest(run: Run, known: Iterable[Run]) -> Run:
    """Return the configuration that a split is scaled from: alike, and of the largest problem."""

    def distance(other: Run) -> tuple[float, ...]:
        processes = abs(math.log(run.processes / other.processes))
        threads = abs(math.log(run.threads / other.threads))
        return (processes + threads, -other.size, -other.cores)

    return min(known, key=distance)


def size_powers(times: Mapping[Run, MeasuredTime]) -> list[float]:
    """Powers of the parameters by which times go, from splits that were run at several sizes."""
    names = len(next(iter(times)).settings)
    splits = list(dict.fromkeys((run.processes, run.threads) for run in times))
    rows = np.zeros((len(times), len(splits) + names))
    for row, run in zip(rows, times, strict=True):
        row[splits.index((run.processes, run.threads))] = 1
        row[len(splits) :] = [math.log(value) if value > 0 else 0.0 for _, value in run.settings]
    logs = np.array([one.log for one in times.values()])
    varied = [len({run.settings[k] for run in times}) >= LEAST for k in range(names)]
    rows[:, len(splits) :][:, [not one for one in varied]] = 0
    return list(np.linalg.lstsq(rows, logs, rcond=None)[0][len(splits) :])
