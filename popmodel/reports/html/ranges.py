"""Values with their intervals on one axis, each in a cell of a table; the numbers stand beside."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import pairwise

from markupsafe import Markup

from popmodel.base.values import dataclass
from popmodel.reports.figures import ticks
from popmodel.reports.pictures import Mark
from popmodel.reports.renderers.marks import shape
from popmodel.reports.renderers.sheet import LINE, safe, text_width

_WIDTH = 220  # pixels of a cell
_EDGE = 14  # of it that stays free at both ends, for marks and halves of numbers
_HEIGHT = 26
_ROOM = 0.03  # of the range, at both ends
_CAP = 4
_APART = 10  # pixels between the numbers of an axis
_NARROW, _FAR = 5.0, 1e4  # ratios of the ends of an axis: below, above other steps are round


@dataclass(frozen=True)
class PageScale:
    """An axis that all cells of a column share."""

    # Its ends: values, or logarithms of them.
    low: float
    high: float
    logarithmic: bool  # Whether equal ratios have equal lengths
    marks: tuple[tuple[float, str], ...]  # Values on it, and how they are written
    exact: float | None = None  # A value at which a line is drawn

    def at(self, value: float) -> float:
        """Where a value lies, pixels; what is beyond the axis lies at its end."""
        place = math.log(value) if self.logarithmic else value
        part = (place - self.low) / (self.high - self.low)
        return _EDGE + min(max(part, 0.0), 1.0) * (_WIDTH - 2 * _EDGE)

    @property
    def head(self) -> Markup:
        """The numbers along the axis, for the head of the column."""
        texts = "".join(
            f'<text class="middle faint" x="{self.at(value):.1f}" y="{LINE - 5}">'
            f"{safe(text)}</text>"
            for value, text in self.marks
        )
        return _svg(texts, LINE)

    def drawn(
        self,
        value: float,
        low: float | None = None,
        high: float | None = None,
        mark: Mark = Mark.PLAIN,
        before: float | None = None,
    ) -> Markup:
        """A cell: the value with its interval; `before` is another value, drawn as a stroke."""
        middle = _HEIGHT / 2
        lines = [self._grid()]
        if low is not None and high is not None:
            first, last = self.at(low), self.at(high)
            lines.append(
                f'<path class="bar" d="M{first:.1f} {middle}H{last:.1f}'
                f'M{first:.1f} {middle - _CAP}v{2 * _CAP}M{last:.1f} {middle - _CAP}v{2 * _CAP}"/>'
            )
        if before is not None:
            lines.append(f'<path class="before" d="M{self.at(before):.1f} {middle - 8}v16"/>')
        lines.append(shape(mark, self.at(value), middle))
        return _svg("".join(lines), _HEIGHT)

    def bar(self, value: float, low: float | None, high: float | None) -> Markup:
        """A cell: a bar from the begin of the axis, with the interval of its end."""
        middle = _HEIGHT / 2
        lines = [
            self._grid(),
            f'<rect class="share" x="{_EDGE}" y="{middle - 6}" '
            f'width="{max(self.at(value) - _EDGE, 0):.1f}" height="12"/>',
        ]
        if low is not None and high is not None:
            first, last = self.at(low), self.at(high)
            lines.append(
                f'<path class="axis" d="M{first:.1f} {middle}H{last:.1f}'
                f'M{first:.1f} {middle - _CAP}v{2 * _CAP}M{last:.1f} {middle - _CAP}v{2 * _CAP}"/>'
            )
        return _svg("".join(lines), _HEIGHT)

    def _grid(self) -> str:
        lines = "".join(f"M{self.at(value):.1f} 0v{_HEIGHT}" for value, _ in self.marks)
        found = f'<path class="grid" d="{lines}"/>' if lines else ""
        if self.exact is not None:
            found += f'<path class="exact" d="M{self.at(self.exact):.1f} 0v{_HEIGHT}"/>'
        return found


def linear(
    values: Iterable[float | None],
    text: Callable[[float], str],
    exact: float | None = None,
    ends: tuple[float | None, float | None] = (None, None),
) -> PageScale:
    """An axis that has room for all values."""
    known = [one for one in (*values, exact, *ends) if one is not None]
    low, high = min(known), max(known)
    room = _ROOM * (high - low) or abs(high) * 0.05 or 1.0
    low = low - room if ends[0] is None else ends[0]
    high = high + room if ends[1] is None else ends[1]
    bare = PageScale(low, high, False, (), exact)
    marks = tuple((one, text(one)) for one in ticks(low, high))
    return PageScale(low, high, False, _apart(marks, bare), exact)


def ratios(values: Iterable[float | None]) -> PageScale:
    """A logarithmic axis of ratios around 1, at which a line is drawn."""
    known = [1.0, *(one for one in values if one is not None and one > 0)]
    low, high = math.log(min(known)), math.log(max(known))
    room = _ROOM * (high - low) or 0.05
    low, high = low - room, high + room
    bare = PageScale(low, high, True, (), 1.0)
    marks = tuple((one, f"{one:g}") for one in round_numbers(math.exp(low), math.exp(high)))
    return PageScale(low, high, True, _apart(marks, bare), 1.0)


def round_numbers(low: float, high: float) -> list[float]:
    """Round numbers for a logarithmic axis: powers of ten, two and five, or closer where few."""
    if high / low < _NARROW:
        return [one for one in ticks(low, high) if one > 0]
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if high / low < _FAR else (1,)
    found = [float(f"{step}e{power}") for power in powers for step in steps]
    return [one for one in found if low <= one <= high]


def _apart(marks: tuple[tuple[float, str], ...], scale: PageScale) -> tuple[tuple[float, str], ...]:
    """Every mark, every second, every third, ...: the most whose numbers stand apart."""
    for step in range(1, len(marks)):
        # The line of what is exact keeps its number.
        first = next((n for n, (one, _) in enumerate(marks) if one == scale.exact), 0) % step
        some = marks[first::step]
        if all(
            scale.at(two[0]) - scale.at(one[0])
            > (text_width(one[1]) + text_width(two[1])) / 2 + _APART
            for one, two in pairwise(some)
        ):
            return some
    return marks[:1]


def _svg(inside: str, height: int) -> Markup:
    """What is drawn in a cell: numbers, and text that was escaped."""
    return Markup(
        f'<svg class="drawing range" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" aria-hidden="true">{inside}</svg>'
    )
