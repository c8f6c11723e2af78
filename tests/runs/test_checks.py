"""What is wrong with measured runs as a whole."""

from __future__ import annotations

from dataclasses import replace

from popmodel.runs.measurement import MeasuredRow, checked

RUN = MeasuredRow("a.csv", 4, 2, 1.2345678, {}, parameters={"N": 64.0}, line=2)


def test_runs_that_differ_are_all_kept() -> None:
    runs = (RUN, replace(RUN, runtime=1.3, line=3), replace(RUN, processes=8, source="b.csv"))
    assert checked(runs)[0] == runs
    assert checked(runs)[1] == ()


def test_a_run_that_another_file_holds_too_counts_once() -> None:
    copy = replace(RUN, source="copy.prv", line=None)
    found = checked([RUN, copy, replace(copy, source="third.csv")])
    assert found[0] == (RUN,)
    assert found[1] == ("copy.prv is the run of a.csv:2: counted once; so are 1 more",)


def test_equal_times_of_few_digits_in_two_files_are_two_runs() -> None:
    coarse = replace(RUN, runtime=1.25)
    runs = (coarse, replace(coarse, source="b.csv"))
    assert checked(runs)[0] == runs
    assert checked(runs)[1] == ()


def test_equal_rows_of_one_table_are_repeats_that_are_named() -> None:
    coarse = replace(RUN, runtime=1.25)
    runs = (coarse, replace(coarse, line=5), replace(coarse, line=6))
    found = checked(runs)
    assert found[0] == runs
    assert found[1] == (
        "2 runs equal another of the same file, first a.csv:5: taken for repeats; delete what "
        "is a copy",
    )


def test_a_row_of_many_digits_that_stands_twice_is_counted_once() -> None:
    found = checked((RUN, replace(RUN, line=5)))
    assert found == ((RUN,), ("a.csv:5 is the run of a.csv:2: counted once",))


def test_times_that_differ_as_units_do_are_named() -> None:
    other = replace(RUN, source="ms.csv", runtime=1000 * RUN.runtime)
    assert checked([RUN, other])[1] == (
        "4 x 2 takes 1.23 s in a.csv:2 and 4 x 2 takes 1235 s in ms.csv:2: check the units",
    )
    larger = replace(other, line=3, processes=8)
    assert "8 x 2 takes 1235 s in ms.csv:3: check" in checked([RUN, larger])[1][0]
    # as much faster as it has cores, and twice that for its caches
    assert checked([RUN, replace(RUN, processes=2400, runtime=RUN.runtime / 1200)])[1] == ()


def test_times_that_differ_as_problem_sizes_do_are_named() -> None:
    runs = [
        replace(RUN, processes=processes, source=source, runtime=factor * RUN.runtime)
        for processes in (4, 8)
        for source, factor in (("a.csv", 1.0), ("large.csv", 4.0 * processes))
    ]
    assert checked(runs)[1] == (
        "8 x 2 takes 1.23 s in a.csv:2 and 39.5 s in large.csv:2 (1 other split as well): is one "
        "of another problem size (say so: FILE:NAME=VALUE, or a column), or was it disturbed?",
    )


def test_a_run_that_takes_twice_as_long_is_left_to_the_fit() -> None:
    assert checked([RUN, replace(RUN, line=3, runtime=2.2 * RUN.runtime)])[1] == ()


def test_a_parameter_that_some_files_leave_open_is_named() -> None:
    other = MeasuredRow("b.prv", 8, 1, 1.0, {})
    found = checked([RUN, other, replace(other, source="c.prv", runtime=2.0)])
    assert found[1] == (
        "N is given for some runs, and not for b.prv and 1 more: b.prv:N=VALUE sets it",
    )


def test_disturbed_runs_are_said_once() -> None:
    runs = [
        RUN,
        replace(RUN, line=3, runtime=1.4, disturbed=True, waited=0.12),
        replace(RUN, source="b.prv", line=None, runtime=1.5, disturbed=True, waited=0.3),
    ]
    assert checked(runs)[1][0] == (
        "2 runs, first a.csv:3: threads waited for CPUs up to 30 % of the time; these times and "
        "efficiencies are not those of the program"
    )
    crowded = replace(RUN, disturbed=True)
    assert "waited for CPUs; these times" in checked([crowded])[1][0]
