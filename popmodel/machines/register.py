"""The register of machine parameters: one entry for each, from which all tables of them follow.

What a profile may contain (`popmodel.machines.profile_schema`), what each quantity means and how
formulas write it (`popmodel.model.symbols`), what changes together in a what-if
(`popmodel.model.scale_factors`), which part of the measurement gives it, what predictions need and
what they leave unused (`popmodel.machines.profile_findings`), and what the page of a profile calls
it derive from here. A new parameter is an entry here and the term that uses it.
"""

from __future__ import annotations

import re
from typing import Any

from popmodel.machines.parameter import OPERATIONS, TIERS, Parameter, is_free
from popmodel.machines.quantity import Quantity

_TRAFFIC = "predictions of loops with traffic to memory"
_SHARING = "predictions of false sharing"
_LOGGP = "LogGP; messages cost alpha + beta m"
_FOR_COMPARISON = "kept for comparison with the fit"
_WITHIN = "predictions of several processes on a node"
_BETWEEN = "predictions of several nodes"
_CONSTRUCT = "overhead of an OpenMP construct at T threads"


def _within(value: float, low: float, high: float, source: str) -> Quantity:
    """What is assumed of a parameter that a profile lacks, and its 90 % interval."""
    return Quantity(value, low, high, "assumed", source=source)


_PUBLISHED = {
    "add": _within(3.0, 2.0, 4.0, "published of x86-64: 2 to 4"),
    "multiply": _within(3.5, 3.0, 5.0, "published of x86-64: 3 to 5"),
    "divide": _within(14.0, 10.0, 20.0, "published of x86-64: 10 to 20"),
}

LEAST_OVERLAP = -2.0
"""Of `core.overlap_with`: a core whose arithmetic keeps it from asking ahead for data, so that the
transfers of a loop take longer than alone, by twice the arithmetic at most."""

