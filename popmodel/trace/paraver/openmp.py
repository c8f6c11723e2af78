"""OpenMP in the events of a Paraver trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.trace.function_names import full_name, without_arguments
from popmodel.trace.intervals import Spans
from popmodel.trace.paraver.events import kinds_of, select, where_nonzero
from popmodel.trace.paraver.numbers import (
    BARRIERS,
    CONSTRUCTS,
    LINE_OF,
    LOCKS,
    OUTLINED,
    PARALLEL,
)
from popmodel.trace.records import OpenMP, Synchronisation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from popmodel.trace.intervals import Intervals
    from popmodel.trace.paraver.events import Selected
    from popmodel.trace.paraver.labels import Labels
    from popmodel.trace.tables import EventTable


def openmp(events: EventTable, labels: Labels, end: int) -> OpenMP:
    """Parallel constructs and outlined functions; what is still open ends at `end`, ns."""
    found = select(events, (*PARALLEL, *OUTLINED))
    constructs, construct_names = _spans(events, found, labels, PARALLEL, end)
    functions, function_names = _spans(events, found, labels, OUTLINED, end)
    return OpenMP(constructs, functions, construct_names, function_names)


def synchronisation(events: EventTable, end: int) -> Synchronisation:
    """Barriers, locks and critical sections; what is still open ends at `end`, ns."""
    found = select(events, (*BARRIERS, *LOCKS))

    def each(types: Sequence[int]) -> tuple[Intervals, ...]:
        return tuple(where_nonzero(found, (type_,), end)[0] for type_ in types)

    return Synchronisation(each(BARRIERS), each(LOCKS))


def _spans(
    events: EventTable, found: Selected, labels: Labels, types: Sequence[int], end: int
) -> tuple[Spans, list[tuple[str, str]]]:
    """When one of some types is open, which of its values opened it, and their names and labels."""
    spans, opening = where_nonzero(found, types, end)
    kinds, what = kinds_of(found.type[opening], found.value[opening])
    example = np.zeros(len(kinds), dtype=np.int64)
    example[what] = found.row[opening]
    names = [
        (_name(events, labels, type_, value, row), labels.label(type_, value))
        for (type_, value), row in zip(kinds, example.tolist(), strict=True)
    ]
    return Spans(spans.offsets, spans.begin, spans.end, what.astype(np.int32)), names


def _name(events: EventTable, labels: Labels, type_: int, value: int, row: int) -> str:
    """Name of an event's value, with the source line where the trace has one."""
    name = without_arguments(full_name(labels.label(type_, value)))
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
