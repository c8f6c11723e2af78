"""Runs over time: for the viewers of Perfetto and Chrome, and as drawings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from popmodel.base import provenance
from popmodel.base.plain import plain
from popmodel.base.units import plural
from popmodel.base.values import dataclass
from popmodel.reports.plots import COLUMNS, ROWS, run_timeline
from popmodel.reports.renderers.svg import draw
from popmodel.reports.result import save_text
from popmodel.timeline.timeline import LIMITS, timeline
from popmodel.timeline.trace_events import export

if TYPE_CHECKING:
    from popmodel.traces import Trace

TIMELINES: Mapping[str, str] = {".perfetto.json": "Trace Event Format", ".svg": "SVG"}
"""Formats of timelines by suffix; the first may be followed by ``.gz``."""


@dataclass(frozen=True)
class ConvertedTimeline:
    """A run over time that was written, as returned by `popmodel.convert`."""

    # The trace, and the file.
    trace: str
    path: str
    format: str  # Its format
    processes: int  # Processes of the run
    # What they do and send, in a file for viewers; 0 in a drawing.
    slices: int = 0
    messages: int = 0
    lanes: int = 0  # Lanes of a drawing; 0 in a file for viewers
    # What limits it: of the trace, and what the file does not hold as it is.
    caveats: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The file and what is in it, in a line."""
        size = plural(self.processes, "process", "processes")
        if self.lanes:
            return f"{self.path}: {self.format}, {size} in {plural(self.lanes, 'lane')}"
        held = f"{plural(self.slices, 'slice')}, {plural(self.messages, 'message')}"
        return f"{self.path}: {self.format}, {size}, {held}"


def timeline_of(path: str | os.PathLike[str]) -> str:
    """The suffix of a timeline that the name of a file has; empty if it has none."""
    name = Path(path).name
    plain_name = name.removesuffix(".gz")
    packable, drawing = TIMELINES
    return packable if plain_name.endswith(packable) else drawing if name.endswith(drawing) else ""


def write_timeline(
    trace: Trace, source: str, output: str, caveats: tuple[str, ...], arguments: Sequence[str]
) -> ConvertedTimeline:
    """Write a run over time; the file is known to be writable."""
    suffix = timeline_of(output)
    about = ConvertedTimeline(source, output, TIMELINES[suffix], trace.processes, caveats=caveats)
    if suffix != ".svg":
        told = export(trace, output)
        return replace(about, slices=told.slices, messages=told.messages, notes=told.notes)
    found = timeline(trace, limits=replace(LIMITS, rows=ROWS, columns=COLUMNS))
    origin = provenance.collect(arguments, filter(os.path.isfile, [source]))
    save_text(output, draw(run_timeline, found, plain(origin)))
    notes = (f"no ideal replay: {found.why_no_ideal}",) if found.why_no_ideal else ()
    return replace(about, lanes=len(found.rows), notes=notes)
