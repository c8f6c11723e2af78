"""What a report shows, as data: sections of blocks, which renderers draw.

A verb says what is shown and in which order; how that looks on a terminal, in Markdown or on a page
is the renderer's (`popmodel.reports.renderers`). What has to give way where there is little room is
said here as data too (`FitBlock`, `BarBlock`, `TableRow.instead`): no verb asks how wide a screen
is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum, auto
from itertools import chain
from textwrap import wrap
from typing import TypeAlias, TypeVar

from popmodel.base.units import plural
from popmodel.base.values import dataclass


class Role(Enum):
    """What a text is for."""

    PLAIN = auto()
    """A sentence of its own."""
    BULLET = auto()
    """One of several that stand below each other."""
    WARNING = auto()
    """Something that is wrong with an input or missing."""
    REMARK = auto()
    """Belongs to what stands above it."""
    HANGING = auto()
    """Begins with what tells it apart from the next: a name, or the number of what it explains."""
    VERDICT = auto()
    """What to do, in a sentence."""
    DOUBT = auto()
    """What a verdict rests on."""
    STEP = auto()
    """One of several things to do: begins with its number."""
    ENTRY = auto()
    """One of a list, which may have a depth."""
    TERM = auto()
    """A word with its meaning, which may have a depth."""


@dataclass(frozen=True)
class Title:
    """What the report is about, and the first of some texts that there is room for beside it."""

    left: str
    rights: tuple[str, ...]


@dataclass(frozen=True)
class Heading:
    """A line above what follows; `is_part` begins one of several parts of the report."""

    text: str
    is_part: bool = False


@dataclass(frozen=True)
class NoteBlock:
    """A text."""

    text: str
    role: Role = Role.PLAIN
    depth: int = 0


@dataclass(frozen=True)
class Facts:
    """Names and values; a value without a name belongs to the name above it."""

    rows: tuple[tuple[str, str], ...]  # Name and value
    group: str = ""  # Facts of one group stand in line
    margin: int = 0  # Columns that stay free at the right


@dataclass(frozen=True)
class TableCell:
    """One figure of a table."""

    text: str  # What is printed
    efficiency: float | None = None  # Colours the figure in a heat map, where there are colours


@dataclass(frozen=True)
class BarBlock:
    """A part of a whole as a bar beside its figures; left out where there is no room for it."""

    fraction: float
    # Ends of its interval, as parts of the same whole; None where there is none.
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class TableRow:
    """One line of a table."""

    label: str  # Stands at the left
    cells: tuple[TableCell | BarBlock, ...] = ()  # The figures; may be fewer than there are columns
    depth: int = 0  # Depth of the label in a tree
    instead: str = ""  # A text in place of all figures


@dataclass(frozen=True)
class TableBlock:
    """Labels with columns of figures; with depths, a tree."""

    # For each column the lines above it; all columns have the same number of lines. A name that is
    # too long is shortened, such that different ones stay so.
    heads: tuple[tuple[str, ...], ...]
    rows: tuple[TableRow, ...]  # The lines
    first: str = ""  # Head of the labels
    # What the table is, in place of `first`: above it where it is wider than the labels.
    title: str = ""
    group: str = ""  # Tables of one group stand in line
    # Whether to tell below which column is which, where names are too long and become numbers.
    is_key: bool = False
    # The first so many columns tell rows apart, as the labels do: where columns are continued
    # below, these are repeated too.
    keys: int = 0


@dataclass(frozen=True)
class Listing:
    """A table of things with long names: figures first, names last, never shortened."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[TableRow, ...]


@dataclass(frozen=True)
class CommandBlock:
    """A shell command to be pasted."""

    texts: tuple[str, ...]  # The command in one or several ways, of which one will do
    comment: str = ""  # What it is for, where several commands stand below each other
    depth: int = 0  # 1 where it belongs to the text above it


