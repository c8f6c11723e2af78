"""Formats of a result, by name and by suffix of a file.

A new format is a function of a document, its views and a style, and a line here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from popmodel.base.values import dataclass

if TYPE_CHECKING:
    from popmodel.reports.renderers.text import Style
    from popmodel.reports.views import Document, Views


@dataclass(frozen=True)
class OutputFormat:
    """A format."""

    name: str  # As ``--format`` takes it
    suffix: str  # Of files, in lower case
    renderer: str  # A module of `popmodel.reports` and a function in it; imported when it is used

    def render(self, document: Document, views: Views, style: Style) -> str:
        """The text of a document with its provenance, ending with a line end."""
        module, _, function = self.renderer.rpartition(".")
        render = getattr(import_module(f"popmodel.reports.{module}"), function)
        text: str = render(document, views, style)
        return text


TABLE = OutputFormat("table", ".txt", "renderers.terminal.render")
JSON = OutputFormat("json", ".json", "renderers.data.render_json")
SVG = OutputFormat("svg", ".svg", "renderers.svg.render")
"""Only of results that are drawn."""
HTML = OutputFormat("html", ".html", "html.page.render")
"""Only of results that are drawn."""
TOML = OutputFormat("toml", ".toml", "renderers.data.render_toml")
"""Only of signatures: the file that other commands read."""
FORMATS: Mapping[str, OutputFormat] = {
    one.name: one
    for one in (
        JSON,
        OutputFormat("csv", ".csv", "renderers.data.render_csv"),
        OutputFormat("markdown", ".md", "renderers.markdown.render"),
        TABLE,
        SVG,
        HTML,
        TOML,
    )
}
"""By name, in the order in which suffixes are named."""
NAMES = (TABLE.name, *(one.name for one in FORMATS.values() if one not in (TABLE, SVG, HTML, TOML)))
"""Formats that every result has, in the order in which they are named."""
DRAWN = (*NAMES, SVG.name, HTML.name)
"""Formats of a result that is drawn."""


def suffixes(names: Collection[str]) -> str:
    """The suffixes of some formats in words."""
    *most, last = (one.suffix for one in FORMATS.values() if one.name in names)
    return f"{', '.join(most)} or {last}"
