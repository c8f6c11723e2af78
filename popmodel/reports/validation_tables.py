"""Predictions beside measurements: runtimes, errors, the choice, terms, efficiencies."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from popmodel.base.units import plural
from popmodel.efficiency.evaluation import TERMS
from popmodel.efficiency.family import FamilyLine
from popmodel.efficiency.hierarchy import load_families
from popmodel.prediction.prediction import MAIN_FAMILY
from popmodel.reports.blocks import (
    SCREEN,
    Brief,
    Facts,
    Role,
    Section,
    TableBlock,
    TableCell,
    TableRow,
    Title,
    first_notes,
    folded,
    heads,
    in_brief,
    lines_of,
    narrowed,
    notes,
    row,
    texts,
)
from popmodel.reports.figures import lifted, loses, percent, run_names, tree_rows
from popmodel.reports.notes import joint_caveats
from popmodel.reports.prediction_words import INCLUDED, described, split_name, varied
from popmodel.reports.views import Document, Views
from popmodel.simulator.program import unmodelled_calls
from popmodel.validation.comparison import BOUNDARY

MeasuredSplit = Mapping[str, Any]
Quantity = Mapping[str, Any]

REGIONS = {
    "calibration": "used in the fit",
    "repetition": "repeats of the fit",
    "interpolation": "interpolation",
    "extrapolation": "extrapolation",
    "inside": "inside the profile",
    "extrapolated": "beyond the profile",
    "outside": "far beyond it",
    "projected": "projected",
}
"""What people call a region; the profile is what was measured of the machine."""
_PLACES = {"calibration": "used", "repetition": "repeat", "interpolation": "within"}
_DEFAULTS = {
    "all MPI": "all MPI",
    "one process per socket": "1/socket",
    "one process per node": "1/node",
}
_EXTRAPOLATIONS = {
    "model": "the model",
    "nearest": "nearest run",
    "linear": "ideal scaling",
    "amdahl": "Amdahl",
    "pipe": "pipe",
    "normal-form": "normal form",
}
_COLUMNS = ("predicted", "90 %", "measured", "error")
_ERROR_HEADS = ("splits", "median", "largest", "bias", "inside", "its 90 %", "width")
_OUTSIDE = " !"
_LEAST_ROWS = 3


def blocks(document: Document, families: Sequence[str] = (MAIN_FAMILY,)) -> list[Section]:
    """The verdict and the largest errors; whole, all errors, choices, terms and efficiencies."""
    splits = document["splits"]
    caveats, warnings, verdict = _caveats(document), document["warnings"], document["verdict"]
    brief = first_notes(caveats, 3), first_notes(warnings, 3), first_notes(verdict, 7)
    choice, worst = _choice(document), _by_size(splits, families)
    # title, head of the table and footer too; each part with an empty line behind it
    used = [some for some in ([*brief[0], *brief[1]], brief[2], choice) if some]
    room = SCREEN - sum(lines_of(some, 3) + 1 for some in used) - 5
    if worst:
        worst = worst[: max(_LEAST_ROWS, (room - 2) // 2)]
        room -= 2 + len(worst)
    return [
        (*in_brief(caveats, 3), *in_brief(warnings, 3, Role.WARNING)),
        in_brief(verdict, 7),
        (_title(document),),
        (Brief(((_runtimes(document, splits),),), (_largest(document, room),)),),
        (Brief((tuple(_choices(document)),), (notes(choice),)),),
        (folded((_region_errors(document), _extrapolations(document), _terms(document))),),
        (
            Brief(
                tuple(_efficiencies(document, family) for family in families),
                (_worst(worst, families),),
            ),
        ),
        (folded((notes(_remarks(document)), (Facts(tuple(_legend(document))),))),),
    ]


def _caveats(document: Document) -> list[str]:
    """What the signature does not contain, and what to know of measured traces."""
    runs = document["measured"]
    return [
        *unmodelled_calls(document.get("not_modelled", "")),
        *(joint_caveats(runs, run_names([run["source"] for run in runs])) if runs else []),
    ]


def _title(document: Document) -> Title:
    """The application with the parameters that all runs share, and the machine."""
    differing = varied(document["splits"])
    common = [
        f"{name}={value:g}"
        for name, value in document["splits"][0]["parameters"].items()
        if name not in differing
    ]
    noisy = f" (noisy: {', '.join(document['noisy'])})" if document["noisy"] else ""
    measured = " (preset, not measured)" if document["preset"] else noisy
    left = " ".join([document["application"], *common])
    return Title(left, (f"machine: {document['machine']}{measured}",))


VIEWS = Views(blocks, ("rows[]",), picture="predicted_and_measured")


# -- runtimes


def _largest(document: Document, room: int) -> Section:
    """The splits that a screen has room for, those with the largest errors."""
    splits = document["splits"]
    remark: Section = ()
    if len(splits) > room:
        by_error = sorted(splits, key=lambda one: -abs(one["runtime"]["error"]))
        splits = by_error[: max(_LEAST_ROWS, room - 1)]
        text = f"the {len(splits)} largest errors of {len(by_error)} splits"
        middle = document["summary"]["runtime"]["median_error"]
        if middle is not None:
            text += f"; median of all tests {100 * middle:.1f} %"
        remark = notes([text], Role.REMARK)
    table = _runtimes(document, splits, brief=True)
    return (narrowed(table, ("90 %", "inside")), *remark)


def _runtimes(
    document: Document, splits: Sequence[MeasuredSplit], *, brief: bool = False
) -> TableBlock:
    """The runtime of each split, measured and predicted."""
    differing = varied(document["splits"])
    fitted = document["training"] is not None
    unit, scale = _unit(document["splits"])
    rows = []
    for split in splits:
        time = split["runtime"]
        measured = _figure(scale * time["mean"])
        if time["deviation"] is not None and not brief:
            measured += f" +- {_figure(scale * time['deviation'], 2)}"
        cells = [
            *(f"{split['parameters'][name]:g}" for name in differing),
            measured,
            _figure(scale * time["predicted"]),
            _interval(time, lambda value: _figure(scale * value, 3)),
            f"{100 * time['error']:+.1f} %",
            "-" if time["covered"] is None else f"{time['covered']} of {split['runs']}",
        ]
        beyond = ("nodes" if name == BOUNDARY else name for name in split["beyond"])
        cells += [" ".join(beyond) or _PLACES[split["region"]]] if fitted else []
        rows.append(row(split_name(split), *cells))
    names = [f"measured, {unit}", f"predicted, {unit}", "90 %", "error", "inside"]
    columns = heads((*differing, *names, *(["fit"] if fitted else [])))
    return TableBlock(columns, tuple(rows), first="P x T", keys=len(differing))


def _unit(splits: Sequence[MeasuredSplit]) -> tuple[str, float]:
    """The unit of all times of a table, and how many of it are a second."""
    largest = max(split["runtime"]["mean"] for split in splits)
    return ("s", 1.0) if largest >= 1 else ("ms", 1e3) if largest >= 1e-3 else ("us", 1e6)


def _interval(one: Quantity, write: Callable[[float], str]) -> str:
    return "-" if one["low"] is None else f"{write(one['low'])}..{write(one['high'])}"


def _figure(value: float, digits: int = 4) -> str:
    """A number with some significant digits, without exponent."""
    decimals = digits - 1 - math.floor(math.log10(value)) if value else 0
    return f"{value:.{max(decimals, 0)}f}"


# -- errors


def _region_errors(document: Document) -> Section:
    """Errors of the runtime by region, below it by what runs are beyond; not of a single split."""
    parts = document["regions"]
    if sum(part["runtime"]["splits"] for part in parts if part["beyond"] is None) < 2:
        return ()
    rows = []
    for part in parts:
        label, beyond = REGIONS.get(part["region"], "machine not measured"), part["beyond"]
        if beyond is not None:
            label = f"across a {beyond}" if beyond == BOUNDARY else f"in {beyond}"
        rows.append(row(label, *_errors(part["runtime"], 100.0), depth=int(beyond is not None)))
    return (TableBlock(heads(_ERROR_HEADS), tuple(rows), first="runtime, %"),)


def _errors(one: Quantity, factor: float) -> list[str]:
    """Cells of a line of errors, in per cent or in points."""
    cells = [str(one["splits"])]
    cells += [_number(one[name], factor) for name in ("median_error", "largest_error")]
    cells.append("-" if one["bias"] is None else f"{factor * one['bias']:+.1f}")
    share = one["coverage"]
    if share is None:
        return [*cells, "-", "-", "-"]
    ends = f"{percent(share['low'], 0)}..{percent(share['high'], 0)}"
    return [*cells, percent(share["value"], 0), ends, _number(one["median_half_width"], factor)]


def _number(value: float | None, factor: float = 100.0) -> str:
    return "-" if value is None else f"{factor * value:.1f}"


def _extrapolations(document: Document) -> Section:
    """Errors of plain extrapolations of the same runs."""
    found = document["baselines"]
    if found is None:
        return ()
    rows = []
    for one in found["errors"]:
        cells = [_number(one[name]) for name in ("median_error", "largest_error")]
        cells += [f"{100 * one['bias']:+.1f}", "-" if one["mase"] is None else f"{one['mase']:.2f}"]
        rows.append(row(_EXTRAPOLATIONS[one["name"]], *cells))
    seen = "from the runs of the fit" if found["declared"] else "each test from all others"
    columns = heads(("median", "largest", "bias", "MASE"))
    return (TableBlock(columns, tuple(rows), title=f"extrapolated, %: {seen}"),)


# -- whether the right split would have been chosen, and what usual defaults would have cost


def _choice(document: Document) -> list[str]:
    """What was recommended, and what it would have cost, in a line."""
    decisions = document["decisions"]
    if len(decisions) == 1:
        (one,) = decisions
        said = f"choice for {plural(one['cores'], 'core')}: {split_name(one['take'])} recommended"
        if one["take"] == one["best"]:
            return [f"{said}, and it was the fastest"]
        lost = f"{_number(one['regret'])} % lost"
        return [f"{said}, {split_name(one['best'])} was the fastest: {lost}"]
    right = sum(one["take"] == one["best"] for one in decisions)
    worst = max((one["regret"] for one in decisions), default=0.0)
    said = f"choices: {right} of {len(decisions)} recommended splits were the fastest"
    others = "" if right == len(decisions) else f"; the others lose {_number(worst)} % at most"
    return [said + others] if decisions else []


def _choices(document: Document) -> Section:
    """A line for each number of cores of which several splits were measured."""
    decisions = document["decisions"]
    if not decisions:
        return ()
    differing = varied(decisions)
    usual = [
        name
        for name in _DEFAULTS
        if any(
            one["name"] == name and one["loss"] is not None
            for found in decisions
            for one in found["defaults"]
        )
    ]
    rows = []
    for one in decisions:
        told = [f"{key}={one['parameters'][key]:g}" for key in differing]
        losses = {default["name"]: default["loss"] for default in one["defaults"]}
        cells = [
            *(split_name(one[key]) for key in ("take", "best")),
            *(_number(one[key]) for key in ("regret", "announced")),
            f"{len(one['tied'])} of {len(one['options'])}"
            + ("" if one["best"] in one["tied"] else _OUTSIDE),
            *(_number(losses.get(name)) for name in usual),
        ]
        rows.append(row(" ".join([str(one["cores"]), *told]), *cells))
    names = ("take", "fastest", "loss, %", "expected", "tied")
    columns = heads((*names, *(_DEFAULTS[name] for name in usual)))
    return (TableBlock(columns, tuple(rows), first="cores"),)


# -- terms and efficiencies


def _terms(document: Document) -> Section:
    """Useful time and losses in seconds; of several splits how large the errors are."""
    labels = {term.name: term.label for term in TERMS}
    if len(document["terms"]) == 1:
        (split,) = document["terms"]
        rows = [row(labels[one["term"]], *_figures(one, "{:.3g}".format)) for one in split["terms"]]
        return (TableBlock(heads(_COLUMNS), tuple(rows), first="time, s"),)
    rows = [
        row(
            labels[one["term"]],
            str(one["splits"]),
            *(_number(one[key]) for key in ("median_error", "largest_error")),
            f"{100 * one['bias']:+.1f}",
        )
        for one in document["by_term"]
    ]
    columns = heads(("splits", "median", "largest", "bias"))
    return (TableBlock(columns, tuple(rows), first="time, %"),) if rows else ()


def _figures(one: Quantity, write: Callable[[float], str]) -> list[str]:
    """The cells of `_COLUMNS`; errors in per cent or points."""
    error = f"{100 * one['error']:+.1f}"
    return [write(one["predicted"]), _interval(one, write), write(one["mean"]), error]


def _efficiencies(document: Document, family: str) -> Section:
    """A family in per cent; of several splits how large the errors are, in points."""
    known, splits = load_families()[family], document["splits"]
    having = [split["metrics"][family] for split in splits if split["metrics"].get(family)]
    if len(splits) > 1 or not having:
        rows = [
            row(known.metrics[one["metric"]].name, *_errors(one, 1.0))
            for one in document["by_metric"]
            if one["family"] == family
        ]
        table = TableBlock(heads(_ERROR_HEADS), tuple(rows), title=f"{known.title}, points")
        return (table,) if rows else ()
    (metrics,) = having

    def cells(line: FamilyLine) -> tuple[TableCell, ...] | None:
        one = metrics.get(line.metric)
        if one is None or (line.view and not (loses(one["mean"]) or loses(one["predicted"]))):
            return None
        return _share(one)

    lines = (line for walk in known.tree() for line in walk.rows)
    tree = lifted(tree_rows(known, lines, cells))
    return (TableBlock(heads(_COLUMNS), tree, first=known.title),)


def _share(one: Quantity) -> tuple[TableCell, ...]:
    """An efficiency in per cent."""
    figures = _figures(one, percent)
    figures[1] = _interval(one, lambda value: percent(value, 0))
    if one["low"] is not None and not one["low"] <= one["mean"] <= one["high"]:
        figures[-1] += _OUTSIDE
    return texts(figures)


def _by_size(splits: Sequence[MeasuredSplit], families: Sequence[str]) -> list[TableRow]:
    """Efficiencies of the first family, the largest errors first."""
    if not families:
        return []
    names, several = load_families()[families[0]].metrics, len(splits) > 1
    differing = varied(splits)
    found = [
        (abs(one["error"]), split, names[metric].name, one)
        for split in splits
        for metric, one in split["metrics"].get(families[0], {}).items()
    ]
    return [
        TableRow(f"{name}, {described(split, differing)}" if several else name, _share(one))
        for _, split, name, one in sorted(found, key=lambda entry: -entry[0])
    ]


def _worst(rows: Sequence[TableRow], families: Sequence[str]) -> Section:
    """The largest errors of efficiencies."""
    if not rows:
        return ()
    title = f"{load_families()[families[0]].title}, largest errors in points"
    whole = TableBlock(heads(_COLUMNS), tuple(rows), title=title)
    return (narrowed(whole, ("90 %",), ("90 %", "predicted", "measured")),)


# -- remarks


def _remarks(document: Document) -> list[str]:
    """How the efficiencies did, and which columns of tables were ignored."""
    told = []
    metrics = document["summary"].get("metrics")
    if metrics is not None and metrics["rows"]:
        title = load_families()[metrics["family"]].title
        told.append(
            f"{title}: median error {metrics['median_error']:.1f} points, largest "
            f"{metrics['largest_error']:.1f}; {metrics['covered']} of {metrics['intervals']} "
            "inside the 90 % interval"
        )
    for table in document["ignored"]:
        many = len(table["columns"])
        told.append(
            f"{table['file']}: {plural(many, 'column')} ignored, not "
            f"{'a parameter' if many == 1 else 'parameters'} of {document['application']}: "
            f"{', '.join(table['columns'])}"
        )
    return told


def _legend(document: Document) -> list[tuple[str, str]]:
    """What the columns mean."""
    noise = document["training"]["noise"] if document["training"] else 0.0
    more = f", and {percent(noise)} % from run to run" if noise else ""
    legend = [
        ("+-", "standard deviation of the runs"),
        ("90 %", f"{INCLUDED}{more}"),
        ("inside", "runs within this interval"),
    ]
    if document["decisions"]:
        legend += [
            ("loss", "runtime of what is recommended (take) over that of the fastest, less 1"),
            ("tied", "splits predicted to be equally good; !: the fastest is not among them"),
        ]
    if document["baselines"] is not None:
        legend.append(("MASE", "size of the model's errors over that of this extrapolation's"))
    if document["terms"]:
        legend.append(("time", "its error is a part of the measured runtime, %"))
    if document["training"] is not None:
        where = "used in the fit, repeat of it (no tests), within its range, or beyond it in"
        legend.append(("fit", where))
    if any(split["metrics"] for split in document["splits"]):
        legend.append((_OUTSIDE.strip(), "measured outside the interval"))
    return legend
