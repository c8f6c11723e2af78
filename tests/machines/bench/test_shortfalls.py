"""What samples lack against their plan, told from the samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from popmodel.machines.bench.bench_plan import BenchPlan, PlanLimits, PlannedLaunch
from popmodel.machines.bench.collect import shortfalls
from popmodel.machines.bench.jobs import BenchJob, job
from popmodel.machines.bench.sample_files import Launch, SampleResult

JOBS = tuple(job("ping_pong", bytes=size, tier="node") for size in (0, 8, 64))
LIMITS = PlanLimits(budget=0.01, least=5, most=10, precision=0.1)


def plan(launches: int = 2, nodes: int = 1) -> BenchPlan:
    planned = tuple(
        PlannedLaunch(number, "mpi", 4, nodes, 1, None, LIMITS, JOBS)
        for number in range(1, launches + 1)
    )
    return BenchPlan("quick", ("p2p",), 4, nodes, 7, planned, {})


def launch(
    number: int,
    jobs: Sequence[BenchJob] = JOBS,
    end: str | None = "complete",
    places: Sequence[tuple[str, str | None]] = (("a", "0"), ("a", "1")),
) -> Launch:
    """Samples of a launch whose ranks are on those hosts and CPUs."""
    ranks: list[dict[str, Any]] = [
        {"rank": rank, "host": host, "cpus": cpus} for rank, (host, cpus) in enumerate(places)
    ]
    header = {"program": "mpi", "launch": number, "ranks_at": ranks}
    results = tuple(SampleResult(one.name, dict(one.params), np.ones(1)) for one in jobs)
    return Launch(f"launch-{number:03d}.jsonl", header, results, end)


def test_a_whole_measurement_lacks_nothing() -> None:
    assert shortfalls(plan(), [launch(1), launch(2)]) == []
    assert shortfalls(None, [launch(1)]) == []


def test_jobs_without_a_sample_are_counted_and_their_launches_named() -> None:
    samples = [launch(1), launch(2, JOBS[:1], None), launch(4, (), "limit"), launch(5, JOBS[1:])]
    assert shortfalls(plan(6), samples) == [
        "12 of 18 jobs have no sample: launch 2 was interrupted; launches 3, 6 did not start; "
        "launch 4 ran out of time; launch 5 skipped jobs that had failed"
    ]


def test_a_launch_that_was_gone_on_with_is_whole() -> None:
    samples = [launch(1), launch(2, JOBS[:2], None), launch(2, JOBS[2:])]
    assert shortfalls(plan(), samples) == []
    assert shortfalls(None, samples) == []


def test_without_a_plan_the_samples_say_that_they_are_cut() -> None:
    samples = [launch(1, JOBS, None), launch(2, JOBS, None), launch(3, JOBS, "limit")]
    assert shortfalls(None, samples) == [
        "some jobs have no sample: launches 1, 2 were interrupted; launch 3 ran out of time"
    ]


def test_ranks_on_fewer_nodes_than_asked_for() -> None:
    two = [("a", "0"), ("b", "0")]
    samples = [launch(1, places=two), launch(2)]
    assert shortfalls(plan(nodes=2), samples) == ["launch 2 ran on 1 instead of 2 nodes"]
    assert shortfalls(plan(nodes=2), [launch(1, places=two), launch(2, places=two)]) == []


def test_ranks_that_share_cores() -> None:
    shared = [("a", "0-1")] * 4
    samples = [launch(1, places=shared), launch(2, places=shared)]
    crowd = "oversubscribed cores: "
    expected = crowd + "launches 1, 2 had 4 ranks on 2 CPUs of a"
    assert shortfalls(plan(), samples) == [expected]
    assert shortfalls(None, samples) == [expected]
    # Ranks that are not bound may use the CPUs of each other; there is one for each.
    assert shortfalls(None, [launch(1, places=[("a", "0-1")] * 2)]) == []
    assert shortfalls(None, [launch(1, places=[("a", "0"), ("a", "0"), ("b", "0")])]) == [
        "oversubscribed cores: launch 1 had 2 ranks on 1 CPU of a"
    ]
    # A system that does not tell the CPUs is believed.
    assert shortfalls(None, [launch(1, places=[("a", None)] * 3)]) == []
