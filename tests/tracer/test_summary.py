"""What a trace is worth, in words."""

from __future__ import annotations

from pathlib import Path

import pytest
from tracer.builder import Run
from tracer.plan import Plan

from popmodel.tracer.merge import Merged, merge
from popmodel.tracer.summary import not_seen, overhead


@pytest.fixture
def plan() -> Plan:
    return Plan(2)


def done(run: Run, folder: Path) -> Merged:
    return merge(run.write(folder / "raw"), folder / "x.prv")


def test_all_is_seen_of_a_plain_run(plan: Plan, tmp_path: Path) -> None:
    assert not_seen(done(plan.finish(), tmp_path)) == []


def test_what_is_lacking_is_said_with_its_reason(plan: Plan, tmp_path: Path) -> None:
    for rank, process in enumerate(plan.processes):
        process.say("counters", why="perf_event_paranoid is 3")
        process.say("openmp", how="none" if rank else "gomp", runtime="")
        if rank:
            process.events[0]["host"] = process.host = "node2"
        process.say("note", text="strange handles", count=1000 + rank)
    assert not_seen(done(plan.finish(), tmp_path)) == [
        "no OpenMP in 1 process: switched off (--openmp off)",
        "no hardware counters in 2 processes: perf_event_paranoid is 3",
        "how well the clocks of the hosts agree is not known: they were not compared",
        "strange handles (2,001)",
        "hosts whose clock was not compared with that of rank 0's host: aligned by the time of "
        "day, which can be wrong by milliseconds",
    ]


def test_counters_that_were_read_are_no_lack(plan: Plan, tmp_path: Path) -> None:
    for process in plan.processes:
        process.say("counters", names=["instructions", "cycles"])
    merged = done(plan.finish(), tmp_path)
    assert merged.counters == {"": 2}
    assert not_seen(merged) == []


def test_a_program_without_mpi_is_told(tmp_path: Path) -> None:
    run = Run(0)
    process = run.process()
    process.thread().put(1500, 1 << 4)
    process.end(2000)
    assert not_seen(done(run, tmp_path))[0].startswith("no MPI: the program never called MPI_Init")


def test_the_overhead_is_that_of_the_busiest_thread(plan: Plan, tmp_path: Path) -> None:
    plan.send(0, 1, 0, 0, 5)
    merged = done(plan.finish(), tmp_path)
    most = max(len(thread.rows) for thread in plan.masters)
    assert merged.busiest == most
    assert overhead(merged, 1e-9) == pytest.approx(most / merged.duration)
