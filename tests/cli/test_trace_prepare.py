"""What ``popmodel trace`` prepares for runs that others start."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from patience import GENEROUS
from real_mpi import Mpi

from .traced_programs import Call, document_of


@pytest.mark.long
def test_variables_for_a_script_of_ones_own(
    mpi: Mpi,
    programs: dict[str, Path],
    tmp_path: Path,
    popmodel: Call,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MPICC", shlex.join(mpi.mpicc))
    monkeypatch.chdir(tmp_path)
    status, out, err = popmodel("trace", "--print-env", "-o", "own.prv.gz", "--openmp", "off")
    assert status == 0
    given = dict(line.split("=", 1) for line in shlex.split(out))
    assert given["POPMODEL_TRACE_DIR"] == str(tmp_path / "own.raw")
    assert given["POPMODEL_TRACE_OPENMP"] == "off"
    assert err == (
        "popmodel: set them for the program only: mpirun -n 4 env $(popmodel trace "
        "--print-env -o own.prv.gz --openmp off) ./app\npopmodel: after the run: popmodel "
        "trace merge own.raw -o own.prv.gz\n"
    )
    again = popmodel("trace", "--print-env", "-o", "own.prv.gz", "--openmp", "off")
    assert again == (status, out, err)
    done = mpi.start(2, "env", *shlex.split(out), programs["ends"], "finalize", "4",
                     COUNTS=str(tmp_path))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert popmodel("trace", "--print-env", "-o", "own.prv.gz")[0] == 2  # two runs never mix
    document = document_of(popmodel, "trace", "merge", "own.raw", "-o", "own.prv.gz")
    assert document["calls"]["MPI_Barrier"] == 8


def test_variables_with_blanks_can_be_pasted(
    mpi: Mpi, tmp_path: Path, popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "my runs"
    folder.mkdir()
    monkeypatch.setenv("MPICC", shlex.join(mpi.mpicc))
    monkeypatch.chdir(folder)
    status, out, err = popmodel("trace", "--print-env")
    assert status == 0
    advice = err.splitlines()[0].removeprefix("popmodel: set them for the program only: ")
    assert advice == "eval mpirun -n 4 env $(popmodel trace --print-env) ./app"
    # What the shell makes of it: the program is found, and the directory is one word.
    line = advice.replace("mpirun -n 4", "").replace("popmodel trace --print-env", "cat given")
    (folder / "given").write_text(out.replace("LD_PRELOAD", "UNUSED"))
    (folder / "app").write_text('#!/bin/sh\necho "$POPMODEL_TRACE_DIR"\n')
    (folder / "app").chmod(0o755)
    shell = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=GENEROUS)
    assert (shell.stdout, shell.stderr) == (f"{folder / 'trace.raw'}\n", "")


def test_a_job_script_is_written_and_not_submitted(
    mpi: Mpi,
    programs: dict[str, Path],
    tmp_path: Path,
    popmodel: Call,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MPICC", shlex.join(mpi.mpicc))
    monkeypatch.chdir(tmp_path)
    status, out, err = popmodel(
        "trace", "--script", "slurm", "--nodes", "2", "--ranks", "8", "--threads", "4", "--",
        str(programs["stencil3d"]), "64",
    )  # fmt: skip
    assert status == 0
    path = tmp_path / "stencil3d.trace" / "job.sh"
    assert out == f"{path}\n"
    assert f"popmodel: to submit: sbatch {path}\n" in err
    text = path.read_text()
    assert "#SBATCH --nodes=2\n#SBATCH --ntasks=8\n#SBATCH --cpus-per-task=4\n" in text
    assert f"\nsrun --export=ALL,LD_PRELOAD={path.parent}/libpopmodel_trace.so," in text
    assert {each.name for each in path.parent.iterdir()} == {"job.sh", "libpopmodel_trace.so"}
