"""OpenMP parallel regions of a trace: when, by whom, and what they are called."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from popmodel.trace.intervals import Intervals, Spans
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from popmodel.trace.records import OpenMP, Synchronisation
    from popmodel.trace.trace import Trace


@dataclass(frozen=True)
class ParallelRegions:
    """Parallel regions of a trace."""

    on_master: Intervals  # Parallel constructs on masters
    # Outlined functions on all threads: the part of a region that a thread takes.
    in_function: Intervals
    label: NDArray[np.int64]  # int64[R]: Index into `names` of each region on a master
    # The function that the process runs first inside, if the master runs any: threads of nested
    # teams may do so before the master. Else the construct.
    names: Sequence[str]


def parallel_regions(trace: Trace) -> ParallelRegions:
    """Find the parallel regions of a trace."""
    found = _openmp(trace)
    on_master = found.constructs.at(np.asarray(trace.process_offsets[:-1], dtype=np.int64))
    process = trace.process_of_location()[on_master.location].astype(np.int64)
    has = found.functions.starts(on_master.location, on_master.begin, on_master.end)[1] > 0
    functions = trace.derived("functions_of_processes", _functions_of_processes)
    first, _ = functions.starts(process, on_master.begin, on_master.end)
    # Constructs are numbered before functions.
    number = on_master.what.astype(np.int64)
    number[has] = len(found.construct_names) + functions.what[first[has]]
    names = [*found.construct_names, *found.function_names]
    there = np.flatnonzero(np.bincount(number, minlength=len(names)))
    told = _told_apart([names[each] for each in there.tolist()])
    return ParallelRegions(on_master, found.functions, np.searchsorted(there, number), told)


def _functions_of_processes(trace: Trace) -> Spans:
    """Outlined functions by process, instead of by thread."""
    found = _openmp(trace).functions
    process = np.repeat(trace.process_of_location(), np.diff(found.offsets))
    order = np.lexsort((found.begin, process))
    offsets = found.offsets[np.asarray(trace.process_offsets, dtype=np.int64)]
    return Spans(offsets, found.begin[order], found.end[order], found.what[order])


def synchronisation(trace: Trace) -> list[Intervals]:
    """When threads are in barriers, critical sections and locks, by kind."""
    found = _synchronisation(trace)
    return [*found.barriers, *found.locks]


def locked(trace: Trace) -> list[Intervals]:
    """When threads wait for critical sections and locks, or hold them, by kind."""
    return [*_synchronisation(trace).locks]


def _synchronisation(trace: Trace) -> Synchronisation:
    return trace.derived("synchronisation", lambda trace: trace.records.synchronisation())


def _openmp(trace: Trace) -> OpenMP:
    return trace.derived("openmp", lambda trace: trace.records.openmp())


def _told_apart(names: Sequence[tuple[str, str]]) -> list[str]:
    """Regions of one function have its name: several of them are numbered, as compilers do it."""
    alike: dict[str, list[int]] = {}
    for number, (name, _) in enumerate(names):
        alike.setdefault(name, []).append(number)
    told = [name for name, _ in names]
    for name, numbers in alike.items():
        if len(numbers) > 1:
            for place, number in enumerate(sorted(numbers, key=lambda i: _natural(names[i][1])), 1):
                told[number] = f"{name} (region {place})"
    return told


def _natural(label: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts ``f.10`` behind ``f.9``."""
    parts = re.findall(r"\d+|\D+", label)
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)
