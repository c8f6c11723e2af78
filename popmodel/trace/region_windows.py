"""When a run is in a region: the windows of time of its occurrences, over all processes."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np

from popmodel.arrays import among
from popmodel.errors import PartError
from popmodel.trace.function_names import function_of
from popmodel.trace.pieces import joined
from popmodel.trace.regions import parallel_regions
from popmodel.trace.user_regions import user_regions
from popmodel.units import count, format_time, plural
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.trace.trace import Trace

_SHOWN = 12
_INSIDE = 0.95
"""Share of the windows that processes spend in the region, below which it is worth a word."""


@dataclass(frozen=True, eq=False)
class RegionWindows:
    """Windows in which a run is in a region."""

    # int64[N]: Nanoseconds, in order of time; they may overlap.
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    # How often a process enters the region; of the process that does so most often.
    occurrences: int
    caveats: tuple[str, ...]  # What has to be known about them, a sentence each
    cut: bool = False  # Whether the run is in the region at other times, too, which are left out


def region_windows(
    trace: Trace, name: str, since: int, until: int, where: str = ""
) -> RegionWindows:
    """Find when a run is in a region.

    A process is in it while any of its threads is. Where all processes that enter it do so equally
    often, the k-th occurrence is one window: from the first begin to the last end, so that what
    early processes wait for late ones counts. Else a window is any time in which one is inside.
    """
    process, begin, end = _of_processes(trace, *_named(trace, name))
    entered = np.bincount(process, minlength=trace.processes)
    if np.all(entered[entered > 0] == entered.max()):
        each = begin.reshape(-1, entered.max()), end.reshape(-1, entered.max())
        windows = np.stack([each[0].min(axis=0), each[1].max(axis=0)])
    else:
        windows = np.stack(joined(begin, end))
    first, last = np.clip(windows, since, until)
    lasting = np.subtract(*reversed(joined(first, last))).sum()
    if not lasting:
        if not np.any(windows[1] > windows[0]):
            raise PartError(trace.path, f"region {name} takes no time")
        first, last = (
            format_time(int(time) / 1e9, digits=6, trim=True)
            for time in (windows[0].min(), windows[1].max())
        )
        raise PartError(
            trace.path,
            f"region {name} takes no time in the analysed part ({where})",
            hint=f"it lasts from {first} to {last}: choose a --window there",
        )
    share = np.subtract(*np.clip([end, begin], since, until)).sum() / (lasting * trace.processes)
    inside = (end > since) & (begin < until)
    occurrences = np.bincount(process[inside]).max(initial=0)
    some = last > first
    return RegionWindows(
        first[some],
        last[some],
        int(occurrences),
        tuple(_caveats(name, entered, float(share))),
        cut=bool(np.any((first != windows[0]) | (last != windows[1]))),
    )


def _named(
    trace: Trace, name: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Location, begin and end of the occurrences of a region on all threads."""
    marked = user_regions(trace)
    if name in marked.names:
        found = marked.of(name)
        return found.location, found.begin, found.end
    parallel = parallel_regions(trace)
    regions = [i for i, each in enumerate(parallel.names) if each == name] or [
        i for i, each in enumerate(parallel.names) if function_of(each) == name
    ]
    mine = among(parallel.label, regions)
    if mine.any():
        on_master = parallel.on_master
        return on_master.location[mine], on_master.begin[mine], on_master.end[mine]
    raise PartError(
        trace.path,
        f"no region '{name}'",
        hint=_hint(name, marked.names, tuple(dict.fromkeys(parallel.names))),
    )


def _hint(name: str, marked: tuple[str, ...], parallel: tuple[str, ...]) -> str:
    if near := get_close_matches(name, (*marked, *parallel), 3):
        return f"did you mean {' or '.join(near)}?"
    if not (marked or parallel):
        return "the trace has no regions; mark them in the program (popmodel.h: popmodel_begin)"
    known = marked or parallel
    more = f" and {count(len(known) - _SHOWN)} more" if len(known) > _SHOWN else ""
    what = "regions" if marked else "parallel regions"
    return f"{what} in the trace: {', '.join(known[:_SHOWN])}{more}"


def _of_processes(
    trace: Trace,
    location: NDArray[np.int64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Occurrences of each process, in order: those of several threads that overlap are one."""
    process = trace.process_of_location().astype(np.int64)[location]
    # The times of one process lie behind those of the others, so that one pass serves all.
    shift = process * (trace.end - trace.begin + 1)
    order = np.argsort(begin + shift, kind="stable")
    process, begin, end, shift = (each[order] for each in (process, begin, end, shift))
    reached = np.maximum.accumulate(end + shift)
    first = np.flatnonzero(np.concatenate([[True], (begin + shift)[1:] >= reached[:-1]]))
    last = np.append(first[1:] - 1, len(begin) - 1)
    return process[first], begin[first], reached[last] - shift[last]


def _caveats(name: str, entered: NDArray[np.int64], share: float) -> list[str]:
    found = []
    never = np.flatnonzero(entered == 0)
    counts = entered[entered > 0]
    if len(never):
        found.append(
            f"{plural(len(never), 'process', 'processes')} of {count(len(entered))} never "
            f"{'enters' if len(never) == 1 else 'enter'} region {name} (first: rank {never[0]})"
        )
    if counts.min() < counts.max():
        found.append(
            f"processes enter region {name} {count(int(counts.min()))} to "
            f"{count(int(counts.max()))} times: all time with a process inside is analysed"
        )
    if found or share < _INSIDE:
        found.append(
            f"processes are inside region {name} for {100 * share:.3g} % of the analysed time"
        )
    return found
