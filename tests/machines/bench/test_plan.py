"""Plans: which jobs, in how many launches, in how much time."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest

from popmodel.base.documents import TableShape
from popmodel.machines.bench import bench_plan as plan
from popmodel.machines.bench.bench_plan import BenchPlan
from popmodel.machines.bench.jobs import PART_OF, BenchJob
from popmodel.machines.quantity import Cache, Topology
from popmodel.machines.register import NODE_PARTS, PARTS

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

SMALL = Topology(
    nodes=1,
    cores_per_node=2,
    sockets=1,
    domains=1,
    caches=(Cache("L1", 48 * KIB, 1), Cache("L2", 2 * MIB, 1), Cache("L3", 480 * MIB, 2)),
    memory_per_node=24 * GIB,
)
LARGE = Topology(
    nodes=1,
    cores_per_node=48,
    sockets=2,
    domains=8,
    caches=(Cache("L1", 32 * KIB, 1), Cache("L2", MIB, 1), Cache("L3", 32 * MIB, 6)),
    memory_per_node=256 * GIB,
)


def make(topology: Topology = SMALL, mode: str = "quick", **more: object) -> BenchPlan:
    settings: dict[str, object] = {"ranks": topology.cores_per_node, "seed": 1, **more}
    parts = settings.pop("parts", PARTS)
    return plan.make(parts, mode, topology, **settings)  # type: ignore[arg-type]


def jobs(made: BenchPlan, name: str) -> set[BenchJob]:
    return {job for launch in made.launches for job in launch.jobs if job.name == name}


def values(made: BenchPlan, name: str, key: str) -> list[object]:
    return sorted({job.get(key, 0) for job in jobs(made, name)}, key=str)


def test_quick_takes_several_launches_of_each_job_in_less_than_a_minute() -> None:
    made = make()
    times = Counter((launch.thread_level, job) for launch in made.launches for job in launch.jobs)
    rounds = plan.MODES["quick"].rounds
    often = {job for (_, job), count in times.items() if count != rounds}
    assert {(job.name, job.get("threads", 1)) for job in often} == {
        ("clock", 1),
        ("instructions", 1),
    }
    assert {times[None, job] for job in often} == {2 * rounds}  # in two kinds of launches
    assert plan.MODES["quick"].rounds >= 3
    assert sum(launch.seconds() for launch in made.launches) < 58


def test_a_plan_that_cannot_keep_its_time_knows() -> None:
    huge = replace(LARGE, cores_per_node=256)
    assert make(huge).is_longer_than_meant
    assert make(huge).seconds == sum(launch.seconds() for launch in make(huge).launches)
    assert not make().is_longer_than_meant


def test_full_takes_ten_to_twenty_minutes() -> None:
    made = make(mode="full")
    assert 600 < sum(launch.seconds() for launch in made.launches) < 1200
    assert min(Counter(job for launch in made.launches for job in launch.jobs).values()) >= 10


def test_programs_take_turns() -> None:
    programs = [launch.program for launch in make().launches]
    turn = programs[: len(programs) // plan.MODES["quick"].rounds]
    assert set(turn) == {"node", "mpi"}
    assert [launch.number for launch in make().launches] == list(range(1, len(programs) + 1))


def test_every_job_belongs_to_a_part_that_was_asked_for() -> None:
    for part in PARTS:
        made = make(LARGE, parts=(part,))
        for launch in made.launches:
            found = {launch.part(job) for job in launch.jobs}
            # What full thread support is compared with is a ping-pong of less; and the node
            # program is always there, for the hardware that it tells.
            also = {"threads": {"p2p"}}.get(part)
            tells = {"noise"} if launch.program == "node" and part not in NODE_PARTS else None
            assert found in ({part}, also, tells)
    assert {PART_OF[job.name] for job in make(LARGE).launches[0].jobs} <= NODE_PARTS


def test_thread_counts_are_powers_of_two_and_the_ends_of_domain_socket_and_node() -> None:
    made = make(LARGE, parts=("openmp", "core"))
    assert values(made, "clock", "threads") == [1, 16, 2, 24, 32, 4, 48, 6, 8]
    barrier = {
        job.get("threads") for job in jobs(made, "construct") if job.get("name") == "barrier"
    }
    assert barrier == {1, 2, 4, 6, 8, 16, 24, 32, 48}


def test_the_end_of_the_last_cache_is_looked_at_where_arrays_reach_beyond_it() -> None:
    sizes = values(make(LARGE, mode="full"), "load", "bytes")
    assert {16 * MIB, 24 * MIB, 32 * MIB, 48 * MIB, 64 * MIB, 128 * MIB} <= set(sizes)


def test_tiers_follow_from_sockets_and_nodes() -> None:
    assert values(make(), "ping_pong", "tier") == ["node"]
    assert values(make(LARGE), "ping_pong", "tier") == ["near", "node"]
    assert values(make(LARGE, ranks=96, nodes=2), "ping_pong", "tier") == [
        "near", "network", "node",
    ]  # fmt: skip
    assert values(make(ranks=2, nodes=2), "ping_pong", "tier") == ["network"]


def test_pairs_on_two_nodes_are_launched_alone() -> None:
    made = make(LARGE, ranks=96, nodes=2)
    for launch in made.launches:
        pair = {job for job in launch.jobs if job.get("tier") == "network"}
        if launch.ranks == 96:
            assert {job.name for job in pair} == {"window"}
            assert min(int(job.get("pairs")) for job in pair) > 1
    assert {(launch.ranks, launch.nodes, launch.threads) for launch in made.launches} == {
        (1, 1, 48), (96, 2, 1), (2, 2, 1), (2, 1, 24), (2, 2, 48),
    }  # fmt: skip


def test_pairs_and_communicators_grow_up_to_all_ranks() -> None:
    made = make(LARGE)
    assert values(made, "window", "pairs") == [1, 16, 2, 24, 4, 8]
    assert values(made, "collective", "ranks") == [16, 2, 32, 4, 48, 8]
    assert values(make(), "window", "pairs") == [1]


def test_threads_communicate_only_where_each_has_a_core() -> None:
    assert values(make(), "threaded", "threads") == [1]
    assert values(make(LARGE), "threaded", "threads") == [1, 16, 2, 4, 8]
    assert "needs 4 cores" in make().left_out["net.thread_factor"]
    assert "net.thread_factor" not in make(LARGE).left_out


@pytest.mark.parametrize("parts", [("threads",), PARTS])
@pytest.mark.parametrize(("topology", "ranks", "nodes"), [(SMALL, 2, 1), (LARGE, 96, 2)])
def test_full_thread_support_is_compared_with_less_in_the_same_placement(
    topology: Topology, ranks: int, nodes: int, parts: tuple[str, ...]
) -> None:
    made = make(topology, ranks=ranks, nodes=nodes, parts=parts)
    by_start: dict[tuple[object, ...], list[set[BenchJob]]] = {}
    for launch in made.launches:
        start = launch.ranks, launch.nodes, launch.threads, launch.thread_level
        by_start.setdefault(start, []).append(set(launch.jobs))
    full = {start: found for start, found in by_start.items() if start[-1] == "multiple"}
    assert len(full) == nodes
    for start, found in full.items():
        less = by_start[(*start[:-1], "funneled")]
        assert len(less) == len(found) == plan.MODES["quick"].rounds
        for with_, without in zip(found, less, strict=True):
            both = with_ & without
            assert {job.get("bytes") for job in both} == {0, 8, 64, KIB}
            assert {job.name for job in both} == {"ping_pong"}
    assert {launch.part(job) for launch in made.launches for job in launch.jobs
            if launch.thread_level == "multiple"} == {"threads"}  # fmt: skip


def test_one_rank_measures_no_messages_and_says_so() -> None:
    made = make(replace(SMALL, cores_per_node=1), ranks=1)
    assert {launch.program for launch in made.launches} == {"node"}
    for path in ("net.intra", "coll", "net.overlap", "net.thread_factor"):
        assert made.left_out[path] == "needs at least 2 ranks"
    assert not jobs(made, "false_sharing") | jobs(made, "line_transfer")


def test_one_memory_domain_has_no_remote_memory_and_says_so() -> None:
    made = make()
    assert not jobs(made, "remote_triad") | jobs(made, "remote_chase")
    assert made.left_out["memory.remote"] == "needs 2 memory domains, this node has one"
    assert "memory.remote" not in make(parts=("core",)).left_out
    assert values(make(LARGE), "remote_chase", "data") == [0, 1, 7]


def test_two_threads_on_a_core_are_measured_where_there_are_two() -> None:
    assert not jobs(make(), "smt")
    assert values(make(smt=2), "smt", "shared") == [0, 1]
    alone = make(replace(SMALL, cores_per_node=1), ranks=1, smt=2)
    assert values(alone, "smt", "shared") == [1]  # two cores to compare with are not there


def test_a_plan_survives_json() -> None:
    made = make(LARGE, ranks=96, nodes=2, mode="full")
    assert (
        plan.from_dict(TableShape(plan.KEYS).read(json.loads(json.dumps(made.to_dict())))) == made
    )
