"""Plans of small runs: few, along every axis, one of them to be predicted from the others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.base.errors import UsageError
from popmodel.base.shell import filled
from popmodel.studies.plan import (
    MOST_REPEATS,
    REPEATS,
    PlannedRun,
    check_command,
    expected,
    half_width,
    in_turn,
    left_out,
    named_runs,
    next_configuration,
    placeholders,
    plan,
    uses,
)

SIZES = st.dictionaries(
    st.sampled_from(["N", "steps"]),
    st.lists(st.integers(1, 1000), min_size=1, max_size=3, unique=True),
    max_size=2,
)


def names(*runs: PlannedRun) -> list[str]:
    return [run.name for run in runs]


def test_two_cores_have_a_run_of_each_kind() -> None:
    assert names(*plan(2, {})) == ["1x1", "2x1", "1x2"]


def test_many_cores_have_a_handful_of_runs_along_both_axes_and_between() -> None:
    assert names(*plan(64, {})) == [
        *("1x1", "64x1", "1x64"),
        *("16x4", "4x1", "16x1", "1x4", "1x16"),
    ]


def test_the_largest_size_has_all_splits_and_the_smaller_ones_have_the_ends() -> None:
    found = names(*plan(4, {"N": (100.0, 200.0)}))
    assert found[:3] == ["1x1-N=100", "4x1-N=100", "1x4-N=100"]
    assert found[3:] == [f"{name}-N=200" for name in names(*plan(4, {}))]


@given(cores=st.integers(1, 300), sizes=SIZES)
def test_every_run_fits_and_is_planned_once(cores: int, sizes: dict[str, list[float]]) -> None:
    runs = plan(cores, sizes)
    assert len(set(runs)) == len(runs)
    assert all(1 <= run.cores <= cores for run in runs)
    assert runs[0].cores == 1
    further = sum(len(values) - 1 for values in sizes.values())
    assert len(runs) <= 8 + 3 * further
    tried = {pair for run in runs for pair in run.settings}
    assert tried == {(name, value) for name, values in sizes.items() for value in values}
    largest = tuple((name, float(max(values))) for name, values in sizes.items())
    splits = {(run.processes, run.threads) for run in runs}
    assert {(run.processes, run.threads) for run in runs if run.settings == largest} == splits


@given(cores=st.integers(3, 300), sizes=SIZES)
def test_the_run_left_out_is_on_several_cores_and_others_show_its_kind(
    cores: int, sizes: dict[str, list[float]]
) -> None:
    runs = plan(cores, sizes)
    out = left_out(runs)
    assert out in runs
    assert out.cores > 1
    others = [run for run in runs if run != out]
    assert any(run.processes > 1 for run in others)
    shown = [
        run
        for run in runs
        if run.cores > 1
        and any(run.processes == other.processes for other in runs if other != run)
        and any(run.threads == other.threads for other in runs if other != run)
    ]
    assert not shown or out in shown


@pytest.mark.parametrize(
    ("cores", "sizes", "name"),
    [
        (2, (), "1x2"),  # 2x1 alone shows messages
        (2, (64.0, 96.0), "2x1-N=96"),
        (2, (64.0, 96.0, 128.0), "2x1-N=128"),
        (4, (64.0, 96.0), "4x1-N=96"),
        (64, (), "16x4"),
    ],
)
def test_the_largest_such_run_is_left_out(cores: int, sizes: tuple[float, ...], name: str) -> None:
    out = left_out(plan(cores, {"N": sizes} if sizes else {}))
    assert out is not None
    assert out.name == name


def test_of_two_runs_the_larger_is_predicted() -> None:
    runs = [PlannedRun(1, 1), PlannedRun(2, 1)]
    assert left_out(runs) == PlannedRun(2, 1)
    assert left_out(runs[:1]) is None


def test_runs_are_made_in_turn_until_their_times_stand() -> None:
    planned = [PlannedRun(1, 1), PlannedRun(2, 1), PlannedRun(1, 2)]
    times = {PlannedRun(1, 1): [1.0], PlannedRun(2, 1): [0.5, 0.9], PlannedRun(1, 2): [0.5]}
    made = []
    while True:
        counts = {run: len(some) for run, some in times.items()}
        run = next_configuration(planned, times, counts, ())
        if run is None:
            break
        made.append(run)
        # 1x1 repeats well, 2x1 does not, 1x2 not at first
        time = {
            PlannedRun(1, 1): 1.0,
            PlannedRun(2, 1): 0.5 + 0.4 * (len(times[PlannedRun(2, 1)]) % 2),
        }.get(run, 0.5)
        times[run].append(time if run != PlannedRun(1, 2) or len(times[run]) > 1 else 0.51)
    assert made[:5] == [
        PlannedRun(1, 1),
        PlannedRun(1, 2),
        PlannedRun(1, 1),
        PlannedRun(2, 1),
        PlannedRun(1, 2),
    ]
    assert len(times[PlannedRun(1, 1)]) == REPEATS
    assert REPEATS <= len(times[PlannedRun(1, 2)]) < MOST_REPEATS
    assert len(times[PlannedRun(2, 1)]) == MOST_REPEATS


def test_what_ended_is_not_run_again() -> None:
    planned = [PlannedRun(1, 1), PlannedRun(2, 1)]
    assert next_configuration(planned, {}, {}, {PlannedRun(1, 1)}) == PlannedRun(2, 1)
    assert next_configuration(planned, {}, {}, set(planned)) is None


def test_the_interval_of_repeats_is_that_of_student() -> None:
    assert half_width([1.0]) == float("inf")
    assert half_width([1.0, 1.0, 1.0]) == 0
    assert half_width([0.99, 1.0, 1.01]) == pytest.approx(2.92 * 0.01 / 3**0.5, rel=1e-3)


def test_a_job_makes_all_repeats_in_turn() -> None:
    planned = named_runs("1x1,2x1,2x1,2x1,2x1", {})
    found = in_turn(planned)
    assert names(*found[:4]) == ["1x1", "2x1", "1x1.r2", "2x1.r2"]
    assert [run.repeat for run in found if run.processes == 2] == [1, 2, 3, 4]
    assert len(found) == 7


def test_runs_can_be_named() -> None:
    found = named_runs("1x1, 4x2", {"N": (64.0, 96.0)})
    assert names(*found) == ["1x1-N=64", "4x2-N=64", "1x1-N=96", "4x2-N=96"]


def test_runs_that_are_named_twice_are_made_twice() -> None:
    assert names(*named_runs("1x1,2x1,1x1", {})) == ["1x1", "2x1", "1x1.r2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1x1,2", "--runs 1x1,2: '2' must be PROCESSESxTHREADS"),
        ("0x1,2x1", "--runs 0x1,2x1: '0x1' must be PROCESSESxTHREADS"),
        (
            "2x1,2x1",
            "--runs 2x1,2x1: a study needs two different runs: one to learn from, one to predict",
        ),
    ],
)
def test_wrong_names_are_told(text: str, message: str) -> None:
    with pytest.raises(UsageError) as told:
        named_runs(text, {})
    assert told.value.message == message


SMALL, LARGE, HUGE = ((("N", size),) for size in (100.0, 200.0, 400.0))


def test_a_run_takes_at_most_as_long_as_one_of_its_size_on_fewer_cores() -> None:
    assert expected(PlannedRun(2, 1), {}) is None
    assert expected(PlannedRun(4, 1), {PlannedRun(1, 1): 8.0, PlannedRun(2, 1): 5.0}) == 8.0


def test_a_larger_problem_takes_longer_in_proportion_or_by_the_law_of_two_sizes() -> None:
    one = {PlannedRun(1, 1, SMALL): 1.0}
    assert expected(PlannedRun(1, 1, LARGE), one) == 2.0
    two = {**one, PlannedRun(1, 1, LARGE): 8.0}
    assert expected(PlannedRun(1, 1, LARGE, 3), two) == 8.0
    assert expected(PlannedRun(1, 1, HUGE), two) == pytest.approx(64.0)


@pytest.mark.parametrize(
    ("cores", "admits", "expected"),
    [
        (2, lambda run: run.processes == 1, ["1x1", "1x2"]),
        (16, lambda run: run.processes in (1, 4, 9, 16), ["1x1", "16x1", "1x16", "4x2", "4x1"]),
        (6, lambda run: run.processes % 3 == 0, ["3x1", "6x1", "3x2"]),
        (8, lambda run: run.processes > 1 and run.threads == 1, ["2x1", "8x1", "4x1"]),
        (4, lambda run: False, []),  # noqa: ARG005
    ],
)
def test_only_what_the_program_takes_is_planned(
    cores: int, admits: Callable[[PlannedRun], bool], expected: list[str]
) -> None:
    found = plan(cores, {}, admits=admits)
    assert names(*found)[: len(expected)] == expected
    assert all(admits(run) and run.cores <= cores for run in found)


# -- commands with placeholders: what may stand in them, and how they are filled


COMMAND = ("mpirun", "-n", "{P}", "./app", "--size={N}", "x{N}y{T}")


def test_placeholders_stand_anywhere_in_a_word() -> None:
    assert placeholders(COMMAND) == ["P", "N", "T"]
    assert uses(COMMAND, "T")
    made = filled(COMMAND, {"P": 4, "T": 2, "N": 128.0})
    assert made == ("mpirun", "-n", "4", "./app", "--size=128", "x128y2")


def test_other_braces_stay() -> None:
    words = ("./app", '{"a": 1}', "${HOME}x{1}")
    assert filled(words, {"HOME": 3.5}) == ("./app", '{"a": 1}', "$3.5x{1}")


@pytest.mark.parametrize(
    ("words", "parameters", "message", "hint"),
    [
        (("mpirun", "./app"), (), "mpirun ./app: the number of processes must be {P}", "-n {P}"),
        (("mpirun", "{P}", "{M}"), (), "{M}: nothing says what it stands for", "--set M=100,200"),
        (("mpirun", "{P}", "{cell}"), ("cells",), "{cell}: nothing says", "did you mean cells?"),
        (("mpirun", "{P}"), ("N",), "--set N: the command has no {N}", "./app {N}"),
        (("mpirun", "{P}"), ("T",), "--set T: {T} is the number of threads", "--runs 1x1,2x1"),
        (("mpirun", "{P}", "a\x1bb"), (), "the command contains an invisible character", "rename"),
    ],
)
def test_mistakes_are_told(
    words: tuple[str, ...], parameters: tuple[str, ...], message: str, hint: str
) -> None:
    with pytest.raises(UsageError) as told:
        check_command(words, parameters)
    assert told.value.message.startswith(message)
    assert hint in (told.value.hint or "")
