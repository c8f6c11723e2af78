"""Which jobs measure a part of the machine: from its cores, caches, sockets and nodes.

Thread counts follow from the cores, working sets from the caches, tiers of the network from sockets
and nodes. Where the full mode takes every point, the quick one takes the ends and the middle.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from popmodel.bench.jobs import PATHS, Job, from_params, job
from popmodel.machine.constructs import COPYING, PLAIN
from popmodel.machine.parameter import NODE_PARTS
from popmodel.machine.topology import Topology
from popmodel.values import dataclass

KIB, MIB = 1 << 10, 1 << 20
LARGEST_ARRAY = 256 * MIB
"""Bytes of an array in memory at most: more takes longer than the answer is worth."""
BEYOND_CACHE = 4
"""Arrays of this many times the last-level caches find next to nothing in them: STREAM's rule."""

_SCHEDULES = {"static": (0, 1, 8, 64), "dynamic": (1, 8, 64), "guided": (1, 8)}  # 0: no chunk
_COLLECTIVES = (
    *("bcast", "reduce", "allreduce", "allgather", "gather", "scatter", "alltoall"),
    *("reduce_scatter", "scan"),
)

# Open MPI switches protocols near 4, 32 and 64 KiB, MPICH near 16 and 64 KiB: extra points there.
_MESSAGES = (
    0, 1, 8, 64, 256, 512, 1 * KIB, 2 * KIB, 3 * KIB, 4 * KIB, 5 * KIB, 6 * KIB, 8 * KIB, 12 * KIB,
    16 * KIB, 24 * KIB, 32 * KIB, 48 * KIB, 64 * KIB, 96 * KIB, 128 * KIB, 256 * KIB, 512 * KIB,
    1 * MIB, 2 * MIB, 4 * MIB,
)  # fmt: skip
_LATE = tuple(64 << power for power in range(13))  # 64 B to 256 KiB
_MOST_COMMUNICATING = 16  # threads of a rank
_DELAY = "0.0005"  # s: long against an eager send, short against the budget of a job


def counts_up_to(largest: int, *extra: int) -> list[int]:
    """1, 2, 4 ... up to a number, that number, and others that lie below it; rising."""
    powers = [1 << power for power in range(max(largest, 1).bit_length())]
    return sorted({count for count in [*powers, *extra, largest] if 1 <= count <= largest})


# -- the node


def node_jobs(
    wanted: Sequence[str], topology: Topology, smt: int, *, full: bool
) -> tuple[list[Job], list[Job]]:
    """Jobs of the node program.

    Parameters
    ----------
    wanted : sequence of str
        Parts of the suite.
    topology : Topology
        The node.
    smt : int
        Hardware threads of a core.
    full : bool
        Whether in full mode.

    Returns
    -------
    tuple of two lists of Job
        Those that soon have their batches, and those that want time, such as sweeps of memory.
    """
    cores = topology.cores_per_node
    threads = counts_up_to(cores, topology.cores_per_domain, topology.cores_per_socket)
    short: list[Job] = []
    long: list[Job] = []
    if "core" in wanted:
        short += [job("clock", threads=count) for count in threads]
        short += [job("fma", threads=count) for count in sorted({1, cores})]
        short += [job("loads"), job("stores"), job("loop")]
        if smt > 1:
            short += [
                job("smt", threads=2, shared=shared) for shared in (0, 1) if cores + shared > 1
            ]
    if "memory" in wanted:
        near, far = _memory_jobs(topology, full=full)
        short += near
        long += far
    if "openmp" in wanted:
        short += _openmp_jobs(threads, full=full)
    if "noise" in wanted or NODE_PARTS.isdisjoint(wanted):
        # In the latter case for what comes with it: the node program tells what the hardware is.
        long.append(job("quantum"))
    return short, long


