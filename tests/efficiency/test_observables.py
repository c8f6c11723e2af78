"""A run that makes no sense is refused, and what is missing has a reason."""

import json

import numpy as np
import pytest
from efficiency.builders import observables, runs
from hypothesis import given

from popmodel.base.errors import PopmodelError, UsageError
from popmodel.efficiency.family import AGGREGATES, REASONS
from popmodel.efficiency.observables import Observables


@pytest.mark.parametrize("runtime", [0.0, -1.0, float("nan"), float("inf")])
def test_a_run_without_time_is_refused(runtime: float) -> None:
    with pytest.raises(PopmodelError, match=r"the runtime is \S+ s: there is no time") as caught:
        observables([[0.0]], runtime)
    assert caught.value.hint == "choose a window in which the application runs"


@pytest.mark.parametrize(("bad", "shown"), [(float("nan"), "nan"), (-2.0, "-2")])
def test_numbers_that_are_no_times_are_refused(bad: float, shown: str) -> None:
    with pytest.raises(PopmodelError, match=f"useful of entry 1 is {shown}: times and counts must"):
        observables([[1.0], [bad]], 10, serial_useful=[1.0, 1.0])


def test_scalars_are_checked_too() -> None:
    with pytest.raises(PopmodelError, match="idle_serial is -1: times and counts must be finite"):
        observables([[1.0]], 10, idle_serial=-1.0)


def test_shapes_are_checked() -> None:
    with pytest.raises(ValueError, match=r"in_openmp has shape \(3,\), expected \(2,\)"):
        observables([[1.0], [1.0]], 10, in_openmp=[0, 0, 0])
    with pytest.raises(ValueError, match=r"node has shape \(1,\), expected \(2,\)"):
        observables([[1.0], [1.0]], 10, node=[0])
    with pytest.raises(ValueError, match="one positive number per process"):
        observables([[1.0]], 10, threads=[0])


def test_an_unknown_reading_of_outside_mpi_is_refused() -> None:
    with pytest.raises(UsageError, match="outside_mpi: unknown value 'bsc'"):
        observables([[1.0]], 10).aggregates("bsc")  # type: ignore[arg-type]


def test_each_missing_quantity_has_a_reason() -> None:
    run = observables([[8], [6]], 12)
    for name in ("ideal_runtime", "not_in_mpi", "instructions", "cycles", "idle_serial"):
        assert run.absent[name] == REASONS[name][0]
    present = run.aggregates()
    for name, aggregate in AGGREGATES.items():
        if name not in present:
            known = {
                *run.absent,
                "devices",
                "io",
                "mpi_io",
                "posix_io",
                "vector_counts",
            }  # which only some runs have
            assert any(need in known or "reference" in need for need in aggregate.needs), name


def test_a_reason_that_is_given_is_kept() -> None:
    run = observables([[8]], 12, absent={"ideal_runtime": "the replay met a deadlock"})
    assert run.absent["ideal_runtime"] == "the replay met a deadlock"


def test_an_ideal_runtime_without_mpi_is_not_used() -> None:
    run = observables([[8]], 12, ideal_runtime=12.0, has_mpi=False)
    assert "ideal_runtime" not in run.aggregates()
    assert run.absent["ideal_runtime"] == "no MPI calls"


def test_readings_of_outside_mpi() -> None:
    run = observables([[8], [6]], 12, not_in_mpi=[9, 10])
    assert run.aggregates()["outside_mpi_max"] == 8
    assert run.aggregates("not-in-mpi")["outside_mpi_max"] == 10
    assert run.aggregates("not-in-mpi")["serial_openmp_max"] == 8
    without = observables([[8], [6]], 12)
    assert "outside_mpi_mean" not in without.aggregates("not-in-mpi")


def test_zero_counters_are_absent() -> None:
    run = observables([[8], [6]], 12, instructions=[0, 0], cycles=[1e9, 1e9])
    assert "instructions_sum" not in run.aggregates()
    assert run.absent["instructions"] == (
        "the hardware counter of instructions is zero on all threads"
    )
    assert run.aggregates()["cycles_sum"] == 2e9


def test_counters_of_a_part_of_the_threads_are_absent() -> None:
    run = observables([[8], [6], [7]], 12, instructions=[1e9, 0, 1e9])
    assert run.absent["instructions"] == (
        "the hardware counter of instructions is missing on 1 of 3 threads"
    )
    assert "instructions_sum" not in run.aggregates()


def test_a_thread_too_short_to_count_does_not_spoil_the_counters() -> None:
    run = observables([[8], [0.0], [1e-6]], 12, instructions=[1e9, 0, 0])
    assert run.aggregates()["instructions_sum"] == 1e9


def test_every_aggregate_is_described() -> None:
    for aggregate in AGGREGATES.values():
        assert aggregate.unit in {"1", "s", "instructions", "cycles", "flop"}
        assert aggregate.meaning and aggregate.symbol
        assert set(aggregate.needs) <= REASONS.keys()
    assert observables([[1.0]], 2).aggregates().keys() <= AGGREGATES.keys()


@given(runs())
def test_observables_survive_json(run: Observables) -> None:
    table = json.loads(json.dumps(run.to_dict(), allow_nan=False))
    assert np.array_equal(table["useful"], run.useful)
    assert table["threads"] == run.threads.tolist()
    assert table["ideal_runtime"] == run.ideal_runtime
