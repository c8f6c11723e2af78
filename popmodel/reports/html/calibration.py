"""Calibrated signatures: how good they are, what the runs taught, what they leave open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from popmodel.base.units import format_time, plural
from popmodel.reports.calibration_tables import (
    KEEP,
    about,
    asked,
    next_command,
    no_next,
    ranged,
    taught,
    times_lacking,
)
from popmodel.reports.figures import percent
from popmodel.reports.heading import application
from popmodel.reports.html.contents import Contents
from popmodel.reports.html.drawings import legend
from popmodel.reports.html.ranges import PageScale, ratios
from popmodel.reports.html.section import Section
from popmodel.reports.pictures import Mark
from popmodel.reports.splits import described, name, varied
from popmodel.reports.views import Document

_LEGEND = (
    (Mark.MARKED, "all runs inside the interval"),
    (Mark.FIRST, "a run outside"),
)

Entry = Mapping[str, Any]


def section(contents: Contents) -> Section | None:
    """All calibrations."""
    found = [
        {**document["calibration"], "path": document["path"]}
        for document in contents.of("signature-from")
        if "calibration" in document
    ]
    if not found:
        return None
    shown = [_calibration(one, f"calibration-{n}") for n, one in enumerate(found)]
    return Section("calibration", "Calibration", {"calibrations": shown}, uses=("parts",))


def _calibration(document: Document, id: str) -> Mapping[str, Any]:
    return {
        "id": id,
        "title": f"{application(document)}, {plural(document['runs'], 'run')}",
        "facts": about(document),
        "warnings": document["warnings"],
        "verdict": document["verdict"],
        "legend": legend(_LEGEND),
        "left_out": _left_out(document["left_out"]),
        "constants": _constants(document["constants"]),
        "inputs": _inputs(taught(document["inputs"])),
        "identifiable": _identifiable(document["identifiable"]),
        "terms": times_lacking(document["terms"]),
        "suspects": _suspects(document["suspect_runs"]),
        "next": _next(document),
        "asked": asked(document),
        "no_next": no_next(document),
        "command": next_command(document),
        "keep": KEEP,
    }


def _left_out(left_out: Sequence[Entry]) -> Mapping[str, Any]:
    """Every configuration as the others predict it, over what was measured."""
    differing = varied(left_out)
    scale = ratios(
        one[key] / median(one["measured"])
        for one in left_out
        for key in ("value", "low", "high", "before")
    )
    rows = []
    for one in left_out:
        measured = median(one["measured"])
        value, low, high, before = (
            one[key] / measured for key in ("value", "low", "high", "before")
        )
        mark = Mark.MARKED if one["covered"] == len(one["measured"]) else Mark.FIRST
        rows.append(
            {
                "split": name(one),
                "processes": one["processes"],
                "parameters": [one["parameters"][key] for key in differing],
                "measured": (format_time(measured), measured),
                "predicted": (format_time(one["value"]), one["value"]),
                "interval": f"{format_time(one['low'], digits=3)} .. "
                f"{format_time(one['high'], digits=3)}",
                "plot": scale.drawn(value, low, high, mark, before),
                "error": (f"{100 * one['error']:+.1f} %", abs(one["error"])),
                "was": (f"{100 * one['error_before']:+.1f} %", abs(one["error_before"])),
                "inside": f"{one['covered']} of {len(one['measured'])}",
            }
        )
    return {"parameters": differing, "axis": scale.head, "rows": rows}


def _constants(constants: Mapping[str, Entry]) -> Mapping[str, Any] | None:
    """Numbers of the signature before and after, each over what the signature said."""
    return _compared(
        [
            (
                key,
                one["unit"],
                one["before"],
                one,
                one["learnt"],
            )
            for key, one in constants.items()
        ]
    )


def _inputs(inputs: Sequence[Entry]) -> Mapping[str, Any] | None:
    """What the runs taught of the machine and of the laws."""
    return _compared(
        [
            (
                one["name"] if one["label"] == one["name"] else f"{one['label']} ({one['name']})",
                one["unit"],
                one["before"],
                one["after"],
                one["learnt"],
            )
            for one in inputs
        ]
    )


def _compared(
    found: Sequence[tuple[str, str | None, Entry, Entry, float | None]],
) -> Mapping[str, Any] | None:
    """Values before and after on one axis: over the value of before."""
    if not found:
        return None
    scale = ratios(
        side[end] / before["value"]
        for _, _, before, after, _ in found
        if _comparable(before)
        for side in (before, after)
        for end in ("value", "low", "high")
        if side[end] is not None
    )
    return {
        "axis": scale.head,
        "rows": [
            {
                "name": key,
                "unit": "" if unit in (None, "", "1") else unit,
                "before": "-" if before["value"] is None else f"{before['value']:.4g}",
                "before_range": ranged(before),
                "after": f"{after['value']:.4g}" if after["value"] is not None else "not told",
                "after_range": ranged(after),
                "learnt": "-" if learnt is None else f"{percent(learnt, 0)} %",
                "plot": _change(before, after, scale),
            }
            for key, unit, before, after, learnt in found
        ],
    }


def _comparable(before: Entry) -> bool:
    """Whether what is known after can be shown over what was known before."""
    return before["value"] is not None and before["value"] > 0


def _change(before: Entry, after: Entry, scale: PageScale) -> Any:
    if after["value"] is None or not _comparable(before) or after["value"] <= 0:
        return ""
    ends = (after["low"], after["high"])
    low, high = (None if end is None or end <= 0 else end / before["value"] for end in ends)
    return scale.drawn(after["value"] / before["value"], low, high, Mark.MARKED)


def _identifiable(found: Entry) -> list[str]:
    """What the runs cannot tell, and what they tell against what was stated."""
    unknown = [one["label"] for one in found["inputs"] if not one["identifiable"]]
    outside = [one["label"] for one in found["inputs"] if one["at_bound"]]
    return [
        *([f"not told by the runs: {'; '.join(unknown)}"] if unknown else []),
        *(f"far outside of the interval that it had: {label}" for label in outside),
    ]


def _suspects(suspects: Sequence[Entry]) -> list[Mapping[str, Any]]:
    """Runs that do not fit the others."""
    if not suspects:
        return []
    differing = varied(suspects)
    return [
        {
            "run": described(one, differing),
            "source": one["source"] + ("" if one["line"] is None else f", line {one['line']}"),
            "runtime": format_time(one["runtime"]),
            "factor": f"{one['factor']:.2f} times",
            "probability": f"{percent(one['probability'], 0)} %",
        }
        for one in suspects
    ]


def _next(document: Document) -> list[Mapping[str, Any]]:
    """Runs that would narrow the answer, and what they cost."""
    runs = document["measure_next"]
    differing = varied([*runs, *document["left_out"]]) if runs else []
    return [
        {
            "run": described(one, differing),
            "narrows": f"-{percent(one['narrows'], 0)} %",
            "nodes": one["nodes"],
            "runtime": format_time(one["runtime"], digits=3),
            "cost": f"{one['core_seconds']:.3g}",
        }
        for one in runs
    ]
