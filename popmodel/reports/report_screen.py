"""A report on a terminal: the screens of its results, one after the other."""

from __future__ import annotations

from popmodel.reports.blocks import Heading, NoteBlock, Role, Section
from popmodel.reports.html.contents import command_of
from popmodel.reports.registry import views_of
from popmodel.reports.views import Document, Views


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


VIEWS = Views(blocks, ())
