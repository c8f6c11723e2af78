"""Networks of switches described in TOML.

A fat tree, here of 32 nodes below 4 switches of the first level and 2 of the second::

    kind = "fat tree"
    down = [8, 4]               # nodes below a switch, switches below one of the next level
    up = [1, 2]                 # switches above a node, above a switch
    parallel = [1, 2]           # cables beside each other; 1 by default
    bandwidth = "10GB/s"        # of each cable, each way; or one for each level
    latency = ["0.5us", "0.2us"]

A torus::

    kind = "torus"
    sides = [4, 4, 2]
    bandwidth = "5GB/s"
    latency = "0.1us"
    node_bandwidth = "10GB/s"   # over all links of a node, each way; without limit by default
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from popmodel.documents import parse_toml, read_shape, read_text
from popmodel.errors import FileError, UsageError
from popmodel.network.topology import FatTree, Topology, Torus
from popmodel.shapes import Items, OneOf, ShapeError, Table, Text, Whole
from popmodel.units import parse_bandwidth, parse_time

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


_COUNTS = Items(Whole(1, _MOST_NODES), 1)
_BANDWIDTH, _LATENCY = _Quantity(parse_bandwidth), _Quantity(parse_time)
_KINDS = {
    "fat tree": Table(
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
    "torus": Table(
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
_HINT = "see popmodel replay --help"


def read_topology(path: str | os.PathLike[str]) -> Topology:
    """Read a network of switches from a TOML file."""
    table = parse_toml(read_text(path), path)
    kind = table.get("kind")
    if kind not in _KINDS:
        known = ", ".join(_KINDS)
        raise FileError(path, f"kind must be one of {known}, not {kind!r}")
    found = read_shape(table, _KINDS[kind], path)
    topology = _torus(found) if kind == "torus" else _fat_tree(found, path)
    if topology.nodes > _MOST_NODES:
        raise FileError(path, f"has {topology.nodes} nodes, more than {_MOST_NODES}")
    return topology


def _torus(found: dict[str, Any]) -> Torus:
    found.pop("kind")
    return Torus(tuple(found.pop("sides")), **found)


def _fat_tree(found: dict[str, Any], path: str | os.PathLike[str]) -> FatTree:
    levels = len(found["down"])
    columns = []
    for name, default in (
        ("down", 1),
        ("up", 1),
        ("parallel", 1),
        ("bandwidth", 0.0),
        ("latency", 0.0),
    ):
        given = found.get(name, default)
        column = tuple(given) if isinstance(given, list) else (given,) * levels
        if len(column) != levels:
            raise FileError(
                path, f"{name} needs one value for each of the {levels} levels, not {len(column)}"
            )
        columns.append(column)
    return FatTree(*columns)
