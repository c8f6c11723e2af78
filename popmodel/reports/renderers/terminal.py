"""Blocks on a terminal, and in text files: lines of a width, with colours where there are some."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from popmodel.base.values import dataclass
from popmodel.reports.blocks import (
    Block,
    Brief,
    Code,
    CommandBlock,
    EquationBlock,
    Facts,
    FitBlock,
    Heading,
    Listing,
    MarkdownBlock,
    NoteBlock,
    Role,
    Section,
    Strips,
    TableBlock,
    Title,
)
from popmodel.reports.palette import COLOURS
from popmodel.reports.renderers.text import (
    GAP,
    HANGING,
    INDENT,
    Least,
    Style,
    clean,
    command_lines,
    display_width,
    equation_lines,
    fits,
    in_line,
    listing_fits,
    listing_lines,
    pair_lines,
    paragraph,
    strip_lines,
    table_lines,
)

if TYPE_CHECKING:
    from popmodel.reports.views import Document, Views


@dataclass(frozen=True)
class _Indent:
    """What the first and the other lines of a note begin with, and columns of a level of depth."""

    first: str = ""
    rest: str | None = None
    step: int = 1


_INDENTS: Mapping[Role, _Indent] = {
    Role.PLAIN: _Indent(),
    Role.BULLET: _Indent(" - "),
    Role.WARNING: _Indent(" ! "),
    Role.REMARK: _Indent(" "),
    Role.HANGING: _Indent("", "    "),
    Role.VERDICT: _Indent("-> "),
    Role.DOUBT: _Indent("   "),
    Role.STEP: _Indent("   ", "      "),
    Role.ENTRY: _Indent(" ", "   "),
    Role.TERM: _Indent("", "    ", 2),
}


def render(document: Document, views: Views, style: Style) -> str:
    """The screen of a document, with where it comes from below."""
    from popmodel.reports.views import footer, short_footer

    sections = views.blocks(document)
    if views.is_text:
        below = []
    elif style.whole:
        below = footer(document)
    else:
        below = [short_footer(document, more=any(map(_has_more, sections)))]
    return "".join(f"{line}\n" for line in block_lines([*sections, *below], style))


def screen_text(sections: Iterable[Section], style: Style) -> str:
    """Sections of blocks as they stand on a screen."""
    return "\n".join(block_lines(sections, style))


def block_lines(sections: Iterable[Section], style: Style) -> list[str]:
    """Lines of sections, an empty one between them, in which only colours control a terminal.

    What a report takes from a trace or another file may hold anything.
    """
    shown = [section for section in _chosen(sections, style) if section]
    return list(_lines(shown, style, _Groups(shown)))


def _has_more(section: Section) -> bool:
    return any(isinstance(block, Brief) and block.whole != block.brief for block in section)


def _chosen(sections: Iterable[Section], style: Style) -> Iterator[Section]:
    """The sections that are shown, those in others among them."""
    for section in sections:
        match section:
            case (Brief(whole, brief),):
                yield from _chosen(whole if style.whole else brief, style)
            case _:
                yield section


class _Groups:
    """Least widths of the blocks that stand in line, by group."""

    def __init__(self, sections: Sequence[Section]) -> None:
        tables: dict[str, list[TableBlock]] = {}
        self._names: dict[str, int] = {}
        for block in (block for section in sections for block in section):
            if isinstance(block, TableBlock) and block.group:
                tables.setdefault(block.group, []).append(block)
            if isinstance(block, Facts) and block.group:
                names = [name for name, _ in block.rows]
                widest = max(map(display_width, names), default=0)
                self._names[block.group] = max(widest, self._names.get(block.group, 0))
        self._tables = {group: in_line(some) for group, some in tables.items()}

    def of_table(self, table: TableBlock) -> Least:
        """Least widths of a table."""
        return self._tables.get(table.group, Least())

    def of_names(self, block: Facts) -> int:
        """Least width of the names of facts."""
        return self._names.get(block.group, 0)


def _lines(sections: Sequence[Section], style: Style, groups: _Groups) -> Iterator[str]:
    for number, section in enumerate(filter(None, sections)):
        if number:
            yield ""
            if isinstance(section[0], Heading) and section[0].is_part:
                yield ""
        for block in section:
            lines = _block(block, style, groups)
            # Pages of the documentation hold nothing of others, and all colours of their renderer.
            yield from lines if isinstance(block, MarkdownBlock) else map(_harmless, lines)


def _block(block: Block, style: Style, groups: _Groups) -> Iterable[str]:
    """Lines of one block."""
    width = style.width
    match block:
        case NoteBlock(text, role, depth):
            indent = _INDENTS[role]
            blank = " " * (indent.step * depth)
            rest = None if indent.rest is None else blank + indent.rest
            return paragraph(text, width, blank + indent.first, rest)
        case Facts(rows, _, margin):
            return pair_lines(rows, width - margin, groups.of_names(block))
        case TableBlock():
            return table_lines(block, style, groups.of_table(block))
        case Heading(text):
            return paragraph(text, width)
        case Listing():
            return listing_lines(block, style)
        case CommandBlock(texts, comment, depth):
            return _command(texts, comment, " " * (2 * depth), width)
        case Code(lines):
            return lines
        case MarkdownBlock(_, shown):
            from popmodel.reports.renderers.manual import page_lines

            return page_lines(shown, style)
        case Strips():
            return strip_lines(block, width)
        case Title(left, rights):
            return _title(left, rights, width)
        case FitBlock(forms):
            found = next((form for form in forms if _fits(form, width)), forms[-1])
            return _lines(found, style, groups)
        case Brief(whole, brief):  # among others
            return _lines(whole if style.whole else brief, style, groups)
        case EquationBlock(name, "", _, meaning):
            return paragraph(f"{name} {meaning}", width, INDENT, HANGING)
        case EquationBlock(name, text, _, meaning):
            return [*equation_lines(name, text, width), *paragraph(meaning, width, HANGING)]


def _fits(form: Sequence[Section], width: int) -> bool:
    blocks = [block for section in form for block in section]
    return all(fits(block, width) for block in blocks if isinstance(block, TableBlock)) and all(
        listing_fits(block, width) for block in blocks if isinstance(block, Listing)
    )


def _command(texts: Sequence[str], comment: str, indent: str, width: int) -> Iterator[str]:
    if comment:
        yield f"{indent}# {comment}"
    for number, text in enumerate(texts):
        if number:
            yield f"{indent}or"
        for line in command_lines(text, width - len(indent)):
            yield indent + line


def _title(left: str, rights: Sequence[str], width: int) -> list[str]:
    """What it is about, and beside it the first text that there is room for."""
    for right in rights:
        blank = width - display_width(left) - display_width(right)
        if blank >= GAP:
            return [left + " " * blank + right]
    return [*paragraph(left, width), *paragraph(rights[0], width)]


def _harmless(line: str) -> str:
    if line.isprintable():
        return line
    parts = re.split(COLOURS, line)  # every second one is a colour
    return "".join(part if number % 2 else clean(part) for number, part in enumerate(parts))
