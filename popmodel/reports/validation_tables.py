"""Predictions beside measurements: runtimes, errors, the choice, terms, efficiencies."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from textwrap import wrap
from typing import Any

from popmodel.base.units import plural
from popmodel.efficiency.evaluation import TERMS
from popmodel.efficiency.family import FamilyLine
from popmodel.efficiency.hierarchy import load_families
from popmodel.reports.blocks import (
    Block,
    Brief,
    Facts,
    FitBlock,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableCell,
    TableRow,
    Title,
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
from popmodel.reports.views import Document, Record, Views
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
_ERROR_HEADS = ("splits", "median", "largest", "bias", "inside", "its 90 %", "width")
_OUTSIDE = " !"
_SCREEN = 25  # lines
_LEAST_ROWS = 3


def views(families: Sequence[str], more: Sequence[str] = ()) -> Views:
    """How a validation is shown: efficiencies of some families; of `more` ones in files."""
    return Views(partial(blocks, families=families, more=more), _records, "predicted_and_measured")


def blocks(document: Document, families: Sequence[str], more: Sequence[str] = ()) -> list[Section]:
    """The verdict and the largest errors; whole, all errors, choices, terms and efficiencies."""
    return [(Brief(_whole(document, families, more), _brief(document, families)),)]


def _whole(document: Document, families: Sequence[str], more: Sequence[str]) -> tuple[Section, ...]:
    every = [one for one in load_families() if one in (*families, *more)]
    several = len(document["splits"]) > 1
    return (
        notes(caveats(document)),
        titled("warnings", document["warnings"], Role.WARNING),
        notes(document["verdict"]),
        (Facts(subject(document)),),
        (_runtimes(document, document["splits"]),),
        tuple(region_errors(document)),
        tuple(choices(document)),
        tuple(extrapolations(document)),
        *_terms(document),
        *_efficiencies(document, every),
        *((block,) for block in metric_errors(document, every) if several),
        *((NoteBlock(text),) for text in remarks(document)),
        (Facts(tuple(legend(document, every))),),
    )


def _brief(document: Document, families: Sequence[str]) -> tuple[Section, ...]:
    """What fits a screen: doubts, the verdict, the largest errors, the choice."""
    splits = document["splits"]
    doubts = _some(caveats(document), 3, "caveat")
    warnings = _some(document["warnings"], 3, "warning")
    verdict = _some(document["verdict"], 7, "remark")
    (_, application), (_, machine) = subject(document)
    chosen = _choice(document)
    rows = _by_size(splits, families)
    others = [some for some in ([*doubts, *warnings], verdict, chosen) if some]
    # each with an empty line behind it; title, head of the table and footer too
    room = _SCREEN - sum(_height(some) + 1 for some in others) - 5
    if rows:
        rows = rows[: max(_LEAST_ROWS, (room - 2) // 2)]
        room -= 2 + len(rows)
    shown = splits
    if len(splits) > room:
        errors = sorted(splits, key=lambda one: -abs(one["runtime"]["error"]))
        shown = errors[: max(_LEAST_ROWS, room - 1)]
    table: Section = (_narrowed(_runtimes(document, shown, brief=True), (("90 %", "inside"),)),)
    if shown is not splits:
        table += notes([_left_out(document, len(shown))], Role.REMARK)
    efficiencies: Section = ()
    if rows:
        title = f"{load_families()[families[0]].title}, largest errors in points"
        columns = heads(("predicted", "90 %", "measured", "error"))
        whole = TableBlock(columns, tuple(rows), title=title)
        efficiencies = (_narrowed(whole, (("90 %",), ("90 %", "predicted", "measured"))),)
    return (
        (*notes(doubts), *notes(warnings, Role.WARNING)),
        notes(verdict),
        (Title(application, (f"machine: {machine}",)),),
        table,
        notes(chosen),
        efficiencies,
    )


def _narrowed(table: TableBlock, forms: Sequence[Sequence[str]]) -> FitBlock:
    """A table, with fewer columns where a screen is too narrow for all."""
    made = [((table,),)]
    for left_out in forms:
        kept = [n for n, head in enumerate(table.heads) if head[-1] not in left_out]
        rows = tuple(replace(row, cells=tuple(row.cells[n] for n in kept)) for row in table.rows)
        narrow = replace(table, heads=tuple(table.heads[n] for n in kept), rows=rows)
        remark = f"not shown (terminal too narrow): {', '.join(left_out)}"
        made.append(((narrow, NoteBlock(remark, Role.REMARK)),))
    return FitBlock(tuple(made))


def _some(texts: Sequence[str], most: int, what: str) -> list[str]:
    """Texts of so many lines at most, one at least, and how many more there are."""
    shown: list[str] = []
    for text in texts:
        if shown and _height([*shown, text]) > most:
            more = len(texts) - len(shown)
            return [*shown, f"and {plural(more, f'more {what}')}"]
        shown.append(text)
    return shown


def _height(texts: Sequence[str]) -> int:
    """Lines that texts take, about."""
    return sum(len(wrap(text, 76, break_on_hyphens=False)) for text in texts)


def _left_out(document: Document, shown: int) -> str:
    """That a table has the largest errors only, and how large errors are."""
    text = f"the {shown} largest errors of {len(document['splits'])} splits"
    middle = document["summary"]["runtime"]["median_error"]
    return text if middle is None else f"{text}; median of all tests {100 * middle:.1f} %"


def _choice(document: Document) -> list[str]:
    """What was recommended, and what it would have cost."""
    decisions = document["decisions"]
    if not decisions:
        return []
    if len(decisions) == 1:
        (one,) = decisions
        cores, took = plural(one["cores"], "core"), split_name(one["take"])
        if one["take"] == one["best"]:
            return [f"choice for {cores}: {took} recommended, and it was the fastest"]
        return [
            f"choice for {cores}: {took} recommended, {split_name(one['best'])} was the fastest: "
            f"{_loss(one['regret'])} % lost"
        ]
    right = sum(one["take"] == one["best"] for one in decisions)
    worst = max(one["regret"] for one in decisions)
    return [
        f"choices: {right} of {len(decisions)} recommended splits were the fastest; the others "
        f"lose {_loss(worst)} % at most"
        if right < len(decisions)
        else f"choices: all {right} recommended splits were the fastest"
    ]


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
        TableRow(
            f"{name}, {described(split, differing)}" if several else name,
            texts(_share(one, column) for column in ("predicted", "90 %", "measured", "error")),
        )
        for _, split, name, one in sorted(found, key=lambda row: -row[0])
    ]


def _efficiencies(document: Document, families: Sequence[str]) -> list[Section]:
    splits = document["splits"]
    return [
        (_side_by_side(having, partial(_metrics, family)),)
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
    preset = " (preset, not measured)" if document["preset"] else ""
    return (
        ("application", " ".join([document["application"], *common])),
        ("machine", f"{document['machine']}{preset or noisy}"),
    )


# -- runtimes


def _runtimes(
    document: Document, splits: Sequence[MeasuredSplit], *, brief: bool = False
) -> TableBlock:
    """The runtime of each split, measured and predicted."""
    differing = varied(document["splits"])
    place = places(document)
    unit, scale = _unit(document["splits"])
    rows = []
    for split in splits:
        time = split["runtime"]
        measured = _figure(scale * time["mean"])
        if time["deviation"] is not None and not brief:
            measured += f" +- {_figure(scale * time['deviation'], 2)}"
        cells = [f"{split['parameters'][name]:g}" for name in differing]
        cells += [] if place or brief else [str(split["runs"])]
        cells += [
            measured,
            _figure(scale * time["predicted"]),
            _interval(time, lambda value: _figure(scale * value, 3)),
            f"{100 * time['error']:+.1f} %",
            "-" if time["covered"] is None else f"{time['covered']} of {split['runs']}",
        ]
        cells += [place(split)] if place else []
        rows.append(TableRow(split_name(split), texts(cells)))
    names = [f"measured, {unit}", f"predicted, {unit}", "90 %", "error", "inside"]
    names = [*([] if place or brief else ["runs"]), *names, *(["fit"] if place else [])]
    return TableBlock(heads((*differing, *names)), tuple(rows), first="P x T", keys=len(differing))


def _unit(splits: Sequence[MeasuredSplit]) -> tuple[str, float]:
    """The unit of all times of a table, and how many of it are a second."""
    largest = max(split["runtime"]["mean"] for split in splits)
    return ("s", 1.0) if largest >= 1 else ("ms", 1e3) if largest >= 1e-3 else ("us", 1e6)


def places(document: Document) -> Callable[[MeasuredSplit], str] | None:
    """Where runs stand beside those of the fit; None where none are known."""
    if document["training"] is None:
        return None
    return lambda split: " ".join(map(_short, split["beyond"])) or _PLACES[split["region"]]


def _short(name: str) -> str:
    return "nodes" if name == BOUNDARY else name


def _interval(one: Quantity, write: Callable[[float], str]) -> str:
    return "-" if one["low"] is None else f"{write(one['low'])}..{write(one['high'])}"


def _figure(value: float, digits: int = 4) -> str:
    """A number with some significant digits, without exponent."""
    decimals = digits - 1 - math.floor(math.log10(value)) if value else 0
    return f"{value:.{max(decimals, 0)}f}"


# -- errors


def region_errors(document: Document) -> list[Block]:
    """Errors of the runtime by region; nothing where a single split says it all."""
    rows = [
        TableRow(label, texts(_errors(part["runtime"], 100.0)), depth)
        for label, depth, part in regions(document)
    ]
    return [TableBlock(heads(_ERROR_HEADS), tuple(rows), first="runtime, %")] if rows else []


def regions(document: Document) -> list[tuple[str, int, Quantity]]:
    """The regions with their names and depths: what is beyond in one way stands below its region.

    None where a single split says it all.
    """
    parts = document["regions"]
    if sum(part["runtime"]["splits"] for part in parts if part["beyond"] is None) < 2:
        return []
    dimensions = [part for part in parts if part["beyond"] is not None]
    found = []
    for part in parts:
        label, beyond = REGIONS.get(part["region"], "machine not measured"), part["beyond"]
        if len(dimensions) == 1:  # what the runs are beyond in, all of them
            if beyond is not None:
                continue
            if part["region"] == dimensions[0]["region"]:
                label += f" {_beyond(dimensions[0]['beyond'])}"
        elif beyond is not None:
            label = _beyond(beyond)
        found.append((label, int(beyond is not None), part))
    return found


def _beyond(name: str) -> str:
    return f"across a {name}" if name == BOUNDARY else f"in {name}"


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


def _number(value: float | None, factor: float) -> str:
    return "-" if value is None else f"{factor * value:.1f}"


def extrapolations(document: Document) -> list[Block]:
    """Errors of plain extrapolations of the same runs."""
    found = document["baselines"]
    if found is None:
        return []
    rows = []
    for one in found["errors"]:
        cells = [_number(one[name], 100.0) for name in ("median_error", "largest_error")]
        cells += [f"{100 * one['bias']:+.1f}", "-" if one["mase"] is None else f"{one['mase']:.2f}"]
        rows.append(TableRow(_EXTRAPOLATIONS[one["name"]], texts(cells)))
    seen = "from the runs of the fit" if found["declared"] else "each test from all others"
    columns = heads(("median", "largest", "bias", "MASE"))
    return [TableBlock(columns, tuple(rows), title=f"extrapolated, %: {seen}")]


def metric_errors(document: Document, families: Sequence[str]) -> list[Block]:
    """Errors of every metric of some families, in points."""
    found: list[Block] = []
    for family in families:
        known = load_families()[family]
        rows = [
            TableRow(known.metrics[one["metric"]].name, texts(_errors(one, 1.0)))
            for one in document["by_metric"]
            if one["family"] == family
        ]
        if rows:
            title = f"{known.title}, points"
            found.append(TableBlock(heads(_ERROR_HEADS), tuple(rows), title=title))
    return found


# -- whether the right split would have been chosen, and what usual defaults would have cost


def choices(document: Document) -> list[Block]:
    """A line for each number of cores of which several splits were measured."""
    decisions = document["decisions"]
    if not decisions:
        return []
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
            split_name(one["take"]),
            split_name(one["best"]),
            _loss(one["regret"]),
            _loss(one["announced"]),
            f"{len(one['tied'])} of {len(one['options'])}"
            + ("" if one["best"] in one["tied"] else " !"),
            "-" if one["rank_correlation"] is None else f"{one['rank_correlation']:+.2f}",
            *(_loss(losses.get(name)) for name in usual),
        ]
        rows.append(TableRow(" ".join([str(one["cores"]), *told]), texts(cells)))
    names = ("take", "fastest", "loss, %", "expected", "tied", "tau")
    columns = heads((*names, *(_DEFAULTS[name] for name in usual)))
    return [TableBlock(columns, tuple(rows), first="cores")]


def _loss(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


# -- terms: useful time and losses in seconds


def _terms(document: Document) -> list[Section]:
    """The terms of every split, and over all tests how large their errors are."""
    found: list[Section] = []
    if document["terms"]:
        found.append((_side_by_side(document["terms"], _terms_of),))
    if document["by_term"] and len(document["terms"]) > 1:
        found.append((term_errors(document["by_term"]),))
    return found


def term_errors(found: Sequence[Quantity]) -> TableBlock:
    """How large the errors of each term are, over all tests."""
    labels = {term.name: term.label for term in TERMS}
    rows = []
    for one in found:
        cells = [str(one["splits"])]
        cells += [f"{100 * one[key]:.1f}" for key in ("median_error", "largest_error")]
        rows.append(TableRow(labels[one["term"]], texts([*cells, f"{100 * one['bias']:+.1f}"])))
    return TableBlock(heads(("splits", "median", "largest", "bias")), tuple(rows), first="time")


def _terms_of(splits: Sequence[MeasuredSplit]) -> TableBlock:
    """The terms of some splits beside each other."""
    columns = _columns(splits)
    by_name = [{one["term"]: one for one in split["terms"]} for split in splits]
    rows = tuple(
        TableRow(
            term.label,
            texts(_time(one.get(term.name), column) for one in by_name for column in columns),
        )
        for term in TERMS
        if any(term.name in one for one in by_name)
    )
    return TableBlock(_above(splits, columns), rows, first="time, s")


def _time(one: Quantity | None, column: str) -> str:
    if one is None:
        return "-"
    if column == "90 %":
        return _interval(one, "{:.3g}".format)
    if column == "error":
        return f"{100 * one['error']:+.1f}"
    return f"{one['mean' if column == 'measured' else 'predicted']:.3g}"


# -- efficiencies


def _side_by_side(
    splits: Sequence[MeasuredSplit], table: Callable[[Sequence[MeasuredSplit]], TableBlock]
) -> FitBlock:
    """Tables of splits beside each other, as many as there is room for."""
    forms = []
    for number in range(len(splits), 0, -1):
        groups = (splits[first : first + number] for first in range(0, len(splits), number))
        forms.append(tuple((table(group),) for group in groups))
    return FitBlock(tuple(forms))


def _columns(splits: Sequence[MeasuredSplit]) -> list[str]:
    names = ["predicted", "90 %", "measured", "error"]
    if len(splits) > 1:
        names.remove("90 %")  # which splits beside each other have no room for
    return names


def _above(splits: Sequence[MeasuredSplit], columns: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Heads of columns below the splits that they are of."""
    differing = varied(splits)
    return tuple(
        (described(split, differing) if name == columns[0] else "", name)
        for split in splits
        for name in columns
    )


