"""What is in a trace."""

from __future__ import annotations

from typing import Any

from popmodel.api.inputs import TraceLike, trace_of
from popmodel.base.plain import document
from popmodel.structure.part_of_run import part_of_run
from popmodel.traces.info import info as facts_of
from popmodel.traces.selection import Foa, TracePart, Window


def info(
    trace: TraceLike,
    *,
    window: Window | None = None,
    region: str | None = None,
    from_start: bool = False,
    foa: Foa | None = None,
    application: int = 1,
    flop_rate: float | None = None,
) -> dict[str, Any]:
    """Return what is in a trace, schema ``popmodel/info/1``, without provenance."""
    asked = TracePart.of(window, region, from_start, foa)
    read = trace_of(trace, application=application, flop_rate=flop_rate)
    return document("popmodel/info/1", **facts_of(read, part_of_run(asked, read)))
