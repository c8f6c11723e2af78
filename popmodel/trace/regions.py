"""OpenMP parallel regions of a trace: when, by whom, and what they are called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from popmodel.trace.function_names import full_name
from popmodel.trace.intervals import Intervals, where_nonzero
from popmodel.trace.names import CONSTRUCTS, LINE_OF, LOCKS, OUTLINED, PARALLEL, SYNCHRONISATION
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.trace.trace import Trace

__all__ = ["ParallelRegions", "locked", "parallel_regions", "synchronisation"]


@dataclass(frozen=True)
class ParallelRegions:
    """Parallel regions of a trace.

    Attributes
    ----------
    on_master : Intervals
        From a nonzero value of the parallel-construct event on a master to the next zero.
    in_function : Intervals
        Outlined functions on all threads: the part of a region that a thread takes.
    label : int64[R]
        Index into `names` of each region on a master.
    names : sequence of str
        The function that the master runs first inside, else the construct.
    """

    on_master: Intervals
    in_function: Intervals
    label: NDArray[np.int64]
    names: Sequence[str]


def parallel_regions(trace: Trace) -> ParallelRegions:
    """Find the parallel regions of a trace."""
    masters = np.asarray(trace.process_offsets[:-1], dtype=np.int64)
    on_master = where_nonzero(trace.events, PARALLEL, trace.end).at(masters)
    in_function = where_nonzero(trace.events, OUTLINED, trace.end)
    label, names = _names(trace, on_master, in_function)
    return ParallelRegions(on_master, in_function, label, names)


def synchronisation(trace: Trace) -> list[Intervals]:
    """When threads are in barriers, critical sections and locks, by kind."""
    return [where_nonzero(trace.events, (type_,), trace.end) for type_ in SYNCHRONISATION]


def locked(trace: Trace) -> list[Intervals]:
    """When threads wait for critical sections and locks, or hold them, by kind."""
    return [where_nonzero(trace.events, (type_,), trace.end) for type_ in LOCKS]


def _names(
    trace: Trace, on_master: Intervals, in_function: Intervals
) -> tuple[NDArray[np.int64], list[str]]:
    first, count = in_function.starts(on_master.location, on_master.begin, on_master.end)
    events = trace.events
    has = count > 0
    rows = on_master.row.copy()
    rows[has] = in_function.row[first[has]]
    values = np.stack([events.type[rows].astype(np.int64), events.value[rows]], axis=1)
    distinct, index = np.unique(values, axis=0, return_inverse=True)
    index = index.reshape(-1)
    example = np.zeros(len(distinct), dtype=np.int64)
    example[index] = rows
    names = [
        _name(trace, type_, value, row)
        for (type_, value), row in zip(distinct.tolist(), example.tolist(), strict=True)
    ]
    return index, _told_apart(names, [_label(trace, *pair) for pair in distinct.tolist()])


def _told_apart(names: Sequence[str], labels: Sequence[str]) -> list[str]:
    """Regions of one function have its name: several of them are numbered, as compilers do it."""
    alike: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        alike.setdefault(name, []).append(number)
    told = list(names)
    for name, numbers in alike.items():
        if len(numbers) > 1:
            for place, number in enumerate(sorted(numbers, key=lambda i: _natural(labels[i])), 1):
                told[number] = f"{name} (region {place})"
    return told


def _natural(label: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts ``f.10`` behind ``f.9``."""
    parts = re.findall(r"\d+|\D+", label)
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)


def _label(trace: Trace, type_: int, value: int) -> str:
    return trace.labels.event_values.get(type_, {}).get(value, "")


def _name(trace: Trace, type_: int, value: int, row: int) -> str:
    """Name of an event's value, with the source line where the trace has one."""
    name = full_name(_label(trace, type_, value))
    if not name:
        name = (
            f"function {value}" if type_ in OUTLINED else CONSTRUCTS.get(value, f"region {value}")
        )
    events = trace.events
    line_type = LINE_OF.get(type_, -1)
    for other in range(row + 1, min(row + 4, len(events.time))):
        if events.type[other] == line_type and events.time[other] == events.time[row]:
            where = trace.labels.event_value(line_type, int(events.value[other])).split(" ")[0]
            file, _, line = where.rpartition(":")
            if file and line.isdigit() and line != "0":
                return f"{name} ({where})"
    return name
