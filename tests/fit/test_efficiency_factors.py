"""Factors of a run make it again; what tables tell is enough."""

from pathlib import Path

import numpy as np
import pytest
from fit.series import of_times
from hypothesis import given
from hypothesis import strategies as st

import popmodel
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.measure import analyse
from popmodel.efficiency.scaling import Mode
from popmodel.fit.efficiency_factors import (
    FACTORS,
    chosen,
    completed,
    measured,
    point_errors,
    rebuilt,
)
from popmodel.runs.measurement import MeasuredRow, from_run

ROOT = Path(__file__).parents[2]
TRACES = (
    ROOT / "tests" / "data" / "bt-mz.S.2x2.prv.gz",
    ROOT / "tests" / "data" / "comd.4.prv.gz",
    ROOT / "examples" / "traces" / "stencil3d.2x2.prv.gz",
)


@pytest.fixture(scope="module", params=TRACES, ids=lambda path: path.name)
def traced(request: pytest.FixtureRequest) -> MeasuredRow:
    return from_run(analyse(popmodel.read(request.param)))


def test_the_factors_of_a_trace_make_its_aggregates_again(traced: MeasuredRow) -> None:
    told = measured(
        traced.aggregates, traced.aggregates, traced.processes, traced.threads, "strong"
    )
    kept = {name: told[name] for name in chosen([told])}
    again = rebuilt(kept, traced.aggregates, traced.processes, traced.threads, "strong")
    for name, value in again.items():
        if name != "outside_mpi_mean":
            assert float(value) == pytest.approx(traced.aggregates[name], rel=1e-9), name


@pytest.mark.parametrize("mode", ["strong", "weak"])
@given(
    data=st.tuples(*[st.floats(0.3, 1.0)] * 3),
    work=st.floats(0.5, 2.0),
    processes=st.integers(1, 512),
)
def test_any_run_is_the_product_of_its_factors(
    mode: Mode, data: tuple[float, float, float], work: float, processes: int
) -> None:
    balance, waiting, transfer = data
    home = of_times(4, 10.0, 11.0, 11.5, 12.0)
    mean = 10.0 * work
    busiest = mean / balance
    ideal = busiest / waiting
    run = of_times(processes, mean, busiest, ideal, ideal / transfer)
    told = measured(run.aggregates, home.aggregates, processes, 1, mode)
    assert told["load_balance"] == pytest.approx(balance)
    assert told["serialisation"] == pytest.approx(waiting)
    assert told["transfer"] == pytest.approx(transfer)
    ratio = processes / 4 if mode == "weak" else 1.0
    assert told["computation"] == pytest.approx(ratio * 40 / (mean * processes))
    kept = {name: told[name] for name in chosen([told])}
    again = rebuilt(kept, home.aggregates, processes, 1, mode)
    assert float(again["runtime"]) == pytest.approx(run.runtime)


def test_counters_count_where_all_runs_have_them() -> None:
    both = {"computation": 1.0, "instructions": 1.0, "ipc": 1.0, "frequency": 1.0, "runtime": 1.0}
    assert chosen([both, both]) == ("instructions", "ipc", "frequency")
    assert chosen([both, {"computation": 0.9, "runtime": 1.0}]) == ("computation",)


def test_a_run_of_unknown_efficiency_leaves_the_runtime_only() -> None:
    told = {"load_balance": 0.9, "communication": 0.9, "computation": 1.0, "runtime": 1.0}
    assert chosen([told, {"runtime": 0.8}]) == ("runtime",)


def test_losses_of_the_slowest_repeat_worse_the_fewer_there_are() -> None:
    value, processes = np.array([0.9, 0.9]), np.array([4.0, 64.0])
    few, many = point_errors(FACTORS["load_balance"], value, processes, by_processes=True)
    assert few > many > 0.003
    same = point_errors(FACTORS["transfer"], value, processes, by_processes=True)
    assert same[0] == same[1] == pytest.approx(np.hypot(0.003, 0.01))


# -- runs of tables


def of_table(threads: int = 1, **families: dict[str, float]) -> MeasuredRow:
    metrics = {name.replace("_", "-"): values for name, values in families.items()}
    return MeasuredRow("runs.csv", 4, threads, 12.0, metrics)


@pytest.mark.parametrize(
    "given",
    [
        {"parallel_efficiency": 0.72, "communication_efficiency": 0.8},
        {"parallel_efficiency": 0.72, "load_balance": 0.9},
        {"load_balance": 0.9, "communication_efficiency": 0.8},
        {"load_balance": 0.9, "serialisation_efficiency": 0.8 / 0.96, "transfer_efficiency": 0.96},
    ],
)
def test_efficiencies_of_a_table_are_completed(given: dict[str, float]) -> None:
    found = completed(of_table(mpi=given))
    again = load_families()["mpi"].evaluate(found).values
    assert again["parallel_efficiency"] == pytest.approx(0.72)
    assert again["load_balance"] == pytest.approx(0.9)
    if "transfer_efficiency" in given:
        assert again["transfer_efficiency"] == pytest.approx(0.96)


def test_hybrid_efficiencies_of_a_table_are_completed() -> None:
    given = {
        "hybrid_parallel_efficiency": 0.5,
        "mpi_parallel_efficiency": 0.8,
        "mpi_communication_efficiency": 0.9,
        "mpi_transfer_efficiency": 0.95,
    }
    found = completed(of_table(4, hybrid_multiplicative=given))
    again = load_families()["hybrid-multiplicative"].evaluate(found).values
    assert {name: again[name] for name in given} == pytest.approx(given)


def test_additive_efficiencies_of_a_table_are_completed() -> None:
    given = {
        "parallel_efficiency": 0.5,
        "process_efficiency": 0.8,
        "process_communication_efficiency": 0.9,
        "process_transfer_efficiency": 0.95,
    }
    found = completed(of_table(4, hybrid_additive=given))
    again = load_families()["hybrid-additive"].evaluate(found).values
    assert {name: again[name] for name in given} == pytest.approx(given)


@pytest.mark.parametrize(
    "run",
    [
        of_table(),
        of_table(mpi={"load_balance": 0.9}),
        of_table(hybrid_multiplicative={"mpi_load_balance": 0.9}),
        of_table(hybrid_additive={"parallel_efficiency": 0.9}),
        of_table(4, mpi={"parallel_efficiency": 0.72, "load_balance": 0.9}),
    ],
)
def test_what_does_not_tell_the_losses_tells_the_runtime_only(run: MeasuredRow) -> None:
    assert completed(run).keys() == {"processes", "threads", "runtime"}
