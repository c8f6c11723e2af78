"""What a fit says of runs that it does not use: left out, offered terms, the next to measure."""

import math
from dataclasses import replace

import numpy as np
import pytest
from fit.small import BODY, CONSTANTS, SPLITS, drawn, fitted, program, runs
from scipy import stats

from popmodel.fit.cross_validation import left_out, next_runs, sizes_left_out, with_terms
from popmodel.fit.problem import Configuration
from popmodel.fit.scores import CalibrationFit, linear, log_runtimes, solved
from popmodel.machines.quantity import END
from popmodel.model.symbols import LOOPS
from popmodel.runs.measurement import MeasuredRow


def given_runs(seed: int = 3) -> list[MeasuredRow]:
    rng = np.random.default_rng(seed)
    law = {"law.loops": 0.5, "law.loops of 2 x 4": 1.0}
    return runs(program(), drawn(rng, program()), rng=rng, errors=law, metrics=True)


@pytest.fixture(scope="module")
def found() -> CalibrationFit:
    return fitted(program(), given_runs())


def refitted(found: CalibrationFit, without: set[int]) -> CalibrationFit:
    """A fit of its own to all configurations but some."""
    problem, means = found.problem, found.means
    kept = tuple(one for n, one in enumerate(problem.configurations) if n not in without)
    there = replace(problem, configurations=kept)
    for _ in range(8):
        at = linear(there, means, found.noise)
        means, covariance = solved(at, means, problem.prior, problem.bounds)
    return replace(found, problem=there, means=means, covariance=covariance, linear=at)


@pytest.mark.long(after=2)
@pytest.mark.parametrize("number", range(len(SPLITS)))
def test_what_is_foretold_is_what_a_fit_without_its_runs_says(
    found: CalibrationFit, number: int
) -> None:
    own = refitted(found, {number})
    (log,), (slope,) = log_runtimes(own, [found.problem.configurations[number]])
    deviation = math.sqrt(float(slope @ own.covariance @ slope) + found.noise**2)
    said = left_out(found)[number]

    assert abs(math.log(said.value) - log) < 0.1 * deviation
    assert said.deviation == pytest.approx(deviation, rel=0.1)


def test_in_a_linear_model_it_is_exactly_that(found: CalibrationFit) -> None:
    at, means, problem = found.linear, found.means, found.problem
    runtimes, slopes = found.runtimes
    for one, configuration in zip(left_out(found), problem.configurations, strict=True):
        # runs that vary without end are not there
        nothing = at.blurred(np.isin(at.run, configuration.runs), 1e9)
        scores, covariance = solved(nothing, means, problem.prior, problem.bounds)
        slope = slopes[one.configuration]
        value = runtimes[one.configuration] * math.exp(float(slope @ (scores - means)))
        assert one.value == pytest.approx(value)
        variance = float(slope @ covariance @ slope) + found.noise**2
        assert one.deviation == pytest.approx(math.sqrt(variance))


def test_density_is_that_of_the_normal_distribution(found: CalibrationFit) -> None:
    at, means, problem = found.linear, found.means, found.problem
    for one, configuration in zip(left_out(found), problem.configurations, strict=True):
        mine = np.isin(at.run, configuration.runs)
        precision = np.diag(problem.prior**-2.0) + at.slope[~mine].T @ at.slope[~mine]
        scores, _ = solved(at.only(~mine), means, problem.prior, problem.bounds)
        gap = at.gap[mine] - at.slope[mine] @ (scores - means)
        inside = at.slope[mine] @ np.linalg.inv(precision) @ at.slope[mine].T + np.eye(mine.sum())
        density = stats.multivariate_normal.logpdf(gap, cov=inside)
        constant = mine.sum() * 0.5 * math.log(2 * math.pi) - np.log(at.unit[mine]).sum()
        assert one.density == pytest.approx(density + constant)


def test_repeats_of_a_configuration_are_left_out_together() -> None:
    made = given_runs()
    rng = np.random.default_rng(4)
    twice = fitted(program(), [*made, *runs(program(), {}, SPLITS[:1], rng, metrics=True)])
    said = left_out(twice)
    assert len(said) == len(SPLITS)
    assert len(said[0].errors) == 2


def of_two_sizes(exponent: float) -> CalibrationFit:
    """Runs of two sizes, whose times grow as a power of N that the signature takes for 1."""
    made = []
    for size in (1e6, 4e6):
        rate = CONSTANTS["rate"] * (size / 1e6) ** (exponent - 1)
        some = runs(program(), {"N": size, "rate": rate}, metrics=True)
        made += [replace(one, parameters={"N": size}) for one in some]
    return fitted(program(), made)


def test_a_law_of_the_size_that_is_wrong_shows_where_sizes_are_left_out_only(
    found: CalibrationFit,
) -> None:
    assert sizes_left_out(found) == []
    one = of_two_sizes(1.4)
    alone = np.median([abs(each.errors[0]) for each in left_out(one)])
    sizes = np.median([abs(each.errors[0]) for each in sizes_left_out(one)])
    assert sizes > 3 * alone


def test_a_size_that_is_left_out_is_what_a_fit_without_it_says() -> None:
    one = of_two_sizes(1.0)
    every = one.problem.configurations
    group = [n for n, each in enumerate(every) if each.study.values["N"] == 4e6]
    logs, _ = log_runtimes(refitted(one, set(group)), [every[n] for n in group])
    said = {each.configuration: each for each in sizes_left_out(one)}
    for number, log in zip(group, logs, strict=True):
        assert abs(math.log(said[number].value) - log) < 0.2 * said[number].deviation


