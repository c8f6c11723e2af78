"""What is measured of a run to say why it loses time: call sites, serial code, networks, CPUs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.arrays import alike, distinct
from popmodel.base.values import dataclass
from popmodel.kernel import _kernel
from popmodel.network.network import Network
from popmodel.simulator import replay
from popmodel.simulator.mpi_calls import looks
from popmodel.simulator.program import at_once
from popmodel.traces.calls import FOUND_NOTHING, call_times, lengths_in
from popmodel.traces.caveats import crowding, first_values, waiting
from popmodel.traces.codes import Event
from popmodel.traces.tables import part_of, walk
from popmodel.traces.workers import in_threads

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator import Execution, Program
    from popmodel.traces import Trace
    from popmodel.traces.calls import CallTable
    from popmodel.traces.intervals import Intervals
    from popmodel.traces.records import CallSites
    from popmodel.traces.regions import ParallelRegions


# What is measured of a run only to say why it loses time: no efficiency is computed from it.


_NS = 1e9
WAITED = 0.1
"""Share of the time that threads wait for a CPU above which a run is disturbed."""
USUAL = Network(name="usual", latency=2e-6, bandwidth=10e9)
"""What latency and bandwidth are compared on: an interconnect of a cluster."""
SLOW = {
    True: Network(name="slow memory", latency=5e-6, bandwidth=1e9),
    False: Network(name="gigabit Ethernet", latency=50e-6, bandwidth=125e6),
}
"""Networks slower than those that programs run on, inside one node or not: what takes longer than
on them is not the network's doing."""


@dataclass(frozen=True)
class SerialCode:
    """Useful time of masters between two parallel regions."""

    # Names of the regions; empty at the begin and at the end of the run.
    after: str
    before: str
    count: int  # Of such stretches, over processes
    time: float  # Useful time, summed over processes, s


@dataclass(frozen=True)
class OtherNetworks:
    """Runtimes of the run on networks other than the ideal one, s."""

    slow: float  # On the network of `SLOW` that suits the run
    # On the network `USUAL` without its other parameter.
    latency: float
    bandwidth: float
    # As `bandwidth`, but no blocking send holds up the receives beside it; None where there are no
    # such sends.
    at_once: float | None = None


@dataclass(frozen=True)
class Crowd:
    """Threads that may use fewer processors than there are threads to use them."""

    # Of the process that is worst off: its threads, and how many threads share how many processors.
    # Where only its own do, the process is bound too narrowly.
    threads: int
    sharing: int
    cpus: int


@dataclass(frozen=True)
class Evidence:
    """What is known about the causes of losses."""

    calls: int = 0  # Calls of MPI
    serial: tuple[SerialCode, ...] = ()  # The longest first
    # None where transfer costs little, or the run cannot be replayed.
    networks: OtherNetworks | None = None
    # None where threads have enough processors, or nothing is known about that.
    crowd: Crowd | None = None
    delayed: bool = False  # Whether threads waited for CPUs noticeably, for whatever reason
    # Share of the time in which threads were ready to run that they waited for a CPU.
    waited: float = 0.0

    @property
    def disturbed(self) -> bool:
        """Whether threads lacked CPUs, or waited for them: the times are not the program's."""
        return self.crowd is not None or self.waited > WAITED


def gather(trace: Trace, serial: tuple[SerialCode, ...], program: Program | None) -> Evidence:
    """Gather the evidence of a run."""
    delayed = bool(crowding(trace))
    return Evidence(
        calls=int(call_times(trace).calls.sum()),
        serial=serial,
        networks=None if program is None else _other_networks(program),
        crowd=_crowd(trace.whole or trace) if delayed else None,
        delayed=delayed,
        waited=waiting(trace),
    )


