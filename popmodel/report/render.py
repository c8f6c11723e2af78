"""From a document to text in a format.

A *document* is the plain data of one result, exactly what ``--format json`` prints (see the schema
names). Each verb has one module here that draws its documents; nothing in this package knows the
command line. A document that was saved as JSON can be drawn again later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any

from popmodel.report.colour import COLOURS
from popmodel.report.export import Record, csv_text, json_text
from popmodel.report.terminal import (
    Style,
    clean,
    paragraph,
    shell_lines,
    shell_words,
)
from popmodel.values import dataclass

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
        return _text([*views.markdown(document), "", footer])
    if format is Format.SVG:
        if views.svg is None:
            raise ValueError(f"{document['schema']} cannot be plotted")
        return views.svg(document)
    return _text([*views.screen(document, style), "", *_footer(stamp, style)])


def stamped(document: Document) -> str:
    """The line at the foot of a drawing: the version, when, and the command."""
    stamp = document["provenance"]
    return f"popmodel {stamp['popmodel']}, {stamp['time']}: {stamp['command']}"


def _text(lines: Iterable[str]) -> str:
    """Lines as a text, in which only those and the colours of popmodel control a terminal.

    What a view takes from a trace or another file may hold anything.
    """
    return "".join(f"{_harmless(line)}\n" for line in lines)


def _harmless(line: str) -> str:
    if line.isprintable():
        return line
    parts = COLOURS.split(line)  # every second one is a colour
    return "".join(part if number % 2 else clean(part) for number, part in enumerate(parts))


def _footer(stamp: Mapping[str, Any], style: Style) -> list[str]:
    """Version, host and time, and the command in lines that can be pasted."""
    lines = paragraph(f"popmodel {stamp['popmodel']} on {stamp['host']}, {stamp['time']}", style)
    return [*lines, *shell_lines(shell_words(stamp["command"]), style.width)]
