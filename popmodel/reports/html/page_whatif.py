"""What another network or another CPU would change: sliders, evaluated from planes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from popmodel.base.units import format_time
from popmodel.network.network import PRESETS, describe
from popmodel.reports.figures import run_names
from popmodel.reports.html.contents import Contents, Section
from popmodel.reports.scenario_tables import properties
from popmodel.reports.sensitivity_tables import conclusion
from popmodel.reports.views import Document

EFFICIENCIES = (
    ("Parallel efficiency", "mean", "runtime", 0),
    ("Load balance", "mean", "longest", 1),
    ("Communication efficiency", "longest", "runtime", 1),
    ("Serialisation efficiency", "longest", "ideal", 2),
    ("Transfer efficiency", "ideal", "runtime", 2),
)
"""Name, the times whose quotient it is, and how deep it stands in the tree."""
PARTS = ("computing", "latency", "bandwidth", "other")

_UNLIKE = 0.1  # of the replay: another time than the measured one


def section(contents: Contents) -> Section | None:
    """What the runs depend on, and replays of them on other networks."""
    found = [one for one in contents.sensitivities if one["runtime"]]
    if not found:
        return None
    names = run_names([one["trace"] for one in found])
    return Section(
        "whatif",
        "What if",
        {
            "runs": [{"name": name, **_told(one)} for name, one in zip(names, found, strict=True)],
            "live": PARTS,
            "slower": ", ".join(f"{100 * one['slowdown']:g}" for one in found[0]["tolerance"]),
            "efficiencies": EFFICIENCIES,
        },
        {
            "runs": [_of_script(one) for one in found],
            "run": max(
                range(len(found)), key=lambda n: (found[n]["processes"], found[n]["runtime"])
            ),
            "efficiencies": [row[:3] for row in EFFICIENCIES],
        },
    )


def _told(document: Document) -> dict[str, Any]:
    """What the template shows of a run."""
    network = document["network"]
    return {
        "conclusion": conclusion(document),
        "network": f"{network['name']}: {', '.join(properties(network, ()))}",
        "measured": _measured(document),
        "presets": list(_presets(document)),
    }


def _times(document: Document) -> dict[str, float]:
    """The times that efficiencies are quotients of, s."""
    scenarios = {one["name"]: one["runtime"] for one in document["scenarios"]}
    return {
        "runtime": document["runtime"],
        "ideal": document["ideal_runtime"],
        "longest": scenarios["no waiting"],
        "mean": scenarios["all ideal"],
    }


def _measured(document: Document) -> str:
    """How far the replay is from the run that was measured."""
    measured, runtime = document["measured_runtime"], document["runtime"]
    if measured is None:
        return f"The replay takes {format_time(runtime)}; the trace has no measured times."
    apart = measured / runtime - 1
    told = (
        f"The measured run took {format_time(measured)}, its replay on this network takes "
        f"{format_time(runtime)} ({100 * (runtime / measured - 1):+.1f} %)"
    )
    if abs(apart) <= _UNLIKE:
        return f"{told}."
    return f"{told}: read changes rather than times."


def _of_script(document: Document) -> dict[str, Any]:
    """What the script needs to evaluate a run anywhere."""
    network, speed = document["network"], document["planes_speed"]
    latencies, gaps = _ranges(document)
    return {
        "planes": [
            [one["constant"], one["latency"], one["inverse_bandwidth"], one["computing"]]
            for one in document["planes"]
        ],
        "error": document["planes_error"],
        "times": _times(document),
        # JSON knows no infinity: null is a bandwidth without limit
        "here": {"latency": network["latency"], "bandwidth": network["bandwidth"], "speed": 1.0},
        "range": {
            "latency": latencies,
            "bandwidth": [1 / gap if gap else None for gap in reversed(gaps)],
            "speed": [speed["least"], speed["most"]],
        },
    }


def _ranges(document: Document) -> tuple[tuple[float, float], tuple[float, float]]:
    """Latencies, s, and times per byte, s/B, for which the planes hold: with the network itself."""
    network = document["network"]
    return (
        _hull(document["latency"]["breakpoints"], network["latency"]),
        _hull(document["inverse_bandwidth"]["breakpoints"], 1 / (network["bandwidth"] or math.inf)),
    )


def _hull(points: Sequence[float], value: float) -> tuple[float, float]:
    return min(points[0], value), max(points[-1], value)


def _presets(document: Document) -> Iterator[dict[str, Any]]:
    """Latency and bandwidth of known networks, where they are in the ranges."""
    latencies, gaps = _ranges(document)
    for name, network in PRESETS.items():
        if (
            latencies[0] <= network.latency <= latencies[-1]
            and gaps[0] <= 1 / network.bandwidth <= gaps[-1]
        ):
            yield {
                "name": name,
                "told": describe(network.with_(rules="alpha-beta")),
                "value": f"{network.latency!r} {network.bandwidth!r}".replace("inf", "Infinity"),
            }
