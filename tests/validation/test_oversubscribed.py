"""Runs whose threads had no cores of their own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.machine.quantity import Topology
from popmodel.model.run.placement import ImpossibleSplit, place
from popmodel.model.uncertainty import Estimate
from popmodel.plain import plain
from popmodel.runs.measurement import MeasuredRow
from popmodel.validation.comparison import (
    ExcludedRuns,
    Split,
    compare,
    excluded,
    oversubscribed,
    splits,
    suspicious,
)
from popmodel.validation.predictions import Predicted

Case = tuple[int, int, float, list[float]]


def measured(p: int, t: int, *times: float, n: float = 8.0) -> list[MeasuredRow]:
    return [MeasuredRow("x.csv", p, t, time, {}, parameters={"N": n}) for time in times]


def compared(*cases: Case, n: float = 8.0) -> tuple[Split, ...]:
    """P, T, predicted time, measured times."""
    predictions = [Predicted(p, t, Estimate(time), {}, {"N": n}) for p, t, time, _ in cases]
    runs = [run for p, t, _, times in cases for run in measured(p, t, *times, n=n)]
    return splits(compare(predictions, runs))


@given(st.integers(1, 40), st.integers(1, 20), st.integers(1, 4), st.integers(1, 16))
def test_oversubscribed_is_what_cannot_be_placed(p: int, t: int, nodes: int, cores: int) -> None:
    (run,) = measured(p, t, 1.0)
    try:
        place(p, t, Topology(nodes, cores, 1, 1, ()))
    except ImpossibleSplit:
        assert oversubscribed(run, nodes, cores) is not None
    else:
        assert oversubscribed(run, nodes, cores) is None


def test_the_threads_of_the_fullest_node_are_told() -> None:
    (run,) = measured(3, 4, 1.0)
    assert oversubscribed(run, 2, 6) == "more threads (8) than cores (6) on a node of the machine"


def test_runs_left_out_for_one_reason_are_told_together() -> None:
    runs = [*measured(3, 4, 1.0, 2.0), *measured(3, 4, 3.0, n=9.0)]
    (first, other) = excluded((run, "too hot") for run in runs)
    assert first == ExcludedRuns(3, 4, {"N": 8.0}, ("x.csv",), (1.0, 2.0), "too hot")
    assert other.sentence(["N"]) == "left out: 1 run of 3 x 4, N=9: too hot"
    assert plain(first)["measured"] == [1.0, 2.0]


@pytest.mark.parametrize(
    ("time", "predicted", "is_left"),
    [
        (1.0, 0.5, True),  # e_mt T = 1: the threads share a core
        (0.96, 0.5, True),
        (1.7, 0.5, True),  # and wait for each other actively
        (0.9, 0.5, False),  # some speed-up: the model has to answer for it
        (1.0, 0.8, False),  # hardly any was predicted
    ],
)
def test_threads_that_bring_nothing_against_the_prediction(
    time: float, predicted: float, is_left: bool
) -> None:
    found = compared((2, 1, 1.0, [1.0]), (2, 2, predicted, [time]))
    kept, left = suspicious(found)
    assert [one.threads for one in left] == [2] * is_left
    assert len(kept) == 2 - is_left


def test_why_threads_bring_nothing() -> None:
    _, (left,) = suspicious(compared((2, 1, 1.0, [1.0]), (2, 4, 0.3, [1.02])))
    assert left.why == (
        "0.98 times as fast as 2 x 1, 3.3 times predicted: as if the threads of a process shared a "
        "core"
    )


def test_other_processes_or_parameters_are_no_comparison() -> None:
    found = compared((1, 1, 1.0, [1.0]), (2, 2, 0.5, [1.0]))
    larger = compared((2, 1, 1.0, [1.0]), n=9.0)
    assert suspicious((*found, *larger))[1] == ()


def test_repeats_that_differ_far_more_than_those_of_others() -> None:
    steady = [(p, 1, 1.0, [1.0, 1.01]) for p in (1, 2)]
    kept, (left,) = suspicious(compared(*steady, (4, 1, 1.0, [1.0, 1.5])))
    assert [one.processes for one in kept] == [1, 2]
    assert (left.processes, left.why) == (
        4,
        "they took 1 to 1.5 s, while repeats of the others differ by 1 %: something else ran on "
        "their cores",
    )


@pytest.mark.parametrize(
    "others",
    [
        [[1.0, 1.01]],  # one is no rule
        [[1.0, 1.01], [1.0]],
        [[1.0, 1.2], [1.0, 1.1]],  # all are noisy
    ],
)
def test_a_spread_like_that_of_others_says_nothing(others: list[list[float]]) -> None:
    cases = [(1 + index, 1, 1.0, times) for index, times in enumerate(others)]
    assert suspicious(compared(*cases, (8, 1, 1.0, [1.0, 1.5])))[1] == ()
