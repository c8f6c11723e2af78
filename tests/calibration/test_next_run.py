"""The next run to measure: possible, not measured yet, and as useful as is said."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from calibration.small import BODY, drawn, fitted, program, runs

from popmodel.calibration.fit import CalibrationFit, linear, log_runtimes, solved
from popmodel.calibration.next_run import NextRun, next_runs
from popmodel.calibration.problem import Configuration
from popmodel.model.laws import LOOPS
from popmodel.model.signature.program import Signature

SPLITS = ((1, 1), (1, 4), (4, 1))
TARGET = (16, 2)


def found(signature: Signature | None = None) -> CalibrationFit:
    rng = np.random.default_rng(0)
    one = signature or program(factor=4.0)
    return fitted(one, runs(one, drawn(rng, one), SPLITS, rng))


@pytest.fixture(scope="module")
def given_fit() -> CalibrationFit:
    return found()


@pytest.fixture(scope="module")
def proposed(given_fit: CalibrationFit) -> tuple[NextRun, ...]:
    return next_runs(given_fit, [TARGET], {})


def test_neither_what_was_measured_nor_the_target_is_proposed(
    proposed: tuple[NextRun, ...],
) -> None:
    splits = [(one.processes, one.threads) for one in proposed]
    assert 1 <= len(splits) <= 3
    assert len(set(splits)) == len(splits)
    assert not set(splits) & {*SPLITS, TARGET}


def test_a_run_is_no_larger_than_four_times_those_before(proposed: tuple[NextRun, ...]) -> None:
    assert all(one.processes * one.threads <= 16 for one in proposed)


def test_what_the_program_does_not_allow_is_not_proposed() -> None:
    signature = program(f'[limits]\nrequire = ["P <= 4"]\n{BODY}', 4.0)
    proposed = next_runs(found(signature), [(4, 4)], {})
    assert proposed
    assert all(one.processes <= 4 for one in proposed)


def test_it_costs_its_cores_for_its_runtime(
    given_fit: CalibrationFit, proposed: tuple[NextRun, ...]
) -> None:
    study = given_fit.problem.configurations[0].study
    for one in proposed:
        at = Configuration(study, study.admit(one.processes, one.threads), ())
        (log,), _ = log_runtimes(given_fit, [at])
        assert one.runtime == pytest.approx(math.exp(log))
        assert one.core_seconds == one.processes * one.threads * one.runtime
        assert one.parameters == {"N": 1e6}
        assert one.nodes == 1


def test_they_are_in_the_order_of_what_they_bring(proposed: tuple[NextRun, ...]) -> None:
    narrows = [round(one.narrows, 2) for one in proposed]
    assert narrows == sorted(narrows, reverse=True)
    assert all(0 < one < 1 for one in narrows)


def test_an_answer_becomes_as_much_narrower_as_was_said(
    given_fit: CalibrationFit, proposed: tuple[NextRun, ...]
) -> None:
    problem, study = given_fit.problem, given_fit.problem.configurations[0].study
    asked = Configuration(study, study.admit(*TARGET), ())
    before, after = [], []
    for one in proposed:
        (run,) = runs(problem.signature, {}, ((one.processes, one.threads),))
        more = replace(
            problem,
            runs=(*problem.runs, run),
            parts=(*problem.parts, problem.parts[0]),
            configurations=(
                *problem.configurations,
                Configuration(study, study.admit(one.processes, one.threads), (len(SPLITS),)),
            ),
        )
        # besides, the new run has for itself what its loops err by alone
        own = LOOPS.spread * problem.own * math.sqrt(LOOPS.own)
        at = linear(more, given_fit.means, given_fit.noise)
        new = at.run == len(SPLITS)
        at = at.blurred(new, math.hypot(given_fit.noise, own) / given_fit.noise)
        _, (slope,) = log_runtimes(given_fit, [asked])
        _, covariance = solved(at, given_fit.means, more.prior, more.bounds)
        before.append(math.sqrt(slope @ given_fit.covariance @ slope))
        after.append(math.sqrt(slope @ covariance @ slope))
    refitted = [1 - there / here for here, there in zip(before, after, strict=True)]

    assert [one.narrows for one in proposed] == pytest.approx(refitted, abs=0.02)


def test_without_a_possible_target_nothing_is_proposed(given_fit: CalibrationFit) -> None:
    assert next_runs(given_fit, [(10**6, 1)], {}) == ()
    assert next_runs(given_fit, [], {}) == ()


def test_where_all_is_known_nothing_is_proposed(given_fit: CalibrationFit) -> None:
    known = replace(given_fit, covariance=np.zeros_like(given_fit.covariance))
    assert next_runs(known, [TARGET], {}) == ()


def test_parameters_of_the_target_are_proposed_too(given_fit: CalibrationFit) -> None:
    proposed = next_runs(given_fit, [TARGET], {"N": 4e6})
    assert proposed
    assert {one.parameters["N"] for one in proposed} <= {1e6, 4e6}
