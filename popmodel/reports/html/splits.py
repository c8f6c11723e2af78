"""Splits of cores into processes and threads: which to take, why, and how to launch it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from popmodel.base.units import format_size, format_time, plural
from popmodel.efficiency.evaluation import TERMS_FAMILY as FAMILY
from popmodel.efficiency.hierarchy import load_families
from popmodel.prediction.prediction import EXTRAPOLATED, OUTSIDE
from popmodel.reports.blocks import TableBlock, TableCell, TableRow
from popmodel.reports.figures import percent
from popmodel.reports.heading import application
from popmodel.reports.html.contents import Contents
from popmodel.reports.html.drawings import WIDE, PageFigures, figures, legend
from popmodel.reports.html.ranges import PageScale, linear, round_numbers
from popmodel.reports.html.section import Section
from popmodel.reports.html.shares import shares
from popmodel.reports.pictures import Chart, Charts, Mark, PictureAxis, PictureCurve, Spot
from popmodel.reports.renderers.html import html
from popmodel.reports.split_tables import (
    advice,
    command,
    cores,
    facts,
    growth,
    if_sure,
    is_sure,
    percentage,
)
from popmodel.reports.splits import Entry, name, ordered, runs
from popmodel.reports.splits import cores as cores_of
from popmodel.reports.sweep_plot import split_marks
from popmodel.reports.trees import lifted, tree_rows
from popmodel.reports.uncertainty import INCLUDED, how_to
from popmodel.reports.views import Document

_MEANINGS = {
    Mark.FIRST: "recommended",
    Mark.MARKED: "equally good: within 2 % of the best with a probability above 10 %",
    Mark.PLAIN: "other splits",
}
_UNSURE = "fastest, not recommended for sure"
_ROOM = 0.06  # of an axis, at both ends


def section(contents: Contents) -> Section | None:
    """The splits of all sweeps and studies."""
    found = [one for one in contents.of("splits") if "projection" not in one]
    if not found:
        return None
    return Section(
        "splits",
        "Splits into processes and threads",
        {"sweeps": [_sweep(one, f"splits-{n}") for n, one in enumerate(found)]},
        uses=("parts",),
    )


def _sweep(document: Document, id: str) -> Mapping[str, Any]:
    return {
        "title": f"{application(document)} on {cores(document)}",
        "facts": facts(document),
        "growth": [growth(one) for one in document["growth"]],
        "overview": _overview(document, id),
        "choices": [
            _choice(choice, document, f"{id}-{choice['cores']}") for choice in document["choices"]
        ],
        "impossible": [
            {"cores": plural(one["cores"], "core"), "why": one["why"], "hint": one["hint"]}
            for one in document["impossible"]
        ],
        "intervals": f"90 %: {INCLUDED}. Much of that is common to all splits, which are compared "
        f"draw by draw ({document['draws']} draws): intervals that overlap do not make splits "
        "equal. The axis of the runtime does not start at 0.",
    }


def _choice(choice: Entry, document: Document, id: str) -> Mapping[str, Any]:
    """All that is shown of one number of cores."""
    mine = [one for one in ordered(document) if cores_of(one) == choice["cores"]]
    splits = [one for one in mine if "why" not in one]
    marks = split_marks(choice, document)
    times = [one["runtime"] for one in splits]
    scale = linear(
        [one[end] for one in times for end in ("value", "low", "high")],
        lambda value: format_time(value, trim=True),
    )
    told = [(key, text) for key, text in advice(choice, document) if key != "cores"]
    to_measure, sure = command(choice), is_sure(choice, document)
    return {
        "id": id,
        "cores": plural(choice["cores"], "core"),
        "lead": told[0][1],
        "advice": told[1:],
        "axis": scale.head,
        "legend": legend(
            [
                (mark, meaning if sure or mark is not Mark.FIRST else _UNSURE)
                for mark, meaning in _MEANINGS.items()
                if mark in _used(splits, marks)
            ]
        ),
        "rows": [_row(one, scale, choice, marks, document) for one in splits],
        "refused": [
            (name(one) + ("" if last is one else f" .. {name(last)}"), one["why"])
            for one, last in runs(mine)
            if "why" in one
        ],
        "has_memory": any(one["memory_per_process"] is not None for one in splits),
        "shares": shares([(name(one), _time(one)) for one in splits if _time(one)]),
        "efficiencies": _efficiencies([one for one in splits if "breakdown" in one]),
        "measure": None
        if to_measure is None
        else {"how": how_to(to_measure, document["machine"]), "command": to_measure},
        "take": name(choice["take"]),
        "launch": (choice["launch"], choice["launch_mpirun"]),
        "others": [
            {"split": name(one), "launch": (one["launch"], one["launch_mpirun"])}
            for one in splits
            if "launch" in one and _pair(one) != tuple(choice["take"])
        ],
    }


def _pair(one: Entry) -> tuple[int, int]:
    return one["processes"], one["threads"]


def _used(splits: Sequence[Entry], marks: Mapping[tuple[int, int], Mark]) -> set[Mark]:
    return {marks.get(_pair(one), Mark.PLAIN) for one in splits}


def _row(
    one: Entry,
    scale: PageScale,
    choice: Entry,
    marks: Mapping[tuple[int, int], Mark],
    document: Document,
) -> Mapping[str, Any]:
    """The figures of a split: what is shown of each, and by what it is sorted."""
    time, efficiency, memory = (
        one[key] for key in ("runtime", "parallel_efficiency", "memory_per_process")
    )
    mark, regret = marks.get(_pair(one), Mark.PLAIN), if_sure(one, "regret", document)
    return {
        "split": name(one),
        "processes": one["processes"],
        "is_taken": mark is Mark.FIRST,
        "plot": scale.drawn(time["value"], time["low"], time["high"], mark),
        "cells": [
            (format_time(time["value"]), time["value"]),
            (_interval(time), time["low"]),
            (f"{percent(efficiency['value'])} %", efficiency["value"]),
        ],
        "chances": [
            (percentage(sure), sure)
            for key in ("probability_best", "probability_tied")
            for sure in [if_sure(one, key, document)]
        ],
        "loss": (_loss(regret), regret),
        "memory": ("-" if memory is None else format_size(memory, digits=3), memory),
        "remark": "; ".join(_remarks(one, choice, mark, sure=is_sure(choice, document))),
    }


def _interval(time: Entry) -> str:
    if time["low"] is None:
        return "-"
    return f"{format_time(time['low'], digits=3)} .. {format_time(time['high'], digits=3)}"


def _loss(fraction: float | None) -> str:
    return "-" if fraction is None else f"{percent(fraction)} %"


def _remarks(one: Entry, choice: Entry, mark: Mark, *, sure: bool) -> list[str]:
    """What a reader should know of a split, in words."""
    texts = []
    if mark is Mark.FIRST:
        texts.append("recommended" if sure else _UNSURE)
    elif mark is Mark.MARKED:
        texts.append("equally good")
    texts += [
        default["name"] for default in choice["defaults"] if tuple(default["split"]) == _pair(one)
    ]
    reasons = {tuple(other["split"]): other["why"] for other in choice["checked"]["not_replayed"]}
    if one["regret"] is None:
        texts.append(f"closed form, not compared with replays: {reasons[_pair(one)]}")
    status, told = one["validity"]["status"], one["validity"]["reasons"]
    if status == EXTRAPOLATED:
        texts.append(f"extrapolated: {told[0]}")
    elif status == OUTSIDE:
        texts.append(f"too far outside the measured range for an interval: {told[0]}")
    return texts


def _time(one: Entry) -> Mapping[str, float]:
    """Parts of the runtime; of older documents nothing is known."""
    found: Mapping[str, float] = one.get("breakdown", {}).get("time", {})
    return found


def _efficiencies(splits: Sequence[Entry]) -> Markup:
    """Efficiencies of all splits beside each other."""
    if not splits:
        return Markup("")
    family = load_families()[FAMILY]
    found = [one["breakdown"]["metrics"] for one in splits]

    def cells(line: Any) -> list[TableCell] | None:
        values = [metrics.get(line.metric) for metrics in found]
        if line.view or all(value is None for value in values):
            return None
        return [TableCell("-" if value is None else percent(value), value) for value in values]

    rows: tuple[TableRow, ...] = tree_rows(
        family, (line for walk in family.tree() for line in walk.rows), cells
    )
    heads = tuple((name(one),) for one in splits)
    return html([(TableBlock(heads, lifted(rows), first=f"{family.title}, %"),)])


# -- runtime over cores


def _overview(document: Document, id: str) -> PageFigures | None:
    """The recommended splits over the cores, beside what ideal scaling would give."""
    by_split = {_pair(one): one for one in document["candidates"]}
    taken = [by_split[tuple(choice["take"])] for choice in document["choices"]]
    if len(taken) < 2:
        return None
    times = [one["runtime"] for one in taken]
    counts = [one["cores"] for one in taken]
    ideal = [times[0]["value"] * counts[0] / number for number in counts]
    values = [one[end] for one in times for end in ("value", "low", "high") if one[end]]
    x = _logarithmic("cores", counts, {number: f"{number}" for number in counts})
    times_shown = [*values, *ideal]
    round_times = round_numbers(min(times_shown), max(times_shown))
    y = _logarithmic(
        "runtime", times_shown, {one: format_time(one, trim=True) for one in round_times}
    )
    places = [math.log(number) for number in counts]
    chart = Chart(
        "cores",
        "Runtime of the recommended split",
        x,
        y,
        (
            PictureCurve(tuple(zip(places, map(math.log, ideal), strict=True)), exact=True),
            PictureCurve(
                tuple((at, math.log(t["value"])) for at, t in zip(places, times, strict=True))
            ),
        ),
        tuple(
            Spot(
                at,
                math.log(time["value"]),
                "",  # a falling curve has no room for a name below it
                f"{plural(one['cores'], 'core')}, {name(one)}: {format_time(time['value'])}",
                Mark.FIRST,
                *(None if time[end] is None else math.log(time[end]) for end in ("low", "high")),
            )
            for at, one, time in zip(places, taken, times, strict=True)
        ),
    )
    return figures(Charts((chart,)), id, WIDE)


def _logarithmic(title: str, values: Sequence[float], marks: Mapping[float, str]) -> PictureAxis:
    low, high = math.log(min(values)), math.log(max(values))
    room = _ROOM * (high - low) or 0.1
    ticks = tuple((math.log(value), text) for value, text in marks.items())
    return PictureAxis(title, low - room, high + room, ticks)
