"""Where the numbers of a page come from."""

from __future__ import annotations

from collections.abc import Iterator

from popmodel.base.units import format_size
from popmodel.reports import blocks
from popmodel.reports.blocks import CommandBlock, Heading, NoteBlock, TableBlock, TableRow
from popmodel.reports.html.contents import Contents, verb_of
from popmodel.reports.html.section import Section
from popmodel.reports.renderers.html import html
from popmodel.reports.views import pasteable


def section(contents: Contents) -> Section:
    """Commands, versions, hosts, times and input files of all documents."""
    shown = {"body": html(_origins(contents), heading=3)}
    return Section("provenance", "Provenance", {"shown": [shown]}, template="results")


def _origins(contents: Contents) -> Iterator[blocks.Section]:
    for number, document in enumerate(contents.documents, start=1):
        if stamp := document.get("provenance"):
            yield (
                Heading(f"{number}. {verb_of(document)}"),
                NoteBlock(f"popmodel {stamp['popmodel']} on {stamp['host']}, {stamp['time']}"),
                CommandBlock((pasteable(stamp["command"]),)),
            )
            rows = tuple(
                TableRow(
                    file["path"],
                    blocks.texts([format_size(file["size"]), f"{file['head_sha256'][:16]}..."]),
                )
                for file in stamp["inputs"]
            )
            if rows:
                heads = blocks.heads(("size", "SHA-256 of its first 64 KiB"))
                yield (TableBlock(heads, rows, first="input file"),)
