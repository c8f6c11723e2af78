"""Errors, bias and coverage: of all tests, by region, by metric."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from popmodel.validation.comparison import CALIBRATION, EXTRAPOLATION, INTERPOLATION, FitRegion
from popmodel.validation.prediction_errors import by_metric, by_region, errors_of, summary, wilson

from .cases import FAMILY, row


def test_of_known_rows() -> None:
    found = summary([row(measured) for measured in (0.8, 1.0, 1.25)])["runtime"]
    assert found["median_error"] == pytest.approx(0.2)
    assert found["largest_error"] == pytest.approx(0.25)
    assert found["bias"] == pytest.approx((0.25 + 0.0 - 0.2) / 3)
    assert (found["rows"], found["splits"], found["covered"], found["intervals"]) == (3, 1, 1, 3)
    assert found["median_half_width"] == pytest.approx(0.1)
    assert "metrics" not in summary([row(1.0)])


def test_efficiencies_are_in_points() -> None:
    found = summary([row(0.9, 0.8, 0.05, family=FAMILY, metric="load_balance")])["metrics"]
    assert found["family"] == FAMILY
    assert (found["bias"], found["median_half_width"]) == pytest.approx((-10.0, 5.0))


def test_coverage_counts_each_split_once() -> None:
    # repeats of one split share their prediction: 2 of 4 and 1 of 1 are 1.5 of 2 splits
    rows = [*(row(one) for one in (1.0, 1.0, 2.0, 2.0)), row(1.0, p=4)]
    coverage = errors_of(rows).coverage
    assert coverage is not None
    assert (coverage.value, coverage.splits) == (0.75, 2)
    assert (coverage.low, coverage.high) == wilson(1.5, 2)


def test_without_intervals_there_is_no_coverage() -> None:
    found = errors_of([row(1.0, width=None)])
    assert (found.coverage, found.intervals, found.median_half_width) == (None, 0, None)


def test_runs_of_the_fit_are_no_tests() -> None:
    rows = [
        row(1.0, region=FitRegion(CALIBRATION)),
        row(1.25, p=4, region=FitRegion(INTERPOLATION)),
    ]
    found = summary(rows)["runtime"]
    assert (found["rows"], found["bias"]) == (1, pytest.approx(-0.2))
    assert summary(rows[:1])["runtime"]["rows"] == 0
    assert by_metric([row(0.9, family=FAMILY, metric="x", region=FitRegion(CALIBRATION))]) == []


def test_regions_apart_and_extrapolations_by_what_they_are_beyond_in() -> None:
    rows = [
        row(0.5, region=FitRegion(EXTRAPOLATION, {"P": 2.0, "T": 3.0})),
        row(0.8, p=4, region=FitRegion(EXTRAPOLATION, {"P": 4.0})),
        row(1.0, region=FitRegion(CALIBRATION)),
    ]
    found = {(part["region"], part["beyond"]): part["runtime"] for part in by_region(rows)}
    assert list(found) == [
        (CALIBRATION, None),
        (EXTRAPOLATION, None),
        (EXTRAPOLATION, "P"),
        (EXTRAPOLATION, "T"),
    ]
    assert found[EXTRAPOLATION, None]["bias"] == pytest.approx((1.0 + 0.25) / 2)
    assert found[EXTRAPOLATION, "T"]["bias"] == pytest.approx(1.0)


def test_every_metric_of_every_family() -> None:
    rows = [
        row(0.9, 0.8, family=FAMILY, metric="a"),
        row(0.9, 0.7, family=FAMILY, metric="a", p=4),
        row(0.5, 0.6, family="mpi", metric="b"),
        row(1.0),
    ]
    found = [(one["family"], one["metric"], one["bias"]) for one in by_metric(rows)]
    assert found == [
        (FAMILY, "a", pytest.approx(-15.0)),
        ("mpi", "b", pytest.approx(10.0)),
    ]


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_of_a_proportion_is_that_of_scipy(case: tuple[int, int]) -> None:
    theirs = binomtest(*case).proportion_ci(0.90, method="wilson")
    assert wilson(*case) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


@given(st.integers(1, 50), st.floats(0, 1))
def test_it_holds_the_share_and_stays_between_0_and_1(of: int, share: float) -> None:
    low, high = wilson(share * of, of)
    assert 0 <= low <= share * of / of <= high <= 1


@pytest.mark.parametrize("case", [(0, 0), (3, 2), (-1, 2)])
def test_what_is_no_proportion(case: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="is no proportion"):
        wilson(*case)
