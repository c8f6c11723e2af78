"""Which jobs measure a part of the machine: from its cores, caches, sockets and nodes.

Thread counts follow from the cores, working sets from the caches, tiers of the network from sockets
and nodes. Where the full mode takes every point, the quick one takes the ends and the middle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from popmodel.bench.jobs import (
    PATHS,
    BenchJob,
    counts_up_to,
    from_params,
    job,
    loop_jobs,
    memory_jobs,
)
from popmodel.machine.parameter import COPYING, NODE_PARTS, OPERATIONS, PLAIN
from popmodel.machine.quantity import Topology
from popmodel.values import dataclass

KIB, MIB = 1 << 10, 1 << 20

_SCHEDULES = {"static": (0, 1, 8, 64), "dynamic": (1, 8, 64), "guided": (1, 8)}  # 0: no chunk
_COLLECTIVES = (
    *("bcast", "reduce", "allreduce", "allgather", "gather", "scatter", "alltoall"),
    *("reduce_scatter", "scan"),
)

# Open MPI switches protocols near 4, 32 and 64 KiB, MPICH near 16 and 64 KiB: extra points there.
_TURNS = (16, 24, 32, 40, 48, 56, 64, 80, 96, 128, 192, 256, 384, 512)  # of rows
_FEW_TURNS = (24, 32, 40, 48, 56, 64, 96, 128, 192)
_MESSAGES = (
    0, 1, 8, 64, 256, 512, 1 * KIB, 2 * KIB, 3 * KIB, 4 * KIB, 5 * KIB, 6 * KIB, 8 * KIB, 12 * KIB,
    16 * KIB, 24 * KIB, 32 * KIB, 48 * KIB, 64 * KIB, 96 * KIB, 128 * KIB, 256 * KIB, 512 * KIB,
    1 * MIB, 2 * MIB, 4 * MIB,
)  # fmt: skip
_LATE = tuple(64 << power for power in range(13))  # 64 B to 256 KiB
_MOST_COMMUNICATING = 16  # threads of a rank
_DELAY = "0.0005"  # s: long against an eager send, short against the budget of a job


# -- the node


def node_jobs(
    wanted: Sequence[str], topology: Topology, smt: int, *, full: bool
) -> tuple[list[BenchJob], list[BenchJob], list[BenchJob]]:
    """Jobs of the node program."""
    cores = topology.cores_per_node
    threads = counts_up_to(cores, topology.cores_per_domain, topology.cores_per_socket)
    short: list[BenchJob] = []
    long: list[BenchJob] = []
    loops = loop_jobs(topology, full=full) if "loops" in wanted else []
    if "core" in wanted:
        short += [job("clock", threads=count) for count in threads]
        short += [job("fma", threads=count) for count in sorted({1, cores})]
        short += [job(name) for name in ("loads", "stores", "loop", "instructions", "in_flight")]
        short += [job("dependent", operation=name) for name in OPERATIONS]
        short += [job("row", turns=turns) for turns in (_TURNS if full else _FEW_TURNS)]
        if smt > 1:
            short += [
                job("smt", threads=2, shared=shared) for shared in (0, 1) if cores + shared > 1
            ]
    if "memory" in wanted:
        near, far = memory_jobs(topology, full=full)
        short += near
        long += far
    if "openmp" in wanted:
        short += _openmp_jobs(threads, full=full)
    if "noise" in wanted or NODE_PARTS.isdisjoint(wanted):
        # In the latter case for what comes with it: the node program tells what the hardware is.
        long.append(job("quantum"))
    if "core" in wanted and loops:
        # what else runs on the cores comes and goes: they are looked at in more launches
        loops = [job("clock", threads=threads[0]), job("instructions"), *loops]
    return short, loops, long


def _construct(name: str, **params: int) -> BenchJob:
    return from_params("construct", {"name": name, **params})


def _openmp_jobs(threads: Sequence[int], *, full: bool) -> list[BenchJob]:
    jobs = [_construct(name, threads=count) for name in PLAIN for count in threads]
    # Costs per byte and per chunk need no more than the ends of the range to be told.
    few = list(threads) if full else sorted({1, threads[-1]})
    sizes = (8, 4096, 262144) if full else (8, 4096)
    jobs += [
        _construct(name, threads=count, bytes=size)
        for name in COPYING
        for count in few
        for size in sizes
    ]
    for kind, chunks in _SCHEDULES.items():
        for chunk in chunks:
            more = {"chunk": chunk} if chunk else {}
            jobs += [_construct(f"schedule_{kind}", threads=count, **more) for count in few]
    return jobs


# -- MPI


@dataclass(frozen=True)
class MpiJobs:
    """Jobs of the MPI program by the launch that suits them."""

    everybody: tuple[BenchJob, ...]  # With all ranks
    pair: tuple[BenchJob, ...]  # With two ranks, alone on two nodes
    # With full thread support and two ranks, which have all cores of a node, or of one each.
    threads_inside: tuple[BenchJob, ...]
    threads_across: tuple[BenchJob, ...]
    # The same two ranks with less thread support: what the former is compared with.
    levels_inside: tuple[BenchJob, ...]
    levels_across: tuple[BenchJob, ...]


def mpi_jobs(
    wanted: Sequence[str], topology: Topology, ranks: int, nodes: int, *, full: bool
) -> MpiJobs:
    """Jobs of the MPI program; none with a single rank."""
    if ranks < 2:
        return MpiJobs((), (), (), (), (), ())
    tiers = _tiers(topology, ranks, nodes)
    jobs: list[BenchJob] = []
    if "p2p" in wanted:
        jobs += [one for tier in tiers for one in _p2p_jobs(tier, ranks // nodes, full=full)]
    if "collectives" in wanted:
        jobs += _collective_jobs(ranks, ranks // nodes, full=full)
    if "overlap" in wanted:
        jobs += [one for tier in tiers for one in _overlap_jobs(tier, full=full)]
    pair = [one for one in jobs if one.get("tier") == "network" and one.get("pairs", 1) == 1]
    inside, across = (
        _threads_jobs(topology, tier, full=full) if tier in tiers and "threads" in wanted else []
        for tier in ("node", "network")
    )
    everybody = [one for one in jobs if one not in pair]
    return MpiJobs(
        everybody=tuple(everybody),
        pair=tuple(pair),
        threads_inside=tuple(inside),
        threads_across=tuple(across),
        levels_inside=tuple(_level_jobs("node") if inside else ()),
        levels_across=tuple(_level_jobs("network") if across else ()),
    )


def _tiers(topology: Topology, ranks: int, nodes: int) -> list[str]:
    """Distances between ranks; with one socket ``node`` is the only one inside a node."""
    tiers = []
    if ranks // nodes > 1:
        tiers += ["near", "node"] if topology.sockets > 1 else ["node"]
    return tiers + (["network"] if nodes > 1 else [])


def _p2p_jobs(tier: str, per_node: int, *, full: bool) -> list[BenchJob]:
    few = (8, 256, KIB, 4 * KIB, 16 * KIB) if full else (8, KIB, 16 * KIB)
    trains = (8, KIB, 16 * KIB, 256 * KIB) if full else (8, 16 * KIB)
    windows = (KIB, 16 * KIB, 256 * KIB, MIB, 4 * MIB) if full else (16 * KIB, 256 * KIB, MIB)
    crowds = (16 * KIB, MIB) if full else (MIB,)
    jobs = [job("ping_pong", bytes=size, tier=tier) for size in _MESSAGES]
    jobs += [
        job("late_receiver", bytes=size, tier=tier, delay=_DELAY, progress=1) for size in _LATE
    ]
    jobs += [
        job(name, bytes=size, tier=tier)
        for name in ("send_overhead", "receive_overhead")
        for size in few
    ]
    jobs += [
        job("train", bytes=size, count=count, tier=tier) for size in trains for count in (1, 8, 64)
    ]
    jobs += [
        job("window", bytes=size, tier=tier, pairs=1, direction=direction)
        for size in windows
        for direction in ("one", "both")
    ]
    if tier != "near":  # crowding is asked for on the whole node
        # A pair on two nodes takes one rank of each; a pair inside a node takes two.
        most = per_node if tier == "network" else per_node // 2
        jobs += [
            job("window", bytes=size, tier=tier, pairs=pairs, direction="one")
            for size in crowds
            for pairs in counts_up_to(most)[1:]
        ]
    return jobs


def _collective_jobs(ranks: int, per_node: int, *, full: bool) -> list[BenchJob]:
    sizes = tuple(8 << power for power in range(0, 19, 3 if full else 6))  # 8 B to 2 MiB
    sizes_of_ranks = counts_up_to(ranks, per_node)[1:]
    jobs = [job("collective", op="barrier", bytes=0, ranks=count) for count in sizes_of_ranks]
    jobs += [
        job("collective", op=op, bytes=size, ranks=count)
        for op in _COLLECTIVES
        for size in sizes
        for count in sizes_of_ranks
    ]
    return jobs + [job("reduce_local", bytes=size) for size in (8, KIB, 32 * KIB, MIB)]


def _overlap_jobs(tier: str, *, full: bool) -> list[BenchJob]:
    sizes = (16 * KIB, 256 * KIB, MIB, 4 * MIB) if full else (64 * KIB, MIB)
    return [
        job("overlap", bytes=size, tier=tier, progress=progress)
        for size in sizes
        for progress in (0, 1)
    ]


def _level_jobs(tier: str) -> list[BenchJob]:
    """What tells the price of full thread support."""
    return [job("ping_pong", bytes=size, tier=tier) for size in (0, 8, 64, KIB)]


def _threads_jobs(topology: Topology, tier: str, *, full: bool) -> list[BenchJob]:
    """Level jobs, and thread counts such that every thread of the pair has a core of its own."""
    cores = topology.cores_per_node
    most = min(cores if tier == "network" else cores // 2, _MOST_COMMUNICATING)
    sizes = (8, 16 * KIB, MIB) if full else (8, 64 * KIB)
    return _level_jobs(tier) + [
        job("threaded", bytes=size, threads=count, communicator=communicator, tier=tier)
        for size in sizes
        for count in counts_up_to(most)
        for communicator in ("own", "shared")
    ]


def left_out(
    wanted: Sequence[str], topology: Topology, ranks: int, nodes: int
) -> Iterator[tuple[str, str]]:
    """What these ranks cannot tell, whatever is measured: paths in the profile and reasons."""
    if "memory" in wanted and topology.domains == 1:
        yield "memory.remote", "needs 2 memory domains, this node has one"
    speaking = [part for part in wanted if part not in NODE_PARTS]
    if ranks < 2:
        for part in speaking:
            yield PATHS[part][0], "needs at least 2 ranks"
        return
    if "p2p" in speaking and nodes == 1:
        yield "net.inter", "needs 2 nodes: popmodel bench --script slurm --nodes 2"
    if "p2p" in speaking and ranks // nodes in (2, 3):
        yield "net.shm_k", f"needs 4 ranks on a node, not {ranks // nodes}"
    cores = topology.cores_per_node
    if "threads" in speaking and nodes == 1 and cores < 4:
        yield (
            "net.thread_factor",
            f"needs 4 cores (2 ranks with 2 threads each), not {cores}",
        )
