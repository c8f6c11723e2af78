"""Runs of different programs are not compared; those of one program are, however they differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from popmodel import metrics
from popmodel.efficiency.scaling import Comparable

DATA = Path(__file__).parent.parent / "data"
CG = frozenset({"MPI_Send", "MPI_Irecv", "MPI_Wait", "MPI_Reduce"})


def run(calls: frozenset[str] = CG, functions: tuple[str, ...] = ()) -> Comparable:
    return Comparable("run", {}, {}, calls, frozenset(functions))


def test_two_programs_in_one_table_have_no_scaling() -> None:
    found = metrics([DATA / "cg.S.2.prv.gz", DATA / "bt-mz.S.2x2.prv.gz"])
    why = "another program than cg.S.2: no scaling between them"
    assert found.runs[1].caveats[0] == why
    assert "bt-mz.S.2x2: another program than cg.S.2: no scaling" in str(found)
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


@pytest.mark.parametrize(
    "other",
    [
        run(),
        run(frozenset()),  # without messages on one process
        run(CG - {"MPI_Send", "MPI_Irecv", "MPI_Wait"}),
        run(CG | {"MPI_Gather", "MPI_Alltoallv", "MPI_Scan"}),  # writes a checkpoint
        run(CG - {"MPI_Send"} | {"MPI_Isend"}),  # one kind may be chance
        run(frozenset({"MPI_Isend", "MPI_Waitall"}), ("exchange", "solve")),
    ],
)
def test_runs_of_one_program_may_differ(other: Comparable) -> None:
    one = run(functions=("exchange", "dot"))
    assert not one.is_of_another_program(other)
    assert not other.is_of_another_program(one)


@pytest.mark.parametrize(
    "other",
    [
        run(CG - {"MPI_Send", "MPI_Wait"} | {"MPI_Isend", "MPI_Waitall"}),
        run(CG, ("sweep", "residual")),
        run(CG, ("dot", "sweep", "residual", "smooth", "restrict")),  # one name may be chance
        run(frozenset({"MPI_Alltoall", "MPI_Reduce"})),
    ],
)
def test_other_calls_or_functions_are_of_another_program(other: Comparable) -> None:
    one = run(functions=("exchange", "dot", "axpy", "init", "finish"))
    assert one.is_of_another_program(other)
    assert other.is_of_another_program(one)


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
