"""OpenMP parallel regions and functions: what threads do inside, and which cost most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.base.units import format_time, plural
from popmodel.efficiency.observables import RegionObservables
from popmodel.traces.codes import SYNCHRONISING
from popmodel.traces.intervals import Intervals, alone
from popmodel.traces.regions import ParallelRegions, locked, synchronisation
from popmodel.traces.runtime import state_times
from popmodel.traces.tables import part_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.efficiency.observables import Observables
    from popmodel.traces import Trace
    from popmodel.traces.intervals import Instants


_NS = 1e9
# Pairs of region instance and thread that are looked at together: bounds the memory.
_BLOCK = 1 << 20


def measure_regions(
    trace: Trace,
    running: Intervals,
    in_calls: Intervals,
    parallel: ParallelRegions,
    apart: Intervals,
    waits: Instants,
) -> tuple[dict[str, float], tuple[RegionObservables, ...]]:
    """Sums of `COLUMNS` over all parallel regions, ns, and each region, the costliest first."""
    label, names = parallel.label, parallel.names
    sums = np.zeros((len(names), len(COLUMNS)))
    for block, columns in region_instances(trace, running, in_calls, parallel, apart, waits):
        np.add.at(sums, label[block], columns)
    total = dict(zip(COLUMNS, sums.sum(axis=0).tolist(), strict=True))
    return total, _by_cost(names, sums, np.bincount(label, minlength=len(names)))


def region_instances(
    trace: Trace,
    running: Intervals,
    in_calls: Intervals,
    parallel: ParallelRegions,
    apart: Intervals,
    waits: Instants,
) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Rows of `ParallelRegions.on_master` block by block, and their columns `COLUMNS`, ns."""
    synchronising = waiting_in(trace, running, in_calls)
    in_locks = alone(locked(trace), [running, in_calls])
    in_mpi_only = alone([in_calls], [running])
    bounds = np.asarray(trace.process_offsets, dtype=np.int64)
    process = part_of(bounds, parallel.on_master.location)
    threads = np.diff(bounds)[process]
    for block in _blocks(threads):
        yield block, _instances(
            parallel.on_master, block, bounds[process[block]], threads[block],
            running, apart, in_mpi_only, synchronising, in_locks, waits, parallel.in_function,
        )  # fmt: skip


def waiting_in(trace: Trace, running: Intervals, in_calls: Intervals) -> Intervals:
    """When threads wait in barriers, critical sections and locks, by states or events."""
    shown = trace.records.in_state(SYNCHRONISING)
    return alone([shown, *synchronisation(trace)], [running, in_calls])


COLUMNS = (
    "wall", "thread_time", "useful", "mean_useful", "max_useful", "imbalance", "synchronisation",
    "locks", "scheduling", "mpi", "idle_imbalance", "idle_scheduling",
)  # fmt: skip
"""Of an instance: its wall time, and thread times; `imbalance` is times threads."""


