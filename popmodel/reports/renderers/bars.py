"""Horizontal bars as SVG: lines with a label, one column of bars for each of several runs."""

from __future__ import annotations

import math

from popmodel.base.values import dataclass
from popmodel.reports.pictures import Bars, PictureBar
from popmodel.reports.renderers.sheet import LINE, MARGIN, Draw, safe, text_width, words

_STEP = 22  # from one line to the next
_THICK = 14
_LENGTH = 180  # of the longest bar
_INDENT = 12
_GAP = 24
_LEAST_WIDTH = 520
_MOST_WIDTH = 1310  # what a page or a screen has room for


def arranged(bars: Bars) -> tuple[int, Draw]:
    """Width of a sheet with bars, and what draws them.

    Columns that do not fit beside each other continue below, with all labels again.
    """
    heads, lines, exact = bars.heads, bars.lines, bars.exact
    found = [bar for line in lines for bar in line.bars if bar is not None]
    ends = [max(bar.value, bar.high or 0.0) for bar in found]
    longest = bars.full or max([exact or 0.0, *ends]) or 1.0
    labels = [text_width(line.label) + _INDENT * line.depth for line in lines]
    left = MARGIN + max(labels, default=0.0) + 8
    texts = max((text_width(bar.text) for bar in found), default=0.0)
    room = max(_LENGTH + 8 + texts, *map(text_width, heads)) + _GAP
    abreast = max(1, int((_MOST_WIDTH - left - MARGIN + _GAP) / room))
    rows = math.ceil(len(heads) / abreast)
    abreast = math.ceil(len(heads) / rows)
    width = max(math.ceil(left + abreast * room - _GAP + MARGIN), _LEAST_WIDTH)
    axis = _Axis(_LENGTH / longest, _LENGTH if bars.full is not None else None, exact)

    def draw(y: float) -> tuple[list[str], float]:
        drawn: list[str] = []
        for first in range(0, len(heads), abreast):
            columns = range(first, min(first + abreast, len(heads)))
            starts = [left + room * place for place in range(len(columns))]
            y += LINE + 10
            pairs = list(zip(starts, columns, strict=True))
            drawn += [words(x, y, heads[one], "panel") for x, one in pairs if heads[one]]
            top = y + _STEP - _THICK
            for line in lines:
                y += _STEP
                if not line.bars:
                    y += LINE / 2
                kind = "" if line.bars else "panel"
                drawn.append(words(MARGIN + _INDENT * line.depth, y, line.label, kind))
                for x, one in pairs if line.bars else ():
                    drawn += _bar(line.bars[one], x, y, line.label, axis)
            if exact is not None:
                marks = (f"M{x + exact * axis.scale:.1f} {top:.1f}V{y + 4:.1f}" for x in starts)
                drawn.append(f'<path class="exact" d="{"".join(marks)}"/>')
            y += 8
        return drawn, y

    return width, draw


@dataclass(frozen=True)
class _Axis:
    """Pixels per unit of the values, the length of a full bar where its room is drawn, a mark."""

    scale: float
    room: float | None
    exact: float | None

    def at(self, value: float) -> float:
        """Where a value lies, within the room."""
        return min(value * self.scale, math.inf if self.room is None else self.room)

    @property
    def text(self) -> float:
        """Where texts begin at the earliest."""
        return max(self.room or 0.0, (self.exact or 0.0) * self.scale)


def _bar(bar: PictureBar | None, x: float, y: float, label: str, axis: _Axis) -> list[str]:
    """One bar with its interval and its text, or that there is none."""
    if bar is None:
        return [words(x, y, "-", "faint")]
    top, middle = y - _THICK + 2, y - _THICK / 2 + 2
    end = axis.at(bar.value)
    lines = [f"<g><title>{safe(f'{label}: {bar.text}')}</title>"]
    if axis.room is not None:
        lines.append(_box("room", x, top, axis.room))
    lines.append(_box("worst" if bar.is_worst else "share", x, top, end))
    if bar.low is not None and bar.high is not None:
        low, high = axis.at(bar.low), axis.at(bar.high)
        lines.append(
            f'<path class="axis" d="M{x + low:.1f} {middle:.1f}H{x + high:.1f}'
            f'M{x + low:.1f} {middle - 3:.1f}v6M{x + high:.1f} {middle - 3:.1f}v6"/>'
        )
        end = max(end, high)
    return [*lines, words(x + max(end, axis.text) + 6, y, bar.text), "</g>"]


def _box(kind: str, x: float, y: float, length: float) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{length:.1f}" height="{_THICK}"/>'
