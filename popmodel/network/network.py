"""Networks: parameters and rules of communication in replays."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from popmodel.errors import UsageError, did_you_mean
from popmodel.units import format_bandwidth, format_time
from popmodel.values import dataclass

if TYPE_CHECKING:
    from popmodel.network.tiers import Tiers

__all__ = ["COST_FACTORS", "PRESETS", "READINGS", "RULES", "Network", "describe", "preset"]

#: What is charged for a message, and when a rendezvous sender goes on.
#:
#: ``alpha-beta``
#:     A message takes latency + size / bandwidth; a rendezvous transfer starts when both sides
#:     are ready and both end with it.
#: ``dimemas``
#:     The latency is CPU time of the sender and again of the receiver; a rendezvous sender
#:     waits until the receive is posted and goes on; the wait for an isend is free. A nonblocking
#:     collective costs the latency in its call and again in its wait.
#: ``smpi``
#:     As ``alpha-beta``, but a message takes latency + (size + 16 B) / bandwidth, and one of a
#:     process to itself (size + 16 B) / (10 GB/s).
RULES = ("alpha-beta", "dimemas", "smpi")

#: Who waits for whom in a collective.
#:
#: ``dimemas``
#:     All members leave when the last has arrived, except from Reduce, whose non-roots go on.
#:     Where members have different amounts and nobody is the root (Alltoallv), the last to arrive
#:     decides what it costs; in the other readings the largest amounts do.
#: ``synchronising``
#:     All members leave when the last has arrived.
#: ``rooted``
#:     Members of Bcast and Scatter wait for the root only; of Reduce and Gather only the root
#:     waits; the others synchronise.
#: ``algorithm``
#:     Collectives are carried out as point-to-point messages.
#: ``smpi``, ``smpi-rdb``
#:     Likewise, with the algorithms of SimGrid SMPI: those of its selector ``default``, and these
#:     with Allreduce and Barrier by recursive doubling.
READINGS = ("dimemas", "synchronising", "rooted", "algorithm", "smpi", "smpi-rdb")

AT_ONCE = ("smpi", "smpi-rdb")
"""Readings whose algorithms have several messages of a process under way at once."""

#: How often a collective of n members pays its fan-in and its fan-out: once, n - 1 times,
#: ceil(log2 n) times.
COST_FACTORS = ("constant", "linear", "logarithmic")


@dataclass(frozen=True)
class Network:
    """A network for replays, without contention for shared resources.

    Attributes
    ----------
    name : str
        The preset it is based on.
    rules : str
        One of `RULES`.
    latency : float
        Time of a message that does not depend on its size, s.
    bandwidth : float
        Bandwidth of one message, B/s; infinite: the size costs nothing.
    eager_threshold : float
        Smallest message, B, whose blocking send waits for its receive to be posted.
    collectives : str
        One of `READINGS`.
    collective_cost : str
        One of `COST_FACTORS`.
    cpu_factor : float
        CPU speed relative to the traced run; 2 halves the time between MPI calls.
    tiers : Tiers or None
        Cost of messages within a node and between nodes, by size. Replaces `latency`, `bandwidth`
        and `eager_threshold`, which are then those of the longest distance.

    Messages of a process to itself take no time, but by the rules ``smpi``.

    Examples
    --------
    >>> import popmodel
    >>> slow = popmodel.Network(latency=10e-6, bandwidth=1e9)
    >>> found = popmodel.replay("tests/data/cg.S.2.prv.gz", slow)
    """

    name: str = "ideal"
    rules: str = "alpha-beta"
    latency: float = 0.0
    bandwidth: float = math.inf
    eager_threshold: float = 32 * 1024
    collectives: str = "dimemas"
    collective_cost: str = "logarithmic"
    cpu_factor: float = 1.0
    tiers: Tiers | None = None

    def __post_init__(self) -> None:
        """Refuse values that no network has."""
        for value, choices, what in (
            (self.rules, RULES, "rules"),
            (self.collectives, READINGS, "rule for collectives"),
            (self.collective_cost, COST_FACTORS, "cost factor for collectives"),
        ):
            if value not in choices:
                raise UsageError(f"unknown {what} {value!r}", _near(value, choices))
        if not 0 <= self.latency < math.inf:
            raise UsageError(f"latency must be at least 0 and finite, not {self.latency:g} s")
        if not self.bandwidth > 0:
            raise UsageError(f"bandwidth must be above 0, not {self.bandwidth:g} B/s")
        if not self.eager_threshold >= 0:
            raise UsageError(f"eager threshold must be at least 0, not {self.eager_threshold:g} B")
        if not 0 < self.cpu_factor < math.inf:
            raise UsageError(f"CPU factor must be above 0 and finite, not {self.cpu_factor:g}")

    def with_(self, **changes: Any) -> Network:
        """Return a copy of the network with other values."""
        return replace(self, **changes)

    def ideal(self) -> Network:
        """Return the same network with no latency and infinite bandwidth."""
        return self.with_(latency=0.0, bandwidth=math.inf, tiers=None)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: infinite values are None; ``tiers`` only where there are some."""
        plain = {
            key: None if isinstance(value, float) and math.isinf(value) else value
            for key, value in asdict(self.with_(tiers=None)).items()
            if key != "tiers"
        }
        return plain if self.tiers is None else {**plain, "tiers": self.tiers.to_dict()}


PRESETS = {
    "ideal": Network(),
    "alpha-beta": Network(name="alpha-beta", latency=2e-6, bandwidth=10e9),
    "dimemas": Network(
        name="dimemas", rules="dimemas", latency=5e-6, bandwidth=1e9, collective_cost="constant"
    ),
    "smpi": Network(
        name="smpi",
        rules="smpi",
        latency=1e-6,
        bandwidth=10e9,
        eager_threshold=64 * 1024,
        collectives="smpi",
    ),
}


def describe(network: Network) -> str:
    """Latency and bandwidth of a network in words: ``2 us, 10 GB/s``."""
    if not network.latency and math.isinf(network.bandwidth):
        return "no latency, infinite bandwidth"
    text = f"{format_time(network.latency, trim=True)}, {format_bandwidth(network.bandwidth)}"
    whose = {"dimemas": "Dimemas", "smpi": "SimGrid SMPI"}.get(network.rules)
    return f"{text}, the rules of {whose}" if whose else text


def preset(name: str) -> Network:
    """Return the network of that name; an unknown name is a `UsageError` with near ones."""
    try:
        return PRESETS[name]
    except KeyError:
        raise UsageError(f"unknown network {name!r}", _near(name, PRESETS)) from None


def _near(name: str, known: Iterable[str]) -> str:
    """What a name should be: a near one, or one of all."""
    return did_you_mean(name, known, f"choose one of {', '.join(known)}")
