"""Where in the program MPI is called, and how much time is lost there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from popmodel.arrays import alike, distinct
from popmodel.simulator.mpi_calls import looks
from popmodel.trace.calls import FOUND_NOTHING, lengths_in
from popmodel.trace.tables import part_of, walk
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator import Execution, Program
    from popmodel.trace import Trace
    from popmodel.trace.calls import CallTable
    from popmodel.trace.records import CallSites

_NS = 1e9


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
    found = CallTotals(calls, trace.sites())
    for block in walk(rows=len(calls)):
        inside = lengths_in(trace, block)
        found.add("count", block, inside.calls)
        found.add("time", block, inside.time)
    return found


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
            waiting = execution.spent
            replayed = set(distinct(program.call_code[program.call]).tolist())
        found: dict[tuple[str, int], tuple[int, float, float | None]] = {}
        for (name, site), time in self.totals["time"].items():
            mine = None if waiting is None or name not in replayed else float(waiting[site, name])
            key = self.names[name].removesuffix(FOUND_NOTHING), site
            count, before, waited = found.get(key, (0, 0.0, None))
            if waited is not None and mine is not None:
                waited += mine
            found[key] = (
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
            for (call, site), (count, time, waited) in found.items()
            if time > 0  # at the edges of a window there are calls of which nothing is left
        ]
        order = sorted(sites, key=lambda one: (-one.time, one.call, one.function, one.place))
        return tuple(order)
