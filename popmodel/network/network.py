"""How many links and buses a network has, and how messages share them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from popmodel.base.errors import UsageError, did_you_mean
from popmodel.base.units import format_bandwidth, format_time
from popmodel.base.values import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from popmodel.network.collectives import Selection
    from popmodel.network.fan_costs import Fans
    from popmodel.network.placement import RankMapping, Speeds
    from popmodel.network.point_to_point import Tiers
    from popmodel.network.topology import Topology


#: How messages share a link.
#:
#: ``fifo``
#:     A message holds an output link of its sender's node, an input link of its receiver's and a
#:     bus for as long as its bytes take; others wait for them in order (Dimemas).
#: ``fair``
#:     Messages that use a link at the same time share its bandwidth, max-min fairly: each gets as
#:     much as it can without taking from one that has less (flow level, as in SimGrid).
SHARING = ("fifo", "fair")


def check_count(value: int, what: str) -> None:
    """Refuse a number of resources that is not a whole number from 0 (as many as needed)."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UsageError(
            f"{what} must be a whole number of at least 0, not {value!r}",
            "0 means as many as are needed",
        )


def check_sharing(value: str) -> None:
    """Refuse a way to share links that is not known."""
    if value not in SHARING:
        raise UsageError(
            f"unknown sharing of links {value!r}",
            did_you_mean(value, SHARING, f"choose one of {', '.join(SHARING)}"),
        )


# Networks: parameters and rules of communication in replays.


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
#:     process to itself (size + 16 B) / (10 GB/s). Below `send_is_detached_thresh` the sender
#:     goes on although the transfer starts when the receive is posted.
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
#:     Likewise, with the algorithms of SimGrid SMPI from 3.32: those of its selector ``default``,
#:     and these with Allreduce and Barrier by recursive doubling.
READINGS = ("dimemas", "synchronising", "rooted", "algorithm", "smpi", "smpi-rdb")

AT_ONCE = ("smpi", "smpi-rdb")
"""Readings whose algorithms have several messages of a process under way at once."""

#: How often a collective of n members pays its fan-in and its fan-out: once, n - 1 times,
#: ceil(log2 n) times.
COST_FACTORS = ("constant", "linear", "logarithmic")


