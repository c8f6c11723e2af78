"""Predictions beside measurements as a drawing: predicted over measured runtime of each run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from popmodel.report.plots import Band, Mark, Panel, Point, drawing
from popmodel.report.render import Document
from popmodel.units import format_time


def svg(document: Document) -> str:
    """The runtimes that were measured, and the predicted ones over them: 1 is right."""
    rows = sorted(
        (row for row in document["rows"] if row["metric"] == "runtime"),
        key=lambda row: (row["processes"], row["threads"]),
    )
    stamp = document["provenance"]
    return drawing(
        f"{document['application']} on {document['machine']}: predicted over measured runtime",
        ["1 is exact, above 1 the prediction is too slow"],
        [
            (Mark.MARKED, "the interval contains the measurement"),
            (Mark.PLAIN, "it does not, or there is none"),
        ],
        [
            Band(
                "",
                (
                    Panel("ratio", "Predicted / measured", tuple(map(_ratio, rows))),
                    Panel("measured", "Measured runtime (s)", tuple(map(_measured, rows))),
                ),
                "processes x threads",
            )
        ],
        [
            "Bars: 90 % intervals, reflecting parameter uncertainty, not model error. Axes do not "
            "begin at 0.",
            f"popmodel {stamp['popmodel']}, {stamp['time']}: {stamp['command']}",
        ],
        stamp,
    )


def _ratio(row: Mapping[str, Any]) -> Point:
    measured = row["measured"]
    value = row["predicted"] / measured
    low, high = (None if row[end] is None else row[end] / measured for end in ("low", "high"))
    text = (
        f"{row['source']}: predicted {format_time(row['predicted'])}, "
        f"measured {format_time(measured)}"
    )
    mark = Mark.MARKED if row["covered"] else Mark.PLAIN
    return Point(_split(row), value, low, high, text, f"{value:.3g}", mark)


def _measured(row: Mapping[str, Any]) -> Point:
    text = format_time(row["measured"])
    return Point(
        _split(row), row["measured"], None, None, f"{row['source']}: {text}", text, Mark.PLAIN
    )


def _split(row: Mapping[str, Any]) -> str:
    return f"{row['processes']} x {row['threads']}"
