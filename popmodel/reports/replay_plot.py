"""Replays of a trace as a drawing: the measured runtime, and that on each network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from popmodel.base.units import format_time
from popmodel.reports.networks import differences
from popmodel.reports.pictures import Bars, Picture, PictureBar, PictureLine
from popmodel.reports.views import Document


def picture(document: Document) -> Picture:
    """A bar for the measured run and for each replay, in the order of the networks."""
    runs = document["runs"]
    had = [one for one in (document["measured_runtime"],) if one is not None]
    names = [
        differences(document, number) or run["network"]["name"]
        for number, run in enumerate(runs, start=1)
    ]
    return Picture(
        "Runtime on other networks",
        [f"trace {runs[0]['trace']}", _COMPARED[document["against"]["what"]]],
        Bars(
            [""],
            [
                *(PictureLine("measured", (PictureBar(one, format_time(one)),)) for one in had),
                *(PictureLine(name, (_bar(run),)) for name, run in zip(names, runs, strict=True)),
            ],
        ),
        [
            f"No result: {name}: {run['error']}"
            for name, run in zip(names, runs, strict=True)
            if run["runtime"] is None
        ],
    )


_COMPARED = {
    "ideal": "changes relative to the ideal network",
    "first": "changes relative to the first replay",
    "measured": "changes relative to the measured run",
}


def _bar(run: Mapping[str, Any]) -> PictureBar | None:
    if run["runtime"] is None:
        return None
    change = "" if run["change"] is None else f" ({100 * run['change']:+.1f} %)"
    return PictureBar(run["runtime"], format_time(run["runtime"]) + change)
