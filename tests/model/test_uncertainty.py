"""Draws: quantiles, reproducibility, what varies together; intervals and shares of variance."""

from statistics import NormalDist

import numpy as np
import pytest

from popmodel.machines.quantity import Quantity
from popmodel.model.uncertainty import (
    FIRST,
    FORMS,
    Draws,
    around,
    drawn_only,
    interval,
    shares,
    widened,
)

QUANTITIES = {
    "a": Quantity(2.0, 1.0, 8.0),
    "b": Quantity(5.0),
    "c[0].alpha": Quantity(1.0, 0.5, 2.0),
    "c[1].alpha": Quantity(4.0, 2.0, 8.0),
    "zero": Quantity(0.0, 0.0, 1.0),
}


def test_median_and_ends_are_those_of_the_quantity() -> None:
    values = Draws(QUANTITIES, 2000)["a"]
    assert values[0] == 2.0
    quantiles = np.quantile(drawn_only(values), [0.05, 0.5, 0.95])
    np.testing.assert_allclose(quantiles, [1.0, 2.0, 8.0], rtol=0.01)


def test_an_interval_that_begins_at_zero() -> None:
    values = Draws(QUANTITIES, 100)["zero"]
    assert values.min() == 0.0
    assert values.max() > 0.9


def test_the_same_seed_gives_the_same_draws_in_any_order() -> None:
    one, two = Draws(QUANTITIES, 50, seed=3), Draws(QUANTITIES, 50, seed=3)
    first = one["a"]
    assert two["c[0].alpha"].shape == (FIRST + 50,)
    np.testing.assert_array_equal(first, two["a"])
    assert not np.array_equal(first, Draws(QUANTITIES, 50, seed=4)["a"])


def test_entries_of_one_list_vary_together_and_others_do_not() -> None:
    draws = Draws(QUANTITIES, 200)
    together = np.corrcoef(draws["c[0].alpha"], draws["c[1].alpha"])[0, 1]
    apart = np.corrcoef(draws["a"], draws["c[1].alpha"])[0, 1]
    assert together == pytest.approx(1.0)
    assert abs(apart) < 0.2


def test_factors_apply_to_the_longest_matching_path() -> None:
    draws = Draws(QUANTITIES, 0, factors={"c": 2.0, "c[1]": 3.0})
    assert draws["c[0].alpha"] == 2.0
    assert draws["c[1].alpha"] == 12.0
    assert draws["b"] == 5.0


def test_interval() -> None:
    assert interval(3.0) == (None, None)
    assert interval(np.full(5, 2.0)) == (None, None)
    low, high = interval(np.concatenate([[50.0, 40.0, 60.0], np.arange(101.0)]))
    assert (low, high) == pytest.approx((5.0, 95.0))


@pytest.mark.parametrize("entry", range(FIRST))
def test_an_interval_reaches_the_best_estimate_and_the_ends_of_the_forms(entry: int) -> None:
    entries = np.full(FIRST, 50.0)
    entries[entry] = 200.0
    assert interval(np.concatenate([entries, np.arange(101.0)])) == pytest.approx((5.0, 200.0))
    entries[entry] = -1.0
    assert interval(np.concatenate([entries, np.arange(101.0)])) == pytest.approx((-1.0, 95.0))


def test_a_form_of_the_model_is_drawn_between_its_ends() -> None:
    (form,) = FORMS
    known = Quantity(0.5, 0.0, 1.0, "measured")
    draws = Draws({form: known, "a": Quantity(2.0, 1.0, 8.0)}, 200)
    assert list(draws[form][:FIRST]) == [0.5, 0.0, 1.0]
    assert (draws[form].min(), draws[form].max()) == (0.0, 1.0)
    assert np.mean(np.abs(drawn_only(draws[form]) - 0.5) == 0.5) == pytest.approx(0.1, abs=0.02)
    assert list(draws["a"][:FIRST]) == [2.0] * FIRST


def test_a_form_of_which_nothing_is_known_is_either_extreme_or_between_with_equal_chance() -> None:
    (form,) = FORMS
    drawn = drawn_only(Draws({form: Quantity(0.5, 0.0, 1.0, "assumed")}, 300)[form])
    for least, most in ((0, 0), (0.01, 0.99), (1, 1)):
        assert np.mean((drawn >= least) & (drawn <= most)) == pytest.approx(1 / 3, abs=0.01)


def test_widening_adds_variances() -> None:
    low, high = around(3.0, 0.4)
    half_width = 0.4 * NormalDist().inv_cdf(0.95)
    assert (low, high) == pytest.approx((3 * np.exp(-half_width), 3 * np.exp(half_width)))
    both = widened(Quantity(3.0, *around(3.0, 0.3), origin="measured"), 0.4)
    assert (both.low, both.high) == pytest.approx(around(3.0, 0.5))
    assert both.origin == "measured"
    alone = widened(Quantity(3.0), 0.4)
    assert (alone.low, alone.high) == pytest.approx((low, high))


def test_what_reaches_down_to_0_is_widened_upwards_only() -> None:
    one = widened(Quantity(1.0, 0.0, 2.0), 0.4)
    assert one.low == 0.0
    assert one.high == pytest.approx(1 + np.hypot(1, around(1.0, 0.4)[1] - 1))
    assert not widened(Quantity(0.0), 0.4).is_uncertain


def test_shares_of_variance() -> None:
    draws = Draws(QUANTITIES, 2000)
    scores = {name: draws.scores(name) for name in ("a", "b", "c")}
    result = np.exp(2 * scores["a"] + scores["b"])
    found = shares(scores, result)
    assert list(found) == ["a", "b"]
    assert found["a"] == pytest.approx(0.8, abs=0.04)
    assert found["b"] == pytest.approx(0.2, abs=0.04)
    threshold = shares(scores, np.where(scores["c"] > 1, 1.0, 10.0))
    assert threshold["c"] > 0.8
    assert shares(scores, np.ones(FIRST + 2000)) == {}
    assert shares(scores, 3.0) == {}
