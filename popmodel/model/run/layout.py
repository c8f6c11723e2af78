"""Which cores of a node the threads of its processes are on, of layouts that launchers can give.

Every process owns the same number of neighbouring cores. ``close`` puts its threads next to each
other on the first of them, ``spread`` as far apart as they allow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from popmodel.machine.quantity import Topology
from popmodel.values import dataclass

Cores = NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
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


def close(per_node: int, threads: int, topology: Topology) -> Layout:
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


def spread(per_node: int, threads: int, topology: Topology) -> Layout:
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
