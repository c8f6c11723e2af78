"""The metrics of a family fit together: proved from the formulas, and for any run."""

from typing import Any

import numpy as np
import pytest
import sympy
from efficiency.builders import observables, runs
from hypothesis import given
from hypothesis import strategies as st
from symbolic import symbolic

from popmodel.efficiency.family import AGGREGATES, Decomposition, Family
from popmodel.efficiency.hierarchy import BUNDLED, load_families
from popmodel.efficiency.observables import Observables
from popmodel.efficiency.scaling import Comparable, scale

OF_DEVICES = (
    "device_parallel_efficiency device_load_balance device_communication_efficiency"
    " device_orchestration_efficiency device_computation_scaling device_offload_efficiency"
    " host_parallel_efficiency mpi_parallel_efficiency"
)
CONTRACT = {
    "mpi": "global_efficiency parallel_efficiency load_balance communication_efficiency"
    " serialisation_efficiency transfer_efficiency",
    "mpi-additive": "global_efficiency parallel_efficiency load_balance communication_efficiency"
    " serialisation_efficiency transfer_efficiency",
    "hybrid-additive": "parallel_efficiency process_efficiency process_load_balance"
    " process_communication_efficiency process_transfer_efficiency"
    " process_serialisation_efficiency thread_efficiency openmp_region_efficiency"
    " openmp_load_balance openmp_synchronisation_efficiency openmp_scheduling_efficiency"
    " openmp_mpi_efficiency serial_region_efficiency",
    "hybrid-multiplicative": "hybrid_parallel_efficiency hybrid_load_balance"
    " hybrid_communication_efficiency mpi_parallel_efficiency mpi_load_balance"
    " mpi_communication_efficiency mpi_serialisation_efficiency mpi_transfer_efficiency"
    " openmp_parallel_efficiency openmp_load_balance openmp_communication_efficiency",
    "talp": "parallel_efficiency mpi_parallel_efficiency mpi_load_balance mpi_load_balance_in"
    " mpi_load_balance_out mpi_communication_efficiency openmp_parallel_efficiency"
    " openmp_serialisation_efficiency openmp_load_balance openmp_scheduling_efficiency",
    "gpu-bsc": OF_DEVICES,
    "gpu-talp": OF_DEVICES,
    "gpu-classic": OF_DEVICES + " parallel_efficiency cuda_parallel_efficiency",
    "io": "mpi_io_efficiency posix_io_efficiency io_load_balance io_efficiency",
    "vector": "vectorised_flops_share packed_instructions_share",
    "scaling": "computation_scaling instruction_scaling ipc_scaling frequency_scaling"
    " global_efficiency speedup",
}


@pytest.mark.parametrize("family", BUNDLED)
def test_families_have_the_ids_that_other_programs_rely_on(family: str) -> None:
    assert set(load_families()[family].metrics) == set(CONTRACT[family].split())


def test_families_come_in_the_order_of_the_tables() -> None:
    assert list(load_families()) == list(CONTRACT)


def closed_form(family: Family) -> dict[str, Any]:
    """Every metric in symbols of the aggregates alone."""
    expressions: dict[str, Any] = {name: sympy.Symbol(name, positive=True) for name in AGGREGATES}
    for id in family.order:
        expressions[id] = symbolic(family.metrics[id].formula, expressions)
    return expressions


DECOMPOSITIONS = [
    pytest.param(family, each, id=f"{family.id}-{each.parent}-{each.operation}-{each.parts[0]}")
    for family in load_families().values()
    for each in family.decompositions
]


@pytest.mark.parametrize(("family", "decomposition"), DECOMPOSITIONS)
def test_decomposition_follows_from_the_formulas(
    family: Family, decomposition: Decomposition
) -> None:
    expressions = closed_form(family)
    difference = expressions[decomposition.parent] - decomposition.combine(expressions)
    assert (sympy.simplify(difference) == 0) == decomposition.proved


def test_a_wrong_decomposition_is_not_proved() -> None:
    family = load_families()["talp"]
    wrong = Decomposition(
        "parallel_efficiency",
        "product",
        ("mpi_parallel_efficiency", "openmp_parallel_efficiency"),
        proved=False,
    )
    test_decomposition_follows_from_the_formulas(family, wrong)


def test_global_efficiency_is_speedup_per_core() -> None:
    """GE / PE_ref * cores / cores_ref = speed-up: ties the three scaling roots together."""
    expressions = closed_form(load_families()["scaling"])
    symbol = {
        name: sympy.Symbol(name, positive=True) for name in (*AGGREGATES, "reference_threads")
    }
    reference_efficiency = symbol["reference_useful_sum"] / (
        symbol["reference_threads"] * symbol["reference_runtime"]
    )
    speedup = (
        expressions["global_efficiency"]
        / reference_efficiency
        * symbol["threads"]
        / symbol["reference_threads"]
    ).subs(symbol["useful_mean"], symbol["useful_sum"] / symbol["threads"])
    assert sympy.simplify(speedup - expressions["speedup"]) == 0


