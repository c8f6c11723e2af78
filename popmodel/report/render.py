"""From a document to text in a format.

A *document* is the plain data of one result, exactly what ``--format json`` prints (see the schema
names). Each verb has one module here that draws its documents; nothing in this package knows the
command line. A document that was saved as JSON can be drawn again later.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from popmodel.report.export import Record, csv_text, json_text
from popmodel.report.terminal import Style, clean, paragraph, shell_lines, shorten

Document = Mapping[str, Any]


class Format(StrEnum):
    """Formats of a result."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"
    SVG = "svg"


@dataclass(frozen=True)
class Views:
    """How one kind of document is shown.

    Attributes
    ----------
    screen : callable
        Document and style to the lines of a terminal.
    records : callable
        Document to tidy records, one value each, for CSV.
    markdown : callable
        Document to the lines of a Markdown text.
    svg : callable or None
        Document to the text of a drawing; None for what has none.
    """

    screen: Callable[[Document, Style], list[str]]
    records: Callable[[Document], list[Record]]
    markdown: Callable[[Document], list[str]]
    svg: Callable[[Document], str] | None = None


def render(document: Document, views: Views, format: Format, style: Style) -> str:
    """The text of a document in a format, with its provenance, ending with a line end."""
    stamp = document["provenance"]
    if format is Format.JSON:
        return json_text(document)
    if format is Format.CSV:
        names = ("popmodel", "time", "host", "command")
        return csv_text(views.records(document), {name: stamp[name] for name in names})
    if format is Format.MARKDOWN:
        command = stamp["command"].replace("`", "'")
        footer = f"popmodel {stamp['popmodel']} on {stamp['host']}, {stamp['time']}: `{command}`"
        return "\n".join([*views.markdown(document), "", footer]) + "\n"
    if format is Format.SVG:
        if views.svg is None:
            raise ValueError(f"{document['schema']} has no drawing")
        return views.svg(document)
    return "\n".join([*views.screen(document, style), "", *_footer(stamp, style)]) + "\n"


def _footer(stamp: Mapping[str, Any], style: Style) -> list[str]:
    """Version, host and time, and the command: what fits on a terminal's line, else all of it."""
    lines = paragraph(f"popmodel {stamp['popmodel']} on {stamp['host']}, {stamp['time']}", style)
    if style.terminal:
        return [*lines, shorten(stamp["command"], style.width)]
    words = (clean(shlex.quote(word)) for word in shlex.split(stamp["command"]))
    return [*lines, *shell_lines(words, style.width)]
