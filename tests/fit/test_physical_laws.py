"""Laws whose form physics gives: growth of imbalance, and what a change of threads tells."""

import math

import numpy as np
import pytest

from popmodel.fit.physical_laws import growth, overhead, saturation
from popmodel.fit.samples import Sample
from popmodel.model.terms.compute import bandwidth, shared_time


@pytest.mark.parametrize("exponent", [0.0, 0.2, 0.5])
def test_a_power_of_processes_is_recovered(exponent: float) -> None:
    found = growth([Sample(p, 1, 0.03 * (p / 16) ** exponent) for p in (4, 16, 64, 256)])
    assert found.exponent.value == pytest.approx(exponent, abs=0.03)
    assert found.exponent.low <= exponent <= found.exponent.high
    grown = found.cv.value * (1024 / found.reference_processes) ** found.exponent.value
    assert grown == pytest.approx(0.03 * 64**exponent, rel=0.12)
    assert found.exponent.origin == "fit"
    assert found.notes == ()


def test_averages_of_fewer_cells_vary_more() -> None:
    rng = np.random.default_rng(1)
    cells = 1 + 0.4 * rng.normal(size=2**16)
    samples = []
    for processes in (4, 16, 64, 256):
        work = cells.reshape(processes, -1).mean(axis=1)
        samples.append(Sample(processes, 1, float(work.std() / work.mean())))
    found = growth(samples)
    assert found.exponent.low <= 0.5 <= found.exponent.high
    assert found.exponent.value > 0.3


def test_one_number_of_processes_leaves_the_growth_open() -> None:
    found = growth([Sample(16, 1, 0.05)])
    assert (found.exponent.low, found.exponent.high) == (0.0, 0.5)
    assert found.exponent.origin == "assumed"
    assert found.cv.origin == "trace"
    assert found.notes == ("known at P = 16 only: the growth of imbalance is assumed",)
    assert found.cv.low < 0.05 < found.cv.high


def test_two_small_runs_hardly_move_what_was_assumed() -> None:
    found = growth([Sample(2, 1, 0.02), Sample(4, 1, 0.06)])
    assert 0.25 < found.exponent.value < 0.35
    assert (found.exponent.low, found.exponent.high) == (pytest.approx(0.0, abs=0.1), 0.5)


def test_intervals_hold_the_truth_of_programs_as_they_are_assumed() -> None:
    rng = np.random.default_rng(4)
    held = 0
    for _ in range(400):
        exponent = float(np.clip(rng.normal(0.25, 0.15), 0, 0.5))
        samples = []
        for processes in (4, 8, 16):
            each = rng.normal(1, 0.05 * processes**exponent / 4, processes)
            samples.append(Sample(processes, 1, float(each.std(ddof=1) / each.mean())))
        found = growth(samples)
        held += found.exponent.low <= exponent <= found.exponent.high
    assert 0.85 <= held / 400 <= 0.98


def test_growth_faster_than_independent_cells_is_said() -> None:
    found = growth([Sample(p, 1, 1e-4 * p, {}, 0.01) for p in (16, 64, 256, 1024)])
    assert found.exponent.value == 0.5
    assert found.notes[0].startswith("imbalance grows as P**1, outside of 0 to 1/2")
    assert found.notes[1].startswith("imbalance follows no power of P")


def test_no_imbalance_at_all_stays_none() -> None:
    assert growth([Sample(4, 1, 0.0), Sample(16, 1, 0.0)]).cv.value == 0.0


def test_no_imbalance_at_some_numbers_is_left_out_and_said() -> None:
    found = growth([Sample(2, 1, 0.0), Sample(4, 1, 0.02), Sample(16, 1, 0.02)])
    assert found.notes == ("no imbalance at P = 2, left out",)


def test_one_process_has_no_imbalance() -> None:
    with pytest.raises(ValueError, match="imbalance between processes needs a run with more"):
        growth([Sample(1, 1, 0.0)])


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
    assert found.is_tested
    assert found.at(32) == pytest.approx(b1 / bsat, rel=0.02)


def test_a_serial_part_is_not_taken_for_saturation() -> None:
    found = saturation([Sample(1, t, 0.1 + 1 / t, {}, 0.003) for t in COUNTS])
    assert not found.is_tested
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
