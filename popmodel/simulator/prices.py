"""The price of one message, to which every charge is proportional.

With the time of a message as its price, charges are times. They are affine in the parameters of the
network: with a price of 1 they are how often latency is paid, which is their derivative by the
latency; with a price of its bytes, the derivative by the time per byte.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from popmodel.network.point_to_point import HEADER, TO_ITSELF, transfer_time
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.network.network import Network
    from popmodel.network.tiers import Tier, Tiers

_NS = 1e9


class Quantity(Enum):
    """What is counted of messages."""

    TIME = "time"  #: ns
    LATENCY = "latency"  #: how often latency is paid
    BYTES = "bytes"  #: bytes that cost time
    LATENCY_TIME = "latency_time"  #: what those latencies take, ns
    BYTES_TIME = "bytes_time"  #: what those bytes take, ns


class _Pieces(NamedTuple):
    """Latency (s), time per byte (s/B) and bytes of messages."""

    alpha: NDArray[np.float64]
    beta: NDArray[np.float64]
    bytes: NDArray[np.float64]


@dataclass(frozen=True)
class Price:
    """One quantity of the messages of a network."""

    network: Network  # What communication costs
    quantity: Quantity = Quantity.TIME  # What is counted

    def of(
        self, size: NDArray[Any], far: NDArray[np.bool_], *, bare: bool = False
    ) -> NDArray[np.float64]:
        """Price of messages of some sizes (bytes), where `far` tells which ones leave their node.

        Where sender and receiver pay the latency, the `bare` rest is without it.
        """
        network, quantity = self.network, self.quantity
        if network.rules == "smpi":
            size = size + HEADER
        if quantity is Quantity.TIME:
            if bare and network.tiers is not None:
                return _time(network, size, far, 0.0) * _NS - self.latency(far)
            return _time(network, size, far, 0.0 if bare else network.latency) * _NS
        if quantity is Quantity.LATENCY:
            return np.full(np.shape(size), 0.0 if bare else 1.0)
        pieces = _pieces(network, size, far)
        if quantity is Quantity.BYTES:
            return pieces.bytes
        if quantity is Quantity.LATENCY_TIME:
            return pieces.alpha * (0.0 if bare else _NS)
        return pieces.beta * pieces.bytes * _NS

    def overheads(self, far: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What sender and receiver of each message pay beside: time, and no latency or bytes."""
        factor = _NS if self.quantity is Quantity.TIME else 0.0
        send, receive = self.network.overheads(far)
        return send * factor, receive * factor

    def to_itself(self, size: NDArray[Any]) -> NDArray[np.float64]:
        """Price of messages of a process to itself, which depend on no parameter of a network."""
        if self.network.rules != "smpi" or self.quantity is not Quantity.TIME:
            return np.zeros(np.shape(size))
        return (size + HEADER) / TO_ITSELF * _NS

    def latency(self, far: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Price of the latency alone."""
        if self.quantity not in (Quantity.TIME, Quantity.LATENCY_TIME):
            return np.full(far.shape, float(self.quantity is Quantity.LATENCY))
        return _time(self.network, np.zeros(far.shape), far, self.network.latency) * _NS


def _time(
    network: Network, size: NDArray[Any], far: NDArray[np.bool_], latency: float
) -> NDArray[np.float64]:
    if network.tiers is None:
        return np.asarray(transfer_time(size, latency, network.bandwidth), np.float64)
    found = np.empty(np.shape(size))
    for apart in (False, True):
        if (mine := far == apart).any():
            found[mine] = _tier(network.tiers, far=apart).time(size[mine])
    return found


def _pieces(network: Network, size: NDArray[Any], far: NDArray[np.bool_]) -> _Pieces:
    if network.tiers is None:
        shape = np.shape(size)
        per_byte = np.full(shape, 1 / network.bandwidth)
        return _Pieces(np.full(shape, network.latency), per_byte, np.asarray(size, np.float64))
    found = _Pieces(*np.empty((3, *np.shape(size))))
    for apart in (False, True):
        if (mine := far == apart).any():
            own = _of_tier(_tier(network.tiers, far=apart), np.asarray(size[mine], np.float64))
            for column, values in zip(found, own, strict=True):
                column[mine] = values
    return found


def _of_tier(tier: Tier, size: NDArray[np.float64]) -> _Pieces:
    """As `popmodel.network.point_to_point.by_size`, which gives their sum.

    Where the class below takes longer with its largest message, its latency and bytes count.
    """
    floor = np.zeros(3)
    found = np.zeros((3, len(size)))
    left = np.ones(len(size), np.bool_)
    for entry in tier.classes:
        line = np.array([float(entry.alpha), float(entry.beta)])
        below = line[0] + line[1] * size < floor[0] + floor[1] * floor[2]
        mine = left if entry.upto is None else left & (size <= entry.upto)
        of_class = np.where(below, floor[:, None], np.stack([*np.broadcast_arrays(*line, size)]))
        found[:, mine] = of_class[:, mine]
        left = left & ~mine
        if entry.upto is not None:
            top = np.array([*line, float(entry.upto)])
            if top[0] + top[1] * top[2] > floor[0] + floor[1] * floor[2]:
                floor = top
    return _Pieces(*found)


def _tier(tiers: Tiers, *, far: bool) -> Tier:
    """The tier of a distance; members that are all on nodes of their own have none within."""
    return (tiers.between if far else tiers.within) or tiers.slowest
