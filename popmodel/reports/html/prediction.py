"""Predicted runs: how long they take, where the time goes, what would help, what is uncertain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from popmodel.base.units import format_time
from popmodel.model.symbols import OF_MODEL
from popmodel.model.uncertainty import group
from popmodel.reports.figures import percent
from popmodel.reports.heading import application
from popmodel.reports.html.contents import Contents
from popmodel.reports.html.ranges import linear
from popmodel.reports.html.section import Section
from popmodel.reports.prediction_tables import change, remarks, results, setting, sizes
from popmodel.reports.uncertainty import INCLUDED, about, how_to, main_inputs, named
from popmodel.reports.views import Document

_ELASTICITIES = 12  # inputs by which the runtime changes most


def section(contents: Contents) -> Section | None:
    """All predicted runs."""
    found = [one for one in contents.of("predict") if "projection" not in one]
    if not found:
        return None
    title = "Prediction" if len(found) == 1 else "Predictions"
    return Section("prediction", title, {"runs": [_run(one) for one in found]}, uses=("parts",))


def _run(document: Document) -> Mapping[str, Any]:
    to_measure = document["measure"]
    return {
        "title": f"{application(document)}, {sizes(document)[0]}",
        "results": results(document),
        "setting": setting(document),
        **_time(document),
        "remedies": _remedies(document),
        "uncertain": _uncertain(document),
        "measure": None
        if to_measure is None
        else {"how": how_to(to_measure, document["machine"]), "command": to_measure},
        "elasticities": _elasticities(document),
        "notes": remarks(document),
        "what": f"{document['processes']} x {document['threads']}",
        "launch": (document["launch"], document["launch_mpirun"]),
        "intervals": f"90 %: {INCLUDED}.",
    }


def _time(document: Document) -> Mapping[str, Any]:
    """The runtime and its parts, the largest first, each with a bar."""
    whole = document["runtime"]
    parts = sorted(document["time"].items(), key=lambda part: -part[1]["value"])
    rows = [("runtime", whole), *parts]
    values = [one[end] for _, one in rows for end in ("value", "high")]
    scale = linear(values, _brief, ends=(0.0, None))
    return {
        "axis": scale.head,
        "time": [
            {
                "name": label,
                "time": format_time(one["value"]),
                "share": f"{percent(one['value'] / whole['value'])} %",
                "interval": _interval(one),
                "bar": scale.bar(one["value"], one["low"], one["high"]),
                "is_whole": one is whole,
            }
            for label, one in rows
        ],
    }


def _brief(seconds: float) -> str:
    return format_time(seconds, digits=3, trim=True)


def _interval(one: Mapping[str, Any]) -> str:
    if one["low"] is None:
        return "-"
    return f"{format_time(one['low'], digits=3)} .. {format_time(one['high'], digits=3)}"


def _remedies(document: Document) -> Mapping[str, Any] | None:
    """Changes of program and machine, the one that helps most first."""
    found = document["remedies"]
    if not found:
        return None
    scale = linear([-one for one in found.values()], _gain, ends=(0.0, None))
    runtime = document["runtime"]["value"]
    return {
        "axis": scale.head,
        "rows": [
            {
                "name": label,
                "change": change(one),
                "saved": format_time(-one * runtime, digits=3),
                "bar": scale.bar(-one, None, None),
            }
            for label, one in found.items()
        ],
    }


def _gain(fraction: float) -> str:
    return f"{-100 * fraction:g} %" if fraction else "0 %"


def _uncertain(document: Document) -> Mapping[str, Any] | None:
    """What the width of the interval comes from: inputs by their share of the variance."""
    shares = document["doubtful"]
    if not shares:
        return None
    scale = linear(shares.values(), lambda one: f"{100 * one:g} %", ends=(0.0, 1.0))
    origins = {
        name: {value["origin"] for path, value in document["inputs"].items() if group(path) == name}
        - {OF_MODEL}
        for name in shares
    }
    first, _ = main_inputs(shares)
    return {
        "axis": scale.head,
        "rows": [
            {
                "name": named(name, share, origins[name]).rpartition(",")[0],
                "share": f"{percent(share, 0)} %",
                "bar": scale.bar(share, None, None),
            }
            for name, share in shares.items()
        ],
        "about": about(first),
    }


def _elasticities(document: Document) -> list[tuple[str, str]]:
    return [
        (
            one["label"],
            f"{one['value']:+.2f} %"
            if one["smooth"]
            else f"{one['falling']:+.2f} % .. {one['rising']:+.2f} %",
        )
        for one in document["elasticities"][:_ELASTICITIES]
    ]
