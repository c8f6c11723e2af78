"""What predictions say of a run, as far as it is compared with measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from popmodel.documents import Kind
from popmodel.model.uncertainty import Estimate
from popmodel.prediction.prediction import SCHEMA, Prediction
from popmodel.shapes import Items, Named, Optional, Plain, Real, Table, Text, Whole
from popmodel.values import dataclass


@dataclass(frozen=True)
class Predicted:
    """What a prediction says of one run.

    Attributes
    ----------
    processes, threads : int
        P and T.
    runtime : Estimate
        Seconds.
    metrics : mapping of str to mapping of str to Estimate
        By family and metric id.
    parameters : mapping of str to float
        Those of the application.
    """

    processes: int
    threads: int
    runtime: Estimate
    metrics: Mapping[str, Mapping[str, Estimate]]
    parameters: Mapping[str, float] = field(default_factory=dict)


_ESTIMATE = Table(
    {"value": Real(), "low": Optional(Real()), "high": Optional(Real())},
    required=("value", "low", "high"),
    others=Plain(),
)
_TIME = Table(
    {"value": Real(above=0), "low": Optional(Real(least=0)), "high": Optional(Real(least=0))},
    required=("value", "low", "high"),
    others=Plain(),
)
_MACHINE = Table({"name": Text(), "noisy": Items(Text())}, required=("name",), others=Plain())
_APPLICATION = Table(
    {"name": Text(), "settings": Named(Real())}, required=("name",), others=Plain()
)

PREDICTION = Kind(
    SCHEMA,
    "prediction",
    Table(
        {
            "application": _APPLICATION,
            "machine": _MACHINE,
            "processes": Whole(1),
            "threads": Whole(1),
            "runtime": _TIME,
            "metrics": Named(Named(_ESTIMATE)),
        },
        required=("application", "machine", "processes", "threads", "runtime", "metrics"),
        others=Plain(),
    ),
    "make one: popmodel predict ... -o prediction.json",
)
"""A prediction that was saved: what is compared of it, and what names it."""


def from_prediction(made: Prediction) -> Predicted:
    """Take what is compared from a prediction."""
    at = made.placement
    return Predicted(at.processes, at.threads, made.runtime, made.metrics, made.settings)


def from_document(document: Mapping[str, Any]) -> Predicted:
    """Take what is compared from the document of a prediction, which `PREDICTION` has read."""

    def estimate(entry: Mapping[str, Any]) -> Estimate:
        return Estimate(entry["value"], entry["low"], entry["high"])

    return Predicted(
        document["processes"],
        document["threads"],
        estimate(document["runtime"]),
        {
            family: {metric: estimate(entry) for metric, entry in values.items()}
            for family, values in document["metrics"].items()
        },
        document["application"].get("settings", {}),
    )
