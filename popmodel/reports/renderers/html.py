"""Blocks as HTML: tables with their heads, lists, facts; all text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from markupsafe import Markup, escape

from popmodel.reports.blocks import (
    BarBlock,
    Block,
    Code,
    CommandBlock,
    EquationBlock,
    Facts,
    Heading,
    Listing,
    MarkdownBlock,
    MarksBlock,
    NoteBlock,
    Role,
    Section,
    Strip,
    Strips,
    TableBlock,
    TableCell,
    TableRow,
    Title,
    flat,
)
from popmodel.reports.palette import level as heat_level
from popmodel.reports.renderers.text import clean

_LISTS = {
    Role.BULLET: "bullets",
    Role.WARNING: "bullets",
    Role.DOUBT: "bullets",
    Role.STEP: "plain",
    Role.ENTRY: "bullets",
    Role.TERM: "bullets",
}
"""Notes that stand below each other as a list, and its class; a step begins with its number."""
_PARAGRAPHS = {Role.REMARK: "note", Role.HANGING: "note", Role.VERDICT: "verdict"}
_DEEPEST = 6  # of headings


def html(sections: Iterable[Section], heading: int = 3, *, brief: bool = False) -> Markup:
    """Return blocks as HTML."""
    blocks = list(flat(sections, brief=brief))
    below = heading + any(map(_is_part, blocks))
    shown: list[Markup] = []
    for kind, group in groupby(blocks, _list_of):
        if kind:
            shown.append(nested([_entry(block) for block in group], kind))
        else:
            shown += [_block(block, heading, below) for block in group]
    return join(shown)


def _is_part(block: Block) -> bool:
    return isinstance(block, Title) or (isinstance(block, Heading) and block.is_part)


def _list_of(block: Block) -> str:
    """The kind of list that a block is an entry of; empty for none."""
    if isinstance(block, NoteBlock):
        return _LISTS.get(block.role, "")
    return "bullets" if isinstance(block, EquationBlock) and not block.text else ""


def _entry(block: Block) -> tuple[int, Markup]:
    """Depth and text of an entry of a list."""
    match block:
        case NoteBlock(text, _, depth):
            return depth, element("span", text)
        case EquationBlock(name, _, _, meaning):
            return 0, NOTHING.join([element("code", name), Markup(" "), element("span", meaning)])
    raise TypeError(f"{type(block).__name__} is no entry of a list")


def _block(block: Block, heading: int, below: int) -> Markup:
    """One block that is no entry of a list."""
    match block:
        case TableBlock():
            return _table(block)
        case NoteBlock(text, role):
            return element("p", text, class_=_PARAGRAPHS.get(role))
        case Facts(rows):
            return _facts(rows)
        case Heading(text, is_part):
            return _heading(heading if is_part else below, text)
        case Title(left, rights):
            return _heading(heading, f"{left}, {rights[0]}")
        case Listing():
            return _grid(block.title, block.heads, block.rows)
        case CommandBlock(texts, comment):
            return _command(texts, comment)
        case Code(lines):
            return element("pre", "\n".join(lines), **_box("Text to copy"))
        case MarkdownBlock(_, shown):
            return element("pre", shown, **_box("Page"))
        case Strips():
            return _strips(block)
        case EquationBlock(name, text, _, meaning):
            equation = element("pre", f"{name} = {text}", **_box(f"Equation of {name}"))
            return NOTHING.join([equation, element("p", meaning)])
    raise TypeError(f"{type(block).__name__} is no block")


def _heading(level: int, text: str) -> Markup:
    return element(f"h{min(level, _DEEPEST)}", text)


def _box(label: str) -> dict[str, str | int]:
    """Attributes of what scrolls where it is wide."""
    return {"tabindex": 0, "role": "group", "aria_label": label}


def _facts(rows: Sequence[tuple[str, str]]) -> Markup:
    """Names and values; a value without a name belongs to the name above it."""
    items = []
    for name, value in rows:
        items += [element("dt", name)] if name else []
        items.append(element("dd", value))
    return element("dl", *items, class_="facts")


def _table(table: TableBlock) -> Markup:
    """A table of figures; a head of several lines is one head."""
    heads = [" ".join(filter(None, head)).replace("- ", "") for head in table.heads]
    return _grid(table.title or table.first, heads, table.rows)


def _grid(first: str, heads: Sequence[str], rows: Sequence[TableRow]) -> Markup:
    corner = element("th", first, scope="col") if first else element("td")
    # A column of bars has no head.
    columns = (
        element("th", head, scope="col", class_="number") if head else element("td")
        for head in heads
    )
    above = element("tr", corner, *columns)
    least = min((row.depth for row in rows), default=0)
    body = [_row(row, row.depth - least, len(heads)) for row in rows]
    return _framed(above, body, first or "Figures")


def _framed(above: Markup, rows: Sequence[Markup], label: str) -> Markup:
    head = element("thead", above)
    return scrolled(element("table", head, element("tbody", join(rows))), label)


def _row(row: TableRow, depth: int, columns: int) -> Markup:
    style = f"--depth: {depth}" if depth else None
    label = element("th", row.label, scope="row", class_="deep" if depth else None, style=style)
    if row.instead:
        return element("tr", label, element("td", row.instead, colspan=columns))
    return element("tr", label, *map(_cell, row.cells))


def _cell(cell: TableCell | BarBlock) -> Markup:
    if isinstance(cell, BarBlock):
        style = f"--part: {min(max(cell.fraction, 0.0), 1.0):.3f}"
        if cell.low is not None and cell.high is not None:
            span = min(cell.high - cell.low, 0.999)
            style += f"; --span: {span:.3f}; --at: {cell.low / (1 - span):.3f}"
        return element("td", element("span", class_="bar", style=style, aria_hidden="true"))
    heat = "" if cell.efficiency is None else f" heat-{heat_level(cell.efficiency)}"
    return element("td", cell.text.strip(" "), class_=f"number{heat}")


def _command(texts: Sequence[str], comment: str) -> Markup:
    """A command in one way or several, of which one will do."""
    shown: list[Markup] = []
    for number, text in enumerate(texts):
        if number:
            shown.append(element("p", "or"))
        shown.append(
            element(
                "pre",
                f"# {comment}\n{text}" if comment else text,
                class_="command",
                **_box("Command"),
            )
        )
    return join(shown)


# Values over time: a drawing, and the same as a table.

_HEIGHT = 20  # units of the drawing; its width is 1,000
_WIDTH = 1000
_STRIP_PARTS = 20  # of the time, that the table has a mean of


def _strips(shown: Strips) -> Markup:
    """Strips below each other over the same time, and below them their table."""
    drawn = [_drawn(row) for row in shown.rows]
    ends = element("span", shown.begin), element("span", shown.end)
    drawn.append(element("div", *ends, class_="ends"))
    values = [row for row in shown.rows if isinstance(row, Strip)]
    marks = [row for row in shown.rows if isinstance(row, MarksBlock)]
    below = [_strip_table(values, shown)] if values else []
    below += [element("p", f"{row.label}: {_told(row)}") for row in marks]
    summary = element("summary", "as a table")
    return join([element("div", *drawn, class_="strips"), element("details", summary, *below)])


def _drawn(row: Strip | MarksBlock) -> Markup:
    label = element("span", row.label)
    paths = [_area(row.values)] if isinstance(row, Strip) else _marks(row)
    drawing = element(
        "svg",
        *paths,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"{row.label} over time, also below as a table",
    )
    return element("div", label, drawing, class_="strip")


def _area(values: Sequence[float]) -> Markup:
    """All values as steps above the lower edge."""
    width = _WIDTH / len(values)
    steps = "".join(
        f"V{_HEIGHT * (1 - value):.1f}H{width * (at + 1):.1f}" for at, value in enumerate(values)
    )
    return element("path", d=f"M0 {_HEIGHT}{steps}V{_HEIGHT}Z")


def _marks(marks: MarksBlock) -> list[Markup]:
    high = f"h{{:.1f}}v{_HEIGHT}h-{{:.1f}}Z"
    stretches = [
        f"M{_WIDTH * begin:.1f} 0" + high.format(*[_WIDTH * (end - begin)] * 2)
        for begin, end in marks.stretches
    ]
    instants = [f"M{_WIDTH * at:.1f} 0V{_HEIGHT}" for at in marks.instants]
    kinds = (("stretches", stretches), ("instants", instants))
    return [element("path", d="".join(lines), class_=kind) for kind, lines in kinds if lines]


def _strip_table(rows: Sequence[Strip], shown: Strips) -> Markup:
    """Means over equal parts of the time."""
    title = f"Means in %, over equal parts of {shown.begin} to {shown.end}"
    heads = [element("th", "part", scope="col")]
    heads += [element("th", row.label, scope="col", class_="number") for row in rows]
    lines = []
    for part in range(_STRIP_PARTS):
        means = [_mean(row.values, part) for row in rows]
        name = f"{100 * part // _STRIP_PARTS} to {100 * (part + 1) // _STRIP_PARTS} %"
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
    first = part * len(values) // _STRIP_PARTS
    some = values[first : max((part + 1) * len(values) // _STRIP_PARTS, first + 1)]
    return sum(some) / len(some)


def _told(marks: MarksBlock) -> str:
    """Where marks are, in per cent of the time."""
    told = [f"{100 * begin:.1f} to {100 * end:.1f} %" for begin, end in marks.stretches]
    told += [f"{100 * at:.1f} %" for at in marks.instants]
    return ", ".join(told) or "none"


# Elements, in which all text is escaped.

NOTHING = Markup()


def element(name: str, *contents: str, **given: str | int | None) -> Markup:
    """An element with its contents."""
    inside = NOTHING.join(map(_text, contents))
    return Markup("<{}{}>{}</{}>").format(Markup(name), _attributes(given), inside, Markup(name))


def _attributes(given: Mapping[str, str | int | None]) -> Markup:
    """Attributes of an element, each behind a blank."""
    return NOTHING.join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _text(str(value)))
        for key, value in given.items()
        if value is not None
    )


def _text(content: str) -> Markup:
    """Text escaped and without control characters; markup as it is."""
    if isinstance(content, Markup):
        return content
    known = content if content.isprintable() else "\n".join(map(clean, content.split("\n")))
    return escape(known)


def join(parts: Iterable[Markup]) -> Markup:
    """Elements behind each other, each on a line of its own."""
    return Markup("\n").join(parts)


def scrolled(content: Markup, label: str) -> Markup:
    """Something wide in a box that scrolls, by keyboard too; no landmark, as there are many."""
    return element("div", content, class_="wide", tabindex=0, role="group", aria_label=label)


def nested(entries: Sequence[tuple[int, Markup]], kind: str | None = None) -> Markup:
    """A list of entries with their depths: what is deeper belongs to what stands above it."""
    items: list[Markup] = []
    at = 0
    while at < len(entries):
        depth, content = entries[at]
        end = at + 1
        while end < len(entries) and entries[end][0] > depth:
            end += 1
        below = [nested(entries[at + 1 : end])] if end > at + 1 else []
        items.append(element("li", content, *below))
        at = end
    return element("ul", *items, class_=kind)
