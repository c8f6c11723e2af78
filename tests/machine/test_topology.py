"""Derived figures of a topology."""

from __future__ import annotations

import pytest

from popmodel.machine.topology import Cache, Topology

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


@pytest.mark.parametrize(
    ("processes", "threads", "sharing"),
    [(1, 1, 1), (2, 1, 1), (4, 4, 2), (16, 1, 8), (2, 8, 1), (1, 16, 1), (3, 4, 2)],
)
def test_processes_that_share_a_cache(processes: int, threads: int, sharing: int) -> None:
    assert NODE.processes_per_cache(NODE.caches[-1], processes, threads) == sharing


@pytest.mark.parametrize(
    ("processes", "threads", "reach", "sharing"),
    [(1, 1, None, 1), (4, 4, None, 8), (16, 1, None, 8), (1, 16, None, 8), (1, 4, 16, 2)],
)
def test_threads_that_share_a_cache(
    processes: int, threads: int, reach: int | None, sharing: int
) -> None:
    assert NODE.threads_per_cache(NODE.caches[-1], processes, threads, reach) == sharing
    private = Cache("L2", 2**20, 1)
    assert NODE.threads_per_cache(private, processes, threads, reach) == 1


@pytest.mark.parametrize(
    ("processes", "threads", "reach", "sharing"), [(1, 2, 9, 1), (2, 4, 16, 2), (2, 4, 8, 1)]
)
def test_threads_that_are_apart_use_several_caches(
    processes: int, threads: int, reach: int, sharing: int
) -> None:
    assert NODE.processes_per_cache(NODE.caches[-1], processes, threads, reach) == sharing
