"""Hardware counters of threads, played by software."""

from __future__ import annotations

import errno
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tracer.openmp_runs import (
    CONSTRUCTS,
    PROGRAMS,
    STEPS,
    THREADS,
    Build,
    Finished,
    Run,
    compilers,
    run,
    user_regions,
)
from tracer.raw_files import KINDS, Process

__all__ = ["run"]  # of OpenMP programs, not of those with MPI

Counted = Callable[..., tuple[Finished, Process]]


@pytest.fixture(scope="session")
def software_counters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("counters") / "software.so"
    source = PROGRAMS / "software_counters.c"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", made, source, "-ldl"], check=True)
    return made


@pytest.fixture
def counted(run: Run, software_counters: Path) -> Counted:
    """Records a program with counters; skips the test where software cannot play them."""

    def start(*command: str | Path, **variables: str) -> tuple[Finished, Process]:
        done = run.start(
            *command, before=str(software_counters), POPMODEL_TRACE_COUNTERS="1", **variables
        )
        process = run.process()
        (event,) = process.events("counters")
        if "why" in event and variables.keys() != {"COUNTERS_ERROR"}:
            pytest.skip(f"no counters of the kernel either: {event['why']}")
        return done, process

    return start


@compilers
def test_counters(counted: Counted, build: Build, compiler: str) -> None:
    """Every change of state has a reading, which never goes back."""
    _, process = counted(build(compiler), str(THREADS), "loops")
    (event,) = process.events("counters")
    assert event["names"] == ["instructions", "cycles"]
    changes = [KINDS[name] for name in ("TASK_BEGIN", "TASK_END", "PARALLEL_BEGIN", "PARALLEL_END")]
    waits = [CONSTRUCTS[name] for name in ("BARRIER", "IMPLICIT_BARRIER", "SCHEDULING")]
    for thread in process.threads:
        records = thread.records
        wait = np.isin(records["kind"], [KINDS["OMP_ENTER"], KINDS["OMP_LEAVE"]])
        wait &= np.isin(records["call"], waits)
        change = np.flatnonzero(np.isin(records["kind"], changes) | wait)
        assert (records["kind"][change + 1] == KINDS["COUNTERS"]).all()
        assert (records["time"][change + 1] == records["time"][change]).all()
        readings = thread.of("COUNTERS")
        assert len(readings) == len(change)
        assert (np.diff(readings["b"]) > 0).all()
        assert (np.diff(readings["c"]) >= 0).all()
        # What is counted instead is the time that the thread has the processor.
        passed = int(readings["time"][-1] - readings["time"][0])
        assert int(readings["b"][-1] - readings["b"][0]) < passed + 1_000_000


def test_counters_of_threads_that_end(counted: Counted, build: Build) -> None:
    """They leave no descriptor behind: more threads than descriptors."""
    shell = 'ulimit -n 64; exec "$0" "$@"'
    _, process = counted("sh", "-c", shell, build("gcc"), "2", "nested", "100")
    assert not process.events("note")


def test_counters_that_are_not_there(run: Run, build: Build) -> None:
    """Either way the meta file says it."""
    run.start(build("gcc"), "2", "loops", POPMODEL_TRACE_COUNTERS="1")
    process = run.process()
    (event,) = process.events("counters")
    assert ("why" in event) != ("names" in event)
    assert bool(len(process.of("COUNTERS"))) == ("names" in event)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (
            errno.EACCES,
            r"not permitted \(kernel.perf_event_paranoid is -?\w+, 2 or less is needed",
        ),
        (errno.EPERM, r"not permitted "),
        (errno.ENOENT, "not available on this machine, as on most virtual machines$"),
        (errno.EMFILE, "they cannot be opened: Too many open files$"),
    ],
)
def test_why_there_are_no_counters(counted: Counted, build: Build, error: int, why: str) -> None:
    _, process = counted(build("gcc"), "2", "loops", COUNTERS_ERROR=str(error))
    (event,) = process.events("counters")
    assert re.match(why, event["why"])
    assert not len(process.of("COUNTERS"))


def test_counters_on_some_threads_only(counted: Counted, build: Build) -> None:
    """Those that came too late have none, and it is said."""
    given = {"COUNTERS_ERROR": str(errno.EMFILE), "COUNTERS_GIVEN": "2"}
    _, process = counted(build("gcc"), "2", "loops", **given)
    notes = [event["text"] for event in process.events("note")]
    assert notes == ["threads whose hardware counters could not be opened"]
    assert [bool(len(thread.of("COUNTERS"))) for thread in process.threads] == [True, False]


def test_counters_that_the_program_closes(counted: Counted, build: Build) -> None:
    done, process = counted(build("gcc", "user_regions"), "close")
    assert done.stdout == "done\n"
    notes = [event["text"] for event in process.events("note")]
    assert notes == ["threads whose hardware counters could not be read to the end"]
    assert user_regions(process, process.threads[0])[: len(STEPS)] == STEPS
