"""Predictions beside measurements."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from popmodel.base.units import plural
from popmodel.efficiency.family import FamilyLine
from popmodel.efficiency.hierarchy import load_families
from popmodel.reports.blocks import (
    Brief,
    Facts,
    FitBlock,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableCell,
    TableRow,
    heads,
    notes,
    texts,
    titled,
)
from popmodel.reports.figures import loses, percent
from popmodel.reports.joint import joint_caveats
from popmodel.reports.names import run_names
from popmodel.reports.splits import described, varied
from popmodel.reports.splits import name as split_name
from popmodel.reports.trees import lifted, tree_rows
from popmodel.reports.uncertainty import INCLUDED
from popmodel.reports.validate_choice import LEGEND, choices
from popmodel.reports.validate_errors import beside, metric_errors, region_errors
from popmodel.reports.validate_plot import is_outside, picture
from popmodel.reports.validate_terms import terms
from popmodel.reports.views import Document, Record, Views
from popmodel.simulator.program import unmodelled_calls
from popmodel.validation.comparison import BOUNDARY

Split = Mapping[str, Any]
Quantity = Mapping[str, Any]

_TIME_HEADS = ("runs", "measured, s", "predicted, s", "90 %", "error", "inside")
_PLACES = {"calibration": "used", "repetition": "repeat", "interpolation": "within"}
_OUTSIDE = " !"
_FIT = (
    "used in the fit, repeat of it (no tests), within its range, or what the test is beyond it in"
)
_NOT_MEASURED = " (preset, not measured)"


def views(families: Sequence[str], more: Sequence[str] = ()) -> Views:
    """How a validation is shown."""
    return Views(partial(blocks, families=families, more=more), _records, picture)


def blocks(document: Document, families: Sequence[str], more: Sequence[str] = ()) -> list[Section]:
    """The verdict, the runtime of each split, how it went, the efficiencies, what columns mean."""
    shown = _efficiencies(document, families)
    every = [one for one in load_families() if one in (*families, *more)]
    whole = [
        *_efficiencies(document, every),
        *((block,) for block in metric_errors(document, every) if len(document["splits"]) > 1),
    ]
    return [
        notes(caveats(document)),
        titled("warnings", document["warnings"], Role.WARNING),
        notes(document["verdict"]),
        (Facts(subject(document)),),
        (_runtimes(document),),
        tuple(region_errors(document)),
        tuple(choices(document)),
        tuple(beside(document)),
        tuple(terms(document)),
        *([(Brief(tuple(whole), tuple(shown)),)] if whole else []),
        *((NoteBlock(text),) for text in remarks(document)),
        (Facts(tuple(legend(document, families))),),
    ]


def _efficiencies(document: Document, families: Sequence[str]) -> list[Section]:
    splits = document["splits"]
    return [
        (_side_by_side(having, family),)
        for family in families
        if (having := [split for split in splits if split["metrics"].get(family)])
    ]


def _records(document: Document) -> list[Record]:
    return [
        {key: value for key, value in row.items() if key != "parameters"}
        | {"beyond": beyond(row)}
        | {f"parameter_{name}": value for name, value in row["parameters"].items()}
        for row in document["rows"]
    ]


def beyond(one: Quantity) -> str:
    """By what factor a run is beyond those of the fit, and in what: ``P x4, T x2``."""
    return ", ".join(f"{name} x{factor:.3g}" for name, factor in one["beyond"].items())


def caveats(document: Document) -> list[str]:
    """What the signature does not contain, and what to know of measured traces."""
    runs = document["measured"]
    return [
        *unmodelled_calls(document.get("not_modelled", "")),
        *(joint_caveats(runs, run_names([run["source"] for run in runs])) if runs else []),
    ]


def subject(document: Document) -> tuple[tuple[str, str], ...]:
    """The application with the parameters that all runs share, and the machine."""
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


def _runtimes(document: Document) -> TableBlock:
    splits = document["splits"]
    differing = varied(splits)
    place = places(document)
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
        if place:  # in place of the runs, which stand beside those inside
            del cells[len(differing)]
            cells.append(place(split))
        rows.append(TableRow(split_name(split), texts(cells)))
    names = (*_TIME_HEADS[1:], "fit") if place else _TIME_HEADS
    return TableBlock(heads((*differing, *names)), tuple(rows), first="P x T", keys=len(differing))


def places(document: Document) -> Callable[[Split], str] | None:
    """Where runs stand beside those of the fit; None where none are known."""
    if document["training"] is None:
        return None
    return lambda split: " ".join(map(_short, split["beyond"])) or _PLACES[split["region"]]


def _short(name: str) -> str:
    return "nodes" if name == BOUNDARY else name


def _side_by_side(splits: Sequence[Split], family: str) -> FitBlock:
    """Splits with metrics of a family beside each other, as many as there is room for."""
    forms = []
    for number in range(len(splits), 0, -1):
        groups = (splits[first : first + number] for first in range(0, len(splits), number))
        forms.append(tuple((_metrics(family, group),) for group in groups))
    return FitBlock(tuple(forms))


def _metrics(family: str, splits: Sequence[Split]) -> TableBlock:
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

    def cells(line: FamilyLine) -> tuple[TableCell, ...] | None:
        found = [split["metrics"][family].get(line.metric) for split in splits]
        if not any(found) or (line.view and not any(map(_has_loss, found))):
            return None
        return texts(_share(one, name) for one in found for name in names)

    lines = (line for walk in known.tree() for line in walk.rows)
    return TableBlock(tuple(above), lifted(tree_rows(known, lines, cells)), first=known.title)


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


def remarks(document: Document) -> list[str]:
    """How the efficiencies did, and which columns of tables were ignored."""
    told = []
    metrics = document["summary"].get("metrics")
    if metrics is not None and metrics["rows"]:
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


def legend(document: Document, families: Sequence[str]) -> list[tuple[str, str]]:
    """What the columns mean."""
    splits = document["splits"]
    legend = []
    if any(split["runs"] > 1 for split in splits):
        legend.append(("+-", "standard deviation of the runs"))
    if document["decisions"]:
        legend += LEGEND
    if document["baselines"] is not None:
        legend.append(("MASE", "size of the model's errors over that of this extrapolation's"))
    if any(split["runtime"]["low"] is not None for split in splits):
        noise = document["training"]["noise"] if document["training"] else 0.0
        more = f", and {percent(noise)} % from run to run" if noise else ""
        legend += [("90 %", f"{INCLUDED}{more}"), ("inside", "runs within this interval")]
    shown = [
        one
        for split in splits
        for family in families
        for one in split["metrics"].get(family, {}).values()
    ]
    if document["terms"]:
        legend.append(("time", "its error is a part of the measured runtime, %"))
    if document["training"] is not None:
        legend.append(("fit", _FIT))
    if any(map(is_outside, shown)):
        legend.append((_OUTSIDE.strip(), "measured outside the interval"))
    return legend
