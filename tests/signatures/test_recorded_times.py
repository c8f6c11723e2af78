"""What is kept of times keeps their totals, and how slow the slowest of some processes is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.signatures.recorded_times import PARTS, describe, drawn, quantiles

rng = np.random.default_rng(7)


def test_equal_times_need_a_mean_only():
    found = describe(np.full((4, 10), 2.0))
    assert (found.mean, found.by_rank, found.quantiles) == (2.0, (), ())
    assert (found.low, found.high) == (2.0, 2.0)


def test_processes_that_differ_keep_their_means():
    times = np.outer([1.0, 2.0, 3.0], np.ones(5))
    found = describe(times)
    assert found.by_rank == pytest.approx((0.5, 1.0, 1.5))
    assert found.persistent_cv == pytest.approx(np.std([0.5, 1, 1.5]))
    assert found.quantiles == ()


def test_what_is_not_executed_takes_no_time_and_one_execution_has_no_interval():
    found = describe(np.array([[1.0, 1.0], [np.nan, np.nan]]))
    assert (found.mean, found.by_rank) == (0.5, (2.0, 0.0))
    assert [describe(np.full((2, 3), time)).mean for time in (0, np.nan)] == [0, 0]
    found = describe(np.array([[1.0], [1.2]]))
    assert (found.low, found.high, found.executions) == (None, None, 1)


def test_the_interval_holds_the_true_mean_in_nine_of_ten_runs():
    held = 0
    for _ in range(400):
        found = describe(rng.normal(1, 0.2, (4, 12)))
        held += found.low <= 1 <= found.high
    assert 0.86 <= held / 400 <= 0.94


@pytest.mark.parametrize("processes", [2, 4, 16, 64])
def test_quantiles_keep_the_slowest_of_a_step(processes):
    relative = rng.lognormal(0, 0.5, 4000)
    relative /= relative.mean()
    few = np.array(quantiles(relative, np.full(4000, 1 / 4000), processes, 4000))
    assert len(few) in PARTS
    drawn_max = [
        rng.choice(each, (20_000, processes)).max(axis=1).mean() for each in (relative, few)
    ]
    assert drawn_max[1] - 1 == pytest.approx(drawn_max[0] - 1, rel=0.06)
    assert few.mean() == pytest.approx(1)


def test_heavy_tails_stay():
    relative = np.ones(1000)
    relative[::100] = 50.0
    relative /= relative.mean()
    few = np.array(quantiles(relative, np.full(1000, 1e-3), 16, 1000))
    assert few[-1] > 20


@given(st.integers(1, 5), st.integers(1, 40), st.floats(0, 1), st.integers(0, 9))
def test_draws_keep_the_total_of_each_process(processes, turns, cv, seed):
    one = np.random.default_rng(seed)
    times = one.lognormal(0, cv, (processes, turns))
    times[one.random(times.shape) < 0.1] = np.nan
    found = drawn(describe(times), np.isfinite(times), one)
    assert np.nansum(found, axis=1) == pytest.approx(np.nansum(times, axis=1), rel=0.02)
    assert (np.isfinite(found) == np.isfinite(times)).all()


def test_as_many_values_as_divide_the_executions_of_a_process() -> None:
    relative = np.concatenate([np.full(17, 0.5), [9.5]])  # of two processes, nine times each
    assert len(quantiles(relative, np.full(18, 1 / 18), 2, 9)) in (3, 9)


def test_what_all_processes_share_is_no_difference_between_them() -> None:
    rng = np.random.default_rng(2)
    together = rng.lognormal(0, 1, size=400)
    own = 1 + 0.05 * rng.normal(size=(8, 400))
    times = together * own * np.linspace(0.8, 1.2, 8)[:, None]
    found = np.array(describe(times).quantiles)
    assert found.mean() == pytest.approx(1, rel=0.01)
    assert found.std() < 0.06
