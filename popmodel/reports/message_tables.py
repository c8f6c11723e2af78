"""Who talks to whom, how much, and in which patterns: facts, a matrix, sizes, calls, patterns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from popmodel.base.units import count, format_size, plural, time_if_any
from popmodel.base.values import dataclass
from popmodel.reports.blocks import (
    BarBlock,
    Brief,
    Code,
    Facts,
    Heading,
    Listing,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableCell,
    TableRow,
    Title,
    fitted,
    folded,
    heads,
    texts,
    titled,
    told_title,
)
from popmodel.reports.views import Document

SHOWN = 12
"""Patterns on a page."""
MOST = 32
"""Rows of characters; more processes share rows."""
LEGEND = "# at least half of the largest, + a tenth, : a hundredth, . less"
_SMALL = 6
"""Processes up to which a screen shows the matrix."""
_CALLS = 4
_WIDE = 16
"""Processes up to which a cell has two characters, and every column its number."""
_LEVELS = ((0.5, "#"), (0.1, "+"), (0.01, ":"), (0.0, "."))
_OFFSETS = 4
"""Offsets of partners that are named."""

Pattern = Mapping[str, Any]
Quantity = Literal["bytes", "messages"]


def communication_blocks(trace: str, document: Document) -> list[Section]:
    """Facts, the matrix, sizes, calls, patterns, notes."""
    known = facts(document)
    matrix, calls = _matrix(document), _calls(document)
    drawn = document["processes"] <= _SMALL and matrix
    title = Title(f"communication of {trace}", (_processes(document),))
    patterns = [_row(pattern_text(one), [one], _where(one)) for one in document["patterns"]]
    return fitted(
        lambda rows: [
            told_title(title, document["caveats"]),
            (Facts(tuple(known)),),
            matrix if drawn else _further(matrix),
            _further(_sizes(document)),
            _further(_call_table(calls)) if drawn else _call_table(calls, _CALLS),
            (Brief((_listing(patterns),), (_in_short(document, rows),)),),
            _further(titled("notes", document["notes"])),
        ],
        SHOWN,
    )


def facts(document: Document) -> list[tuple[str, str]]:
    """What there is in all, line by line: what it is, and how much."""
    found = [("messages", message_sum(document))]
    if document["messages"]:
        around = document["neighbours"]
        least, most = count(around["min"]), count(around["max"])
        span = least if least == most else f"{least} to {most}, mean {around['mean']:.3g}"
        found.append(("partners", f"{span} per process"))
    if (each := document["per_iteration"]) is not None:
        size = format_size(each["bytes"], digits=3)
        number = plural(each["iterations"], "iteration")
        found.append(("per iteration", f"{each['messages']:.4g} messages, {size} ({number})"))
    found.append(("grid", grid_text(document)))
    if (window := document["analysed"]) is not None:
        span = f"{window['begin']:.4g} s to {window['end']:.4g} s"
        found.append(("analysed", f"{span} ({window['why']})"))
    return found


def _processes(document: Document) -> str:
    nodes = document["nodes"]
    number = plural(document["processes"], "process", "processes")
    return number if nodes is None else f"{number} on {plural(nodes, 'node')}"


def message_sum(document: Document) -> str:
    """How many messages, how much, and what of it stays within nodes."""
    if not document["messages"]:
        return "none"
    text = f"{count(document['messages'])}, {format_size(document['bytes'])}"
    if (document["nodes"] or 1) > 1 and document["bytes"]:
        within = document["within_nodes"]["bytes"] / document["bytes"]
        text += f"; {100 * within:.0f} % of it within nodes"
    return text


def _further(section: Section) -> Section:
    return (folded((section,)),) if section else ()


def _matrix(document: Document) -> Section:
    if not document["messages"]:
        return ()
    return (
        Heading(f"{quantity_of(document)} from row to column"),
        Code(tuple(matrix_lines(document))),
        NoteBlock(LEGEND, Role.REMARK),
    )


def _sizes(document: Document) -> Section:
    total = max((size["messages"] for size in document["sizes"]), default=0)
    rows = tuple(
        TableRow(
            size_class(size["from"], size["below"]),
            (
                TableCell(count(size["messages"])),
                TableCell(format_size(size["bytes"], digits=3)),
                BarBlock(size["messages"] / total),
            ),
            depth=1,
        )
        for size in document["sizes"]
    )
    return (TableBlock(heads(("messages", "bytes")), rows, first="message sizes"),) if rows else ()


def size_class(low: int, below: int) -> str:
    """A class of sizes: ``4 KiB to 8 KiB``, the end left out."""
    if low == 0:
        return "0 B"
    if below == low + 1:
        return format_size(low)
    return f"{format_size(low)} to {format_size(below)}"


def _calls(document: Document) -> Sequence[TableRow]:
    """Calls that communicate, those with most time first."""
    used = [call for call in document["calls"] if call["calls"]]
    return [
        TableRow(
            call["name"],
            texts((count(call["calls"]), time_if_any(call["time"]), _size(call["bytes"]))),
            depth=1,
        )
        for call in sorted(used, key=lambda call: -(call["time"] or 0.0))
    ]


def _call_table(rows: Sequence[TableRow], most: int | None = None) -> Section:
    """A table of calls; of more than so many a screen shows the first ones."""
    if not rows:
        return ()

    def table(some: Sequence[TableRow]) -> TableBlock:
        return TableBlock(heads(("calls", "time", "bytes")), tuple(some), first="MPI calls")

    if most is None or len(rows) <= most:
        return (table(rows),)
    more = NoteBlock(f"and {plural(len(rows) - most, 'call')} with less time", Role.REMARK)
    return (Brief(((table(rows),),), ((table(rows[:most]), more),)),)


def _size(size: float | None) -> str:
    return format_size(size, digits=3) if size else "-"


def _in_short(document: Document, most: int) -> Section:
    """Patterns that are alike together, those with most bytes first."""
    ordered = alike(document)
    rows = [_row(text, same, "") for text, same in ordered[:most]]
    left = ordered[most:]
    size = sum(one["bytes"] for _, same in left for one in same)
    more = f"and {plural(len(left), 'pattern')} with {format_size(size, digits=3)}"
    return (*_listing(rows), *([NoteBlock(more, Role.REMARK)] if left else []))


def alike(document: Document) -> list[tuple[str, list[Pattern]]]:
    """Patterns in words, with all that are alike; those with most bytes first."""
    found: dict[str, list[Pattern]] = {}
    for one in document["patterns"]:
        found.setdefault(pattern_text(one), []).append(one)
    ordered = sorted(found.items(), key=lambda item: -sum(one["bytes"] for one in item[1]))
    return [item for item in ordered if item[1][0]["facts"].get("op") != "init"]


def _listing(rows: Sequence[TableRow]) -> Section:
    columns = ("executions", "messages", "bytes")
    return (Listing("patterns", columns, tuple(rows)),) if rows else ()


def _row(text: str, same: Sequence[Pattern], where: str) -> TableRow:
    sums = [sum(one[key] for one in same) for key in ("executions", "messages", "bytes")]
    figures = [count(sums[0]), count(sums[1]), _size(sums[2])]
    return TableRow(f"{text}{where}{inexact(same)}", texts(figures))


def inexact(same: Sequence[Pattern]) -> str:
    """Why patterns are not exact, in brackets; empty where all are."""
    reasons = dict.fromkeys(why for one in same for why in (one["why"] or "").split(", ") if why)
    return f" (not exact: {', '.join(reasons)})" if reasons else ""


def _where(pattern: Pattern) -> str:
    """Where a pattern stands: its calls, region and loops."""
    parts = [pattern["calls"], *pattern["inside"]]
    if also := pattern["facts"].get("also"):
        parts.append(f"or {', '.join(also)}")
    if pattern["loops"]:
        parts.append("loop of " + " of ".join(f"{times:.4g}" for times in pattern["loops"]))
    return f" [{'; '.join(parts)}]"


# The matrix.


class MatrixPair(NamedTuple):
    """Messages from one process to another, or between processes that are taken together."""

    # Ranks; the first ones of those together.
    sender: int
    receiver: int
    # How many, and how much.
    messages: int
    bytes: int
    within: bool  # Whether both are on one node


@dataclass(frozen=True)
class Binned:
    """Sums over square cells of neighbouring ranks."""

    each: int  # Ranks of a row and of a column
    rows: int  # Rows, and as many columns
    # By row and column: messages and bytes, where there are any messages.
    cells: Mapping[tuple[int, int], tuple[int, int]]


def pairs_of(document: Document) -> Iterator[MatrixPair]:
    """The pairs of a document."""
    columns = ("from", "to", "messages", "bytes", "within_node")
    for row in zip(*(document["pairs"][name] for name in columns), strict=True):
        yield MatrixPair(*row)


def binned(document: Document, most: int) -> Binned:
    """Take neighbouring ranks together, so that there are at most `most` rows."""
    processes, together = document["processes"], document["ranks_together"]
    each = -(-processes // most)
    each = -(-each // together) * together
    cells: dict[tuple[int, int], tuple[int, int]] = {}
    for pair in pairs_of(document):
        place = pair.sender // each, pair.receiver // each
        messages, size = cells.get(place, (0, 0))
        cells[place] = messages + pair.messages, size + pair.bytes
    return Binned(each, -(-processes // each), cells)


def ranks(row: int, each: int, processes: int) -> str:
    """Ranks of a row: ``8`` or ``8-11``."""
    first, last = row * each, min((row + 1) * each, processes) - 1
    return str(first) if first == last else f"{first}-{last}"


def matrix_lines(document: Document, most: int = MOST) -> list[str]:
    """The matrix as lines of characters, not more than 80 of them wide."""
    found = binned(document, most)
    index = index_of(quantity_of(document))
    names = [ranks(row, found.each, document["processes"]) for row in range(found.rows)]
    label = max(map(len, names))
    largest = max(values[index] for values in found.cells.values())
    wide = found.rows <= _WIDE and found.each == 1
    drawn = [f"{'':{label}} {_columns(names, wide=wide)}".rstrip()]
    for row, name in enumerate(names):
        values = (found.cells.get((row, column), (0, 0))[index] for column in range(found.rows))
        cells = (_LEVELS[level(value, largest)][1] if value else " " for value in values)
        text = "".join(f"{cell:>3}" for cell in cells) if wide else "".join(cells)
        drawn.append(f"{name:>{label}} {text}".rstrip())
    return drawn


def quantity_of(document: Document) -> Quantity:
    """What a matrix shows: bytes, or messages where all are empty."""
    return "bytes" if document["bytes"] else "messages"


def index_of(quantity: Quantity) -> int:
    """Where a quantity stands in a cell."""
    return ("messages", "bytes").index(quantity)


def _columns(names: Sequence[str], *, wide: bool) -> str:
    if wide:
        return "".join(f"{name:>3}" for name in names)
    text = ""
    for place in range(0, len(names), 8):
        text = text.ljust(place) + names[place].partition("-")[0]
    return text


def level(value: int, largest: int) -> int:
    """Which of the levels of the legend a value has."""
    return next(at for at, (least, _) in enumerate(_LEVELS) if value >= least * largest)


# Patterns in words.


def grid_text(document: Document) -> str:
    """The grids of the ranks, and what is uncertain about them."""
    note = document["grid_note"]
    found = [f"{_grid(grid)}, {_share(grid['share'])} of the bytes" for grid in document["grids"]]
    if not found:
        return f"none: {note}"
    return "; then ".join(found) + (f" ({note})" if note else "")


def _share(share: float) -> str:
    return f"{100 * share:.0f} %" if share > 0.995 else f"{100 * share:.2g} %"


def _grid(facts: Mapping[str, Any]) -> str:
    """A grid: ``4 x 4 periodic``, ``16 in a ring``."""
    if len(facts["dims"]) == 1:
        return f"{facts['dims'][0]} in a {'ring' if facts['periodic'][0] else 'line'}"
    return f"{' x '.join(map(str, facts['dims']))}{_around(facts['periodic'])}"


def _around(periodic: list[bool]) -> str:
    if not any(periodic):
        return ""
    if all(periodic):
        return " periodic"
    which = ", ".join(str(axis) for axis, wraps in enumerate(periodic) if wraps)
    return f" periodic along {which}"


def pattern_text(pattern: Mapping[str, Any]) -> str:
    """A pattern in a phrase."""
    text: str = _PHRASES[pattern["kind"]](pattern["facts"])
    return text


def _halo(facts: Mapping[str, Any]) -> str:
    sides: dict[str, list[float]] = {}
    for way in facts["directions"]:
        along = [str(axis) for axis, step in enumerate(way["move"]) if step]
        name = f"along {along[0]}" if len(along) == 1 else "to edges and corners"
        sides.setdefault(name, []).append(way["bytes"])
    sizes = [f"{_size_range(each)} {name}" for name, each in sorted(sides.items())]
    if len({way["bytes"] for way in facts["directions"]}) == 1:
        sizes = [f"{_size_range([facts['directions'][0]['bytes']])} each way"]
    return f"halo on {_grid(facts)}: {', '.join(sizes)}{_times(facts)}"


def _times(facts: Mapping[str, Any]) -> str:
    """How often every message is there in an execution, if not once."""
    return f", each {count(facts['times'][0])} times" if "times" in facts else ""


def _size_range(sizes: Sequence[float]) -> str:
    least, most = min(sizes), max(sizes)
    if least == most:
        return format_size(least, digits=3)
    return f"{format_size(least, digits=3)} to {format_size(most, digits=3)}"


def _shift(facts: Mapping[str, Any]) -> str:
    size = _size_range([way["bytes"] for way in facts["directions"]])
    along = f" along {facts['dim']}" if len(facts["dims"]) > 1 else ""
    return f"shift by {facts['by']:+d}{along} of {_grid(facts)}: {size}{_times(facts)}"


def _pipeline(facts: Mapping[str, Any]) -> str:
    ways = ", ".join(
        f"{way} along {axis}"
        for axis, way in zip(facts["crosses"], facts["direction"], strict=True)
    )
    size = _size_range([way["bytes"] for way in facts["directions"]])
    return f"pipeline on {_grid(facts)}, {ways}, {facts['blocks']:g} blocks: {size}"


def _butterfly(facts: Mapping[str, Any]) -> str:
    flips = ", ".join(map(str, facts["flips"]))
    return f"butterfly with rank XOR {flips}: {_size_range(facts['bytes'])}"


def _transpose(facts: Mapping[str, Any]) -> str:
    block = f" blocks of {count(facts['block'])}" if facts["block"] > 1 else " ranks"
    return (
        f"transpose of {facts['rows']} x {facts['columns']}{block}: {_size_range(facts['bytes'])}"
    )


def _ring(facts: Mapping[str, Any]) -> str:
    size = _size_range(facts["bytes"])
    if facts["offsets"] in ([0], (0,)):
        return f"messages to itself: {size}"
    offsets = ", ".join(f"{offset:+d}" for offset in facts["offsets"])
    return f"ring with offsets {offsets} modulo P: {size}"


def _pairwise(facts: Mapping[str, Any]) -> str:
    return f"all pairs: {_size_range(facts['bytes'])}"


def _root(facts: Mapping[str, Any]) -> str:
    way = "from all to" if facts["way"] == "from all" else "to all from"
    return f"{way} rank {facts['root']}: {_size_range(facts['bytes'])}"


def _collective(facts: Mapping[str, Any]) -> str:
    sizes = _size_range([facts["bytes_min"], facts["bytes_max"]])
    members = " or ".join(map(str, facts["members"]))
    if facts["comm"] == "all":
        who = "all"
    else:
        groups = f", colour {facts['comm']}" if facts["comm"] else ""
        who = f"groups of {members}{groups}"
    kind = "" if facts["blocking"] else " nonblocking"
    return f"{facts['op']}{kind} of {who}: {sizes}"


def _list(facts: Mapping[str, Any]) -> str:
    offsets = sorted(facts["by_offset"], key=lambda one: -one["messages"])
    named = ", ".join(f"{one['offset']:+d}" for one in offsets[:_OFFSETS])
    more = ", ..." if len(offsets) > _OFFSETS else ""
    return f"no pattern: offsets {named}{more} modulo P"


_PHRASES = {
    "halo": _halo,
    "shift": _shift,
    "pipeline": _pipeline,
    "butterfly": _butterfly,
    "transpose": _transpose,
    "ring": _ring,
    "pairwise": _pairwise,
    "root": _root,
    "collective": _collective,
    "list": _list,
}
