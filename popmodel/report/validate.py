"""Predictions beside measurements."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from popmodel.efficiency.family import Line
from popmodel.efficiency.hierarchy import load_families
from popmodel.report.blocks import (
    Cell,
    Facts,
    Fit,
    Note,
    Row,
    Section,
    Table,
    heads,
    notes,
    texts,
)
from popmodel.report.figures import loses, percent
from popmodel.report.joint import joint_caveats
from popmodel.report.names import run_names
from popmodel.report.splits import described, varied
from popmodel.report.splits import name as split_name
from popmodel.report.trees import lifted, tree_rows
from popmodel.report.uncertainty import INCLUDED
from popmodel.report.validate_plot import is_outside, picture
from popmodel.report.views import Document, Record, Views
from popmodel.units import plural

Split = Mapping[str, Any]
Quantity = Mapping[str, Any]

_TIME_HEADS = ("runs", "measured, s", "predicted, s", "90 %", "error", "inside")
_OUTSIDE = " !"
_NOT_MEASURED = " (preset, not measured)"


def views(families: Sequence[str]) -> Views:
    """How a validation is shown: the runtime, and the metrics of some families."""
    return Views(partial(blocks, families=families), _records, picture)


def blocks(document: Document, families: Sequence[str]) -> list[Section]:
    """The verdict, the runtime of each split, the efficiencies, what the columns mean."""
    splits = document["splits"]
    return [
        notes(_caveats(document)),
        notes(document["verdict"]),
        (Facts(_subject(document)),),
        (_runtimes(splits),),
        *(
            (_side_by_side(having, family),)
            for family in families
            if (having := [split for split in splits if split["metrics"].get(family)])
        ),
        *((Note(text),) for text in _notes(document)),
        (Facts(tuple(_legend(document, families))),),
    ]


def _records(document: Document) -> list[Record]:
    return [
        {key: value for key, value in row.items() if key != "parameters"}
        | {f"parameter_{name}": value for name, value in row["parameters"].items()}
        for row in document["rows"]
    ]


def _caveats(document: Document) -> list[str]:
    runs = document["measured"]
    return joint_caveats(runs, run_names([run["source"] for run in runs])) if runs else []


def _subject(document: Document) -> tuple[tuple[str, str], ...]:
    splits = document["splits"]
    differing = varied(splits)
    common = [
        f"{name}={value:g}"
        for name, value in splits[0]["parameters"].items()
        if name not in differing
    ]
    noisy = f" (noisy: {', '.join(document['noisy'])})" if document["noisy"] else ""
    return (
        ("application", " ".join([document["application"], *common])),
        ("machine", f"{document['machine']}{_NOT_MEASURED if document['preset'] else noisy}"),
    )


def _runtimes(splits: Sequence[Split]) -> Table:
    differing = varied(splits)
    rows = []
    for split in splits:
        time = split["runtime"]
        measured = _seconds(time["mean"])
        if time["deviation"] is not None:
            measured += f" +- {_seconds(time['deviation'], 2)}"
        cells = [f"{split['parameters'][name]:g}" for name in differing]
        cells += [
            str(split["runs"]),
            measured,
            _seconds(time["predicted"]),
            _interval(time, lambda value: _seconds(value, 3)),
            f"{100 * time['error']:+.1f} %",
            "-" if time["covered"] is None else f"{time['covered']} of {split['runs']}",
        ]
        rows.append(Row(split_name(split), texts(cells)))
    return Table(heads((*differing, *_TIME_HEADS)), tuple(rows), first="P x T")


def _side_by_side(splits: Sequence[Split], family: str) -> Fit:
    """Splits with metrics of a family beside each other, as many as there is room for."""
    forms = []
    for number in range(len(splits), 0, -1):
        groups = (splits[first : first + number] for first in range(0, len(splits), number))
        forms.append(tuple((_metrics(family, group),) for group in groups))
    return Fit(tuple(forms))


def _metrics(family: str, splits: Sequence[Split]) -> Table:
    """Efficiencies of some splits in per cent: predicted, measured, and the difference."""
    known = load_families()[family]
    names = ["predicted", "90 %", "measured", "error"]
    if len(splits) > 1:
        names.remove("90 %")  # which splits beside each other have no room for
    differing = varied(splits)
    above = [
        (described(split, differing) if name == names[0] else "", name)
        for split in splits
        for name in names
    ]

    def cells(line: Line) -> tuple[Cell, ...] | None:
        found = [split["metrics"][family].get(line.metric) for split in splits]
        if not any(found) or (line.view and not any(map(_has_loss, found))):
            return None
        return texts(_share(one, name) for one in found for name in names)

    lines = (line for walk in known.tree() for line in walk.rows)
    return Table(tuple(above), lifted(tree_rows(known, lines, cells)), first=known.title)


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
        legend += [("90 %", INCLUDED), ("inside", "runs within this interval")]
    shown = [
        one
        for split in splits
        for family in families
        for one in split["metrics"].get(family, {}).values()
    ]
    if any(map(is_outside, shown)):
        legend.append((_OUTSIDE.strip(), "measured outside the interval"))
    return legend
