"""Predictions beside measurements: how far off they are, and whether the intervals tell so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from popmodel.base.units import format_time, plural
from popmodel.efficiency.evaluation import TERMS_FAMILY as FAMILY
from popmodel.efficiency.hierarchy import load_families
from popmodel.reports.blocks import Block, TableBlock, TableCell
from popmodel.reports.figures import percent
from popmodel.reports.html.contents import Contents
from popmodel.reports.html.drawings import figures, sign
from popmodel.reports.html.ranges import PageScale, linear, ratios
from popmodel.reports.html.section import Section
from popmodel.reports.pictures import Charts
from popmodel.reports.renderers.html import html
from popmodel.reports.splits import described, name, varied
from popmodel.reports.trees import lifted, tree_rows
from popmodel.reports.validate_plot import is_outside, mark_of, picture
from popmodel.reports.validation_tables import (
    caveats,
    choices,
    extrapolations,
    legend,
    metric_errors,
    places,
    regions,
    remarks,
    subject,
    term_errors,
)
from popmodel.reports.views import Document

_MOST_ROWS = 40  # of the table of efficiencies: the largest errors; all are further below
_EXPECTED = 0.9  # what intervals should hold

Split = Mapping[str, Any]


def section(contents: Contents) -> Section | None:
    """All comparisons of predictions with measured runs."""
    found = contents.of("validate")
    if not found:
        return None
    shown = [_validation(one, f"validation-{n}") for n, one in enumerate(found)]
    return Section(
        "validation", "Validation: predicted and measured", {"validations": shown}, uses=("parts",)
    )


def _validation(document: Document, id: str) -> Mapping[str, Any]:
    splits = document["splits"]
    drawn = picture(document)
    assert isinstance(drawn.shown, Charts)
    worst, more = _efficiencies(splits)
    return {
        "id": id,
        "title": f"{document['application']} on {document['machine']}",
        "facts": subject(document),
        "verdict": document["verdict"],
        "warnings": document["warnings"],
        "caveats": caveats(document),
        "figures": figures(drawn.shown, id),
        "remarks": drawn.remarks,
        **_runtimes(document),
        "regions": _regions(document),
        "decisions": html([tuple(choices(document))]),
        "baselines": html([tuple(extrapolations(document))]),
        "terms": html([(term_errors(document["by_term"]),)]) if document["by_term"] else "",
        "metrics": html([tuple(metric_errors(document, [FAMILY]))]) if len(splits) > 1 else "",
        "by_split": html([_by_split(splits)]),
        "efficiencies": worst,
        "left_over": more,
        "left_out": [
            f"{described(one, varied(document['left_out']))}: "
            f"{', '.join(format_time(time) for time in one['measured'])}: {one['why']}"
            for one in document["left_out"]
        ],
        "notes": remarks(document),
        "legend": legend(document, [FAMILY]),
    }


# -- runtimes


def _runtimes(document: Document) -> Mapping[str, Any]:
    """A row for each configuration, with predicted over measured on one axis."""
    splits = document["splits"]
    differing, place = varied(splits), places(document)
    scale = ratios(ratio for split in splits for ratio in _ratios(split["runtime"]))
    return {
        "parameters": differing,
        "has_place": place is not None,
        "axis": scale.head,
        "rows": [
            {
                "split": name(split),
                "processes": split["processes"],
                "parameters": [split["parameters"][key] for key in differing],
                "sign": sign(mark_of(split)[0]),
                "meaning": mark_of(split)[1],
                "measured": _measured(split["runtime"]),
                "plot": _plot(split, scale),
                **_compared(split["runtime"], format_time),
                "inside": "-"
                if split["runtime"]["covered"] is None
                else f"{split['runtime']['covered']} of {split['runs']}",
                "is_missed": split["runtime"]["covered"] not in (None, split["runs"]),
                "place": "" if place is None else place(split),
            }
            for split in splits
        ],
    }


def _ratios(time: Mapping[str, Any]) -> Iterator[float | None]:
    for end in ("predicted", "low", "high"):
        yield None if time[end] is None else time[end] / time["mean"]


def _plot(split: Split, scale: PageScale) -> Any:
    value, low, high = _ratios(split["runtime"])
    assert value is not None
    return scale.drawn(value, low, high, mark_of(split)[0])


def _measured(time: Mapping[str, Any]) -> str:
    text = format_time(time["mean"])
    if time["deviation"] is None:
        return text
    return f"{text} \N{PLUS-MINUS SIGN} {format_time(time['deviation'], digits=2)}"


def _compared(one: Mapping[str, Any], text: Any) -> Mapping[str, Any]:
    """What is predicted, its interval and its error, in words and as numbers to sort by."""
    interval = "-"
    if one["low"] is not None:
        interval = f"{text(one['low'], digits=3)} .. {text(one['high'], digits=3)}"
    return {
        "mean": one["mean"],
        "predicted": text(one["predicted"]),
        "value": one["predicted"],
        "interval": interval,
        "error": f"{100 * one['error']:+.1f} %",
        "size": abs(one["error"]),
    }


# -- errors by region


def _regions(document: Document) -> Mapping[str, Any] | None:
    """Errors of the runtime by region; what intervals hold, beside what they should."""
    found = regions(document)
    if not found:
        return None
    shares = [part["runtime"]["coverage"] for _, _, part in found]
    scale = linear([], lambda share: f"{100 * share:g} %", exact=_EXPECTED, ends=(0.0, 1.0))
    return {
        "axis": scale.head,
        "rows": [
            {
                "name": label,
                "depth": depth,
                "splits": part["runtime"]["splits"],
                "median": _share(part["runtime"]["median_error"]),
                "largest": _share(part["runtime"]["largest_error"]),
                "bias": _signed(part["runtime"]["bias"]),
                "inside": _share(None if share is None else share["value"], 0),
                "binomial": "-"
                if share is None
                else f"{percent(share['low'], 0)} .. {_share(share['high'], 0)}",
                "plot": ""
                if share is None
                else scale.drawn(share["value"], share["low"], share["high"]),
                "width": _share(part["runtime"]["median_half_width"]),
            }
            for (label, depth, part), share in zip(found, shares, strict=True)
        ],
    }


def _share(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{percent(value, digits)} %"


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:+.1f} %"


# -- efficiencies


def _by_split(splits: Sequence[Split]) -> tuple[Block, ...]:
    """The error of every efficiency of every configuration, in points."""
    having = [split for split in splits if split["metrics"].get(FAMILY)]
    if not having:
        return ()
    family = load_families()[FAMILY]
    differing = varied(splits)
    found = [split["metrics"][FAMILY] for split in having]

    def cells(line: Any) -> list[TableCell] | None:
        some = [metrics.get(line.metric) for metrics in found]
        if line.view or not any(some):
            return None
        return [TableCell("-" if one is None else _points(one)) for one in some]

    rows = tree_rows(family, (line for walk in family.tree() for line in walk.rows), cells)
    heads = tuple((described(split, differing),) for split in having)
    return (TableBlock(heads, lifted(rows), first=f"{family.title}, points"),)


def _points(one: Mapping[str, Any]) -> str:
    return f"{100 * one['error']:+.1f}{' !' if is_outside(one) else ''}"


def _efficiencies(splits: Sequence[Split]) -> tuple[list[Mapping[str, Any]], str]:
    """Efficiencies by the size of their errors, and how many are left over."""
    names = load_families()[FAMILY].metrics
    differing = varied(splits)
    rows: list[Mapping[str, Any]] = [
        {
            "split": described(split, differing),
            "metric": names[metric].name,
            "measured": f"{percent(one['mean'])} %",
            **_compared(one, _percent),
            "error": _points(one),
            "inside": "-" if one["covered"] is None else f"{one['covered']} of {split['runs']}",
        }
        for split in splits
        for metric, one in split["metrics"].get(FAMILY, {}).items()
    ]
    rows.sort(key=lambda row: -row["size"])
    more = len(rows) - _MOST_ROWS
    left = f"and {plural(more, 'smaller error')}, below under all numbers" if more > 0 else ""
    return rows[:_MOST_ROWS], left


def _percent(fraction: float, digits: int = 4) -> str:
    return f"{percent(fraction, digits - 3)} %"
