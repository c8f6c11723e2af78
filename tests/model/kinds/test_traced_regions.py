"""Parallel regions of which no more is known than a trace tells."""

import pytest
from model.demo import machine, program

from popmodel.prediction.prediction import PredictedRun, predict

REGION = """
[[program]]
loop = {{ count = 10 }}
[[program.body]]
parallel = {{ name = "region", trip = "T", seconds = "4e-3 / T", {} }}
"""


def predicted(more: str, threads: int = 4) -> PredictedRun:
    return predict(program(REGION.format(more)), machine(), 1, threads, draws=0)


def metric(found: PredictedRun, name: str) -> float:
    return found.metrics["hybrid-additive"][name].value


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_one_iteration_for_each_thread_is_shared_evenly(threads: int) -> None:
    assert predicted("overhead = 0", threads).runtime.value == pytest.approx(4e-2 / threads)


def test_the_slowest_thread_has_its_part_more() -> None:
    found = predicted("overhead = 0, thread_imbalance = 0.25")
    assert found.runtime.value == pytest.approx(1e-2 * 1.25)
    assert metric(found, "openmp_load_balance") == pytest.approx(1 - 0.25 / 1.25)


def test_overhead_stands_in_place_of_constructs() -> None:
    found = predicted("overhead = 1e-4")
    assert found.runtime.value == pytest.approx(1e-2 + 10 * 1e-4)
    assert found.time["OpenMP overhead"].value == pytest.approx(1e-3)
    # those of the machine otherwise
    assert predicted("chunk = 1").time["OpenMP overhead"].value == pytest.approx(10 * 3e-7)


def test_threads_synchronise_for_a_part_of_what_they_idle() -> None:
    found = predicted("overhead = 1e-3, thread_imbalance = 0.25, synchronisation = 0.3")
    runtime = 10 * (1.25e-3 + 1e-3)
    idle = 10 * (0.25e-3 + 1e-3)
    assert found.runtime.value == pytest.approx(runtime)
    assert metric(found, "openmp_synchronisation_efficiency") == pytest.approx(
        1 - 0.3 * idle / runtime
    )
    assert metric(found, "openmp_scheduling_efficiency") == pytest.approx(1 - 0.7 * idle / runtime)


def test_constructs_say_themselves_what_is_synchronisation() -> None:
    constructs = "constructs = { parallel_for = 1, barrier = 2 }"
    plain, part = (
        predicted(f"{constructs}, thread_imbalance = 0.25{more}")
        for more in ("", ", synchronisation = 1")
    )
    more = metric(plain, "openmp_synchronisation_efficiency") - metric(
        part, "openmp_synchronisation_efficiency"
    )
    assert more == pytest.approx(10 * 0.25e-3 / plain.runtime.value)
