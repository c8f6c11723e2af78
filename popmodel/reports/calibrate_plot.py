"""Configurations left out as a drawing: predicted over measured runtime, before and after."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from popmodel.base.units import format_time, plural
from popmodel.reports.pictures import Bars, Picture, PictureBar, PictureLine
from popmodel.reports.splits import described, varied
from popmodel.reports.views import Document


def picture(document: Document) -> Picture:
    """Two bars for each configuration: before the calibration, and from the other runs."""
    left_out = document["left_out"]
    differing = varied(left_out)
    return Picture(
        f"{document['application']['name']} on {document['machine']['name']}: predicted over "
        "measured runtime",
        [
            "1 (dashed) is exact; above 1 the prediction is too long",
            f"{plural(document['runs'], 'run')}; each configuration is predicted from the others",
        ],
        Bars(
            ["uncalibrated", "calibrated"],
            [PictureLine(described(one, differing), _bars(one)) for one in left_out],
            exact=1.0,
        ),
        [
            "Orange: a measured runtime is outside the interval.",
            "90 %: intervals are those of a new run, with what runs vary by.",
        ],
    )


def _bars(one: Mapping[str, Any]) -> tuple[PictureBar, PictureBar]:
    measured = median(one["measured"])

    def text(value: float) -> str:
        return f"{value / measured:.3g} ({format_time(value)} / {format_time(measured)})"

    return (
        PictureBar(one["before"] / measured, text(one["before"])),
        PictureBar(
            one["value"] / measured,
            text(one["value"]),
            one["low"] / measured,
            one["high"] / measured,
            is_worst=one["covered"] < len(one["measured"]),
        ),
    )