@dataclass(frozen=True)
class Network:
    """A network for replays.

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
        Smallest message, B, whose blocking send waits for its receive to be posted; by the rules
        ``smpi`` SMPI's option ``smpi/async-small-thresh``.
    send_is_detached_thresh : float
        By the rules ``smpi``: smallest message, B, whose sender waits, of those whose transfer
        starts when the receive is posted. SMPI's option of that name.
    send_overhead, receive_overhead : float
        CPU time to send a message, before it leaves, and to receive it, after it has arrived, s
        (LogGP's o); beside the latency.
    collectives : str
        One of `READINGS`.
    collective_cost : str or Fans
        One of `COST_FACTORS`, or factors and sizes by operation, as Dimemas' files give them.
    cpu_factor : float
        CPU speed relative to the traced run; 2 halves the time between MPI calls.
    algorithms : tuple of Selection
        Which algorithms the operations of the reading ``algorithm`` take, where it is not the
        first in `popmodel.simulator.algorithms.ALGORITHMS`.
    tiers : Tiers or None
        Cost of messages within a node and between nodes, by size. Replaces `latency`, `bandwidth`,
        `eager_threshold` and overheads, which are then those of the longest distance.
    mapping : RankMapping or None
        On which nodes the processes run; None: as traced.
    speeds : Speeds or None
        CPU speed of single ranks, beside `cpu_factor`.
    output_links, input_links : int
        Links of each node that its messages to and from other nodes share; 0: as many as needed.
        One of them 0 and the other not: each link carries one message at a time, in or out (half
        duplex).
    links_within : int
        Links, each way, of each process that its messages inside its node share; 0: as many as
        needed.
    buses : int
        Messages between nodes that are under way at the same time at most; 0: any number.
    sharing : str
        How messages share a link: one of `popmodel.network.network.SHARING`.
    topology : FatTree or Torus, optional
        Switches and links between the nodes, which messages share fairly: their time there comes
        on top of the latency, and `bandwidth` is the most that one message gets. Instead of links
        of nodes and buses.

    Messages of a process to itself take no time, but by the rules ``smpi``.

    Examples
    --------
    >>> import popmodel
    >>> slow = popmodel.Network(latency=10e-6, bandwidth=1e9)
    >>> found = popmodel.whatif("tests/data/cg.S.2.prv.gz", slow)
    """

    name: str = "ideal"
    rules: str = "alpha-beta"
    latency: float = 0.0
    bandwidth: float = math.inf
    eager_threshold: float = 32 * 1024
    send_is_detached_thresh: float = 0.0
    collectives: str = "dimemas"
    collective_cost: str | Fans = "logarithmic"
    cpu_factor: float = 1.0
    send_overhead: float = 0.0
    receive_overhead: float = 0.0
    algorithms: tuple[Selection, ...] = ()
    tiers: Tiers | None = None
    mapping: RankMapping | None = None
    speeds: Speeds | None = None
    output_links: int = 0
    input_links: int = 0
    links_within: int = 0
    buses: int = 0
    sharing: str = "fifo"
    topology: Topology | None = None

    def __post_init__(self) -> None:
        """Refuse values that no network has."""
        for value, choices, what in (
            (self.rules, RULES, "rules"),
            (self.collectives, READINGS, "rule for collectives"),
            (self.collective_cost, COST_FACTORS, "cost factor for collectives"),
        ):
            if isinstance(value, str) and value not in choices:
                raise UsageError(f"unknown {what} {value!r}", _near(value, choices))
        if not 0 <= self.latency < math.inf:
            raise UsageError(f"latency must be at least 0 and finite, not {self.latency:g} s")
        if not self.bandwidth > 0:
            raise UsageError(f"bandwidth must be above 0, not {self.bandwidth:g} B/s")
        if not self.eager_threshold >= 0:
            raise UsageError(f"eager threshold must be at least 0, not {self.eager_threshold:g} B")
        thresh = self.send_is_detached_thresh
        if not thresh >= 0:
            raise UsageError(f"send-is-detached-thresh must be at least 0, not {thresh:g} B")
        for name in ("send_overhead", "receive_overhead"):
            if not 0 <= (value := getattr(self, name)) < math.inf:
                what = name.replace("_", " ")
                raise UsageError(f"{what} must be at least 0 and finite, not {value:g} s")
        if not 0 < self.cpu_factor < math.inf:
            raise UsageError(f"CPU factor must be above 0 and finite, not {self.cpu_factor:g}")
        if self.algorithms and self.collectives != "algorithm":
            raise UsageError(
                f"collectives {self.collectives!r} are not carried out as messages, so that they "
                f"take no algorithm ({self.algorithms[0]})",
                "collectives: algorithm",
            )
        for name in _COUNTS:
            check_count(getattr(self, name), name.replace("_", " "))
        check_sharing(self.sharing)
        if self.topology is not None and (self.output_links or self.input_links or self.buses):
            raise UsageError(
                "a topology has its own links: links of nodes and buses cannot be limited as well",
                "leave out one of them",
            )

    @property
    def contended(self) -> bool:
        """Whether messages wait for each other: links or buses are limited.

        Such a replay is time-ordered; its runtime is not convex in latency and bandwidth.
        """
        return self.topology is not None or any(getattr(self, name) for name in _COUNTS)

    @property
    def flow_level(self) -> bool:
        """Whether messages share links fairly, rather than wait for each other."""
        return self.sharing == "fair" or self.topology is not None

    def with_(self, **changes: Any) -> Network:
        """Return a copy of the network with other values."""
        return replace(self, **changes)

    def ideal(self) -> Network:
        """Return the same network where communication takes no time and nothing is shared."""
        return self.with_(
            latency=0.0,
            bandwidth=math.inf,
            send_overhead=0.0,
            receive_overhead=0.0,
            tiers=None,
            mapping=None,
            **dict.fromkeys(_COUNTS, 0),
            sharing="fifo",
            topology=None,
        )

    def overheads(
        self, apart: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the CPU time to send and to receive messages, s.

        Parameters
        ----------
        apart : array of bool
            Which of them leave their node.
        """
        import numpy as np

        if self.tiers is None:
            send, receive = float(self.send_overhead), float(self.receive_overhead)
            return np.full(apart.shape, send), np.full(apart.shape, receive)
        near, far = (tier or self.tiers.slowest for tier in (self.tiers.within, self.tiers.between))
        return (
            np.where(apart, far.send_overhead, near.send_overhead),
            np.where(apart, far.receive_overhead, near.receive_overhead),
        )

    def cpu(self, processes: int) -> NDArray[np.float64]:
        """Return the CPU speed of each process relative to the traced run.

        Raises
        ------
        UsageError
            If speeds are given of ranks that are not there.
        """
        import numpy as np

        of_ranks = np.ones(processes) if self.speeds is None else self.speeds.of(processes)
        return self.cpu_factor * of_ranks

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: infinite values are None.

        Overheads, ``send_is_detached_thresh``, ``algorithms``, ``mapping``, ``speeds``, ``tiers``
        and what messages share are there only where there are some.
        """
        left_out = {"algorithms", "mapping", "speeds", "tiers", "topology"}
        left_out |= {name for name in ("send_overhead", "receive_overhead") if not vars(self)[name]}
        if self.rules != "smpi":
            left_out.add("send_is_detached_thresh")
        if not self.contended:
            left_out |= {*_COUNTS, "sharing"}
        plain = {key: value for key, value in vars(self).items() if key not in left_out}
        for key, value in plain.items():
            if isinstance(value, float) and math.isinf(value):
                plain[key] = None
        if not isinstance(self.collective_cost, str):
            plain["collective_cost"] = self.collective_cost.name
        if self.algorithms:
            plain["algorithms"] = " ".join(map(str, self.algorithms))
        if self.mapping is not None:
            plain["mapping"] = self.mapping.name
        if self.speeds is not None:
            plain["speeds"] = self.speeds.name
        if self.topology is not None:
            plain["topology"] = self.topology.name
        if self.tiers is not None:
            plain["tiers"] = self.tiers.to_dict()
        return plain


_COUNTS = ("output_links", "input_links", "links_within", "buses")

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
        eager_threshold=0,
        send_is_detached_thresh=64 * 1024,
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
