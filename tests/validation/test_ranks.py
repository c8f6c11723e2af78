"""Rank correlation."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from popmodel.validation.ranks import kendall

PAIRS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=12)


@given(PAIRS)
def test_it_is_that_of_scipy_with_ties(pairs: list[tuple[int, int]]) -> None:
    some, others = zip(*pairs, strict=True)
    found, theirs = kendall(some, others), kendalltau(some, others).statistic
    if found is None:
        assert math.isnan(theirs)
    else:
        assert found == pytest.approx(theirs, abs=1e-12)


def test_by_hand() -> None:
    assert kendall([1, 2, 3], [10, 30, 20]) == pytest.approx(1 / 3)
    assert kendall([1, 2], [2, 1]) == -1


@pytest.mark.parametrize("lists", [([1.0], [1.0]), ([1.0, 1.0], [1.0, 2.0])])
def test_what_has_no_order(lists: tuple[list[float], list[float]]) -> None:
    assert kendall(*lists) is None
