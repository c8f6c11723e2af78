"""How much what is measured of a run varies from run to run, beside its runtime.

Runtimes vary by a factor, whose logarithm has a standard deviation that repeats tell: the noise.
Useful times vary by the same, times of losses by more: each is what a few processes wait or send,
a difference of long times. What that is in terms of the noise is assumed. Relative to itself a loss
varies by 2 to 12 times the noise in repeats of simulated programs (`tests/truth`), and by 1 to 10
times in those of `examples/validation/runs`; waiting and imbalance of a few per cent vary by up to
36 times as much there, which is about half a point: `LEAST` is there for them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from popmodel.efficiency.family import Family

LOSS = 5.0
"""Standard deviation of a loss from run to run, relative to itself, over the noise."""
LEAST = 0.3
"""The same as a part of the runtime: below that, nothing is said of a loss."""
_REFERENCE = "reference_"


def of_loss(noise: float, loss: float) -> float:
    """Return the standard deviation of a loss from run to run, as a part of the runtime."""
    return noise * math.hypot(LOSS * loss, LEAST)


def of_metric(noise: float, family: Family, metric: str, values: Mapping[str, float]) -> float:
    """Return the standard deviation of an efficiency from run to run.

    Notes
    -----
    The losses of its leaves vary independently of each other. A metric that compares with a
    reference run is a ratio of times of two runs.
    """
    if has_reference(family, metric):
        return noise * math.sqrt(2) * abs(values[metric])
    losses = (1 - values[leaf] for leaf in _leaves(family, metric, values))
    return of_loss(noise, math.hypot(*losses))


def has_reference(family: Family, metric: str) -> bool:
    """Whether a metric compares with a reference run; else it is a share of what one run has."""
    return any(name.startswith(_REFERENCE) for name in family.needs(metric))


def _leaves(family: Family, metric: str, values: Mapping[str, float]) -> Iterator[str]:
    """The metrics that explain a metric and that no others explain, as far as they are known."""
    parts = family.parts(metric)
    if parts and all(part in values for part in parts):
        for part in parts:
            yield from _leaves(family, part, values)
    else:
        yield metric
