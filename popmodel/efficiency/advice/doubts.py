"""Signs that a run was disturbed: losses that neither program nor network explain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from popmodel.efficiency.evidence import SLOW
from popmodel.units import format_bandwidth, format_time, plural

if TYPE_CHECKING:
    from popmodel.efficiency.measure import MeasuredRun
    from popmodel.efficiency.observables import RegionObservables

_BEYOND = 1.5
"""How many times longer than on a slow network a run has to take before it is not the network."""
_FORK = 5e-4
"""Seconds per instance of a region above what forking, joining and scheduling a team cost."""
_INSTANCES = 10  # fewer may hold the start of the threads


def doubts(run: MeasuredRun) -> list[str]:
    """Say what makes the efficiencies of a run doubtful, a sentence or two each."""
    # Threads that share cores explain the other signs.
    return crowd_doubt(run) or [*network_doubt(run), *region_doubt(run)]


def crowd_doubt(run: MeasuredRun) -> list[str]:
    """Whether threads share cores with each other or with other programs; no sentence or one."""
    crowd = run.evidence.crowd
    if crowd is None and run.evidence.delayed:
        return [
            "Doubtful: threads waited for CPUs, which counts as loss or as useful time. "
            "Trace again on otherwise idle nodes."
        ]
    if crowd is None:
        return []
    threads, cores = plural(crowd.sharing, "thread"), plural(crowd.cpus, "core")
    if crowd.sharing <= crowd.threads:
        return [
            f"Doubtful: the {threads} of a process share {cores}. Bind processes wider (Open MPI: "
            f"--map-by slot:PE={crowd.threads} or --bind-to none) and trace again first."
        ]
    return [
        f"Doubtful: {threads} share {cores}. Use fewer processes or threads per node, or bind them "
        "wider where cores are idle (Open MPI: --bind-to none), and trace again first."
    ]


def network_doubt(run: MeasuredRun) -> list[str]:
    """Whether MPI took longer than a slow network explains; no sentence or one."""
    networks, observed = run.evidence.networks, run.observables
    if networks is None:
        return []
    beside = sum(site.time for site in run.call_sites if site.waiting is None)
    runtime = observed.runtime - beside / len(observed.threads)
    if runtime <= _BEYOND * networks.slow:
        return []
    slow = SLOW[len(set(observed.node.tolist())) <= 1]
    return [
        f"Doubtful: even on a slow network ({format_time(slow.latency, trim=True)}, "
        f"{format_bandwidth(slow.bandwidth)}) the replay takes only "
        f"{format_time(networks.slow, digits=3)} of the {format_time(observed.runtime, digits=3)}, "
        "so the network does not explain the time in MPI. Check that each process had its own "
        "core; if not, trace again."
    ]


def region_doubt(run: MeasuredRun) -> list[str]:
    """Whether parallel regions cost more than forking and joining can; no sentence or one."""
    for region in run.observables.regions[:1]:
        lost, instances = overhead(region), max(region.count, 1)
        threads = _thread_time(region) / region.wall if region.wall else 1.0
        each = lost / instances / max(threads, 1.0)
        if instances >= _INSTANCES and each > _FORK and lost > 0.5 * region.cost:
            return [
                f"Doubtful: in each instance of {region.name} even the busiest thread does nothing "
                f"useful for {format_time(each, digits=3)}, far more than fork and join cost. "
                "Check that each thread had its own core; if not, trace again."
            ]
    return []


def overhead(region: RegionObservables) -> float:
    """Thread-seconds of a region that neither imbalance nor locks, barriers or MPI explain."""
    explained = region.imbalance + region.locks + region.barriers + region.mpi
    return max(region.cost - explained, 0.0)


def _thread_time(region: RegionObservables) -> float:
    lost = 1 - region.parallel_efficiency
    return region.cost / lost if lost > 0 else region.wall
