"""Predictions over measurements as a drawing: runtimes, their ratios, efficiencies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from popmodel.base.units import format_time, plural
from popmodel.efficiency.evaluation import TERMS_FAMILY as FAMILY
from popmodel.efficiency.hierarchy import load_families
from popmodel.reports.figures import ticks
from popmodel.reports.pictures import Chart, Charts, Mark, Picture, PictureAxis, PictureCurve, Spot
from popmodel.reports.splits import described, varied
from popmodel.reports.uncertainty import INCLUDED
from popmodel.reports.views import Document

Split = Mapping[str, Any]

_MARKS = {
    "calibration": (Mark.SQUARE, "used in the fit: no test"),
    "repetition": (Mark.FIRST, "repeats a configuration of the fit: no test"),
    "interpolation": (Mark.MARKED, "test within its range"),
    "extrapolation": (Mark.TRIANGLE, "test beyond the range of the fit"),
}
_TEST = (Mark.PLAIN, "test")
_ROOM = 0.06  # of an axis, at both ends


def picture(document: Document) -> Picture:
    """Runtimes on the diagonal, their ratios, and the efficiencies of the main family."""
    splits = document["splits"]
    charts = [_runtimes(splits), _ratios(splits)]
    if any(FAMILY in split["metrics"] for split in splits):
        charts.append(_efficiencies(splits))
    marks = {mark_of(split) for split in splits}
    legend = [one for one in (*_MARKS.values(), _TEST) if one in marks]
    return Picture(
        f"{document['application']} on {document['machine']}: predicted over measured",
        document["verdict"],
        Charts(charts, legend),
        [f"Bars, 90 %: {INCLUDED}. Dashed: exact."],
    )


def is_outside(one: Mapping[str, Any]) -> bool:
    """Whether the interval misses the measured mean."""
    return one["low"] is not None and not one["low"] <= one["mean"] <= one["high"]


def mark_of(split: Split) -> tuple[Mark, str]:
    """The mark of a configuration, and what it says of its part in a fit."""
    return _MARKS.get(split["region"], _TEST)


def _runtimes(splits: Sequence[Split]) -> Chart:
    """Predicted over measured runtime, both on logarithmic axes of the same range."""
    values = [value for split in splits for value in _ends(split["runtime"])]
    values += [split["runtime"]["mean"] for split in splits]
    low, high = _widened(math.log10(min(values)), math.log10(max(values)))
    marks = _log_ticks(low, high)
    differing = varied(splits)
    spots = [
        Spot(
            math.log10(time["mean"]),
            math.log10(time["predicted"]),
            "",
            _told(split, differing),
            mark_of(split)[0],
            *(None if time[end] is None else math.log10(time[end]) for end in ("low", "high")),
        )
        for split in splits
        for time in [split["runtime"]]
    ]
    return Chart(
        "runtime",
        "Runtime",
        PictureAxis("measured, s", low, high, marks),
        PictureAxis("predicted, s", low, high, marks),
        (PictureCurve(((low, low), (high, high)), exact=True),),
        _ordered(spots),
    )


def _ratios(splits: Sequence[Split]) -> Chart:
    """What is lost on axes over decades: predicted over measured, and which split it is."""
    differing = varied(splits)
    spots = []
    for split in splits:
        time = split["runtime"]
        mean = time["mean"]
        ends = (None if time[end] is None else time[end] / mean for end in ("low", "high"))
        at, ratio, name = math.log10(mean), time["predicted"] / mean, described(split, differing)
        spots.append(Spot(at, ratio, name, _told(split, differing), mark_of(split)[0], *ends))
    values = [1.0, *(value for spot in spots for value in _of(spot))]
    left, right = _widened(min(one.x for one in spots), max(one.x for one in spots))
    right += (right - left) / 10  # for the last name
    low, high = _widened(min(values), max(values))
    return Chart(
        "ratio",
        "Predicted over measured runtime: above 1 the prediction is too long",
        PictureAxis("measured, s", left, right, _log_ticks(left, right)),
        PictureAxis("ratio", low, high, tuple((tick, f"{tick:g}") for tick in ticks(low, high))),
        (PictureCurve(((left, 1.0), (right, 1.0)), exact=True),),
        _ordered(spots),
    )


def _efficiencies(splits: Sequence[Split]) -> Chart:
    names = load_families()[FAMILY].metrics
    differing = varied(splits)
    spots = [
        Spot(
            100 * one["mean"],
            100 * one["predicted"],
            "",
            f"{described(split, differing)}, {names[metric].name}: predicted "
            f"{100 * one['predicted']:.1f} %, measured {100 * one['mean']:.1f} %",
            mark_of(split)[0],
            *(None if one[end] is None else 100 * one[end] for end in ("low", "high")),
        )
        for split in splits
        for metric, one in split["metrics"].get(FAMILY, {}).items()
    ]
    values = [value for spot in spots for value in (spot.x, *_of(spot))]
    low, high = _widened(min(values), max(values))
    marks = tuple((tick, f"{tick:g}") for tick in ticks(low, high))
    return Chart(
        "efficiency",
        f"Efficiencies, {load_families()[FAMILY].title}",
        PictureAxis("measured, %", low, high, marks),
        PictureAxis("predicted, %", low, high, marks),
        (PictureCurve(((low, low), (high, high)), exact=True),),
        _ordered(spots),
    )


def _told(split: Split, differing: Sequence[str]) -> str:
    time = split["runtime"]
    text = (
        f"{described(split, differing)} ({plural(split['runs'], 'run')}): predicted "
        f"{format_time(time['predicted'])}, measured {format_time(time['mean'])}"
    )
    if time["low"] is not None:
        text += f", 90 %: {format_time(time['low'])} .. {format_time(time['high'])}"
    return text + (" (measured outside)" if is_outside(time) else "")


def _ends(one: Mapping[str, Any]) -> list[float]:
    return [one[end] for end in ("predicted", "low", "high") if one[end] is not None]


def _of(spot: Spot) -> list[float]:
    return [value for value in (spot.y, spot.low, spot.high) if value is not None]


def _ordered(spots: Sequence[Spot]) -> tuple[Spot, ...]:
    return tuple(sorted(spots, key=lambda one: one.x))


def _widened(low: float, high: float) -> tuple[float, float]:
    room = _ROOM * (high - low) or 0.1
    return low - room, high + room


def _log_ticks(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """Powers of ten, with twice and five times of them where there are few."""
    powers = range(math.floor(low), math.ceil(high) + 1)
    for steps in ((1,), (1, 2, 5), tuple(range(1, 10))):
        values = [step * 10.0**power for power in powers for step in steps]
        marks = tuple(
            (math.log10(one), f"{one:g}") for one in values if low <= math.log10(one) <= high
        )
        if len(marks) > 2:
            return marks
    return tuple((one, f"{10**one:.3g}") for one in (low, high))
