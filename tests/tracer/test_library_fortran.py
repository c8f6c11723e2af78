"""The tracing library under Fortran programs, by each of the three ways in which they call MPI.

$MPIFORT names the compiler wrapper of an MPI with Fortran, else one is looked for on the path; its
mpicc and mpirun are those beside it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from real_mpi import Mpi
from tracer.raw_files import KINDS, SOURCES, read
from tracer.source_lines import lines_found_in, lines_of
from tracer.traced import (
    Finished,
    Run,
    build_library,
    check_collectives,
    check_communicators,
    compare,
)

FORTRAN = Path(__file__).resolve().parent / "fortran"
BINDINGS = {"mpif.h": [], "mpi": ["-DMODULE"], "mpi_f08": ["-DF08"]}


@dataclass(frozen=True)
class Compiler:
    """A Fortran compiler of an MPI."""

    command: Sequence[str]
    mpi: Mpi

    def compile(self, *arguments: str | Path) -> Finished:
        """Call it; that one procedure has arguments of several types is no mistake here."""
        loose = self._call("-fallow-argument-mismatch", *arguments)
        return self._call(*arguments) if "allow-argument-mismatch" in loose.stderr else loose

    def _call(self, *arguments: str | Path) -> Finished:
        command = [*self.command, "-cpp", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def fortran(tmp_path_factory: pytest.TempPathFactory) -> Compiler:
    """An MPI with Fortran."""
    words = shlex.split(os.environ.get("MPIFORT", ""))
    names = words[:1] or ["mpifort", "mpif90"]
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip(f"needs an MPI with Fortran: $MPIFORT, or {' or '.join(names)} on the path")
    beside = {
        name: shutil.which(name, path=str(Path(found).parent)) for name in ("mpicc", "mpirun")
    }
    if not all(beside.values()):
        pytest.skip(f"needs the mpicc and the mpirun that belong to {found}")
    compiler = Compiler([found, *words[1:]], Mpi([str(beside["mpicc"])], str(beside["mpirun"])))
    failure = without_module(compiler, "mpi", tmp_path_factory.mktemp("fortran"))
    if failure:
        pytest.skip(f"{found} compiles no program: {failure}")
    return compiler


def without_module(compiler: Compiler, module: str, folder: Path) -> str:
    """Why a program cannot use a module of MPI; empty if it can."""
    source = folder / "probe.F90"
    source.write_text(f"use {module}\nend\n")
    done = compiler.compile("-o", folder / "probe", source)
    if done.returncode == 0:
        return ""
    lines = done.stderr.splitlines()
    return next((line for line in lines if "Error" in line), f"status {done.returncode}")


@pytest.fixture(scope="session")
def fortran_library(fortran: Compiler, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is tested, for that MPI."""
    return build_library(fortran.mpi.mpicc, tmp_path_factory)


@pytest.fixture
def run(fortran: Compiler, fortran_library: Path, tmp_path: Path) -> Run:
    return Run(fortran.mpi, fortran_library, tmp_path)


