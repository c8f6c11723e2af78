"""Equations on a terminal: in several lines where they are long."""

from __future__ import annotations

from collections.abc import Iterator

from popmodel.reports.renderers.text import clean

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