@dataclass(frozen=True)
class Code:
    """Lines that stay as they are, whatever the room: paths, commands."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class MarkdownBlock:
    """A text in Markdown: as it is, and with links as commands, for a terminal."""

    text: str
    shown: str


@dataclass(frozen=True)
class Strip:
    """Values over time, each from 0 to 1, of equal steps."""

    label: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class MarksBlock:
    """Instants and stretches, as parts of the time that is shown, each from 0 to 1."""

    label: str
    instants: tuple[float, ...] = ()
    stretches: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Strips:
    """Strips and marks below each other, over the same time."""

    rows: tuple[Strip | MarksBlock, ...]
    # What stands below their ends.
    begin: str
    end: str


@dataclass(frozen=True)
class EquationBlock:
    """An equation: its left side, its right side as text, both as LaTeX, and its meaning.

    Without a right side it is a symbol, one of a list.
    """

    name: str
    text: str
    latex: str
    meaning: str


@dataclass(frozen=True)
class FitBlock:
    """The same in several forms: a narrow screen shows the first one whose tables it has room for.

    What has room for anything shows the first; what has room for none the last, continued below.
    """

    forms: tuple[tuple[Section, ...], ...]


@dataclass(frozen=True)
class Brief:
    """The same whole, as a file shows it, and in brief, as a screen does; brief may be nothing."""

    whole: tuple[Section, ...]
    brief: tuple[Section, ...]


Block: TypeAlias = (
    Title
    | Heading
    | NoteBlock
    | Facts
    | TableBlock
    | Listing
    | CommandBlock
    | Code
    | MarkdownBlock
    | Strips
    | EquationBlock
    | FitBlock
    | Brief
)
Section: TypeAlias = tuple[Block, ...]
"""Blocks that stand together; an empty one shows nothing."""


_COLUMNS, _NAME = 80, 24
"""Of a screen, and those that a listing has for names beside its figures at least."""
SCREEN = 25
"""Lines of a screen at 80 columns; what is beyond is `folded`."""


def lines_of(lines: Iterable[str], indent: int = 0) -> int:
    """How many lines texts take at 80 columns, those that are continued behind an indent."""
    return sum(max(1, len(wrap(text, _COLUMNS - indent, break_on_hyphens=False))) for text in lines)


def first_notes(lines: Sequence[str], most: int = 4) -> list[str]:
    """The notes that so many lines have room for, the first in any case; what is left out last."""
    shown = [text for at, text in enumerate(lines) if not at or lines_of(lines[: at + 1]) <= most]
    left = len(lines) - len(shown)
    return [*shown, f"and {plural(left, 'remark')} more"] if left else shown


def fitted(make: Callable[[int], list[Section]], most: int, least: int = 1) -> list[Section]:
    """Sections with as many rows as a screen has room for, from `most` down to `least`."""
    tries = (make(rows) for rows in range(most, least, -1))
    return next((made for made in tries if height(made) <= SCREEN - 2), None) or make(least)


def height(sections: Iterable[Section]) -> int:
    """Lines of sections on a screen of 80 columns, in brief, with an empty one between them."""
    lines = [sum(map(_height, flat((section,), brief=True))) for section in _in_brief(sections)]
    return sum(lines) + sum(map(bool, lines)) - 1


def _in_brief(sections: Iterable[Section]) -> Iterator[Section]:
    for section in sections:
        if len(section) == 1 and isinstance(section[0], Brief):
            yield from _in_brief(section[0].brief)
        else:
            yield section


def _height(block: Block) -> int:
    match block:
        case NoteBlock(text, role):
            return lines_of([text], {Role.PLAIN: 0, Role.REMARK: 1}.get(role, 3))
        case Facts(rows):
            return lines_of((value for _, value in rows), 2 + max(len(name) for name, _ in rows))
        case TableBlock(heads, rows):
            return len(rows) + len(heads[0])
        case Listing(_, names, rows):
            cells = ([getattr(cell, "text", "") for cell in row.cells] for row in rows)
            widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
            labels = [row.label for row in rows]
            beside = sum(widths) + 2 * len(widths) + 1
            if beside + _NAME <= _COLUMNS:
                return 2 + lines_of(labels, beside)
            return 2 + len(rows) + lines_of(labels, 3)
        case Title(left, rights):
            return 1 + all(len(left) + len(right) + 2 > _COLUMNS for right in rights)
        case Code(lines):
            return len(lines)
        case Strips(rows):
            return len(rows) + 1
    return 1


def texts(cells: Iterable[str]) -> tuple[TableCell, ...]:
    """Cells without colours."""
    return tuple(TableCell(text) for text in cells)


def row(label: str, *cells: str | TableCell | BarBlock, depth: int = 0) -> TableRow:
    """A line of a table, of texts or of cells."""
    made = (TableCell(cell) if isinstance(cell, str) else cell for cell in cells)
    return TableRow(label, tuple(made), depth)


def heads(names: Iterable[str]) -> tuple[tuple[str], ...]:
    """Heads of one line."""
    return tuple((name,) for name in names)


def notes(lines: Iterable[str], role: Role = Role.PLAIN) -> Section:
    """A note for each text."""
    return tuple(NoteBlock(text, role) for text in lines)


def in_brief(lines: Sequence[str], most: int = 4, role: Role = Role.PLAIN) -> Section:
    """A note for each text; on a screen those that so many lines have room for."""
    whole, brief = notes(lines, role), notes(first_notes(lines, most), role)
    return whole if whole == brief else (Brief((whole,), (brief,)),)


def told_title(title: Title, lines: Sequence[str]) -> Section:
    """A title and what has to be known first: on a screen what there is room for."""
    return (title, *in_brief(lines))


def titled(title: str, lines: Sequence[str], role: Role = Role.BULLET) -> Section:
    """A section of notes with a heading; empty without notes."""
    return (Heading(title), *notes(lines, role)) if lines else ()


def folded(sections: tuple[Section, ...]) -> Brief:
    """What a screen shows only if everything is asked for; files always do."""
    return Brief(sections, ())


def narrowed(table: TableBlock, *forms: Sequence[str], remarks: Sequence[str] = ()) -> FitBlock:
    """A table; where a screen is too narrow for it, without some columns, which are named below."""
    made = []
    for left_out in ((), *forms):
        kept = [number for number, head in enumerate(table.heads) if head[-1] not in left_out]
        rows = tuple(
            replace(row, cells=tuple(cell for at, cell in enumerate(row.cells) if at in kept))
            for row in table.rows
        )
        told = [f"not shown (terminal too narrow): {', '.join(left_out)}"] if left_out else []
        form = replace(table, heads=tuple(table.heads[number] for number in kept), rows=rows)
        made.append(((form, *notes(remarks), *notes(told, Role.REMARK)),))
    return FitBlock(tuple(made))


Rows = TypeVar("Rows", TableBlock, Listing)


def first_rows(table: Rows, most: int) -> Section:
    """A table, of which a screen shows the first rows and how many there are more."""
    more = len(table.rows) - most
    if more <= 1:  # a line in its place would be as long
        return (table,)
    remark = NoteBlock(f"and {more} more (--all)", Role.REMARK)
    return (Brief(((table,),), ((replace(table, rows=table.rows[:most]), remark),)),)


def flat(sections: Iterable[Section], *, brief: bool = False) -> Iterator[Block]:
    """All blocks with the form of each that there is room for, whole or in brief."""
    for block in chain.from_iterable(sections):
        if isinstance(block, FitBlock):
            yield from flat(block.forms[0], brief=brief)
        elif isinstance(block, Brief):
            yield from flat(block.brief if brief else block.whole, brief=brief)
        else:
            yield block


def first_words(blocks: Iterable[Block]) -> str:
    """What blocks say first, as a `repr` does: doubts and the answer, or else the subject."""
    shown = list(blocks)
    for wanted in ((Role.WARNING, Role.VERDICT), (Role.PLAIN,)):
        notes = (block for block in shown if isinstance(block, NoteBlock))
        if said := [note.text for note in notes if note.role in wanted]:
            return "; ".join(said[:_SAID])
    for block in shown:
        match block:
            case Title(left):
                return left
            case Facts(rows):
                return ", ".join(f"{name} {text}" for name, text in rows[:_SAID])
    return "nothing"


_SAID = 2  # notes or facts
