"""Runs of different programs are not compared; those of one program are, however they differ."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from synthetic import programs
from synthetic import run as simulated

from popmodel import metrics
from popmodel.cli.metrics import Metrics
from popmodel.efficiency.verdict import families_of
from popmodel.runs.same_program import may_differ

DATA = Path(__file__).parent.parent / "data"


def test_two_programs_in_one_table_have_no_scaling() -> None:
    found = metrics([DATA / "cg.S.2.prv.gz", DATA / "bt-mz.S.2x2.prv.gz"])
    why = "another program than cg.S.2, so no scaling"
    assert found.runs[1].caveats[0] == (
        f"{why}: the sites that they share hold 37 % of the computing (MPI_Isend, MPI_Waitall "
        "instead of MPI_Irecv, MPI_Wait, MPI_Send)"
    )
    assert f"bt-mz.S.2x2: {why}" in str(found)
    first, other = found.evaluations
    assert first["scaling"].values["speedup"] == 1
    assert not other["scaling"].values
    assert other["scaling"].absent["speedup"] == why
    assert "global_efficiency" not in other["mpi"].values
    assert "parallel_efficiency" in other["hybrid-additive"].values
    assert "strong scaling assumed" not in found.scaling.why


def test_no_efficiency_falls_from_one_program_to_another() -> None:
    said = str(metrics([DATA / "cg.S.2.prv.gz", DATA / "comd.4.prv.gz"]))
    assert "comd.4: another program than cg.S.2" in said
    assert "steepest fall" not in said
    assert "Global efficiency is lowest" not in said
    assert "Parallel efficiency is lowest in comd.4: 17.6 %" in said


class Site(NamedTuple):
    """What is read of a call site."""

    call: str
    count: int
    function: str = ""


class Region(NamedTuple):
    """What is read of a region."""

    name: str


def measured(calls: Mapping[str, int], functions: Sequence[str] = ()) -> Any:
    """A run with so many calls of each kind, and with regions."""
    sites = [Site(call, count) for call, count in calls.items()]
    regions = SimpleNamespace(regions=[Region(name) for name in functions])
    return SimpleNamespace(call_sites=sites, observables=regions)


CG = {"MPI_Send": 100, "MPI_Irecv": 100, "MPI_Wait": 100, "MPI_Reduce": 4}


@pytest.mark.parametrize(
    "other",
    [
        measured(CG),
        measured({}),  # without messages on one process
        measured(CG | {"MPI_Gather": 1, "MPI_Alltoallv": 1, "MPI_Scan": 1}),  # a checkpoint
        measured({"MPI_Isend": 9, "MPI_Waitall": 9}, ["exchange_", "solver_mp_solve_ (a.f90:3)"]),
    ],
)
def test_names_and_counts_leave_no_doubt_about_runs_of_one_program(other: Any) -> None:
    one = measured(CG, ["exchange", "dot"] if other.observables.regions else [])
    assert not may_differ(one, other)
    assert not may_differ(other, one)


def test_runs_of_which_one_only_reduces_ask_for_a_look_at_how_many_processes_they_have() -> None:
    assert may_differ(measured(CG), measured({"MPI_Reduce": 4}))
    assert not may_differ(measured({"MPI_Barrier": 2}), measured({"MPI_Reduce": 4}))


@pytest.mark.parametrize(
    "other",
    [
        measured({"MPI_Isend": 100, "MPI_Irecv": 100, "MPI_Waitall": 100}),
        measured({"MPI_Alltoall": 10, "MPI_Reduce": 10}),
        measured(CG, ["dot", "sweep", "residual", "smooth", "restrict"]),
    ],
)
def test_other_calls_or_functions_ask_for_a_look_at_the_traces(other: Any) -> None:
    one = measured(CG, ["exchange", "dot", "axpy", "init", "finish"])
    assert may_differ(one, other)
    assert may_differ(other, one)


@pytest.mark.parametrize(
    "names",
    [
        ("paraver/epoch_1proc", "paraver/epoch_4proc", "paraver/epoch_16proc"),
        ("paraver/imagemagick_omp2", "paraver/imagemagick_omp8"),
        ("programs/clover.1x1", "programs/clover.2x1", "programs/clover.1x2"),
        ("programs/minife.1x1.N_20", "programs/minife.2x1.N_30"),
    ],
)
def test_real_runs_of_one_program_are_compared(names: tuple[str, ...], shared_traces: Path) -> None:
    paths = [shared_traces / f"{name}.prv.gz" for name in names]
    if not all(path.exists() for path in paths):
        pytest.skip("these traces are not here")
    assert not metrics(paths).scaling.strangers


def test_calls_without_functions_tell_programs_apart_by_their_kinds() -> None:
    found = metrics([DATA / f"{name}.prv.gz" for name in ("cg.S.2", "is.S.4", "bt-mz.S.2x2")])
    assert sorted(found.scaling.strangers) == [1, 2]
    assert "bt-mz.S.2x2: another program than cg.S.2 (--all)" in str(found)


def test_runs_of_three_kinds_fit_a_screen(shared_traces: Path) -> None:
    device = shared_traces / "gpu" / "cuda.2ranks.prv"
    if not device.exists():
        pytest.skip("this trace is not here")
    said = str(metrics([DATA / "cg.S.2.prv.gz", device, DATA / "bt-mz.S.2x2.prv.gz"]))
    for title in ("Devices (BSC)", "MPI (multiplicative)", "MPI + OpenMP (additive)"):
        assert title in said
    assert len(said.splitlines()) <= 25


@pytest.fixture
def beside(tmp_path: Path) -> Metrics:
    """One program with MPI alone and with two threads a process."""
    traces = []
    for name, dims, threads in (("mpi", (2, 2), 1), ("hybrid", (2, 1), 2)):
        program = programs.jacobi(dims, 4, cells=(64, 64), threads=threads)
        (folder := tmp_path / name).mkdir()
        traces.append(simulated(program).read(folder))
    return metrics(traces)


def test_pure_mpi_beside_hybrid_has_common_rows_then_those_of_each(beside: Metrics) -> None:
    assert beside.fitting == ("mpi", "hybrid-additive")
    assert not beside.scaling.strangers
    lines = str(beside).splitlines()
    at = {line.split("  ")[0].strip(): number for number, line in enumerate(lines)}
    common = [at[name] for name in ("Global efficiency", "Parallel efficiency")]
    common.append(at["Computation scaling"])
    assert common == sorted(common)
    assert common[-1] < at["MPI (multiplicative)"] < at["Load balance"]
    assert at["Communication efficiency"] < at["MPI + OpenMP (additive)"]
    assert at["MPI + OpenMP (additive)"] < at["Process efficiency"] < at["Thread efficiency"]
    assert lines[at["Load balance"]].split()[-1] == "-"
    assert lines[at["Thread efficiency"]].split()[-2] == "-"
    assert len(lines) <= 25


def test_an_efficiency_of_mixed_runs_is_that_of_all_threads(beside: Metrics) -> None:
    of_all = [one["hybrid-additive"].values["parallel_efficiency"] for one in beside.evaluations]
    assert beside["parallel_efficiency"] == tuple(of_all)
    assert [run["family"] for run in beside.to_dict()["runs"]] == ["mpi", "hybrid-additive"]


def test_one_family_that_is_asked_for_is_that_of_all_runs(beside: Metrics) -> None:
    asked = replace(beside, asked=("hybrid-additive",))
    assert "Process efficiency" in str(asked)
    assert "MPI (multiplicative)" not in str(asked)


def test_serial_runs_take_the_family_of_those_beside_them() -> None:
    serial, mpi, threaded = (
        SimpleNamespace(
            has_mpi=has_mpi,
            has_openmp=has_openmp,
            threads=np.ones(1),
            runtime=1.0,
            useful=np.ones(1),
            omp_useful=np.zeros(1),
            in_mpi=np.zeros(1),
            masters=np.zeros(1, int),
            has_kernels=False,
        )
        for has_mpi, has_openmp in ((False, False), (True, False), (False, True))
    )
    assert families_of([serial, threaded]) == ["hybrid-additive"] * 2
    assert families_of([serial, mpi]) == ["mpi"] * 2
    assert families_of([serial, mpi, threaded]) == ["mpi", "mpi", "hybrid-additive"]
