"""Profiles in Cube's format (``profile.cubex`` of Score-P) as measured runs without a trace.

A profile has sums of the run by call path and thread. What these are is decided as Cube's Advisor
does (Cube GUI User Guide 4.8, POP assessments; ``PerformanceTest.cpp`` of its plugin): computation
is all that lies outside MPI, other libraries of communication, threads and devices, and outside
what synchronises in OpenMP; a call path is inside OpenMP below a parallel construct or a task; the
runtime is the longest time of a thread. Its formulas of efficiencies are those of the families.
"""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.base.errors import FileError, PopmodelError, UsageError
from popmodel.efficiency.evidence import CallSite, Evidence
from popmodel.efficiency.measure import MeasuredRun
from popmodel.efficiency.observables import Observables, RegionObservables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_GET = "pip install 'popmodel-hpc[cubex]'"
_AGAIN = "give profile.cubex as Score-P writes it, not remapped, or copy it again"
_NOT_READ = "several roots of calls (tasks), computed metrics (remapped profiles)"
_WHOLE_RUN = (
    "a profile of the whole run, with MPI_Init and MPI_Finalize: efficiencies by the rules of "
    "Cube's Advisor, nothing replayed; all processes are taken as on one node"
)
_SUMS_ONLY = "a profile has sums, and no course of time"
_ABSENT = (
    *("ideal_runtime", "idle_serial", "idle_imbalance", "idle_scheduling"),
    *("openmp_imbalance", "openmp_synchronisation", "openmp_scheduling", "openmp_mpi"),
)
_COUNTERS = {
    "instructions": ("PAPI_TOT_INS", "perf::INSTRUCTIONS", "instructions"),
    "cycles": ("PAPI_TOT_CYC", "perf::CPU-CYCLES", "cycles", "cpu-cycles"),
}
_IDLE = "omp_idle_threads"
_NOT_COMPUTING = frozenset({"shmem", "pthread", "opencl", "cuda", "hip", "openacc", "libwrap"})
_SYNCHRONISING = frozenset(
    {"barrier", "implicit barrier", "atomic", "critical", "ordered", "taskwait", "flush"}
)
_IN_OPENMP = frozenset({"parallel", "task", "task create"})
_LOCKS = re.compile(r"omp_(destroy|init|set|test|unset)(_nest)?_lock", re.IGNORECASE)