# -- residual terms: taken where the runs ask for them, as large as they are; else left out

LOG = "residual.log_processes"
DRAWS = 12
SMALL = """
[[program]]
loop = { count = 50 }
[[program.body]]
parallel = { trip = "N / P", seconds = "rate" }
[[program.body]]
collective = { op = "allreduce", bytes = 8 }
"""
LARGE = SMALL.replace("bytes = 8", "bytes = 4e3")
"""A collective that the signature does not have, of a size that a prior expects."""


def offered(seed: int, body: str) -> tuple[CalibrationFit, list[str]]:
    rng = np.random.default_rng(seed)
    splits = ((1, 1), (4, 1), (8, 1), (1, 8), (16, 2), (32, 1))
    names = ("law.loops", *(f"law.loops of {p} x {t}" for p, t in splits))
    law = {name: float(rng.standard_normal()) for name in names}
    signature = program(SMALL, rate=2e-8)
    true = drawn(rng, signature)
    made = runs(program(body, rate=2e-8), true, splits, rng, law, metrics=True)
    found, terms = with_terms(fitted(signature, made))
    return found, [one.name for one in terms if one.is_taken]


@pytest.mark.long
def test_a_collective_that_the_signature_lacks_is_taken_as_large_as_it_is() -> None:
    small, large = (
        runs(program(body, rate=2e-8), {}, ((8, 1),))[0].runtime for body in (SMALL, LARGE)
    )
    amplitude = (large - small) / 50 / math.log2(8)
    held = []
    for seed in range(DRAWS):
        found, taken = offered(seed, LARGE)
        assert taken == [LOG]
        number = found.problem.names.index(LOG)
        unit = found.problem.residuals[LOG]
        deviation = math.sqrt(found.covariance[number, number]) * unit
        value = found.means[number] * unit
        assert value == pytest.approx(amplitude, rel=0.3)
        assert deviation < 0.3 * amplitude
        held.append(abs(value - amplitude) < END * deviation)
    assert np.mean(held) >= 0.9


@pytest.mark.long
def test_nothing_is_taken_where_nothing_is_missing() -> None:
    assert np.mean([bool(offered(seed, SMALL)[1]) for seed in range(DRAWS)]) <= 0.1


# -- the next run: possible, not measured yet, and as useful as is said

THREE = ((1, 1), (1, 4), (4, 1))
TARGET = (16, 2)


@pytest.fixture(scope="module")
def few() -> CalibrationFit:
    one = program(factor=4.0)
    rng = np.random.default_rng(0)
    return fitted(one, runs(one, drawn(rng, one), THREE, rng))


def test_next_runs_are_new_and_not_too_large(few: CalibrationFit) -> None:
    proposed = next_runs(few, [TARGET], {})
    splits = {(one.processes, one.threads) for one in proposed}
    assert 1 <= len(splits) == len(proposed) <= 3
    assert not splits & {*THREE, TARGET}
    assert all(p * t <= 16 for p, t in splits)
    assert [one.core_seconds for one in proposed] == [
        one.processes * one.threads * one.runtime for one in proposed
    ]


def test_what_the_program_does_not_allow_is_not_proposed() -> None:
    signature = program(f'[limits]\nrequire = ["P <= 4"]\n{BODY}', 4.0)
    made = runs(signature, {}, THREE, np.random.default_rng(0))
    proposed = next_runs(fitted(signature, made), [(4, 4)], {})
    assert proposed
    assert all(one.processes <= 4 for one in proposed)


def test_an_answer_becomes_as_much_narrower_as_was_said(few: CalibrationFit) -> None:
    problem, study = few.problem, few.problem.configurations[0].study
    asked = Configuration(study, study.admit(*TARGET), ())
    proposed = next_runs(few, [TARGET], {})
    narrower = []
    for one in proposed:
        (run,) = runs(problem.signature, {}, ((one.processes, one.threads),))
        placement = study.admit(one.processes, one.threads)
        more = replace(
            problem,
            runs=(*problem.runs, run),
            parts=(*problem.parts, problem.parts[0]),
            configurations=(
                *problem.configurations,
                Configuration(study, placement, (len(THREE),)),
            ),
        )
        # besides, the new run has for itself what its loops err by alone
        own = LOOPS.spread * problem.own * math.sqrt(LOOPS.own)
        at = linear(more, few.means, few.noise)
        at = at.blurred(at.run == len(THREE), math.hypot(few.noise, own) / few.noise)
        _, (slope,) = log_runtimes(few, [asked])
        _, covariance = solved(at, few.means, more.prior, more.bounds)
        narrower.append(
            1 - math.sqrt((slope @ covariance @ slope) / (slope @ few.covariance @ slope))
        )

    assert [one.narrows for one in proposed] == pytest.approx(narrower, abs=0.02)


def test_without_a_possible_target_or_where_all_is_known_nothing_is_proposed(
    few: CalibrationFit,
) -> None:
    known = replace(few, covariance=np.zeros_like(few.covariance))
    assert next_runs(few, [(10**6, 1)], {}) == next_runs(few, [], {}) == ()
    assert next_runs(known, [TARGET], {}) == ()
