"""What predictions say of a run, as far as it is compared with measurements."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from popmodel.document_schemas import EFFICIENCY
from popmodel.documents import DocumentKind
from popmodel.efficiency.family import Family
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.terms import USEFUL
from popmodel.machine.quantity import END
from popmodel.model.uncertainty import Estimate
from popmodel.prediction.prediction import INSIDE, SCHEMA, PredictedRun
from popmodel.runs.measurement import deviation_of_loss, deviation_of_metric, has_reference
from popmodel.shapes import (
    Items,
    NamedShape,
    Optional,
    Plain,
    Real,
    Shape,
    TableShape,
    Text,
    WholeShape,
)
from popmodel.values import dataclass


@dataclass(frozen=True)
class Predicted:
    """What a prediction says of one run."""

    # P and T.
    processes: int
    threads: int
    runtime: Estimate  # Seconds
    metrics: Mapping[str, Mapping[str, Estimate]]  # By family and metric id
    parameters: Mapping[str, float] = field(default_factory=dict)  # Those of the application
    # Parts of the runtime, s, `popmodel.efficiency.terms`.
    terms: Mapping[str, Estimate] = field(default_factory=dict)
    nodes: int | None = None  # Nodes that it takes; None if that is not known
    # How far it goes beyond what was measured of the machine, `Validity.status`.
    validity: str = INSIDE


def _estimate(value: Shape, end: Shape) -> TableShape:
    """Shape of an interval whose value and ends have these."""
    keys = {"value": value, "low": Optional(end), "high": Optional(end)}
    return TableShape(keys, tuple(keys), others=Plain())


_MACHINE = TableShape({"name": Text(), "noisy": Items(Text())}, required=("name",), others=Plain())
_APPLICATION = TableShape(
    {
        "name": Text(),
        "settings": NamedShape(Real()),
        "calibration": Optional(
            TableShape(
                {"runs": WholeShape(0), "noise": Real(least=0)}, required=("runs",), others=Plain()
            )
        ),
    },
    required=("name",),
    others=Plain(),
)

PREDICTION = DocumentKind(
    SCHEMA,
    "prediction",
    TableShape(
        {
            "application": _APPLICATION,
            "machine": _MACHINE,
            "processes": WholeShape(1),
            "threads": WholeShape(1),
            "runtime": _estimate(Real(above=0), Real(least=0)),
            "metrics": NamedShape(NamedShape(_estimate(EFFICIENCY, EFFICIENCY))),
            "terms": NamedShape(_estimate(Real(), Real())),
            "placement": TableShape({"nodes": WholeShape(1)}, required=("nodes",), others=Plain()),
            "validity": TableShape({"status": Text()}, required=("status",), others=Plain()),
        },
        required=("application", "machine", "processes", "threads", "runtime", "metrics"),
        others=Plain(),
    ),
    "make one: popmodel predict ... -o prediction.json",
)
"""A prediction that was saved: what is compared of it, and what names it."""


def from_prediction(made: PredictedRun, noise: float = 0.0) -> Predicted:
    """Take what is compared from a prediction."""
    at = made.placement
    mean = Predicted(
        at.processes,
        at.threads,
        made.runtime,
        made.metrics,
        made.settings,
        made.terms,
        at.nodes,
        made.validity.status,
    )
    return _varied(mean, noise)


def from_document(document: Mapping[str, Any]) -> Predicted:
    """Take what is compared from the document of a prediction, which `PREDICTION` has read.

    Its intervals are of the mean of many runs; it says how much they vary if runs have told it.
    """

    def estimate(entry: Mapping[str, Any]) -> Estimate:
        return Estimate(entry["value"], entry["low"], entry["high"])

    mean = Predicted(
        document["processes"],
        document["threads"],
        estimate(document["runtime"]),
        {
            family: {metric: estimate(entry) for metric, entry in values.items()}
            for family, values in document["metrics"].items()
        },
        document["application"].get("settings", {}),
        {name: estimate(entry) for name, entry in document.get("terms", {}).items()},
        document.get("placement", {}).get("nodes"),
        document.get("validity", {}).get("status", INSIDE),
    )
    return _varied(mean, (document["application"].get("calibration") or {}).get("noise", 0.0))


def _varied(mean: Predicted, noise: float) -> Predicted:
    """What is said of one more run, of what is said of the mean of many."""
    return replace(
        mean,
        runtime=of_new_run(mean.runtime, noise),
        metrics=metrics_of_new_run(mean.metrics, noise),
        terms=terms_of_new_run(mean.terms, mean.runtime.value, noise),
    )


def of_new_run(mean: Estimate, noise: float) -> Estimate:
    """Widen the interval of a mean runtime to that of one more run."""
    if mean.low is None or mean.high is None or noise == 0:
        return mean
    below, above = math.log(mean.value / mean.low), math.log(mean.high / mean.value)
    return Estimate(
        mean.value,
        mean.value * math.exp(-math.hypot(below, END * noise)),
        mean.value * math.exp(math.hypot(above, END * noise)),
    )


def metrics_of_new_run(
    means: Mapping[str, Mapping[str, Estimate]], noise: float
) -> dict[str, dict[str, Estimate]]:
    """Widen the intervals of mean metrics, by family and id, to those of one more run."""
    found = {}
    for name, metrics in means.items():
        family = load_families().get(name)
        if family is None:
            found[name] = dict(metrics)  # of a version that has families which this one lacks
            continue
        values = {metric: one.value for metric, one in metrics.items() if metric in family.metrics}
        found[name] = {
            metric: _of_new_run(one, noise, family, metric, values) if metric in values else one
            for metric, one in metrics.items()
        }
    return found


def _of_new_run(
    mean: Estimate, noise: float, family: Family, metric: str, values: Mapping[str, float]
) -> Estimate:
    deviation = deviation_of_metric(noise, family, metric, values)
    most = None if has_reference(family, metric) else 1.0
    return _widened(mean, deviation, family.metrics[metric].at_least, most)


def terms_of_new_run(
    means: Mapping[str, Estimate], runtime: float, noise: float
) -> dict[str, Estimate]:
    """Widen the intervals of mean terms of the runtime, s, to those of one more run."""
    return {
        name: _widened(
            one,
            noise * one.value
            if name == USEFUL.name
            else runtime * deviation_of_loss(noise, one.value / runtime),
            least=0.0,
        )
        for name, one in means.items()
    }


def _widened(
    mean: Estimate, deviation: float, least: float | None = None, most: float | None = None
) -> Estimate:
    """Add what varies from run to run to an interval, as far as the bounds of a quantity allow."""
    if mean.low is None or mean.high is None:
        return mean
    low = mean.value - math.hypot(mean.value - mean.low, END * deviation)
    high = mean.value + math.hypot(mean.high - mean.value, END * deviation)
    return Estimate(
        mean.value,
        low if least is None else min(mean.low, max(low, least)),
        high if most is None else max(mean.high, min(high, most)),
    )
