"""Text of lines: how wide it is, how it is wrapped and shortened.

Plain functions from text to lines. Numbers, paths and commands are never broken or shortened: a
word wider than the line stands whole on a line of its own.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

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
_EXPONENT = 10


def equation_lines(name: str, text: str, width: int) -> list[str]:
    """An equation in lines of at most `width` columns, broken before operators.

    A sum is rather broken than a product, and outside brackets rather than inside.
    """
    lines: list[str] = []
    rest = f"{INDENT}{name} = {clean(text)}"
    while len(rest) > width:
        start = len(HANGING) if lines else len(name) + len(INDENT) + 3
        cut = _break(rest, start, width)
        if cut is None:
            break
        lines.append(rest[:cut].rstrip(" "))
        rest = HANGING + rest[cut:].lstrip(" ")
    return [*lines, rest]


def _break(text: str, start: int, width: int) -> int | None:
    """Where to break a line: at the outermost operator beyond a third of it that fits."""
    found = [one for one in _operators(text) if one[2] > start]
    fitting = [one for one in found if one[2] <= width]
    late = [one for one in fitting if one[2] > width // 3] or fitting
    if late:
        return min(late, key=lambda one: (one[0], one[1], -one[2]))[2]
    return found[0][2] if found else None  # a name that is wider than the screen stays whole


def _operators(text: str) -> Iterator[tuple[int, int, int]]:
    """Depth of brackets, 0 for a sum and 1 for a product, and position of every operator.

    An exponent counts as deeper than any brackets: it is torn apart last.
    """
    opened: list[int] = []
    outside = 0  # brackets that were opened on a line before are closed below this depth
    for index, character in enumerate(text):
        if character == "(":
            opened.append(_EXPONENT if text[index - 2 : index] == "**" else 1)
        elif character == ")":
            outside -= 0 if opened else 1
            opened = opened[:-1]
        elif text[index : index + 3] in (" + ", " - "):
            yield outside + sum(opened), 0, index
        elif character == "/" or (
            character == "*" and "*" not in text[index - 1] + text[index + 1]
        ):
            yield outside + sum(opened), 1, index
