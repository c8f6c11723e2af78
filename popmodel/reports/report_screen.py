"""A report on a terminal: the screens of its results, one after the other."""

from __future__ import annotations

from popmodel.reports.blocks import Heading, NoteBlock, Role, Section
from popmodel.reports.html.contents import command_of
from popmodel.reports.registry import views_of
from popmodel.reports.views import Document, Record, Views


def blocks(document: Document) -> list[Section]:
    """What each result shows, below its name."""
    shown: list[Section] = []
    for one in document["documents"]:
        shown += [
            (Heading(f"popmodel {command_of(one)}", is_part=True),),
            *views_of(one).blocks(one),
        ]
    return [*shown, left_out(document)]


def left_out(document: Document) -> Section:
    """What could not be had of which trace, and why."""
    return tuple(
        NoteBlock(f"{one['trace']}: no {one['what']}: {one['why']}", Role.WARNING)
        for one in document.get("left_out", ())
    )


def records(document: Document) -> list[Record]:
    """The records of all results, each with the command that it is of."""
    return [
        {"command": str(one["schema"]).split("/")[1], **record}
        for one in document["documents"]
        for record in views_of(one).records(one)
    ]


VIEWS = Views(blocks, records)
