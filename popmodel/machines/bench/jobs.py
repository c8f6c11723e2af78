"""Jobs of the measuring programs: what to measure, as data and as a line of text, and which.

A line is the name and ``key=value`` words, such as ``ping_pong bytes=8 tier=node``. The C programs
in ``microbench/`` say what each job means; here is which part of the suite it belongs to, and which
jobs measure a part: thread counts follow from the cores, working sets from the caches, tiers of the
network from sockets and nodes. Where the full mode takes every point, the quick one takes the ends
and the middle.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from popmodel.base.errors import UsageError
from popmodel.base.values import dataclass
from popmodel.machines.quantity import Topology
from popmodel.machines.register import (
    COPYING,
    DISTANCES,
    NODE_PARTS,
    OPERATIONS,
    PARTS,
    PLAIN,
    filled_by,
)

PART_OF: Mapping[str, str] = {
    "clock": "core",
    "fma": "core",
    "loads": "core",
    "stores": "core",
    "loop": "core",
    "instructions": "core",
    "dependent": "core",
    "in_flight": "core",
    "row": "core",
    "smt": "core",
    "mixed": "loops",
    "issue": "loops",
    "triad": "memory",
    "load": "memory",
    "update": "memory",
    "narrow_update": "memory",
    "copy": "memory",
    "chase": "memory",
    "remote_triad": "memory",
    "remote_chase": "memory",
    "line_transfer": "memory",
    "line_takeover": "memory",
    "false_sharing": "memory",
    "construct": "openmp",
    "quantum": "noise",
    "ping_pong": "p2p",
    "send_overhead": "p2p",
    "receive_overhead": "p2p",
    "train": "p2p",
    "window": "p2p",
    "late_receiver": "p2p",
    "collective": "collectives",
    "reduce_local": "collectives",
    "overlap": "overlap",
    "threaded": "threads",
}
"""Part of the suite that each job belongs to."""

PATHS: Mapping[str, tuple[str, ...]] = {part: filled_by(part) for part in PARTS}
"""What each part of the suite fills in a profile; a path stands for all that is below it."""

Value = int | str

_DIGITS = 18  # of a whole number: the programs read 64 bits


@dataclass(frozen=True)
class BenchJob:
    """One thing to measure."""

    name: str  # Such as ``ping_pong``
    # Keys and values in alphabetical order, so that equal jobs are equal.
    params: tuple[tuple[str, Value], ...] = ()

    @property
    def line(self) -> str:
        """The job as the programs read it."""
        return " ".join([self.name, *(f"{key}={value}" for key, value in self.params)])

    def get(self, key: str, default: Value = 0) -> Value:
        """Value of a key, or `default` where the job does not have it."""
        return dict(self.params).get(key, default)


def job(name: str, /, **params: Value) -> BenchJob:
    """Make a job; the order of the keys does not matter."""
    return from_params(name, params)


def from_params(name: str, params: Mapping[str, object]) -> BenchJob:
    """Make a job from the name and parameters of a result.

    Whole numbers are integers, whether they come as number or as text.
    """
    return BenchJob(name, tuple(sorted((key, _value(value)) for key, value in params.items())))


def parse(line: str) -> BenchJob:
    """Read a job from its line."""
    name, *words = line.split() or [""]
    if not name:
        raise UsageError("job without a name", "write NAME key=value ...")
    params: dict[str, object] = {}
    for word in words:
        key, sign, value = word.partition("=")
        if not (key and sign and value):
            raise UsageError(
                f"job '{line}': '{word}' must be key=value", "write NAME key=value ..."
            )
        params[key] = value
    return from_params(name, params)


def _value(value: object) -> Value:
    text = str(value)
    return int(text) if len(text) <= _DIGITS and text.isdecimal() else text


# Jobs of memory: working sets from the caches, threads and pairs from the memory domains.


KIB, MIB = 1 << 10, 1 << 20
LARGEST_ARRAY = 256 * MIB
"""Bytes of an array in memory at most: more takes longer than the answer is worth."""
BEYOND_CACHE = 4
"""Arrays of this many times the last-level caches find next to nothing in them: STREAM's rule."""

_SHARES = (50, 100, 200)  # % of a loop's transfers that its arithmetic takes
_MORE_SHARES = (70, 140)
_CLEAR = 2  # times the cache below, so that next to nothing of a loop is found there
_SETS = (3, 8)  # times the cache below: the addresses of large sets take time to look up as well
_HELD = 128 * KIB
"""Bytes that one core writes and another takes over: they stay in the caches of a core."""
_FEW_DOMAINS = 4  # all pairs of more are too many


