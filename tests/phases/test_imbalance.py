"""Persistent and transient imbalance are told apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.phases.imbalance import split


def of_matrix(seconds: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Rows of a matrix of ranks and executions; NaN for none."""
    rank, execution = np.nonzero(~np.isnan(seconds))
    return rank.astype(np.int32), execution, seconds[rank, execution], len(seconds)


def test_differences_between_ranks_that_stay_are_persistent() -> None:
    found = split(*of_matrix(np.tile([[1.0], [2.0], [3.0]], (1, 7))))
    assert found.persistent == pytest.approx(0.5)
    assert found.transient == pytest.approx(0, abs=1e-12)
    assert found.common == pytest.approx(0, abs=1e-12)
    assert found.by_rank == pytest.approx([0.5, 1.0, 1.5])


def test_what_all_ranks_do_alike_is_no_imbalance() -> None:
    found = split(*of_matrix(np.tile([1.0, 2.0, 3.0, 2.0], (5, 1))))
    assert (found.persistent, found.transient) == pytest.approx((0, 0), abs=1e-9)
    assert found.common == pytest.approx(np.std([1, 2, 3, 2], ddof=1) / 2)


def test_another_slow_rank_each_time_is_transient() -> None:
    ranks = 4
    seconds = np.tile(1 + np.eye(ranks), (1, 50))
    found = split(*of_matrix(seconds))
    assert found.persistent == pytest.approx(0, abs=1e-9)
    assert found.transient == pytest.approx(np.std(seconds[0]) / seconds.mean(), rel=0.2)


def test_noise_is_not_taken_for_persistence() -> None:
    """Means of few noisy executions differ, too: that much is taken off."""
    noise = np.random.default_rng(5)
    found = split(*of_matrix(1 + 0.1 * noise.standard_normal((400, 4))))
    assert found.persistent is not None
    assert found.persistent < 0.02
    assert found.transient == pytest.approx(0.1, rel=0.05)


@given(
    persistent=st.floats(0.02, 0.3),
    transient=st.floats(0.01, 0.3),
    common=st.floats(0, 0.3),
    seed=st.integers(0, 2**31),
)
def test_the_parts_that_a_simulation_put_in_come_out(
    persistent: float, transient: float, common: float, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    seconds = (
        1
        + persistent * draw.standard_normal((300, 1))
        + common * draw.standard_normal((1, 200))
        + transient * draw.standard_normal((300, 200))
    ) * 1e-3
    found = split(*of_matrix(seconds))
    mean = seconds.mean() / 1e-3
    assert found.persistent == pytest.approx(persistent / mean, rel=0.2)
    assert found.transient == pytest.approx(transient / mean, rel=0.05)
    assert found.common == pytest.approx(common / mean, rel=0.3, abs=0.01)


def test_ranks_that_lack_executions_are_compared_by_what_they_share() -> None:
    """A rank that has only the long executions is not slow."""
    seconds = np.tile([1.0, 5.0], (4, 10))
    seconds[0, ::2] = np.nan
    found = split(*of_matrix(seconds))
    assert found.persistent == pytest.approx(0, abs=1e-6)
    assert found.by_rank == pytest.approx(np.ones(4), abs=1e-6)


def test_a_rank_without_executions_has_no_value() -> None:
    found = split(*of_matrix(np.array([[1.0, 1.0], [np.nan, np.nan], [3.0, 3.0]])))
    assert np.isnan(found.by_rank).tolist() == [False, True, False]
    assert found.persistent == pytest.approx(np.sqrt(2) / 2)


def test_of_one_execution_all_is_persistent() -> None:
    found = split(*of_matrix(np.array([[1.0], [3.0]])))
    assert found.persistent == pytest.approx(np.sqrt(2) / 2)
    assert found.transient is None


def test_one_rank_alone_has_no_imbalance() -> None:
    found = split(*of_matrix(np.array([[1.0, 3.0]])))
    assert (found.persistent, found.transient) == (None, None)
    assert found.common == pytest.approx(np.sqrt(2) / 2)


def test_nothing_has_no_imbalance() -> None:
    found = split(*of_matrix(np.empty((2, 0))))
    assert (found.persistent, found.transient, found.common) == (None, None, None)


def test_phases_that_take_no_time_have_no_imbalance() -> None:
    assert split(*of_matrix(np.zeros((2, 3)))).persistent is None
