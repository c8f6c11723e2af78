"""The interval of a proportion."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from popmodel.validation.binomial import wilson


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_it_is_that_of_scipy(case: tuple[int, int]) -> None:
    theirs = binomtest(*case).proportion_ci(0.90, method="wilson")
    assert wilson(*case) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


@given(st.integers(1, 50), st.floats(0, 1))
def test_it_holds_the_share_and_stays_between_0_and_1(of: int, share: float) -> None:
    low, high = wilson(share * of, of)
    assert 0 <= low <= share * of / of <= high <= 1


def test_by_hand() -> None:
    root = math.sqrt(0.9 * 0.1 / 10 + 4 / (4 * 100))
    low, high = wilson(9, 10, 2.0)
    assert low == pytest.approx((0.9 + 0.2 - 2 * root) / 1.4)
    assert high == pytest.approx((0.9 + 0.2 + 2 * root) / 1.4)


@pytest.mark.parametrize("case", [(0, 0), (3, 2), (-1, 2)])
def test_what_is_no_proportion(case: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="is no proportion"):
        wilson(*case)
