"""Which regions of a run are worth tuning, and how their ranks differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from popmodel.base.units import format_time, plural
from popmodel.efficiency.verdict import SMALL, hides, region_gain, region_sentence
from popmodel.reports.html.contents import Contents
from popmodel.reports.html.section import Section
from popmodel.reports.names import run_names
from popmodel.reports.views import Document

FASTER = (0.1, 0.25, 0.5)
HEIGHT, BAR = 24, 6  #: of a histogram and of its bars, px


def section(contents: Contents) -> Section | None:
    """Regions of the runs whose dependence is known."""
    found = [one for one in contents.sensitivities if one["runtime"] and one["regions"]]
    if not found:
        return None
    names = run_names([one["trace"] for one in found])
    runs = [{"name": name, **_told(one)} for name, one in zip(names, found, strict=True)]
    return Section("regions", "Regions", {"runs": runs, "faster": FASTER, "height": HEIGHT})


def _told(document: Document) -> dict[str, Any]:
    runtime, rest = document["runtime"], document["other_regions"]
    return {
        "verdict": region_sentence(document),
        "rows": [_row(one, runtime) for one in document["regions"]],
        "rest": _rest(rest, runtime) if rest["regions"] else "",
    }


def _row(one: Mapping[str, Any], runtime: float) -> dict[str, Any]:
    slowest = one["slowest"]
    half = next(gain["runtime"] for gain in slowest["gain"] if gain["faster"] == FASTER[-1])
    return {
        "name": one["name"],
        "kind": one["kind"],
        "time": one["time"],
        "share": one["share"],
        "critical": one["critical"] / runtime,
        "gains": [_clean(region_gain(one, runtime, faster)) for faster in FASTER],
        "slowest": _clean(1 - half / runtime),
        "rank": slowest["rank"],
        "balanced": _clean(1 - one["balanced"] / runtime),
        "balance": one["balance"],
        "ranks": _histogram(one["ranks"]),
        "hides": hides(one, runtime),
    }


def _clean(gain: float) -> float:
    """Without what is printed as a nothing, and its sign."""
    return 0.0 if abs(gain) < SMALL else gain


def _histogram(ranks: Mapping[str, Any]) -> dict[str, Any]:
    """A histogram as one path of SVG, small for many ranks, and in words."""
    least, most, counts = ranks["least"], ranks["most"], ranks["counts"]
    width = (most - least) / len(counts) if counts else 0.0
    highest = max(counts, default=0)
    some = [(index, number) for index, number in enumerate(counts) if number]
    edges = [format_time(least + width * index) for index in range(len(counts) + 1)]
    return {
        "drawn": "".join(
            f"M{BAR * index} {HEIGHT}v-{HEIGHT * number / highest:.3g}h{BAR - 1}V{HEIGHT}z"
            for index, number in some
        ),
        "bins": [
            f"{plural(number, 'rank')}: {edges[index]} to {edges[index + 1]}"
            for index, number in some
        ],
        "width": max(BAR * len(counts), BAR),
        "least": least,
        "most": most,
        "told": f"{plural(sum(counts), 'rank')} from {format_time(least)} to {format_time(most)}",
        "without": plural(ranks["without"], "rank") if ranks["without"] else "",
    }


def _rest(rest: Mapping[str, Any], runtime: float) -> str:
    return (
        f"And {plural(rest['regions'], 'region')} more: together {100 * rest['share']:.1f} % of "
        f"the time, {100 * rest['critical'] / runtime:.1f} % of the critical path, which is the "
        "most they can gain."
    )
