"""Regions of the program's own, and where it switches the recording off."""

from __future__ import annotations

import pytest
from tracer.openmp_runs import (
    STEPS,
    Build,
    Run,
    check_regions,
    number,
    run,
    untraced,
    user_regions,
)

__all__ = ["run"]  # of OpenMP programs, not of those with MPI


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("flags", [[], ["-no-pie", "-fno-pic"]], ids=["moved", "fixed"])
@pytest.mark.parametrize("optimised", ["-O0", "-O2"])
def test_regions_of_the_user(
    run: Run, build: Build, compiler: str, flags: list[str], optimised: str
) -> None:
    """The header finds the library however the program is compiled, and needs none."""
    program = build(compiler, "user_regions", *flags, optimised)
    assert untraced(program).stdout == "done\n"
    assert run.start(program).stdout == "done\n"
    process = run.process()
    assert user_regions(process, process.threads[0]) == [
        *STEPS,
        ("begin", "on threads"),
        ("end", "on threads"),
    ]
    assert user_regions(process, process.threads[1]) == [
        ("begin", "on threads"),
        ("end", "on threads"),
    ]
    assert sorted(event["id"] for event in process.events("name")) == [1, 2, 3, 4, 5, 6]
    assert not process.events("note")


def test_regions_of_the_user_without_openmp(run: Run, build: Build) -> None:
    """They are worth a trace for themselves."""
    run.start(build("gcc", "user_regions"), POPMODEL_TRACE_OPENMP="off")
    process = run.process()
    assert user_regions(process, process.threads[0])[: len(STEPS)] == STEPS
    assert [(event["how"], event["runtime"]) for event in process.events("openmp")] == [
        ("none", None)
    ]
    assert not len(process.of("PARALLEL_BEGIN"))


def test_wrong_regions_of_the_user(run: Run, build: Build) -> None:
    run.start(build("gcc", "user_regions"), "wrong")
    process = run.process()
    found = user_regions(process, process.threads[0])
    assert found == [*STEPS, ("begin", "left open"), ("begin", "on threads"), ("end", "on threads")]
    notes = {event["text"]: event["count"] for event in process.events("note")}
    assert notes == {
        "ends of user regions without a start on the same thread: not recorded": 2,
        "user regions without a name: not recorded": 1,
    }


def test_pause(run: Run, build: Build) -> None:
    """Regions are recorded all the same, what happens in them is not."""
    run.start(build("gcc", "user_regions"))
    process = run.process()
    check_regions(process, {"regions": 2, "parts": 4})
    assert process.of("TRACING")["a"].tolist() == [0, 1]
    assert number(process, "BARRIER") == 0


def test_static_program_with_the_header(build: Build) -> None:
    program = build("gcc", "user_regions", "-static")
    assert untraced(program).stdout == "done\n"


def test_more_names_than_there_is_room_for(run: Run, build: Build) -> None:
    run.start(build("gcc", "user_regions"), "many")
    process = run.process()
    assert len(process.events("name")) == 4096
    notes = {event["text"]: event["count"] for event in process.events("note")}
    # Five names come before the many and one after them, on two threads; these do not end either.
    assert notes == {
        "names of user regions beyond 4096: not recorded": 5000 - 4091 + 2,
        "ends of user regions without a start on the same thread: not recorded": 2,
    }
