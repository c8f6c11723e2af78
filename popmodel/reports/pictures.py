"""Pictures for papers: a tree of efficiencies, a run over time, who sends to whom, splits, errors.

Each is a function from a document (or a timeline) to a figure of matplotlib, which is an extra and
imported only here; `popmodel.reports.renderers.svg` calls them and writes the figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.base.errors import PopmodelError
from popmodel.base.shell import visible
from popmodel.base.units import count, format_size, format_time, plural
from popmodel.efficiency.evaluation import TERMS_FAMILY
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.scaling import SCALING
from popmodel.network.network import PRESETS, describe
from popmodel.reports.figures import describe_team, label, percent, run_names
from popmodel.reports.palette import KIND_COLOURS, LEVELS, shade
from popmodel.reports.prediction_words import application, described, split_name, varied
from popmodel.reports.views import Document
from popmodel.timeline.lanes import KINDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from popmodel.timeline.lanes import Lanes
    from popmodel.timeline.timeline import Timeline

ROWS, COLUMNS = 64, 760
"""Lanes and steps that a picture of a run over time has room for."""
_MARKS = {"calibration": "s", "repetition": "s", "interpolation": "o", "extrapolation": "^"}
_MEANINGS = {
    "s": "used in the fit: no test",
    "o": "test",
    "^": "test beyond the range of the fit",
}
_CELLS = 128
"""Rows of a matrix at most."""
_TAKEN, _OTHERS = "#d55e00", "#0072b2"


def _axes(width: float, height: float, columns: int = 1, rows: int = 1) -> tuple[Figure, Any]:
    """A figure, inches, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure((width, height))
    return figure, figure.subplots(rows, columns)


def efficiency_tree(document: Document) -> Figure:
    """Efficiencies as a heat map: a line for each metric, a column for each run."""
    from matplotlib.patches import Rectangle

    runs = document["runs"]
    names = run_names([run["trace"] for run in runs])
    shown = [id for id in runs[0]["metrics"] if id != SCALING or len(runs) > 1]
    rows: list[tuple[str, str, str]] = []  # label, family and metric; a heading has no metric
    for id in shown:
        family = load_families()[id]
        rows += [(family.title, id, "")] if len(shown) > 1 else []
        rows += [
            ("  " * line.depth + label(family, line), id, line.metric)
            for line in family.tree()[0].rows
            if any(line.metric in run["metrics"][id] for run in runs)
        ]
    if not rows:
        raise PopmodelError("no efficiencies to draw", "a single run has no scaling")
    widest = max(len(text) for text, _, _ in rows)
    figure, axes = _axes(0.075 * widest + 1.2 * len(runs) + 0.4, 0.22 * (len(rows) + 5))
    for y, (_, id, metric) in enumerate(rows):
        for x, run in enumerate(runs):
            value = run["metrics"][id].get(metric)
            if value is None:
                axes.text(x + 0.5, y + 0.5, "-" if metric else "", ha="center", va="center")
                continue
            colour = shade(value) if id != SCALING else None
            if colour:
                axes.add_patch(Rectangle((x, y), 1, 1, facecolor=colour.paper, edgecolor="white"))
            is_worst = run["lowest"].get(id, {}).get("metric") == metric
            text = percent(value) if colour else f"{value:.3f}"
            axes.text(
                x + 0.5,
                y + 0.5,
                f"\N{BLACK RIGHT-POINTING TRIANGLE} {text}" if is_worst else text,
                color=colour.ink if colour else "black",
                ha="center",
                va="center",
            )
    axes.set(xlim=(0, len(runs)), ylim=(len(rows), 0))
    heads = [
        f"{name}\n{run['processes']} x {describe_team(run['threads'])}, "
        f"{format_time(run['runtime'])}"
        for name, run in zip(names, runs, strict=True)
    ]
    axes.set_xticks([x + 0.5 for x in range(len(runs))], heads)
    axes.set_yticks([y + 0.5 for y in range(len(rows))], [text for text, _, _ in rows], ha="left")
    axes.tick_params(length=0, top=False, labeltop=True, labelbottom=False)
    axes.tick_params(axis="y", pad=4.6 * widest)
    axes.spines[:].set_visible(False)
    figure.suptitle("Efficiencies, %; the triangle marks where a run loses most")
    return figure


