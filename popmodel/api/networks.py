"""The networks that a replay is asked for: every combination of the given values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from popmodel.api.inputs import number, several
from popmodel.api.shared import Counts, TopologyLike, shared
from popmodel.base.documents import read_text
from popmodel.base.errors import UsageError, did_you_mean
from popmodel.base.units import parse_bandwidth, parse_size, parse_time
from popmodel.base.units import parse_values as read_values
from popmodel.base.values import dataclass
from popmodel.network.collectives import Fans, Selection, parse_selection, read_fans
from popmodel.network.dimemas_cfg import Machine, is_configuration, read
from popmodel.network.network import COST_FACTORS, PRESETS, Network, preset
from popmodel.network.placement import RankMapping, listed, parse_mapping, parse_speeds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from popmodel.simulator import Program

NetworkLike: TypeAlias = "str | Network"
Values: TypeAlias = "float | str | Iterable[float | str] | None"

_PARSERS: Mapping[str, Callable[[str], float]] = {
    "latency": parse_time,
    "bandwidth": parse_bandwidth,
    "eager_threshold": parse_size,
    "send_is_detached_thresh": parse_size,
    "send_overhead": parse_time,
    "receive_overhead": parse_time,
    "cpu_factor": float,
}


@dataclass(frozen=True)
class OnMachine:
    """A network that waits to know how many processes run on its machine."""

    machine: Machine  # The machine, read from a configuration of Dimemas
    change: Mapping[str, Any]  # Changes of `Network`

    def between(self, processes: int) -> Network:
        """Return the network between some processes; raises as `Machine.network`."""
        change = dict(self.change)
        threshold = change.pop("eager_threshold", PRESETS["dimemas"].eager_threshold)
        found = self.machine.network(processes, threshold)
        if "cpu_factor" in change:
            change["cpu_factor"] *= found.cpu_factor
        return found.with_(**change)


def networks(
    network: NetworkLike | Iterable[NetworkLike], **given: Any
) -> list[Network | OnMachine]:
    """Return one network for each combination of the values."""
    changes = combinations(**given)
    return [
        _changed(base, change) for base in map(_base_of, several(network)) for change in changes
    ]


def _changed(base: Network | Machine, change: dict[str, Any]) -> Network | OnMachine:
    smpi = isinstance(base, Network) and base.rules == "smpi"
    if "send_is_detached_thresh" in change and not smpi:
        name = base.name if isinstance(base, Network) else base.path
        raise UsageError(
            f"send-is-detached-thresh: no option of {name}, only of SimGrid SMPI",
            "use --network smpi (network='smpi' in Python)",
        )
    if isinstance(base, Network):
        return base.with_(**change)
    for name in ("latency", "bandwidth", "mapping", "collective_cost"):
        if name in change:
            raise UsageError(
                f"{name.replace('_', ' ')}: already set by {base.path}",
                "leave it out, or change the configuration",
            )
    return OnMachine(base, change)


def settled(asked: Iterable[Network | OnMachine], processes: int) -> list[Network]:
    """Return the networks between some processes; raises as `OnMachine.between`."""
    return [one if isinstance(one, Network) else one.between(processes) for one in asked]


def combinations(
    *,
    algorithm: str | Iterable[str] | None = None,
    collectives: str | Iterable[str] | None = None,
    collective_cost: str | Iterable[str] | None = None,
    mapping: str | Iterable[str] | None = None,
    rank_speed: str | Iterable[str] | None = None,
    links: Counts | None = None,
    buses: Counts | None = None,
    links_within: Counts | None = None,
    sharing: str | Iterable[str] | None = None,
    topology: TopologyLike | Iterable[TopologyLike] | None = None,
    **given: Values,
) -> list[dict[str, object]]:
    """Return each combination of values as changes of `Network`; raises as `networks`."""
    changes = [
        [{name: value} for value in _numbers(name, values)]
        for name, values in given.items()
        if values is not None
    ]
    if algorithm is not None or collectives is not None:
        changes.append(_readings(collectives, algorithm))
    if collective_cost is not None:
        costs = [cost_of(str(one)) for one in _some("collective_cost", collective_cost)]
        changes.append([{"collective_cost": cost} for cost in costs])
    if mapping is not None:
        changes.append([{"mapping": mapping_of(str(one))} for one in _some("mapping", mapping)])
    if rank_speed is not None:
        speeds = [parse_speeds(str(one)) for one in _some("rank_speed", rank_speed)]
        changes.append([{"speeds": one} for one in speeds])
    changes += shared(
        links=links, buses=buses, links_within=links_within, sharing=sharing, topology=topology
    )
    return [
        {name: value for part in parts for name, value in part.items()}
        for parts in product(*changes)
    ]


def _readings(
    collectives: str | Iterable[str] | None, algorithm: str | Iterable[str] | None
) -> list[dict[str, object]]:
    """Readings of collectives, that as messages with each combination of algorithms."""
    names = ["algorithm"] if collectives is None else _some("collectives", collectives)
    if algorithm is None:
        return [{"collectives": name} for name in names]
    by_operation: dict[str, list[Selection]] = {}
    for text in _some("algorithm", algorithm):
        selection = parse_selection(str(text))
        by_operation.setdefault(selection.operation, []).append(selection)
    if "algorithm" not in names:
        raise UsageError(
            f"collectives {', '.join(map(str, names))}: not carried out as messages, so that they "
            "take no algorithm",
            "leave collectives out, or name algorithm among them",
        )
    return [
        {"collectives": name, **chosen}
        for name in names
        for chosen in (
            [{"algorithms": one} for one in product(*by_operation.values())]
            if name == "algorithm"
            else [{}]
        )
    ]


def cost_of(text: str) -> str | Fans:
    """Return the cost of collectives: a factor by name, or Dimemas' factors and sizes of a file."""
    if Path(text).is_file():
        return read_fans(text, read_text(text))
    if text not in COST_FACTORS:
        raise UsageError(
            f"unknown cost of collectives {text!r}",
            did_you_mean(text, COST_FACTORS, f"one of {', '.join(COST_FACTORS)}, or a file"),
        )
    return text


