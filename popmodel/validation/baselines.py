"""Plain extrapolations of the same runs, which a model has to beat (`popmodel.fit.baselines`).

They see the runs that the model was fitted to. Where none are known, each split is extrapolated
from all others that were measured, which is more than the model has seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from popmodel.fit.baselines import BASELINES, baselines
from popmodel.fit.samples import Sample
from popmodel.plain import fields_of
from popmodel.validation.comparison import Split
from popmodel.validation.training import Training
from popmodel.values import dataclass

MODEL = "model"
"""What the predictions that are validated are called beside them."""


@dataclass(frozen=True)
class Extrapolated:
    """One test with what every baseline says of it."""

    split: Split  # The runs, with the model's prediction
    values: Mapping[str, float]  # Runtimes by the names of `BASELINES`, s

    def to_dict(self) -> dict[str, Any]:
        """Return measured and predicted runtimes as JSON types."""
        return {
            **fields_of(self.split, "processes", "threads", "parameters"),
            "measured": self.split.runtime.mean,
            "predicted": {MODEL: self.split.runtime.predicted, **self.values},
        }


@dataclass(frozen=True)
class Beside:
    """The errors of one way to predict."""

    name: str  # `MODEL` or a baseline
    splits: int  # Tests, the same for all
    # Of the relative errors of runtimes.
    median_error: float
    largest_error: float
    bias: float
    # Mean size of the model's relative errors over that of this baseline's, in the manner of R. J.
    # Hyndman, A. B. Koehler, Int. J. Forecast. 22 (2006) 679: below 1 the model is better. None of
    # the model itself, and of a baseline without error.
    mase: float | None


@dataclass(frozen=True)
class Baselines:
    """What plain extrapolations make of the tests."""

    # Whether they saw the runs of the fit; False if each test was extrapolated from all others.
    declared: bool
    tests: tuple[Extrapolated, ...]  # Those that there are runs of the same problem for
    errors: tuple[Beside, ...]  # First the model


_NAMES = {
    "nearest": "the nearest run",
    "linear": "ideal scaling",
    "amdahl": "Amdahl's law",
    "pipe": "the law of pipelines",
    "normal-form": "a normal form of one term",
}


def better(found: Baselines | None) -> tuple[str, ...]:
    """Say which plain extrapolations have smaller errors than the model, at least two tests."""
    if found is None or len(found.tests) < 2:
        return ()
    names = [_NAMES[one.name] for one in found.errors if one.mase is not None and one.mase > 1]
    if not names:
        return ()
    number = len(found.tests)
    return (
        f"plain extrapolations with smaller errors at these {number} tests: {', '.join(names)}",
    )


def beside(splits: Sequence[Split], training: Training | None) -> Baselines | None:
    """Extrapolate to every test; None where there is nothing to extrapolate from."""
    declared = training is not None and bool(training.runs)
    tests = []
    for one in splits:
        if declared and training is not None:
            samples = _of_training(one, training)
        else:
            samples = _of_others(one, splits)
        if samples:
            tests.append(Extrapolated(one, baselines(samples, one.processes, one.threads)))
    if not tests:
        return None
    ours = _errors([(one.split.runtime.predicted, one.split) for one in tests])
    errors = [_beside(MODEL, ours, None)]
    for name in BASELINES:
        theirs = _errors([(one.values[name], one.split) for one in tests])
        size = float(np.abs(theirs).mean())
        errors.append(_beside(name, theirs, float(np.abs(ours).mean()) / size if size else None))
    return Baselines(declared, tuple(tests), tuple(errors))


def _of_training(one: Split, training: Training) -> list[Sample]:
    return [
        Sample(run.processes, run.threads, run.runtime)
        for run in training.runs
        if run.parameters == one.parameters
    ]


def _of_others(one: Split, splits: Sequence[Split]) -> list[Sample]:
    return [
        Sample(other.processes, other.threads, time)
        for other in splits
        if other is not one and other.parameters == one.parameters
        for time in other.runtime.measured
    ]


def _errors(pairs: Sequence[tuple[float, Split]]) -> Any:
    return np.array([value / split.runtime.mean - 1 for value, split in pairs])


def _beside(name: str, errors: Any, mase: float | None) -> Beside:
    sizes = np.abs(errors)
    return Beside(
        name, len(errors), float(np.median(sizes)), float(sizes.max()), float(errors.mean()), mase
    )