def _metrics(family: str, splits: Sequence[MeasuredSplit]) -> TableBlock:
    """Efficiencies of some splits in per cent: predicted, measured, and the difference."""
    known, columns = load_families()[family], _columns(splits)

    def cells(line: FamilyLine) -> tuple[TableCell, ...] | None:
        found = [split["metrics"][family].get(line.metric) for split in splits]
        if not any(found) or (line.view and not any(map(_has_loss, found))):
            return None
        return texts(_share(one, name) for one in found for name in columns)

    lines = (line for walk in known.tree() for line in walk.rows)
    rows = lifted(tree_rows(known, lines, cells))
    return TableBlock(_above(splits, columns), rows, first=known.title)


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


# -- remarks


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
        legend += [
            ("loss", "runtime of what is recommended (take) over that of the fastest, less 1"),
            ("tied", "splits predicted to be equally good; !: the fastest is not among them"),
        ]
    if document["baselines"] is not None:
        legend.append(("MASE", "size of the model's errors over that of this extrapolation's"))
    if any(split["runtime"]["low"] is not None for split in splits):
        noise = document["training"]["noise"] if document["training"] else 0.0
        more = f", and {percent(noise)} % from run to run" if noise else ""
        legend += [("90 %", f"{INCLUDED}{more}"), ("inside", "runs within this interval")]
    if document["terms"]:
        legend.append(("time", "its error is a part of the measured runtime, %"))
    if document["training"] is not None:
        meaning = "used in the fit, repeat of it (no tests), within its range, or what the test is "
        legend.append(("fit", f"{meaning}beyond it in"))
    shown = [
        one
        for split in splits
        for family in families
        for one in split["metrics"].get(family, {}).values()
    ]
    if any(map(is_outside, shown)):
        legend.append((_OUTSIDE.strip(), "measured outside the interval"))
    return legend


def is_outside(one: Mapping[str, Any]) -> bool:
    """Whether the interval misses the measured mean."""
    return one["low"] is not None and not one["low"] <= one["mean"] <= one["high"]
