"""Judging splits: what the draws say of each, what to take, what to measure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from popmodel.base.expressions.elementary import numbers
from popmodel.machines.quantity import Topology
from popmodel.model.run.process_placement import place
from popmodel.model.uncertainty import FIRST, Estimate
from popmodel.prediction.prediction import Validity
from popmodel.prediction.split_choice import (
    SURE,
    WORTH,
    SplitCandidate,
    choose,
    estimated,
    judge,
)
from popmodel.prediction.split_sweep import growth

TOPOLOGY = Topology(4, 16, 2, 2, ())
DRAWS = 400


def evaluated(
    threads: int, runtime: float | NDArray[np.float64], cores: int = 16
) -> SplitCandidate:
    """A split of some cores with a runtime; the best estimate comes first."""
    placement, inside = place(cores // threads, threads, TOPOLOGY), Validity("inside", 1.0, ())
    times = estimated(runtime, inside), Estimate(0.9)
    return SplitCandidate(placement, (), *times, None, inside, {}, {}, numbers(runtime))


def with_nominal(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate([np.full(FIRST, float(np.median(draws))), draws])


def scores(seed: int) -> NDArray[np.float64]:
    return np.concatenate([np.zeros(FIRST), np.random.default_rng(seed).standard_normal(DRAWS)])


def candidates(*runtimes: float | NDArray[np.float64]) -> list[SplitCandidate]:
    return judge([evaluated(2**index, runtime) for index, runtime in enumerate(runtimes)])


def test_probabilities_are_shares_of_the_draws() -> None:
    steady = with_nominal(np.array([1.0, 1.0, 1.0, 1.0]))
    varied = with_nominal(np.array([0.5, 1.01, 1.01, 2.0]))
    one, other = candidates(steady, varied)
    assert (one.probability_best, other.probability_best) == (0.75, 0.25)
    assert (one.probability_tied, other.probability_tied) == (0.75, 0.75)
    assert one.regret == pytest.approx((1.0 + 0 + 0 + 0) / 4)
    assert other.regret == pytest.approx((0 + 0.01 + 0.01 + 1.0) / 4)


def test_the_best_estimate_and_the_ends_of_the_forms_are_no_draws() -> None:
    """They bound the intervals and would count twice."""
    one, other = candidates(
        np.array([5.0, 4.0, 6.0, 1.0, 1.0]), np.array([1.0, 1.0, 1.0, 2.0, 2.0])
    )
    assert (one.probability_best, other.probability_best) == (1.0, 0.0)
    assert one.runtime.value == 5.0
    assert one.runtime.high == 6.0


def test_nothing_is_doubtful_about_a_sure_choice() -> None:
    varied = np.exp(0.1 * scores(1))
    choice = choose(candidates(varied, 2 * varied), TOPOLOGY, {"x": scores(1)})
    assert choice.taken.probability_best == 1.0
    assert choice.tied == (choice.taken,)
    assert choice.doubt is None


def test_a_small_expected_loss_is_not_worth_a_measurement() -> None:
    varied = 1 + 0.004 * scores(1)
    choice = choose(candidates(varied, 2 - varied, np.full(FIRST + DRAWS, 2.0)), TOPOLOGY, {})
    assert (choice.taken.probability_best or 0) < SURE
    assert choice.taken.regret is not None
    assert 0 < choice.taken.regret < WORTH
    assert choice.doubt is None


def test_the_deciding_input_is_that_of_the_difference_and_not_of_the_runtime() -> None:
    """`common` changes both runtimes a lot, `own` only how they compare."""
    common, own = scores(1), scores(2)
    shared = np.exp(0.5 * common)
    choice = choose(
        candidates(shared, shared * np.exp(0.1 * own)), TOPOLOGY, {"common": common, "own": own}
    )
    assert choice.doubt is not None
    assert list(choice.doubt.inputs) == ["own"]
    assert choice.doubt.inputs["own"] > 0.9


def test_the_split_to_measure_is_the_one_that_tells_which_is_better() -> None:
    """The runtime of the first is known already; only that of the second is in doubt."""
    known = np.full(FIRST + DRAWS, 1.0)
    doubtful = np.exp(0.05 * scores(3))
    slow = 1.01 * np.exp(0.001 * scores(4))
    for runtimes in ((known, doubtful, slow), (slow, doubtful, known)):
        choice = choose(candidates(*runtimes), TOPOLOGY, {"x": scores(3)})
        assert choice.doubt is not None
        assert choice.doubt.measure == (8, 2)


def test_a_default_is_told_once_and_only_where_it_makes_sense() -> None:
    one_socket = Topology(4, 16, 1, 2, ())
    (small,) = judge([evaluated(1, 1.0, cores=6)])
    assert [one.name for one in choose([small], TOPOLOGY, {}).defaults] == ["all MPI"]
    found = judge([evaluated(1, 1.0), evaluated(16, 2.0)])
    assert [one.name for one in choose(found, one_socket, {}).defaults] == [
        "all MPI",
        "one process per socket",
    ]
    assert [one.split for one in choose(found, TOPOLOGY, {}).defaults] == [(16, 1), (2, 8), (1, 16)]


def test_what_is_compared_with_a_split_outside_the_measured_range_has_no_interval() -> None:
    first = evaluated(1, np.exp(0.1 * scores(1)))
    second = evaluated(2, 0.8 * np.exp(0.1 * scores(2)))
    twice = evaluated(2, 0.5 * np.exp(0.1 * scores(3)), cores=32)
    for outside in (False, True):
        if outside:
            second = replace(second, validity=Validity("outside", 99.0, ("x99 in threads",)))
        small = choose(judge([first, second]), TOPOLOGY, {})
        (more,) = growth([small, choose(judge([twice]), TOPOLOGY, {})])
        loss = {one.split: one.loss for one in small.defaults}[16, 1]
        assert small.taken.split == (8, 2) and loss is not None
        for one in (loss, more["speedup"]):
            assert (one.low is None) == outside
            assert ("x99 in threads" in one.why) == outside


# -- splits that do not matter


def test_if_all_are_equally_good_the_simplest_is_recommended() -> None:
    """The fastest by 1 % has 4 threads; all MPI surprises least."""
    choice = choose(candidates(1.01, 1.015, 1.0), TOPOLOGY, {})
    assert choice.indifferent
    assert choice.taken.split == (16, 1)
    assert [one.split for one in choice.tied] == [(16, 1), (4, 4), (8, 2)]
    assert choice.doubt is None


def test_a_split_that_loses_in_many_draws_makes_the_choice_matter() -> None:
    """As good as the other at the best estimate only."""
    slower = np.exp(0.2 * np.abs(scores(1)))
    assert not choose(candidates(1.0, slower), TOPOLOGY, {"x": scores(1)}).indifferent


def test_splits_that_may_be_either_way_round_do_not_stand_out_but_are_worth_a_measurement() -> None:
    choice = choose(
        candidates(np.exp(0.05 * scores(1)), np.exp(0.05 * scores(2))),
        TOPOLOGY,
        {"x": scores(1), "y": scores(2)},
    )
    assert choice.indifferent
    assert choice.taken.split == (16, 1)
    assert choice.taken.regret is not None and choice.taken.regret > WORTH
    assert choice.doubt is not None
    assert set(choice.doubt.inputs) == {"x", "y"}


# -- splits that are too large for a replay


def test_closed_forms_are_not_compared_with_replays() -> None:
    closed = evaluated(1, 0.5)
    replayed = [replace(evaluated(threads, 1.0), gap=0.0) for threads in (2, 4)]
    found = judge([closed, *replayed])
    assert [one.regret for one in found] == [None, 0.0, 0.0]
    assert [one.probability_best for one in found] == [None, 1.0, 0.0]
    choice = choose(found, TOPOLOGY, {})
    assert choice.taken.split == (8, 2)
    assert (16, 1) not in [one.split for one in choice.tied]
