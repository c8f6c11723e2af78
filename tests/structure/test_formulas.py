"""Formulas of the rank: each gives the right value on every rank, and simple ones come first."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.base.expressions import parse
from popmodel.structure.rank_formulas import NOBODY, colour, split, who

SIXTEEN = np.arange(16)


def value(formula, processes):
    return np.broadcast_to(
        parse(formula).evaluate({"rank": np.arange(processes), "P": float(processes)}), processes
    )


@pytest.mark.parametrize(
    ("partner", "expected"),
    [
        (np.where(SIXTEEN % 4 < 3, SIXTEEN + 1, NOBODY), [("rank % 4 < 3", "rank + 1")]),
        (np.where(SIXTEEN >= 4, SIXTEEN - 4, NOBODY), [("rank >= 4", "rank - 4")]),
        ((SIXTEEN + 1) % 16, [("", "(rank + 1) % P")]),
        (SIXTEEN // 4 * 4 + (SIXTEEN - 1) % 4, [("", "rank // 4 * 4 + (rank - 1) % 4")]),
        (SIXTEEN ^ 2, [("", "rank + 2 - 4 * (rank // 2 % 2)")]),
        (SIXTEEN ^ 1, [("", "rank + 1 - 2 * (rank % 2)")]),
        (15 - SIXTEEN, [("", "P - 1 - rank")]),
        (SIXTEEN % 4 * 4 + SIXTEEN // 4, [("", "rank % 4 * 4 + rank // 4")]),
        (np.where(SIXTEEN > 0, 0, NOBODY), [("rank > 0", "0")]),
        (np.where(SIXTEEN == 3, 9, NOBODY), [("rank == 3", "9")]),
        (np.where(SIXTEEN == 15, 2, NOBODY), [("rank == P - 1", "2")]),
    ],
)
def test_simple_forms(partner, expected):
    found = split(np.asarray(partner))
    assert [(who(row.ranks), row.formula) for row in found] == expected


def test_ranks_whose_partner_would_be_outside_may_take_part():
    (row,) = split(np.where(SIXTEEN < 12, SIXTEEN + 4, NOBODY), free=True)
    assert (row.ranks.all(), row.formula) == (True, "rank + 4")
    (row,) = split(np.where(SIXTEEN % 4 < 3, SIXTEEN + 1, NOBODY), free=True)
    assert who(row.ranks) == "rank % 4 < 3"  # rank 3 would send to 4


@given(
    st.integers(2, 24).flatmap(
        lambda processes: st.tuples(
            st.just(processes),
            st.lists(st.integers(NOBODY, processes - 1), min_size=processes, max_size=processes),
        )
    )
)
def test_formulas_give_what_was_asked_for(case):
    processes, listed = case
    partner = np.array(listed)
    seen = np.zeros(processes, bool)
    for row in split(partner):
        assert not (seen & row.ranks).any()
        seen |= row.ranks
        assert np.array_equal(value(row.formula, processes)[row.ranks], partner[row.ranks])
    assert np.array_equal(seen, partner >= 0)


@given(st.lists(st.booleans(), min_size=2, max_size=40).filter(any))
def test_conditions_hold_on_the_ranks_that_are_meant(listed):
    ranks = np.array(listed)
    found = who(ranks)
    if isinstance(found, list):
        assert np.array_equal(np.flatnonzero(ranks), found)
    else:
        assert np.array_equal(value(found, len(ranks)) != 0 if found else ranks, ranks)
        assert found or ranks.all()


def test_ranks_that_no_condition_says_are_listed():
    ranks = np.isin(np.arange(12), [0, 1, 2, 7, 9, 10])
    assert who(ranks) == [0, 1, 2, 7, 9, 10]


@pytest.mark.parametrize(
    ("groups", "processes", "formula"),
    [
        ([np.arange(6)], 6, "0"),
        ([np.arange(4), np.arange(4, 8), np.arange(8, 12)], 12, "rank // 4"),
        ([np.arange(place, 12, 4) for place in range(4)], 12, "rank % 4"),
        # planes of a grid of 2 x 3 x 2 along its middle dimension
        (
            [np.array([0, 2, 4]), np.array([1, 3, 5]), np.array([6, 8, 10]), np.array([7, 9, 11])],
            12,
            "rank // 6 * 2 + rank % 2",
        ),
        ([np.array([0, 3]), np.array([1, 2])], 4, None),
        ([np.array([0, 1])], 4, None),
    ],
)
def test_colours_of_communicators(groups, processes, formula):
    assert colour(groups, processes) == formula
