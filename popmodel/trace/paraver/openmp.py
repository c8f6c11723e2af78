"""OpenMP in the events of a Paraver trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.trace.blocks import take
from popmodel.trace.function_names import full_name
from popmodel.trace.intervals import Spans
from popmodel.trace.paraver.events import numbered, where_nonzero
from popmodel.trace.paraver.numbers import (
    BARRIERS,
    CONSTRUCTS,
    LINE_OF,
    LOCKS,
    OUTLINED,
    PARALLEL,
)
from popmodel.trace.records import OpenMP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from popmodel.trace.paraver.labels import Labels
    from popmodel.trace.tables import Events

__all__ = ["openmp"]


def openmp(events: Events, labels: Labels, end: int) -> OpenMP:
    """What threads do in OpenMP; what is still open ends at `end`, ns."""
    constructs, construct_names = _spans(events, labels, PARALLEL, end)
    functions, function_names = _spans(events, labels, OUTLINED, end)
    barriers, locks = (
        tuple(found for type_ in types if len(found := where_nonzero(events, (type_,), end)[0]))
        for types in (BARRIERS, LOCKS)
    )
    return OpenMP(constructs, functions, construct_names, function_names, barriers, locks)


def _spans(
    events: Events, labels: Labels, types: Sequence[int], end: int
) -> tuple[Spans, list[tuple[str, str]]]:
    """When one of some types is open, which of its values opened it, and their names and labels."""
    found, row = where_nonzero(events, types, end)
    kinds, what = numbered(types, take(events.type, row), take(events.value, row))
    example = np.zeros(len(kinds), dtype=np.int64)
    example[what] = row
    names = [
        (_name(events, labels, type_, value, row), labels.label(type_, value))
        for (type_, value), row in zip(kinds, example.tolist(), strict=True)
    ]
    return Spans(found.offsets, found.begin, found.end, what.astype(np.int32)), names


def _name(events: Events, labels: Labels, type_: int, value: int, row: int) -> str:
    """Name of an event's value, with the source line where the trace has one."""
    name = full_name(labels.label(type_, value))
    if not name:
        name = (
            f"function {value}" if type_ in OUTLINED else CONSTRUCTS.get(value, f"region {value}")
        )
    line_type = LINE_OF.get(type_, -1)
    for other in range(row + 1, min(row + 4, len(events.time))):
        if events.type[other] == line_type and events.time[other] == events.time[row]:
            where = labels.event_value(line_type, int(events.value[other])).split(" ")[0]
            file, _, line = where.rpartition(":")
            if file and line.isdigit() and line != "0":
                return f"{name} ({where})"
    return name
