"""The networks that a replay is asked for: every combination of the given values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import TypeAlias

from popmodel.api.inputs import number, several
from popmodel.errors import UsageError
from popmodel.network.network import Network, preset
from popmodel.units import parse_bandwidth, parse_size, parse_time

NetworkLike: TypeAlias = "str | Network"

_PARSERS: Mapping[str, Callable[[str], float]] = {
    "latency": parse_time,
    "bandwidth": parse_bandwidth,
    "eager_threshold": parse_size,
    "cpu_factor": float,
}


def networks(
    network: NetworkLike | Iterable[NetworkLike],
    **given: float | str | Iterable[float | str] | None,
) -> list[Network]:
    """Return one network for each combination of the values.

    Parameters
    ----------
    network : str or Network, or several of them
        Names of presets or networks to start from.
    **given : float or str, or several of them, or None
        Fields of `Network` to change, in SI units or as text with a unit; None: unchanged.

    Raises
    ------
    UsageError
        If a network is unknown or a value is invalid.
    """
    changes = combinations(**given)
    return [
        base.with_(**change) for base in map(network_of, several(network)) for change in changes
    ]


def combinations(**given: float | str | Iterable[float | str] | None) -> list[dict[str, object]]:
    """Return each combination of values as changes of `Network`; raises as `networks`."""
    changes: Mapping[str, list[object]] = {
        name: [_value(name, value) for value in _some(name, values)]
        for name, values in given.items()
        if values is not None
    }
    return [dict(zip(changes, values, strict=True)) for values in product(*changes.values())]


def _some(name: str, given: float | str | Iterable[float | str]) -> list[float | str]:
    values = several(given)
    if not values:
        raise UsageError(f"{name}: no value given", "give one or several, or leave it out")
    return values


def network_of(given: NetworkLike) -> Network:
    """Return a network: one as it is, or a preset by name.

    Raises
    ------
    UsageError
        If there is no such preset.
    """
    return given if isinstance(given, Network) else preset(str(given))


def _value(name: str, value: float | str) -> object:
    return number(name, value, _PARSERS[name]) if name in _PARSERS else value