@pytest.fixture(scope="session", params=BINDINGS)
def program(
    request: pytest.FixtureRequest, fortran: Compiler, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Build one of the programs in `fortran`, with one binding."""
    folder = tmp_path_factory.mktemp("programs")
    if request.param == "mpi_f08":
        failure = without_module(fortran, "mpi_f08", folder)
        if failure:
            pytest.skip(f"needs the module mpi_f08: {failure}")

    def build(name: str) -> Path:
        made = folder / name
        if made.exists():
            return made
        words = [*BINDINGS[request.param], "-g", f"-I{FORTRAN}", f"-J{folder}"]
        counting = folder / "counting.o"
        if not counting.exists():
            done = fortran.compile(*words, "-c", "-o", counting, FORTRAN / "counting.F90")
            assert done.returncode == 0, done.stderr
        done = fortran.compile(*words, "-o", made, counting, FORTRAN / f"{name}.F90")
        assert done.returncode == 0, done.stderr
        return made

    return build


def test_messages(run: Run, program: Callable[[str], Path]) -> None:
    done = run.start(2, program("messages"))
    assert done.returncode == 0, done.stderr
    for process in compare(run, 2):
        # Posted and never received: the receive that was cancelled.
        posted = set(process.of("POST")["b"].tolist())  # Imrecv posts one a second time
        assert len(posted) == len(process.of("RECEIVE")) + 1
        assert process.events("note") == []


def test_completion(run: Run, program: Callable[[str], Path]) -> None:
    """Statuses, places and flags are those of the program's own, given or ignored."""
    done = run.start(2, program("completion"))
    assert done.returncode == 0, done.stderr
    for process in compare(run, 2):
        assert len(process.of("POST")) == len(process.of("RECEIVE"))


@pytest.mark.long(after=2)
@pytest.mark.parametrize("ranks", [2, 3])
def test_collectives(run: Run, program: Callable[[str], Path], ranks: int) -> None:
    done = run.start(ranks, program("collectives"))
    assert done.returncode == 0, done.stderr
    compare(run, ranks)
    for process in check_collectives(run):
        started, ended = process.of("COLLECT")["b"], process.of("COLLECTED")["b"]
        assert sorted(started) == sorted(ended) == list(range(1, len(started) + 1))


def test_communicators(run: Run, program: Callable[[str], Path]) -> None:
    done = run.start(4, program("communicators"))
    assert done.returncode == 0, done.stderr
    check_communicators(run)
    for process in run.processes():
        assert process.events("note") == []


def test_timed_calls(run: Run, program: Callable[[str], Path], tmp_path: Path) -> None:
    """And tracing off and on, and MPI_Init_thread."""
    done = run.start(2, program("timed"), tmp_path / "file")
    assert done.returncode == 0, done.stderr
    for process in compare(run, 2):
        assert process.of("TRACING")["a"].tolist() == [0, 1]
        (mpi,) = process.events("mpi")
        assert mpi["thread_level"] >= 1
        assert len(process.events("finalize")) == 1


def test_each_call_has_its_line(run: Run, program: Callable[[str], Path]) -> None:
    """That of the program, and not that of MPI's own functions for Fortran."""
    if shutil.which("addr2line") is None:
        pytest.skip("needs addr2line (binutils)")
    done = run.start(2, program("sites"))
    assert done.returncode == 0, done.stderr
    for process in run.processes():
        expected = lines_of(FORTRAN / "sites.F90")
        found = lines_found_in(process)
        assert {name: found[name] for name in expected} == expected


def test_program_behaves_as_without(run: Run, program: Callable[[str], Path]) -> None:
    made = program("completion")
    untraced = run.mpi.start(2, made)
    traced = run.start(2, made)
    assert (traced.returncode, traced.stdout) == (untraced.returncode, untraced.stdout) == (0, "")
    assert "popmodel" not in traced.stderr


def test_regions_of_the_user(library: Path, tmp_path: Path) -> None:
    """The module finds the tracer when the program runs, and the program runs without it."""
    compiler = shutil.which("gfortran")
    if compiler is None:
        pytest.skip("needs gfortran")
    program = tmp_path / "regions"
    sources = [SOURCES / "popmodel.f90", FORTRAN / "regions.f90"]
    command = [compiler, "-std=f2008", "-Wall", "-Werror", f"-J{tmp_path}", "-o", program, *sources]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    assert subprocess.check_output([program], text=True) == "done\n"
    raw = tmp_path / "raw"
    raw.mkdir()
    traced = {"LD_PRELOAD": str(library), "POPMODEL_TRACE_DIR": str(raw)}
    assert subprocess.check_output([program], env={**os.environ, **traced}, text=True) == "done\n"
    (process,) = read(raw)
    assert [event["text"] for event in process.events("name")] == ["step 1", "solver", "step 2"]
    begin, end = KINDS["USER_BEGIN"], KINDS["USER_END"]
    assert [(each["kind"], each["a"]) for each in process.of("USER_BEGIN", "USER_END")] == [
        (kind, name)
        for step in (1, 3)
        for kind, name in ((begin, step), (begin, 2), (end, 2), (end, step))
    ]
    assert process.of("TRACING")["a"].tolist() == [0, 1]
