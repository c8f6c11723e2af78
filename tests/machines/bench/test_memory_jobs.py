"""Jobs of memory: working sets, loops, pairs of memory domains."""

from __future__ import annotations

from dataclasses import replace

import pytest
from machines.bench.test_plan import GIB, KIB, LARGE, MIB, SMALL

from popmodel.machines.bench import jobs as memory_jobs
from popmodel.machines.bench.estimate.core_estimates import level_of
from popmodel.machines.quantity import Cache, Topology


def test_arrays_exceed_the_last_cache_four_times_up_to_256_mib() -> None:
    assert memory_jobs.array_bytes(LARGE) == 128 * MIB
    assert memory_jobs.array_bytes(SMALL) == 256 * MIB
    assert memory_jobs.array_bytes(replace(LARGE, memory_per_node=GIB)) <= GIB // 12
    assert memory_jobs.array_bytes(replace(LARGE, caches=())) == 256 * MIB


@pytest.mark.parametrize(
    ("cache", "shared_by", "cores", "array"),
    [(128 * MIB, 64, 64, 256), (32 * MIB, 6, 48, 256), (96 * MIB, 8, 96, 256), (MIB, 1, 48, 192)],
)
def test_arrays_exceed_all_last_caches_of_a_domain(
    cache: int, shared_by: int, cores: int, array: int
) -> None:
    caches = (Cache("L3", cache, shared_by),)
    node = replace(LARGE, cores_per_node=cores, domains=1, caches=caches)
    assert memory_jobs.array_bytes(node) == array * MIB


def test_working_sets_lie_inside_their_cache_and_clear_of_the_one_below() -> None:
    for topology in (SMALL, LARGE):
        below = 0
        for cache, size in zip(topology.caches, memory_jobs.working_sets(topology), strict=True):
            assert 1.4 * below < size <= cache.bytes * 0.76
            below = cache.bytes


def levels(topology: Topology, threads: int, *, full: bool = False) -> list[str]:
    """What the loops of some cores go over, as their results are named."""
    caches = [
        {"level": cache.level, "bytes": cache.bytes, "shared_by": cache.shared_by}
        for cache in topology.caches
    ]
    return [
        level_of(size, threads, {"caches": caches})
        for size in memory_jobs.loop_sets(topology, threads, full=full)
    ]


def test_loops_go_over_every_level_beyond_the_first() -> None:
    for topology, cores in ((SMALL, 2), (LARGE, 6)):
        for full in (False, True):
            found = levels(topology, 1, full=full)
            assert set(found) == set(levels(topology, cores, full=full))
            assert list(dict.fromkeys(found)) == ["L2", "L3", "MEM"]


def test_loops_go_over_a_small_and_in_full_mode_a_large_set_of_a_cache() -> None:
    small, large = [144 * KIB, 6 * MIB], [384 * KIB, 16 * MIB]
    assert memory_jobs.loop_sets(SMALL, 1, full=False) == [*small, 256 * MIB]
    both = sorted(small + large)
    assert memory_jobs.loop_sets(SMALL, 1, full=True) == [*both, 256 * MIB]
    assert memory_jobs.loop_sets(SMALL, 2, full=True) == [*(2 * size for size in both), 256 * MIB]


def test_a_cache_that_is_shared_until_nothing_is_left_of_it_has_no_loop() -> None:
    caches = (Cache("L1", 32 * KIB, 1), Cache("L2", 2 * MIB, 1), Cache("L3", 64 * MIB, 32))
    shared = replace(LARGE, cores_per_node=32, domains=1, caches=caches)
    assert levels(shared, 1) == ["L2", "L3", "MEM"]
    assert levels(shared, 32) == ["L2", "MEM"]
    assert levels(replace(shared, caches=()), 4) == ["MEM"]


