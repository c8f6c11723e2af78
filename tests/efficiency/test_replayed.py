"""Observables of replays."""

from dataclasses import replace
from pathlib import Path

import pytest

from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.measure import analyse
from popmodel.efficiency.observables import FAMILIES, NO_REGIONS, of_execution, unknown_families
from popmodel.network.network import PRESETS, Network
from popmodel.simulator import replay
from popmodel.simulator.from_trace import from_trace
from popmodel.traces import read
from popmodel.traces.selection import focused

DATA = Path(__file__).parent.parent / "data"
HYBRID = read(DATA / "bt-mz.S.2x2.prv.gz")
MEASURED = analyse(HYBRID).observables
PROGRAM = from_trace(focused(HYBRID)[0])
SLOW = PRESETS["alpha-beta"].with_(latency=50e-6)


def on(network: Network):
    return of_execution(MEASURED, replay(PROGRAM, network), replay(PROGRAM, network.ideal()))


@pytest.mark.parametrize("network", [PRESETS["ideal"], SLOW, SLOW.with_(cpu_factor=4.0)])
def test_identities_of_the_families_hold_for_replays(network: Network) -> None:
    """Evaluating asserts the decompositions; nothing contradicts itself."""
    run = on(network)
    for name in FAMILIES:
        evaluation = load_families()[name].evaluate(run.aggregates(), run.absent)
        assert evaluation.values
        assert all(0 < value <= 1 + 1e-9 for value in evaluation.values.values()), name


def test_the_runtime_is_computation_and_mpi_of_the_last_process() -> None:
    run = on(SLOW)
    masters = run.masters
    ends = run.not_in_mpi + run.in_mpi[masters]
    assert run.runtime == pytest.approx(ends.max())
    assert run.ideal_runtime < run.runtime


def test_computation_is_as_measured_over_the_cpu_factor() -> None:
    run = on(SLOW.with_(cpu_factor=4.0))
    assert run.useful.tolist() == pytest.approx((MEASURED.useful / 4).tolist())
    assert run.in_openmp.tolist() == pytest.approx((MEASURED.in_openmp / 4).tolist())
    assert run.openmp_imbalance == pytest.approx(MEASURED.openmp_imbalance / 4)


def test_how_idle_time_is_divided_is_not_known() -> None:
    assert on(SLOW).idle_serial is None
    assert "idle_serial" in on(SLOW).absent


def test_families_that_a_replay_does_not_give_have_a_reason() -> None:
    assert unknown_families(MEASURED) == {}
    assert unknown_families(replace(MEASURED, has_openmp=False)) == {"hybrid-additive": NO_REGIONS}
    inside = unknown_families(replace(MEASURED, openmp_mpi=0.1))
    assert inside["hybrid-additive"].startswith("MPI is called inside parallel regions")
