"""Values over time as HTML: a drawing, and the same as a table."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from popmodel.reports.blocks import MarksBlock, Strip, Strips
from popmodel.reports.renderers.elements import element, join, scrolled

_HIGH = 20  # units of the drawing; its width is 1,000
_WIDE = 1000
_PARTS = 20  # of the time, that the table has a mean of


def strips(shown: Strips) -> Markup:
    """Strips below each other over the same time, and below them their table."""
    drawn = [_drawn(row) for row in shown.rows]
    ends = element("span", shown.begin), element("span", shown.end)
    drawn.append(element("div", *ends, class_="ends"))
    values = [row for row in shown.rows if isinstance(row, Strip)]
    marks = [row for row in shown.rows if isinstance(row, MarksBlock)]
    below = [_table(values, shown)] if values else []
    below += [element("p", f"{row.label}: {_told(row)}") for row in marks]
    summary = element("summary", "as a table")
    return join([element("div", *drawn, class_="strips"), element("details", summary, *below)])


def _drawn(row: Strip | MarksBlock) -> Markup:
    label = element("span", row.label)
    paths = [_area(row.values)] if isinstance(row, Strip) else _marks(row)
    drawing = element(
        "svg",
        *paths,
        viewBox=f"0 0 {_WIDE} {_HIGH}",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"{row.label} over time, also below as a table",
    )
    return element("div", label, drawing, class_="strip")


def _area(values: Sequence[float]) -> Markup:
    """All values as steps above the lower edge."""
    width = _WIDE / len(values)
    steps = "".join(
        f"V{_HIGH * (1 - value):.1f}H{width * (at + 1):.1f}" for at, value in enumerate(values)
    )
    return element("path", d=f"M0 {_HIGH}{steps}V{_HIGH}Z")


def _marks(marks: MarksBlock) -> list[Markup]:
    high = f"h{{:.1f}}v{_HIGH}h-{{:.1f}}Z"
    stretches = [
        f"M{_WIDE * begin:.1f} 0" + high.format(*[_WIDE * (end - begin)] * 2)
        for begin, end in marks.stretches
    ]
    instants = [f"M{_WIDE * at:.1f} 0V{_HIGH}" for at in marks.instants]
    kinds = (("stretches", stretches), ("instants", instants))
    return [element("path", d="".join(lines), class_=kind) for kind, lines in kinds if lines]


def _table(rows: Sequence[Strip], shown: Strips) -> Markup:
    """Means over equal parts of the time."""
    title = f"Means in %, over equal parts of {shown.begin} to {shown.end}"
    heads = [element("th", "part", scope="col")]
    heads += [element("th", row.label, scope="col", class_="number") for row in rows]
    lines = []
    for part in range(_PARTS):
        means = [_mean(row.values, part) for row in rows]
        name = f"{100 * part // _PARTS} to {100 * (part + 1) // _PARTS} %"
        cells = (element("td", f"{100 * mean:.1f}", class_="number") for mean in means)
        lines.append(element("tr", element("th", name, scope="row"), *cells))
    table = element(
        "table",
        element("caption", title),
        element("thead", element("tr", *heads)),
        element("tbody", join(lines)),
    )
    return scrolled(table, title)


def _mean(values: Sequence[float], part: int) -> float:
    first = part * len(values) // _PARTS
    some = values[first : max((part + 1) * len(values) // _PARTS, first + 1)]
    return sum(some) / len(some)


def _told(marks: MarksBlock) -> str:
    """Where marks are, in per cent of the time."""
    told = [f"{100 * begin:.1f} to {100 * end:.1f} %" for begin, end in marks.stretches]
    told += [f"{100 * at:.1f} %" for at in marks.instants]
    return ", ".join(told) or "none"
