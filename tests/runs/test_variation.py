"""How much efficiencies vary from run to run."""

from __future__ import annotations

import math

import pytest

from popmodel.efficiency.family import Family
from popmodel.efficiency.hierarchy import load_families
from popmodel.runs.variation import LEAST, LOSS, of_loss, of_metric

NOISE = 0.02
LEAVES = {
    "process_load_balance": 0.95,
    "process_transfer_efficiency": 0.97,
    "process_serialisation_efficiency": 0.99,
}


@pytest.fixture(scope="module")
def family() -> Family:
    return load_families()["hybrid-additive"]


def test_a_loss_varies_relative_to_itself_and_at_least_by_a_part_of_the_runtime() -> None:
    assert of_loss(NOISE, 0.0) == pytest.approx(LEAST * NOISE)
    assert of_loss(NOISE, 0.9) == pytest.approx(LOSS * NOISE * 0.9, rel=0.01)


def test_an_efficiency_varies_as_its_leaves_together(family: Family) -> None:
    values = {**LEAVES, "process_communication_efficiency": 0.96, "process_efficiency": 0.91}
    together = math.hypot(*(1 - value for value in LEAVES.values()))

    found = of_metric(NOISE, family, "process_efficiency", values)

    assert found == pytest.approx(of_loss(NOISE, together))


def test_what_is_not_known_in_parts_is_a_leaf(family: Family) -> None:
    values = {"process_communication_efficiency": 0.96, "process_transfer_efficiency": 0.97}

    found = of_metric(NOISE, family, "process_communication_efficiency", values)

    assert found == pytest.approx(of_loss(NOISE, 0.04))


def test_a_comparison_with_a_reference_varies_as_a_ratio_of_two_times() -> None:
    scaling = load_families()["scaling"]

    found = of_metric(NOISE, scaling, "computation_scaling", {"computation_scaling": 0.8})

    assert found == pytest.approx(math.sqrt(2) * NOISE * 0.8)


def test_without_noise_nothing_varies(family: Family) -> None:
    assert of_metric(0.0, family, "process_load_balance", LEAVES) == 0.0
