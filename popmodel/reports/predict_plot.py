"""Where the time of a predicted run goes, as a drawing."""

from __future__ import annotations

from popmodel.base.units import format_time
from popmodel.reports.figures import percent
from popmodel.reports.heading import application
from popmodel.reports.pictures import Bars, Picture, PictureBar, PictureLine
from popmodel.reports.uncertainty import INCLUDED
from popmodel.reports.views import Document


def picture(document: Document) -> Picture:
    """A bar for each part of the runtime, the longest first, and one for the whole."""
    whole = document["runtime"]
    parts = sorted(document["time"].items(), key=lambda entry: -entry[1]["value"])
    machine = document["machine"]
    lines = [
        PictureLine(
            label,
            (
                PictureBar(
                    max(one["value"], 0.0),
                    f"{format_time(one['value'])} ({percent(one['value'] / whole['value'])} %)",
                    one["low"],
                    one["high"],
                ),
            ),
        )
        for label, one in [("runtime", whole), *parts]
    ]
    return Picture(
        f"{application(document)}: where the time goes",
        [
            f"{document['processes']} processes x {document['threads']} threads",
            f"machine {machine['name']} ({machine['origin']})",
        ],
        Bars([""], lines),
        [f"90 %: {INCLUDED}."],
    )
