"""Derived figures of a topology."""

from __future__ import annotations

from popmodel.machines.quantity import Cache, Topology

NODE = Topology(
    nodes=4,
    cores_per_node=16,
    sockets=2,
    domains=2,
    caches=(Cache("L2", 2**18, 1), Cache("L3", 2**24, 8)),
)


def test_cores() -> None:
    assert NODE.cores_per_domain == 8
    assert NODE.cores_per_socket == 8
    assert NODE.last_level_cache == Cache("L3", 2**24, 8)
    assert Topology(1, 4, 1, 1, ()).last_level_cache is None
