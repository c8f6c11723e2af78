"""What reports that are not blocks yet draw with; goes with the last of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from popmodel.report import blocks
from popmodel.report.blocks import Cell, Row
from popmodel.report.figures import loses, percent
from popmodel.report.renderers import text as _text
from popmodel.report.renderers.tables import GAP, Least, Style, pair_lines, table_lines
from popmodel.report.renderers.text import clean, display_width, distinct, shell_lines, shorten

__all__ = [
    "GAP", "Cell", "Row", "Style", "bar", "clean", "display_width", "distinct", "loses", "pairs",
    "paragraph", "percent", "shell_lines", "shell_words", "shorten", "table",
]  # fmt: skip


def table(
    heads: Sequence[Sequence[str]], rows: Iterable[Row], style: Style, *, first: str = ""
) -> list[str]:
    """A table."""
    made = blocks.Table(tuple(map(tuple, heads)), tuple(rows), first)
    return table_lines(made, style, Least())


def pairs(entries: Iterable[tuple[str, str]], style: Style) -> list[str]:
    """Names and values."""
    return pair_lines(list(entries), style.width)


def paragraph(text: str, style: Style, *, first: str = "", rest: str | None = None) -> list[str]:
    """Wrapped text."""
    return _text.paragraph(text, style.width, first, rest)


def shell_words(command: str) -> list[str]:
    """The words of a shell command as they stand there; quotes keep one together."""
    return _text._WORD.findall(command)


def bar(fraction: float, width: int) -> str:
    """A bar for a part of a whole."""
    return "#" * round(min(max(fraction, 0.0), 1.0) * width)
