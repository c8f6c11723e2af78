"""Which regions of a program its computing belongs to: each burst divided among them.

A region is what the trace knows: one that the user marked (the innermost where they are nested),
else an OpenMP parallel region on the master, else what comes before an MPI call of one call site.
So every trace has regions, and every nanosecond of computing belongs to exactly one of them.

The clock by which bursts are divided is the computing of a process: its wall time without MPI calls
and without time in which tracing was disabled, as the bursts themselves are measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.arrays import alike, numbered, spread
from popmodel.base.errors import UsageError, did_you_mean
from popmodel.base.values import dataclass
from popmodel.efficiency.evidence import site_name
from popmodel.kernel import _kernel
from popmodel.traces.codes import TRACING_DISABLED
from popmodel.traces.intervals import Intervals, TracePieces, alone
from popmodel.traces.regions import parallel_regions, user_regions
from popmodel.traces.tables import location_of_row, part_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from popmodel.simulator.program import Program
    from popmodel.traces import Trace
    from popmodel.traces.records import CallSites

    Computed = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]


LAST = "after the last MPI call"
"""Name of the computing that no MPI call follows."""
OUTSIDE = "outside regions"
"""The same in a run without MPI calls."""

USER, PARALLEL, PHASE = "user region", "parallel region", "phase"


@dataclass(frozen=True, eq=False)
class RegionGains:
    """The computing of a program by region."""

    names: tuple[str, ...]
    # ``user region``, ``parallel region``, or ``phase`` before an MPI call; of each name.
    kinds: tuple[str, ...]
    # int64[K]: The burst that a part belongs to, ascending: the number of its operation, or, for
    # what process p computes after its last one, the number of operations plus p.
    row: NDArray[np.int64]
    region: NDArray[np.int32]  # int32[K]: Index into `names`
    time: NDArray[np.float64]  # float64[K]: ns; the parts of a burst add up to it

    def __len__(self) -> int:
        return len(self.names)

    def cells(self, program: Program) -> NDArray[np.int64]:
        """Cell of each part in a table of regions by processes, counted row by row: int64[K]."""
        process = np.where(
            self.row < program.operations,
            part_of(program.offsets, self.row),
            self.row - program.operations,
        )
        return self.region * np.int64(program.sequences) + process

    def by_process(self, program: Program) -> NDArray[np.float64]:
        """Computing in each region by each process, ns: float64[regions, P]."""
        shape = len(self.names), program.sequences
        times = np.bincount(self.cells(program), self.time, shape[0] * shape[1])
        return times.astype(np.float64, copy=False).reshape(shape)


@dataclass(frozen=True, eq=False)
class RegionStretches:
    """Labelled stretches of the time of processes; on each process ascending and apart."""

    process: NDArray[np.int64]  # int64[S]: Ascending
    # int64[S]: ns: of computing since the process began, or of wall time.
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    label: NDArray[np.int64]  # int64[S]: Index into `names`
    # As of `RegionGains`.
    names: tuple[str, ...]
    kinds: tuple[str, ...]


def regions_of(program: Program, trace: Trace | None = None) -> RegionGains:
    """Divide the computing of a program among its regions."""
    phases = _phases(program, trace)
    if trace is None or len(program.threads):
        return phases
    marked = _marked(trace)
    if not len(marked.process):
        return phases
    regions = divide(program, marked, phases)
    used, region = numbered(regions.region.astype(np.int64))
    return replace(  # without regions in which nothing is computed
        regions,
        names=tuple(regions.names[number] for number in used.tolist()),
        kinds=tuple(regions.kinds[number] for number in used.tolist()),
        region=region.astype(np.int32),
    )


def divide(program: Program, stretches: RegionStretches, others: RegionGains) -> RegionGains:
    """Divide bursts of whole nanoseconds by labelled stretches of their processes' computing."""
    # Rows of all bursts process by process, in each the tail last.
    tails = program.operations + np.arange(program.sequences)
    rows = np.insert(np.arange(program.operations, dtype=np.int64), program.offsets[1:], tails)
    length = np.rint(_bursts(program)[rows]).astype(np.int64)
    ends = np.cumsum(length)
    first = program.offsets[:-1] + np.arange(program.sequences)
    base = (ends - length)[first]
    limit = base + np.add.reduceat(length, first)
    # All processes one after the other: what a stretch and a burst share is then a pure overlap.
    begin = np.minimum(stretches.begin + base[stretches.process], limit[stretches.process])
    end = np.minimum(stretches.end + base[stretches.process], limit[stretches.process])
    some = np.flatnonzero(end > begin)
    begin, end, label = begin[some], end[some], stretches.label[some]
    low = np.searchsorted(ends, begin, side="right")
    which, at = spread(low, np.searchsorted(ends, end, side="left") - low + 1)
    shared = np.minimum(end[which], ends[at]) - np.maximum(begin[which], (ends - length)[at])
    some = np.flatnonzero(shared)  # there are bursts of no length
    which, at, shared = which[some], at[some], shared[some]
    labelled = np.bincount(rows[at], shared, len(rows))
    rest = others.time - labelled[others.row]
    kept = np.flatnonzero(rest)
    row = np.concatenate([rows[at], others.row[kept]])
    region = np.concatenate([label[which], others.region[kept] + len(stretches.names)]).astype(
        np.int32
    )
    time = np.concatenate([shared, rest[kept]]).astype(np.float64)
    order = np.argsort(row, kind="stable")
    names = (*stretches.names, *others.names)
    kinds = (*stretches.kinds, *others.kinds)
    return RegionGains(names, kinds, row[order], region[order], time[order])


