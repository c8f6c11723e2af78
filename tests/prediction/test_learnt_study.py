"""Predictions from learnt runs: anchored at them, mixed, bounded, and as unsure as they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.machines import profile
from popmodel.machines.quantity import END
from popmodel.model import signatures
from popmodel.model.signature.application import LearntRun, LearntRuns, Signature
from popmodel.model.uncertainty import Array, Draws, interval
from popmodel.prediction.learnt_study import Extrapolation, LearntStudy, _weights
from popmodel.prediction.prediction import predict, study_of
from popmodel.prediction.split_sweep import sweep

MACHINE = replace(profile.load("sandybridge-fdr"), is_preset=False)
TEXT = """schema = "popmodel/signature/1"
[app]
name = "solver"
[params]
N = 100
[constants]
t = { value = 1e-6, low = 0.9e-6, high = 1.1e-6 }
[[program]]
serial = { trip = 1, seconds = "t*N**3/P/T" }
[[program]]
collective = { op = "allreduce", bytes = 8 }
"""


def learnt(
    truth: dict[tuple[int, int], float],
    left_out: dict[tuple[int, int], float] | None = None,
    *,
    openmp: bool = False,
    waited: float = 0.0,
    ideal: dict[tuple[int, int], float] | None = None,
    written: Callable[[int, int], float] = lambda p, t: 1 / p / t,
) -> Signature:
    """The signature, learnt from runs that took so long; the model says 1 s over the cores."""
    others, traced = left_out or {}, ideal or truth
    runs = tuple(
        LearntRun(
            p, t, traced[p, t], written(p, t), {"N": 100.0}, seconds, waited, others.get((p, t))
        )
        for (p, t), seconds in truth.items()
    )
    return replace(signatures.from_text(TEXT), learnt=LearntRuns(openmp, runs))


def predicted(signature: Signature, processes: int, **given: Any) -> Any:
    return predict(signature, MACHINE, processes, 1, advice=False, **given)


IDEAL = {(p, 1): 1 / p for p in (2, 4, 8)}
GOOD = dict.fromkeys(IDEAL, 1.01)


def test_a_signature_without_runs_is_predicted_as_it_was() -> None:
    signature = signatures.from_text(TEXT)
    assert type(study_of(signature, MACHINE, {}, 0, 0)).__name__ == "Study"
    assert "learnt" not in predicted(signature, 16).to_dict()
    assert type(study_of(learnt(IDEAL), MACHINE, {"t": 2e-6}, 0, 0)).__name__ == "Study"


def test_the_model_of_the_parts_holds_where_it_predicts_the_runs() -> None:
    found = predicted(learnt(IDEAL, GOOD), 32)
    parts = predicted(signatures.from_text(TEXT), 32)
    assert found.runtime.value == pytest.approx(parts.runtime.value, rel=0.03)
    assert found.learnt["doubts"] == []
    weights = {one["name"]: one["weight"] for one in found.learnt["candidates"]}
    assert weights["parts"] > 0.5
    assert sum(weights.values()) == pytest.approx(1)


def test_laws_of_the_whole_run_take_over_where_the_parts_are_wrong() -> None:
    """Half of the time does not scale, and the signature does not know it."""
    truth = {(p, 1): 1 / p + 0.1 for p in (1, 2, 4, 8)}
    found = predicted(learnt(truth, dict.fromkeys(truth, 0.7)), 32)
    assert found.runtime.low < 1 / 32 + 0.1 < found.runtime.high
    assert found.runtime.value == pytest.approx(1 / 32 + 0.1, rel=0.25)
    assert found.learnt["doubts"]


def test_an_anchor_is_no_runtime_of_another_machine_or_of_a_disturbed_run() -> None:
    parts = predicted(signatures.from_text(TEXT), 16).runtime.value
    slow = {place: 4 * value for place, value in IDEAL.items()}
    disturbed = learnt(slow, GOOD, ideal=IDEAL)
    on_preset = predict(disturbed, profile.load("sandybridge-fdr"), 16, 1, advice=False)
    waiting = predicted(learnt(slow, GOOD, ideal=IDEAL, waited=0.3), 16)
    told = predicted(disturbed, 16)
    for found in (on_preset, waiting, told):
        assert found.runtime.value == pytest.approx(parts, rel=0.05)
    assert on_preset.learnt is not None
    assert on_preset.learnt["doubts"] == []
    assert "waited for CPUs 30 % of the time" in waiting.learnt["doubts"][0]
    assert "2 x 1, N = 100, predicted back, is 4 times too short" in told.learnt["doubts"]


def test_a_run_that_waited_for_cpus_is_told_and_says_nothing_of_others() -> None:
    signature = learnt(IDEAL, GOOD)
    assert signature.learnt is not None
    disturbed = LearntRun(16, 1, 0.9, 1 / 16, {"N": 100.0}, 1.0, 0.5, 3.0)
    more = replace(signature.learnt, runs=(*signature.learnt.runs, disturbed))
    found = predicted(replace(signature, learnt=more), 32)
    assert found.runtime.value == pytest.approx(predicted(signature, 32).runtime.value, rel=1e-9)
    assert "threads of 16 x 1, N = 100 waited for CPUs 50 % of the time" in found.learnt["doubts"]
    assert len(found.learnt["runs"]) == 4


def test_one_run_is_scaled_by_the_parts_or_the_plain_rule() -> None:
    found = predicted(learnt({(2, 1): 0.5}), 4)
    weights = {one["name"]: one["weight"] for one in found.learnt["candidates"]}
    assert weights["whole run"] == 0
    assert weights["parts"] > weights["plain rule"] > 0
    assert found.runtime.value == pytest.approx(0.25, rel=0.05)


@given(st.lists(st.floats(0, 1), min_size=3, max_size=12))
def test_a_candidate_that_is_much_worse_at_runs_left_out_does_not_count(
    errors: list[float],
) -> None:
    best = [0.01] * len(errors)
    weights = _weights(np.array([errors, errors[::-1], best]), np.ones(3), np.full(3, True))
    assert weights.sum() == pytest.approx(1)
    off = float(np.sqrt(np.mean(np.square(errors))))
    assert weights[:2].sum() * off < 0.2
    assert weights[2] > 0.04


@given(
    st.floats(0, 0.5),
    st.lists(st.floats(0.01, 0.5), min_size=3, max_size=3),
    st.lists(st.floats(0.01, 1), min_size=3, max_size=3),
)
def test_the_mixture_is_as_wide_as_its_candidates_and_never_narrower_than_the_parts(
    spread: float, deviations: list[float], shares: list[float]
) -> None:
    weights = np.array(shares) / sum(shares)
    drawn = Draws({}, 400)
    runtime = np.exp(spread * drawn.scores("input"))
    centers = np.zeros(3)

    def width(weights: Array) -> float:
        here = Extrapolation(
            0.0, centers, weights, np.zeros(3), np.array(deviations), 0.0, -math.inf
        )
        low, high = interval(runtime * here.factor(runtime, drawn, "8 x 1"))
        return math.log((high or 1.0) / (low or 1.0)) / (2 * END)

    alone = width(np.array([1.0, 0, 0]))
    assert alone >= 0.93 * max(spread, deviations[0])
    narrowest, widest = min(deviations), max(spread, *deviations)
    assert 0.9 * narrowest <= width(weights) <= 1.1 * widest


def test_intervals_widen_with_the_distance_and_beyond_the_sizes_that_were_run() -> None:
    signature = learnt(IDEAL, dict.fromkeys(IDEAL, 1.08))

    def width(**given: Any) -> float:
        found = predicted(signature, **given).runtime
        return math.log(found.high / found.low)

    assert width(processes=64) > 1.2 * width(processes=16)
    assert width(processes=16, settings={"N": 800}) > 1.1 * width(processes=16)
    found = predicted(signature, 16, settings={"N": 800})
    assert found.validity.status == "preset"
    assert found.validity.reasons[0] == "N = 800 is 8 x the largest of the runs (100)"
    assert found.learnt["outside"] == {"N": 8.0}


def test_times_that_bend_at_the_largest_sizes_leave_open_how_they_go_on() -> None:
    def width(times: dict[float, float]) -> float:
        runs = tuple(
            LearntRun(p, 1, time / p, time / p, {"N": size}, time / p, 0.0, 1.01)
            for p in (2, 4)
            for size, time in times.items()
        )
        signature = replace(signatures.from_text(TEXT), learnt=LearntRuns(False, runs))
        found = predicted(signature, 2, settings={"N": 400}).runtime
        return math.log(found.high / found.low)

    straight = {100.0: 1.0, 141.0: 2.8, 200.0: 8.0}
    bent = {100.0: 1.0, 141.0: 4.0, 200.0: 8.0}  # as fast beyond a cache, on the whole
    assert width(bent) > 1.3 * width(straight)


def test_more_work_for_a_core_than_any_run_had_may_take_longer_rather_than_shorter() -> None:
    """It may not fit into caches that held that of the runs."""

    def skew(processes: int, size: float) -> float:
        found = predicted(learnt(IDEAL, GOOD), processes, settings={"N": size}).runtime
        return math.log(found.high / found.value) / math.log(found.value / found.low)

    assert skew(8, 400.0) > 1.3  # 8 s of work for a core; the runs had .125 to .5 s
    assert skew(64, 200.0) == pytest.approx(1.0, abs=0.25)  # .125 s


def test_more_work_is_never_faster_than_less_was_on_as_many_cores() -> None:
    slow = {place: 1.4 * value for place, value in IDEAL.items()}
    fast = replace(learnt(slow), constants={"t": replace(learnt(slow).constants["t"], value=1e-6)})
    found = predicted(fast, 8, settings={"N": 101})
    assert found.runtime.value >= slow[8, 1]
    assert found.runtime.low >= slow[8, 1] * (1 - 1e-9)
    assert found.runtime.high > found.runtime.low


def test_a_run_that_waited_for_cpus_is_no_bound() -> None:
    signature = learnt(IDEAL, GOOD)
    assert signature.learnt is not None
    runs = tuple(
        replace(run, runtime=20 / 8, ideal=20 / 8, waited=0.5) if run.processes == 8 else run
        for run in signature.learnt.runs
    )
    disturbed = replace(signature, learnt=replace(signature.learnt, runs=runs))
    assert predicted(disturbed, 8, settings={"N": 101}).runtime.value < 10 / 8


def test_a_speed_up_stays_below_the_ratio_of_the_cores_and_what_caches_allow() -> None:
    steep = {(p, 1): 1 / p**1.5 for p in (2, 4, 8)}
    program = signatures.from_text(TEXT.replace("/P/T", "/P**3")).program
    signature = learnt(steep, dict.fromkeys(steep, 1.3), written=lambda p, t: 1 / p**3 / t)
    found = predicted(replace(signature, program=program), 64)
    assert found.runtime.low >= 0.99 * steep[8, 1] * 8 / 64 / 2


def test_threads_are_not_offered_without_parallel_regions() -> None:
    found = sweep(learnt(IDEAL, GOOD), MACHINE, [16])
    assert [one.split for one in found.candidates] == [(16, 1)]
    assert {one.why for one in found.refused} >= {
        "solver cannot run with 2 threads: none of the runs that it was learnt from has a parallel "
        "region"
    }


def test_nothing_is_certain_with_few_numbers_of_threads_and_ties_are_shown_in_doubt() -> None:
    few = sweep(learnt(IDEAL, GOOD, openmp=True), MACHINE, [16])
    assert max(one.probability_best or 0 for one in few.candidates) <= 0.9
    trusted, doubted = (
        sweep(learnt(IDEAL, dict.fromkeys(IDEAL, error), openmp=True), MACHINE, [16])
        for error in (1.01, 1.9)
    )
    assert doubted.learnt is not None
    assert doubted.learnt["doubts"]
    assert len(doubted.choices[0].tied) >= len(trusted.choices[0].tied)
    assert doubted.choices[0].doubt is not None


def test_changes_of_program_and_machine_are_relative_to_the_anchored_run() -> None:
    study = study_of(
        learnt({place: 1.3 * value for place, value in IDEAL.items()}), MACHINE, {}, 0, 0
    )
    assert isinstance(study, LearntStudy)
    placement = study.admit(16, 1)
    one, other = (
        study.run(placement, study.sources(factors, draws=0)).modelled.runtime
        for factors in ({}, {"constants.t": 2.0})
    )
    assert other / one == pytest.approx(2, rel=0.01)