def serial_code(
    trace: Trace, running: Intervals, parallel: ParallelRegions
) -> tuple[SerialCode, ...]:
    """Useful time of masters between parallel regions, by the regions before and after."""
    regions = parallel.on_master
    if not len(regions):
        return ()
    location = regions.location
    label = parallel.label
    first = np.ones(len(regions), dtype=bool)
    first[1:] = location[1:] != location[:-1]
    last = np.append(first[1:], True)
    begin = np.full(len(regions), trace.begin, dtype=np.int64)
    begin[~first] = regions.end[np.flatnonzero(~first) - 1]
    after = np.full(len(regions), -1, dtype=np.int64)
    after[~first] = label[np.flatnonzero(~first) - 1]
    final = np.flatnonzero(last)
    parts = (
        (location, begin, regions.begin, after, label),
        (
            location[final],
            regions.end[final],
            np.full(len(final), trace.end, dtype=np.int64),
            label[final],
            np.full(len(final), -1, dtype=np.int64),
        ),
    )
    where, begin, end, after, before = (
        np.concatenate(columns).astype(np.int64) for columns in zip(*parts, strict=True)
    )
    useful = running.inside(where, begin, np.maximum(begin, end))
    distinct, index = alike(after, before)
    time = np.bincount(index, useful, len(distinct))
    count = np.bincount(index, minlength=len(distinct))
    names = [*parallel.names, ""]  # -1 is the last
    serial = [
        SerialCode(names[after], names[before], int(count[row]), float(time[row]) / _NS)
        for row, (after, before) in enumerate(distinct.tolist())
        if time[row]
    ]
    return tuple(sorted(serial, key=lambda one: (-one.time, one.after, one.before)))


def _other_networks(program: Program) -> OtherNetworks:
    one_node = len(distinct(program.nodes)) <= 1
    fast = USUAL.with_(latency=0.0)

    def runtime(network: Network | None) -> float | None:
        """On a network; without one, on the fast one with all messages of an exchange at once."""
        replayed = program if network is not None else at_once(program)
        _kernel.trim()  # the next replay hardly fits into what the one before has freed
        return None if replayed is None else replay(replayed, network or fast).runtime

    networks = (None, SLOW[one_node], USUAL.with_(bandwidth=float("inf")), fast)
    exchanged, *others = in_threads(runtime, [(network,) for network in networks])
    slow, latency, bandwidth = (float(time or 0.0) for time in others)
    return OtherNetworks(slow, latency, bandwidth, exchanged)


def _crowd(trace: Trace) -> Crowd | None:
    cpus, sharing = (first_values(trace, mark) for mark in (Event.CPUS, Event.SHARING))
    crowded = np.flatnonzero((cpus > 0) & (sharing > cpus))
    if not len(crowded):
        return None
    worst = int(crowded[np.argmax(sharing[crowded] / cpus[crowded])])
    process = int(np.searchsorted(trace.process_offsets, worst, side="right")) - 1
    threads = int(trace.process_offsets[process + 1] - trace.process_offsets[process])
    return Crowd(threads, int(sharing[worst]), int(cpus[worst]))


# Where in the program MPI is called, and how much time is lost there.


@dataclass(frozen=True)
class CallSite:
    """One place in the program that calls MPI, over all threads."""

    call: str  # Such as ``MPI_Allreduce``
    function: str  # That calls it; empty where it is not known
    # Such as ``solver.c:42``, or a place in the program's file where its lines are not known; empty
    # where nothing is.
    place: str
    count: int  # How often it was called
    time: float  # Time of all threads in these calls, s
    share: float  # The same as part of the time of all threads of the run
    # What of the time is left on the ideal network, s: waiting for others. The rest is transfer.
    # None where the run cannot be replayed, or its replay does not contain the call.
    waiting: float | None = None

    @property
    def name(self) -> str:
        """The call and where it is, as `site_name` writes it."""
        return site_name(self.call, self.function, self.place)


def site_name(call: str, function: str, place: str) -> str:
    """Write a call and where it is, as far as that is known: ``MPI_Bcast in main (app.c:12)``."""
    return call + (f" in {function}" if function else "") + (f" ({place})" if place else "")