def scaled(
    program: Program,
    regions: RegionGains,
    factor: NDArray[np.float64],
    cells: NDArray[np.int64] | None = None,
) -> Program:
    """Return the program with other times of computing."""
    cells = regions.cells(program) if cells is None else cells
    rows = program.operations + program.sequences
    time = regions.time * factor.ravel()[cells]
    bursts = np.asarray(np.bincount(regions.row, time, rows), np.float64)
    return replace(program, burst=bursts[: program.operations], tail=bursts[program.operations :])


def innermost(
    location: NDArray[np.int64], begin: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Which of some intervals holds when, where several do: the one that began last.

    Of those that begin together it is the one that ends first.
    """
    if not len(location):
        return location, begin, end
    apart = int(max(end.max(), begin.max()) - begin.min()) + 1
    shift = location * apart - begin.min()
    order = np.lexsort((-end, begin + shift))
    since, until = (begin + shift)[order], (end + shift)[order]
    around = _around(until)
    edges = np.unique(np.concatenate([since, until]))
    holder = np.searchsorted(since, edges, side="right") - 1
    while len(ended := np.flatnonzero((holder >= 0) & (until[holder] <= edges))):
        holder[ended] = around[holder[ended]]
    some = np.flatnonzero(holder[:-1] >= 0)
    mine = order[holder[some]]
    return mine, edges[some] - shift[mine], edges[some + 1] - shift[mine]


def _around(until: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each interval the last one before it that ends later, or -1.

    Whatever lies between an interval and the one it points to ends no later: to follow the pointer
    of a pointer keeps that true, and so doubles the step.
    """
    around = np.arange(-1, len(until) - 1)
    while True:
        short = np.flatnonzero((around >= 0) & (until[around] <= until))
        if not len(short):
            return around
        around[short] = around[around[short]]


def marked_at(
    trace: Trace, process: NDArray[np.int64], time: NDArray[np.int64]
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Find the marked or parallel region that the master of a process is in at some times."""
    spans = _spans(trace)
    offsets = np.searchsorted(spans.process, np.arange(trace.processes + 1))
    at = _kernel.locate(offsets, spans.begin, process, time)
    inside = at >= offsets[process]
    inside[inside] = time[inside] < spans.end[at[inside]]
    region = np.full(len(process), -1, np.int64)
    region[inside] = spans.label[at[inside]]
    return region, spans.names


def _marked(trace: Trace) -> RegionStretches:
    """Marked and parallel regions by the computing of their processes."""
    spans = _spans(trace)
    computed = _computed(trace, np.asarray(trace.process_offsets[:-1], dtype=np.int64))
    begin, end = (computed(spans.process, time) for time in (spans.begin, spans.end))
    return replace(spans, begin=begin, end=end)


def _spans(trace: Trace) -> RegionStretches:
    """User regions and, where there is none, parallel regions of the masters, in wall time."""
    offsets = np.asarray(trace.process_offsets, dtype=np.int64)
    user, parallel = user_regions(trace), parallel_regions(trace)
    on_master = np.zeros(trace.locations, dtype=bool)
    on_master[offsets[:-1]] = True
    mine = np.flatnonzero(on_master[user.location])
    picked, begin, end = innermost(user.location[mine], user.begin[mine], user.end[mine])
    picked = mine[picked]
    edges = np.searchsorted(user.location[picked], np.arange(trace.locations + 1))
    inside = Intervals.of(edges, begin, end)
    others = parallel.on_master
    free = alone([others], [inside])
    within = _kernel.locate(others.offsets, others.begin, free.location, free.begin)
    location = np.concatenate([inside.location, free.location])
    label = np.concatenate([user.label[picked], len(user.names) + parallel.label[within]])
    begin, end = np.concatenate([begin, free.begin]), np.concatenate([end, free.end])
    order = np.lexsort((begin, location))
    return RegionStretches(
        part_of(offsets, location[order]),
        begin[order],
        end[order],
        label[order],
        (*user.names, *parallel.names),
        (USER,) * len(user.names) + (PARALLEL,) * len(parallel.names),
    )


def _computed(trace: Trace, masters: NDArray[np.int64]) -> Computed:
    """From processes and times of a trace to how long each has computed by then, ns."""
    whole = trace.whole or trace
    pieces = trace.pieces or TracePieces.window(trace.begin, trace.end)
    disabled = trace.records.in_state(TRACING_DISABLED)

    def enabled(process: NDArray[np.int64], time: NDArray[np.int64]) -> NDArray[np.int64]:
        return time - disabled.before(masters[process], time)

    calls = whole.calls()
    offsets = np.append(calls.offsets[masters], calls.offsets[-1])
    caller = location_of_row(offsets).astype(np.int64)
    in_mpi = Intervals.of(
        offsets, *(enabled(caller, pieces.moved(time)) for time in (calls.entry, calls.exit))
    )
    every = np.arange(len(masters))
    started = enabled(every, np.full(len(masters), trace.begin, np.int64))

    def computed(process: NDArray[np.int64], time: NDArray[np.int64]) -> NDArray[np.int64]:
        now = enabled(process, time)
        return now - started[process] - in_mpi.before(process, now)

    return computed


def _phases(program: Program, trace: Trace | None) -> RegionGains:
    """Each burst as a region: that before the calls of one name and call site."""
    bursts = _bursts(program)
    row = np.flatnonzero(bursts)
    tail = row >= program.operations
    call = program.call[row[~tail]]
    sites = None if trace is None else trace.sites()
    name = program.call_code[call].astype(np.int64)
    if sites is None or len(sites.places) == 1:
        places: Sequence[tuple[str, str]] = [("", "")] if sites is None else sites.places
        site = np.zeros_like(name)
    else:
        places, site = [*sites.places, ("", "")], places_of(sites, call.astype(np.int64))
    distinct, which = alike(name, site)
    labels = [
        f"before {site_name(program.call_name[name], *places[site])}"
        for name, site in distinct.tolist()
    ]
    if tail.any():
        labels.append(LAST if program.operations else OUTSIDE)
    # places that are written alike are one for whoever reads them
    number = {label: index for index, label in enumerate(dict.fromkeys(labels))}
    region = np.full(len(row), len(number) - 1, np.int32)
    region[~tail] = np.array([number[label] for label in labels], np.int32)[which]
    return RegionGains((*number,), (PHASE,) * len(number), row, region, bursts[row])


def places_of(sites: CallSites, calls: NDArray[np.int64]) -> NDArray[np.int64]:
    """Place of each call, an index into the places; one behind them of calls of OpenMP."""
    site = np.full(len(calls), len(sites.places), np.int64)
    has_site = calls < len(sites.site)
    site[has_site] = sites.site[calls[has_site]]
    return site


def _bursts(program: Program) -> NDArray[np.float64]:
    """Every burst, then what each process computes after its last operation, ns."""
    return np.concatenate([program.burst.astype(np.float64), program.tail])


# A program in some of whose regions processors are faster or slower: ``solve=2``.


_HINT = "write solve=2 for a region that computes twice as fast as traced"


def parse_region_speeds(texts: Iterable[str]) -> dict[str, float]:
    """Read speeds of regions, ``NAME=SPEED`` each."""
    speeds: dict[str, float] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            speed = float(number)
        except ValueError:
            speed = math.nan
        if not name or not 0 < speed < math.inf:
            raise UsageError(f"region speed: {text!r} is no speed of a region", _HINT)
        if name in speeds:
            raise UsageError(f"region speed: {name} has two speeds", "give it one")
        speeds[name] = speed
    return speeds


def at_speeds(program: Program, trace: Trace, speeds: Mapping[str, float]) -> Program:
    """Return the program with other CPU speeds in some regions, on all processes."""
    regions = regions_of(program, trace)
    factor = np.ones(len(regions))
    for name, speed in speeds.items():
        mine = [number for number, known in enumerate(regions.names) if known == name]
        if not mine:
            raise UsageError(
                f"region speed: nothing is computed in a region {name!r}",
                did_you_mean(name, regions.names, "popmodel whatif TRACE --all lists the regions"),
            )
        factor[mine] = 1 / speed
    return scaled(program, regions, np.repeat(factor[:, None], program.sequences, axis=1))
