"""What is not recorded because the user wants it so."""

from __future__ import annotations

import pytest
from tracer.openmp_runs import (
    Build,
    Run,
    check_pairs,
    check_regions,
    compilers,
    number,
    run,
    traced,
)

__all__ = ["run"]  # of OpenMP programs, not of those with MPI


@compilers
def test_kinds_of_constructs_that_are_left_out(run: Run, build: Build, compiler: str) -> None:
    """The others are there, and it is marked."""
    process, counts = traced(
        run, build(compiler), "loops", POPMODEL_TRACE_LEAVE_OUT="chunks,singles"
    )
    check_regions(process, counts)
    check_pairs(process)
    assert number(process, "SCHEDULING") == number(process, "SINGLE") == 0
    assert number(process, "BARRIER") + number(process, "IMPLICIT_BARRIER") == counts["barriers"]
    assert process.of("LEFT_OUT")[["call", "a"]].tolist() == [(2, 0), (3, 0)]


def test_a_kind_that_makes_too_many_records_is_left_out(run: Run, build: Build) -> None:
    """From the first window of its file on that fills up too fast."""
    program = build("gcc", "chunks")
    run.start(program, "200000", POPMODEL_TRACE_MAX_RATE="1")
    process = run.process()
    (mark,) = process.of("LEFT_OUT")
    assert (mark["call"], mark["a"]) == (2, 1)
    assert 0 < number(process, "SCHEDULING") < 40_000
    check_pairs(process)


def test_left_out_in_other_words(run: Run, build: Build) -> None:
    done = run.start(
        build("gcc"),
        "2",
        "loops",
        POPMODEL_TRACE_LEAVE_OUT="chunks,all",
        POPMODEL_TRACE_MAX_RATE="many",
    )
    assert done.stderr == (
        "popmodel: POPMODEL_TRACE_LEAVE_OUT=chunks,all: must be a list of tests, chunks, "
        "singles, rma, io; ignoring all\n"
        "popmodel: POPMODEL_TRACE_MAX_RATE=many: must be a number of records per second; using no "
        "limit\n"
    )


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_regions_outside_of_the_window_are_not_recorded(
    run: Run, build: Build, compiler: str
) -> None:
    run.start(build(compiler), "2", "loops", POPMODEL_TRACE_WINDOW="100000:")
    process = run.process()
    assert not len(process.of("PARALLEL_BEGIN", "TASK_BEGIN", "OMP_ENTER", "GUARDED"))
    assert not process.events("note")
