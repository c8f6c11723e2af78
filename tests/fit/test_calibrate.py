"""Predictions with a calibrated signature: they hold what was measured, and know their reach."""

from dataclasses import replace

import numpy as np
import pytest
from fit.small import BODY, CONSTANTS, MACHINE, SPLITS, drawn, program, runs
from model.demo import flat, machine

from popmodel.fit.calibrate import Calibrated, calibrate
from popmodel.machines.quantity import END
from popmodel.model.predictor import Study
from popmodel.model.signature.application import Signature
from popmodel.model.symbols import LOOPS
from popmodel.model.uncertainty import TRUSTED, Estimate, drawn_only, estimate, spread
from popmodel.prediction.prediction import predict
from popmodel.runs.measurement import MeasuredRow


def made(seed: int = 2) -> list[MeasuredRow]:
    rng = np.random.default_rng(seed)
    names = ("law.loops", *(f"law.loops of {p} x {t}" for p, t in SPLITS))
    law = {name: float(rng.standard_normal()) for name in names}
    return runs(program(), drawn(rng, program()), rng=rng, errors=law, metrics=True)


@pytest.fixture(scope="module")
def found() -> Calibrated:
    return calibrate(program(), MACHINE, made())


def foretold(one: Calibrated, split: tuple[int, int], draws: int = 400) -> Estimate:
    study = Study(one.signature, MACHINE, {}, draws, 0)
    placement = study.admit(*split)
    runtime = study.outcome(placement, study.sources()).modelled.runtime
    return study.new_run(runtime, study.sources()) if draws else estimate(runtime)


def test_intervals_of_runs_hold_those_that_were_measured(found: Calibrated) -> None:
    held = []
    for run in found.runs:
        said = foretold(found, (run.processes, run.threads))
        assert said.low is not None
        assert said.high is not None
        held.append(said.low <= run.runtime <= said.high)
        assert said.value == pytest.approx(run.runtime, rel=0.05)
    assert sum(held) >= len(held) - 1


def test_constants_have_the_values_and_intervals_that_were_learnt(found: Calibrated) -> None:
    known = found.signature.calibration
    assert known is not None
    scores = found.fit.means
    deviations = found.error_scale * np.sqrt(np.diag(found.fit.covariance))
    for name, before in found.before.constants.items():
        number = found.fit.problem.names.index(f"constants.{name}")
        after = found.signature.constants[name]
        ends = scores[number] + END * deviations[number] * np.array([-1.0, 0.0, 1.0])
        assert [after.low, after.value, after.high] == pytest.approx(list(spread(before, ends)))
        assert after.origin == "fit"
        assert known.means[known.index[f"constants.{name}"]] == 0
        assert known.deviations[known.index[f"constants.{name}"]] == pytest.approx(1)


def test_correlations_are_those_of_the_fit(found: Calibrated) -> None:
    known = found.signature.calibration
    assert known is not None
    numbers = [found.fit.problem.names.index(name) for name in known.names]
    expected = found.fit.covariance[np.ix_(numbers, numbers)]
    scale = np.sqrt(np.diag(expected))
    np.testing.assert_allclose(
        known.covariance / np.outer(known.deviations, known.deviations),
        expected / np.outer(scale, scale),
        atol=1e-6,
    )


def test_what_no_run_has_told_widens_the_interval_where_it_may_be() -> None:
    """No team of these runs is on two memory domains."""
    profile = machine()
    splits = ((1, 1), (4, 1), (2, 4), (8, 1), (16, 2), (4, 2))
    signature = program()
    made_ = runs(signature, {}, splits, np.random.default_rng(1), metrics=True, profile=profile)
    one = calibrate(signature, profile, made_).signature

    known = one.calibration
    assert known is not None
    assert known.means[known.index["residual.domains"]] == pytest.approx(0, abs=1e-12)
    assert known.deviations[known.index["residual.domains"]] == pytest.approx(1)
    without = replace(one, calibration=known.only(set(known.names) - {"residual.domains"}))

    def upper(signature: Signature, split: tuple[int, int]) -> float:
        study = Study(signature, profile, {}, 400, 0)
        said = estimate(study.run(study.admit(*split), study.sources()).modelled.runtime)
        assert said.high is not None
        return float(np.log(said.high / said.value))

    assert upper(one, (2, 8)) > 1.2 * upper(without, (2, 8))
    assert upper(one, (4, 4)) == pytest.approx(upper(without, (4, 4)), rel=0.05)


