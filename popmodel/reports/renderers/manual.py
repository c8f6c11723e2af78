"""A page of the documentation, drawn for a terminal."""

from __future__ import annotations

import io
import re
from typing import Any, ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, TableElement
from rich.segment import Segment
from rich.text import Text
from rich.theme import Theme

from popmodel.reports.palette import Depth
from popmodel.reports.renderers.text import Style, display_width

_SYSTEMS: dict[Depth, Any] = {
    Depth.NONE: None,
    Depth.SIXTEEN: "standard",
    Depth.PALETTE: "256",
    Depth.TRUE: "truecolor",
}
_UNDERLINES = {"h1": "=", "h2": "-"}
CODE_INDENT = 4
_THEME = Theme(
    {
        "markdown.code": "cyan",
        "markdown.table.border": "none",
        "markdown.table.header": "bold",
        "markdown.item.bullet": "none",
        "markdown.item.number": "none",
    }
)
_PLAIN = str.maketrans(dict.fromkeys("\u2500\u2501\u2022", "-"))
"""Rules and bullets in ASCII, as on all other screens."""


class _Heading(Heading):
    """A heading at the left, underlined by characters, so that it is one without colours too."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = Text(self.text.plain, style="bold")
        lines = text.wrap(console, options.max_width)
        yield from lines
        if sign := _UNDERLINES.get(self.tag):
            yield Text(sign * max(line.cell_len for line in lines))


class _Code(CodeBlock):
    """Code as it is: never wrapped or cut, so that it can be copied."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = self.text.plain.rstrip("\n").split("\n")
        room = options.max_width - max(map(display_width, lines))
        indent = " " * max(min(CODE_INDENT, room), 0)
        for line in lines:
            yield Segment(f"{indent}{line}".rstrip(" "), console.get_style("none"))
            yield Segment.line()


class _Table(TableElement):
    """A table whose cells go on in the next line: nothing is cut."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            for column in table.columns:  # type: ignore[union-attr]
                column.overflow = "fold"
            yield table


class _Page(Markdown):
    elements: ClassVar = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
        "table_open": _Table,
    }


def page_lines(markdown: str, style: Style) -> list[str]:
    """A Markdown text for a terminal: paragraphs wrapped at its width, code as it stands."""
    console = Console(
        file=io.StringIO(),
        width=style.width,
        color_system=_SYSTEMS[style.depth],
        force_terminal=style.depth is not Depth.NONE,
        no_color=style.depth is Depth.NONE,
        legacy_windows=False,
        highlight=False,
        theme=_THEME,
    )
    page = _Page(markdown, hyperlinks=False)
    if style.depth is Depth.NONE:
        _keep_backticks(page)
    with console.capture() as captured:
        console.print(page, crop=False)
    text = re.sub(r" +$", "", captured.get().translate(_PLAIN), flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n").split("\n")


def _keep_backticks(page: Markdown) -> None:
    """Let code in a sentence be seen as such without colours."""
    for token in page.parsed:
        for part in token.children or []:
            if part.type == "code_inline":
                part.content = f"`{part.content}`"
