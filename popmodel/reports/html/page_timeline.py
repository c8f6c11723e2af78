"""Runs over time: what the script that draws them is given, and the tables beside the drawing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.base.shell import join
from popmodel.network.network import PRESETS, describe
from popmodel.reports.figures import run_names
from popmodel.reports.html.contents import Contents, Section
from popmodel.timeline.lanes import KINDS
from popmodel.timeline.window_sums import AGGREGATES, BY, ESTIMATE, families_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.timeline.lanes import Arrows, Path
    from popmodel.timeline.timeline import Timeline
    from popmodel.timeline.window_sums import Sums

    Arrays = dict[str, NDArray[Any]]

ID = "timeline"

_NS = 1e9
_PARTS = 16
"""Parts of a column in which times of messages are told."""
_LARGEST = 2**31 - 1
_LESS = {"in_mpi": "useful"}
"""Sums that are nearly all of the rest: told as what is left, which packs well."""


def section(contents: Contents) -> Section | None:
    """The timelines of a report."""
    timelines: tuple[Timeline, ...] = contents.timelines
    if not timelines:
        return None
    names = run_names([one.trace for one in timelines])
    packed: Arrays = {}
    runs, tables = [], []
    for number, (name, one) in enumerate(zip(names, timelines, strict=True)):
        run = _TimelineRun(f"{ID}-{number}", one, packed)
        runs.append({"name": name, **run.data()})
        tables.append(
            {
                "name": name,
                "begin": one.begin / _NS,
                "end": one.end / _NS,
                "ideal_end": None if one.ideal_end is None else one.ideal_end / _NS,
                "why_no_ideal": one.why_no_ideal,
                "why_no_window": one.why_no_sums,
                **_table(one),
            }
        )
    sizes = [(int(one.processes[-1]), one.end - one.begin) for one in timelines]
    first = sizes.index(max(sizes))  # the largest run; of several the longest
    return Section(ID, "Timeline", {"runs": tables}, {"runs": runs, "run": first}, packed)


def _table(one: Timeline) -> dict[str, Any]:
    """Time of each lane in each kind, s; of kinds in which any has some."""
    lanes = [one.measured] if one.ideal is None else [one.measured, one.ideal]
    # Nothing recorded is no kind of its own in a table: the others tell how much there is.
    some = [
        kind for kind in range(1, len(KINDS)) if any(each.spent[:, kind].any() for each in lanes)
    ]
    told = [(each.spent[:, some] / _NS).tolist() for each in lanes]
    return {
        "kinds": [KINDS[kind] for kind in some],
        "rows": [
            {
                "label": label,
                "measured": told[0][row],
                "ideal": None if one.ideal is None else told[1][row],
            }
            for row, label in enumerate(one.labels)
        ],
    }


class _TimelineRun:
    """What the script is given of one run."""

    def __init__(self, prefix: str, one: Timeline, packed: Arrays) -> None:
        self.prefix, self.one, self.packed = prefix, one, packed

    def data(self) -> dict[str, Any]:
        """Plain data; arrays by the names that they have among the packed ones."""
        one = self.one
        return {
            "begin": one.begin,
            "end": one.end,
            "step": one.axis.step,
            "columns": one.axis.columns,
            "labels": list(one.labels),
            "threads_per_row": "; ".join(filter(None, (one.rows.shared, one.devices.shared)))
            or None,
            "kinds": [
                {"id": k.id, "label": k.label, "group": k.group}
                for k in KINDS
                if k.group != "device" or len(one.devices)
            ],
            "measured": self._pack("measured", one.measured.kind),
            "ideal": None if one.ideal is None else self._pack("ideal", one.ideal.kind),
            "ideal_end": one.ideal_end,
            "why_no_ideal": one.why_no_ideal or None,
            "network": describe(PRESETS["ideal"]),
            "messages": self._arrows("messages", "measured", one.messages),
            "ideal_messages": None
            if one.ideal_messages is None
            else self._arrows("ideal_messages", "ideal", one.ideal_messages),
            "path": None if one.path is None else self._path(one.path),
            "marks": None
            if one.marks is None
            else {
                "what": "iterations",
                "count": one.marks.count,
                "first": one.marks.first,
                "every": one.marks.every,
                "at": (one.marks.at - one.begin).tolist(),
            },
            "window": None if one.sums is None else self._window(one.sums),
            "closer": self._command("report", "-o", "window.html"),
            "why_no_window": one.why_no_sums or None,
        }

    def _pack(self, name: str, values: NDArray[Any]) -> str:
        self.packed[f"{self.prefix}-{name}"] = values
        return f"{self.prefix}-{name}"

    def _parts(self, time: NDArray[np.int64]) -> NDArray[np.int64]:
        """Times in parts of columns."""
        since = (time - self.one.begin) * (_PARTS / self.one.axis.step)
        parts: NDArray[np.int64] = np.rint(since).astype(np.int64)
        return parts

    def _arrows(self, name: str, on: str, arrows: Arrows) -> dict[str, Any] | None:
        if not len(arrows):
            return None
        sent, received = self._parts(arrows.sent), self._parts(arrows.received)
        columns = (
            arrows.sender,
            arrows.receiver,
            np.diff(sent, prepend=0),
            received - sent,
        )
        return {
            "count": arrows.every,
            "shown": len(arrows),
            "note": arrows.note,
            on: self._pack(name, np.concatenate(columns).astype(np.int32)),
        }

    def _path(self, path: Path) -> dict[str, Any] | None:
        if not len(path):
            return None
        columns = (path.lane, self._parts(path.begin), self._parts(path.end))
        note = None
        if path.shortest:
            shortest = path.shortest / _NS
            note = f"stretches below {shortest:.3g} s are drawn with those before them"
        return {
            "shown": len(path),
            "note": note,
            "ideal": self._pack("path", np.concatenate(columns).astype(np.int32)),
            "switches": path.changes,
        }

    def _window(self, sums: Sums) -> dict[str, Any]:
        one = self.one
        threads, replayed = int(one.processes[-1]), sums.clock is not None
        return {
            "edges": sums.edges.tolist(),
            "processes": len(one.nodes),
            "threads": threads,
            "first": self._pack("first", one.processes.astype(np.int32)),
            "node": self._pack("node", one.nodes.astype(np.int32)),
            "sums": dict(self._sums(sums)),
            "clock": None if sums.clock is None else self._pack("clock", sums.clock),
            "aggregates": AGGREGATES,
            "families": families_of(replayed=replayed),
            "fitting": "hybrid-additive" if one.has_regions else "mpi",
            "estimate": ESTIMATE,
            "command": self._command("metrics"),
        }

    def _sums(self, sums: Sums) -> Iterator[tuple[str, Mapping[str, Any]]]:
        length = np.diff(sums.time)
        for name, by in BY.items():
            values, less = sums.between[name], _LESS.get(name)
            if less is not None:
                values = length - sums.between[less] - values
            packed = None
            if values.any():
                packed = self._pack(name, _smallest(values))
            yield name, {"by": by, "packed": packed, "less": None if less is None else [less]}

    def _command(self, verb: str, *options: str) -> str | None:
        """A command that takes a window of this run; it lacks only the window."""
        one = self.one
        if one.pieces > 1 or (one.application is not None and verb != "metrics"):
            return None
        chosen = [] if one.application is None else ["--application", str(one.application)]
        return join(["popmodel", verb, one.trace, *chosen, *options, "--window"])


def _smallest(values: NDArray[np.int64]) -> NDArray[Any]:
    """Integers as a browser reads them exactly: of 32 bits where these suffice."""
    if np.abs(values).max(initial=0) <= _LARGEST:
        return values.astype(np.int32)
    return values.astype(np.float64)
