"""What runs identify: products and ratios are named, what no run depends on is not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from calibration.small import BODY, CONSTANTS, MACHINE, fitted, program, runs

from popmodel.calibration.fit import Fit
from popmodel.calibration.identifiability import Identifiability, Tie, identifiability
from popmodel.machine.profile import Profile
from popmodel.runs.measurement import Measurement

WIDE = 8.0
"""Factor to either side: far more than laws leave open."""


def told(body: str, metrics: bool = True, **constants: float) -> tuple[Identifiability, Fit]:
    signature = program(body, WIDE, **constants)
    true = {name: value * 1.5 for name, value in constants.items()}
    found = fitted(signature, runs(signature, true, metrics=metrics))
    return identifiability(found), found


def of_constants(found: Identifiability) -> list[Tie]:
    """Ties between constants only."""
    return [one for one in found.ties if all(name.startswith("constants.") for name in one.names)]


@pytest.mark.parametrize(
    ("formula", "constants", "together"),
    [
        ("rate * count", {"rate": 2e-9, "count": 3.0}, "product"),
        ("rate / count", {"rate": 2e-9, "count": 3.0}, "ratio"),
        ("rate * count * more", {"rate": 2e-9, "count": 3.0, "more": 0.5}, "product"),
        ("rate * count / more", {"rate": 2e-9, "count": 3.0, "more": 0.5}, "combination"),
    ],
)
def test_what_only_acts_together_is_named(
    formula: str, constants: dict[str, float], together: str
) -> None:
    body = BODY.replace('"rate"', f'"{formula}"')
    found, _ = told(body, **CONSTANTS | constants)

    (tie,) = of_constants(found)
    assert set(tie.names) == {f"constants.{name}" for name in constants}
    assert tie.together == together
    assert (tie.correlation > 0) == (together == "ratio") or len(constants) > 2
    for one in found.inputs:
        assert one.is_tied == (one.name in tie.names)
        assert not (one.is_tied and one.is_identifiable)


def test_a_factor_that_is_known_does_not_tie_one_that_is_not() -> None:
    body = BODY.replace('"rate"', '"rate * count"').replace('"1"', '"count"')
    signature = program(body, WIDE, **CONSTANTS, count=3.0)
    known = replace(signature.constants["count"], low=2.9, high=3.1)
    signature = replace(signature, constants={**signature.constants, "count": known})
    found = identifiability(fitted(signature, runs(signature, {}, metrics=True)))

    assert of_constants(found) == []
    assert {one.name: one for one in found.inputs}["constants.rate"].is_identifiable


def test_constants_that_act_apart_are_identified_each() -> None:
    found, _ = told(BODY, **CONSTANTS)

    learnt = {one.name: one for one in found.inputs}
    assert of_constants(found) == []
    for name in CONSTANTS:
        one = learnt[f"constants.{name}"]
        assert one.is_identifiable
        assert 0.5 < one.learnt < 1
        assert not one.at_bound


def test_one_constant_alone_is_identified() -> None:
    body = '[[program]]\nparallel = { trip = "N / P", seconds = "rate" }\n'
    signature = program(body, WIDE, rate=2e-9)
    found = identifiability(fitted(signature, runs(signature, {"rate": 3e-9})))

    (one,) = [one for one in found.inputs if one.name.startswith("constants.")]
    assert one.is_identifiable
    assert found.ties == ()


def test_a_constant_that_enters_nowhere_is_not_listed() -> None:
    found, _ = told(BODY, **CONSTANTS, other=1.0)
    names = [one.name for one in found.inputs]
    assert "constants.other" not in names


def test_inputs_are_those_that_all_splits_have() -> None:
    found, fit = told(BODY, **CONSTANTS)
    names = [one.name for one in found.inputs]
    assert names == [
        name
        for name in fit.problem.names
        if name.startswith(("constants.", "law.")) and " of " not in name
    ]


def test_the_condition_is_that_of_what_the_runs_tell() -> None:
    _, found = told(BODY, **CONSTANTS)
    at, prior = found.linear, found.problem.prior
    rng = np.random.default_rng(0)
    found = replace(found, linear=replace(at, slope=rng.normal(size=at.slope.shape)))
    listed = [one.name for one in identifiability(found).inputs]
    columns = [found.problem.names.index(name) for name in listed]
    others = np.setdiff1d(np.arange(len(prior)), columns)
    open_ = found.linear.slope[:, others] * prior[others]
    scaled = found.linear.slope[:, columns] * prior[columns]
    noise = np.eye(len(at.gap)) + open_ @ open_.T
    values = np.linalg.eigvalsh(scaled.T @ np.linalg.inv(noise) @ scaled)

    assert identifiability(found).condition == pytest.approx(math.sqrt(values[-1] / values[0]))


def test_the_condition_is_infinite_where_a_direction_is_not_seen() -> None:
    signature = program(BODY, WIDE, **CONSTANTS)
    few = runs(signature, {}, ((4, 1), (8, 1)))  # two numbers, five scores
    tied = runs(signature, {}, metrics=True)  # the size of messages, and the law of messages
    for made in (few, tied):
        assert identifiability(fitted(signature, made)).condition == math.inf


def slow(factor: float) -> list[Measurement]:
    signature = program()
    return [
        replace(run, runtime=run.runtime * factor)
        for run in runs(signature, {}, ((1, 1), (1, 2), (1, 4)))
    ]


def test_what_is_far_outside_of_its_interval_is_at_a_bound() -> None:
    found = identifiability(fitted(program(), slow(6.0)))
    assert [one.name for one in found.inputs if one.at_bound] == ["constants.rate"]
    found = identifiability(fitted(program(), slow(1.5)))
    assert [one.name for one in found.inputs if one.at_bound] == []


def test_inputs_whose_interval_moves_the_answer_are_named() -> None:
    # an interval that is far too narrow holds the answer back
    signature = program(BODY, 1.02, **CONSTANTS)
    made = runs(signature, {"rate": 4e-9}, metrics=True)
    found = identifiability(fitted(signature, made))
    moved = dict(found.moved)
    assert moved == {} or "constants.rate" in moved
    assert list(moved.values()) == sorted(moved.values(), key=lambda one: -abs(one))


def test_runs_that_agree_with_what_was_stated_are_moved_by_nothing() -> None:
    found = identifiability(fitted(program(), runs(program(), {}, metrics=True)))
    assert found.moved == ()


def test_a_machine_of_which_all_is_known_is_not_listed(machine: Profile = MACHINE) -> None:
    assert not any(one.is_uncertain for one in machine.quantities.values())
    found, _ = told(BODY, **CONSTANTS)
    assert not any(one.name.startswith(("net.", "core.")) for one in found.inputs)
