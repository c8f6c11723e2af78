"""Public programs: where their sources are, how they are built and run, and how they say it worked.

Nothing of theirs is kept here. Each recipe copies a source tree, builds it with the compilers that
it is given, and says which runs are worth a line of the table.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path


class NotBuilt(Exception):
    """A program cannot be built; the message says why, in one line."""


@dataclass(frozen=True)
class Compilers:
    """What programs are built with: words of commands; ``fortran`` may be missing."""

    c: str
    cxx: str
    fortran: str | None


@dataclass(frozen=True)
class Case:
    """One run of a program.

    Attributes
    ----------
    name : str
        As the table shows it.
    ranks : int
        0 for a program without MPI.
    threads : int
        Threads of each rank.
    command : tuple of str
        With ``{build}`` for the folder of the built program.
    verified : str
        Regular expression of what the program writes when its result is right. What its groups
        match has to be equal with and without the tracer.
    seconds : str or None
        Regular expression of the program's own time; without it that of the whole command counts.
    file : str or None
        Pattern of a file in the run's folder in which the program writes that instead.
    linked : str or None
        Pattern of the file in the build that is linked with MPI, where that is not the program.
    """

    name: str
    ranks: int
    threads: int
    command: tuple[str, ...]
    verified: str
    seconds: str | None = None
    file: str | None = None
    linked: str | None = None

    def binary(self, place: Path) -> Path:
        """What is linked with the libraries whose calls are counted."""
        if self.linked is None:
            return Path(self.command[0].replace("{build}", str(place)))
        return next(place.glob(self.linked), place / self.linked)


@dataclass(frozen=True)
class Program:
    """A program of the table: its sources in the folder given, and what is done with them."""

    name: str
    folder: str
    marker: str
    build: Callable[[Path, Compilers, Case], object]
    cases: Sequence[Case] = field(default_factory=tuple)

    def sources(self, folder: Path) -> Path:
        """Its source tree.

        Raises
        ------
        NotBuilt
            It is not there.
        """
        tree = folder / self.folder
        if not (tree / self.marker).exists():
            raise NotBuilt(f"no sources: {tree / self.marker} is missing")
        return tree


def built(program: Program, case: Case, sources: Path, folder: Path, compilers: Compilers) -> Path:
    """Copy the sources of a program and build what a case runs.

    Raises
    ------
    NotBuilt
        There are no sources, no compiler for them, or the build fails.
    """
    tree = program.sources(sources)
    place = folder / program.name
    if not place.exists():
        shutil.copytree(tree, place, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    program.build(place, compilers, case)
    if not (binary := case.binary(place)).exists():
        raise NotBuilt(f"was built, but {binary} is not there")
    return place


def make(folder: Path, *words: str) -> None:
    """Run make, or another command that begins with its path, and keep what it says.

    Raises
    ------
    NotBuilt
        It fails; the message has the end of what it wrote.
    """
    command = list(words) if words and words[0].startswith("/") else ["make", *words]
    done = subprocess.run(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    (folder / "build.log").write_text(done.stdout)
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if "rror" in line] or [
            done.stdout[-200:]
        ]
        raise NotBuilt(f"{' '.join(command)}: {lines[0].strip()} ({folder / 'build.log'})")


def _fortran(compilers: Compilers, case: Case) -> str:
    written_in_c = "/is." in case.command[0]
    if compilers.fortran is None and not written_in_c:
        raise NotBuilt("needs a Fortran compiler of MPI (--fortran)")
    return compilers.fortran or "false"


# GCC from version 10 refuses hexadecimal constants of the older kind, and a choice buffer that has
# another type in each call.
_OLD_FORTRAN = "-O3 -fallow-invalid-boz -fallow-argument-mismatch"


def _npb_mpi(tree: Path, compilers: Compilers, case: Case) -> None:
    fortran = _fortran(compilers, case)
    (tree / "NPB3.4-MPI/config/make.def").write_text(
        f"MPIFC = {fortran}\nFLINK = {fortran}\nFFLAGS = {_OLD_FORTRAN}\n"
        f"FLINKFLAGS = -O3\nMPICC = {compilers.c}\nCLINK = {compilers.c}\nCFLAGS = -O3\n"
        "CLINKFLAGS = -O3\nCC = cc\nBINDIR = ../bin\nRAND = randi8\nFMPI_LIB =\nFMPI_INC =\n"
        "CMPI_LIB =\nCMPI_INC =\n"
    )
    (tree / "NPB3.4-MPI/bin").mkdir(exist_ok=True)
    _benchmark(tree / "NPB3.4-MPI", case)


def _npb_omp(tree: Path, compilers: Compilers, case: Case) -> None:
    (tree / "NPB3.4-OMP/config/make.def").write_text(
        "FC = gfortran\nFLINK = gfortran\nF_LIB =\nF_INC =\n"
        f"FFLAGS = {_OLD_FORTRAN} -fopenmp\nFLINKFLAGS = -O3 -fopenmp\n"
        "CC = gcc\nCLINK = gcc\nC_LIB = -lm\nC_INC =\nCFLAGS = -O3 -fopenmp\n"
        "CLINKFLAGS = -O3 -fopenmp\nUCC = cc\nBINDIR = ../bin\nRAND = randi8\nWTIME = wtime.c\n"
    )
    _fortran(compilers, case)
    (tree / "NPB3.4-OMP/bin").mkdir(exist_ok=True)
    _benchmark(tree / "NPB3.4-OMP", case)


def _npb_mz(tree: Path, compilers: Compilers, case: Case) -> None:
    fortran = _fortran(compilers, case)
    folder = tree / "NPB3.3-MZ-MPI"
    (folder / "config/make.def").write_text(
        f"MPIF77 = {fortran}\nFLINK = {fortran}\nF_LIB =\nF_INC =\n"
        f"FFLAGS = {_OLD_FORTRAN} -fopenmp\nFLINKFLAGS = -O3 -fopenmp\nUCC = cc\n"
        "BINDIR = ../bin\nRAND = randi8\nWTIME = wtime.c\n"
    )
    (folder / "bin").mkdir(exist_ok=True)
    benchmark = Path(case.command[0]).name.split("_")[0].split(".")[0]
    # Some copies of these sources are instrumented by default: MAIN names the plain program.
    _benchmark(folder, case, f"MAIN={benchmark.removesuffix('-mz')}", f"NPROCS={case.ranks}")


def _benchmark(folder: Path, case: Case, *words: str) -> None:
    """``bin/cg.S.x`` is benchmark CG of class S; the multi-zone ones are ``bin/bt-mz_S.2``."""
    program = folder / "bin" / Path(case.command[0]).name
    name, problem = re.split("[._]", program.name)[:2]
    if not program.exists():
        make(folder, f"-C{name.upper()}", f"CLASS={problem}", "SHELL=/bin/bash", *words)


def _lulesh(tree: Path, compilers: Compilers, case: Case) -> None:
    threaded = case.threads > 1
    name = "lulesh_omp" if threaded else "lulesh_mpi"
    if (tree / name).exists():
        return
    flags = "-g -O3 -I. -w" + (" -fopenmp" if threaded else "")
    make(tree, "clean")
    make(
        tree,
        f"CXX={compilers.cxx} -DUSE_MPI=1",
        f"CXXFLAGS={flags}",
        f"LDFLAGS={flags}",
        f"LULESH_EXEC={name}",
    )


def _comd(tree: Path, compilers: Compilers, case: Case) -> None:
    if not (tree / "bin" / Path(case.command[0]).name).exists():
        folder = tree / ("src-openmp" if case.threads > 1 else "src-mpi")
        # Its header with the facts of the build depends on a file of this name.
        shutil.copy(folder / "Makefile.vanilla", folder / "Makefile")
        make(folder, f"CC={compilers.c}", "CoMD_info.h")
        make(folder, f"CC={compilers.c}")


def _hpcg(tree: Path, compilers: Compilers, _: Case) -> None:
    if (tree / "build/bin/xhpcg").exists():
        return
    (tree / "build").mkdir(exist_ok=True)
    make(tree / "build", str((tree / "configure").absolute()), "MPI_GCC_OMP")
    make(tree / "build", f"CXX={compilers.cxx}", f"LINKER={compilers.cxx}")


def _amg(tree: Path, compilers: Compilers, _: Case) -> None:
    if not (tree / "test/amg").exists():
        make(tree, f"CC={compilers.c}", "MAKEFLAGS=CC=" + compilers.c)


def _miniamr(tree: Path, compilers: Compilers, case: Case) -> None:
    folder = tree / ("openmp" if case.threads > 1 else "ref")
    if not (folder / "miniAMR.x").exists():
        make(folder, f"CC={compilers.c}", f"LD={compilers.c}")


def _mpi4py(tree: Path, compilers: Compilers, _: Case) -> None:
    if not (tree / "installed").exists():
        make(
            tree,
            shutil.which("env") or "/usr/bin/env",
            f"MPICC={compilers.c}",
            *(sys.executable, "-m", "pip", "install", "-q", "--no-deps"),
            *("--target", str((tree / "installed").absolute()), "."),
        )
        # Its tests take what they find there first, whatever MPI that was built for.
        shutil.rmtree(tree / "build", ignore_errors=True)


_NPB_TIME = r"Time in seconds\s*=\s*([\d.]+)"
_NPB_OK = r"Verification\s*=\s*(SUCCESSFUL)"
_NPB = "{build}/NPB3.4-MPI/bin/"


def _npb(name: str, ranks: int) -> Case:
    return Case(f"NPB-MPI {name}", ranks, 1, (f"{_NPB}{name}.x",), _NPB_OK, _NPB_TIME)


def _omp(name: str, threads: int) -> Case:
    command = (f"{{build}}/NPB3.4-OMP/bin/{name}.x",)
    return Case(f"NPB-OMP {name}", 0, threads, command, _NPB_OK, _NPB_TIME)


def _mz(name: str, ranks: int, threads: int) -> Case:
    command = (f"{{build}}/NPB3.3-MZ-MPI/bin/{name.replace('.', '_')}.{ranks}",)
    return Case(f"NPB-MZ {name}", ranks, threads, command, _NPB_OK, _NPB_TIME)


def _lulesh_case(ranks: int, threads: int) -> Case:
    name = "lulesh_omp" if threads > 1 else "lulesh_mpi"
    command = (f"{{build}}/{name}", "-s", "12" if ranks == 1 else "6", "-i", "60")
    origin = r"Final Origin Energy\s*=\s*(\S+)"
    return Case("LULESH", ranks, threads, command, origin, r"Elapsed time\s*=\s*([\d.]+)")


def _comd_case(ranks: int, threads: int) -> Case:
    name = "CoMD-openmp-mpi" if threads > 1 else "CoMD-mpi"
    grid = ("-i", str(ranks), "-j", "1", "-k", "1", "-x", "16", "-y", "12", "-z", "12", "-N", "40")
    command = (f"{{build}}/bin/{name}", *grid)
    verified = r"(?s)eFinal/eInitial : ([\d.]+).*(no atoms lost)"
    return Case("CoMD", ranks, threads, command, verified, None)


def _hpcg_case(ranks: int, threads: int) -> Case:
    # Asked for no time it makes one set of iterations, the same number in every run.
    command = ("{build}/build/bin/xhpcg", "--nx=16", "--ny=16", "--nz=16", "--rt=0")
    verified = r"HPCG result is (VALID)"
    return Case("HPCG", ranks, threads, command, verified, None, "HPCG-Benchmark*.txt")


def _amg_case(ranks: int, threads: int) -> Case:
    grid = ("-P", str(ranks), "1", "1", "-n", "12", "12", "12")
    residual = r"Final Relative Residual Norm = (\S+)"
    return Case("AMG", ranks, threads, ("{build}/test/amg", *grid), residual, None)


def _miniamr_case(ranks: int, threads: int) -> Case:
    folder = "openmp" if threads > 1 else "ref"
    # fmt: off
    arguments = ("--npx", str(ranks), "--npy", "1", "--npz", "1", "--nx", "6", "--ny", "6",
                 "--nz", "6", "--num_refine", "2", "--max_blocks", "600", "--num_objects", "1",
                 "--object", "2", "0", "-1.71", "-1.71", "-1.71", "0.04", "0.04", "0.04", "1.7",
                 "1.7", "1.7", "0.0", "0.0", "0.0", "--num_tsteps", "20", "--comm_vars", "2")
    # fmt: on
    verified = r"Total number of blocks at timestep 20 is (\d+)"
    return Case("miniAMR", ranks, threads, (f"{{build}}/{folder}/miniAMR.x", *arguments), verified)


def _mpi4py_case(ranks: int, *modules: str) -> Case:
    tests = [word for module in modules for word in ("-i", module)]
    # fmt: off
    command = ("env", "PYTHONPATH={build}/installed", sys.executable, "{build}/test/main.py",
               *tests)
    # fmt: on
    verified = r"(?s)Ran (\d+) tests.*\nOK"
    linked = "installed/mpi4py/MPI.*.so"
    return Case("mpi4py tests", ranks, 1, command, verified, None, None, linked)


PROGRAMS = (
    Program(
        "npb",
        "npb34",
        "NPB3.4-MPI/config/make.def.template",
        _npb_mpi,
        (
            *(_npb(name, 2) for name in ("cg.W", "mg.W", "lu.S", "is.W", "ft.W", "ep.S")),
            *(_npb(name, 4) for name in ("bt.S", "sp.S", "lu.W", "cg.S", "is.S")),
        ),
    ),
    Program(
        "npb-omp",
        "npb34",
        "NPB3.4-OMP/config/make.def.template",
        _npb_omp,
        tuple(_omp(name, 2) for name in ("ua.S", "lu.S", "cg.W", "bt.S", "is.S", "mg.S")),
    ),
    Program(
        "npb-mz",
        "npbmz",
        "NPB3.3-MZ-MPI/BT-MZ/bt.f",
        _npb_mz,
        (_mz("bt-mz.S", 2, 2), _mz("lu-mz.S", 2, 1), _mz("sp-mz.S", 1, 2)),
    ),
    Program("lulesh", "lulesh", "lulesh.cc", _lulesh, (_lulesh_case(1, 2), _lulesh_case(8, 1))),
    Program(
        "comd", "comd", "src-mpi/Makefile.vanilla", _comd, (_comd_case(2, 1), _comd_case(2, 2))
    ),
    Program("hpcg", "hpcg", "configure", _hpcg, (_hpcg_case(2, 1), _hpcg_case(2, 2))),
    Program("amg", "amg", "test/amg.c", _amg, (_amg_case(2, 1), _amg_case(2, 2))),
    Program(
        "miniamr", "miniamr", "ref/main.c", _miniamr, (_miniamr_case(2, 1), _miniamr_case(2, 2))
    ),
    Program(
        "mpi4py", "mpi4py", "test/main.py", _mpi4py, (_mpi4py_case(2, "test_cco_buf", "test_comm"),)
    ),
)
