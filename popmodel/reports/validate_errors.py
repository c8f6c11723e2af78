"""How predictions went: errors by region, beside plain extrapolations, and by metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from popmodel.efficiency.hierarchy import load_families
from popmodel.reports.blocks import Block, TableBlock, TableRow, heads, texts
from popmodel.reports.figures import percent
from popmodel.reports.views import Document
from popmodel.validation.comparison import BOUNDARY

Errors = Mapping[str, Any]

WORDS = {
    "calibration": "used in the fit",
    "repetition": "repeats of the fit",
    "interpolation": "interpolation",
    "extrapolation": "extrapolation",
    "inside": "inside the profile",
    "extrapolated": "beyond the profile",
    "outside": "far beyond it",
}
"""What people call a region; the profile is what was measured of the machine."""
_HEADS = ("splits", "median", "largest", "bias", "inside", "its 90 %", "width")
_NOT_MEASURED = "machine not measured"
_NAMES = {
    "model": "the model",
    "nearest": "nearest run",
    "linear": "ideal scaling",
    "amdahl": "Amdahl",
    "pipe": "pipe",
    "normal-form": "normal form",
}


def region_errors(document: Document) -> list[Block]:
    """Errors of the runtime by region; nothing where a single split says it all."""
    rows = [
        TableRow(label, texts(_errors(part["runtime"], 100.0)), depth)
        for label, depth, part in regions(document)
    ]
    return [TableBlock(heads(_HEADS), tuple(rows), first="runtime, %")] if rows else []


def regions(document: Document) -> list[tuple[str, int, Errors]]:
    """The regions with their names and depths: what is beyond in one way stands below its region.

    None where a single split says it all.
    """
    parts = document["regions"]
    if sum(part["runtime"]["splits"] for part in parts if part["beyond"] is None) < 2:
        return []
    dimensions = [part for part in parts if part["beyond"] is not None]
    found = []
    for part in parts:
        label, beyond = WORDS.get(part["region"], _NOT_MEASURED), part["beyond"]
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


def _errors(one: Errors, factor: float) -> list[str]:
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


def beside(document: Document) -> list[Block]:
    """Errors of plain extrapolations of the same runs."""
    found = document["baselines"]
    if found is None:
        return []
    rows = []
    for one in found["errors"]:
        cells = [_number(one[name], 100.0) for name in ("median_error", "largest_error")]
        cells += [f"{100 * one['bias']:+.1f}", "-" if one["mase"] is None else f"{one['mase']:.2f}"]
        rows.append(TableRow(_NAMES[one["name"]], texts(cells)))
    seen = "from the runs of the fit" if found["declared"] else "each test from all others"
    return [
        TableBlock(
            heads(("median", "largest", "bias", "MASE")),
            tuple(rows),
            title=f"extrapolated, %: {seen}",
        )
    ]


def metric_errors(document: Document, families: Sequence[str]) -> list[Block]:
    """Errors of every metric of some families, in points."""
    found: list[Block] = []
    for family in families:
        mine = [one for one in document["by_metric"] if one["family"] == family]
        if not mine:
            continue
        known = load_families()[family]
        rows = [
            TableRow(known.metrics[one["metric"]].name, texts(_errors(one, 1.0))) for one in mine
        ]
        found.append(TableBlock(heads(_HEADS), tuple(rows), title=f"{known.title}, points"))
    return found