def test_splits_that_are_as_far_share_what_grows_with_the_distance(found: Calibrated) -> None:
    study = Study(found.signature, MACHINE, {}, 400, 0)
    drawn_ = study.sources()

    def factors(split: tuple[int, int]) -> np.ndarray:
        form = study.run(study.admit(*split), drawn_).form
        common = drawn_only(np.asarray(drawn_.scores("law.loops")))
        logs = np.log(drawn_only(np.asarray(form.factor("law.loops"))))
        return np.asarray(logs - LOOPS.spread * np.sqrt(1 - LOOPS.own) * common)

    near = np.corrcoef(factors((16, 4)), factors((8, 4)))[0, 1]
    far = np.corrcoef(factors((64, 2)), factors((64, 1)))[0, 1]
    assert abs(near) < 0.2
    assert far > 0.4


def test_intervals_grow_with_the_distance_from_the_runs(found: Calibrated) -> None:
    def width(split: tuple[int, int]) -> float:
        said = foretold(found, split)
        assert said.low is not None
        assert said.high is not None
        return float(np.log(said.high / said.low))

    assert width((16, 2)) < width((64, 2)) < width((128, 2))


def test_far_beyond_the_runs_there_is_no_interval(found: Calibrated) -> None:
    near = predict(found.signature, MACHINE, int(16 * TRUSTED), 1, draws=60)
    far = predict(found.signature, MACHINE, int(32 * TRUSTED), 1, draws=60)
    assert near.runtime.low is not None
    assert far.runtime.low is None
    assert "calibrated" in far.runtime.why
    assert far.runtime.value > 0


def test_on_another_machine_only_the_program_is_known(found: Calibrated) -> None:
    other = flat(32)
    assert other.digest != MACHINE.digest
    study = Study(found.signature, other, {}, 60, 0)
    assert study.calibration is not None
    assert set(study.calibration.names) == {f"constants.{name}" for name in CONSTANTS}
    placement = study.admit(4, 1)
    drawn_ = study.sources()
    assert study.new_run(study.run(placement, drawn_).modelled.runtime, drawn_).low is None


def test_runs_that_name_a_parameter_or_leave_it_are_of_one_configuration() -> None:
    first = made()
    named = replace(first[0], parameters={"N": 1e6})
    found = calibrate(program(), MACHINE, [*first, named])
    assert len(found.left_out) == len(SPLITS)
    assert found.fit.problem.configurations[0].runs == (0, len(first))


@pytest.mark.parametrize(
    ("formula", "constants"),
    [
        ("rate * count", {"rate": 2e-9, "count": 3.0}),
        ("rate / count", {"rate": 2e-9, "count": 3.0}),
        ("rate * count * more", {"rate": 2e-9, "count": 3.0, "more": 0.5}),
    ],
)
def test_what_only_acts_together_is_not_told_of_each(
    formula: str, constants: dict[str, float]
) -> None:
    signature = program(BODY.replace('"rate"', f'"{formula}"'), 8.0, **CONSTANTS | constants)
    true = {name: value * 1.2 for name, value in constants.items()}
    found = calibrate(signature, MACHINE, runs(signature, true, metrics=True))

    told = {one.name.removeprefix("constants."): one for one in found.inputs}
    assert not any(told[name].is_identifiable for name in constants)
    assert told["master"].is_identifiable
    for name, value in true.items():  # and its interval stays as wide as that asks for
        after = found.signature.constants[name]
        assert after.low < value < after.high


@pytest.mark.parametrize(("factor", "outside"), [(6.0, ["constants.rate"]), (1.5, [])])
def test_what_is_far_outside_of_its_interval_is_at_a_bound(
    factor: float, outside: list[str]
) -> None:
    slow = [
        replace(run, runtime=run.runtime * factor)
        for run in runs(program(), {}, ((1, 1), (1, 2), (1, 4)))
    ]
    found = calibrate(program(), MACHINE, slow)
    assert [one.name for one in found.inputs if one.at_bound] == outside