def measure_call_sites(trace: Trace) -> CallTotals:
    """Measure the call sites of MPI of a run."""
    calls = (trace.whole or trace).calls()
    totals = CallTotals(calls, trace.sites())
    for block in walk(rows=len(calls)):
        inside = lengths_in(trace, block)
        totals.add("count", block, inside.calls)
        totals.add("time", block, inside.time)
    return totals


def credited_to_probes(program: Program, calls: CallTable) -> Program:
    """Return a program whose waiting is that of the calls in which the run waited.

    Where a process probes or tests for what it then receives, the replay waits in the last of these
    calls: each operation becomes one of the longest among its call and those that looked before it.
    """
    looking_names = np.array([looks(name) for name in calls.names], bool)
    if not looking_names.any():
        return program
    looking = np.flatnonzero(looking_names[calls.name])
    acting = np.unique(program.call).astype(np.int64)
    following = np.searchsorted(acting, looking)
    looking, following = looking[following < len(acting)], following[following < len(acting)]
    location = part_of(calls.offsets, looking)
    mine = acting[following] < calls.offsets[location + 1]
    looking, following = looking[mine], following[mine]
    if not len(looking):
        return program
    row, of = np.append(acting, looking), np.append(np.arange(len(acting)), following)
    order = np.lexsort((calls.exit[row] - calls.entry[row], of))
    longest = row[order[np.append(np.diff(of[order]) > 0, True)]]
    call = longest[np.searchsorted(acting, program.call)].astype(program.call.dtype)
    return replace(program, call=call)


class CallTotals:
    """Sums over the calls of one name and site, block by block: their tables would be long."""

    def __init__(self, calls: CallTable, sites: CallSites) -> None:
        self.places = sites.places
        self.names = calls.names
        # By what is summed up, and by name and site.
        self.totals: dict[str, dict[tuple[int, int], float]] = {"count": {}, "time": {}}
        self._name, self._site = calls.name, sites.site

    def add(self, what: str, rows: slice, values: NDArray[np.int64]) -> None:
        """Add a value of each of these calls."""
        index = self._name[rows].astype(np.int64)
        if len(self.places) > 1:
            kinds, index = alike(index, self._site[rows].astype(np.int64))
        else:
            names = np.arange(index.max(initial=-1) + 1)
            kinds = np.stack([names, np.zeros_like(names)], axis=1)
        total = self.totals[what]
        for (name, site), value in zip(
            kinds.tolist(), np.bincount(index, values, len(kinds)).tolist(), strict=True
        ):
            total[name, site] = total.get((name, site), 0.0) + value

    def sites(
        self, all_threads: int, ideal: tuple[Program, Execution] | None = None
    ) -> tuple[CallSite, ...]:
        """Call sites, those that cost most time first."""
        waiting, replayed = None, set()
        if ideal is not None:
            program, execution = ideal
            waiting = execution.time_in_calls
            replayed = set(distinct(program.call_code[program.call]).tolist())
        sums: dict[tuple[str, int], tuple[int, float, float | None]] = {}
        for (name, site), time in self.totals["time"].items():
            mine = None if waiting is None or name not in replayed else float(waiting[site, name])
            key = self.names[name].removesuffix(FOUND_NOTHING), site
            count, before, waited = sums.get(key, (0, 0.0, None))
            if waited is not None and mine is not None:
                waited += mine
            sums[key] = (
                count + int(self.totals["count"][name, site]),
                before + time,
                mine if waited is None else waited,
            )
        sites = [
            CallSite(
                call,
                *self.places[site],
                count=count,
                time=time / _NS,
                share=time / all_threads if all_threads else 0.0,
                waiting=waited,
            )
            for (call, site), (count, time, waited) in sums.items()
            if time > 0  # at the edges of a window there are calls of which nothing is left
        ]
        order = sorted(sites, key=lambda one: (-one.time, one.call, one.function, one.place))
        return tuple(order)
