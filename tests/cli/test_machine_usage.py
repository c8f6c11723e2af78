"""``popmodel machine measure``: programs, job scripts and wrong usage."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from popmodel.machines.bench import bench_plan as measurement
from popmodel.machines.bench.bench_plan import MeasurementRequest
from popmodel.machines.host.toolchain import Compiler, Mpi, ToolchainError

from .conftest import Call


def test_a_job_script_is_written_and_not_submitted(popmodel: Call, machine: Path) -> None:
    status, out, err = popmodel(
        "machine", "measure", "--script", "slurm", "--nodes", "2", "--ranks", "96", "-o", "c.json"
    )
    assert (status, out) == (0, "c.samples/job.sh\n")
    assert err == (
        "popmodel: to submit: cd c.samples && sbatch job.sh\npopmodel: after the job: "
        "popmodel machine measure --samples c.samples -o c.json\n"
    )
    text = machine.joinpath("c.samples", "job.sh").read_text()
    assert "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=48\n" in text
    assert machine.joinpath("c.samples", "popmodel-mpi").exists()
    assert not Path("c.json").exists()


@pytest.mark.usefixtures("machine")
def test_a_script_with_the_mpi_of_a_python_package_is_doubted(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    using = measurement.tools(MeasurementRequest("quick", ("p2p",)), 4)
    mpi = Mpi(using.compiler, (), "Open MPI", "5.0.11", "abc", "wheel")
    monkeypatch.setattr(
        measurement,
        "tools",
        lambda request, cores: replace(using, mpi=mpi),  # noqa: ARG005
    )
    err = popmodel("machine", "measure", "--script", "slurm")[2]
    assert err.startswith(
        "popmodel: warning: this MPI is a Python package; srun may not be able to start its "
        "programs: load the cluster's MPI module\n"
    )


def test_an_mpi_that_is_missing_is_not_needed_by_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_mpi(launcher: str | None) -> Mpi:  # noqa: ARG001
        raise ToolchainError("no MPI found", "install one")

    monkeypatch.setattr(measurement, "find_mpi", no_mpi)
    monkeypatch.setattr(measurement, "find_compiler", lambda mpi: Compiler(("cc",), str(mpi), ""))
    monkeypatch.setattr(measurement, "build", lambda program, _: Path(program))
    with pytest.raises(ToolchainError) as error:
        measurement.tools(MeasurementRequest("quick", ("core", "p2p")), 4)
    assert error.value.message == "no MPI found"
    assert error.value.hint == (
        "install one; without MPI: popmodel machine measure --only core,memory,loops,openmp,noise"
    )
    for request, cores in (
        (MeasurementRequest("quick", ("core",)), 4),
        (MeasurementRequest("quick", ("core", "p2p")), 1),
    ):
        assert measurement.tools(request, cores).programs == {"node": Path("node")}


def test_without_a_compiler_no_part_is_offered_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_mpi(launcher: str | None) -> Mpi:  # noqa: ARG001
        raise ToolchainError("mpicc lacks its compiler", "install one")

    def no_compiler(mpi: Mpi | None) -> Compiler:  # noqa: ARG001
        raise ToolchainError("no C compiler found", "install gcc")

    monkeypatch.setattr(measurement, "find_mpi", no_mpi)
    monkeypatch.setattr(measurement, "find_compiler", no_compiler)
    with pytest.raises(ToolchainError) as error:
        measurement.tools(MeasurementRequest("quick", ("core", "p2p")), 4)
    assert (error.value.message, error.value.hint) == ("no C compiler found", "install gcc")


@pytest.mark.usefixtures("machine")
def test_what_this_machine_cannot_do_is_refused(popmodel: Call) -> None:
    for words, message in (
        (
            ("--ranks", "8"),
            "--ranks 8: this process may use only 4 cores\nhint: use --ranks 4: ranks that "
            "share a core would measure time slicing",
        ),
        (
            ("--only", "p2p", "--ranks", "1"),
            "--only p2p: cannot be measured here: needs at least 2 ranks\nhint: "
            "check --ranks and --nodes: this process may use 4 cores",
        ),
        (
            ("--script", "slurm", "--nodes", "2", "--ranks", "5"),
            "--ranks 5: must be a multiple of --nodes 2\nhint: --ranks counts the ranks on "
            "all nodes, for example --ranks 8",
        ),
        (
            ("--script", "slurm", "--launcher", "mpirun"),
            "--launcher mpirun: must be srun for a Slurm script\n"
            'hint: omit it, or give srun with options: --launcher "srun --mpi=pmix"',
        ),
    ):
        assert popmodel("machine", "measure", *words) == (2, "", f"popmodel: error: {message}\n")


@pytest.mark.usefixtures("machine")
def test_a_directory_of_something_else_is_not_written_to(popmodel: Call) -> None:
    Path("m.samples").mkdir()
    Path("m.samples/data.csv").write_text("1")
    status, _, err = popmodel("machine", "measure", "-o", "m.json")
    assert status == 1
    assert (
        "m.samples: contains files that popmodel machine measure did not write, such as data.csv"
        in err
    )
