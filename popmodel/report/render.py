"""Documents that are not shown as blocks yet; goes with the last of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from popmodel.report import formats, views
from popmodel.report.export import Record
from popmodel.report.formats import Format
from popmodel.report.renderers.terminal import _harmless, screen_text
from popmodel.report.terminal import Style, paragraph, shell_lines, shell_words
from popmodel.report.views import Document
from popmodel.values import dataclass

__all__ = ["Document", "Format", "Views", "render", "screen", "stamped"]


@dataclass(frozen=True)
class Views:
    """How one kind of document is shown, drawn twice."""

    screen: Callable[[Document, Style], list[str]]
    records: Callable[[Document], list[Record]]
    markdown: Callable[[Document], list[str]]
    svg: Callable[[Document], str] | None = None


def render(document: Document, shown: Views | views.Views, format: Format, style: Style) -> str:
    """The text of a document in a format, with its provenance, ending with a line end."""
    if isinstance(shown, Views):
        stamp = document["provenance"]
        if format.name == "markdown":
            command = stamp["command"].replace("`", "'")
            footer = (
                f"popmodel {stamp['popmodel']} on {stamp['host']}, {stamp['time']}: `{command}`"
            )
            return _text([*shown.markdown(document), "", footer])
        if format is formats.TABLE:
            return _text([*shown.screen(document, style), "", *_footer(stamp, style)])
        shown = views.Views(lambda _: [], shown.records, shown.svg)
    return format.render(document, shown, style)


def screen(document: Document, shown: Views | views.Views) -> str:
    """The screen of a document without its provenance, 80 columns wide."""
    if isinstance(shown, Views):
        return "\n".join(shown.screen(document, Style()))
    return screen_text(shown.blocks(document), Style())


def stamped(document: Document) -> str:
    """The line at the foot of a drawing: the version, when, and the command."""
    stamp = document["provenance"]
    return f"popmodel {stamp['popmodel']}, {stamp['time']}: {stamp['command']}"


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{_harmless(line)}\n" for line in lines)


def _footer(stamp: Mapping[str, Any], style: Style) -> list[str]:
    """Version, host and time, and the command in lines that can be pasted."""
    lines = paragraph(f"popmodel {stamp['popmodel']} on {stamp['host']}, {stamp['time']}", style)
    return [*lines, *shell_lines(shell_words(stamp["command"]), style.width)]
