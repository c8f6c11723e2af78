"""Repeats taken together, and what a comparison comes to."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.model.uncertainty import Estimate
from popmodel.runs.measurement import MeasuredRow
from popmodel.validation.agreement_verdict import agrees, verdict
from popmodel.validation.comparison import ExcludedRuns, Split, compare, splits, varied
from popmodel.validation.predictions import Predicted


def runs(
    *cases: tuple[int, float, list[float]], width: float | None = 0.05, n: float = 8.0
) -> tuple[Split, ...]:
    """Splits P x 1: processes, predicted time, and measured times; intervals of some width."""
    predictions = [
        Predicted(
            p,
            1,
            Estimate(t) if width is None else Estimate(t, t - width, t + width),
            {},
            {"N": n},
        )
        for p, t, _ in cases
    ]
    measured = [
        MeasuredRow("x.csv", p, 1, time, {}, parameters={"N": n})
        for p, _, times in cases
        for time in times
    ]
    return splits(compare(predictions, measured))


@given(st.lists(st.floats(0.1, 10.0), min_size=2, max_size=9))
def test_repeats_have_mean_and_standard_deviation(times: list[float]) -> None:
    (one,) = runs((2, 1.0, times))
    assert one.runtime.mean == pytest.approx(statistics.fmean(times))
    assert one.runtime.deviation == pytest.approx(statistics.stdev(times), abs=1e-12)
    assert one.runtime.covered == sum(0.95 <= time <= 1.05 for time in times)
    assert one.error == pytest.approx(1.0 / statistics.fmean(times) - 1)
    document = one.to_dict()
    assert document["runs"] == len(times)
    assert document["runtime"]["least"] == min(times)


def test_parameters_tell_splits_apart() -> None:
    found = (*runs((2, 1.0, [1.0]), n=8.0), *runs((2, 1.0, [1.0]), n=9.0))
    assert varied(found) == ["N"]
    assert found[1].describe(varied(found)) == "2 x 1, N=9"


def test_predictions_that_hold_need_no_reason() -> None:
    found = runs((1, 1.0, [1.0, 1.01]), (2, 1.0, [0.98]))
    assert verdict(found, {"N": 8.0}) == (
        "3 of 3 runs inside the 90 % interval, as expected; error -0.5 % (1 x 1) to +2.0 % (2 x 1)",
    )


def test_a_constant_factor_points_to_defaults() -> None:
    found = runs((1, 7.0, [1.0]), (2, 3.6, [0.5]))
    first, reason = verdict(found, {"N": 8.0})
    assert first.startswith("0 of 2 runs inside the 90 % interval, fewer than expected; error ")
    assert reason == (
        "the predictions are 7.1 times too slow everywhere: check the parameters of the "
        "application (not set: N=8), the unit of the runtimes and the machine"
    )
    (_, reason) = verdict(found, {"N": 8.0, "steps": 100.0})
    assert "application (not set: N=8, steps=100), the unit" in reason
    (_, reason) = verdict(found, {})
    assert "check the parameters of the application, the unit of the runtimes" in reason


def test_only_runs_that_took_longer_may_have_shared_their_cores() -> None:
    cores = "that each thread had a core of its own"
    assert cores in verdict(runs((1, 1.0, [2.0]), (2, 0.5, [1.0])), {})[1]
    assert cores not in verdict(runs((1, 2.0, [1.0]), (2, 1.0, [0.5])), {})[1]


def test_runs_that_waited_for_processors_say_nothing_about_the_model() -> None:
    slower = runs((1, 1.0, [2.0]), (2, 0.5, [0.8]), width=0.01)
    assert verdict(slower, {"N": 8.0}, disturbed=True)[1:] == (
        "the runs took longer than predicted, but their threads waited for CPUs: measure "
        "again on otherwise idle nodes",
    )
    faster = runs((1, 2.0, [1.0]), (2, 1.0, [0.5]))
    assert verdict(faster, {}, disturbed=True) == verdict(faster, {})


def test_a_small_constant_factor_is_one_of_work_or_machine() -> None:
    found = runs(*((p, 0.8 / p, [1.0 / p]) for p in (1, 2, 4)), width=0.01)
    assert verdict(found, {"N": 8.0})[1] == (
        "the predictions are about 25 % too fast everywhere: the amount of work or a rate of "
        "the machine may be off by this factor"
    )


def test_errors_that_differ_have_no_single_cause() -> None:
    found = runs((1, 1.0, [1.0]), (2, 0.5, [0.6]), (4, 0.25, [0.5]), width=0.01)
    assert verdict(found, {"N": 8.0})[1] == (
        "the error differs from run to run (largest: 4 x 1), so no single factor of work or "
        "machine explains it"
    )


def test_one_miss_is_no_evidence_against_the_intervals() -> None:
    assert agrees(runs((2, 1.0, [1.2])))
    assert verdict(runs((2, 1.0, [1.25])), {}) == (
        "0 of 1 run inside the 90 % interval; error -20.0 %",
    )


def test_without_intervals_only_large_errors_are_remarked() -> None:
    assert verdict(runs((2, 1.0, [1.2]), width=None), {}) == (
        "the predictions have no intervals; error -16.7 %",
    )
    assert verdict(runs((2, 1.0, [3.0]), width=None), {})[1].startswith(
        "the predictions are 3 times too fast: check"
    )


def test_runs_that_can_hardly_be_repeats_are_remarked() -> None:
    found = verdict(runs((2, 1.0, [1.0, 2.5])), {})
    assert (
        found[-1] == "runs of 2 x 1 took 1 to 2.5 s: check that they ran the same program and input"
    )


def test_runs_that_are_left_out_are_named_with_what_tells_them_apart() -> None:
    other = ExcludedRuns(2, 4, {"N": 9.0}, ("x.csv",), (1.0, 1.1), "too hot")
    assert verdict(runs((2, 1.0, [1.0])), {}, [other])[-1] == (
        "left out: 2 runs of 2 x 4, N=9: too hot"
    )
