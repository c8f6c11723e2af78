"""The search for coefficients, against an optimiser that shares nothing with it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import least_squares

from popmodel.fit.least_squares import fit_one, fit_two, nearest, profile

P = np.array([1.0, 2.0, 4.0, 8.0, 16.0])


def misfit_of(
    coefficients: np.ndarray, first: np.ndarray, second: np.ndarray, y: np.ndarray
) -> float:
    return float(np.sum(np.log(y / (coefficients[0] * first + coefficients[1] * second)) ** 2))


@given(
    st.sampled_from([(-1, 0), (-1, 1), (-2 / 3, 0), (0, 1), (-1, -0.5)]),
    st.floats(1e-3, 1e3),
    st.integers(0, 10_000),
)
def test_two_terms_reach_the_least_squares_of_a_general_optimiser(
    powers: tuple[float, float], ratio: float, seed: int
) -> None:
    first, second = P ** powers[0], P ** powers[1]
    noise = np.random.default_rng(seed).normal(size=len(P))
    y = (first + ratio * second) * np.exp(0.05 * noise)
    errors = np.full(len(P), 0.05)
    found = fit_two(first[None], second[None], np.log(y), errors)
    theirs = min(
        misfit_of(np.exp(run.x), first, second, y)
        for start in (0.01, 1.0, 100.0)
        for run in [
            least_squares(
                lambda x: np.log(y / (np.exp(x[0]) * first + np.exp(x[1]) * second)),
                [0.0, np.log(ratio * start)],
                bounds=([-30, -30], [30, 30]),
            )
        ]
    )
    assert found.misfit[0] * 0.05**2 <= theirs * (1 + 1e-6) + 1e-12
    mine = np.exp(found.scale[0]) * np.array([1 - found.share[0], found.share[0]])
    assert misfit_of(mine, first, second, y) == pytest.approx(found.misfit[0] * 0.05**2)


def test_points_are_left_out_one_after_the_other() -> None:
    first, second = 1 / P, np.ones(5)
    y = np.array([3.1, 1.5, 0.9, 0.41, 0.27])
    errors = np.array([0.1, 0.1, 0.05, 0.1, 0.1])
    all_of_one = fit_one(first[None], np.log(y), errors)
    all_of_two = fit_two(first[None], second[None], np.log(y), errors)
    for i in range(5):
        kept = np.arange(5) != i
        one = fit_one(first[None, kept], np.log(y[kept]), errors[kept])
        assert all_of_one.left_out[0, i] == pytest.approx(
            np.log(y[i] / first[i]) - one.scale[0], abs=1e-12
        )
        two = fit_two(first[None, kept], second[None, kept], np.log(y[kept]), errors[kept])
        model = (1 - two.share[0]) * first[i] + two.share[0]
        assert all_of_two.left_out[0, i] == pytest.approx(
            np.log(y[i] / model) - two.scale[0], abs=1e-6
        )


def test_leverage_is_the_change_of_the_fitted_value_with_its_own_point() -> None:
    first, second, y = 1 / P, np.ones(5), 3 / P + 0.2
    errors, step = np.full(5, 0.1), 1e-5
    found = fit_two(first[None], second[None], np.log(y), errors)
    for i in range(5):
        shifted = np.log(y) + step * (np.arange(5) == i)
        moved = fit_two(first[None], second[None], shifted, errors)
        model = moved.scale[0] + np.log((1 - moved.share[0]) * first[i] + moved.share[0])
        assert found.leverage[0, i] == pytest.approx((model - np.log(y[i])) / step, rel=1e-3)


def test_terms_that_points_do_not_tell_apart_have_no_fit() -> None:
    same = np.full(3, 0.5)
    found = fit_two(same[None], np.ones(3)[None], np.log([1.0, 1.1, 1.2]), np.full(3, 0.1))
    assert np.isinf(found.misfit[0])


def test_a_law_that_two_points_do_not_determine_foretells_no_third() -> None:
    first, second = np.array([1.0, 1.0, 0.5]), np.ones(3)
    found = fit_two(first[None], second[None], np.log([1.0, 1.1, 0.6]), np.full(3, 0.1))
    assert np.isinf(found.left_out[0, 2])
    assert np.isfinite(found.left_out[0, :2]).all()


def test_a_profile_has_its_minimum_at_the_fit() -> None:
    first, second, y = 1 / P, np.ones(5), np.array([3.1, 1.5, 0.9, 0.41, 0.27])
    errors = np.full(5, 0.1)
    found = fit_two(first[None], second[None], np.log(y), errors)
    shares, scales, misfits = profile(first, second, np.log(y), errors)
    at = misfits.argmin()
    assert found.misfit[0] <= misfits[at] <= found.misfit[0] * 1.01
    assert shares[at] == pytest.approx(found.share[0], rel=0.1)
    assert scales[at] == pytest.approx(found.scale[0], rel=0.1, abs=0.01)


def test_of_many_laws_those_that_come_near_to_all_points_are_fitted() -> None:
    rng = np.random.default_rng(4)
    first, second = rng.uniform(0.1, 10, (2, 500, 6))
    logs = np.log(0.3 * first[123] + 0.7 * second[123])
    errors = np.full(6, 0.05)
    kept = nearest(first, second, logs, errors, 40)
    assert len(kept) == 40
    assert 123 in kept
    every, some = (fit_two(first[rows], second[rows], logs, errors) for rows in (slice(None), kept))
    best = np.argsort(every.misfit)[:10]
    assert set(best.tolist()) <= set(kept.tolist())
    assert some.misfit.min() == pytest.approx(every.misfit.min(), abs=1e-12)


def test_few_laws_are_all_fitted() -> None:
    terms = np.ones((3, 2))
    assert nearest(terms, terms, np.zeros(2), np.ones(2), 3).tolist() == [0, 1, 2]
