"""Results and pages that were saved, read again, and their screens, one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from popmodel.base.document_schemas import check
from popmodel.base.documents import parse_json, read_text, schema_of
from popmodel.base.errors import FileError
from popmodel.reports.blocks import Heading, NoteBlock, Role, Section
from popmodel.reports.html.contents import SCHEMA, alone, command_of
from popmodel.reports.registry import SHOWN, views_of
from popmodel.reports.views import Document, Views
from popmodel.traces.source import HEAD, foreign_file

if TYPE_CHECKING:
    from popmodel.reports.views import Document


def saved_report(path: str) -> dict[str, Any]:
    """The report in a file; a result alone as a report of its own."""
    found = parsed(path)
    if found.get("schema") != SCHEMA:
        _require_shown(found, path)
    check(found, path)
    documents = found["documents"] if found["schema"] == SCHEMA else [found]
    if not documents:
        raise FileError(path, "is a report without results", hint="make it again")
    for document in documents:
        _require_shown(document, path)
        if "provenance" not in document:
            raise FileError(path, "provenance is missing", hint="save the result again")
    return found if found["schema"] == SCHEMA else dict(alone(found).document)


def parsed(path: str) -> dict[str, Any]:
    """The JSON of a file, or that which a page holds."""
    text = read_text(path)
    if path.lower().endswith(".html"):
        from popmodel.reports.html.page import held

        hint = "name a page that popmodel wrote"
        try:
            inside = held(text)
        except ValueError as error:
            raise FileError(path, f"its results are damaged: {error}", hint=hint) from error
        if inside is None:
            raise FileError(path, "holds no results of popmodel", hint=hint)
        text = inside
    saved = "name a result that popmodel saved with --format json"
    found = parse_json(text, path, hint=saved)
    foreign = foreign_file(Path(path), text[:HEAD].encode())
    if foreign and not (isinstance(found, dict) and "schema" in found):
        raise FileError(path, f"is {foreign.name}", hint=foreign.advice)
    if not isinstance(found, dict):
        raise FileError(path, "is no result: the JSON document must be a table", hint=saved)
    return found


def _require_shown(document: Document, path: str) -> None:
    """Refuse what no report shows."""
    schema = document.get("schema")
    parts = schema.split("/") if isinstance(schema, str) else []
    if len(parts) != 3 or parts[0] != "popmodel" or parts[1] not in SHOWN:
        raise FileError(
            path,
            f"is nothing that a report shows: {schema_of(document)}",
            hint=f"save a result with --format json: of {', '.join(sorted(SHOWN))}",
        )


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
