"""Networks of switches: which links a message between two nodes takes.

Links are full duplex: each way has the whole bandwidth. Nodes are numbered from 0; where a network
has more of them than a run, the run is on the first ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import accumulate
from math import inf, prod
from operator import mul
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from popmodel.base.documents import (
    Items,
    OneOf,
    ShapeError,
    TableShape,
    Text,
    WholeShape,
    parse_toml,
    read_shape,
    read_text,
)
from popmodel.base.errors import FileError, UsageError
from popmodel.base.units import format_bandwidth, format_time, parse_bandwidth, parse_time, plural
from popmodel.base.values import dataclass
from popmodel.network.point_to_point import Routes, of_hops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


_Hops: TypeAlias = "list[tuple[NDArray[np.int64], NDArray[np.int64]]]"


@dataclass(frozen=True)
class FatTree:
    """A parallel-ports generalised fat tree (X. Yuan et al.; E. Zahavi, D-Mod-K routing, 2010).

    Routes climb to the first switches that both nodes are below, by the ports that the receiver's
    number says (d mod k), and come down from there: messages to different nodes share no link on
    their way down.
    """

    # By level from the nodes upwards: what is below each switch (nodes, then switches).
    down: tuple[int, ...]
    up: tuple[int, ...]  # By level: switches above each node, then above each switch
    parallel: tuple[int, ...]  # By level: cables beside each other between the two
    bandwidth: tuple[float, ...]  # By level: of each cable, B/s
    latency: tuple[float, ...]  # By level: of each cable, s

    def __post_init__(self) -> None:
        """Refuse lists of different lengths."""
        columns = (self.down, self.up, self.parallel, self.bandwidth, self.latency)
        if not self.down or len({len(column) for column in columns}) > 1:
            raise UsageError("a fat tree needs each of its values for each of its levels")

    @property
    def nodes(self) -> int:
        """How many nodes it has."""
        return prod(self.down)

    def routes(self, sender: NDArray[np.int32], receiver: NDArray[np.int32]) -> Routes:
        """Routes between pairs of different nodes, which ascend."""
        _check_nodes(self.nodes, sender, receiver)
        source, target = sender.astype(np.int64), receiver.astype(np.int64)
        below = [1, *accumulate(self.down, mul)]
        copies = [1, *accumulate(self.up, mul)]
        which = np.arange(len(source))
        climb: _Hops = []
        descend: _Hops = []
        capacity: list[NDArray[np.float64]] = []
        latency = np.zeros(len(source))
        copy = np.zeros(len(source), np.int64)  # of the switches that the route has come to
        links = 0
        for level, (up, cables) in enumerate(zip(self.up, self.parallel, strict=True)):
            on = which[source[which] // below[level] != target[which] // below[level]]
            which = on
            port = target // copies[level] % (up * cables)
            count = self.nodes // below[level] * copies[level] * up * cables
            for hops, end, first in ((climb, source, links), (descend, target, links + count)):
                here = end // below[level] * copies[level] + copy
                over = (here * up + port % up) * cables + port // up
                hops.append((on, first + over[on]))
            capacity.append(np.full(2 * count, self.bandwidth[level]))
            latency[on] += 2 * self.latency[level]
            copy = copy + port % up * copies[level]
            links += 2 * count
        return _routes(sender, receiver, [*climb, *reversed(descend)], latency, capacity)

    @property
    def name(self) -> str:
        """All of it in words."""
        shape = {"down": self.down, "up": self.up, "parallel": self.parallel}
        told = [f"{what} {', '.join(map(str, counts))}" for what, counts in shape.items()]
        rates, times = map(_each, (format_bandwidth, format_time), (self.bandwidth, self.latency))
        return f"fat tree ({'; '.join(told)}; {rates}; {times})"


@dataclass(frozen=True)
class Torus:
    """A grid of nodes, each with links to its neighbours, closed to rings.

    Routes go one dimension after the other, the shorter way around; up if both are equally long.
    """

    # Nodes along each dimension; the first one varies fastest from node to node.
    sides: tuple[int, ...]
    bandwidth: float  # Of each link, B/s
    latency: float = 0.0  # Of each link, s
    # What a node can send, and what it can receive, over all of its links, B/s.
    node_bandwidth: float = inf

    @property
    def nodes(self) -> int:
        """How many nodes it has."""
        return prod(self.sides)

    def routes(self, sender: NDArray[np.int32], receiver: NDArray[np.int32]) -> Routes:
        """Routes between pairs of different nodes, which ascend."""
        _check_nodes(self.nodes, sender, receiver)
        here, target = sender.astype(np.int64), receiver.astype(np.int64)
        everyone = np.arange(len(here))
        ways, links = 2 * len(self.sides), 2 * len(self.sides) * self.nodes
        hops: _Hops = [(everyone, links + here)]
        latency = np.zeros(len(here))
        stride = 1
        for dimension, side in enumerate(self.sides):
            distance = (target // stride - here // stride) % side
            upwards = 2 * distance <= side
            left = np.where(upwards, distance, side - distance)
            latency += left * self.latency
            while len(on := np.flatnonzero(left > 0)):
                hops.append((on, here[on] * ways + 2 * dimension + ~upwards[on]))
                place = here[on] // stride % side
                moved = (place + np.where(upwards[on], 1, -1)) % side
                here[on] += (moved - place) * stride
                left[on] -= 1
            stride *= side
        hops.append((everyone, links + self.nodes + target))
        capacity = [
            np.full(links, self.bandwidth),
            np.full(2 * self.nodes, self.node_bandwidth),
        ]
        return _routes(sender, receiver, hops, latency, capacity)

    @property
    def name(self) -> str:
        """All of it in words."""
        own = (
            ""
            if self.node_bandwidth == inf
            else f"; {format_bandwidth(self.node_bandwidth)} a node"
        )
        rate, time = format_bandwidth(self.bandwidth), format_time(self.latency, trim=True)
        return f"torus ({' x '.join(map(str, self.sides))}; {rate}; {time}{own})"


Topology: TypeAlias = FatTree | Torus


def _each(write: Callable[..., str], values: Sequence[float]) -> str:
    """Values of levels; one if they are alike."""
    return ", ".join(
        write(value, trim=True) for value in (values if len(set(values)) > 1 else values[:1])
    )


def _check_nodes(nodes: int, sender: NDArray[np.int32], receiver: NDArray[np.int32]) -> None:
    needed = int(max(sender.max(initial=-1), receiver.max(initial=-1))) + 1
    if needed > nodes:
        raise UsageError(
            f"the topology has {plural(nodes, 'node')}, the run needs {needed}",
            "describe a larger network, or place the ranks on fewer nodes",
        )


def _routes(
    sender: NDArray[np.int32],
    receiver: NDArray[np.int32],
    hops: _Hops,
    latency: NDArray[np.float64],
    capacity: list[NDArray[np.float64]],
) -> Routes:
    """Routes over links that limit somebody: nobody shares one without limit."""
    every = np.concatenate(capacity)
    limited = np.isfinite(every)
    number = np.cumsum(limited) - 1
    kept = [(which[mine], number[over[mine]]) for which, over in hops for mine in [limited[over]]]
    offsets, link = of_hops(len(sender), kept)
    return Routes(sender, receiver, offsets, link, latency, every[limited])


# Networks of switches described in TOML.
#
# A fat tree, here of 32 nodes below 4 switches of the first level and 2 of the second::
#
#     kind = "fat tree"
#     down = [8, 4]               # nodes below a switch, switches below one of the next level
#     up = [1, 2]                 # switches above a node, above a switch
#     parallel = [1, 2]           # cables beside each other; 1 by default
#     bandwidth = "10GB/s"        # of each cable, each way; or one for each level
#     latency = ["0.5us", "0.2us"]
#
# A torus::
#
#     kind = "torus"
#     sides = [4, 4, 2]
#     bandwidth = "5GB/s"
#     latency = "0.1us"
#     node_bandwidth = "10GB/s"   # over all links of a node, each way; without limit by default


_MOST_NODES = 1 << 20


class _Quantity:
    """Text with a unit."""

    def __init__(self, read: Callable[[str], float]) -> None:
        self._read = read

    def read(self, value: Any) -> float:
        text = Text().read(value)
        try:
            return self._read(text)
        except UsageError as error:
            raise ShapeError(f"is wrong: {error.message}", hint=error.hint) from None


_COUNTS = Items(WholeShape(1, _MOST_NODES), 1)
_BANDWIDTH, _LATENCY = _Quantity(parse_bandwidth), _Quantity(parse_time)
_KINDS = {
    "fat tree": TableShape(
        {
            "kind": Text(),
            "down": _COUNTS,
            "up": _COUNTS,
            "parallel": _COUNTS,
            "bandwidth": OneOf("text or a list", Items(_BANDWIDTH, 1), _BANDWIDTH),
            "latency": OneOf("text or a list", Items(_LATENCY, 1), _LATENCY),
        },
        ("down", "up", "bandwidth"),
    ),
    "torus": TableShape(
        {
            "kind": Text(),
            "sides": _COUNTS,
            "bandwidth": _BANDWIDTH,
            "latency": _LATENCY,
            "node_bandwidth": _BANDWIDTH,
        },
        ("sides", "bandwidth"),
    ),
}
_HINT = "see popmodel whatif --help"


def read_topology(path: str | os.PathLike[str]) -> Topology:
    """Read a network of switches from a TOML file."""
    table = parse_toml(read_text(path), path)
    kind = table.get("kind")
    if kind not in _KINDS:
        known = ", ".join(_KINDS)
        raise FileError(path, f"kind must be one of {known}, not {kind!r}")
    values = read_shape(table, _KINDS[kind], path)
    topology = _torus(values) if kind == "torus" else _fat_tree(values, path)
    if topology.nodes > _MOST_NODES:
        raise FileError(path, f"has {topology.nodes} nodes, more than {_MOST_NODES}")
    return topology


def _torus(values: dict[str, Any]) -> Torus:
    values.pop("kind")
    return Torus(tuple(values.pop("sides")), **values)


def _fat_tree(values: dict[str, Any], path: str | os.PathLike[str]) -> FatTree:
    levels = len(values["down"])
    columns = []
    for name, default in (
        ("down", 1),
        ("up", 1),
        ("parallel", 1),
        ("bandwidth", 0.0),
        ("latency", 0.0),
    ):
        given = values.get(name, default)
        column = tuple(given) if isinstance(given, list) else (given,) * levels
        if len(column) != levels:
            raise FileError(
                path, f"{name} needs one value for each of the {levels} levels, not {len(column)}"
            )
        columns.append(column)
    return FatTree(*columns)
