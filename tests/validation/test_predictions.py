"""What is compared of a prediction."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from popmodel.base.values import plain
from popmodel.machines.profile import Profile, load
from popmodel.model import signatures
from popmodel.model.uncertainty import Calibration, Estimate
from popmodel.prediction.prediction import predict
from popmodel.runs.measurement import LEAST_NOISE, NOISE_OF_LOSS, deviation_of_loss
from popmodel.validation.predictions import (
    from_document,
    from_prediction,
    metrics_of_new_run,
    of_new_run,
    terms_of_new_run,
)

END = 1.6448536269514715


@pytest.fixture(scope="module")
def machine() -> Profile:
    return load("sandybridge-fdr")


def test_the_interval_of_a_new_run_is_that_of_the_sum_of_both_spreads() -> None:
    mean, noise = 0.04, 0.03
    found = of_new_run(
        Estimate(2.0, 2.0 * math.exp(-END * mean), 2.0 * math.exp(END * mean)), noise
    )
    drawn = np.random.default_rng(1).normal(0, mean, 400_000)
    drawn += np.random.default_rng(2).normal(0, noise, 400_000)
    drawn_ends = 2.0 * np.exp(np.quantile(drawn, [0.05, 0.95]))
    assert (found.low, found.high) == pytest.approx(tuple(drawn_ends), rel=1e-3)
    assert found.value == 2.0


def test_the_two_sides_are_widened_for_themselves() -> None:
    found = of_new_run(Estimate(1.0, 1.0, math.e), 1 / END)
    assert (found.low, found.high) == pytest.approx((1 / math.e, math.exp(math.sqrt(2))))


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_what_has_no_interval_gets_none(noise: float) -> None:
    assert of_new_run(Estimate(2.0), noise) == Estimate(2.0)


def additive(**values: Estimate) -> dict[str, dict[str, Estimate]]:
    return {"hybrid-additive": values}


def test_an_efficiency_of_a_new_run_is_wider_by_what_it_varies() -> None:
    mean = Estimate(0.9, 0.88, 0.91)
    deviation = 0.02 * math.hypot(NOISE_OF_LOSS * 0.1, LEAST_NOISE)

    (found,) = metrics_of_new_run(additive(process_load_balance=mean), 0.02)[
        "hybrid-additive"
    ].values()

    assert found.value == mean.value
    assert found.low == pytest.approx(0.9 - math.hypot(0.02, END * deviation))
    assert found.high == pytest.approx(0.9 + math.hypot(0.01, END * deviation))


def test_an_efficiency_of_a_new_run_stays_between_its_bounds() -> None:
    mean = Estimate(0.999, 0.99, 0.9995)

    found = metrics_of_new_run(additive(process_load_balance=mean), 0.05)["hybrid-additive"]

    assert found["process_load_balance"].high == 1.0


def test_metrics_that_nobody_knows_stay_as_they_are() -> None:
    means = {"of-another-version": {"a": Estimate(0.5, 0.4, 0.6)}}

    assert metrics_of_new_run(means, 0.02) == means


def test_terms_of_a_new_run_vary_as_losses_and_useful_time_as_the_runtime() -> None:
    means = {"useful": Estimate(8.0, 8.0, 8.0), "transfer": Estimate(2.0, 2.0, 2.0)}

    found = terms_of_new_run(means, 10.0, 0.02)

    assert found["useful"].high == pytest.approx(8.0 + END * 0.02 * 8.0)
    assert found["transfer"].low == pytest.approx(2.0 - END * 10.0 * deviation_of_loss(0.02, 0.2))


def test_a_term_of_a_new_run_is_not_negative() -> None:
    found = terms_of_new_run({"transfer": Estimate(0.01, 0.005, 0.02)}, 10.0, 0.05)

    assert found["transfer"].low == 0.0


def test_a_saved_prediction_is_compared_as_the_one_that_was_made(machine: Profile) -> None:
    signature = replace(
        signatures.load("stencil3d"),
        calibration=Calibration(
            *(machine.name, machine.digest, ("law.loops",)),
            *(np.array([0.5]), np.diag([0.3]), 0.5, 0.1),
            hull={"P": (1.0, 4.0), "T": (1.0, 1.0), "nodes": (1.0, 1.0), "N": (256.0, 256.0)},
            runs={"a1": "runs.csv:2"},
        ),
    )
    made = predict(signature, machine, 4, 1, {"N": 256})

    saved = from_document(json.loads(json.dumps(plain(made.to_dict()))))

    assert saved == from_prediction(made, 0.1)
