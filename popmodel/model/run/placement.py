"""Where processes and threads go: on which nodes, and on which cores of a node.

Consecutive ranks share a node. On a node every process owns the same number of neighbouring cores,
and its threads sit next to each other on the first of them, as ``OMP_PROC_BIND=close`` puts them.
Processes, not the threads of one process, are scattered over a node that is not full: threads that
share data stay near each other, processes get as much memory bandwidth as there is. Only threads
that one socket has no room for are shared out evenly between sockets. The launch lines ask for this
very layout, so a run that follows them is the run that was predicted.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from popmodel import shell
from popmodel.errors import UsageError
from popmodel.machine.topology import Topology
from popmodel.units import plural
from popmodel.values import dataclass

Cores = NDArray[np.int64]

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
    """What a run may use of a machine.

    Attributes
    ----------
    nodes : int or None
        Nodes to use, all of them and evenly; it may be more than the profile knows. None for as few
        as are needed of those that the profile knows.
    cores_per_node : int or None
        Cores to use of a node at most; None for all.
    """

    nodes: int | None = None
    cores_per_node: int | None = None

    def available(self, topology: Topology) -> tuple[int, int]:
        """Return the nodes, and cores of each, that there are to use."""
        return self.nodes or topology.nodes, self.cores_per_node or topology.cores_per_node


WHOLE = Allocation()


@dataclass(frozen=True)
class Placement:
    """P processes of T threads on equal nodes, consecutive ranks together.

    Attributes
    ----------
    processes, threads : int
        P and T.
    per_node : int
        Processes of a full node.
    nodes : int
        Nodes used; the last one may have fewer processes.
    cores_per_process : int
        Neighbouring cores that a process owns; at least T, more on a node that is not full.
    per_socket : int or None
        Processes of a socket where each socket has as many, next to each other from its first core
        on; None where the processes of a node are next to each other from its first core on.
    spread : bool
        Whether the threads of a process are shared out evenly between the sockets that it owns.
    active, active_serial : int
        Busy cores of the fullest memory domain while all threads work, and while only the master of
        every process does.
    sockets_spanned, domains_spanned : int
        Sockets, and memory domains, that the threads of one process are on at most.
    """

    processes: int
    threads: int
    per_node: int
    nodes: int
    cores_per_process: int
    per_socket: int | None
    spread: bool
    active: int
    active_serial: int
    sockets_spanned: int
    domains_spanned: int

    @property
    def cores(self) -> int:
        """Cores in use."""
        return self.processes * self.threads


def place(
    processes: int, threads: int, topology: Topology, allocation: Allocation = WHOLE
) -> Placement:
    """Put processes on nodes, one thread per core.

    As many processes share a node as its cores allow; with a given number of nodes, as few as that
    number allows.

    Parameters
    ----------
    processes, threads : int
        P, and T of each process.
    topology : Topology
        The machine.
    allocation : Allocation
        What of it may be used.

    Raises
    ------
    ImpossibleSplit
        If a process does not fit a node, or all do not fit the nodes.
    UsageError
        If the allocation is more than a node has.
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
    return _on_nodes(processes, threads, per_node, nodes, topology)


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


