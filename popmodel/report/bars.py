"""Drawings of horizontal bars: lines with a label, one column of bars for each of several runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from popmodel.report.svg import LINE, MARGIN, safe, sheet, text_width, words
from popmodel.values import dataclass

_STEP = 22  # from one line to the next
_THICK = 14
_LENGTH = 180  # of the longest bar
_INDENT = 12
_GAP = 24
_LEAST_WIDTH = 520


@dataclass(frozen=True)
class Bar:
    """A value and how it is written.

    Attributes
    ----------
    value : float
        Length of the bar; at least 0.
    low, high : float or None
        Ends of its interval; None where there is none.
    text : str
        Stands beside it.
    is_worst : bool
        Whether it stands out.
    """

    value: float
    text: str
    low: float | None = None
    high: float | None = None
    is_worst: bool = False


@dataclass(frozen=True)
class Line:
    """A label, indented by its depth, and a bar for each column; None where there is no value.

    A label without bars is a heading.
    """

    label: str
    bars: tuple[Bar | None, ...] = ()
    depth: int = 0


def bars(
    title: str,
    facts: Sequence[str],
    heads: Sequence[str],
    lines: Sequence[Line],
    remarks: Sequence[str],
    stamp: Mapping[str, Any],
    *,
    full: float | None = None,
) -> str:
    """Draw lines of bars as one self-contained SVG.

    Parameters
    ----------
    title, facts, remarks, stamp
        As of `popmodel.report.plots.sheet`.
    heads : sequence of str
        What each column is.
    lines : sequence of Line
        From top to bottom.
    full : float, optional
        The value of a bar of full length, whose room is drawn; the largest value by default.
    """
    ends = [bar.high or bar.value for line in lines for bar in line.bars if bar is not None]
    longest = full or max([*ends, 0.0]) or 1.0
    left = MARGIN + max(text_width(line.label) + _INDENT * line.depth for line in lines) + 8
    texts = [
        max(
            (text_width(bar.text) for line in lines if line.bars and (bar := line.bars[column])),
            default=0.0,
        )
        for column in range(len(heads))
    ]
    rooms = [
        max(_LENGTH + 8 + text, text_width(head)) for head, text in zip(heads, texts, strict=True)
    ]
    starts = [left + sum(rooms[:column]) + _GAP * column for column in range(len(heads))]
    width = max(math.ceil(starts[-1] + rooms[-1] + MARGIN), _LEAST_WIDTH)

    def draw(y: float) -> tuple[list[str], float]:
        y += LINE + 10
        drawn = [words(x, y, head, "panel") for x, head in zip(starts, heads, strict=True) if head]
        for line in lines:
            y += _STEP
            if not line.bars:
                y += LINE / 2
            kind = "" if line.bars else "panel"
            drawn.append(words(MARGIN + _INDENT * line.depth, y, line.label, kind))
            for x, bar in zip(starts, line.bars, strict=bool(line.bars)):
                if bar is None:
                    drawn.append(words(x, y, "-", "faint"))
                else:
                    room = None if full is None else _LENGTH
                    drawn += _bar(bar, x, y, _LENGTH / longest, room, line.label)
        return drawn, y + 8

    return sheet(title, facts, width, draw, remarks, stamp)


def _bar(bar: Bar, x: float, y: float, scale: float, room: float | None, label: str) -> list[str]:
    """One bar with its interval and its text."""
    top, middle = y - _THICK + 2, y - _THICK / 2 + 2
    length = min(bar.value * scale, room or math.inf)
    lines = [f"<g><title>{safe(f'{label}: {bar.text}')}</title>"]
    if room is not None:
        lines.append(_box("room", x, top, room))
    lines.append(_box("worst" if bar.is_worst else "share", x, top, length))
    end = max(length, room or 0.0)
    if bar.low is not None and bar.high is not None:
        low, high = (min(value * scale, room or math.inf) for value in (bar.low, bar.high))
        lines.append(
            f'<path class="axis" d="M{x + low:.1f} {middle:.1f}H{x + high:.1f}'
            f'M{x + low:.1f} {middle - 3:.1f}v6M{x + high:.1f} {middle - 3:.1f}v6"/>'
        )
        end = max(end, high)
    return [*lines, words(x + end + 6, y, bar.text), "</g>"]


def _box(kind: str, x: float, y: float, length: float) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{length:.1f}" height="{_THICK}"/>'
