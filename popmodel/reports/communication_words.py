"""Patterns of communication in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from popmodel.base.units import count, format_size
from popmodel.reports.views import Document

_OFFSETS = 4
"""Offsets of partners that are named."""


def grid_text(document: Document) -> str:
    """The grids of the ranks, and what is uncertain about them."""
    note = document["grid_note"]
    found = [f"{_grid(grid)}, {_share(grid['share'])} of the bytes" for grid in document["grids"]]
    if not found:
        return f"none: {note}"
    return "; then ".join(found) + (f" ({note})" if note else "")


def _share(share: float) -> str:
    return f"{100 * share:.0f} %" if share > 0.995 else f"{100 * share:.2g} %"


def _dims(dims: list[int]) -> str:
    return " x ".join(map(str, dims))


def _grid(facts: Mapping[str, Any]) -> str:
    """A grid: ``4 x 4 periodic``, ``16 in a ring``."""
    if len(facts["dims"]) == 1:
        return f"{facts['dims'][0]} in a {'ring' if facts['periodic'][0] else 'line'}"
    return f"{_dims(facts['dims'])}{_around(facts['periodic'])}"


def _around(periodic: list[bool]) -> str:
    if not any(periodic):
        return ""
    if all(periodic):
        return " periodic"
    which = ", ".join(str(axis) for axis, wraps in enumerate(periodic) if wraps)
    return f" periodic along {which}"


def told(pattern: Mapping[str, Any]) -> str:
    """A pattern in a phrase."""
    text: str = _PHRASES[pattern["kind"]](pattern["facts"])
    return text


def _halo(facts: Mapping[str, Any]) -> str:
    sides: dict[str, list[float]] = {}
    for way in facts["directions"]:
        along = [str(axis) for axis, step in enumerate(way["move"]) if step]
        name = f"along {along[0]}" if len(along) == 1 else "to edges and corners"
        sides.setdefault(name, []).append(way["bytes"])
    sizes = [f"{_sizes(each)} {name}" for name, each in sorted(sides.items())]
    if len({way["bytes"] for way in facts["directions"]}) == 1:
        sizes = [f"{_sizes([facts['directions'][0]['bytes']])} each way"]
    return f"halo on {_grid(facts)}: {', '.join(sizes)}{_times(facts)}"


def _times(facts: Mapping[str, Any]) -> str:
    """How often every message is there in an execution, if not once."""
    return f", each {count(facts['times'][0])} times" if "times" in facts else ""


def _sizes(sizes: Sequence[float]) -> str:
    least, most = min(sizes), max(sizes)
    if least == most:
        return format_size(least, digits=3)
    return f"{format_size(least, digits=3)} to {format_size(most, digits=3)}"


def _shift(facts: Mapping[str, Any]) -> str:
    size = _sizes([way["bytes"] for way in facts["directions"]])
    along = f" along {facts['dim']}" if len(facts["dims"]) > 1 else ""
    return f"shift by {facts['by']:+d}{along} of {_grid(facts)}: {size}{_times(facts)}"


def _pipeline(facts: Mapping[str, Any]) -> str:
    ways = ", ".join(
        f"{way} along {axis}"
        for axis, way in zip(facts["crosses"], facts["direction"], strict=True)
    )
    size = _sizes([way["bytes"] for way in facts["directions"]])
    return f"pipeline on {_grid(facts)}, {ways}, {facts['blocks']:g} blocks: {size}"


def _butterfly(facts: Mapping[str, Any]) -> str:
    flips = ", ".join(map(str, facts["flips"]))
    return f"butterfly with rank XOR {flips}: {_sizes(facts['bytes'])}"


def _transpose(facts: Mapping[str, Any]) -> str:
    block = f" blocks of {count(facts['block'])}" if facts["block"] > 1 else " ranks"
    return f"transpose of {facts['rows']} x {facts['columns']}{block}: {_sizes(facts['bytes'])}"


def _ring(facts: Mapping[str, Any]) -> str:
    size = _sizes(facts["bytes"])
    if facts["offsets"] in ([0], (0,)):
        return f"messages to itself: {size}"
    offsets = ", ".join(f"{offset:+d}" for offset in facts["offsets"])
    return f"ring with offsets {offsets} modulo P: {size}"


def _pairwise(facts: Mapping[str, Any]) -> str:
    return f"all pairs: {_sizes(facts['bytes'])}"


def _root(facts: Mapping[str, Any]) -> str:
    way = "from all to" if facts["way"] == "from all" else "to all from"
    return f"{way} rank {facts['root']}: {_sizes(facts['bytes'])}"


def _collective(facts: Mapping[str, Any]) -> str:
    sizes = _sizes([facts["bytes_min"], facts["bytes_max"]])
    members = " or ".join(map(str, facts["members"]))
    if facts["comm"] == "all":
        who = "all"
    else:
        groups = f", colour {facts['comm']}" if facts["comm"] else ""
        who = f"groups of {members}{groups}"
    kind = "" if facts["blocking"] else " nonblocking"
    return f"{facts['op']}{kind} of {who}: {sizes}"


def _list(facts: Mapping[str, Any]) -> str:
    offsets = sorted(facts["by_offset"], key=lambda one: -one["messages"])
    named = ", ".join(f"{one['offset']:+d}" for one in offsets[:_OFFSETS])
    more = ", ..." if len(offsets) > _OFFSETS else ""
    return f"no pattern: offsets {named}{more} modulo P"


_PHRASES = {
    "halo": _halo,
    "shift": _shift,
    "pipeline": _pipeline,
    "butterfly": _butterfly,
    "transpose": _transpose,
    "ring": _ring,
    "pairwise": _pairwise,
    "root": _root,
    "collective": _collective,
    "list": _list,
}
