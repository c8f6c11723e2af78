"""Phases of real traces: what is known of these programs and of how they were traced."""

import re
from functools import cache
from pathlib import Path

import pytest

from popmodel.structure.iterations import find
from popmodel.structure.phase_variation import idle_regions, interruptions
from popmodel.structure.phases import Phase, Phases, phases
from popmodel.traces import read
from popmodel.traces.selection import focused

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"


@cache
def of_program(path: Path) -> Phases:
    """Phases from MPI_Init to MPI_Finalize."""
    trace = read(path)
    return phases(find(trace), trace, focused(trace)[0])


def longest(name: str) -> Phase:
    found = of_program(DATA / f"{name}.prv.gz").phases
    return max(found, key=lambda phase: phase.wall.sum())


@pytest.mark.parametrize("name", ["mix.4", "mixnbc.4", "mixpers.4", "mixrma.4"])
def test_runs_with_more_processes_than_cores_are_recognised(name: str) -> None:
    """Bursts of these runs include time slices of 4 ms of other processes."""
    found, told = interruptions(of_program(DATA / f"{name}.prv.gz"))
    assert found["share"] > 0.1
    longest = re.search(
        r"took up to (\S+) ms .*: processes were probably without a core", str(told)
    )
    assert longest is not None
    assert 3 < float(longest[1]) < 5


@pytest.mark.parametrize("name", ["comd.4", "cg.S.2", "ft.S.4", "is.S.4", "bt-mz.S.2x2"])
def test_bursts_that_nobody_interrupted_are_left_alone(name: str) -> None:
    """Traced with more processes than cores as well, but these only lose time inside of MPI."""
    assert interruptions(of_program(DATA / f"{name}.prv.gz"))[1] is None


def test_regions_whose_threads_share_cores_are_recognised() -> None:
    """Four threads took turns on two cores."""
    found = of_program(ROOT / "examples" / "traces" / "stencil3d.2x2.prv.gz")
    told = str(idle_regions(found))
    assert told.startswith("in region stencil3d+0x2670 (stencil3d.c:180) even the busiest thread")
    assert "check that each thread has a core" in str(
        idle_regions(of_program(DATA / "bt-mz.S.2x2.prv.gz"))
    )


def test_the_work_of_cg_is_its_matrix_vector_product() -> None:
    """15 outer iterations of 25 inner ones, one product in each and one more behind them."""
    product = longest("cg.S.2")
    assert product.executions == 15 * 26
    assert product.part == "iterations"


def test_the_work_of_ft_is_an_execution_per_iteration() -> None:
    assert longest("ft.S.4").executions == 6


def test_the_regions_of_bt_are_its_solvers() -> None:
    """Zones of different size: the same process has more to do in each of them."""
    found = of_program(DATA / "bt-mz.S.2x2.prv.gz").of("parallel")
    order = sorted(found, key=lambda phase: -phase.wall.sum())
    assert {phase.name.partition(" (")[0] for phase in order[:3]} == {
        "x_solve_",
        "y_solve_",
        "z_solve_",
    }
    assert all(phase.team is not None and phase.team.imbalance < 0.05 for phase in order[:3])


def test_epoch_computes_particles_evenly(shared_traces: Path) -> None:
    """16 processes on a quiet machine, with counters: the particle push is most of the work."""
    found = of_program(shared_traces / "paraver" / "epoch_16proc.prv.gz")
    assert interruptions(found)[1] is None
    push = max(found.phases, key=lambda phase: phase.wall.sum())
    assert "partlist_sendrecv" in push.name
    assert found.share(push) > 0.5
    assert push.instructions is not None
    assert push.cycles is not None
    assert push.instructions.sum() / push.cycles.sum() == pytest.approx(1.88, abs=0.03)  # IPC
    assert push.cycles.sum() / push.useful.sum() == pytest.approx(2.095e9, rel=0.005)  # Hz
    assert (push.imbalance.persistent or 0.0) < 0.01


def test_imagemagick_has_two_regions(shared_traces: Path) -> None:
    found = of_program(shared_traces / "paraver" / "imagemagick_omp2.prv.gz")
    assert [phase.executions for phase in found.of("parallel")] == [1, 1]
    assert all(phase.imbalance[:2] == (None, None) for phase in found.phases)