def _on_nodes(
    processes: int, threads: int, per_node: int, nodes: int, topology: Topology
) -> Placement:
    """Choose the cores that a process owns, of layouts that launchers can be asked for.

    The threads of as few processes as possible are on several sockets, then on several memory
    domains; then the fullest domain is as empty as possible.
    """

    def laid_out(
        size: int, per_socket: int | None = None, *, spread: bool = False
    ) -> tuple[tuple[int, ...], Placement]:
        """A placement whose processes own ``size`` cores each; less is better."""
        first, last, busy = _cores(per_node, threads, size, per_socket, topology, spread=spread)
        sockets = last // topology.cores_per_socket - first // topology.cores_per_socket + 1
        domains = last // topology.cores_per_domain - first // topology.cores_per_domain + 1
        active, active_serial = (
            int(np.bincount(cores // topology.cores_per_domain).max()) for cores in (busy, first)
        )
        where = Placement(
            processes,
            threads,
            per_node,
            nodes,
            size,
            per_socket,
            spread,
            active,
            active_serial,
            int(sockets.max()),
            int(domains.max()),
        )
        apart = int(sockets.sum()), int(domains.sum())
        return (*apart, active, active_serial, int(per_socket is not None), size), where

    most = topology.cores_per_node // per_node
    whole = math.ceil(threads / topology.cores_per_socket) * topology.cores_per_socket
    if topology.cores_per_socket < threads < whole <= most:
        return laid_out(whole, spread=True)[1]
    # sizes that make the processes of a socket or domain, or all, own it evenly
    per_socket, per_domain = (
        size // math.ceil(per_node / parts)
        for size, parts in (
            (topology.cores_per_socket, topology.sockets),
            (topology.cores_per_domain, topology.domains),
        )
    )
    sizes = {size for size in (threads, per_domain, per_socket, most) if threads <= size <= most}
    layouts = [laid_out(size) for size in sizes]
    share, rest = divmod(per_node, topology.sockets)
    if rest == 0 and threads <= per_socket:
        by_socket = {size for size in (threads, per_domain, per_socket) if threads <= size}
        layouts += [
            laid_out(size, share) for size in by_socket if share * size <= topology.cores_per_socket
        ]
    elif threads <= topology.cores_per_socket and any(
        one.sockets_spanned > 1 for _, one in layouts
    ):
        layouts = [laid_out(size) for size in range(threads, most + 1)]
    return min(layouts, key=lambda layout: layout[0])[1]


def _cores(
    per_node: int,
    threads: int,
    size: int,
    per_socket: int | None,
    topology: Topology,
    *,
    spread: bool,
) -> tuple[Cores, Cores, Cores]:
    """First and last core of each process of a full node, and all that are busy."""
    ranks = np.arange(per_node)
    first = ranks * size
    if per_socket is not None:
        first = ranks // per_socket * topology.cores_per_socket + ranks % per_socket * size
    offsets = np.arange(threads)
    if spread:  # the system keeps the threads of a socket apart
        sockets_owned = size // topology.cores_per_socket
        shares = np.diff(np.arange(sockets_owned + 1) * threads // sockets_owned)
        offsets = np.concatenate(
            [
                (socket * share + np.arange(share)) * topology.cores_per_socket // share
                for socket, share in enumerate(shares)
            ]
        )
    return first, first + offsets[-1], (first[:, None] + offsets).ravel()


def remarks(placement: Placement, topology: Topology) -> list[str]:
    """Say where threads of a process are apart, or together while memory domains are idle."""
    for parts, spanned, room in (
        ("sockets", placement.sockets_spanned, topology.cores_per_socket),
        ("memory domains", placement.domains_spanned, topology.cores_per_domain),
    ):
        if spanned > 1:
            why = (
                f"each has {plural(room, 'core')}"
                if placement.threads > room
                else f"{placement.per_node} processes of {plural(placement.threads, 'thread')} "
                "on a node do not fit otherwise"
            )
            return [f"the threads of a process span {spanned} {parts}: {why}"]
    if placement.threads > 1 and placement.per_node < topology.domains:
        return [
            f"{placement.per_node} of {topology.domains} memory domains of a node in use: the "
            "threads of a process stay together; more processes with fewer threads use all"
        ]
    return []


def launch_line(placement: Placement, program: str) -> str:
    """Return the commands that start a program in this placement, for Slurm.

    Parameters
    ----------
    placement : Placement
        Where to run.
    program : str
        What to run; quoted if a shell would read it as more than one word.

    Returns
    -------
    str
        Settings of OpenMP and the command, on two lines joined by a backslash.

    Raises
    ------
    UsageError
        The program's name holds characters that are not to be seen.
    """
    # else ranks would take turns between the sockets, and a process might get cores of two
    on_sockets = "block" if placement.per_socket is None else "cyclic"
    words = [
        f"srun -N {placement.nodes} -n {placement.processes} -c {placement.cores_per_process}",
        f"--ntasks-per-node={placement.per_node}",
        f"--distribution=block:{on_sockets}" if placement.per_node > 1 else "",
        f"--cpu-bind=cores {_word(program)}",
    ]
    return f"{_environment(placement)} \\\n" + " ".join(word for word in words if word)


def mpirun_line(placement: Placement, program: str) -> str:
    """Return the same as `launch_line` for Open MPI without a batch system."""
    where = f"{placement.per_node}:node"
    if placement.per_socket is not None:
        where = f"{placement.per_socket}:socket"
    # its own variables are the only ones that Open MPI takes to other nodes by itself
    exported = "-x OMP_NUM_THREADS -x OMP_PLACES -x OMP_PROC_BIND"
    return f"{_environment(placement)} \\\n" + (
        f"mpirun -np {placement.processes} {exported} "
        f"--map-by ppr:{where}:PE={placement.cores_per_process} "
        f"--bind-to core {_word(program)}"
    )


def _word(program: str) -> str:
    return shell.quote(shell.plain(program, "the name of the program"))


def _environment(placement: Placement) -> str:
    where = "sockets OMP_PROC_BIND=spread" if placement.spread else "cores OMP_PROC_BIND=close"
    return f"OMP_NUM_THREADS={placement.threads} OMP_PLACES={where}"
