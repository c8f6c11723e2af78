"""Text of lines: how wide it is, how it is wrapped and shortened; tables, trees, bars and strips.

Numbers, paths and commands are never broken or shortened: a word wider than the line stands whole
on a line of its own. A table with too many columns is continued below. Only the heads of columns
are shortened, where different ones stay different.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from popmodel.base.values import dataclass
from popmodel.reports.blocks import (
    BarBlock,
    Listing,
    MarksBlock,
    Strip,
    Strips,
    TableBlock,
    TableCell,
    TableRow,
)
from popmodel.reports.palette import Depth, heat

_WORD = r"""(?:\\.|[^\s'"\\]|'[^']*'|"[^"]*")+"""
_UNITS = "%|s|ms|us|ns|B|[KMGT]i?B|[kMG]?Hz|points?|cores?"
_HELD = re.compile(rf"(?<=\d) +(?=(?:{_UNITS})(?!\w)|x \d)|(?<=\d x) +(?=\d)")


def clean(text: str) -> str:
    """Text that cannot move the cursor, colour the screen or break a line.

    Names in traces come from programs and files of others.
    """
    return "".join(
        character if character.isprintable() else ("?" if character > "\x7f" else " ")
        for character in text
    )


def display_width(text: str) -> int:
    """Columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.combining(character)
        else 2
        if unicodedata.east_asian_width(character) in "WF"
        else 1
        for character in text
    )


def pad(text: str, width: int) -> str:
    """Text with blanks behind it, so that it takes `width` columns."""
    return text + " " * max(width - display_width(text), 0)


def pad_left(text: str, width: int) -> str:
    """Text with blanks before it, so that it takes `width` columns."""
    return " " * max(width - display_width(text), 0) + text


def paragraph(text: str, width: int, first: str = "", rest: str | None = None) -> list[str]:
    """Text wrapped between words; a word wider than the line stands whole on a line of its own."""
    following = " " * display_width(first) if rest is None else rest
    lines = [first]
    empty = True  # whether the last line has no word yet
    for word in _words(text):
        longer = lines[-1] + ("" if empty else " ") + word
        if not empty and display_width(longer) > width:
            lines.append(following + word)
        else:
            lines[-1] = longer
        empty = False
    return [line.rstrip(" ") for line in lines]


def _words(text: str) -> list[str]:
    """Words between which a line may be broken: a number stays with its unit, ``8 x 8`` whole."""
    held = _HELD.sub("\0", clean(text))
    return [word.replace("\0", " ") for word in held.split()]


def command_lines(command: str, width: int) -> list[str]:
    """A shell command in lines of at most `width` columns that can be pasted as they are.

    Lines that it has stay; words that fit nowhere stand on a line of their own.
    """
    parts = [
        shell_lines(re.findall(_WORD, given), width)
        for given in command.replace("\\\n", "\n").split("\n")
    ]
    return [
        line if part is parts[-1] or line.endswith("\\") else f"{line} \\"
        for part in parts
        for line in part
    ]


def shell_lines(words: Iterable[str], width: int) -> list[str]:
    """Words of a shell command in lines of at most `width` columns, to be pasted as they are.

    A word that fits nowhere stands whole on a line of its own.
    """
    lines: list[str] = []
    line = ""
    for word in words:
        longer = f"{line} {word}" if line else word
        # Two columns are left for the sign that the command goes on.
        if line and display_width(longer) > width - 2:
            lines.append(line)
            longer = f"  {word}"
        line = longer
    return [f"{each} \\" for each in lines] + [line]


def shorten(text: str, width: int) -> str:
    """Text of at most `width` columns: too long a text loses its middle.

    The end of a name (``..._16proc.prv``) tells traces apart as much as its beginning.
    """
    text = clean(text)
    if display_width(text) <= width:
        return text
    if width <= 2:
        return "." * width
    head = (width - 2) // 2
    return _fitting(text, head) + ".." + _fitting(text[::-1], width - 2 - head)[::-1]


def distinct(texts: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Texts shortened to widths such that those that differ still do.

    Where shortening makes two the same, what all have in common is cut from beginning and end
    first (`run_4proc`, `run_16proc` are `4`, `16`); if that does not help they are numbered.
    """
    whole = [clean(text) for text in texts]
    stems = _without_common_ends(whole)
    for candidates in (whole, stems):
        drawn = [shorten(text, width) for text, width in zip(candidates, widths, strict=True)]
        if len(set(drawn)) == len(set(whole)):
            return drawn
    return [f"#{number}" for number, _ in enumerate(whole, start=1)]


def _without_common_ends(texts: Sequence[str]) -> list[str]:
    """Texts without what all begin and end with; a number is left whole."""
    start = _common_beginning(texts)
    end = _common_beginning([text[start:][::-1] for text in texts])
    return [text[start : len(text) - end] for text in texts]


def _common_beginning(texts: Sequence[str]) -> int:
    """Length of what all begin with, such that something is left and no number is cut."""
    first, last = min(texts), max(texts)
    length = 0
    while length < len(first) - 1 and first[length] == last[length]:
        length += 1
    while length and first[length - 1].isdigit():
        length -= 1
    return length


def _fitting(text: str, width: int) -> str:
    """The longest beginning of a text that takes at most `width` columns."""
    end = width
    while display_width(text[:end]) > width:
        end -= 1
    return text[:end]


# Equations, in several lines where they are long.

INDENT = " "
HANGING = " " * 5
_OPERATORS = re.compile(r"(?= [+-] )|(?<!\*)(?=[*/](?!\*))")  # before which a line may be broken


def equation_lines(name: str, text: str, width: int) -> list[str]:
    """An equation in lines of at most `width` columns, broken before operators."""
    lines = [f"{INDENT}{name} ="]
    first, *others = _OPERATORS.split(f" {clean(text)}")
    lines[-1] += first
    for part in others:
        if len(lines[-1]) + len(part) <= width:
            lines[-1] += part
        else:
            lines.append(HANGING + part.lstrip(" "))
    return lines


GAP = 2
BAR_WIDTH = 20
SMALLEST_LABEL = 12
_LONGEST_HEAD = 10  # what heads are cut to before columns are continued below
_NARROW = 24  # columns below which the name of a listing stands on a line of its own
_HANGING = " " * 5


@dataclass(frozen=True)
class Style:
    """What the place that shows the text can do: columns of a line, and colours."""

    width: int = 80
    depth: Depth = Depth.NONE
    whole: bool = False  # false: what is `Brief` in brief


@dataclass(frozen=True)
class Least:
    """Least widths of the labels and of the columns, so that tables stand in line."""

    label: int = 0
    column: int = 0


def in_line(tables: Iterable[TableBlock]) -> Least:
    """Widths with which tables below each other stand in line."""
    known = list(tables)
    return Least(
        max((width for table in known for width in _label_widths(table)), default=0),
        max((_figures_width(table, at) for table in known for at in _places(table)), default=0),
    )


def fits(table: TableBlock, width: int, *, bars: bool = False) -> bool:
    """Whether all columns have room side by side, with whole names; bars are not needed."""
    if not bars:
        table = _without_bars(table)
    labels = [*_label_widths(table), display_width(table.first)]
    columns = (
        max(_figures_width(table, at), *map(display_width, table.heads[at]))
        for at in _places(table)
    )
    return max(labels) + sum(GAP + column for column in columns) <= width


def table_lines(table: TableBlock, style: Style, least: Least) -> list[str]:
    """A table with a label column and columns of figures."""
    if not fits(table, style.width, bars=True):
        table = _without_bars(table)
    above: list[str] = []
    if display_width(table.title) > max([least.label, *_label_widths(table)]):
        above = paragraph(table.title, style.width)
    elif table.title:
        table = replace(table, first=table.title)
    needed = max([least.label, *_label_widths(table), display_width(table.first)])
    # Rather narrow columns and short names than columns that are continued below.
    attempts = [
        _layout(table, needed, style.width, longest, column)
        for longest, column in (
            (style.width // 4, least.column),
            (style.width // 4, 0),
            (_LONGEST_HEAD, 0),
        )
    ]
    layout = next((one for one in attempts if len(one.parts) == 1), attempts[0])
    drawn: list[str] = []
    for part in layout.parts:
        drawn += ["", *_heads(table, layout, part)]
        for row in table.rows:
            drawn += _row(row, layout, part, style)
    return [*above, *drawn[1:], *_key(table, layout, style)]


def listing_lines(listing: Listing, style: Style) -> list[str]:
    """Figures first and names last, which are wrapped and never shortened."""
    widths = _listing_widths(listing)
    blank = " " * sum(width + GAP for width in widths)
    names = max(display_width(row.label) for row in listing.rows)
    beside = style.width - len(blank) >= min(names, _NARROW)
    figures = " " * GAP
    head = figures.join(pad_left(name, w) for name, w in zip(listing.heads, widths, strict=True))
    drawn = [*paragraph(listing.title, style.width), head]
    for row in listing.rows:
        cells = zip(row.cells, widths, strict=True)
        line = (" " * GAP).join(_figure(cell, width, style.depth) for cell, width in cells)
        if beside:
            deep = blank + " " * row.depth
            name = paragraph(row.label, style.width, deep, deep + " ")
            drawn += [line + " " * GAP + name[0][len(blank) :], *name[1:]]
        else:
            deep = " " * (GAP + row.depth)
            drawn += [line, *paragraph(row.label, style.width, deep, deep + " ")]
    return drawn


def listing_fits(listing: Listing, width: int) -> bool:
    """Whether the figures of a listing stand side by side; names may be below."""
    return sum(size + GAP for size in _listing_widths(listing)) - GAP <= width


def _listing_widths(listing: Listing) -> list[int]:
    rows = [[_text(cell) for cell in row.cells] for row in listing.rows]
    return [max(map(len, column)) for column in zip(listing.heads, *rows, strict=True)]


@dataclass(frozen=True)
class _TableLayout:
    """Widths of the labels and of the columns, and which columns stand side by side."""

    label: int
    widths: list[int]
    parts: list[list[int]]


def _layout(
    table: TableBlock, needed: int, width: int, longest_head: int, least: int
) -> _TableLayout:
    widths = []
    for at in _places(table):
        head = max((display_width(clean(line)) for line in table.heads[at]), default=0)
        widths.append(max(_figures_width(table, at), min(head, longest_head), least))
    label = min(needed, max(width - max(widths, default=0) - GAP, SMALLEST_LABEL))
    return _TableLayout(label, widths, _parts(widths, width - label, table.keys))


def _parts(widths: Sequence[int], room: int, keys: int) -> list[list[int]]:
    """Columns in groups that fit side by side, the first `keys` in each if there is room.

    A column that never fits has its own group.
    """
    repeated = list(range(keys))
    beside = sum(GAP + width for width in widths[:keys])
    if beside + GAP + max(widths[keys:], default=0) > room:
        repeated, beside = [], 0
    parts: list[list[int]] = [[]]
    taken = 0
    for index, width in enumerate(widths):
        if parts[-1] and taken + GAP + width > room:
            parts.append([*repeated])
            taken = beside
        parts[-1].append(index)
        taken += GAP + width
    return parts


def _heads(table: TableBlock, layout: _TableLayout, part: Sequence[int]) -> list[str]:
    height = max(map(len, table.heads), default=0)
    drawn = []
    for level in range(height):
        label = table.first if level == height - 1 else ""
        names = distinct([head[level] for head in table.heads], layout.widths)
        line = pad(shorten(label, layout.label), layout.label)
        line += "".join(" " * GAP + pad_left(names[at], layout.widths[at]) for at in part)
        if line.strip():
            drawn.append(line.rstrip(" "))
    return drawn


def _key(table: TableBlock, layout: _TableLayout, style: Style) -> list[str]:
    """Which column is which, where their names became numbers."""
    if not table.is_key:
        return []
    names = [head[-1] for head in table.heads]
    drawn = distinct(names, layout.widths)
    if drawn[0] != "#1" or "#1" in names[0]:
        return []
    return pair_lines(list(zip(drawn, names, strict=True)), style.width)


def pair_lines(rows: Sequence[tuple[str, str]], width: int, least: int = 0) -> list[str]:
    """Names and values below each other; long values are continued under their beginning."""
    label = max([least, *(display_width(name) for name, _ in rows)])
    return [
        line
        for name, value in rows
        for line in paragraph(value, width, pad(name, label) + " " * GAP)
    ]


def _row(row: TableRow, layout: _TableLayout, part: Sequence[int], style: Style) -> list[str]:
    """The lines of a row: one, or two where the label is too wide for its column."""
    label = " " * row.depth + clean(row.label)
    if row.instead:  # stands once, whatever is continued below
        first = part == layout.parts[0]
        return paragraph(row.instead, style.width, f"{label}  ", _HANGING) if first else []
    figures = "".join(
        " " * GAP + _figure(row.cells[at], layout.widths[at], style.depth)
        if at < len(row.cells)
        else " " * (GAP + layout.widths[at])
        for at in part
    )
    if display_width(label) <= layout.label:
        return [(pad(label, layout.label) + figures).rstrip(" ")]
    below = (" " * layout.label + figures).rstrip(" ")
    return [label, below] if below else [label]


def _figure(cell: TableCell | BarBlock, width: int, depth: Depth) -> str:
    text = pad_left(_text(cell), width)
    if isinstance(cell, BarBlock) or cell.efficiency is None:
        return text
    return heat(text, cell.efficiency, depth)


def _text(cell: TableCell | BarBlock) -> str:
    """A figure; a bar as signs. A part above zero that rounds to nothing shows nothing."""
    if isinstance(cell, TableCell):
        return cell.text
    low, value, high = (
        round(min(max(cell.fraction if part is None else part, 0.0), 1.0) * BAR_WIDTH)
        for part in (cell.low, cell.fraction, cell.high)
    )
    return pad("#" * low + "=" * (value - low) + "-" * (high - value), BAR_WIDTH)


def _without_bars(table: TableBlock) -> TableBlock:
    """The table without columns of bars: they repeat what the figures say."""
    kept = [
        at
        for at in _places(table)
        if not any(isinstance(row.cells[at], BarBlock) for row in table.rows if at < len(row.cells))
    ]
    rows = (
        replace(row, cells=tuple(row.cells[at] for at in kept if at < len(row.cells)))
        for row in table.rows
    )
    return replace(table, heads=tuple(table.heads[at] for at in kept), rows=tuple(rows))


def _places(table: TableBlock) -> range:
    return range(len(table.heads))


def _label_widths(table: TableBlock) -> list[int]:
    """Widths of the labels; a text in place of figures needs no column for its label."""
    return [
        row.depth + display_width(clean(row.label)) for row in table.rows if not row.instead
    ] or [0]


def _figures_width(table: TableBlock, at: int) -> int:
    return max(
        (display_width(_text(row.cells[at])) for row in table.rows if at < len(row.cells)),
        default=0,
    )


# Values over time as lines of signs: the more, the denser.

RAMP = " .:-=+*#%@"
"""From nothing to all, in ASCII: any terminal and any font has them."""
_STRIP_GAP = 2
_LEAST_STRIP, _LONGEST_STRIP = 16, 100


def strip_lines(strips: Strips, width: int) -> Iterator[str]:
    """Strips as wide as there is room for, and below them where they begin and end."""
    label = max(display_width(row.label) for row in strips.rows)
    columns = max(_LEAST_STRIP, min(width, _LONGEST_STRIP) - label - _STRIP_GAP)
    blank = " " * (label + _STRIP_GAP)
    for row in strips.rows:
        signs = _densities(row.values, columns) if isinstance(row, Strip) else _marked(row, columns)
        yield (pad(row.label, label) + " " * _STRIP_GAP + signs).rstrip(" ")
    between = columns - display_width(strips.begin) - display_width(strips.end)
    if between > 0:
        yield blank + strips.begin + " " * between + strips.end
    else:
        yield f"{blank}{strips.begin} to {strips.end}"


def _densities(values: Sequence[float], columns: int) -> str:
    """A sign for each column: the mean of the values in it."""
    signs = []
    count = len(values)
    for column in range(columns):
        first = column * count // columns
        some = values[first : max((column + 1) * count // columns, first + 1)]
        mean = sum(some) / len(some)
        # Something is never drawn as nothing, nor almost all as all.
        at = round(mean * (len(RAMP) - 1))
        signs.append(RAMP[max(at, 1) if mean > 0.005 else 0])
    return "".join(signs)


def _marked(marks: MarksBlock, columns: int) -> str:
    signs = [" "] * columns
    for first, last in marks.stretches:
        begin = min(int(first * columns), columns - 1)
        for column in range(begin, max(begin + 1, min(round(last * columns), columns))):
            signs[column] = "="
    for instant in marks.instants:
        signs[min(int(instant * columns), columns - 1)] = "|"
    return "".join(signs)
