"""What a trace is worth, in words."""

from __future__ import annotations

from pathlib import Path

import pytest
from tracer.builder import Run
from tracer.plan import Plan

from popmodel.cli.trace import recording_document
from popmodel.reports.recording_tables import VIEWS
from popmodel.tracer.conversion import (
    CALL_COST,
    LOCK_COST,
    RECORD_COST,
    SECTION_COST,
    Merged,
    held_up,
    merge,
    not_seen,
    overhead,
)
from popmodel.tracer.raw_records import Guard, RecordKind
from popmodel.traces import read
from popmodel.traces.caveats import crowding

COSTS = (RECORD_COST, CALL_COST, LOCK_COST, SECTION_COST)


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
        "agreement of the clocks of the hosts unknown: they were not compared",
        "strange handles (2,001)",
        "hosts whose clock was not compared with that of rank 0: aligned by time of day, "
        "which can be off by milliseconds",
    ]


def test_a_program_without_mpi_is_told(tmp_path: Path) -> None:
    run = Run(0)
    process = run.process()
    process.thread().put(1500, 1 << 4)
    process.end(2000)
    assert not_seen(done(run, tmp_path))[0].startswith("no MPI: the program did not call MPI_Init")


def test_the_overhead_is_that_of_the_busiest_thread(plan: Plan, tmp_path: Path) -> None:
    """Records, what wrappers of MPI calls look up, locks and critical sections; a range."""
    plan.send(0, 1, 0, 0, 5)
    thread = plan.masters[0]
    end = thread.rows[-1][0]
    thread.put(end, RecordKind.GUARDED, Guard.LOCKS, 3, 1000, 50)
    thread.put(end, RecordKind.GUARDED, Guard.CRITICALS, 0, 10, 5)
    merged = done(plan.finish(), tmp_path)
    calls = sum(row[1] == RecordKind.ENTER for row in thread.rows)
    load = max(merged.loads)
    assert load == (len(thread.rows), calls, 1000, 10)
    traced = merged.duration * 1e-9
    found = overhead(merged)
    least = 0.75 * sum(c.low * n for c, n in zip(COSTS, load, strict=True))
    most = 1.5 * sum(c.high * n for c, n in zip(COSTS, load, strict=True))
    assert held_up(merged) == pytest.approx((least, most))
    assert found.low == pytest.approx(least / (traced - least))
    assert found.high == pytest.approx(most / (traced - most) if 2 * most < traced else 1)


def test_threads_that_share_a_core_are_told_first(plan: Plan, tmp_path: Path) -> None:
    """As of any trace: what the summary says is what all other commands say of the trace."""
    for process in plan.processes:
        process.say("thread", number=0, cpus="3")
        process.say("usage", thread=0, used=600, waited=400)
    merged = done(plan.finish(), tmp_path)
    (said,) = merged.crowding
    assert said.startswith("more threads than CPUs: 2 threads may use only 1 CPU (thread 0 of rank")
    assert "waited for a CPU 40 % of the time" in said
    assert crowding(read(merged.path)) == [said]
    document = recording_document([merged], raw=None)
    assert document["caveats"] == [said]
    first, *_ = VIEWS.blocks(document)
    assert [note.text for note in first] == [said]
