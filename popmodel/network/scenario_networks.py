"""The networks that a run is replayed on: every combination of the values that are given."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

from popmodel.base.documents import read_text
from popmodel.base.errors import UsageError
from popmodel.base.units import parse_bandwidth, parse_size, parse_time, parse_values
from popmodel.network.collectives import Selection, parse_selection
from popmodel.network.dimemas_cfg import Machine, is_configuration, read
from popmodel.network.network import PRESETS, Network, check_sharing, preset
from popmodel.network.placement import RankMapping, Speeds, listed, parse_mapping, parse_speeds
from popmodel.network.topology import FatTree, Torus, read_topology

NetworkLike: TypeAlias = "str | os.PathLike[str] | Network"
Change: TypeAlias = dict[str, Any]
"""Of a `Network`."""


def network_of(given: NetworkLike) -> Network:
    """A network: one as it is, or a preset by name."""
    return given if isinstance(given, Network) else preset(str(given))


def _base(text: str) -> Network | Machine:
    """A preset, or the machine of a configuration of Dimemas."""
    return read(text) if is_configuration(text) else preset(text)


def _factor(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        raise UsageError(
            f"must be a number, not '{text}'", "write a number such as 0.5 or 2"
        ) from None
    if not 0 < found < math.inf:
        raise UsageError(
            f"must be above 0 and finite, not '{text}'",
            "write 2 for CPUs twice as fast as in the trace",
        )
    return found


def _mapping(text: str) -> RankMapping | None:
    """A mapping of ranks to nodes: ``traced`` (None), by rule, or from a file."""
    if Path(text).is_file():
        return listed(text, read_text(text).splitlines())
    return parse_mapping(text)


def _links(text: str) -> Change:
    """Links of a node: ``1``, or ``2:1`` for two out and one in."""
    output, colon, into = text.partition(":")
    try:
        first = _count(output)
        return {"output_links": first, "input_links": _count(into) if colon else first}
    except UsageError:
        raise UsageError(
            f"must be a whole number of at least 0, or OUT:IN, not '{text}'",
            "write 1, or 2:1 for two links out and one in; 0 means as many as are needed",
        ) from None


def _count(text: str) -> int:
    if not re.fullmatch(r"\s*[0-9]{1,9}\s*", text):
        raise UsageError(
            f"must be a whole number of at least 0, not '{text}'",
            "0 means as many as are needed",
        )
    return int(text)


def _sharing(text: str) -> str:
    check_sharing(text)
    return text


_QUANTITIES: Mapping[str, Callable[[str], float]] = {
    "latency": parse_time,
    "bandwidth": parse_bandwidth,
    "eager_threshold": parse_size,
    "send_overhead": parse_time,
    "receive_overhead": parse_time,
    "cpu_factor": _factor,
}
"""Of which ranges can be given."""
_OTHERS: Mapping[str, Callable[[str], Any]] = {
    "network": _base,
    "collectives": lambda text: Network(collectives=text).collectives,
    "algorithm": parse_selection,
    "mapping": _mapping,
    "rank_speed": parse_speeds,
    "links": _links,
    "buses": _count,
    "links_within": _count,
    "sharing": _sharing,
    "topology": read_topology,
}
_WITH_COMMAS = ("algorithm", "rank_speed")
_READ = (Network, Machine, FatTree, Torus, RankMapping, Selection, Speeds, dict)
"""What is taken as it is."""


def scenario_values(name: str, given: Any, label: str = "") -> list[Any]:
    """Read one or several values of a parameter of scenarios, which messages call `label`.

    Texts may hold several, separated by commas; quantities may be ranges, ``1us:100us:log9``.
    """
    label = label or name.replace("_", " ")
    alone = isinstance(given, str | os.PathLike | Mapping) or not isinstance(given, Iterable)
    items = [given] if alone else list(given)
    if not items:
        raise UsageError(f"{label}: no value given", "give one or several, or leave it out")
    found: list[Any] = []
    for item in items:
        if isinstance(item, _READ) or item is None:
            found.append(item)
        elif name in _QUANTITIES and not isinstance(item, str):
            found.append(_number(name, item))
        else:
            text = os.fspath(item) if isinstance(item, os.PathLike) else str(item)
            found += _read(name, text, label)
    return found


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise UsageError(
            f"{name}={value!r}: must be a number in SI units or a text with a unit"
        ) from None


def _read(name: str, text: str, label: str) -> list[Any]:
    parts = [text] if name in _WITH_COMMAS else [part.strip() for part in text.split(",")]
    if "" in parts:
        raise UsageError(f"{label} '{text}': a value is empty", "separate values by one comma")
    try:
        if name in _QUANTITIES:
            return [one for part in parts for one in parse_values(part, _QUANTITIES[name])]
        return [_OTHERS[name](part) for part in parts]
    except UsageError as error:
        raise UsageError(f"{label}: {error.message}", error.hint) from error


def combinations(given: Mapping[str, Any]) -> list[Change]:
    """Every combination of the values of some parameters, as changes of `Network`."""
    if given.get("algorithm") is not None and given.get("collectives") is None:
        given = {**given, "collectives": "algorithm"}
    values = {name: scenario_values(name, some) for name, some in given.items() if some is not None}
    algorithms = values.pop("algorithm", [])
    changes = [
        _readings(some, algorithms)
        if name == "collectives"
        else [_change(name, one) for one in some]
        for name, some in values.items()
    ]
    return [
        {name: value for part in parts for name, value in part.items()}
        for parts in product(*changes)
    ]


def _change(name: str, value: Any) -> Change:
    if name == "links":
        return dict(value)
    return {"speeds" if name == "rank_speed" else name: value}


def _readings(names: list[str], algorithms: list[Selection]) -> list[Change]:
    """Readings of collectives, that as messages with each combination of algorithms."""
    if not algorithms:
        return [{"collectives": name} for name in names]
    if "algorithm" not in names:
        raise UsageError(
            f"collectives {', '.join(names)}: not carried out as messages, so that they take no "
            "algorithm",
            "leave collectives out, or name algorithm among them",
        )
    by_operation: dict[str, list[Selection]] = {}
    for one in algorithms:
        by_operation.setdefault(one.operation, []).append(one)
    chosen = [{"algorithms": one} for one in product(*by_operation.values())]
    return [
        {"collectives": name, **one}
        for name in names
        for one in (chosen if name == "algorithm" else [{}])
    ]


def changed(base: Network | Machine, change: Change, processes: int) -> Network:
    """A network with changes; a machine of Dimemas as the network between some processes."""
    if isinstance(base, Network):
        return base.with_(**change)
    for name in ("latency", "bandwidth", "mapping"):
        if name in change:
            raise UsageError(
                f"{name.replace('_', ' ')}: already set by {base.path}",
                "leave it out, or change the configuration",
            )
    change = dict(change)
    threshold = change.pop("eager_threshold", PRESETS["dimemas"].eager_threshold)
    found = base.network(processes, threshold)
    if "cpu_factor" in change:
        change["cpu_factor"] *= found.cpu_factor
    return found.with_(**change)


def refuse_idle_mapping(networks: Iterable[Network]) -> None:
    """Refuse a mapping that cannot change anything."""
    given = list(networks)
    told = {one.mapping for one in given if one.tiers is not None or one.contended}
    for network in given:
        if network.mapping is not None and network.mapping not in told:
            raise UsageError(
                f"mapping {network.mapping.name}: changes nothing on {network.name}, where a "
                "message costs the same inside a node and between nodes",
                "name a machine, whose profile tells both apart, or limit links",
            )
