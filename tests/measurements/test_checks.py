"""What is wrong with measured runs as a whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from popmodel.measurements.checks import checked
from popmodel.measurements.measurement import Measurement

RUN = Measurement("a.csv", 4, 2, 1.2345678, {}, parameters={"N": 64.0}, line=2)


def test_runs_that_differ_are_all_kept() -> None:
    runs = (RUN, replace(RUN, runtime=1.3, line=3), replace(RUN, processes=8, source="b.csv"))
    assert checked(runs).runs == runs
    assert checked(runs).warnings == ()


def test_a_run_that_another_file_holds_too_counts_once() -> None:
    copy = replace(RUN, source="copy.prv", line=None)
    found = checked([RUN, copy, replace(copy, source="third.csv")])
    assert found.runs == (RUN,)
    assert found.warnings == ("copy.prv is the run of a.csv:2: counted once; so are 1 more",)


def test_equal_times_of_few_digits_in_two_files_are_two_runs() -> None:
    coarse = replace(RUN, runtime=1.25)
    runs = (coarse, replace(coarse, source="b.csv"))
    assert checked(runs).runs == runs
    assert checked(runs).warnings == ()


def test_equal_rows_of_one_table_are_repeats_that_are_named() -> None:
    runs = (RUN, replace(RUN, line=5), replace(RUN, line=6))
    found = checked(runs)
    assert found.runs == runs
    assert found.warnings == (
        "2 runs equal another of the same file, first a.csv:5: taken for repeats; delete what "
        "is a copy",
    )


@pytest.mark.parametrize(("factor", "many"), [(1000.0, 1), (100.0, 0)])
def test_times_that_differ_as_units_do_are_named(factor: float, many: int) -> None:
    other = replace(RUN, source="ms.csv", runtime=factor * RUN.runtime)
    found = checked([RUN, other])
    assert len(found.warnings) == many
    if many:
        assert found.warnings[0] == (
            "4 x 2 takes 1.23 s in a.csv and 1235 s in ms.csv: check the units"
        )


def test_a_parameter_that_some_files_leave_open_is_named() -> None:
    other = Measurement("b.prv", 8, 1, 1.0, {})
    found = checked([RUN, other, replace(other, source="c.prv", runtime=2.0)])
    assert found.warnings == (
        "N is given for some runs, and not for b.prv and 1 more: b.prv:N=VALUE sets it",
    )


def test_a_parameter_that_is_set_for_all_is_no_gap() -> None:
    assert checked([RUN, Measurement("b.prv", 8, 1, 1.0, {})], ["N"]).warnings == ()


def test_an_empty_cell_of_a_table_is_no_gap() -> None:
    assert checked([RUN, replace(RUN, parameters={}, line=3)]).warnings == ()
