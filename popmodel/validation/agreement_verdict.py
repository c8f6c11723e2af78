"""What a comparison of predictions with measurements comes to, and why, in sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import geometric_mean

from popmodel.base.units import plural
from popmodel.model.uncertainty import LEVEL
from popmodel.validation.comparison import (
    CALIBRATION,
    REPETITION,
    ExcludedRuns,
    Split,
    differing,
    varied,
)
from popmodel.validation.prediction_errors import Baselines, ByTerm, sentences

UNLIKELY = 0.05
"""Probability below which too few intervals contain the mean of their split to be chance."""
ALIKE = 0.5
"""Range of the logarithms of the factors, relative to that of their mean, up to which all
predictions are off by the same factor."""
REPEATABLE = 2.0
"""Ratio of the longest to the shortest of several runs from which they are hardly repeats."""
WRONG_PROBLEM = 1.5
"""Factor from which other work or other conditions are more likely than an inaccurate model."""
_BASELINES = {
    "nearest": "the nearest run",
    "linear": "ideal scaling",
    "amdahl": "Amdahl's law",
    "pipe": "the law of pipelines",
    "normal-form": "a normal form of one term",
}


def verdict(
    splits: Sequence[Split],
    defaults: Mapping[str, float],
    left_out: Sequence[ExcludedRuns] = (),
    terms: Sequence[ByTerm] = (),
    baselines: Baselines | None = None,
    *,
    disturbed: bool = False,
) -> tuple[str, ...]:
    """Say how well the runtimes are predicted, and the likely reason where they are not."""
    judged = [split for split in splits if split.region.is_test]
    said = []
    if judged:
        said.append(f"{_coverage(judged)}; {_errors(judged)}")
        if not agrees(judged) and (reason := _reason(judged, defaults, disturbed)):
            said.append(reason)
    said += _not_tests(splits)
    said += sentences(terms, varied(splits))
    said += _better(baselines)
    for split in splits:
        times = split.runtime.measured
        if max(times) >= REPEATABLE * min(times):
            said.append(
                f"runs of {_name(split, splits)} took {min(times):.3g} to {max(times):.3g} s: "
                "check that they ran the same program and input"
            )
    both = [*(split.parameters for split in splits), *(runs.parameters for runs in left_out)]
    names = differing(both)
    said += [runs.sentence(names) for runs in left_out]
    return tuple(said)


def _better(baselines: Baselines | None) -> tuple[str, ...]:
    """Say which plain extrapolations have smaller errors than the model, at least two tests."""
    if baselines is None or len(baselines.tests) < 2:
        return ()
    names = [
        _BASELINES[errors.name]
        for errors in baselines.errors
        if errors.mase is not None and errors.mase > 1
    ]
    if not names:
        return ()
    number = len(baselines.tests)
    return (
        f"plain extrapolations with smaller errors at these {number} tests: {', '.join(names)}",
    )


def _not_tests(splits: Sequence[Split]) -> list[str]:
    """Which runs are no tests, and that none is."""
    told = []
    for region, why in (
        (CALIBRATION, "used in the fit"),
        (REPETITION, "at a configuration of the fit"),
    ):
        runs = sum(len(one.runtime.measured) for one in splits if one.region.name == region)
        if runs:
            told.append(f"{plural(runs, 'run')} {why}: {'no test' if runs == 1 else 'no tests'}")
    if told and not any(split.region.is_test for split in splits):
        told.append("nothing tests the predictions: measure a configuration that no fit has seen")
    return told


def agrees(splits: Sequence[Split]) -> bool:
    """Whether as many intervals contain the mean of their split as intervals of this level should.

    Repeats of a run share their prediction, so that each split counts once. Fewer disagree if that
    many or fewer had a probability below `UNLIKELY` (binomial). With or without intervals, no
    prediction may be off by `WRONG_PROBLEM`.
    """
    return _chance(splits) >= UNLIKELY and all(_factor(one) < WRONG_PROBLEM for one in splits)


def _chance(splits: Sequence[Split]) -> float:
    """Probability that no more intervals contain the mean of their split than do; 1 without any."""
    held = _held(splits)
    return math.fsum(
        math.comb(len(held), k) * LEVEL**k * (1 - LEVEL) ** (len(held) - k)
        for k in range(sum(held) + 1)
    )


def _held(splits: Sequence[Split]) -> list[bool]:
    return [split.runtime.holds for split in splits if split.runtime.holds is not None]


def _coverage(splits: Sequence[Split]) -> str:
    times = [split.runtime for split in splits if split.runtime.covered is not None]
    if not times:
        return "the predictions have no intervals"
    runs = sum(len(time.measured) for time in times)
    covered = sum(time.covered or 0 for time in times)
    held = _held(splits)
    judged = ""
    if sum(held) >= LEVEL * len(held):
        judged = ", as expected"
    elif _chance(splits) < UNLIKELY:
        judged = ", fewer than expected"
    level = f"{100 * LEVEL:.0f} % interval"
    return f"{covered} of {plural(runs, 'run')} inside the {level}{judged}"


def _errors(splits: Sequence[Split]) -> str:
    by_error = sorted(splits, key=lambda split: split.error)
    lowest, highest = by_error[0], by_error[-1]
    if len(splits) == 1:
        return f"error {_percent(lowest.error)}"
    return (
        f"error {_percent(lowest.error)} ({_name(lowest, splits)}) to "
        f"{_percent(highest.error)} ({_name(highest, splits)})"
    )


def _reason(splits: Sequence[Split], defaults: Mapping[str, float], disturbed: bool) -> str:
    ratios = [split.runtime.predicted / split.runtime.mean for split in splits]
    factor = geometric_mean(ratios)
    everywhere = " everywhere" if len(splits) > 1 else ""
    if disturbed and factor < 1:
        return (
            "the runs took longer than predicted, but their threads waited for CPUs: "
            "measure again on otherwise idle nodes"
        )
    if math.log(max(ratios) / min(ratios)) > ALIKE * abs(math.log(factor)):
        worst = _name(max(splits, key=_factor), splits)
        return (
            f"the error differs from run to run (largest: {worst}), so no single factor of work or "
            "machine explains it"
        )
    size = max(factor, 1 / factor)
    direction = "slow" if factor > 1 else "fast"
    if size < WRONG_PROBLEM:
        return (
            f"the predictions are about {100 * (size - 1):.2g} % too {direction}{everywhere}: "
            "the amount of work or a rate of the machine may be off by this factor"
        )
    values = ", ".join(f"{name}={value:g}" for name, value in defaults.items())
    assumed = f" (not set: {values})" if values else ""
    # only other work makes a run shorter; busy cores or narrow binding also make it longer
    cores = "" if factor > 1 else ", that each thread had a core of its own"
    return (
        f"the predictions are {size:.3g} times too {direction}{everywhere}: check the parameters "
        f"of the application{assumed}{cores}, the unit of the runtimes and the machine"
    )


def _factor(split: Split) -> float:
    """By which factor a prediction is off, at least 1."""
    ratio = split.runtime.predicted / split.runtime.mean
    return max(ratio, 1 / ratio)


def _name(split: Split, splits: Sequence[Split]) -> str:
    return split.describe(varied(splits))


def _percent(error: float) -> str:
    return f"{100 * error:+.1f} %"