def counts_up_to(largest: int, *extra: int) -> list[int]:
    """1, 2, 4 ... up to a number, that number, and others that lie below it; rising."""
    powers = [1 << power for power in range(max(largest, 1).bit_length())]
    return sorted({count for count in [*powers, *extra, largest] if 1 <= count <= largest})


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


def loop_sets(topology: Topology, threads: int, *, full: bool) -> list[int]:
    """Bytes that loops of several cores go over: within every level that has room, and in memory.

    Every core has an equal part. In its share of a cache it must be clear of the cache below, which
    it is not where there are many cores for a cache that is hardly larger than theirs. In a large
    one full mode has two sets: a core knows the addresses of all pages of a small one only.
    """
    sets: list[int] = []
    below = 0.0
    for cache in topology.caches:
        own = cache.bytes / min(threads, cache.shared_by)
        room = {int(min(own / 2, times * below)) // KIB * KIB for times in _SETS[: 1 + full]}
        sets += [size * threads for size in sorted(room) if below and size >= _CLEAR * below]
        below = own
    memory = array_bytes(topology)
    return [*(size for size in sets if size < memory), memory]


def loop_jobs(topology: Topology, *, full: bool) -> list[BenchJob]:
    """Jobs of loops with arithmetic and transfers, on one core and on those of a domain."""
    cores = topology.cores_per_domain
    counts = {1, cores, *((math.ceil(cores / 2),) if full else ())}
    shares = sorted((*_SHARES, *_MORE_SHARES)) if full else _SHARES
    mixed = [
        job("mixed", threads=count, bytes=size, arithmetic=share)
        for count in sorted(counts)
        for size in loop_sets(topology, count, full=full)
        for share in shares
    ]
    return [*mixed, *(job("issue", bytes=size) for size in loop_sets(topology, 1, full=full))]


def domain_pairs(topology: Topology, *, full: bool) -> list[tuple[int, int]]:
    """Memory domains of threads and of their data, that differ.

    All pairs of few domains; of more, one in the same socket and one in another: neighbours have
    neighbouring numbers.
    """
    domains, sockets = topology.domains, topology.sockets
    if domains == 2 or (full and domains <= _FEW_DOMAINS):
        return list(itertools.permutations(range(domains), 2))
    if full:
        return [(0, other) for other in range(1, domains)]
    pairs = [(0, 1)] if domains > sockets else []
    return pairs + ([(0, domains - 1)] if sockets > 1 else [])


def _remote_jobs(topology: Topology, size: int, *, full: bool) -> Iterator[BenchJob]:
    """Each pair, and the threads of its first domain with data of their own to compare with."""
    pairs = domain_pairs(topology, full=full)
    for on, data in [*((on, on) for on in sorted({on for on, _ in pairs})), *pairs]:
        for count in sorted({1, topology.cores_per_domain}):
            yield job("remote_triad", threads=count, bytes=size, on=on, data=data)
        yield job("remote_chase", bytes=size, on=on, data=data)


def _ends(topology: Topology, *, full: bool) -> set[int]:
    """Working sets around the end of every cache but the last."""
    steps = (0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5) if full else (0.75, 1.0, 1.25, 1.5, 2.0)
    sizes: set[int] = set()
    for cache, beyond in itertools.pairwise(topology.caches):
        some = (int(cache.bytes * step) // KIB * KIB for step in steps)
        sizes |= {size for size in some if 0 < size <= beyond.bytes // 2}
    return sizes


def _last_end(topology: Topology, memory: int, *, full: bool) -> tuple[set[int], set[int]]:
    """Working sets around the end of the last cache, and small parts of one that others use too.

    Bandwidth falls there, over a range that tells the usable share. Of a cache so large that arrays
    cannot be larger, other guests of the processor have the most.
    """
    if not topology.caches:
        return set(), set()
    last, inside = topology.caches[-1].bytes, working_sets(topology)[-1]
    steps = (0.5, 0.75, 1.0, 1.5, 2.0) if full else (0.5, 1.0, 1.5)
    parts = (0.09375, 0.125, 0.1875, 0.25, 0.375) if full else (0.125, 0.1875, 0.375)
    clear = 0.9 * memory  # a set that is nearly as large as the arrays tells no more than they do
    around = {size for step in steps if 0 < (size := int(last * step) // KIB * KIB) < clear}
    # the smallest set that is clear of the cache below stands for this one: none below it
    within = {size for part in parts if (size := int(last * part) // KIB * KIB) > inside}
    return around, within if 2 * last > memory else set()


def memory_jobs(topology: Topology, *, full: bool) -> tuple[list[BenchJob], list[BenchJob]]:
    """Jobs of bandwidth, latency and sharing: those that are soon done, and sweeps of memory."""
    memory = array_bytes(topology)
    in_domain = topology.cores_per_domain
    extra = (3, in_domain * 3 // 4, *([in_domain // 4 * 3 // 2, 6] if full else []))
    long = [job("triad", threads=count, bytes=memory) for count in counts_up_to(in_domain, *extra)]
    long += [job("copy", threads=1, bytes=memory), *_remote_jobs(topology, memory, full=full)]
    sets = {size for size in working_sets(topology) if size < memory}
    around, within = _last_end(topology, memory, full=full)
    sets |= around
    ends = within | _ends(topology, full=full)
    short: list[BenchJob] = []
    # A pass over some MiB takes a millisecond or two; of dependent loads, a hundred times as long.
    for size in sorted(sets | ends | {memory}):
        (short if size <= 16 * MIB else long).append(job("load", threads=1, bytes=size))
    for size in sorted(sets | {memory}):
        (short if size <= 4 * MIB else long).append(job("chase", bytes=size))
    # beside reads of the same sets: what is written back to a cache
    for size in sorted(set(working_sets(topology)[1:]) & sets):
        (short if size <= 16 * MIB else long).append(job("update", threads=1, bytes=size))
    # and where the last one ends for data that are written, by vectors as narrow as programs have
    if last_end := around | within:
        inside = {size for size in working_sets(topology)[-1:] if size < memory}
        for size in sorted(last_end | inside | {memory}):
            (short if size <= 16 * MIB else long).append(job("narrow_update", bytes=size))
    cores = topology.cores_per_node
    if cores > 1:
        own = [cache.bytes for cache in topology.caches if cache.shared_by == 1]
        held = min(_HELD, own[-1] // 4) if own else _HELD
        for distance in DISTANCES:
            short.append(job("line_transfer", threads=2, distance=distance))
            short.append(job("line_takeover", threads=2, bytes=held, distance=distance))
        short += [
            job("false_sharing", threads=count, padded=padded)
            for count in (counts_up_to(cores)[1:] if full else sorted({2, cores}))
            for padded in (0, 1)
        ]
    return short, long


# Jobs of the other parts, and what cannot be measured.


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
    # Costs per chunk need no more than the ends of the range to be told.
    few = list(threads) if full else sorted({1, threads[-1]})
    jobs += [_construct(name, threads=count, bytes=8) for name in COPYING for count in few]
    for kind, chunks in _SCHEDULES.items():
        for chunk in chunks:
            more = {"chunk": chunk} if chunk else {}
            jobs += [_construct(f"schedule_{kind}", threads=count, **more) for count in few]
    return jobs


def mpi_jobs(
    wanted: Sequence[str], topology: Topology, ranks: int, nodes: int, *, full: bool
) -> Iterator[tuple[tuple[int, int, int, str], list[BenchJob]]]:
    """Jobs of the MPI program by launch: ranks, nodes, threads of a rank, level of threads.

    None with a single rank. Those of a pair of nodes are launched with two ranks alone; those of
    threads with two ranks that have all cores of a node, or of one each, at full thread support and
    at less, to compare with.
    """
    if ranks < 2:
        return
    cores = topology.cores_per_node
    tiers = _tiers(topology, ranks, nodes)
    jobs: list[BenchJob] = []
    if "p2p" in wanted:
        jobs += [one for tier in tiers for one in _p2p_jobs(tier, ranks // nodes, full=full)]
    if "collectives" in wanted:
        jobs += _collective_jobs(ranks, ranks // nodes, full=full)
    if "overlap" in wanted:
        jobs += [one for tier in tiers for one in _overlap_jobs(tier, full=full)]
    pair = [one for one in jobs if one.get("tier") == "network" and one.get("pairs", 1) == 1]
    everybody = [one for one in jobs if one not in pair]
    yield (ranks, nodes, max(cores * nodes // ranks, 1), "funneled"), everybody
    yield (2, 2, 1, "funneled"), pair
    for tier, on, threads in (("node", 1, max(cores // 2, 1)), ("network", 2, cores)):
        if tier in tiers and "threads" in wanted:
            yield (2, on, threads, "funneled"), _level_jobs(tier)
            yield (2, on, threads, "multiple"), _threads_jobs(topology, tier, full=full)


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
        yield "net.inter", "needs 2 nodes: popmodel machine measure --script slurm --nodes 2"
    if "p2p" in speaking and ranks // nodes in (2, 3):
        yield "net.shm_k", f"needs 4 ranks on a node, not {ranks // nodes}"
    cores = topology.cores_per_node
    if "threads" in speaking and nodes == 1 and cores < 4:
        yield (
            "net.thread_factor",
            f"needs 4 cores (2 ranks with 2 threads each), not {cores}",
        )
