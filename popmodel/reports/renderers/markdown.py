"""Blocks as Markdown: tables, lists, fenced commands, equations as LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from popmodel.reports.blocks import (
    BarBlock,
    Block,
    Code,
    CommandBlock,
    EquationBlock,
    Facts,
    Heading,
    Listing,
    MarkdownBlock,
    NoteBlock,
    Role,
    Section,
    Strips,
    TableBlock,
    TableCell,
    TableRow,
    Title,
    flat,
)
from popmodel.reports.renderers.text import clean, strip_lines

if TYPE_CHECKING:
    from popmodel.reports.renderers.text import Style
    from popmodel.reports.views import Document, Views

_LISTS = frozenset({Role.BULLET, Role.WARNING, Role.DOUBT, Role.ENTRY, Role.TERM})
"""Notes that stand below each other as a list."""
# What would begin emphasis, code, a tag, a column or the target of a link in a text without any.
_SIGNS = re.compile(r"[\\*`<|]|(?<![^\W_])_|(?<=\])\(")
_WIDTH = 80  # of what is drawn by signs
_OPENING = re.compile(r"[#>+-](?=\W|$)")  # at the beginning of a line: a heading, a quote, a list


def render(document: Document, views: Views, style: Style) -> str:  # noqa: ARG001 (no lines)
    """A document as Markdown, with where it comes from at the end."""
    from popmodel.reports.views import footer

    below = [] if views.is_text else footer(document)
    lines = markdown_lines([*views.blocks(document), *below])
    return "".join(f"{line}\n" for line in lines)


def markdown_lines(sections: Iterable[Section]) -> list[str]:
    """Lines of sections; entries of a list follow each other, all else has empty lines between."""
    drawn: list[str] = []
    before = ""  # the sign of the entry above, if it is one
    for block in flat(sections):
        sign = _sign(block)
        if drawn and not (sign and sign == before):
            drawn.append("")
        drawn += _block(block)
        before = sign
    return drawn


def _sign(block: Block) -> str:
    """What an entry of a list begins with."""
    if isinstance(block, NoteBlock) and block.role is Role.STEP:
        return "1."
    is_entry = (isinstance(block, EquationBlock) and not block.text) or (
        isinstance(block, NoteBlock) and block.role in _LISTS
    )
    return "-" if is_entry else ""


def _block(block: Block) -> Iterable[str]:
    """Lines of one block."""
    match block:
        case NoteBlock():
            return [_note(block)]
        case Facts(rows):
            return _facts(rows)
        case TableBlock():
            return _table(block)
        case Heading(text, is_part):
            return [f"{'##' if is_part else '###'} {escaped(text)}"]
        case Listing(title, columns, rows):
            return _grid([title, *columns], map(_row, rows))
        case CommandBlock(texts, comment, _):
            return _commands(texts, comment)
        case Code(lines):
            return _fenced(lines)
        case MarkdownBlock(text):
            return text.rstrip("\n").split("\n")
        case Strips():
            return _fenced(strip_lines(block, _WIDTH))
        case Title(left, rights):
            return [f"## {escaped(f'{left}, {rights[0]}')}"]
        case EquationBlock(_, "", latex, meaning):
            return [f"- ${latex}$ {escaped(meaning)}"]
        case EquationBlock(_, _, latex, meaning):
            return ["$$", latex, "$$", "", escaped(meaning)]
    raise TypeError(f"{type(block).__name__} is no block")


def escaped(text: str) -> str:
    """Text in which nothing is read as markup."""
    return _SIGNS.sub(lambda sign: f"\\{sign[0]}", clean(text))


def _note(note: NoteBlock) -> str:
    text = escaped(note.text)
    if note.role in _LISTS:
        return f"{'  ' * note.depth}- {text}"
    return f"\\{text}" if _OPENING.match(text) else text


def _facts(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    """A list of names and values; a value without a name goes on with the one above."""
    for name, value in rows:
        yield f"- **{escaped(name)}**: {escaped(value)}" if name else f"  - {escaped(value)}"


def _table(table: TableBlock) -> list[str]:
    """A table; bars are left out, as the figures say the same."""
    bars = {
        at for row in table.rows for at, one in enumerate(row.cells) if isinstance(one, BarBlock)
    }
    names = [" ".join(filter(None, head)).replace("- ", "") for head in table.heads]
    heads = [name for at, name in enumerate(names) if at not in bars]
    least = min((row.depth for row in table.rows), default=0)
    return _grid([table.title or table.first, *heads], (_row(row, least) for row in table.rows))


def _row(row: TableRow, least: int = 0) -> list[str]:
    """The cells of a row; how much deeper it is than the least deep one as blanks that stay."""
    cells = [cell.text for cell in row.cells if isinstance(cell, TableCell)]
    label, *figures = _cells([row.label, *([row.instead] if row.instead else cells)])
    return ["&nbsp;" * (2 * (row.depth - least)) + label, *figures]


def _cells(texts: Iterable[str]) -> list[str]:
    return [escaped(text.strip(" ")) for text in texts]


def _grid(heads: Sequence[str], rows: Iterable[Sequence[str]], align: str = "--:") -> list[str]:
    """A table, first column to the left; a short row is filled up."""
    lines = [_cells(heads), *([*row, *[""] * (len(heads) - len(row))] for row in rows)]
    drawn = [f"| {' | '.join(line)} |" for line in lines]
    return [drawn[0], "|" + "|".join([":--"] + [align] * (len(heads) - 1)) + "|", *drawn[1:]]


def _commands(texts: Sequence[str], comment: str) -> Iterator[str]:
    for number, text in enumerate(texts):
        if number:
            yield from ("", "or", "")
        yield from _fenced([*([f"# {comment}"] if comment else []), *text.split("\n")])


def _fenced(lines: Iterable[str]) -> list[str]:
    known = [clean(line) for line in lines]
    longest = max((len(found) for line in known for found in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}sh", *known, fence]
