"""Quantities of a machine, with intervals and origins, and the topology of its hardware."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from popmodel.base.documents import (
    LARGEST,
    Optional,
    Real,
    Shape,
    ShapeError,
    TableShape,
    Text,
    WholeShape,
    shown,
)
from popmodel.base.values import dataclass

# A number with its interval and where it comes from.


END = 1.6448536269514715
"""Quantile of 95 % of the standard normal distribution: where low and high lie, in standard
deviations; written out, since `statistics` takes long to import."""

ORIGINS = ("measured", "preset", "user")
FIELDS = ("value", "low", "high", "origin", "n", "samples", "source", "unit")


@dataclass(frozen=True)
class Quantity:
    """A number in SI units, with what is known about it."""

    value: float  # Best estimate (the median of its distribution)
    # 5 % and 95 % quantiles, so that [low, high] holds 90 %; None where nothing is known about the
    # spread, and the value is then taken as exact.
    low: float | None = None
    high: float | None = None
    # How the value was obtained: measured, preset or user in a machine profile, assumed where that
    # lacks it; user, static, trace or fit in a signature.
    origin: str = "user"
    n: int | None = None  # Number of samples behind it
    samples: str | None = None  # File with the raw samples
    source: str | None = None  # Publication or benchmark that the value comes from
    # Bounds of what the number means, such as 0 and 1 of a share: draws do not leave them.
    least: float = -math.inf
    most: float = math.inf

    @property
    def is_uncertain(self) -> bool:
        """Whether there is an interval that is wider than nothing."""
        return self.low is not None and self.high is not None and self.low < self.high

    def to_dict(self) -> dict[str, Any]:
        """Return what is known as JSON types."""
        known = {key: getattr(self, key, None) for key in FIELDS}
        return {key: value for key, value in known.items() if value is not None}


def read_quantity(
    entry: object,
    unit: str,
    *,
    zero: bool = False,
    least: float | None = None,
    most: float | None = None,
    origins: tuple[str, ...] = ORIGINS,
) -> Quantity:
    """Read a quantity from its JSON or TOML form; raises a ShapeError."""
    if not isinstance(entry, Mapping):
        wanted = "a table with value, low, high, origin and source"
        raise ShapeError(f"must be {wanted}, not {shown(entry)}")
    if (stated := entry.get("unit", unit)) != unit:
        raise ShapeError(f"must be in {unit}, not {shown(stated)}")
    read = _shape(zero, least, most, origins).read(entry)
    low, high = read.get("low"), read.get("high")
    if (low is None) != (high is None):
        raise ShapeError("must have both low and high, or neither")
    if low is not None and high is not None and not low <= read["value"] <= high:
        raise ShapeError(f"value {read['value']:g} must be between low {low:g} and high {high:g}")
    read.pop("unit", None)
    bounds = (-math.inf if least is None else least, math.inf if most is None else most)
    return Quantity(**read, least=bounds[0], most=bounds[1])


@cache
def _shape(
    zero: bool, least: float | None, most: float | None, origins: tuple[str, ...]
) -> TableShape:
    lowest = 0.0 if zero and least is None else least
    number = Real(
        above=0.0 if lowest is None else None, least=lowest, most=LARGEST if most is None else most
    )
    keys = dict.fromkeys(("value", "low", "high"), number)
    texts = dict.fromkeys(("samples", "source", "unit"), Text())
    others: dict[str, Shape] = {"origin": Text(origins), "n": Optional(WholeShape())}
    return TableShape({**keys, **others, **texts}, ("value",))


def around(value: float, deviation: float) -> tuple[float, float]:
    """Return the ends of the interval of a quantity whose logarithm has a standard deviation."""
    factor = math.exp(END * deviation)
    return value / factor, value * factor


# What the hardware of a machine is: nodes, sockets, memory domains, cores, caches.


@dataclass(frozen=True)
class Cache:
    """One level of cache."""

    level: str  # Name, such as ``L3``
    bytes: int  # Size of one instance
    shared_by: int  # Cores that share one instance


@dataclass(frozen=True)
class Topology:
    """A machine of equal nodes."""

    nodes: int  # Number of nodes
    cores_per_node: int  # Cores of a node
    # Sockets, and memory domains (NUMA), of a node.
    sockets: int
    domains: int
    # Data caches from the innermost outwards; empty where the system does not tell.
    caches: tuple[Cache, ...]
    memory_per_node: int | None = None  # Bytes of memory of a node

    @property
    def cores_per_domain(self) -> int:
        """Cores that share the bandwidth of a memory domain."""
        return math.ceil(self.cores_per_node / self.domains)

    @property
    def cores_per_socket(self) -> int:
        """Cores of a socket."""
        return math.ceil(self.cores_per_node / self.sockets)

    def share_socket(self, domain: int, other: int) -> bool:
        """Tell whether two memory domains of a node are on the same socket."""
        per_socket = max(1, self.domains // self.sockets)
        return domain // per_socket == other // per_socket

    @property
    def last_level_cache(self) -> Cache | None:
        """The outermost cache; None where no cache is known."""
        return self.caches[-1] if self.caches else None

    @property
    def last_level_bytes(self) -> int:
        """Bytes of all outermost caches that the cores of a memory domain use; 0 without caches."""
        last = self.last_level_cache
        if last is None:
            return 0
        return last_level_bytes(last.bytes, last.shared_by, self.cores_per_domain)

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the caches, from the innermost outwards."""
        return tuple(cache.level for cache in self.caches)

    def cache_within(self, level: str) -> Cache | None:
        """Return a level of cache, or where the machine lacks it the largest below; None if none.

        Data that do not stay in the levels below stay in no level that is not there.
        """
        below = [cache for cache in self.caches if cache.level <= level]
        return below[-1] if below else None


def last_level_bytes(size: int, shared_by: int, cores: int) -> int:
    """Bytes of all instances of a cache that some cores use."""
    return size * math.ceil(cores / shared_by)
