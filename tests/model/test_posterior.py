"""What a signature carries of runs: roots of covariances, what is kept of it, draws from it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.demo import machine
from model.test_model_error import WORK

from popmodel.model.model_error import laws_of_split
from popmodel.model.symbols import LAWS
from popmodel.model.uncertainty import FIRST, Calibration, Draws, drawn_only, root_of

NAMES = ("constants.rate", "law.loops", "law.loops of 4 x 2", "residual.processes", "core.freq")


def known(seed: int = 0, **changes: object) -> Calibration:
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(len(NAMES), len(NAMES))) / 2
    means = rng.normal(size=len(NAMES))
    one = Calibration(
        *("cluster", machine().digest, NAMES, means, root_of(half @ half.T)),
        residuals={"residual.processes": 1e-6},
    )
    return replace(one, **changes)  # type: ignore[arg-type]


@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(0, 8))
def test_a_root_is_lower_triangular_and_gives_the_covariance(
    seed: int, size: int, rank: int
) -> None:
    half = np.random.default_rng(seed).normal(size=(size, rank))
    root = root_of(half @ half.T)
    assert np.triu(root, 1) == pytest.approx(0)
    assert (np.diag(root) >= 0).all()
    np.testing.assert_allclose(root @ root.T, half @ half.T, atol=1e-9)


def test_a_covariance_that_rounding_made_indefinite_has_a_root() -> None:
    covariance = np.array([[1.0, 1.0], [1.0, 1.0 - 1e-12]])
    assert np.linalg.eigvalsh(covariance)[0] < 0
    root = root_of(covariance)
    np.testing.assert_allclose(root @ root.T, covariance, atol=1e-9)


@given(st.integers(0, 2**32 - 1), st.sets(st.sampled_from(NAMES)))
def test_what_is_kept_is_as_it_was(seed: int, kept: set[str]) -> None:
    whole = known(seed)
    part = whole.only(kept)
    numbers = [number for number, name in enumerate(NAMES) if name in kept]
    assert set(part.names) == kept
    assert list(part.means) == list(whole.means[numbers])
    np.testing.assert_allclose(part.covariance, whole.covariance[np.ix_(numbers, numbers)])
    assert np.triu(part.root, 1) == pytest.approx(0)
    assert set(part.residuals) == kept & set(whole.residuals)


def test_draws_have_the_means_and_the_covariance_that_were_learnt() -> None:
    one = known()
    drawn = Draws({}, 4000, calibration=one)
    scores = np.array([drawn.scores(name) for name in NAMES])
    assert (scores[:, :FIRST] == one.means[:, None]).all()
    np.testing.assert_allclose(np.mean(drawn_only(scores), axis=1), one.means, atol=0.05)
    np.testing.assert_allclose(np.cov(drawn_only(scores)), one.covariance, atol=0.12)


@pytest.mark.parametrize("split", ["4 x 2", "8 x 1"])
def test_without_draws_a_law_has_the_best_estimate_of_that_with_them(split: str) -> None:
    none, many = (
        laws_of_split(split, WORK, (), (), Draws({}, count, calibration=known()))
        for count in (0, 60)
    )
    for path in LAWS:
        assert none.factor(path) == pytest.approx(np.atleast_1d(many.factor(path))[0])
    assert none.common["law.loops"] == pytest.approx(np.asarray(many.common["law.loops"])[0])


def test_the_own_part_of_a_split_is_that_of_this_split_only() -> None:
    one = known(means=np.array([0.0, 0.0, 2.0, 0.0, 0.0]))
    here, there = (
        laws_of_split(split, WORK, (), (), Draws({}, 0, calibration=one))
        for split in ("4 x 2", "4 x 1")
    )
    assert here.factor("law.loops") > 1
    assert there.factor("law.loops") == 1
