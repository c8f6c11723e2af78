"""Where processes and threads go: on which nodes, and on which cores of a node.

Consecutive ranks share a node. On a node every process owns the same number of neighbouring cores.
With ``close`` its threads sit next to each other on the first of them: processes, not the threads
of one process, are scattered over a node that is not full, so threads that share data stay near
each other, and processes get as much memory bandwidth as there is. Only threads that one socket has
no room for are shared out evenly between sockets. With ``spread`` the threads of a process are as
far apart as its cores allow, and processes own all cores of the node. With ``none`` nothing binds
them: the system is taken to keep all memory domains equally busy, and the masters of processes as
well. Launch lines (`popmodel.model.run.launch`) ask for this very layout, so a run that follows
them is the run that was predicted.
"""

from __future__ import annotations

import math
from collections import Counter

from popmodel.errors import UsageError
from popmodel.machine.parameter import DISTANCES
from popmodel.machine.quantity import Topology
from popmodel.model.run import layout
from popmodel.units import plural
from popmodel.values import dataclass

BINDS = ("close", "spread", "none")
"""How the threads of a process are bound to cores."""

MOST_PROCESSES = 2**20
"""Processes that a placement is made for: patterns of messages are arrays over all ranks."""


class ImpossibleSplit(UsageError):
    """P processes of T threads cannot run, while other numbers of them can.

    Attributes
    ----------
    processes : int or None
        The only number of processes that can, where it is known.
    """

    def __init__(self, message: str, hint: str | None = None, processes: int | None = None) -> None:
        super().__init__(message, hint)
        self.processes = processes


@dataclass(frozen=True)
class Allocation:
    """What a run may use of a machine, and how it is bound to it."""

    # Nodes to use, all of them and evenly; it may be more than the profile knows. None for as few
    # as are needed of those that the profile knows.
    nodes: int | None = None
    cores_per_node: int | None = None  # Cores to use of a node at most; None for all
    bind: str = "close"  # Where the threads of a process are

    def available(self, topology: Topology) -> tuple[int, int]:
        """Return the nodes, and cores of each, that there are to use."""
        return self.nodes or topology.nodes, self.cores_per_node or topology.cores_per_node


WHOLE = Allocation()


@dataclass(frozen=True)
class Seat:
    """Where processes of a full node are that share its memory domains in the same way."""

    master: int  # Memory domain of the master thread
    # Threads of a process in each memory domain of the node; expected ones if nothing binds them.
    threads: tuple[float, ...]
    processes: float  # Number of these processes


@dataclass(frozen=True)
class Placement:
    """P processes of T threads on equal nodes, consecutive ranks together."""

    # P and T.
    processes: int
    threads: int
    per_node: int  # Processes of a full node
    nodes: int  # Nodes used; the last one may have fewer processes
    bind: str  # Where the threads of a process are
    # Neighbouring cores that a process owns; at least T, more on a node that is not full.
    cores_per_process: int
    # Processes of a socket where each socket has as many, next to each other from its first core
    # on; None where the processes of a node are next to each other from its first core on.
    per_socket: int | None
    # What OpenMP binds threads to: ``sockets`` where those of a process are shared out evenly
    # between the sockets that it owns.
    places: str
    # Busy cores of the fullest memory domain while all threads work, and while only the master of
    # every process does.
    active: int
    active_serial: int
    # Sockets, and memory domains, that the threads of one process are on at most.
    sockets_spanned: int
    domains_spanned: int
    # Threads that share the fullest instance of each cache of the machine.
    cache_threads: tuple[int, ...]
    seats: tuple[Seat, ...]  # Where the processes of a full node are
    domains: tuple[int, ...]  # Memory domain of the master of each process of a full node

    @property
    def cores(self) -> int:
        """Cores in use."""
        return self.processes * self.threads

    @property
    def distance(self) -> str:
        """How far the threads of a process are from each other: near, or far on several sockets."""
        return DISTANCES[self.sockets_spanned > 1]


def place(
    processes: int, threads: int, topology: Topology, allocation: Allocation = WHOLE
) -> Placement:
    """Put processes on nodes, one thread per core.

    As many processes share a node as its cores allow; with a given number of nodes, as few as that
    number allows.
    """
    cores = _usable_cores(topology, allocation)
    refusal = f"{processes} x {threads} is not possible: "
    for name, value in (("processes", processes), ("threads", threads)):
        if value < 1:
            raise UsageError(f"{name}: must be at least 1, not {value}", "ask for at least 1")
    if threads > cores:
        offer = f"{plural(cores, 'core')} of a node may be used"
        if allocation.cores_per_node is None:
            offer = f"a node has {plural(cores, 'core')}"
        raise ImpossibleSplit(
            f"{refusal}{offer}, fewer than {threads} threads",
            f"at most {plural(cores, 'thread')} per process",
        )
    if processes > MOST_PROCESSES:
        raise ImpossibleSplit(
            f"{refusal}no more than {MOST_PROCESSES} processes are modelled",
            f"at most {MOST_PROCESSES} processes",
        )
    room = cores // threads
    if allocation.nodes is None:
        per_node = min(processes, room)
        nodes = math.ceil(processes / per_node)
        if nodes > topology.nodes:
            most = topology.nodes * room
            raise ImpossibleSplit(
                f"{refusal}it needs {nodes} nodes, the profile has {topology.nodes}",
                f"at most {plural(most, 'process', 'processes')} of {plural(threads, 'thread')}",
            )
    else:
        nodes = allocation.nodes
        per_node = _even(processes, threads, nodes, room)
    if allocation.bind == "none":
        return _unbound(processes, threads, per_node, nodes, topology)
    return _bound(processes, threads, per_node, nodes, topology, allocation.bind)


