"""Blocks as HTML: tables with their heads, lists, facts; all text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby

from markupsafe import Markup

from popmodel.reports.blocks import (
    BarBlock,
    Block,
    Brief,
    Checks,
    Code,
    CommandBlock,
    EquationBlock,
    Facts,
    FindingBlock,
    FitBlock,
    Further,
    Heading,
    Listing,
    MarkdownBlock,
    NoteBlock,
    Role,
    Section,
    Strips,
    SymbolBlock,
    TableBlock,
    TableCell,
    TableRow,
    Title,
)
from popmodel.reports.palette import level as heat_level
from popmodel.reports.renderers.elements import NOTHING, element, join, nested, scrolled
from popmodel.reports.renderers.html_strips import strips as html_strips

_LISTS = {
    Role.BULLET: "bullets",
    Role.WARNING: "bullets",
    Role.DOUBT: "bullets",
    Role.STEP: "plain",
    Role.ENTRY: "bullets",
    Role.TERM: "bullets",
    Role.NAME: "plain",
}
"""Notes that stand below each other as a list, and its class; a step begins with its number."""
_PARAGRAPHS = {Role.REMARK: "note", Role.REASON: "note", Role.VERDICT: "verdict"}
_DEEPEST = 6  # of headings


def html(sections: Iterable[Section], heading: int = 3, *, brief: bool = False) -> Markup:
    """Return blocks as HTML."""
    blocks = list(_flat(chain.from_iterable(sections), brief=brief))
    below = heading + any(map(_is_part, blocks))
    shown: list[Markup] = []
    for kind, group in groupby(blocks, _list_of):
        if kind:
            shown.append(_list(list(group), kind))
        else:
            shown += [_block(block, heading, below) for block in group]
    return join(shown)


def _flat(blocks: Iterable[Block], *, brief: bool) -> Iterator[Block]:
    """Blocks with the form of each that is shown: a page has room for the widest."""
    for block in blocks:
        if isinstance(block, FitBlock):
            yield from _flat(chain.from_iterable(block.forms[0]), brief=brief)
        elif isinstance(block, Brief):
            form = block.brief if brief else block.whole
            yield from _flat(chain.from_iterable(form), brief=brief)
        elif isinstance(block, Further):
            if not brief:
                yield from _flat(chain.from_iterable(block.sections), brief=brief)
        else:
            yield block


def _is_part(block: Block) -> bool:
    return isinstance(block, Title) or (isinstance(block, Heading) and block.is_part)


def _list_of(block: Block) -> str:
    """The kind of list that a block is an entry of; empty for none."""
    if isinstance(block, NoteBlock):
        return _LISTS.get(block.role, "")
    return "bullets" if isinstance(block, SymbolBlock | FindingBlock) else ""


def _list(blocks: Sequence[Block], kind: str) -> Markup:
    return nested([_entry(block) for block in blocks], kind)


def _entry(block: Block) -> tuple[int, Markup]:
    """Depth and text of an entry of a list."""
    match block:
        case NoteBlock(text, _, depth):
            return depth, element("span", text)
        case SymbolBlock(name, _, meaning):
            return 0, NOTHING.join([element("code", name), Markup(" "), element("span", meaning)])
        case FindingBlock(place, message, hint):
            told = [element("code", place), Markup(" "), element("span", message)]
            return 0, NOTHING.join(
                [*told, *([element("div", hint, class_="note")] if hint else [])]
            )
    raise TypeError(f"{type(block).__name__} is no entry of a list")


def _block(block: Block, heading: int, below: int) -> Markup:
    """One block that is no entry of a list."""
    match block:
        case TableBlock():
            return _table(block)
        case NoteBlock(text, role):
            if role is Role.CAUSE:
                text = f"\N{LEFTWARDS ARROW} {text}"
            return element("p", text, class_=_PARAGRAPHS.get(role))
        case Facts(rows):
            return _facts(rows)
        case Heading(text, is_part):
            return _heading(heading if is_part else below, text)
        case Title(left, rights):
            return _heading(heading, f"{left}, {rights[0]}")
        case Listing():
            return _listing(block)
        case CommandBlock(texts, comment):
            return _command(texts, comment)
        case Code(lines):
            return element("pre", "\n".join(lines), **_box("Text to copy"))
        case MarkdownBlock(_, shown):
            return element("pre", shown, **_box("Page"))
        case Strips():
            return html_strips(block)
        case Checks(rows):
            heads = ("check", "status", "result", "what to do")
            body = [[one.name, one.status, one.found, one.todo] for one in rows]
            return _checks(heads, body)
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


def _checks(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    above = element("tr", *(element("th", head, scope="col") for head in heads))
    body = [
        element("tr", element("th", name, scope="row"), *(element("td", one) for one in more))
        for name, *more in rows
    ]
    return _framed(above, body, "Checks")


def _table(table: TableBlock) -> Markup:
    """A table of figures; a head of several lines is one head."""
    heads = [" ".join(filter(None, head)).replace("- ", "") for head in table.heads]
    return _grid(table.title or table.first, heads, table.rows)


def _listing(listing: Listing) -> Markup:
    """Names stand at the left here: they may be long."""
    return _grid(listing.title, listing.heads, listing.rows)


def _grid(first: str, heads: Sequence[str], rows: Sequence[TableRow]) -> Markup:
    corner = element("th", first, scope="col") if first else element("td")
    above = element("tr", corner, *(_head(head) for head in heads))
    least = min((row.depth for row in rows), default=0)
    body = [_row(row, row.depth - least, len(heads)) for row in rows]
    return _framed(above, body, first or "Figures")


def _head(text: str) -> Markup:
    """The head of a column; a column of bars has none."""
    return element("th", text, scope="col", class_="number") if text else element("td")


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
        share = min(max(cell.fraction, 0.0), 1.0)
        bar = element("span", class_="bar", style=f"--part: {share:.3f}", aria_hidden="true")
        return element("td", bar)
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