@pytest.mark.parametrize(
    ("domains", "sockets", "quick", "full"),
    [
        (1, 1, [], []),
        (2, 1, [(0, 1), (1, 0)], [(0, 1), (1, 0)]),
        (2, 2, [(0, 1), (1, 0)], [(0, 1), (1, 0)]),
        (4, 4, [(0, 3)], [(i, j) for i in range(4) for j in range(4) if i != j]),
        (4, 1, [(0, 1)], [(i, j) for i in range(4) for j in range(4) if i != j]),
        (8, 2, [(0, 1), (0, 7)], [(0, other) for other in range(1, 8)]),
    ],
)
def test_pairs_of_domains_are_all_of_few_and_one_of_each_kind_of_many(
    domains: int, sockets: int, quick: list[tuple[int, int]], full: list[tuple[int, int]]
) -> None:
    node = replace(LARGE, domains=domains, sockets=sockets)
    assert memory_jobs.domain_pairs(node, full=False) == quick
    assert memory_jobs.domain_pairs(node, full=True) == full


def test_remote_memory_is_measured_beside_local_memory() -> None:
    node = replace(LARGE, domains=2)
    _, jobs = memory_jobs.memory_jobs(node, full=False)
    triads = {
        (one.get("threads"), one.get("on"), one.get("data"))
        for one in jobs
        if one.name == "remote_triad"
    }
    assert triads == {(n, on, data) for n in (1, 24) for on in (0, 1) for data in (0, 1)}
    chases = {(one.get("on"), one.get("data")) for one in jobs if one.name == "remote_chase"}
    assert chases == {(on, data) for on in (0, 1) for data in (0, 1)}


def test_reads_go_over_the_ends_of_all_caches_and_updates_over_those_beyond_the_first() -> None:
    caches = (Cache("L1", 48 * KIB, 1), Cache("L2", 2 * MIB, 1), Cache("L3", 480 * MIB, 2))
    node = replace(SMALL, caches=caches)
    short, long = memory_jobs.memory_jobs(node, full=False)
    loads = {one.get("bytes") for one in (*short, *long) if one.name == "load"}
    assert {36 * KIB, 48 * KIB, 60 * KIB, 72 * KIB, 96 * KIB} <= loads
    assert {1536 * KIB, 2 * MIB, 2560 * KIB, 3 * MIB, 4 * MIB} <= loads
    updates = [one.get("bytes") for one in (*short, *long) if one.name == "update"]
    assert set(memory_jobs.working_sets(node)[1:]) <= set(updates)
    assert all(int(size) > caches[0].bytes for size in updates)
    assert set(updates) <= loads
    more = {one.get("bytes") for part in memory_jobs.memory_jobs(node, full=True) for one in part}
    assert 3584 * KIB in more


def test_reads_go_over_parts_of_a_last_cache_that_arrays_cannot_exceed() -> None:
    caches = (Cache("L1", 48 * KIB, 1), Cache("L2", 2 * MIB, 1), Cache("L3", 480 * MIB, 2))
    short, long = memory_jobs.memory_jobs(replace(SMALL, caches=caches), full=False)
    loads = {one.get("bytes") for one in (*short, *long) if one.name == "load"}
    assert {60 * MIB, 90 * MIB, 180 * MIB, 256 * MIB} <= loads
    assert 240 * MIB not in loads  # as good as the arrays


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("node", [SMALL, LARGE])
def test_updates_go_over_the_end_of_the_last_cache_as_reads_do(node: Topology, full: bool) -> None:
    jobs = [one for part in memory_jobs.memory_jobs(node, full=full) for one in part]
    around = {
        name: {
            size for one in jobs if one.name == name and (size := int(one.get("bytes"))) >= 8 * MIB
        }
        for name in ("load", "narrow_update")
    }
    assert around["narrow_update"] == around["load"]
    assert memory_jobs.array_bytes(node) in around["narrow_update"]
    assert len(jobs) == len(set(jobs))


def test_a_node_whose_caches_are_unknown_has_no_updates() -> None:
    short, long = memory_jobs.memory_jobs(replace(SMALL, caches=()), full=True)
    assert not {"update", "narrow_update"} & {one.name for one in (*short, *long)}
