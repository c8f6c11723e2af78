"""Whether the predictions would have chosen the right split.

Where several splits of the same number of cores were measured, the one that would have been
recommended among them is held against the best, and against what people take without a model.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from popmodel.prediction.split_choice import WITHIN, SplitChoice
from popmodel.validation.comparison import Split
from popmodel.values import dataclass

Pair = tuple[int, int]
"""P and T."""

Choose = Callable[[Mapping[str, float], Sequence[Pair]], SplitChoice | None]
"""From parameters and splits to which of them is recommended; None if that cannot be told."""


@dataclass(frozen=True)
class MeasuredSplit:
    """A split that was measured."""

    # P and T.
    processes: int
    threads: int
    measured: float  # Mean runtime, s
    predicted: float  # Runtime, s
    is_test: bool  # Whether no fit has seen its configuration
    loss: float  # Measured runtime over that of the best measured split, less 1


@dataclass(frozen=True)
class DefaultSplit:
    """What people take without a model."""

    name: str  # What it is called
    split: Pair  # P and T
    loss: float | None  # As of `MeasuredSplit`; None if it was not measured


@dataclass(frozen=True)
class SplitDecision:
    """How good the choice among the measured splits of a number of cores would have been."""

    cores: int  # P T
    parameters: Mapping[str, float]  # Of the application
    options: tuple[MeasuredSplit, ...]  # The measured splits, by rising threads
    # The split that is recommended among them, and the one that was fastest.
    take: Pair
    best: Pair
    announced: float | None  # Expected loss of the recommended one as predicted, relative
    regret: float  # Its loss as measured
    # Splits that are predicted to be equally good, the recommended one among them.
    tied: tuple[Pair, ...]
    measured_tied: tuple[Pair, ...]  # Splits that are no more than `WITHIN` slower than the best
    rank_correlation: float | None  # `kendall` of predicted and measured runtimes
    defaults: tuple[DefaultSplit, ...]  # What the usual defaults would have cost


def decisions(splits: Sequence[Split], choose: Choose) -> tuple[SplitDecision, ...]:
    """Judge the choices that the measured splits allow, by parameters and cores.

    A number of cores of which fewer than two splits, or no test, were measured allows none.
    """
    groups: dict[tuple[Any, ...], dict[Pair, list[Split]]] = defaultdict(lambda: defaultdict(list))
    for one in splits:
        key = (tuple(sorted(one.parameters.items())), one.processes * one.threads)
        groups[key][one.processes, one.threads].append(one)
    found = []
    for (parameters, cores), by_split in sorted(groups.items()):
        options = _options(by_split)
        if len(options) < 2 or not any(one.is_test for one in options):
            continue
        made = choose(dict(parameters), [(one.processes, one.threads) for one in options])
        if made is not None:
            found.append(_decision(cores, dict(parameters), options, made))
    return tuple(found)


def _options(by_split: Mapping[Pair, Sequence[Split]]) -> tuple[MeasuredSplit, ...]:
    means = {}
    for pair, some in by_split.items():
        times = [time for one in some for time in one.runtime.measured]
        means[pair] = sum(times) / len(times)
    best = min(means.values())
    return tuple(
        MeasuredSplit(
            *pair,
            means[pair],
            some[0].runtime.predicted,
            any(one.region.is_test for one in some),
            means[pair] / best - 1,
        )
        for pair, some in sorted(by_split.items(), key=lambda item: item[0][1])
    )


def _decision(
    cores: int,
    parameters: Mapping[str, float],
    options: tuple[MeasuredSplit, ...],
    made: SplitChoice,
) -> SplitDecision:
    losses = {(one.processes, one.threads): one.loss for one in options}
    return SplitDecision(
        cores,
        parameters,
        options,
        made.taken.split,
        min(losses, key=lambda pair: losses[pair]),
        made.taken.regret,
        losses[made.taken.split],
        tuple(one.split for one in made.tied),
        tuple(pair for pair, loss in losses.items() if loss <= WITHIN),
        kendall([one.predicted for one in options], [one.measured for one in options]),
        tuple(DefaultSplit(one.name, one.split, losses.get(one.split)) for one in made.defaults),
    )


def kendall(some: Sequence[float], others: Sequence[float]) -> float | None:
    """Return the rank correlation tau-b of M. G. Kendall (Biometrika 33 (1945) 239), -1 to 1.

    Ties are those of either list; None if one of them has nothing else, or has fewer than two.
    """
    agreeing = 0
    untied = [0, 0]
    for (a, b), (c, d) in itertools.combinations(zip(some, others, strict=True), 2):
        first, second = _sign(a - c), _sign(b - d)
        agreeing += first * second
        untied[0] += first != 0
        untied[1] += second != 0
    if not all(untied):
        return None
    return agreeing / math.sqrt(untied[0] * untied[1])


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)
