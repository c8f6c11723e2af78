"""What the hardware of a machine is: nodes, sockets, memory domains, cores, caches."""

from __future__ import annotations

import math

from popmodel.values import dataclass


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
