"""Whether the right split would have been chosen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from popmodel.machine import profile
from popmodel.model import signatures
from popmodel.model.run.placement import WHOLE
from popmodel.prediction.split_choice import SplitChoice
from popmodel.runs.measurement import MeasuredRow
from popmodel.validation.comparison import CALIBRATION, FitRegion, Split, compare, splits
from popmodel.validation.prediction_errors import SplitDecision, decisions, kendall
from popmodel.validation.predictions import of_application

from .cases import predicted, run

ABOUT = of_application(
    signatures.load("stencil3d"), profile.load(profile.DEFAULT_PRESET), {"N": 256.0}, WHOLE
)
TIMES = {(64, 1): 1.5, (16, 4): 1.2, (4, 16): 1.0}


def compared(runs: Sequence[MeasuredRow], fitted: bool = False) -> tuple[Split, ...]:
    """Splits; those of other than 4 processes are of a fit if there is one."""
    predictions = [
        predicted(p, t, time, n=256.0) for (p, t), time in zip(TIMES, (0.9, 0.8, 1.1), strict=True)
    ]
    pairs = compare(predictions, runs)
    if fitted:
        regions = {p: FitRegion(CALIBRATION) for p in (64, 16)} | {4: FitRegion("interpolation")}
        pairs = tuple(replace(pair, region=regions[pair.run.processes]) for pair in pairs)
    return splits(pairs)


def all_runs() -> list[MeasuredRow]:
    return [run(*pair, time, n=256.0) for pair, time in TIMES.items()]


def chosen(parameters: Mapping[str, float], pairs: Sequence[tuple[int, int]]) -> SplitChoice | None:
    assert parameters == {"N": 256.0}
    return ABOUT.choose({"N": 256.0, "steps": 100.0}, pairs)


def test_the_choice_is_that_of_a_sweep_and_its_loss_that_of_the_runs() -> None:
    (found,) = decisions(compared(all_runs()), chosen)
    assert isinstance(found, SplitDecision)
    assert (found.cores, found.best, found.measured_tied) == (64, (4, 16), ((4, 16),))
    made = chosen({"N": 256.0}, list(TIMES))
    assert made is not None
    assert (found.take, found.announced) == (made.taken.split, made.taken.regret)
    assert found.tied[0] == found.take
    assert found.regret == pytest.approx(TIMES[found.take] - 1.0)
    # predicted 0.9, 0.8, 1.1 against 1.5, 1.2, 1.0: one of three pairs has the same order
    assert found.rank_correlation == pytest.approx(-1 / 3)
    losses = {one.name: one.loss for one in found.defaults}
    assert losses == {
        "all MPI": pytest.approx(0.5),
        "one process per socket": None,
        "one process per node": 0.0,
    }


def test_repeats_count_by_their_mean() -> None:
    more = [*all_runs(), run(16, 4, 0.7, n=256.0)]
    (found,) = decisions(compared(more), chosen)
    assert found.best == (16, 4)
    assert [one.measured for one in found.options] == pytest.approx([1.5, 0.95, 1.0])


def test_one_split_is_no_choice() -> None:
    assert decisions(compared(all_runs()[:1]), chosen) == ()


def test_runs_of_the_fit_alone_are_no_test_of_a_choice() -> None:
    assert decisions(compared(all_runs()[:2], fitted=True), chosen) == ()
    (found,) = decisions(compared(all_runs(), fitted=True), chosen)
    assert [one.is_test for one in found.options] == [False, False, True]


def test_what_a_saved_prediction_says_of_other_splits() -> None:
    assert decisions(compared(all_runs()), lambda *_: None) == ()


PAIRS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=12)


@given(PAIRS)
def test_it_is_that_of_scipy_with_ties(pairs: list[tuple[int, int]]) -> None:
    some, others = zip(*pairs, strict=True)
    found, theirs = kendall(some, others), kendalltau(some, others).statistic
    if found is None:
        assert math.isnan(theirs)
    else:
        assert found == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("lists", [([1.0], [1.0]), ([1.0, 1.0], [1.0, 2.0])])
def test_what_has_no_order(lists: tuple[list[float], list[float]]) -> None:
    assert kendall(*lists) is None
