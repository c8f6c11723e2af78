"""Values over time as lines of signs: the more, the denser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from popmodel.reports.blocks import MarksBlock, Strip, Strips
from popmodel.reports.renderers.text import display_width, pad

RAMP = " .:-=+*#%@"
"""From nothing to all, in ASCII: any terminal and any font has them."""
_GAP = 2
_LEAST, _MOST = 16, 100


def strip_lines(strips: Strips, width: int) -> Iterator[str]:
    """Strips as wide as there is room for, and below them where they begin and end."""
    label = max(display_width(row.label) for row in strips.rows)
    columns = max(_LEAST, min(width, _MOST) - label - _GAP)
    blank = " " * (label + _GAP)
    for row in strips.rows:
        signs = _densities(row.values, columns) if isinstance(row, Strip) else _marked(row, columns)
        yield (pad(row.label, label) + " " * _GAP + signs).rstrip(" ")
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