def run_timeline(timeline: Timeline) -> Figure:
    """What every thread does over time, measured above replayed on the ideal network."""
    panels = [("Measured", timeline.measured, timeline.begin)]
    if timeline.ideal is not None and timeline.ideal_end is not None:
        time = format_time(timeline.ideal_end / 1e9)
        panels.append((f"Replayed: {describe(PRESETS['ideal'])}, {time}", timeline.ideal, 0))
    count = len(timeline.labels)
    height = min(0.18 * count + 0.8, 4.0)
    figure, found = _axes(9, height * len(panels) + 0.9, rows=len(panels))
    drawn: set[int] = set()
    for axes, (title, lanes, begin) in zip(np.atleast_1d(found), panels, strict=True):
        length = (timeline.axis.end - timeline.axis.begin) / 1e9
        drawn |= _lanes(axes, lanes, begin / 1e9, length)
        step = max(1, count // 16)
        axes.set_yticks([at + 0.5 for at in range(0, count, step)], timeline.labels[::step])
        axes.set_title(title, loc="left")
        if timeline.marks is not None and lanes is timeline.measured:
            begins = (timeline.marks.at / 1e9).tolist()
            axes.vlines(begins, -0.4, 0, colors="black", linewidth=0.5, clip_on=False)
    axes.set_xlabel("time, s")
    handles = [_patch(KIND_COLOURS[KINDS[kind].id]) for kind in sorted(drawn)]
    labels = [KINDS[kind].label for kind in sorted(drawn)]
    figure.legend(handles, labels, loc="outside right upper", frameon=False)
    why = f"; no ideal replay: {timeline.why_no_ideal}" if len(panels) == 1 else ""
    shared = f"; {timeline.rows.shared}" if timeline.rows.shared else ""
    figure.suptitle(f"{visible(timeline.trace)}: a run over time{shared}{why}")
    return figure


def _patch(colour: str) -> Any:
    from matplotlib.patches import Patch

    return Patch(facecolor=colour)


def _lanes(axes: Axes, lanes: Lanes, begin: float, length: float) -> set[int]:
    """Draw lanes, one shape for each kind, and return which kinds there are."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    rows, columns = lanes.kind.shape
    drawn = set(np.unique(lanes.kind).tolist()) - {0}
    for kind in sorted(drawn):
        edges = np.diff(np.pad(lanes.kind == kind, ((0, 0), (1, 1))).astype(np.int8), axis=1)
        row, first = np.nonzero(edges == 1)
        last = np.nonzero(edges == -1)[1]
        left, right = (begin + length * at / columns for at in (first, last))
        corners = np.empty((len(row), 5, 2))
        corners[:, :, 0] = np.stack([left, right, right, left, left], axis=1)
        corners[:, :, 1] = row[:, None] + np.array([0.05, 0.05, 0.95, 0.95, 0.05])
        codes = np.tile([Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY], len(row))
        shape = PathPatch(Path(corners.reshape(-1, 2), codes))
        shape.set(facecolor=KIND_COLOURS[KINDS[kind].id], linewidth=0)
        axes.add_patch(shape)
    axes.set(xlim=(begin, begin + length), ylim=(rows, 0))
    return drawn


def communication_matrix(document: Document) -> Figure:
    """Bytes, or messages where all are empty, from rank to rank."""
    from matplotlib.colors import ListedColormap, LogNorm

    pairs, processes = document["pairs"], document["processes"]
    quantity = "bytes" if document["bytes"] else "messages"
    # Neighbouring ranks are taken together, as the document does, so that cells can be seen.
    each = document["ranks_together"]
    each *= -(-processes // (each * _CELLS))
    rows = -(-processes // each)
    matrix = np.zeros((rows, rows))
    ends = (np.array(pairs[end], dtype=int) // each for end in ("from", "to"))
    np.add.at(matrix, tuple(ends), pairs[quantity])
    figure, axes = _axes(5.2, 4.4)
    ramp = ListedColormap([shade(level / 100).paper for level in reversed(LEVELS)])
    shown = np.ma.masked_equal(matrix, 0)
    mesh = axes.pcolormesh(shown, cmap=ramp, norm=LogNorm() if matrix.any() else None)
    axes.set(xlabel="receiving rank", ylabel="sending rank", aspect="equal", ylim=(rows, 0))
    firsts = range(0, rows, max(1, rows // 16))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks([row + 0.5 for row in firsts], [str(row * each) for row in firsts])
    if matrix.any():
        written = format_size if quantity == "bytes" else count
        least, most = float(matrix[matrix > 0].min()), float(matrix.max())
        ticks = sorted(set(np.geomspace(least, most, 5).round().tolist()))
        bar = figure.colorbar(mesh, label=quantity, ticks=ticks)
        bar.set_ticks(ticks, labels=[written(int(at)) for at in ticks], minor=False)
        bar.minorticks_off()
    size = f", {format_size(document['bytes'])}" if document["bytes"] else ""
    size += f"; a cell: {each} x {each} ranks" if each > 1 else ""
    figure.suptitle(f"{plural(document['messages'], 'message')}{size} from rank to rank")
    return figure


def split_runtimes(document: Document) -> Figure:
    """Runtime and parallel efficiency of each split of some cores, with intervals."""
    choices = document["choices"]
    figure, found = _axes(8, 2.6 * len(choices) + 0.4, columns=2, rows=len(choices))
    for row, choice in zip(np.atleast_2d(found), choices, strict=True):
        splits = [
            one
            for one in sorted(document["candidates"], key=lambda one: -one["processes"])
            if one["cores"] == choice["cores"]
        ]
        colours = [
            _TAKEN if [one["processes"], one["threads"]] == list(choice["take"]) else _OTHERS
            for one in splits
        ]
        for axes, key, title, factor in (
            (row[0], "runtime", "runtime, s", 1.0),
            (row[1], "parallel_efficiency", "parallel efficiency, %", 100.0),
        ):
            places = range(len(splits))
            _points(axes, places, [one[key] for one in splits], colours, factor=factor)
            axes.set_xticks(places, [split_name(one) for one in splits])
            axes.set_ylabel(title)
            axes.set_title(f"{choice['cores']} cores", loc="left")
    for axes in np.atleast_2d(found)[-1]:
        axes.set_xlabel("processes x threads; orange: recommended")
    figure.suptitle(f"{application(document)} on {document['machine']['name']}; bars: 90 %")
    return figure


def _points(
    axes: Axes,
    places: Iterable[float],
    values: Sequence[Mapping[str, Any]],
    colours: Sequence[str],
    marks: Sequence[str] | None = None,
    *,
    value: str = "value",
    factor: float = 1.0,
) -> None:
    """Draw estimates with their intervals where they have one."""
    for at, one, colour, mark in zip(
        places, values, colours, marks or ["o"] * len(values), strict=True
    ):
        middle = factor * one[value]
        ends = None
        if one["low"] is not None and one["high"] is not None:
            below, above = middle - factor * one["low"], factor * one["high"] - middle
            ends = [[max(below, 0.0)], [max(above, 0.0)]]
        axes.errorbar([at], [middle], yerr=ends, fmt=mark, color=colour, capsize=3)


def predicted_and_measured(document: Document) -> Figure:
    """Predicted over measured runtimes, and efficiencies, of all configurations."""
    splits = document["splits"]
    having = [split for split in splits if split["metrics"].get(TERMS_FAMILY)]
    figure, found = _axes(4.6 if not having else 9, 4.4, columns=1 + bool(having))
    panels = list(np.atleast_1d(found))
    marks = [_MARKS.get(split["region"], "o") for split in splits]
    times = [split["runtime"] for split in splits]
    colours = [_OTHERS] * len(splits)
    means = [time["mean"] for time in times]
    _points(panels[0], means, times, colours, marks, value="predicted")
    panels[0].set(xscale="log", yscale="log", xlabel="measured, s", ylabel="predicted, s")
    for axis in (panels[0].xaxis, panels[0].yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("{x:g}")
    differing = varied(splits)
    for split, mean in zip(splits, means, strict=True):
        place = mean, split["runtime"]["predicted"]
        panels[0].annotate(described(split, differing), place, (4, -9), textcoords="offset points")
    if having:
        pairs = [
            (one, mark)
            for split, mark in zip(splits, marks, strict=True)
            for one in split["metrics"].get(TERMS_FAMILY, {}).values()
        ]
        values = [one for one, _ in pairs]
        places = [100 * one["mean"] for one in values]
        some = [mark for _, mark in pairs]
        blue = [_OTHERS] * len(values)
        _points(panels[1], places, values, blue, some, value="predicted", factor=100)
        title = load_families()[TERMS_FAMILY].title
        panels[1].set(xlabel=f"measured, %: {title}", ylabel="predicted, %")
    for axes in panels:
        axes.axline(*_diagonal(axes), color="black", linestyle="--", linewidth=0.8)
    told = {mark: _MEANINGS[mark] for mark in marks}
    handles = [_mark(mark) for mark in told]
    panels[0].legend(handles, list(told.values()), loc="upper left", frameon=False)
    figure.suptitle(f"{document['application']} on {document['machine']}; bars: 90 %")
    return figure


def _diagonal(axes: Axes) -> tuple[tuple[float, float], tuple[float, float]]:
    low, high = axes.get_xlim()
    return (low, low), (high, high)


def _mark(mark: str) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], marker=mark, linestyle="", color=_OTHERS)
