"""Which processors threads have: read, counted, and recorded by a real run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tracer.builder import Run as Made
from tracer.traced import Run

from popmodel import trace as reader
from popmodel.trace.event import Event
from popmodel.tracer.merge import merge
from popmodel.tracer.meta import parse, sharing

BETWEEN = 2_000_000
"""What passes between the times that are told and those that are counted, ns."""


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("0-3,8", {0, 1, 2, 3, 8}), ("7", {7}), ("", set()), ("3-1", set()), ("0-x", set())],
)
def test_processors_are_read(text: str, cpus: set[int]) -> None:
    assert parse(text) == cpus


def test_threads_are_counted_that_may_use_nothing_else() -> None:
    one, two, all_ = frozenset({0}), frozenset({0, 1}), frozenset(range(4))
    counted = sharing([("a", one), ("a", one), ("a", two), ("a", all_), ("b", one)])
    assert counted == {("a", one): 2, ("a", two): 3, ("a", all_): 4, ("b", one): 1}


def test_a_merged_trace_says_what_threads_had(tmp_path: Path) -> None:
    run = Made(2)
    for rank, cpus in enumerate(("0", "0-1")):
        process = run.process(rank, begin=0)
        process.thread().call("Init", 0, 100)
        process.say("thread", number=0, tid=1, time=0, cpus=cpus)
        process.say("usage", thread=0, used=700, waited=rank)
        process.end(1000)
    merge(run.write(tmp_path / "raw"), tmp_path / "x.prv")
    trace = reader.read(tmp_path / "x.prv")
    told = (Event.CPUS, Event.SHARING, Event.USED, Event.WAITED)
    found = [sorted(trace.marks(event).value.tolist()) for event in told]
    assert found == [[1, 2], [1, 2], [700, 700], [0, 1]]


def test_a_real_run_records_them(run: Run, program: Callable[..., Path]) -> None:
    done = run.start(2, program("sites"))
    assert done.returncode == 0, done.stderr
    for process in run.processes():
        (thread,) = process.events("thread")
        assert parse(thread["cpus"]) <= os.sched_getaffinity(0)
        assert parse(thread["cpus"])
        if Path("/proc/self/schedstat").exists():
            (usage,) = process.events("usage")
            assert usage["used"] > 0
            assert usage["waited"] >= 0
            # what MPI takes to start and to stop is no part of it
            (begin,), (end,) = process.events("mpi"), process.events("finalize")
            assert usage["used"] + usage["waited"] < end["time"] - begin["time"] + BETWEEN
