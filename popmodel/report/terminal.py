"""Text for a terminal: tables, trees, bars, paragraphs.

Plain functions from data to lines. Nothing here writes, and nothing here knows what it shows. Text
is wrapped to `width` columns, and a table with too many columns is continued below. Numbers, paths
and commands are never broken or shortened: a word wider than the line stands whole on a line of its
own. Only the heads of columns are shortened, where different ones stay different.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from popmodel.report.colour import Depth, heat
from popmodel.values import dataclass

GAP = 2
_WORD = re.compile(r"""(?:\\.|[^\s'"\\]|'[^']*'|"[^"]*")+""")
_UNITS = "%|s|ms|us|ns|B|[KMGT]i?B|[kMG]?Hz|points?|cores?"
_HELD = re.compile(rf"(?<=\d) +(?=(?:{_UNITS})(?!\w)|x \d)|(?<=\d x) +(?=\d)")
SMALLEST_LABEL = 12


@dataclass(frozen=True)
class Style:
    """What the place that shows the text can do.

    Attributes
    ----------
    width : int
        Columns of a line.
    depth : Depth
        Colours.
    """

    width: int = 80
    depth: Depth = Depth.NONE


@dataclass(frozen=True)
class Cell:
    """One figure of a table.

    Attributes
    ----------
    text : str
        What is printed.
    efficiency : float or None
        Colours the figure in a heat map, where there are colours.
    """

    text: str
    efficiency: float | None = None


@dataclass(frozen=True)
class Row:
    """One line of a table: a label, indented by its depth in a tree, and its figures."""

    label: str
    cells: tuple[Cell, ...] = ()
    depth: int = 0


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


def table(
    heads: Sequence[Sequence[str]],
    rows: Iterable[Row],
    style: Style,
    *,
    first: str = "",
    indent: int = 1,
    align: str = "right",
    least_label: int = 0,
    least_column: int = 0,
) -> list[str]:
    """A table with a label column and columns of figures.

    Parameters
    ----------
    heads : sequence of sequence of str
        For each column the lines above it; all columns have the same number of lines. Names that
        are too long are shortened, such that different ones stay so.
    rows : iterable of Row
        The lines; a row may have fewer cells than there are columns.
    style : Style
        Width and colours.
    first : str
        Head of the label column, printed beside the last line of the heads.
    indent : int
        Columns per level of depth.
    align : str
        ``right`` or ``left``, for the figures.
    least_label, least_column : int
        Least widths, so that tables below each other stand in line; dropped for the columns if
        they would not fit side by side.

    Returns
    -------
    list of str
        Lines without trailing blanks. Columns that do not fit are continued below after an empty
        line, with the labels repeated.
    """
    lines = list(rows)
    labels = [" " * (indent * row.depth) + clean(row.label) for row in lines]
    needed = max([least_label, *(display_width(label) for label in [*labels, first])])
    # Rather narrow columns and short names than columns that are continued below.
    attempts = [
        _layout(heads, lines, needed, style.width, longest_head, least)
        for longest_head, least in (
            (style.width // 4, least_column),
            (style.width // 4, 0),
            (10, 0),
        )
    ]
    label_width, widths, blocks = next((one for one in attempts if len(one[2]) == 1), attempts[0])
    drawn: list[str] = []
    for block in blocks:
        if drawn:
            drawn.append("")
        drawn += _head_lines(heads, widths, block, label_width, first, align)
        for label, row in zip(labels, lines, strict=True):
            figures = "".join(
                " " * GAP
                + _figure(
                    row.cells[index] if index < len(row.cells) else Cell(""),
                    widths[index],
                    style.depth,
                    align,
                )
                for index in block
            )
            if display_width(label) <= label_width:
                drawn.append((_pad(label, label_width, "left") + figures).rstrip(" "))
                continue
            drawn.append(label)
            if figures.strip(" "):
                drawn.append((" " * label_width + figures).rstrip(" "))
    return drawn


def pairs(entries: Iterable[tuple[str, str]], style: Style) -> list[str]:
    """Names and values below each other; long values are continued under their beginning."""
    known = list(entries)
    label_width = max((display_width(name) for name, _ in known), default=0)
    drawn: list[str] = []
    for name, value in known:
        head = _pad(name, label_width, "left") + " " * GAP
        drawn += paragraph(value, style, first=head, rest=" " * (label_width + GAP))
    return drawn


def paragraph(text: str, style: Style, *, first: str = "", rest: str | None = None) -> list[str]:
    """Text wrapped between words; a word wider than the line stands whole on a line of its own.

    Parameters
    ----------
    text : str
        The text; line ends count as blanks.
    style : Style
        Its width is that of the lines.
    first, rest : str
        What the first and the other lines begin with; `rest` is as wide a blank by default.
    """
    following = " " * display_width(first) if rest is None else rest
    lines = [first]
    empty = True  # whether the last line has no word yet
    for word in _words(text):
        longer = lines[-1] + ("" if empty else " ") + word
        if not empty and display_width(longer) > style.width:
            lines.append(following + word)
        else:
            lines[-1] = longer
        empty = False
    return [line.rstrip(" ") for line in lines]


def _words(text: str) -> list[str]:
    """Words between which a line may be broken: a number stays with its unit, ``8 x 8`` whole."""
    held = _HELD.sub("\0", clean(text))
    return [word.replace("\0", " ") for word in held.split()]


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


def shell_words(command: str) -> list[str]:
    """The words of a shell command as they stand there; quotes keep one together."""
    return _WORD.findall(command)


def bar(fraction: float, width: int) -> str:
    """A bar for a part of a whole; any part above zero that rounds to nothing shows nothing."""
    return "#" * round(min(max(fraction, 0.0), 1.0) * width)


def percent(fraction: float, digits: int = 1) -> str:
    """A fraction in per cent without the sign: 0.8125 is ``81.2``."""
    return f"{100 * fraction:.{digits}f}"


def loses(efficiency: float) -> bool:
    """Whether an efficiency is below 100 % as it is printed."""
    return float(percent(efficiency)) < 100


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


def _pad(text: str, width: int, align: str) -> str:
    blank = " " * max(width - display_width(text), 0)
    return blank + text if align == "right" else text + blank


def _column_width(
    index: int, heads: Sequence[Sequence[str]], rows: Sequence[Row], longest_head: int
) -> int:
    """Width of a column: that of its figures, or of its head up to a limit if that is more."""
    figures = max(
        (display_width(row.cells[index].text) for row in rows if index < len(row.cells)), default=0
    )
    head = max((display_width(clean(line)) for line in heads[index]), default=0)
    return max(figures, min(head, longest_head))


def _layout(
    heads: Sequence[Sequence[str]],
    rows: Sequence[Row],
    needed: int,
    width: int,
    longest_head: int,
    least_column: int,
) -> tuple[int, list[int], list[list[int]]]:
    """Widths of the labels and of the columns, and which columns stand side by side."""
    widths = [
        max(_column_width(index, heads, rows, longest_head), least_column)
        for index in range(len(heads))
    ]
    label = min(needed, max(width - max(widths, default=0) - GAP, SMALLEST_LABEL))
    return label, widths, _blocks(widths, width - label)


def _blocks(widths: Sequence[int], room: int) -> list[list[int]]:
    """Columns in groups that fit side by side; a column that never fits has its own group."""
    blocks: list[list[int]] = [[]]
    taken = 0
    for index, width in enumerate(widths):
        if blocks[-1] and taken + GAP + width > room:
            blocks.append([])
            taken = 0
        blocks[-1].append(index)
        taken += GAP + width
    return blocks


def _head_lines(
    heads: Sequence[Sequence[str]],
    widths: Sequence[int],
    block: Sequence[int],
    label_width: int,
    first: str,
    align: str,
) -> list[str]:
    height = max((len(head) for head in heads), default=0)
    drawn = []
    for level in range(height):
        label = first if level == height - 1 else ""
        line = _pad(shorten(label, label_width), label_width, "left")
        names = distinct([head[level] for head in heads], widths)
        for index in block:
            name = names[index]
            line += " " * GAP + _pad(name, widths[index], align)
        if line.strip():
            drawn.append(line.rstrip(" "))
    return drawn


def _figure(cell: Cell, width: int, depth: Depth, align: str) -> str:
    text = _pad(cell.text, width, align)
    return text if cell.efficiency is None else heat(text, cell.efficiency, depth)
