"""Predictions beside measurements as a drawing: predicted over measured runtime of each split."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from popmodel.report.pictures import Bar, Bars, Line, Picture
from popmodel.report.splits import described, varied
from popmodel.report.uncertainty import INCLUDED
from popmodel.report.views import Document
from popmodel.units import format_time, plural


def picture(document: Document) -> Picture:
    """A bar for each split: the predicted runtime over the mean of those measured."""
    splits = document["splits"]
    differing = varied(splits)
    repeats = any(split["runs"] > 1 for split in splits)
    return Picture(
        f"{document['application']} on {document['machine']}: predicted over measured runtime",
        ["1 (dashed) is exact; above 1 the prediction is too long"],
        Bars(
            [""],
            [
                Line(
                    described(one, differing)
                    + (f" ({plural(one['runs'], 'run')})" if repeats else ""),
                    (_ratio(one),),
                )
                for one in splits
            ],
            exact=1.0,
        ),
        [
            "Orange: the measured runtime is outside the interval.",
            f"90 %: {INCLUDED}.",
        ],
    )


def is_outside(one: Mapping[str, Any]) -> bool:
    """Whether the interval misses the measured mean."""
    return one["low"] is not None and not one["low"] <= one["mean"] <= one["high"]


def _ratio(split: Mapping[str, Any]) -> Bar:
    time = split["runtime"]
    mean, predicted = time["mean"], time["predicted"]
    low, high = (None if time[end] is None else time[end] / mean for end in ("low", "high"))
    text = f"{predicted / mean:.3g} ({format_time(predicted)} / {format_time(mean)})"
    return Bar(predicted / mean, text, low, high, is_worst=is_outside(time))