def is_cube_profile(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a profile in Cube's format, by its name."""
    return os.fspath(path).endswith(".cubex")


def read_cube_profile(path: str | os.PathLike[str]) -> MeasuredRun:
    """Read a run; raises `FileError` for a file that is none, `UsageError` without the library."""
    try:
        from pycubexr import CubexParser
    except ImportError:
        raise UsageError(
            f"{os.fspath(path)}: profiles of Cube are read by pycubexr, which is not installed",
            _GET,
        ) from None
    try:
        Path(path).open("rb").close()  # what is wrong with the file, not with what is in it
    except OSError as error:
        raise FileError(path, (error.strerror or "cannot be read").lower()) from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of checksums that a writer got wrong, of files left open
        try:
            with CubexParser(path) as cube:
                (observed, sites), problem = _measured(cube), None
        except PopmodelError as error:
            problem = error.message
        except Exception:  # whatever pycubexr meets in a damaged file: it checks by assertions
            problem = f"is damaged, or has what pycubexr does not read: {_NOT_READ}"
    if problem:
        raise FileError(path, problem, hint=_AGAIN)
    evidence = Evidence(calls=sum(site.count for site in sites))
    return MeasuredRun(
        os.fspath(path), observed, (), (_WHOLE_RUN,), call_sites=sites, evidence=evidence
    )


def _measured(cube: Any) -> tuple[Observables, tuple[CallSite, ...]]:
    """Sums of the threads of a profile, as of a trace, and of its calls of MPI."""
    cnodes = sorted(cube.all_cnodes(), key=lambda cnode: cnode.id)
    columns, threads = _teams(cube.get_locations())
    masters = np.cumsum(threads) - threads
    stored = {metric.name: metric for metric in cube.all_metrics()}
    if "time" not in stored:
        raise PopmodelError("is a profile without times")
    regions = [cube.get_region(cnode) for cnode in cnodes]

    def exclusive(name: str) -> NDArray[np.float64]:
        """A metric by call path and thread, shape (call paths, T)."""
        values = cube.get_metric_values(stored[name], cache=False)
        rows = [values.cnode_values(cnode, convert_to_exclusive=True) for cnode in cnodes]
        return np.asarray(rows, dtype=np.float64)[:, columns]

    time = exclusive("time")
    if _IDLE in stored:
        time = time - exclusive(_IDLE)
    if not np.isfinite(time).all():
        raise PopmodelError("has times that are not finite")
    time = np.maximum(time, 0)  # what rounding of inclusive times leaves
    mpi = np.array([region.paradigm == "mpi" and region.name != "PARALLEL" for region in regions])
    computing = np.array([_is_computing(region) for region in regions]) & ~mpi
    inside = _outermost(
        cnodes,
        [region.paradigm == "openmp" and region.role in _IN_OPENMP for region in regions],
    )
    execution = time.sum(axis=0)
    useful = time[computing].sum(axis=0)
    omp_useful = time[computing & inside].sum(axis=0)
    in_mpi = time[mpi].sum(axis=0)
    counters = {
        counter: exclusive(name)[computing].sum(axis=0)
        for counter, names in _COUNTERS.items()
        if (name := next((name for name in names if name in stored), None))
    }
    visits = exclusive("visits") if "visits" in stored else np.zeros_like(time)
    forks = [
        region.name if (region.paradigm, region.role) == ("openmp", "parallel") else ""
        for region in regions
    ]
    around = _outermost(cnodes, forks)
    runtime = float(execution.max())
    observed = Observables(
        runtime=runtime,
        threads=threads,
        node=np.zeros(len(threads), dtype=np.int32),
        useful=useful,
        omp_useful=omp_useful,
        in_mpi=in_mpi,
        serial_useful=(useful - omp_useful)[masters],
        in_openmp=time[inside].sum(axis=0)[masters],
        serial_mpi=time[mpi & ~inside].sum(axis=0)[masters],
        has_mpi=bool(in_mpi.any()),
        has_openmp=bool(inside.any()),
        not_in_mpi=(execution - in_mpi)[masters],
        regions=tuple(
            _parallel_region(
                name,
                visits[rows & (np.array(forks) == name)][:, masters],
                time[rows],
                computing[rows],
                mpi[rows],
                threads,
            )
            for name in dict.fromkeys(filter(None, around.tolist()))
            for rows in [around == name]
        ),
        absent=dict.fromkeys(_ABSENT, _SUMS_ONLY),
        **counters,
    )
    places: dict[tuple[str, str], list[float]] = {}
    for row in np.flatnonzero(mpi).tolist():
        caller = cnodes[row].parent
        function = "" if caller is None else cube.get_region(caller).name
        sums = places.setdefault((regions[row].name, function), [0.0, 0.0])
        sums[0] += visits[row].sum()
        sums[1] += time[row].sum()
    sites = [
        CallSite(call, function, "", round(count), spent, spent / (runtime * threads.sum()))
        for (call, function), (count, spent) in places.items()
    ]
    return observed, tuple(sorted(sites, key=lambda site: -site.time))


def _parallel_region(
    name: str,
    visits: NDArray[np.float64],
    time: NDArray[np.float64],
    computing: NDArray[np.bool_],
    mpi: NDArray[np.bool_],
    threads: NDArray[np.int64],
) -> RegionObservables:
    """What a profile says of a parallel region, of the times of its call paths."""
    masters = np.cumsum(threads) - threads
    wall, useful = time[:, masters].sum(axis=0), time[computing].sum(axis=0)
    busiest = np.maximum.reduceat(useful, masters)
    all_time, spent = float(wall @ threads), float(useful.sum())
    return RegionObservables(
        name,
        round(float(visits.sum())),
        float(wall.sum()),
        spent / all_time if all_time else 0.0,
        spent / float(busiest @ threads) if busiest.any() else 1.0,
        max(all_time - spent, 0.0),
        imbalance=float(busiest @ threads) - spent,
        mpi=float(time[mpi].sum()),
        barriers=float(time[~computing & ~mpi].sum()),
    )


def _teams(locations: Sequence[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Columns of the CPU threads of all processes, one after the other, and threads of each.

    Values stand in the order of the locations' ids; the system tree lists these by process, and
    their ranks begin again in each.
    """
    by_id = sorted(locations, key=lambda location: int(location.id))
    order = {location.id: column for column, location in enumerate(by_id)}
    cpus = [location for location in locations if location.type == "thread"]
    ranks = [int(location.rank) for location in cpus]
    first = [place for place, rank in enumerate(ranks) if not place or rank <= ranks[place - 1]]
    columns = np.array([order[location.id] for location in cpus], dtype=np.int64)
    return columns, np.diff([*first, len(cpus)])


def _is_computing(region: Any) -> bool:
    """Whether what a region does itself is computation, MPI apart."""
    if region.paradigm == "openmp":
        return region.role not in _SYNCHRONISING and not _LOCKS.fullmatch(region.name)
    return region.paradigm not in _NOT_COMPUTING


def _outermost(cnodes: Sequence[Any], marks: Sequence[Any]) -> NDArray[Any]:
    """Mark of the outermost call path that has one, around each or itself; an empty one if none."""
    found: dict[int, Any] = dict(zip((cnode.id for cnode in cnodes), marks, strict=True))
    done: set[int] = set()

    def mark(cnode: Any) -> Any:
        if cnode.id not in done:
            above = cnode.parent is not None and mark(cnode.parent)
            found[cnode.id] = above or found[cnode.id]
            done.add(cnode.id)
        return found[cnode.id]

    return np.array([mark(cnode) for cnode in cnodes])