def _usable_cores(topology: Topology, allocation: Allocation) -> int:
    """Cores of a node that may be used."""
    if allocation.nodes is not None and allocation.nodes < 1:
        raise UsageError(f"nodes: must be at least 1, not {allocation.nodes}", "ask for at least 1")
    wanted, there = allocation.cores_per_node, topology.cores_per_node
    if wanted is None:
        return there
    if not 1 <= wanted <= there:
        raise UsageError(
            f"{wanted} cores per node are not possible: a node has {there}",
            f"ask for 1 to {there} cores per node",
        )
    return wanted


def _even(processes: int, threads: int, nodes: int, room: int) -> int:
    """Processes of a node if they are spread evenly over a number of nodes, all of them used."""
    per_node = math.ceil(processes / nodes)
    refusal = f"{processes} x {threads} is not possible: "
    if per_node > room:
        most = nodes * room
        raise ImpossibleSplit(
            refusal + f"a node has room for {plural(room, 'process', 'processes')} of "
            f"{plural(threads, 'thread')}, {plural(nodes, 'node')} would need {per_node}",
            f"at most {plural(most, 'process', 'processes')} of {plural(threads, 'thread')}",
        )
    filled = math.ceil(processes / per_node)
    if processes < nodes:
        raise ImpossibleSplit(
            refusal + f"{plural(nodes, 'node')} for {plural(processes, 'process', 'processes')}"
        )
    if filled < nodes:
        raise ImpossibleSplit(
            refusal + f"{per_node} per node fill only {filled:,} of {plural(nodes, 'node')}"
        )
    return per_node


def _bound(
    processes: int, threads: int, per_node: int, nodes: int, topology: Topology, bind: str
) -> Placement:
    """Put every thread on a core."""
    laid_out = {"close": layout.close, "spread": layout.spread}[bind]
    found = laid_out(per_node, threads, topology)
    size = topology.cores_per_domain
    alike = Counter(map(tuple, found.parts(size).tolist()))
    return Placement(
        processes,
        threads,
        per_node,
        nodes,
        bind,
        cores_per_process=found.size,
        per_socket=found.per_socket,
        places=found.places,
        active=found.fullest(size),
        active_serial=found.fullest(size, 1),
        sockets_spanned=int(found.spanned(topology.cores_per_socket).max()),
        domains_spanned=int(found.spanned(size).max()),
        cache_threads=tuple(found.fullest(cache.shared_by) for cache in topology.caches),
        seats=tuple(
            Seat(where[0], tuple(map(where.count, range(topology.domains))), count)
            for where, count in alike.items()
        ),
        domains=tuple(found.parts(size)[:, 0].tolist()),
    )


def _unbound(
    processes: int, threads: int, per_node: int, nodes: int, topology: Topology
) -> Placement:
    """Let all memory domains be equally busy, and every thread be in any of them."""
    domains = topology.domains
    anywhere = (threads / domains,) * domains
    busy = per_node * threads
    return Placement(
        processes,
        threads,
        per_node,
        nodes,
        "none",
        cores_per_process=topology.cores_per_node // per_node,
        per_socket=None,
        places="cores",
        active=min(topology.cores_per_domain, math.ceil(busy / domains)),
        active_serial=math.ceil(per_node / domains),
        sockets_spanned=min(threads, topology.sockets),
        domains_spanned=min(threads, domains),
        cache_threads=tuple(
            math.ceil(busy * cache.shared_by / topology.cores_per_node) for cache in topology.caches
        ),
        seats=tuple(Seat(domain, anywhere, per_node / domains) for domain in range(domains)),
        domains=tuple(rank * domains // per_node for rank in range(per_node)),
    )


def remarks(placement: Placement, topology: Topology) -> list[str]:
    """Say where threads of a process are apart, or together while memory domains are idle."""
    if placement.bind == "none":
        parts = "" if topology.domains == 1 else f" over {topology.domains} memory domains"
        return [
            f"nothing binds threads to cores: taken to be shared out evenly{parts}; what moving "
            "between cores costs is not modelled"
        ]
    for parts, spanned, room in (
        ("sockets", placement.sockets_spanned, topology.cores_per_socket),
        ("memory domains", placement.domains_spanned, topology.cores_per_domain),
    ):
        if spanned > 1:
            why = (
                f"each has {plural(room, 'core')}"
                if placement.threads > room
                else "they are bound to be apart (spread)"
                if placement.bind == "spread"
                else f"{placement.per_node} processes of {plural(placement.threads, 'thread')} "
                "on a node do not fit otherwise"
            )
            return [f"the threads of a process span {spanned} {parts}: {why}"]
    if placement.threads > 1 and placement.per_node < topology.domains:
        return [
            f"{placement.per_node} of {topology.domains} memory domains of a node in use: the "
            "threads of a process stay together; more processes with fewer threads use all, as "
            "does --bind spread"
        ]
    return []