def mapping_of(text: str) -> RankMapping | None:
    """Return a mapping of ranks to nodes: ``traced`` (None), by rule, or from a file."""
    if Path(text).is_file():
        return listed(text, read_text(text).splitlines())
    return parse_mapping(text)


def _some(name: str, given: Values) -> list[float | str]:
    values = several(given)
    if not values:
        raise UsageError(f"{name}: no value given", "give one or several, or leave it out")
    return values


def network_of(given: NetworkLike) -> Network:
    """Return a network: one as it is, or a preset by name."""
    return given if isinstance(given, Network) else preset(str(given))


def _base_of(given: NetworkLike) -> Network | Machine:
    """A network, or the machine of a configuration of Dimemas."""
    if not isinstance(given, Network) and is_configuration(given):
        return read(given)
    return network_of(given)


def _numbers(name: str, given: Values) -> list[object]:
    if name not in _PARSERS:
        return list(_some(name, given))
    return [one for value in _some(name, given) for one in _number(name, value)]


def _number(name: str, value: float | str) -> list[float]:
    if not isinstance(value, str):
        return [number(name, value, _PARSERS[name])]
    try:
        return read_values(value, _PARSERS[name])
    except UsageError as error:
        raise UsageError(f"{name}: {error.message}", error.hint) from error


def nodes_of(program: Program, change: Mapping[str, object]) -> NDArray[np.int32]:
    """Node of each process under a change."""
    mapping = change.get("mapping")
    if isinstance(mapping, RankMapping):
        return mapping.nodes_of(program.processes)
    return program.nodes[: program.processes]


def refuse_idle_mapping(networks: Iterable[Network | OnMachine]) -> None:
    """Refuse a mapping that cannot change anything."""
    known = [one for one in networks if isinstance(one, Network)]
    told = {one.mapping for one in known if one.tiers is not None or one.contended}
    for network in known:
        if network.mapping is not None and network.mapping not in told:
            raise UsageError(
                f"mapping {network.mapping.name}: changes nothing on {network.name}, where a "
                "message costs the same inside a node and between nodes",
                "name a machine, whose profile tells both apart, or limit links",
            )