REGISTER: tuple[Parameter, ...] = (
    Parameter(
        "core.freq.CORES",
        "Hz",
        "core",
        "clock frequency by active cores of a node",
        short="f",
        changes="clock",
        needed={"core.freq": "all predictions"},
        assumed=_within(2.5e9, 1.2e9, 4.5e9, "processors of servers"),
    ),
    Parameter(
        "core.flop_per_cycle",
        "1/cycle",
        "core",
        "peak floating-point rate",
        short="r_flop",
        changes="arithmetic",
        needed={"core.flop_per_cycle": "predictions of arithmetic"},
        assumed=_within(4.0, 1.0, 16.0, "one scalar to two units of 8"),
    ),
    Parameter(
        "core.load_per_cycle",
        "1/cycle",
        "core",
        "peak rate of 8-byte loads",
        short="r_load",
        changes="data",
        needed={"core.load_per_cycle": "signatures that count loads"},
        assumed=_within(2.0, 1.0, 8.0, "published of x86-64 and Arm: 2 or 3"),
    ),
    Parameter(
        "core.store_per_cycle",
        "1/cycle",
        "core",
        "peak rate of 8-byte stores",
        short="r_store",
        changes="data",
        needed={"core.store_per_cycle": "signatures that count stores"},
        assumed=_within(1.0, 0.5, 4.0, "published of x86-64 and Arm: 1 or 2"),
    ),
    Parameter(
        "core.instructions_per_cycle",
        "1/cycle",
        "core",
        "rate of the instructions of a plain loop that waits for nothing",
        short="r_instr",
        changes="arithmetic",
    ),
    *(
        Parameter(
            f"core.{operation}_cycles",
            "cycle",
            "core",
            f"cycles from a floating-point {noun} to one that waits for it",
            short=f"c_{operation}",
            changes="operations",
            assumed=_PUBLISHED[operation],
        )
        for operation, noun in OPERATIONS.items()
    ),
    Parameter(
        "core.window",
        "1",
        "core",
        "instructions that a core works on at a time",
        short="n_window",
        changes="arithmetic",
    ),
    Parameter(
        "core.loop_cycles",
        "cycle",
        "core",
        "loop-control cycles per iteration",
        short="c_loop",
        zero=True,
        changes="loops",
    ),
    Parameter(
        "core.branch_miss",
        "cycle",
        "core",
        "cycles that a core loses at the end of a loop which it did not foresee",
        short="c_miss",
        zero=True,
        changes="loops",
        assumed=_within(
            16.0,
            10.0,
            35.0,
            "published: 14 to 20 from a jump to the right instruction; measured: 30 with "
            "those that a loop loses until it is at its pace again",
        ),
    ),
    Parameter(
        "core.predicted_trip",
        "1",
        "core",
        "turns of a loop up to which a core foresees its end",
        short="n_trip",
        assumed=_within(64.0, 30.0, 130.0, "measured on three processors: 52 to 70"),
    ),
    Parameter(
        "core.overlap",
        "1",
        "loops",
        "share of the transfers that hides behind arithmetic, or arithmetic behind them",
        short="omega",
        zero=True,
        most=1.0,
        assumed=_within(0.5, 0.0, 1.0, "unknown: from no overlap (0) to all that can (1)"),
    ),
    Parameter(
        "core.overlap_with.LEVEL",
        "1",
        "loops",
        "share of the transfers from one level that hides behind arithmetic, or arithmetic behind "
        "them; below 0 if it makes them take longer",
        short="omega",
        least=LEAST_OVERLAP,
        most=1.0,
    ),
    Parameter(
        "core.overlap_issue.LEVEL",
        "1",
        "loops",
        "share of the transfers from one level that hides behind the issue of instructions, or "
        "these behind them; below 0 if they make them take longer",
        short="omega_issue",
        least=LEAST_OVERLAP,
        most=1.0,
        assumed=_within(
            0.8,
            0.3,
            1.0,
            "of caches; measured on one processor: .4 from the second, .8 from the last, "
            "others hide nearly all; for memory that of arithmetic",
        ),
    ),
    Parameter(
        "core.smt_factor",
        "1",
        "core",
        "speed-up of two threads on one core over one thread",
        unused="simultaneous multithreading",
    ),
    Parameter(
        "memory.by_cores.CORES",
        "B/s",
        "memory",
        "memory bandwidth by active cores of a domain",
        short="b",
        changes="memory",
        instead_of=("memory.b1", "memory.bsat"),
    ),
    Parameter(
        "memory.b1",
        "B/s",
        "memory",
        "memory bandwidth of one core",
        short="b_1",
        changes="memory",
        needed={"memory.b1": _TRAFFIC},
        assumed=_within(1.2e10, 4e9, 3e10, "measured of cores of servers: 6 to 25 GB/s"),
    ),
    Parameter(
        "memory.bsat",
        "B/s",
        "memory",
        "saturated memory bandwidth of a domain",
        short="b_sat",
        changes="memory",
        needed={"memory.bsat": _TRAFFIC},
        assumed=_within(8e10, 1.5e10, 4e11, "two to twelve channels of a memory domain"),
    ),
    Parameter(
        "memory.q",
        "1",
        "memory",
        "sharpness of the bandwidth saturation",
        short="q_sat",
        assumed=_within(
            3.0,
            2.5,
            6.0,
            "processor sharing has 3; published sweeps of one to all cores have 4 to 6.3",
        ),
    ),
    Parameter(
        "memory.copy_bw",
        "B/s",
        "memory",
        "copy bandwidth of one core",
        short="b_copy",
        changes="copy",
    ),
    Parameter(
        "memory.cache_bw.LEVEL",
        "B/s",
        "memory",
        "cache bandwidth of one core",
        short="b",
        changes="caches",
        needed={"memory.cache_bw": "signatures that count traffic between caches"},
        assumed=_within(4e10, 8e9, 3e11, "measured of one core of servers: 10 to 250 GB/s"),
    ),
    Parameter(
        "memory.write_back.LEVEL",
        "1",
        "memory",
        "time of writing a line back to a cache over that of reading one from it",
        short="r_back",
        zero=True,
        changes="write_backs",
        assumed=_within(
            1.0,
            0.0,
            2.5,
            "as long as reading one; measured: 2.2 in a private cache, 0 in a shared one",
        ),
    ),
    Parameter(
        "memory.latency.LEVEL",
        "s",
        "memory",
        "latency of a cache level or of main memory for one core",
        unused="latencies of memory and caches",
    ),
    Parameter(
        "memory.remote.PAIR.bandwidth",
        "1",
        "memory",
        "memory bandwidth of one core with data of another domain, over that with local data",
        short="r_remote",
        assumed=_within(0.6, 0.35, 0.9, "two-socket nodes have 0.5 to 0.8, parts of one more"),
    ),
    Parameter(
        "memory.remote.PAIR.saturated",
        "1",
        "memory",
        "memory bandwidth of a domain with data of another one, over that with local data",
        short="r_remote_sat",
        assumed=_within(0.45, 0.2, 0.9, "connections of sockets carry 0.3 to 0.7 of a domain"),
    ),
    Parameter(
        "memory.remote.PAIR.latency",
        "s",
        "memory",
        "latency of the memory of another domain",
        short="l_remote",
        unused="latencies of memory and caches",
    ),
    Parameter(
        "memory.line",
        "B",
        "memory",
        "size of a cache line",
        plain=True,
        needed={"memory.line": _SHARING},
        assumed=_within(64.0, 32.0, 256.0, "64; of Arm and Power up to 256"),
    ),
    Parameter(
        "memory.line_transfer.DISTANCE",
        "s",
        "memory",
        "time to move a cache line between cores",
        short="lambda",
        changes="lines",
        needed={"memory.line_transfer": _SHARING},
        assumed=_within(1e-7, 2e-8, 5e-7, "published of cores of servers: 30 to 300 ns"),
    ),
    Parameter(
        "memory.line_takeover.DISTANCE",
        "s",
        "memory",
        "time for each of many cache lines that a core takes over from another",
        short="lambda_over",
        changes="lines",
        assumed=_within(
            7e-9,
            2e-9,
            2e-8,
            "a core waits for about ten lines at once, each of them 50 to 150 ns away",
        ),
    ),
    Parameter(
        "memory.kappa",
        "1",
        "memory",
        "working set of which half stays in the last cache, over its size",
        changes="cache",
        needed={"memory.kappa": "signatures with if_fits"},
        assumed=_within(0.7, 0.25, 1.5, "as that of caches before the last, and less"),
    ),
    Parameter(
        "memory.inner_kappa.LEVEL",
        "1",
        "memory",
        "working set of which half stays in a cache before the last, over its size",
        short="kappa",
        changes="cache",
        assumed=_within(
            1.0,
            0.5,
            1.5,
            "its size; replacement by age loses all there, half is the safe working set "
            "(H. Stengel et al., ICS 2015), measured: 1.3",
        ),
    ),
    Parameter(
        "memory.cache_share",
        "B",
        "memory",
        "working set of which half stays in the caches of a busy core, where no cache is known",
        short="c_share",
        changes="cache",
        needed={"topology.caches": "signatures with if_fits"},
        assumed=_within(
            2.0**21, 2.0**15, 2.0**27, "from an inner cache to a last-level one for one core"
        ),
    ),
    Parameter(
        "memory.kappa_fs",
        "1",
        "memory",
        "exposed fraction of cache-line transfers",
        zero=True,
        changes="sharing",
        needed={"memory.kappa_fs": _SHARING},
        assumed=_within(0.5, 0.05, 1.0, "unknown: from hidden transfers to none hidden (1)"),
    ),
    Parameter(
        "openmp.CONSTRUCT.seconds[]",
        "s",
        "openmp",
        _CONSTRUCT,
        short="O",
        zero=True,
        changes="openmp",
        needed={"openmp.parallel_for": "predictions of parallel loops"},
        assumed=_within(3e-6, 2e-7, 4e-5, "measured of libgomp and libomp: 0.2 to 20 us"),
    ),
    *(
        Parameter(
            f"openmp.CONSTRUCT.fit.{term}",
            "s",
            "openmp",
            _CONSTRUCT,
            short="O",
            zero=True,
            changes="openmp",
        )
        for term in "abds"
    ),
    Parameter(
        "openmp.CONSTRUCT.fit.v",
        "s/B",
        "openmp",
        "overhead of an OpenMP construct per thread and byte that is copied for it",
        short="O",
        zero=True,
        unused="cost of private arrays by their size",
    ),
    Parameter(
        "net.TIER.classes[].alpha",
        "s",
        "p2p",
        "latency of a message",
        changes="latency_TIER",
        needed={"net.intra": _WITHIN, "net.inter": _BETWEEN},
        assumed=_within(3e-6, 2e-7, 5e-5, "from shared memory to Ethernet: 0.2 to 50 us"),
    ),
    Parameter(
        "net.TIER.classes[].beta",
        "s/B",
        "p2p",
        "time per byte of a message",
        zero=True,
        changes="bandwidth_TIER",
        needed={"net.intra": _WITHIN, "net.inter": _BETWEEN},
        assumed=_within(3e-10, 4e-11, 1e-8, "Gigabit Ethernet to 200 Gbit/s: 0.1 to 25 GB/s"),
    ),
    Parameter(
        "net.TIER.eager_threshold",
        "B",
        "p2p",
        "largest message sent eagerly",
        short="eager",
        zero=True,
        assumed=_within(8192.0, 256.0, 262144.0, "defaults of MPI libraries: 4 to 64 KiB"),
        needed={
            "net.intra.eager_threshold": "predictions of messages within a node",
            "net.inter.eager_threshold": "predictions of messages between nodes",
        },
    ),
    Parameter(
        "net.TIER.os",
        "s",
        "p2p",
        "CPU time to send a message",
        short="o",
        zero=True,
        changes="sending",
    ),
    Parameter(
        "net.TIER.or",
        "s",
        "p2p",
        "CPU time to receive a message",
        short="or",
        zero=True,
        changes="sending",
    ),
    Parameter(
        "net.TIER.o_ctl",
        "s",
        "p2p",
        "CPU time of a control message of the rendezvous protocol",
        short="o_ctl",
        zero=True,
        changes="sending",
        unused=_LOGGP,
    ),
    Parameter(
        "net.TIER.g",
        "s",
        "p2p",
        "gap between messages that one process sends one after the other",
        short="g",
        zero=True,
        unused=_LOGGP,
    ),
    Parameter(
        "net.TIER.G",
        "s/B",
        "p2p",
        "gap per byte: inverse of the bandwidth of many messages in flight",
        short="G",
        zero=True,
        unused=_LOGGP,
    ),
    Parameter(
        "net.TIER.bidirectional",
        "1",
        "p2p",
        "bandwidth of messages in both directions over that in one direction",
        short="bidirectional",
        unused=_FOR_COMPARISON,
    ),
    Parameter(
        "net.TIER.table[].seconds",
        "s",
        "p2p",
        "measured times of messages by size",
        unused=_FOR_COMPARISON,
    ),
    Parameter(
        "net.TIER.pairs[].bandwidth",
        "B/s",
        "p2p",
        "measured bandwidth of several pairs of processes at the same time",
        unused=_FOR_COMPARISON,
    ),
    Parameter(
        "net.shm_k",
        "1",
        "p2p",
        "sharing of the memory channel by messages within a node",
        changes="crowding",
    ),
    Parameter(
        "net.thread_factor",
        "1",
        "threads",
        "slowdown of a message per additional communicating thread",
        short="c_mt",
        zero=True,
        changes="threads_in_mpi",
    ),
    Parameter(
        "net.multiple_overhead",
        "s",
        "threads",
        "extra cost of MPI_THREAD_MULTIPLE per message",
        zero=True,
        changes="sending",
    ),
    Parameter(
        "net.overlap",
        "1",
        "overlap",
        "share of a message's time that computation can hide",
        zero=True,
        unused="overlap of communication is part of the signature",
    ),
    Parameter(
        "net.nic_G",
        "s/B",
        "p2p",
        "time per byte through the network adapter of a node",
        short="G_nic",
        zero=True,
        changes="adapter",
    ),
    Parameter(
        "net.reduce_gamma",
        "s/B",
        "collectives",
        "time per byte of a reduction",
        short="gamma",
        zero=True,
        changes="reduction",
        needed={"net.reduce_gamma": "predictions of reductions"},
        assumed=_within(2e-10, 2e-11, 1e-9, "adding 1 to 50 GB/s of numbers in memory"),
    ),
    Parameter(
        "coll.OP[].seconds",
        "s",
        "collectives",
        "measured times of collectives by processes and bytes",
        zero=True,
    ),
    Parameter(
        "noise.FACT",
        "",
        "noise",
        "what disturbs measurements: time that the operating system and other jobs take",
        plain=True,
        unused="noise is not modelled",
    ),
)
"""All parameters, in the order of the page of a profile."""


