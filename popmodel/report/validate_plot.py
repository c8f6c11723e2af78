"""Predictions beside measurements as a drawing: predicted over measured runtime of each split."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from popmodel.report.bars import Bar, Line, bars
from popmodel.report.render import Document, stamped
from popmodel.report.validate import described, is_outside
from popmodel.units import format_time, plural


def svg(document: Document) -> str:
    """A bar for each split: the predicted runtime over the mean of those measured."""
    splits = document["splits"]
    repeats = any(split["runs"] > 1 for split in splits)
    return bars(
        f"{document['application']} on {document['machine']}: predicted over measured runtime",
        ["1 (dashed) is exact; above 1 the prediction is too long"],
        [""],
        [
            Line(f"{name} ({plural(one['runs'], 'run')})" if repeats else name, (_ratio(one),))
            for name, one in zip(described(splits), splits, strict=True)
        ],
        [
            "Orange: the measured runtime is outside the interval.",
            "Intervals: 90 %, reflecting parameter uncertainty, not model error.",
            stamped(document),
        ],
        document["provenance"],
        exact=1.0,
    )


def _ratio(split: Mapping[str, Any]) -> Bar:
    time = split["runtime"]
    mean, predicted = time["mean"], time["predicted"]
    low, high = (None if time[end] is None else time[end] / mean for end in ("low", "high"))
    text = f"{predicted / mean:.3g} ({format_time(predicted)} / {format_time(mean)})"
    return Bar(predicted / mean, text, low, high, is_worst=is_outside(time))
