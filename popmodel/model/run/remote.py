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

from popmodel.expressions.elementary import Value, maximum, numbers
from popmodel.machine.quantity import Quantity
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.placement import Placement, Seat
from popmodel.values import dataclass

Shares = NDArray[np.float64]

LAW = "law.unbound"
"""Path of the share of locality that threads lose if nothing binds them to cores."""
UNBOUND = Quantity(
    1.0, 0.3, 1.0, "assumed", source="threads may be anywhere, far from what they touched first"
)
"""That share: at 1 data lies as if chance had put it there, 1/D of it in each of D domains. The low
end is for systems whose scheduler leaves threads alone."""

FIRST_TOUCH = ("threads", "master", "interleaved")
"""Where the data of a process lies: with the threads that use it, with the master, or evenly."""


@dataclass(frozen=True)
class Demand:
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
        return not numbers(self.connections).any()


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
            moved = parameters.values(LAW)
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
