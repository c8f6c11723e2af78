"""What popmodel builds with the user's compiler when it is needed, and keeps.

The measuring programs, and the library that traces.

What is built is found again by everything that it was made from: the sources, the flags, the
compiler, the MPI, the kind of processor. It gets its name when it is complete, so that processes
that build the same one at once do not see a part of it. It is run only if nobody else can have
written it, and if it is what was built: its checksum lies beside it. A library that was cut short
would end the program that it is loaded into.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import platform
import re
import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from popmodel.base import files, shell
from popmodel.base.errors import FileError, PopmodelError
from popmodel.machines.host.processes import Finished, output_of
from popmodel.machines.host.toolchain import Compiler, Mpi, identity_of

_COMMON = (
    *("batch.c", "cpus.c", "jobs.c", "machine_state.c", "pace.c", "program.c", "samples.c"),
    *("team.c", "text.c"),
)

SOURCES: Mapping[str, tuple[str, ...]] = {
    "node": (
        *_COMMON,
        *("arrays.c", "core.c", "files.c", "memory.c", "mixed.c", "node_main.c", "noise.c"),
        *("openmp_arrays.c", "openmp_constructs.c", "openmp_regions.c", "rows.c", "sharing.c"),
        "vectors.c",
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

TRACER = "libpopmodel_trace.so"
"""The library that traces; its sources are the folder ``tracer`` beside those of the programs."""

PROGRAMS = "programs"
"""Folder in the cache of what was built."""
LOG = "build.log"
SUM = ".sha256"
"""Ends the name of the file that holds the checksum."""
MADE = "{made}"
"""Stands in a command for the file that is made."""

_PATIENCE = 300.0  # seconds: a loaded login node with a slow file system
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FULL_WORDS = ("no space left", "disk quota exceeded")


class BuildError(PopmodelError):
    """A measuring program cannot be built."""


def sources() -> Path:
    """Return the folder of the C sources: inside an installed popmodel, else beside it."""
    package = Path(__file__).resolve().parents[2]
    for folder in (package / "microbench", package.parent / "microbench"):
        if (folder / "hello.c").is_file():
            return folder
    raise BuildError(
        f"{package}: the sources of the benchmark programs are missing",
        "reinstall popmodel: the package is incomplete",
    )


def build(
    program: str,
    toolchain: Compiler | Mpi,
    environment: Mapping[str, str] = os.environ,
) -> Path:
    """Build a measuring program, or find it as it was built before."""
    compiler = toolchain.compiler if isinstance(toolchain, Mpi) else toolchain
    identity = toolchain.identity if isinstance(toolchain, Mpi) else ""
    where = sources()
    words = _compile(program, compiler, environment, where)
    folders = sorted({(where / name).parent for name in SOURCES[program]})
    steps = [(compiler, [*words, "-o", MADE, "-lm"])]
    return make(f"popmodel-{program}", steps, folders, identity, environment)


def build_tracer(
    compiler: Compiler,
    mpi: Mpi | None,
    environment: Mapping[str, str] = os.environ,
    on_begin: Callable[[], None] | None = None,
) -> Path:
    """Build the library that traces, or find it as it was built before."""
    where = sources() / "tracer"
    files = sorted(where.glob("*.c"))
    compiling = compiler if mpi is None else mpi.compiler
    if mpi is None:
        files = [path for path in files if not _needs_mpi(path)]
    flags = [
        *("-std=c11", "-D_GNU_SOURCE=", "-O2", "-fPIC", "-fvisibility=hidden"),
        *_words("CFLAGS", environment),
        "-c",
        *map(str, files),
    ]
    link = [
        # Some compilers are wrappers of an MPI themselves (Cray's cc).
        *("-shared", "-Wl,--as-needed", "-o", MADE),
        *(f"{path.stem}.o" for path in files),
        *_words("LDFLAGS", environment),
        *("-ldl", "-lpthread"),
    ]
    identity = "" if mpi is None else mpi.identity
    steps = [(compiling, flags), (compiler, link)]
    return make(TRACER, steps, [where], identity, environment, on_begin)


def make(
    name: str,
    steps: Sequence[tuple[Compiler, list[str]]],
    folders: Sequence[Path],
    identity: str,
    environment: Mapping[str, str],
    on_begin: Callable[[], None] | None = None,
) -> Path:
    """Make a file, or find it as it was made before.

    Steps are calls of compilers, one after the other; `MADE` among their words is the file. Several
    of them are in an empty folder, where one leaves for the next what it needs. All C sources of
    the folders, and the identity of an MPI, are a part of what the file is made from.
    """
    names = (PROGRAMS, _key(steps, folders, identity, environment))
    folder = files.cache_folder(*names)
    target = folder / name
    if why := files.doubt_of_cache(*names):
        raise BuildError(
            f"{why}: programs in it are not run",
            f"if you trust its contents, chmod -R go-w {shell.quote(str(files.cache_folder()))}; "
            "otherwise set POPMODEL_CACHE_DIR to another directory",
        )
    if is_as_built(target):
        return target
    if on_begin is not None:
        on_begin()
    try:
        files.make_cache_folder(*names)
        with tempfile.TemporaryDirectory(prefix="building-", dir=folder) as scratch:
            made = Path(scratch) / name
            log: list[str] = []
            for compiler, words in steps:
                command = [*compiler.command, *words]
                done = output_of(
                    [str(made) if word == MADE else word for word in command],
                    timeout=_PATIENCE,
                    environment={**environment, "LC_ALL": "C", "TMPDIR": scratch},
                    folder=None if len(steps) == 1 else scratch,
                )
                log += [shlex.join(command).replace(shlex.quote(MADE), name), done.text]
                files.write_text(folder / LOG, "\n".join(log))
                if done.status != 0:
                    raise _refused(name, compiler, words, done, folder / LOG)
            if not made.exists():
                raise _refused(name, compiler, words, done, folder / LOG)
            if not is_as_built(target):  # by another process meanwhile
                made.chmod(0o755)  # an umask may let the group write
                # The checksum first: a file without one is built anew.
                files.write_text(_sum_of(target), _checksum(made.read_bytes()), 0o644)
                made.replace(target)
    except OSError as error:
        hint = "set POPMODEL_CACHE_DIR to another directory"
        if error.errno in _FULL:
            hint = f"free some space there, or {hint}"
        problem = f"cannot store build results here: {error.strerror}"
        raise FileError(folder, problem, hint=hint) from error
    return target


def is_as_built(target: Path) -> bool:
    """Whether a file is there that was built here and has not been changed since."""
    try:
        content, stated = _own_bytes(target), _own_bytes(_sum_of(target))
    except OSError:
        return False
    return os.access(target, os.X_OK) and stated == _checksum(content).encode()


def _own_bytes(path: Path) -> bytes:
    """Content of a file that only its user can have written; OSError if there is none."""
    with io.FileIO(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)) as file:
        if why := files.doubt_of_file(os.fstat(file.fileno())):
            raise PermissionError(errno.EACCES, why)
        return file.readall()


def _sum_of(target: Path) -> Path:
    return target.with_name(f"{target.name}{SUM}")


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _needs_mpi(source: Path, seen: frozenset[Path] = frozenset()) -> bool:
    """Whether a source includes mpi.h, itself or by files beside it."""
    text = source.read_text(encoding="utf-8")
    if re.search(r"^#include <mpi\.h>", text, re.MULTILINE):
        return True
    beside = [source.parent / name for name in re.findall(r'^#include "(.+?)"', text, re.MULTILINE)]
    return any(
        _needs_mpi(path, seen | {source}) for path in beside if path not in seen and path.is_file()
    )


def _compile(
    program: str, compiler: Compiler, environment: Mapping[str, str], where: Path
) -> list[str]:
    """Words for the compiler, but for the output.

    There is no -march=native: the machine that measures may be older than this one. The programs
    choose their instructions when they run.
    """
    # The ISO modes of GCC would keep a * b + c two instructions; NVIDIA's compiler lacks the flag.
    contract = [] if compiler.openmp == "-mp" else ["-ffp-contract=fast"]
    return [
        *("-std=c11", "-D_POSIX_C_SOURCE=200809L", compiler.openmp, *contract, "-O2"),
        *_words("CFLAGS", environment),
        *(str(where / name) for name in SOURCES[program]),
        *_words("LDFLAGS", environment),
    ]


def _words(variable: str, environment: Mapping[str, str]) -> list[str]:
    try:
        return shlex.split(environment.get(variable, ""))
    except ValueError as error:
        problem = str(error).lower()
        hint = f"try {variable}='-O3 -g'"
        raise BuildError(f"${variable}: {problem}", hint) from None


def _key(
    steps: Sequence[tuple[Compiler, list[str]]],
    folders: Sequence[Path],
    identity: str,
    environment: Mapping[str, str],
) -> str:
    """Name of what these words make of these sources, on this kind of processor."""
    text = [platform.machine(), identity]
    for compiler, words in steps:
        text += [*identity_of(compiler, environment), *words]
    made_of = hashlib.sha256("\0".join(text).encode(errors="replace"))
    made_of.update(_content_of(folders))
    return made_of.hexdigest()[:16]


def tracer_sources() -> str:
    """Name of the sources of the tracer, which changes with them."""
    return hashlib.sha256(_content_of((sources() / "tracer",))).hexdigest()[:16]


def _content_of(folders: Sequence[Path]) -> bytes:
    found = (path for folder in folders for path in sorted(folder.glob("*.[ch]")))
    return b"".join(b"\0" + path.name.encode() + b"\0" + path.read_bytes() for path in found)


def _refused(
    name: str, compiler: Compiler, words: Sequence[str], done: Finished, log: Path
) -> BuildError:
    hint = f"full compiler output: {log}"
    said = done.text.lower()
    if full := next((text for text in _FULL_WORDS if text in said), None):
        # Each tool has its own page about it, with names of files that are gone by now.
        return BuildError(
            f"{full} in {files.cache_folder()} while building {name}",
            "free some space there, or set POPMODEL_CACHE_DIR to another directory",
        )
    openmp = compiler.openmp
    signs = ("omp.h", "-lomp", "-lgomp", "libgomp", openmp)
    if openmp in words and any(sign in said for sign in signs):
        hint = f"install the OpenMP runtime of this compiler, or set CC to another one ({log})"
    called = shlex.join(compiler.command)
    return BuildError(f"{called} failed to build {name}: {done.first_error}", hint)
