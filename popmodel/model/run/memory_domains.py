"""What the memory domains of a node serve, and how much of it comes from afar.

A page of memory lies in the domain of the thread that touches it first (on Linux, unless a program
or `numactl` says otherwise). Transfers of a core from another domain take longer, and all of them
together pass the connection of both domains; all traffic shares the bandwidth of the domain that
serves it, wherever the cores are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from popmodel.base.expressions.elementary import Value, maximum, some
from popmodel.base.values import NamedTuple
from popmodel.machines.quantity import Quantity
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.process_placement import Placement, Seat
from popmodel.model.terms import compute
from popmodel.model.uncertainty import nominal

Shares = NDArray[np.float64]

UNBOUND_LAW = "law.unbound"
"""Path of the share of locality that threads lose if nothing binds them to cores."""
UNBOUND = Quantity(
    1.0, 0.3, 1.0, "assumed", source="threads may be anywhere, far from what they touched first"
)
"""That share: at 1 data lies as if chance had put it there, 1/D of it in each of D domains. The low
end is for systems whose scheduler leaves threads alone."""

FIRST_TOUCH = ("threads", "master", "interleaved")
"""Where the data of a process lies: with the threads that use it, with the master, or evenly."""


class Demand(NamedTuple):
    """What cores of a node ask of the memory, each of them for as much as an average one."""

    # Cores whose traffic the busiest domain serves; not whole where data is shared out.
    served: float
    # Time of a core's transfers over that with local data, alone on the node, of the core that is
    # farthest from its data; 1 where all is local.
    slowdown: Value = 1.0
    # Time per byte of an average core that the busiest connection of two domains needs, s/B; 0
    # where all is local.
    connections: Value = 0.0

    @property
    def is_local(self) -> bool:
        """Whether no data comes from another domain."""
        return not some(self.connections)


def demand(
    placement: Placement, parameters: Parameters, first_touch: str, *, masters_only: bool
) -> Demand:
    """Return what the busy cores of a full node ask of its memory."""
    local = placement.active_serial if masters_only else placement.active
    if placement.domains_spanned == 1 and placement.bind != "none":
        return Demand(local)
    domains = len(placement.seats[0].threads)
    groups = list(_groups(placement, first_touch, masters_only=masters_only))
    if domains == 1 or all(shares[on] == 1 for on, _, shares in groups):
        return Demand(local)
    if masters_only and placement.threads > 1 and first_touch == "threads":
        parameters.remarks.add(
            "serial parts use data in all memory domains that the threads of their process are on, "
            "where the threads touched it first; a signature may say otherwise (first_touch)"
        )
    asked = np.zeros((domains, domains))
    for on, cores, shares in groups:
        asked[on] += cores * shares
    served = float(asked.sum(axis=0).max())
    moved: Value = 1.0
    if placement.bind == "none":
        served = max(served, local)  # whole threads are never quite even
        if first_touch == "threads" and (placement.threads == 1 or not masters_only):
            moved = parameters.values(UNBOUND_LAW)
    far = {
        (on, int(data)): float(asked[on, data])
        for on, data in zip(*np.nonzero(asked), strict=True)
        if on != data
    }
    one_core = {pair: parameters.remote(*pair, "bandwidth") for pair in far}
    slowest = maximum(
        *(
            sum(share * (1 / one_core[on, data] - 1) for data, share in _others(on, shares))
            for on, shares in {(on, tuple(shares)) for on, _, shares in groups}
        )
    )
    full = parameters.domain_bandwidth()
    busiest = maximum(
        *(cores / parameters.remote(*pair, "saturated") for pair, cores in far.items())
    )
    slowdown = parameters.named(
        "r_far", 1 + moved * slowest, "1", "time of transfers with remote over that with local data"
    )
    return Demand(served, slowdown, moved * busiest / full)


def _groups(
    placement: Placement, first_touch: str, *, masters_only: bool
) -> Iterator[tuple[int, float, Shares]]:
    """Busy cores of a node: their domain, their number, and where their data lies."""
    for seat in placement.seats:
        threads = np.array(seat.threads, dtype=np.float64)
        busy = {seat.master: 1.0} if masters_only else dict(enumerate(seat.threads))
        for on, count in busy.items():
            if count:
                is_anywhere = placement.bind == "none"
                own = threads if masters_only or is_anywhere else np.eye(threads.size)[on]
                yield on, count * seat.processes, _data(seat, first_touch, own)


def _data(seat: Seat, first_touch: str, own: Shares) -> Shares:
    """Shares of the domains in the data of a core, ``own`` those that its user touched first."""
    if first_touch == "master":
        own = np.eye(own.size)[seat.master]
    elif first_touch == "interleaved":
        own = np.sign(seat.threads)
    shares: Shares = own / own.sum()
    return shares


def _others(on: int, shares: tuple[float, ...]) -> Iterator[tuple[int, float]]:
    return ((data, share) for data, share in enumerate(shares) if share and data != on)


# Processes that share a memory domain and have unequal work: who is done leaves it to the others.
#
# The laws of loops charge a process for all others of its domain, as if these were busy as long
# with the same. Where work is known process by process, a replay knows better: one that still
# computes while others wait already has more of the memory, and loops of different demand run
# beside each other, each slowed down by what the domain has to serve at the time.


Array = NDArray[np.float64]
Whole = NDArray[np.int64]

_ALIKE = 1e-9  # relative: times that differ by less are the same
_TINY = 1e-300  # keeps a ratio of nothing defined


class Domains(NamedTuple):
    """The memory domains that processes share; made by `Domains.of`."""

    groups: tuple[Whole, ...]  # tuple of int64[n]: Processes of each domain
    # float64[most]: What 1, 2 ... processes of a domain get together while all move data, B/s.
    bandwidth: Array
    sharpness: float  # That of the saturation (`popmodel.model.terms.compute.bandwidth`)

    @staticmethod
    def of(placement: Placement, parameters: Parameters) -> Domains:
        """Return those of a placement, which needs a machine whose memory is known."""
        ranks = np.arange(placement.processes)
        at = np.array(placement.domains)[ranks % placement.per_node]
        number = ranks // placement.per_node * (at.max() + 1) + at
        groups = tuple(np.flatnonzero(number == one) for one in np.unique(number))
        counts = placement.threads * np.arange(1, max(group.size for group in groups) + 1)
        served = [nominal(parameters.bandwidth(int(count))) for count in counts]
        return Domains(groups, np.array(served), nominal(parameters.get("memory.q")))

    def paces(self, together: Array, crowding: Array, moved: Array) -> Array:
        """Return by what the times of processes are multiplied that begin together."""
        found = np.ones_like(together)
        for members in self._of_each_size():
            loads = [values[members] for values in (together, crowding, moved)]
            differ = [np.ptp(one, axis=1) > _ALIKE * one.max(axis=1) for one in loads]
            uneven = np.any(differ, axis=0) & loads[1].any(axis=1)
            if uneven.any():
                times = self._finished(*(one[uneven] for one in loads))
                busy = np.maximum(loads[0][uneven], _TINY)
                found[members[uneven]] = np.where(loads[0][uneven] > 0, times / busy, 1.0)
        return found

    def _of_each_size(self) -> Iterator[Whole]:
        """Processes of domains that have as many, a row for each domain."""
        for size in sorted({group.size for group in self.groups}):
            yield np.stack([group for group in self.groups if group.size == size])

    def _finished(self, together: Array, crowding: Array, moved: Array) -> Array:
        """Times of the processes of domains, a row for each domain.

        Some of a kind are slowed down as the law of the loops says of so many, by `crowding` if all
        are busy. Beside others, work is slower in proportion to its transfers: all of them queue at
        the same memory, which serves a mean of those that are busy.

        Largest differences of the time of a process from an event-driven simulation of cores that
        queue at their memory, random times, bandwidth of one core a half or a quarter of all:

        =================================================  ===  ==============================
        cores                                                   all at the same loop throughout
        =================================================  ===  ==============================
        8 that only move data, 1 to 2.4 times the work     3 %                            28 %
        4 of 8 idle                                        5 %                            72 %
        4 that compute beside 4 that move data             8 %                            63 %
        8 that do both beside 8 that move data             8 %                            40 %
        16 at the knee, 1 to 2.5 times the work            5 %                            18 %
        one of 16 with 5 times the work                    5 %                           103 %
        one that moves data beside 15 that compute         7 %                           279 %
        =================================================  ===  ==============================
        """
        alone, size = together - crowding, together.shape[1]
        share = np.minimum(moved / np.maximum(alone * self.bandwidth[0], _TINY), 1.0)
        slower = crowding / np.maximum(alone, _TINY)
        full = self._stretch(share, np.full((1, 1), size))
        left, time, found = alone.copy(), np.zeros((len(alone), 1)), np.zeros_like(alone)
        busy = left > 0
        while busy.any():
            count = np.maximum(busy.sum(axis=1, keepdims=True), 1)
            of_kind = self._stretch(share, count)
            part = (count - 1) / max(size - 1, 1) * np.ones_like(share)
            np.divide(of_kind, full, out=part, where=full > _ALIKE)
            mean = np.maximum((share * busy).sum(axis=1, keepdims=True) / count, _TINY)
            beside = share / mean * self._stretch(mean, count) - of_kind
            stretch = 1 + np.maximum(slower * part + beside, 0.0)
            needed = np.where(busy, left * stretch, np.inf)
            step = needed.min(axis=1, keepdims=True)
            step = np.where(np.isfinite(step), step, 0.0)
            time = time + step
            ends = busy & (needed <= step * (1 + _ALIKE))
            left = np.maximum(left - step / stretch, 0.0)
            found[ends] = np.broadcast_to(time, ends.shape)[ends]
            busy &= ~ends
        return found

    def _stretch(self, share: Array, count: Whole) -> Array:
        """By what part work with such a share of transfers is slower among some of its kind."""
        slower = count * self.bandwidth[0] / self.bandwidth[count - 1]
        p = compute.sharpness(1.0, share, self.sharpness)
        return np.asarray(compute.shared_time(1.0, share, share * slower, p)) - 1
