"""Locks, critical sections and atomic operations, summed or one by one."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from tracer.openmp_runs import (
    CONSTRUCTS,
    THREADS,
    Build,
    Run,
    check_pairs,
    compilers,
    number,
    run,
    traced,
)
from tracer.raw_files import KINDS, SOURCES, Process

__all__ = ["run"]  # of OpenMP programs, not of those with MPI


GUARDS = {
    name: int(number)
    for name, number in re.findall(
        r"([A-Z]+) = (\d+)",
        (SOURCES / "record.h").read_text().partition("\nenum guard")[2].partition("}")[0],
    )
}


def test_one_at_a_time_holds_a_lock(run: Run, build: Build) -> None:
    process, _ = traced(run, build("gcc"), "constructs", POPMODEL_TRACE_LOCKS="each")
    for construct in ("CRITICAL_HOLD", "LOCK_HOLD"):
        spans: dict[int, list[tuple[int, int]]] = {}
        for thread in process.threads:
            mine = thread.of("OMP_ENTER", "OMP_LEAVE")
            mine = mine[mine["call"] == CONSTRUCTS[construct]]
            for enter, leave in zip(mine[::2], mine[1::2], strict=True):
                assert enter["b"] == leave["b"]
                spans.setdefault(int(enter["b"]), []).append(
                    (int(enter["time"]), int(leave["time"]))
                )
        assert len(spans) == 2
        for each in spans.values():
            each.sort()
            assert len(each) > THREADS - 1
            assert all(end <= begin for (_, end), (begin, _) in pairwise(each))


def sums(process: Process, guard: str) -> tuple[int, int, int, int]:
    """How often locks were taken and waited for, and for how long they were waited for and held."""
    told, held = process.of("GUARDED"), process.of("HELD")
    told, held = (each[each["call"] == GUARDS[guard]] for each in (told, held))
    return (
        int(told["b"].sum()), int(told["a"].sum()), int(told["c"].sum()), int(held["b"].sum())
    )  # fmt: skip


@compilers
def test_locks_are_summed_up(run: Run, build: Build, compiler: str) -> None:
    """No lock has a record of its own, unless its thread has waited for long."""
    process, counts = traced(run, build(compiler), "constructs")
    check_pairs(process)
    for guard, counted in (("LOCKS", "locks"), ("CRITICALS", "criticals")):
        taken, waits, waited, held = sums(process, guard)
        assert taken == counts[counted]
        assert 0 <= waits <= taken
        assert waited >= 0
        assert held > 0
    assert number(process, "CRITICAL_HOLD") == number(process, "LOCK_HOLD") == 0
    enters, leaves = process.of("OMP_ENTER"), process.of("OMP_LEAVE")
    for construct in ("CRITICAL_WAIT", "LOCK_WAIT"):
        begin, end = (
            each["time"][each["call"] == CONSTRUCTS[construct]] for each in (enters, leaves)
        )
        assert ((end - begin).astype(int) >= 20_000).all()


def test_sums_stand_in_their_regions(run: Run, build: Build) -> None:
    """They are put before the part of a thread ends."""
    process, _ = traced(run, build("gcc"), "constructs")
    for thread in process.threads:
        parts = np.isin(thread.records["kind"], [KINDS["TASK_BEGIN"], KINDS["TASK_END"]]).cumsum()
        told = thread.records["kind"] == KINDS["GUARDED"]
        assert (parts[told] % 2 == 1).all()


def test_a_long_wait_has_records_of_its_own(run: Run, build: Build) -> None:
    run.start(build("gcc", "contended"), OMP_WAIT_POLICY="passive")
    process = run.process()
    assert number(process, "LOCK_WAIT") == 1
    (enter,) = [each for each in process.of("OMP_ENTER") if each["call"] == CONSTRUCTS["LOCK_WAIT"]]
    (leave,) = [each for each in process.of("OMP_LEAVE") if each["call"] == CONSTRUCTS["LOCK_WAIT"]]
    assert leave["time"] - enter["time"] >= 1_000_000
    taken, waits, waited, held = sums(process, "LOCKS")
    assert (taken, waits, waited) == (2, 1, 0)
    assert held >= 1_000_000


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_a_wait_that_began_before_the_recording(run: Run, build: Build, compiler: str) -> None:
    """It is not known since when: only the second wait of the thread is there."""
    run.start(build(compiler, "waits_before", "-pthread"), POPMODEL_TRACE_LOCKS="each")
    process = run.process()
    assert number(process, "LOCK_WAIT") == number(process, "LOCK_HOLD") == 1
    begin = process.events("start")[0]["monotonic"]
    assert all((thread.records["time"] >= begin).all() for thread in process.threads)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_locks_taken_before_the_recording_are_not_summed(
    run: Run, build: Build, compiler: str
) -> None:
    run.start(build(compiler, "waits_before", "-pthread"))
    process = run.process()
    taken, waits, waited, _ = sums(process, "LOCKS")
    assert taken == 1  # of two
    assert waits <= 1  # on a busy machine the other may wait for a moment
    (start,), (end,) = process.events("start"), process.events("end")
    assert waited < end["time"] - start["monotonic"]
