"""Loops whose iterations have a measured time instead of operations and traffic."""

import pytest
from model.demo import machine, point, program

from popmodel.model.kinds.costs import ItemCosts
from popmodel.model.kinds.loops import Parallel
from popmodel.prediction.prediction import predict

ITERATION = 1e-9
"""2 flop of a machine that does 2 in a cycle of 0.5 ns, and a cycle of loop control."""

TEMPLATE = """
[[program]]
loop = {{ count = 50, body = [
  {{ parallel = {{ trip = 1000, inner = 1000, {0}, instructions = 4 }} }},
  {{ parallel = {{ trip = 999, inner = 10, {0}, schedule = "static", chunk = 3 }} }},
  {{ serial = {{ trip = 1000, {0} }} }},
  {{ collective = {{ op = "allreduce", bytes = 80000 }} }},
] }}
"""
COUNTED = program(TEMPLATE.format("flops = 2"))
MEASURED = program(TEMPLATE.format(f"seconds = {ITERATION}"))


@pytest.mark.parametrize(("processes", "threads"), [(1, 1), (4, 2), (16, 1), (2, 8)])
def test_a_prediction_is_that_of_operations_that_take_as_long(processes: int, threads: int) -> None:
    counted, measured = (
        predict(signature, machine(), processes, threads) for signature in (COUNTED, MEASURED)
    )
    assert measured.runtime.value == pytest.approx(counted.runtime.value, rel=1e-12)
    for family, metrics in counted.metrics.items():
        for metric, estimate in metrics.items():
            found = measured.metrics[family][metric].value
            assert found == pytest.approx(estimate.value, rel=1e-9), (family, metric)
    assert (measured.agreement is None) == (processes == 1)  # the others were replayed


def test_a_measured_time_does_not_follow_the_clock_of_the_machine() -> None:
    fast = machine(core__freq__1=4e9)
    assert predict(MEASURED, fast, 1, 1).runtime.value == pytest.approx(
        predict(MEASURED, machine(), 1, 1).runtime.value
    )
    assert predict(COUNTED, fast, 1, 1).runtime.value < 0.9 * (
        predict(COUNTED, machine(), 1, 1).runtime.value
    )


@pytest.mark.parametrize("threads", [1, 2, 4, 8])
def test_a_measured_time_with_its_traffic_saturates_as_counts_that_take_as_long(
    threads: int,
) -> None:
    counted = ItemCosts(flops=4, bytes={"MEM": 64}, mode="sum")
    one_core = 3 / 2e9 + 64 / 1e10  # with a cycle of loop control
    measured = ItemCosts(flops=4, bytes={"MEM": 64}, seconds=one_core)
    here = point(machine(), 1, threads)
    first, second = (
        Parallel("loop", 1.0, 800, 10, one, {}).work(here) for one in (counted, measured)
    )
    assert second.share == pytest.approx(first.share)
    assert second.single_thread == pytest.approx(8000 * one_core)
    assert second.memory_bytes == first.memory_bytes
    alone = Parallel("loop", 1.0, 800, 10, ItemCosts(seconds=one_core), {}).work(here)
    assert alone.share == pytest.approx(8000 / threads * one_core)
