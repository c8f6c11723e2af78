"""Runs that stand out from the law of the others are named, and others are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.fit.projection import OutlyingRun, project
from popmodel.runs.measurement import MeasuredRow

PLACES = (1, 2, 4, 8, 16, 32)


def outliers(times: dict[int, float]) -> tuple[OutlyingRun, ...]:
    runs = [
        MeasuredRow("runs.csv", place, 1, time, {}, line=line)
        for line, (place, time) in enumerate(times.items(), 2)
    ]
    return project(runs, [(64, 1)], "strong", 0).lines[0].outliers


def amdahl(serial: float) -> dict[int, float]:
    return {place: 100 * (serial + (1 - serial) / place) for place in PLACES}


@pytest.mark.long
@given(st.sampled_from(PLACES), st.sampled_from((1000.0, 60.0, 1e-3)), st.floats(0, 0.05))
def test_a_run_in_another_unit_is_named_with_what_it_would_be(
    place: int, unit: float, serial: float
) -> None:
    times = amdahl(serial)
    (found,) = outliers({**times, place: unit * times[place]})
    assert PLACES[found.run] == place
    assert found.expected.value == pytest.approx(times[place], rel=0.15)
    assert found.expected.low < found.expected.value < found.expected.high


def test_the_text_says_where_it_is_and_which_unit_it_may_have() -> None:
    times = amdahl(0.01) | {4: 25750.0}
    run = MeasuredRow("a/runs.csv", 4, 1, times[4], {}, line=4)
    (found,) = outliers(times)
    text = found.text([run] * 6)
    assert text.startswith("runs.csv:4 (4 x 1) takes 25750 s, 1002 times what the other runs say")
    assert text.endswith("): is it in ms? correct it, or leave it out")


def test_repeats_that_are_as_far_off_are_counted() -> None:
    times = [*amdahl(0.01).items(), (4, 25750.0), (4, 25800.0)]
    runs = [MeasuredRow("r.csv", p, 1, t, {}, line=n) for n, (p, t) in enumerate(times) if p != 4]
    runs += [MeasuredRow("r.csv", p, 1, t, {}, line=9) for p, t in times[-2:]]
    (found,) = project(runs, [(64, 1)], "strong", 0).lines[0].outliers
    assert found.text(runs).startswith("r.csv:9 (4 x 1, as 1 repeat) takes 25750 s, 1002 times")


def test_of_three_runs_one_that_is_far_from_the_other_two_is_named() -> None:
    (found,) = outliers({1: 100, 2: 51000, 4: 26})
    assert found.run == 1


def test_two_runs_are_named_where_six_are_left() -> None:
    times = amdahl(0.0) | {64: 1.6, 8: 12500.0, 16: 6250.0}
    assert sorted(PLACES[found.run] for found in outliers(times)) == [8, 16]


@pytest.mark.long
@given(st.floats(0, 0.1), st.sampled_from((2, 4, 8, 16)))
def test_programs_that_stop_scaling_have_no_run_that_stands_out(serial: float, full: int) -> None:
    times = {p: 100 * (serial + (1 - serial) / min(p, full)) for p in PLACES}
    assert outliers(times) == ()


def test_a_memory_that_is_full_from_eight_processes_on_is_no_outlier() -> None:
    assert outliers({1: 100, 2: 51, 4: 26.5, 8: 14.2, 16: 14.2, 32: 14}) == ()
