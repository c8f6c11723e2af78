"""Predictions beside measurements."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from popmodel.efficiency.hierarchy import load_families
from popmodel.report.export import Record, markdown_table
from popmodel.report.joint import joint_caveats
from popmodel.report.names import run_names
from popmodel.report.render import Document, Views
from popmodel.report.terminal import (
    Cell,
    Row,
    Style,
    display_width,
    loses,
    pairs,
    paragraph,
    percent,
    table,
)
from popmodel.report.warnings import caveat_lines
from popmodel.units import plural
from popmodel.values import dataclass

Split = Mapping[str, Any]
Quantity = Mapping[str, Any]

_TIME_HEADS = ("runs", "measured, s", "predicted, s", "90 %", "error", "inside")
_OUTSIDE = " !"
_NOT_MEASURED = " (preset, not measured)"


@dataclass(frozen=True)
class _Table:
    """One table, for any format: head of the labels, heads of columns in two lines, rows.

    A row has a label, its depth in the tree of metrics, and cells.
    """

    first: str
    heads: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, int, tuple[str, ...]], ...]


def views(families: Sequence[str]) -> Views:
    """How a validation is shown: the runtime, and the metrics of some families."""
    return Views(
        lambda document, style: _screen(document, style, families),
        _records,
        lambda document: _markdown(document, families),
    )


def _screen(document: Document, style: Style, families: Sequence[str]) -> list[str]:
    lines = caveat_lines(_caveats(document), style)
    for sentence in document["verdict"]:
        lines += paragraph(sentence, style)
    lines += ["", *pairs(_subject(document), style), ""]
    lines += _drawn(_runtimes(document["splits"]), style)
    for family in families:
        for some in _side_by_side(document["splits"], family, style):
            lines += ["", *_drawn(_metrics(family, some), style)]
    for text in _notes(document):
        lines += ["", *paragraph(text, style)]
    return [*lines, "", *pairs(_legend(document, families), style)]


def _markdown(document: Document, families: Sequence[str]) -> list[str]:
    lines = [f"## {document['application']} on {document['machine']}"]
    for text in (*_caveats(document), *document["verdict"]):
        lines += ["", text]
    found = [_runtimes(document["splits"])]
    found += [
        _metrics(family, some)
        for family in families
        if (some := _having(document["splits"], family))
    ]
    for one in found:
        heads = [" ".join(head).strip() for head in one.heads]
        body = [["  " * depth + label, *cells] for label, depth, cells in one.rows]
        lines += ["", *markdown_table([one.first, *heads], body)]
    legend = [f"{name}: {meaning}" for name, meaning in _legend(document, families)]
    return lines + [line for text in (*_notes(document), *legend) for line in ("", text)]


def _records(document: Document) -> list[Record]:
    return [
        {key: value for key, value in row.items() if key != "parameters"}
        | {f"parameter_{name}": value for name, value in row["parameters"].items()}
        for row in document["rows"]
    ]


def _caveats(document: Document) -> list[str]:
    runs = document["measured"]
    return joint_caveats(runs, run_names([run["source"] for run in runs])) if runs else []


def _subject(document: Document) -> list[tuple[str, str]]:
    splits = document["splits"]
    varied = _varied(splits)
    common = [
        f"{name}={value:g}" for name, value in splits[0]["parameters"].items() if name not in varied
    ]
    return [
        ("application", " ".join([document["application"], *common])),
        ("machine", f"{document['machine']}{_NOT_MEASURED if document['preset'] else ''}"),
    ]


def _varied(splits: Sequence[Split]) -> list[str]:
    """Parameters in which runs differ."""
    first = splits[0]["parameters"]
    return [name for name in first if any(one["parameters"][name] != first[name] for one in splits)]


def described(splits: Sequence[Split]) -> list[str]:
    """A name for each split: its size, and the parameters that differ."""
    varied = _varied(splits)
    return [_described(split, varied) for split in splits]


def _described(split: Split, varied: Sequence[str]) -> str:
    return " ".join([_size(split), *(f"{name}={split['parameters'][name]:g}" for name in varied)])


def _size(split: Split) -> str:
    return f"{split['processes']} x {split['threads']}"


def _runtimes(splits: Sequence[Split]) -> _Table:
    varied = _varied(splits)
    rows = []
    for split in splits:
        time = split["runtime"]
        measured = _seconds(time["mean"])
        if time["deviation"] is not None:
            measured += f" +- {_seconds(time['deviation'], 2)}"
        cells = [f"{split['parameters'][name]:g}" for name in varied]
        cells += [
            str(split["runs"]),
            measured,
            _seconds(time["predicted"]),
            _interval(time, lambda value: _seconds(value, 3)),
            f"{100 * time['error']:+.1f} %",
            "-" if time["covered"] is None else f"{time['covered']} of {split['runs']}",
        ]
        rows.append((_size(split), 0, tuple(cells)))
    heads = tuple(("", head) for head in (*varied, *_TIME_HEADS))
    return _Table("P x T", heads, tuple(rows))


def _having(splits: Sequence[Split], family: str) -> list[Split]:
    return [split for split in splits if split["metrics"].get(family)]


def _side_by_side(splits: Sequence[Split], family: str, style: Style) -> list[list[Split]]:
    """Splits with metrics of a family, in groups whose columns fit beside each other."""
    having = _having(splits, family)
    for number in range(len(having), 1, -1):
        groups = [having[first : first + number] for first in range(0, len(having), number)]
        if all(_width(_metrics(family, group)) <= style.width for group in groups):
            return groups
    return [[split] for split in having]


def _width(found: _Table) -> int:
    """Columns that a table takes side by side."""
    labels = max(depth + display_width(label) for label, depth, _ in found.rows)
    columns = [
        [*head, *(cells[at] for _, _, cells in found.rows)] for at, head in enumerate(found.heads)
    ]
    return max(labels, display_width(found.first)) + sum(
        2 + max(map(display_width, column)) for column in columns
    )


def _metrics(family: str, splits: Sequence[Split]) -> _Table:
    """Efficiencies of some splits in per cent: predicted, measured, and the difference."""
    known = load_families()[family]
    names = ["predicted", "90 %", "measured", "error"]
    if len(splits) > 1:
        names.remove("90 %")  # which splits beside each other have no room for
    varied = _varied(splits)
    heads: list[tuple[str, str]] = []
    for split in splits:
        size = _described(split, varied)
        heads += [(size if name == names[0] else "", name) for name in names]
    rows: list[tuple[str, int, tuple[str, ...]]] = []
    for line in (line for walk in known.tree() for line in walk.rows):
        found = [split["metrics"][family].get(line.metric) for split in splits]
        if not any(found) or (line.view and not any(map(_has_loss, found))):
            continue
        label = known.metrics[line.metric].name
        cells = [_share(one, name) for one in found for name in names]
        rows.append((f"({label})" if line.view else label, line.depth, tuple(cells)))
    top = min((depth for _, depth, _ in rows), default=0)  # what is above may have no value
    rows = [(label, depth - top, cells) for label, depth, cells in rows]
    return _Table(known.title, tuple(heads), tuple(rows))


def _has_loss(one: Quantity | None) -> bool:
    return one is not None and (loses(one["mean"]) or loses(one["predicted"]))


def _share(one: Quantity | None, column: str) -> str:
    """What stands in a column for an efficiency, in per cent."""
    if one is None:
        return "-"
    if column == "90 %":
        return _interval(one, lambda value: percent(value, 0))
    if column == "error":
        return f"{100 * one['error']:+.1f}{_OUTSIDE if is_outside(one) else ''}"
    return percent(one["mean" if column == "measured" else "predicted"])


def is_outside(one: Quantity) -> bool:
    """Whether the interval misses the measured mean."""
    return one["low"] is not None and not one["low"] <= one["mean"] <= one["high"]


def _interval(one: Quantity, write: Callable[[float], str]) -> str:
    return "-" if one["low"] is None else f"{write(one['low'])}..{write(one['high'])}"


def _seconds(value: float, digits: int = 4) -> str:
    """A time with some significant digits, without exponent."""
    decimals = digits - 1 - math.floor(math.log10(value)) if value else 0
    return f"{value:.{max(decimals, 0)}f}"


def _notes(document: Document) -> list[str]:
    """How the efficiencies did, and which columns of tables were ignored."""
    told = []
    if metrics := document["summary"].get("metrics"):
        title = load_families()[metrics["family"]].title
        text = (
            f"{title}: median error {metrics['median_error']:.1f} points, largest "
            f"{metrics['largest_error']:.1f}"
        )
        if metrics["intervals"]:
            text += f"; {metrics['covered']} of {metrics['intervals']} inside the 90 % interval"
        told.append(text)
    for table_ in document["ignored"]:
        names = ", ".join(table_["columns"])
        many = len(table_["columns"])
        told.append(
            f"{table_['file']}: {plural(many, 'column')} ignored, not "
            f"{'a parameter' if many == 1 else 'parameters'} of {document['application']}: {names}"
        )
    return told


def _legend(document: Document, families: Sequence[str]) -> list[tuple[str, str]]:
    """What the columns mean."""
    splits = document["splits"]
    legend = []
    if any(split["runs"] > 1 for split in splits):
        legend.append(("+-", "standard deviation of the runs"))
    if any(split["runtime"]["low"] is not None for split in splits):
        parameters = "uncertainty of the machine's parameters only, not of the model"
        legend += [("90 %", parameters), ("inside", "runs within this interval")]
    shown = [
        one
        for split in splits
        for family in families
        for one in split["metrics"].get(family, {}).values()
    ]
    if any(map(is_outside, shown)):
        legend.append((_OUTSIDE.strip(), "measured outside the interval"))
    return legend


def _drawn(found: _Table, style: Style) -> list[str]:
    # One line of heads where only one says something.
    heads = [list(head) for head in found.heads]
    if not any(above for above, _ in found.heads):
        heads = [[head] for _, head in found.heads]
    rows = [Row(label, tuple(map(Cell, cells)), depth) for label, depth, cells in found.rows]
    return table(heads, rows, style, first=found.first)
