"""Regions of a run: names of functions, regions that users mark, OpenMP, locks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.arrays import spread
from popmodel.base.values import dataclass
from popmodel.traces.codes import RUNNING
from popmodel.traces.intervals import Instants, Intervals, Spans, TracePieces, alone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from popmodel.traces.recorded_run import Trace
    from popmodel.traces.records import OpenMP, Records, Synchronisation


# Names of functions as their author wrote them, out of what compilers made of them.


# Pieces that compilers cut out of a function, or copies that they made of it.
_MADE = (
    "_omp_fn", "_omp_cpyfn", "omp_outlined", "omp_outlined_debug__", "constprop", "isra", "part",
    "cold", "lto_priv", "llvm",
)  # fmt: skip
# What a name ends with, read backwards: `.isra.0.1`, ` [clone ._omp_fn.0]`.
_MADE_ENDS = re.compile(rf"(?:(?:\d++\.?)*+(?:{'|'.join(made[::-1] for made in _MADE)})\.)*+")
_CLONE_ENDS = re.compile(r"(?:\][^][]*+(?<= enolc)\[ )*+")
_MODULE = re.compile(r"(?=\w++\Z)__(\w+?)_MOD_(\w+)")  # gfortran's procedures of modules
_REGION_PLACE = re.compile(r"(.*\S) \((?:region \d+|[^()\s]+(?::\d+|\+0x[0-9a-f]+))\)")
_QUALIFIERS = ("", "const", "volatile", "const volatile")
_OPERATOR = re.compile(r"\boperator\b")
_OPEN, _CLOSE = "(<[{", ")>]}"


def readable(name: str) -> str:
    """What a function is called in its source."""
    cut = _without_ends(_MADE_ENDS, _without_ends(_CLONE_ENDS, name.strip()))
    module = _MODULE.fullmatch(cut)
    return f"{module[1]}::{module[2]}" if module else cut or name


def _without_ends(ends: re.Pattern[str], name: str) -> str:
    """Cut what a name ends with, given as a pattern of the reversed name that always matches."""
    match = ends.match(name[::-1])
    return name[: len(name) - match.end()] if match else name


def full_name(label: str) -> str:
    """The name in a label of a trace, which may have it shortened with the whole in brackets."""
    label = label.strip()
    begin = _opening(label, len(label) - 1, "[]") if label.endswith("]") else -1
    shortened = begin > 1 and label[begin - 1] == " " and not label.startswith("clone ", begin + 1)
    return readable(label[begin + 1 : -1] if shortened else label)


def _opening(name: str, last: int, brackets: str) -> int:
    """Where the bracket opens that closes at `last`; -1 if none does."""
    depth = 0
    for place in range(last, -1, -1):
        depth += (name[place] == brackets[1]) - (name[place] == brackets[0])
        if depth == 0:
            return place
    return -1


def function_of(region: str) -> str:
    """The function that a parallel region is in, without its place and its arguments."""
    place = _REGION_PLACE.fullmatch(region)
    return without_arguments(place[1] if place else region)


def without_arguments(name: str) -> str:
    """A demangled name without its result and its arguments, which make most of its length."""
    end = _arguments(name)
    if end <= 0 or name[end - 1] == " " or name.endswith("operator", 0, end):
        return name  # a remark of somebody's, or the name of operator()
    stop = end
    for operator in _OPERATOR.finditer(name, 0, end):
        stop = operator.start()
    depth, begin = 0, 0
    for place, letter in enumerate(name[:stop]):
        depth += (letter in _OPEN) - (letter in _CLOSE)
        if letter == " " and depth == 0:
            begin = place + 1
    return name[begin:end]


def _arguments(name: str) -> int:
    """Where the arguments begin; -1 if there are none."""
    last = name.rfind(")")
    if last < 0 or name[last + 1 :].strip(" &") not in _QUALIFIERS:
        return -1
    return _opening(name, last, "()")


# Regions that users mark in their programs, and how long each thread is inside.


@dataclass(frozen=True, eq=False)
class Occurrences:
    """When threads are inside regions; a region inside itself counts once."""

    names: tuple[str, ...]  # Of the regions, each once, in alphabetical order
    label: NDArray[np.int64]  # int64[N]: Index into `names`
    location: NDArray[np.int64]  # int64[N]
    # int64[N]: Nanoseconds; of one region and location in order.
    begin: NDArray[np.int64]
    end: NDArray[np.int64]

    @classmethod
    def in_order(cls, names: tuple[str, ...], *columns: NDArray[np.int64]) -> Occurrences:
        """Label, location, begin and end of occurrences in any order."""
        label, location, begin, _ = columns
        order = np.lexsort((begin, location, label))
        return cls(names, *(column[order] for column in columns))

    def of(self, name: str) -> Occurrences:
        """The occurrences of one of the regions."""
        mine = np.flatnonzero(self.label == self.names.index(name))
        columns = (self.label, self.location, self.begin, self.end)
        return Occurrences(self.names, *(column[mine] for column in columns))

    def cut(self, pieces: TracePieces) -> Occurrences:
        """What of them lies inside some pieces of the run."""
        which, piece = spread(*pieces.overlap(self.begin, self.end))
        begin = np.maximum(self.begin[which], pieces.begin[piece]) + pieces.shift[piece]
        end = np.minimum(self.end[which], pieces.end[piece]) + pieces.shift[piece]
        return Occurrences.in_order(self.names, self.label[which], self.location[which], begin, end)


def user_regions(trace: Trace) -> Occurrences:
    """Find the regions that a user has marked; found once for each trace."""
    return trace.derived("user_regions", lambda trace: trace.records.user_regions())


# OpenMP parallel regions of a trace: when, by whom, and what they are called.


@dataclass(frozen=True)
class ParallelRegions:
    on_master: Intervals  # Parallel constructs on masters
    # Outlined functions on all threads: the part of a region that a thread takes.
    in_function: Intervals
    label: NDArray[np.int64]  # int64[R]: Index into `names` of each region on a master
    # The function that the process runs first inside, if the master runs any: threads of nested
    # teams may do so before the master. Else the construct.
    names: Sequence[str]


def parallel_regions(trace: Trace) -> ParallelRegions:
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


# What threads lost to locks, critical sections and atomic operations.
#
# Where each lock is recorded by itself, that and the states tell. popmodel's tracer adds up locks
# that are waited for a short time or not at all, and tells the sums: the time waited lies in the
# running state then, and has to be taken off.


@dataclass(frozen=True)
class WithoutWaits(Intervals):
    """Running time less the waits in it of which there are only sums."""

    # They lie somewhere in the intervals between the sum before and the instant of the sum.
    waits: Instants

    @classmethod
    def of_running(cls, running: Intervals, waits: Instants) -> WithoutWaits:
        return cls(running.offsets, running.begin, running.end, waits)

    def total(self) -> NDArray[np.int64]:
        """Summed length by location, ns."""
        return super().total() - self.waits.total()

    def before(self, location: NDArray[np.int64], time: NDArray[np.int64]) -> NDArray[np.int64]:
        """Length before an instant, ns, for each pair."""
        return super().before(location, time) - self.waits.before(location, time)

    def inside(
        self, location: NDArray[np.int64], begin: NDArray[np.int64], end: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Length between two instants, ns, for each triple."""
        return np.maximum(super().inside(location, begin, end), 0)


