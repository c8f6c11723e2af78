"""What a change of the number of threads tells."""

from __future__ import annotations

import math

import pytest

from popmodel.fit.samples import Sample
from popmodel.fit.threads import overhead, saturation
from popmodel.model.terms.memory import bandwidth, shared_time

COUNTS = (1, 2, 4, 8, 16)


def closed_queue(demand: float, threads: int, rounds: int = 64) -> float:
    """Time of a round by exact mean value analysis: think, then use the one memory server."""
    think, length = 1 - demand, 0.0
    response = 0.0
    for customers in range(1, threads + 1):
        response = demand * (1 + length)
        length = customers * response / (think + response)
    return rounds * (think + response) / threads / rounds


@pytest.mark.parametrize("demand", [0.05, 0.2, 0.5])
def test_the_demand_of_a_closed_queue_is_recovered(demand: float) -> None:
    samples = [Sample(1, t, 3 * closed_queue(demand, t), {}, 0.02) for t in (1, 2, 4, 8, 16, 32)]
    found = saturation(samples)
    assert found.demand.low <= demand <= found.demand.high
    assert found.demand.value == pytest.approx(demand, rel=0.15)
    assert found.alone.value == pytest.approx(3, rel=0.05)


def test_the_law_is_that_of_the_model_for_loops_that_only_move_data() -> None:
    b1, bsat, q = 10.0, 40.0, 3.0
    samples = []
    for t in COUNTS:
        transfers = 1 / t
        contended = transfers * t * b1 / bandwidth(t, b1, bsat, q)
        samples.append(
            Sample(1, t, float(shared_time(transfers, transfers, contended, q)), {}, 0.001)
        )
    found = saturation(samples)
    assert found.demand.value == pytest.approx(b1 / bsat, rel=0.02)
    assert found.told
    assert found.at(32) == pytest.approx(b1 / bsat, rel=0.02)


def test_a_serial_part_is_not_taken_for_saturation() -> None:
    found = saturation([Sample(1, t, 0.1 + 1 / t, {}, 0.003) for t in COUNTS])
    assert not found.told
    assert found.notes == ("a serial part fits better than a memory that saturates",)


def test_work_that_scales_has_no_demand() -> None:
    found = saturation([Sample(1, t, 2 / t, {}, 0.01) for t in COUNTS])
    assert found.demand.low == 0.0
    assert found.demand.high < 0.07
    assert found.notes == ("a serial part fits as well as a memory that saturates",)


def test_two_thread_counts_tell_nothing_but_the_demand_itself() -> None:
    found = saturation([Sample(1, 1, 1.0), Sample(1, 4, 0.5)])
    assert found.demand.origin == "assumed"
    assert found.notes == ("2 thread counts do not tell saturation from a serial part",)


def test_only_threads_may_differ() -> None:
    with pytest.raises(ValueError, match="differ in their threads only"):
        saturation([Sample(1, 1, 1.0), Sample(2, 2, 1.0)])


@pytest.mark.parametrize(
    ("a", "b", "d"), [(2e-6, 1e-6, 0.0), (2e-6, 0.0, 3e-7), (0.0, 1e-6, 2e-7), (5e-6, 0.0, 0.0)]
)
def test_overheads_of_constructs_are_recovered(a: float, b: float, d: float) -> None:
    samples = [Sample(1, t, a + b * math.log2(t) + d * t, {}, 0.002) for t in (2, 4, 8, 16, 32)]
    found = overhead(samples)
    assert found.at(1, 64).value == pytest.approx(a + 6 * b + 64 * d, rel=0.02)