def array_bytes(topology: Topology) -> int:
    """Bytes of an array that should come from memory, as far as time and memory allow.

    Four times the last-level caches that the cores of a memory domain use, as STREAM's rules ask
    (J. D. McCalpin). Three arrays of that size take a quarter of the node's memory at most.
    """
    last = topology.last_level_bytes or 64 * MIB
    wanted = min(math.ceil(BEYOND_CACHE * last / (64 * KIB)) * 64 * KIB, LARGEST_ARRAY)
    if topology.memory_per_node is not None:
        wanted = min(wanted, topology.memory_per_node // 12)
    return max(wanted // (64 * KIB), 1) * 64 * KIB


def working_sets(topology: Topology) -> list[int]:
    """One working set inside every level of cache: half of it, near its lower end if it is large.

    Half of a cache leaves room for what else lies there; a set that the level below nearly holds
    would measure that one.
    """
    sets: list[int] = []
    below = 0
    for cache in topology.caches:
        size = cache.bytes // 2 if not below else min(cache.bytes // 2, 8 * below)
        sets.append(max(size, below + below // 2) // KIB * KIB)
        below = cache.bytes
    return sets


def _memory_jobs(topology: Topology, *, full: bool) -> tuple[list[Job], list[Job]]:
    memory = array_bytes(topology)
    in_domain = topology.cores_per_domain
    extra = (3, in_domain * 3 // 4, *([in_domain // 4 * 3 // 2, 6] if full else []))
    long = [job("triad", threads=count, bytes=memory) for count in counts_up_to(in_domain, *extra)]
    long += [job("copy", threads=1, bytes=memory)]
    sets = {size for size in working_sets(topology) if size < memory}
    last = topology.caches[-1].bytes if topology.caches else 0
    # Around the end of the last cache bandwidth falls, over a range that tells its usable share.
    steps = (0.5, 0.75, 1.0, 1.5, 2.0) if full else (0.5, 1.0, 1.5)
    sets |= {size for step in steps if 0 < (size := int(last * step) // KIB * KIB) < memory}
    short: list[Job] = []
    for size in sorted(sets | {memory}):
        where = short if size <= 4 * MIB else long
        where += [job("load", threads=1, bytes=size), job("chase", bytes=size)]
    cores = topology.cores_per_node
    if cores > 1:
        short += [job("line_transfer", threads=2, distance=far) for far in ("near", "far")]
        short += [
            job("false_sharing", threads=count, padded=padded)
            for count in (counts_up_to(cores)[1:] if full else sorted({2, cores}))
            for padded in (0, 1)
        ]
    return short, long


def _construct(name: str, **params: int) -> Job:
    return from_params("construct", {"name": name, **params})


def _openmp_jobs(threads: Sequence[int], *, full: bool) -> list[Job]:
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
    """Jobs of the MPI program by the launch that suits them.

    Attributes
    ----------
    everybody : tuple of Job
        With all ranks.
    pair : tuple of Job
        With two ranks, alone on two nodes.
    threads_inside, threads_across : tuple of Job
        With full thread support and two ranks, which have all cores of a node, or of one each.
    levels_inside, levels_across : tuple of Job
        The same two ranks with less thread support: what the former is compared with.
    """

    everybody: tuple[Job, ...]
    pair: tuple[Job, ...]
    threads_inside: tuple[Job, ...]
    threads_across: tuple[Job, ...]
    levels_inside: tuple[Job, ...]
    levels_across: tuple[Job, ...]


def mpi_jobs(
    wanted: Sequence[str], topology: Topology, ranks: int, nodes: int, *, full: bool
) -> MpiJobs:
    """Jobs of the MPI program; none with a single rank.

    Parameters
    ----------
    wanted, topology, full
        As `node_jobs`.
    ranks, nodes : int
        Processes in all, and the nodes over which they are spread evenly.
    """
    if ranks < 2:
        return MpiJobs((), (), (), (), (), ())
    tiers = _tiers(topology, ranks, nodes)
    jobs: list[Job] = []
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


def _p2p_jobs(tier: str, per_node: int, *, full: bool) -> list[Job]:
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


def _collective_jobs(ranks: int, per_node: int, *, full: bool) -> list[Job]:
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


def _overlap_jobs(tier: str, *, full: bool) -> list[Job]:
    sizes = (16 * KIB, 256 * KIB, MIB, 4 * MIB) if full else (64 * KIB, MIB)
    return [
        job("overlap", bytes=size, tier=tier, progress=progress)
        for size in sizes
        for progress in (0, 1)
    ]


def _level_jobs(tier: str) -> list[Job]:
    """What tells the price of full thread support."""
    return [job("ping_pong", bytes=size, tier=tier) for size in (0, 8, 64, KIB)]


def _threads_jobs(topology: Topology, tier: str, *, full: bool) -> list[Job]:
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
