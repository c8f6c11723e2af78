"""Networks that runs were replayed on, in words: what tells one from the others, what one is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from popmodel.base.units import format_bandwidth, format_size, format_time
from popmodel.network.network import PRESETS
from popmodel.network.placement import TRACED
from popmodel.reports.views import Document

Run = Mapping[str, Any]

_OF_TIERS = (
    "latency",
    "bandwidth",
    "eager_threshold",
    "send_is_detached_thresh",
    "send_overhead",
    "receive_overhead",
)  # which tiers say by distance and size
_COUNTS = ("output_links", "input_links", "links_within", "buses")  # 0: as many as needed
_USUAL = {
    "mapping": TRACED,
    "algorithms": "the first of each operation",
    "speeds": "as traced",
    "send_is_detached_thresh": 0.0,
    "send_overhead": 0.0,
    "receive_overhead": 0.0,
    "sharing": "fifo",
    "topology": "none",
    **dict.fromkeys(_COUNTS, 0),
}
_RULES = ("rules", "eager_threshold", "collectives", "collective_cost")
_TIERS = {"within": "within a node", "between": "between nodes"}


def differences(document: Document, number: int) -> str:
    """In words what tells a replay, counted from 1, from the others: ``latency 5 us``."""
    network = document["runs"][number - 1]["network"]
    return ", ".join(
        f"{words(name)} {written(network, name)}" for name in varying(document["runs"])
    )


_WRITERS: dict[str, Callable[[Any], str]] = {
    "latency": lambda value: format_time(value, trim=True),
    "bandwidth": lambda value: format_bandwidth(_finite(value)),
    "eager_threshold": lambda value: format_size(_finite(value)),
    "send_is_detached_thresh": lambda value: format_size(_finite(value)),
    "send_overhead": lambda value: format_time(value, trim=True),
    "receive_overhead": lambda value: format_time(value, trim=True),
    "cpu_factor": lambda value: f"{value:g}",
}


def _finite(value: float | None) -> float:
    """A document writes what has no limit as null."""
    return math.inf if value is None else value


def write(name: str, value: Any) -> str:
    """A value of a parameter with its unit."""
    return _WRITERS.get(name, str)(value)


def words(name: str) -> str:
    """A parameter as a person names it."""
    special = {"name": "network", "cpu_factor": "CPU factor", "speeds": "rank speeds"}
    return special.get(name, name.replace("_", " "))


def parameters(runs: Sequence[Run]) -> list[str]:
    """Parameters of networks that are one value each; some networks lack those at the end."""
    names = dict.fromkeys(name for run in runs for name in run["network"])
    return [name for name in names if name != "tiers"]


def varying(runs: Sequence[Run]) -> list[str]:
    """What tells replays apart: the network's name, and what differs between those of one name.

    What depends on the messages of a network by size and distance tells nothing.
    """
    networks: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        networks.setdefault(run["network"]["name"], []).append(run["network"])
    tiered = all("tiers" in run["network"] for run in runs)
    told = [name for name in parameters(runs) if not (tiered and name in _OF_TIERS)]
    return [
        name
        for name in told
        if (name == "name" and len(networks) > 1)
        or any(
            _known(one, name) != _known(some[0], name) for some in networks.values() for one in some
        )
    ]


def _known(network: Mapping[str, Any], name: str) -> Any:
    """Value of a parameter; networks say nothing of what is as usual."""
    return network.get(name, _USUAL.get(name))


def written(network: Mapping[str, Any], name: str) -> str:
    """Value of a parameter; one that depends on the message is not one number."""
    if "tiers" in network and name in _OF_TIERS:
        return "-"
    return write(name, _known(network, name))


def properties(network: Mapping[str, Any], varied: Sequence[str]) -> list[str]:
    """Parameters of a network that no column shows, in words."""
    by_size = [_tier(_TIERS[key], tier) for key, tier in network.get("tiers", {}).items()]
    unsaid = {"name", "tiers", *varied, *(_OF_TIERS if by_size else ())}
    if network["cpu_factor"] == 1:
        unsaid.add("cpu_factor")
    unsaid.update(name for name in _COUNTS if not network.get(name))
    if "topology" in network:
        unsaid.add("sharing")
    return by_size + [
        _property(name, value) for name, value in network.items() if name not in unsaid
    ]


def unusual(network: Mapping[str, Any], varied: Sequence[str]) -> list[str]:
    """The same without rules that are as in most networks."""
    usual = PRESETS["ideal"].to_dict()
    same = [name for name in _RULES if network.get(name) == usual[name]]
    return properties(network, [*varied, *same])


def _property(name: str, value: Any) -> str:
    if name == "latency" and value == 0:
        return "no latency"
    if name == "bandwidth" and value is None:
        return "infinite bandwidth"
    return f"{words(name)} {write(name, value)}"


def _tier(where: str, tier: Mapping[str, Any]) -> str:
    """Latency and bandwidth of a tier: those of empty and of the longest messages."""
    first, last = tier["classes"][0], tier["classes"][-1]
    rate = format_bandwidth(1 / last["beta"] if last["beta"] else math.inf)
    eager = format_size(_finite(tier["eager_threshold"]), digits=3)
    latency = format_time(first["alpha"], trim=True)
    overheads = "".join(
        f", {words(name)} {write(name, tier[name])}"
        for name in ("send_overhead", "receive_overhead")
        if name in tier
    )
    return f"{where} latency {latency}, bandwidth up to {rate}, eager threshold {eager}{overheads}"