# Looking up parameters by their paths.


BY_CORES = tuple(one.stem for one in REGISTER if one.path.endswith(".CORES"))
"""Tables by numbers of active cores."""


def _names(path: str) -> list[str]:
    """Names in a path, without entries of lists and the list of size classes."""
    return [name for name in re.split(r"\.|\[[^\]]*\]", path) if name not in ("", "classes")]


def _tree() -> dict[str, Any]:
    """All parameters by the names of their paths; ``*`` for names that are free."""
    tree: dict[str, Any] = {}
    for one in REGISTER:
        for tier in TIERS if one.has_tiers else ("",):
            *above, last = ("*" if is_free(name) else name for name in _names(one.in_tier(tier)))
            node = tree
            for name in above:
                node = node.setdefault(name, {})
            node[last] = one
    return tree


_TREE = _tree()


def _leaves(node: Any) -> list[Parameter]:
    if isinstance(node, Parameter):
        return [node]
    found = (one for inner in node.values() for one in _leaves(inner))
    return list({one.path: one for one in found}.values())  # once for all tiers


def below(path: str) -> list[Parameter]:
    """Return the parameters at a path and below it."""
    node: Any = _TREE
    for name in _names(path):
        node = node.get(name, node.get("*")) if isinstance(node, dict) else None
    if node is None:
        return [one for one in REGISTER if one.stem.replace(".TIER", "") == path]
    return _leaves(node)


def find(path: str) -> Parameter | None:
    """Return the parameter at a path, or that of all entries of the table there."""
    found = below(path)
    return found[0] if len({one.name for one in found}) == 1 else None


def unused(path: str) -> str:
    """Return the reason why the model does not use a quantity; empty if it does."""
    parameter = find(path)
    return "" if parameter is None else parameter.reason("".join(_names(path)[1:2]))


def part_of(path: str) -> str | None:
    """Name the part of the measurement that gives a quantity; None if none does."""
    found = below(path.partition(" (")[0])
    return found[0].part if found else None


def filled_by(part: str) -> tuple[str, ...]:
    """Return what a part of the measurement fills, and no other one: beginnings of paths.

    Whole sections of a profile come first, then quantities and tiers of the network.
    """
    parts: dict[str, set[str]] = {}
    for one in REGISTER:
        parts.setdefault(one.section, set()).add(one.part)
    filled = {
        one.section if len(parts[one.section]) == 1 else ".".join(stem.split(".")[:2]): None
        for one in REGISTER
        if one.part == part
        for stem in one.stems
    }
    return tuple(sorted(filled, key=lambda path: "." in path))