def _instances(
    parallel: Intervals,
    block: slice,
    first: NDArray[np.int64],
    threads: NDArray[np.int64],
    running: Intervals,
    apart: Intervals,
    in_mpi: Intervals,
    synchronising: Intervals,
    in_locks: Intervals,
    waits: Instants,
    outlined: Intervals,
) -> NDArray[np.float64]:
    """Columns `COLUMNS` of the region instances of a block, ns."""
    starts = np.cumsum(threads) - threads
    thread = np.arange(threads.sum()) - np.repeat(starts, threads)
    location = np.repeat(first, threads) + thread
    begin = np.repeat(parallel.begin[block], threads)
    end = np.repeat(parallel.end[block], threads)
    busy = running.inside(location, begin, end)
    useful = np.maximum(busy - apart.inside(location, begin, end), 0)
    mpi = in_mpi.inside(location, begin, end)
    summed = waits.inside(location, begin, end)
    waiting = synchronising.inside(location, begin, end) + summed
    idle = end - begin - busy - mpi
    team = (thread == 0) | (outlined.starts(location, begin, end)[1] > 0)
    wall = parallel.end[block] - parallel.begin[block]
    per_thread = {
        name: np.add.reduceat(values, starts)
        for name, values in {
            "useful": useful,
            "synchronisation": waiting,
            "locks": in_locks.inside(location, begin, end) + summed,
            "scheduling": idle - waiting,
            "mpi": mpi,
        }.items()
    }
    busiest = np.maximum.reduceat(useful, starts)
    least_idle = np.minimum.reduceat(np.where(team, idle, np.iinfo(np.int64).max), starts)
    shared = least_idle * np.add.reduceat(team.astype(np.int64), starts)
    mean = per_thread["useful"] / threads
    columns = {
        **per_thread,
        "wall": wall,
        "thread_time": wall * threads,
        "mean_useful": mean,
        "max_useful": busiest,
        "imbalance": (busiest - mean) * threads,
        "idle_imbalance": np.add.reduceat(np.where(team, idle, 0), starts) - shared,
        "idle_scheduling": shared,
    }
    return np.stack([columns[name] for name in COLUMNS], axis=1).astype(np.float64)


def _blocks(threads: NDArray[np.int64]) -> Iterator[slice]:
    """Runs of instances that have about `_BLOCK` threads together."""
    ends = np.cumsum(threads)
    begin = 0
    while begin < len(threads):
        done = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, done + _BLOCK, side="right")))
        yield slice(begin, end)
        begin = end


def _by_cost(
    names: Sequence[str], sums: NDArray[np.float64], counts: NDArray[np.int64]
) -> tuple[RegionObservables, ...]:
    regions = []
    for name, values, count in zip(names, sums.tolist(), counts.tolist(), strict=True):
        column = dict(zip(COLUMNS, values, strict=True))
        busiest = column["max_useful"]
        regions.append(
            RegionObservables(
                name=name,
                count=count,
                wall=column["wall"] / _NS,
                parallel_efficiency=(
                    column["useful"] / column["thread_time"] if column["thread_time"] else 1.0
                ),
                load_balance=column["mean_useful"] / busiest if busiest else 1.0,
                cost=(column["thread_time"] - column["useful"]) / _NS,
                locks=column["locks"] / _NS,
                imbalance=column["imbalance"] / _NS,
                mpi=column["mpi"] / _NS,
                barriers=max(column["synchronisation"] - column["locks"], 0.0) / _NS,
            )
        )
    return tuple(sorted(regions, key=lambda r: (-r.cost, r.name)))


# Functions of the program, or regions that users mark.


def function_efficiencies(trace: Trace) -> list[dict[str, Any]]:
    """Functions of a run, or of a part, those with most useful time of their own first; times in s.

    Efficiencies are those of all threads of the run in all visits of a function together: its
    runtime is the time of the thread that is in it for longest, with all that it calls.
    """
    times = trace.records.functions(np.asarray(trace.process_offsets, np.int64))
    if times is None:
        return []
    number = len(times.names)
    visits, inclusive, useful, own = (
        np.bincount(times.function, column, number)
        for column in (times.visits, times.inclusive, times.useful, times.own)
    )
    longest, busiest = np.zeros((2, number), np.int64)
    np.maximum.at(longest, times.function, times.inclusive)
    np.maximum.at(busiest, times.function, times.useful)
    every = max(int(state_times(trace)[0].sum()), 1)  # of all threads, in all states
    rows = []
    order = np.lexsort((np.array(times.names), -own))
    for function in order[(visits + inclusive)[order] > 0].tolist():  # others are not in this part
        mean, most = float(useful[function]) / trace.locations, float(busiest[function])
        elapsed = float(longest[function])
        rows.append(
            {
                "name": times.names[function],
                "visits": int(visits[function]),
                "exclusive": float(own[function]) / _NS,
                "inclusive": float(inclusive[function]) / _NS,
                "share": float(own[function]) / every,
                "parallel_efficiency": mean / elapsed if elapsed else None,
                "load_balance": mean / most if most else None,
                "communication_efficiency": most / elapsed if elapsed else None,
            }
        )
    return rows


