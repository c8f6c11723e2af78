"""The measuring programs: built with the user's compiler when they are needed, and kept.

A built program is found again by everything that it was made from: the sources, the flags, the
compiler, the MPI, the kind of processor. It gets its name when it is complete, so that processes
that build the same one at once do not see a part of it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path

from popmodel import cache
from popmodel.errors import FileError, PopmodelError
from popmodel.machine.processes import Finished, output_of
from popmodel.machine.toolchain import Compiler, Mpi

_COMMON = ("batch.c", "jobs.c", "machine_state.c", "program.c", "samples.c", "team.c", "text.c")

SOURCES: Mapping[str, tuple[str, ...]] = {
    "node": (
        *_COMMON,
        *("core.c", "cpus.c", "files.c", "memory.c", "node_main.c", "noise.c"),
        *("openmp_constructs.c", "sharing.c", "vectors.c"),
    ),
    "mpi": (
        *_COMMON,
        *("mpi_main.c", "party.c", "layout.c", "point_to_point.c", "collectives.c"),
        *("overlap.c", "threaded.c", "reduce.c"),
    ),
    "hello": ("hello.c",),
    "hello-openmp": ("hello_openmp.c",),
}
"""Sources of each program. The Makefile beside them says the same."""

LOG = "build.log"

_PATIENCE = 300.0  # seconds: a loaded login node with a slow file system
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FULL_WORDS = ("no space left", "disk quota exceeded")


class BuildError(PopmodelError):
    """A measuring program cannot be built."""


def sources() -> Path:
    """Return the folder of the C sources: inside an installed popmodel, else beside it.

    Raises
    ------
    BuildError
        If there is none.
    """
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "microbench", package.parent / "microbench"):
        if (folder / "hello.c").is_file():
            return folder
    raise BuildError(
        f"the sources of the measuring programs are neither in nor beside {package}",
        "install popmodel again: its package is incomplete",
    )


def build(
    program: str,
    toolchain: Compiler | Mpi,
    environment: Mapping[str, str] = os.environ,
) -> Path:
    """Build a measuring program, or find it as it was built before.

    Parameters
    ----------
    program : str
        One of `SOURCES`.
    toolchain : Compiler or Mpi
        What it is built with; ``mpi`` and ``hello`` need an MPI.
    environment : mapping of str to str
        With ``CFLAGS`` and ``LDFLAGS``, which are added to popmodel's own.

    Returns
    -------
    Path
        The program. What the compiler said lies beside it in `LOG`.

    Raises
    ------
    BuildError
        If the compiler refuses; the message has its first error, the hint the log. If the disk is
        full; the message has the place.
    FileError
        If the cache cannot be written.
    """
    compiler = toolchain.compiler if isinstance(toolchain, Mpi) else toolchain
    identity = toolchain.identity if isinstance(toolchain, Mpi) else ""
    where = sources()
    command = _command(program, compiler, environment, where)
    folder = _place(_key(where, [*command, compiler.version, identity]))
    target = folder / f"popmodel-{program}"
    if os.access(target, os.X_OK):
        return target
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="building-", dir=folder) as scratch:
            made = Path(scratch) / target.name
            done = output_of(
                [*command, "-o", str(made), "-lm"],
                timeout=_PATIENCE,
                environment={**environment, "LC_ALL": "C", "TMPDIR": scratch},
            )
            _keep_log(folder, command, done)
            if done.status != 0 or not made.exists():
                raise _refused(program, compiler, done, folder / LOG)
            made.replace(target)
    except OSError as error:
        raise _unwritable(folder, error) from error
    return target


def _command(
    program: str, compiler: Compiler, environment: Mapping[str, str], where: Path
) -> list[str]:
    """What is called, but for the output. The machine that measures may be older than this one.

    So there is no -march=native: the programs choose their instructions when they run.
    """
    # The ISO modes of GCC would keep a * b + c two instructions; NVIDIA's compiler lacks the flag.
    contract = [] if compiler.openmp == "-mp" else ["-ffp-contract=fast"]
    return [
        *compiler.command,
        *("-std=c11", compiler.openmp, *contract, "-O2"),
        *_words("CFLAGS", environment),
        *(str(where / name) for name in SOURCES[program]),
        *_words("LDFLAGS", environment),
    ]


def _words(variable: str, environment: Mapping[str, str]) -> list[str]:
    try:
        return shlex.split(environment.get(variable, ""))
    except ValueError as error:
        problem = str(error).lower()
        hint = f"write for example {variable}='-O3 -g'"
        raise BuildError(f"${variable}: {problem}", hint) from None


def _key(where: Path, words: list[str]) -> str:
    """Name of what these words make of these sources, on this kind of processor."""
    made_of = hashlib.sha256("\0".join([platform.machine(), *words]).encode(errors="replace"))
    for source in sorted([*where.glob("*.c"), *where.glob("*.h")]):
        made_of.update(b"\0" + source.name.encode() + b"\0" + source.read_bytes())
    return made_of.hexdigest()[:16]


def _place(key: str) -> Path:
    return cache.folder() / "programs" / key


def _keep_log(folder: Path, command: list[str], done: Finished) -> None:
    (folder / LOG).write_text(f"{shlex.join(command)}\n{done.text}", encoding="utf-8")


def _refused(program: str, compiler: Compiler, done: Finished, log: Path) -> BuildError:
    hint = f"all that the compiler said is in {log}"
    said = done.text.lower()
    if full := next((words for words in _FULL_WORDS if words in said), None):
        # Each tool has its own page about it, with names of files that are gone by now.
        return BuildError(
            f"{full} in {cache.folder()} while building popmodel-{program}",
            "free some space there, or name another folder in POPMODEL_CACHE_DIR",
        )
    if any(sign in said for sign in ("omp.h", "-lomp", "-lgomp", "libgomp", compiler.openmp)):
        hint = f"this compiler lacks OpenMP: install its runtime, or name another in CC ({log})"
    name = shlex.join(compiler.command)
    return BuildError(f"{name} cannot build popmodel-{program}: {done.first_error}", hint)


def _unwritable(folder: Path, error: OSError) -> FileError:
    hint = "name another folder in POPMODEL_CACHE_DIR"
    if error.errno in _FULL:
        hint = f"free some space there, or {hint}"
    problem = f"the measuring programs cannot be kept here: {error.strerror}"
    return FileError(folder, problem, hint=hint)
