"""What is compared of a prediction."""

from __future__ import annotations

import math

import numpy as np
import pytest

from popmodel.model.uncertainty import Estimate
from popmodel.validation.predicted import of_new_run

END = 1.6448536269514715


def test_the_interval_of_a_new_run_is_that_of_the_sum_of_both_spreads() -> None:
    mean, noise = 0.04, 0.03
    found = of_new_run(
        Estimate(2.0, 2.0 * math.exp(-END * mean), 2.0 * math.exp(END * mean)), noise
    )
    drawn = np.random.default_rng(1).normal(0, mean, 400_000)
    drawn += np.random.default_rng(2).normal(0, noise, 400_000)
    drawn_ends = 2.0 * np.exp(np.quantile(drawn, [0.05, 0.95]))
    assert (found.low, found.high) == pytest.approx(tuple(drawn_ends), rel=1e-3)
    assert found.value == 2.0


def test_the_two_sides_are_widened_for_themselves() -> None:
    found = of_new_run(Estimate(1.0, 1.0, math.e), 1 / END)
    assert (found.low, found.high) == pytest.approx((1 / math.e, math.exp(math.sqrt(2))))


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_what_has_no_interval_gets_none(noise: float) -> None:
    assert of_new_run(Estimate(2.0), noise) == Estimate(2.0)


def test_without_noise_nothing_changes() -> None:
    assert of_new_run(Estimate(2.0, 1.5, 3.0), 0.0) == Estimate(2.0, 1.5, 3.0)
