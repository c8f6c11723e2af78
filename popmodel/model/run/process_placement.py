"""Where processes and threads go: on which nodes, and on which cores of a node.

Consecutive ranks share a node. On a node every process owns the same number of neighbouring cores.
With ``close`` its threads sit next to each other on the first of them: processes, not the threads
of one process, are scattered over a node that is not full, so threads that share data stay near
each other, and processes get as much memory bandwidth as there is. Only threads that one socket has
no room for are shared out evenly between sockets. With ``spread`` the threads of a process are as
far apart as its cores allow, and processes own all cores of the node. With ``none`` nothing binds
them: the system is taken to keep all memory domains equally busy, and the masters of processes as
well. Launch lines ask for this very layout, so a run that follows them is the run that was
predicted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from popmodel.base.errors import UsageError
from popmodel.base.units import plural
from popmodel.base.values import NamedTuple, dataclass
from popmodel.machines.quantity import Topology
from popmodel.machines.register import DISTANCES

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
        return self.nodes or topology.nodes, self.cores_per_node or topology.cores_per_node


WHOLE = Allocation()


class Seat(NamedTuple):
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
    laid_out = {"close": close_layout, "spread": spread_layout}[bind]
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


# Which cores of a node the threads of its processes are on, of layouts that launchers can give.
#
# Every process owns the same number of neighbouring cores. ``close`` puts its threads next to each
# other on the first of them, ``spread`` as far apart as they allow.


Cores = NDArray[np.int64]


class Layout(NamedTuple):
    """The cores of the processes of a full node."""

    size: int  # Neighbouring cores that a process owns
    # Processes of a socket where each socket has as many, next to each other from its first core
    # on; None where the processes of a node are next to each other from its first core on.
    per_socket: int | None
    # What OpenMP binds threads to: ``sockets`` where those of a process are shared out evenly
    # between the sockets that it owns.
    places: str
    cores: Cores  # Core of every thread, masters first

    def parts(self, size: int) -> Cores:
        """Return the socket or memory domain of every thread, given the cores of each."""
        found: Cores = self.cores // size
        return found

    def fullest(self, size: int, threads: int | None = None) -> int:
        """Return the busy cores of the fullest part, or those of the first threads of teams."""
        return int(np.bincount(self.parts(size)[:, :threads].ravel()).max())

    def spanned(self, size: int) -> Cores:
        """Return how many parts of a node each process is on; threads are in rising order."""
        changes: Cores = (np.diff(self.parts(size), axis=1) != 0).sum(axis=1)
        return changes + 1


def close_layout(per_node: int, threads: int, topology: Topology) -> Layout:
    """Keep the threads of a process together, and processes apart.

    The threads of as few processes as possible are on several sockets, then on several memory
    domains; then the fullest domain is as empty as possible. Threads that one socket has no room
    for are shared out evenly between sockets.
    """
    most = topology.cores_per_node // per_node
    whole = math.ceil(threads / topology.cores_per_socket) * topology.cores_per_socket
    if topology.cores_per_socket < threads < whole <= most:
        return _by_sockets(per_node, threads, whole, topology)
    # sizes that make the processes of a socket or domain, or all, own it evenly
    per_socket, per_domain = (
        size // math.ceil(per_node / parts)
        for size, parts in (
            (topology.cores_per_socket, topology.sockets),
            (topology.cores_per_domain, topology.domains),
        )
    )
    offsets = np.arange(threads)
    sizes = {size for size in (threads, per_domain, per_socket, most) if threads <= size <= most}
    layouts = [_laid_out(per_node, size, offsets) for size in sizes]
    share, rest = divmod(per_node, topology.sockets)
    if rest == 0 and threads <= per_socket:
        by_socket = {size for size in (threads, per_domain, per_socket) if threads <= size}
        layouts += [
            _laid_out(per_node, size, offsets, share, topology)
            for size in by_socket
            if share * size <= topology.cores_per_socket
        ]
    elif threads <= topology.cores_per_socket and any(
        one.spanned(topology.cores_per_socket).max() > 1 for one in layouts
    ):
        layouts = [_laid_out(per_node, size, offsets) for size in range(threads, most + 1)]

    def less_is_better(one: Layout) -> tuple[int, ...]:
        sockets = int(one.spanned(topology.cores_per_socket).sum())
        domains = int(one.spanned(topology.cores_per_domain).sum())
        on_sockets = one.per_socket is not None
        return sockets, domains, *_busy(one, topology), on_sockets, one.size

    return min(layouts, key=less_is_better)


def spread_layout(per_node: int, threads: int, topology: Topology) -> Layout:
    """Share all cores of a node out between processes, and those of a process between its threads.

    The fullest memory domain is as empty as possible; then the threads of as few processes as
    possible are on several sockets. Sizes that the number of threads divides come before others:
    OpenMP leaves it to its implementations which of uneven gaps are the larger ones.
    """

    def even(most: int) -> Iterable[int]:
        return {most, most // threads * threads}

    most = topology.cores_per_node // per_node
    layouts = [_laid_out(per_node, size, _apart(threads, size)) for size in even(most)]
    share, rest = divmod(per_node, topology.sockets)
    if rest == 0 and (most_here := topology.cores_per_socket // share) >= threads:
        layouts += [
            _laid_out(per_node, size, _apart(threads, size), share, topology)
            for size in even(most_here)
        ]
    owned = most // topology.cores_per_socket
    if 1 < owned <= threads <= owned * topology.cores_per_socket:
        layouts.append(_by_sockets(per_node, threads, owned * topology.cores_per_socket, topology))

    def less_is_better(one: Layout) -> tuple[int, ...]:
        active, active_serial = _busy(one, topology)
        apart = int(one.spanned(topology.cores_per_socket).sum())
        uneven = one.places == "cores" and one.size % threads > 0
        return active, apart, active_serial, uneven, one.places == "sockets", -one.size

    return min(layouts, key=less_is_better)


def _busy(layout: Layout, topology: Topology) -> tuple[int, int]:
    """Busy cores of the fullest domain, while all threads work and while only masters do."""
    domain = topology.cores_per_domain
    return layout.fullest(domain), layout.fullest(domain, 1)


def _laid_out(
    per_node: int,
    size: int,
    offsets: Cores,
    per_socket: int | None = None,
    topology: Topology | None = None,
) -> Layout:
    """Processes that own ``size`` cores each, their threads at some of them."""
    ranks = np.arange(per_node)
    first = ranks * size
    if per_socket is not None and topology is not None:
        first = ranks // per_socket * topology.cores_per_socket + ranks % per_socket * size
    return Layout(size, per_socket, "cores", first[:, None] + offsets)


def _apart(threads: int, cores: int) -> Cores:
    """Cores of threads by ``OMP_PROC_BIND=spread``: the first ones of parts as equal as can be."""
    gap, wider = divmod(cores, threads)
    ranks = np.arange(threads)
    return ranks * gap + np.minimum(ranks, wider)


def _by_sockets(per_node: int, threads: int, size: int, topology: Topology) -> Layout:
    """Processes that own whole sockets; the system keeps the threads of a socket apart."""
    sockets = size // topology.cores_per_socket
    shares = np.diff(np.arange(sockets + 1) * threads // sockets)
    offsets = np.concatenate(
        [
            (socket * share + np.arange(share)) * topology.cores_per_socket // share
            for socket, share in enumerate(shares)
        ]
    )
    return Layout(size, None, "sockets", np.arange(per_node)[:, None] * size + offsets)


# Commands that start a run where a prediction puts it.


def launch_line(placement: Placement, program: str) -> str:
    """Return the commands that start a program in this placement, for Slurm."""
    bound = "none" if placement.bind == "none" else "cores"
    # else ranks would take turns between the sockets, and a process might get cores of two
    on_sockets = "" if bound == "none" else ":block" if placement.per_socket is None else ":cyclic"
    words = [
        f"srun -N {placement.nodes} -n {placement.processes} -c {placement.cores_per_process}",
        f"--ntasks-per-node={placement.per_node}",
        f"--distribution=block{on_sockets}" if placement.per_node > 1 else "",
        f"--cpu-bind={bound} {program}",
    ]
    return f"{_environment(placement)} \\\n" + " ".join(word for word in words if word)


def mpirun_line(placement: Placement, program: str) -> str:
    """Return the same as `launch_line` for Open MPI without a batch system."""
    variables = [word.partition("=")[0] for word in _settings(placement)]
    # its own variables are the only ones that Open MPI takes to other nodes by itself
    exported = " ".join(f"-x {name}" for name in variables)
    where = f"{placement.per_node}:node"
    if placement.per_socket is not None:
        where = f"{placement.per_socket}:socket"
    bound = f"{where}:PE={placement.cores_per_process} --bind-to core"
    if placement.bind == "none":
        bound = f"{where} --bind-to none"
    return f"{_environment(placement)} \\\n" + (
        f"mpirun -np {placement.processes} {exported} --map-by ppr:{bound} {program}"
    )


def _environment(placement: Placement) -> str:
    return " ".join(_settings(placement))


def _settings(placement: Placement) -> list[str]:
    """Variables of OpenMP, and their values."""
    count = f"OMP_NUM_THREADS={placement.threads}"
    if placement.bind == "none":
        return [count, "OMP_PROC_BIND=false"]
    bind = "spread" if placement.places == "sockets" else placement.bind
    return [count, f"OMP_PLACES={placement.places}", f"OMP_PROC_BIND={bind}"]