def running_time(records: Records, device_calls: Intervals, begin: int = 0) -> WithoutWaits:
    """When threads of a run that begins at a time are in user code."""
    running = records.in_state(RUNNING)
    if len(device_calls):
        running = alone([running], [device_calls])
    return WithoutWaits.of_running(running, _summed_waits(records.lock_waits(), running, begin))


def _summed_waits(told: Instants, running: Intervals, first: int) -> Instants:
    """Waits for locks that are told as sums.

    A sum is at most the time that its thread ran since the one before: a window of a trace can
    begin in between.
    """
    offsets, time, value, location = told.offsets, told.time, told.value, told.location
    # Locks and critical sections have their sums at the same instants: one for each instant.
    new = np.ones(len(time), dtype=bool)
    new[1:] = (time[1:] != time[:-1]) | (location[1:] != location[:-1])
    rows = np.flatnonzero(new)
    if len(rows):
        value = np.add.reduceat(value, rows)
    time, location = time[rows], location[rows]
    offsets = np.searchsorted(rows, offsets)
    begin = np.full(len(time), first, dtype=np.int64)
    follows = np.flatnonzero(location[1:] == location[:-1]) + 1
    begin[follows] = time[follows - 1]
    most = running.inside(location, begin, time)
    return Instants(offsets.astype(np.int64), time, np.clip(value, 0, most))
