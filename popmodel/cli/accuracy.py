"""``--fail-over`` and ``--fail-under`` of a validation: how far off predictions may be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from popmodel.base.errors import PopmodelError, ThresholdError, UsageError
from popmodel.base.values import dataclass
from popmodel.cli.thresholds import Threshold, name_and_limit, parse

if TYPE_CHECKING:
    from popmodel.efficiency.family import Family
    from popmodel.validation.comparison import Split

ERROR = "error"
COVERAGE = "coverage"
OVER, UNDER = "--fail-over", "--fail-under"
_EXAMPLE = {OVER: "NAME=VALUE, e.g. error=20%", UNDER: "coverage=VALUE, e.g. coverage=0.8"}


@dataclass(frozen=True)
class AccuracyLimits:
    """What predictions have to keep to."""

    error: tuple[float, ...] = ()  # Largest relative error of the runtime of a split
    coverage: tuple[float, ...] = ()  # Least share of the runs that are inside their interval
    metrics: tuple[Threshold, ...] = ()  # Largest errors of efficiencies of a split, as fractions


def limits(
    over: Sequence[str], under: Sequence[str], families: Mapping[str, Family]
) -> AccuracyLimits:
    """Read the texts of ``--fail-over`` and ``--fail-under``."""
    error, coverage, metrics = [], [], []
    for option, texts in ((OVER, over), (UNDER, under)):
        for text in texts:
            name, limit = name_and_limit(text, option, _EXAMPLE[option])
            if option == OVER and limit > 1 and not text.rstrip().endswith("%"):
                # 20 for 20 % would be a limit that nothing exceeds
                _refuse(f"{OVER} {text}: must be at most 1, or a percentage", f"{text.strip()}%")
            if option == OVER and name == COVERAGE:
                _refuse(f"{OVER} {text}: coverage is bad when it is low", f"{UNDER} {text}")
            elif option == OVER and name == ERROR:
                error.append(limit)
            elif option == OVER:
                metrics.append(parse(text, families, OVER))
            elif name == COVERAGE:
                coverage.append(limit)
            elif name == ERROR:
                _refuse(f"{UNDER} {text}: an error is bad when it is high", f"{OVER} {text}")
            else:
                hint = f"only coverage goes here; for the error of a metric write {OVER} {text}"
                raise UsageError(f"{UNDER} {text}: unknown name '{name}'", hint)
    return AccuracyLimits(tuple(error), tuple(coverage), tuple(metrics))


def _refuse(problem: str, instead: str) -> None:
    raise UsageError(problem, f"write {instead}")


def check(
    limits: AccuracyLimits, splits: Sequence[Split], shown: Sequence[str], names: Sequence[str] = ()
) -> None:
    """Hold predictions against limits."""
    if limits != AccuracyLimits() and not splits:
        raise PopmodelError(
            "the limits cannot be checked: no run is a test, all are of configurations of the fit",
            "leave them out, or measure a configuration that no fit has seen",
        )
    missed: list[str] = []
    for split in splits:
        missed += [
            f"the runtime of {split.describe(names)} is off by {100 * abs(split.error):.1f} %, "
            f"more than {100 * limit:g} %"
            for limit in limits.error
            if abs(split.error) > limit
        ]
    unknown: list[PopmodelError] = []
    for look in (
        partial(_missed_coverage, limits.coverage, splits),
        *(partial(_missed_metric, one, splits, shown, names) for one in limits.metrics),
    ):
        try:
            missed += look()
        except PopmodelError as error:
            unknown.append(error)
    if missed:  # known to be wrong comes before what nobody knows
        raise ThresholdError("; ".join(missed))
    if unknown:
        raise unknown[0]


def _missed_coverage(limits: Sequence[float], splits: Sequence[Split]) -> list[str]:
    times = [split.runtime for split in splits if split.runtime.covered is not None]
    if not limits:
        return []
    if not times:
        raise PopmodelError(
            f"{UNDER} coverage cannot be checked: the predictions have no intervals",
            "leave it out, or predict with a machine whose values have intervals",
        )
    share = sum(time.covered or 0 for time in times) / sum(len(time.measured) for time in times)
    return [
        f"{100 * share:.0f} % of the runs are inside their interval, less than {100 * limit:g} %"
        for limit in limits
        if share < limit
    ]


def _missed_metric(
    threshold: Threshold, splits: Sequence[Split], shown: Sequence[str], names: Sequence[str]
) -> list[str]:
    families = {
        family
        for split in splits
        for family, values in split.metrics.items()
        if threshold.metric in values and threshold.family in (None, family)
    }
    if not families:
        raise PopmodelError(
            f"{OVER} {threshold.text} cannot be checked: no run has this metric measured and "
            "predicted",
            "leave it out, or give traces: tables have runtimes only",
        )
    missed = []
    for family in sorted(families.intersection(shown) or families):
        for split in splits:
            one = split.metrics.get(family, {}).get(threshold.metric)
            if one is not None and abs(one.predicted - one.mean) > threshold.limit:
                missed.append(
                    f"{family}.{threshold.metric} of {split.describe(names)} is off by "
                    f"{100 * abs(one.predicted - one.mean):.1f} points, more than "
                    f"{100 * threshold.limit:g}"
                )
    return missed