@given(runs(), st.sampled_from(["everywhere", "not-in-mpi"]))
def test_every_run_keeps_identities_and_bounds(run: Observables, reading: Any) -> None:
    aggregates = run.aggregates(reading)
    scaling = scale([Comparable("run", aggregates, run.absent)])
    aggregates |= scaling.aggregates(0)
    for family in load_families().values():
        if family.requires:
            continue  # runs with devices: test_device_times.py
        if family.id == "scaling":
            evaluation = scaling.evaluations[0]
        else:
            evaluation = family.evaluate(aggregates, {**run.absent, **scaling.absent(0)})
        assert evaluation.values.keys() | evaluation.absent.keys() == family.metrics.keys()
        assert not evaluation.values.keys() & evaluation.absent.keys()
        assert all(np.isfinite(value) for value in evaluation.values.values())
        # only a division by zero (all time in MPI, say) may make a metric of these runs absent,
        # and global efficiency of masters cannot be had from the scaling of all threads
        assert all(
            reason.startswith("undefined:") or id == "global_efficiency"
            for id, reason in evaluation.absent.items()
        )
        for each in family.decompositions:
            known = {**aggregates, **evaluation.values}
            if all(part in known for part in (each.parent, *each.parts)):
                assert known[each.parent] == pytest.approx(each.combine(known), rel=1e-9, abs=1e-9)
        if reading == "everywhere":
            assert not [note for note in evaluation.notes if "inconsistent" in note]


@given(runs())
def test_aggregates_of_any_run_are_in_order(run: Observables) -> None:
    values = run.aggregates()
    slack = 1e-12 * run.runtime
    assert values["useful_mean"] <= values["useful_max"] + slack
    assert values["useful_max"] <= values["runtime"] + slack
    assert values["useful_sum"] == pytest.approx(values["useful_mean"] * values["threads"])
    assert values["master_useful_mean"] <= values["master_useful_max"] + slack
    assert values["master_useful_max"] <= values["useful_max"] + slack
    assert values["omp_useful_mean"] <= values["useful_mean"] + slack
    assert values["omp_useful_mean"] <= values["in_openmp_mean"] + slack
    assert values["outside_mpi_mean"] <= values["outside_mpi_max"] + slack
    assert values["outside_mpi_max"] == values["serial_openmp_max"]
    assert values["mpi_min"] <= values["mpi_node_min"] + slack
    assert values["mpi_node_min"] <= values["mpi_mean"] + slack
    other = run.aggregates("not-in-mpi")
    assert other["outside_mpi_mean"] >= values["outside_mpi_mean"] - slack


@given(st.lists(runs(), min_size=1, max_size=4), st.sampled_from([None, "strong", "weak"]))
def test_computation_scaling_is_the_product_of_its_parts(
    several: list[Observables], mode: Any
) -> None:
    scaling = scale([Comparable(str(i), run.aggregates()) for i, run in enumerate(several)], mode)
    for evaluation in scaling.evaluations:
        values = evaluation.values
        assert values["computation_scaling"] == pytest.approx(
            values["instruction_scaling"] * values["ipc_scaling"] * values["frequency_scaling"]
        )
    at_reference = scaling.evaluations[scaling.reference].values
    assert at_reference["speedup"] == pytest.approx(1.0)
    assert at_reference["computation_scaling"] == pytest.approx(1.0)


@given(runs(), st.floats(1e-3, 1e3))
def test_efficiencies_do_not_depend_on_the_unit_of_time(run: Observables, factor: float) -> None:
    values = run.aggregates()
    scaled = {
        name: value * (factor if AGGREGATES[name].unit == "s" else 1.0)
        for name, value in values.items()
    }
    for family in load_families().values():
        expected = family.evaluate(values).values
        assert family.evaluate(scaled).values == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.lists(runs(), min_size=1, max_size=5))
def test_samples_give_the_same_as_runs_one_by_one(several: list[Observables]) -> None:
    aggregates = [run.aggregates() for run in several]
    stacked = {name: np.array([each[name] for each in aggregates]) for name in aggregates[0]}
    for family in load_families().values():
        together = family.evaluate_samples(stacked)
        singly = [family.evaluate(each) for each in aggregates]
        assert together.values.keys() | together.absent.keys() == family.metrics.keys()
        for id, values in together.values.items():
            assert values.shape == (len(several),)
            assert values.tolist() == pytest.approx([each.values[id] for each in singly])


def test_one_process_with_one_thread_loses_nothing_but_time_outside_useful_code() -> None:
    run = observables([[8]], 10, ideal_runtime=9.0, in_mpi=[2], serial_mpi=[2])
    values = load_families()["mpi"].evaluate(run.aggregates(), run.absent).values
    assert values["load_balance"] == 1.0
    hybrid = load_families()["hybrid-additive"].evaluate(run.aggregates(), run.absent).values
    assert hybrid["thread_efficiency"] == pytest.approx(1.0)
    assert hybrid["parallel_efficiency"] == pytest.approx(hybrid["process_efficiency"])
    quotient = load_families()["hybrid-multiplicative"].evaluate(run.aggregates()).values
    assert quotient["openmp_parallel_efficiency"] == pytest.approx(1.0)
