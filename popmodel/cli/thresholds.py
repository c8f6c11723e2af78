"""``--fail-under``: limits that metrics of runs must not fall below."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from popmodel.base.errors import PopmodelError, ThresholdError, UsageError, did_you_mean
from popmodel.base.values import dataclass
from popmodel.cli.options import fraction

if TYPE_CHECKING:
    from popmodel.efficiency.family import Family


@dataclass(frozen=True)
class Threshold:
    """One limit; without a family it holds in every family that is shown and has the metric."""

    text: str
    family: str | None
    metric: str
    limit: float


def parse(text: str, families: Mapping[str, Family], option: str = "--fail-under") -> Threshold:
    """Read ``METRIC=VALUE`` or ``FAMILY.METRIC=VALUE``."""
    name, limit = name_and_limit(text, option, "METRIC=VALUE, e.g. parallel_efficiency=0.8")
    where = f"{option} {text}"
    family, dot, metric = name.rpartition(".")
    if dot and family not in families:
        raise UsageError(f"{where}: unknown family '{family}'", f"families: {', '.join(families)}")
    ids = dict.fromkeys(
        known
        for key, member in families.items()
        if not dot or key == family
        for known in member.metrics
    )
    if metric not in ids:
        hint = did_you_mean(metric, ids, "popmodel docs --all lists the metrics")
        raise UsageError(f"{where}: unknown metric '{metric}'", hint)
    return Threshold(text, family or None, metric, limit)


def name_and_limit(text: str, option: str, example: str) -> tuple[str, float]:
    """Read ``NAME=VALUE``, where the value is a fraction or a percentage."""
    name, sign, number = text.partition("=")
    where = f"{option} {text}"
    if not sign:
        raise UsageError(f"{where}: value missing", f"write {example}")
    return name.strip(), _limit(number, where)


def check(
    thresholds: Sequence[Threshold],
    runs: Mapping[str, Mapping[str, Any]],
    shown: Sequence[str],
) -> None:
    """Hold the metrics of runs against limits."""
    missed: list[str] = []
    unknown: dict[str, list[str]] = {}  # by reason, which several families and runs can share
    for threshold in thresholds:
        for run, families in runs.items():
            for family in _families(threshold, families, shown):
                evaluation = families[family]
                where = f"{family}.{threshold.metric} of {run}"
                value = evaluation.values.get(threshold.metric)
                if value is None:
                    unknown.setdefault(evaluation.absent[threshold.metric], []).append(where)
                elif value < threshold.limit:
                    missed.append(f"{where} is {value:.4g}, less than {threshold.limit:g}")
    if missed:
        raise ThresholdError("; ".join(missed))
    if unknown:
        told = "; ".join(f"{', '.join(names)} ({why})" for why, names in unknown.items())
        raise PopmodelError(
            f"--fail-under cannot be checked: no value for {told}",
            "leave the threshold out or analyse runs that have the metric",
        )


def _families(threshold: Threshold, families: Mapping[str, Any], shown: Sequence[str]) -> list[str]:
    if threshold.family is not None:
        return [threshold.family]
    having = [
        name
        for name, evaluation in families.items()
        if threshold.metric in evaluation.values or threshold.metric in evaluation.absent
    ]
    return [name for name in having if name in shown] or having


def _limit(text: str, where: str) -> float:
    hint = "write a fraction such as 0.8 or a percentage such as 80%"
    limit = fraction(text)
    if math.isnan(limit):
        raise UsageError(f"{where}: must be a number, not '{text.strip()}'", hint)
    if not 0 <= limit < math.inf:
        raise UsageError(f"{where}: must be at least 0 and finite", hint)
    return limit