# What threads do that no parallel region explains: they are not OpenMP's, or events were lost.
#
# Such a thread's running time is useful like any other, but outside of all regions. Families that
# take a process for its master thread do not see it.


NOTEWORTHY = 0.01
"""Share of all thread time from which on it has to be known before the numbers are read."""


def apart(run: Observables) -> bool:
    """Whether workers run or call MPI outside of parallel regions for a noteworthy time."""
    kinds = _kinds(run)
    length = sum(_useful(run)[of].sum() for of in kinds.values()) + run.in_mpi[kinds[_CALL]].sum()
    return bool(length > NOTEWORTHY * run.threads.sum() * run.runtime)


def remarks(run: Observables) -> list[str]:
    """Say which threads do what outside of parallel regions, one sentence for each kind."""
    sentences = []
    for what, of in _kinds(run).items():
        if not of.any():
            continue
        useful, in_mpi = _useful(run)[of].sum(), run.in_mpi[of].sum()
        times = (
            [f"{format_time(useful, digits=3, trim=True)} of useful time, counted outside regions"]
            if useful
            else []
        )
        if in_mpi and what == _CALL:
            times.append(f"{format_time(in_mpi, digits=3, trim=True)} in MPI")
        sentences.append(f"{_who(run, of)} {what[int(of.sum() > 1)]} ({', '.join(times)})")
    if sentences and run.has_mpi:
        sentences[-1] += (
            "; the families mpi and mpi-additive count master threads only, hybrid-additive and "
            "talp all"
        )
    return sentences


# What one thread does, and what several do.
_CALL = (
    "calls MPI but belongs to no parallel region",
    "call MPI but belong to no parallel region",
)
_RUN = ("runs but belongs to no parallel region", "run but belong to no parallel region")
_BESIDE = ("also runs outside its parallel regions", "also run outside their parallel regions")


def _kinds(run: Observables) -> dict[tuple[str, str], NDArray[np.bool_]]:
    """Which threads are of a kind, in words for one and for several."""
    worker = np.ones(len(run.useful), dtype=bool)
    worker[run.masters] = False
    in_region = run.omp_useful > 0
    calls = run.in_mpi > 0
    runs = _useful(run) > 0
    return {
        _CALL: worker & ~in_region & calls,
        _RUN: worker & ~in_region & ~calls & runs,
        _BESIDE: worker & in_region & runs,
    }


def _useful(run: Observables) -> NDArray[np.float64]:
    return run.useful - run.omp_useful


def _who(run: Observables, of: NDArray[np.bool_]) -> str:
    """Processes and threads of some threads: ``rank 0: threads 1-3``."""
    which = np.flatnonzero(of)
    process = part_of(run.masters, which)
    threads: dict[int, list[int]] = {}
    for rank, thread in zip(process.tolist(), (which - run.masters[process]).tolist(), strict=True):
        threads.setdefault(rank, []).append(thread)
    first = next(iter(threads.values()))
    ranks = [rank for rank, mine in threads.items() if mine == first]
    named = f"{_numbers('rank', ranks)}: {_numbers('thread', first)}"
    others = len(threads) - len(ranks)
    return f"{named} and others of {plural(others, 'process', 'processes')}" if others else named


def _numbers(noun: str, numbers: Sequence[int]) -> str:
    """``thread 1``, ``threads 1-3`` or ``threads 1-3, 7``; they ascend."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    listed = ", ".join("-".join(map(str, run)) for run in runs)
    return f"{noun}{'s' if len(numbers) > 1 else ''} {listed}"
