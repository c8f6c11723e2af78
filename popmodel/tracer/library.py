"""The library that is loaded into programs: for which MPI it has to be, and building it.

A library built for one make of MPI does not work with another: handles and constants differ. The
MPI of a command is the one that its program is linked with, or that of its launcher, where they are
installed with a compiler wrapper; else the one that `popmodel.machines.host.toolchain` finds.

Compute nodes often have no compiler: what `popmodel trace --print-env` has built on a login node
is found there in the cache, by a file beside each library that says what it is for.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from popmodel.base import files
from popmodel.machines.host.build import PROGRAMS, TRACER, build_tracer, is_as_built, tracer_sources
from popmodel.machines.host.processes import output_of
from popmodel.machines.host.toolchain import (
    LAUNCHERS,
    MPI_COMPILERS,
    Compiler,
    Mpi,
    ToolchainError,
    find_compiler,
    find_mpi,
)
from popmodel.tracer.commands import TracedCommand, is_dynamic, refuse_unloadable

_PATIENCE = 60.0  # seconds for the loader to look at all libraries, over a slow network
_MADE_FOR = "made-for.json"  # beside a library: what it is for
_STANDARD = "libmpi_abi."  # the library of programs that are built for the ABI of the standard
_LEVELS = 4  # folders above a library, of which one has a bin: lib, lib64, lib/x86_64-linux-gnu
_SUFFIXES: Mapping[str, str] = {"Open MPI": "openmpi", "Hydra": "mpich"}
"""Ends of names by which Debian tells several makes of MPI in one folder: mpicc.mpich."""


class Library(NamedTuple):
    """A built library."""

    path: Path  # The file
    compiler: Compiler  # What linked it
    mpi: Mpi | None  # The MPI that it is for; None if it observes OpenMP only
    without_mpi: str | None = None  # Why it is for none


def find_or_build(
    command: TracedCommand | None = None,
    environment: Mapping[str, str] = os.environ,
    on_build: Callable[[str], None] | None = None,
) -> Library:
    """Build the library for a command, or find it as it was built before.

    Where there is no compiler it is the one that was built last for such a program.
    """
    linked = None if command is None else _linked_with(command, environment)
    try:
        return _built(command, linked, environment, on_build)
    except ToolchainError as error:
        try:
            find_compiler(None, environment)
        except ToolchainError:
            pass
        else:
            raise error from None
        # On a node without a compiler: what was built for it on another one.
        there = _prebuilt(
            None if linked is None else _is_open_mpi(linked),
            environment,
            for_mpi=linked is not None or (command is not None and command.is_launcher),
        )
        if there is None:
            raise
        refuse_unloadable(there.path, "set POPMODEL_CACHE_DIR to another directory")
        return there


def launcher_of_program(
    command: TracedCommand, environment: Mapping[str, str] = os.environ
) -> str | None:
    """The launcher that lies beside the MPI that the program of a command is linked with."""
    wrapper = _wrapper_of(_linked_with(command, environment))
    beside = [] if wrapper is None else [Path(wrapper).with_name(name) for name in LAUNCHERS]
    return next((str(path) for path in beside if os.access(path, os.X_OK)), None)


def _built(
    command: TracedCommand | None,
    linked: Path | None,
    environment: Mapping[str, str],
    on_build: Callable[[str], None] | None,
) -> Library:
    own = dict(environment)
    if command is not None and not own.get("MPICC"):
        found = _wrapper_of(linked) or _wrapper_beside(command, environment)
        if found is not None:
            own["MPICC"] = shlex.quote(found)
    mpi, why = None, None
    try:
        mpi = find_mpi(environment=own)
    except ToolchainError as error:
        if command is None or command.is_launcher or linked or own.get("MPICC"):
            raise
        why = error.message
    if mpi is not None and linked is not None:
        _refuse_another(mpi, linked)
    compiler = find_compiler(mpi, own)
    name = "programs without MPI" if mpi is None else mpi.name
    path = build_tracer(compiler, mpi, own, on_build and partial(on_build, name))
    refuse_unloadable(path, "set POPMODEL_CACHE_DIR to another directory")
    library = Library(path, compiler, mpi, why)
    _say_made_for(library)
    return library


def _say_made_for(library: Library) -> None:
    """Say beside a library what it is for, where that can be written."""
    mpi = library.mpi
    said = {
        "sources": tracer_sources(),
        "compiler": library.compiler.version,
        "mpi": None if mpi is None else [mpi.library, mpi.version],
    }
    path = library.path.with_name(_MADE_FOR)
    text = json.dumps(said, allow_nan=False)
    try:
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            files.write_text(path, text)
    except OSError:
        pass  # a cache that can be read only: it serves those who have a compiler


def _prebuilt(
    open_mpi: bool | None, environment: Mapping[str, str], *, for_mpi: bool
) -> Library | None:
    """Find the library of this popmodel that was built last."""
    if environment.get("MPICC") or environment.get("CC"):
        return None
    fitting = []
    for built, library in _all_prebuilt():
        if library.mpi is None:
            fits = not for_mpi and open_mpi is None
        else:
            fits = open_mpi is None or (library.mpi.library == "Open MPI") == open_mpi
        if fits:
            # One for an MPI serves a program without; the other way round it does not.
            fitting.append((library.mpi is not None, built, library))
    return max(fitting, key=lambda each: each[:2])[2] if fitting else None


def _all_prebuilt() -> Iterator[tuple[float, Library]]:
    """Libraries of this popmodel in the cache, and when each was built."""
    sources = tracer_sources()
    for path in sorted((files.cache_folder() / PROGRAMS).glob(f"*/{_MADE_FOR}")):
        library = path.with_name(TRACER)
        if files.doubt_of_cache(PROGRAMS, path.parent.name) or not is_as_built(library):
            continue
        try:
            if files.doubt_of_file(path.stat()):
                continue
            said = json.loads(path.read_text(encoding="utf-8"))
            if said["sources"] != sources:
                continue
            compiler = Compiler((), str(said["compiler"]), "")
            mpi = None
            if said["mpi"] is not None:
                make, version = map(str, said["mpi"])
                mpi = Mpi(compiler, (), make, version, identity="", origin="user")
        except (OSError, ValueError, KeyError, TypeError):
            continue  # it is as if there were none
        yield library.stat().st_mtime, Library(library, compiler, mpi)


def _linked_with(command: TracedCommand, environment: Mapping[str, str]) -> Path | None:
    """The MPI library that the program of a command is linked with; None for none, or a script.

    Of a command that is no launcher it may be any word: ``perf stat ./app``, ``flux run ./app``.
    """
    programs = [] if command.program is None else [command.program]
    if not command.is_launcher:
        words = (word for word in command.words[1:] if "/" in word)
        programs += [Path(word) for word in words if os.access(word, os.X_OK)]
    for program in programs:
        if program.is_file() and is_dynamic(program) and (linked := _loaded(program, environment)):
            return linked
    return None


def _loaded(program: Path, environment: Mapping[str, str]) -> Path | None:
    """The MPI library that the loader finds for a program."""
    # What ldd does: the loader says what it would load, and starts nothing.
    said = output_of(
        [str(program.absolute())],
        timeout=_PATIENCE,
        environment={**environment, "LD_TRACE_LOADED_OBJECTS": "1"},
    )
    found = re.search(r"^\s*libmpi(?:ch|_abi)?\.so[.\d]* => (/.+) \(0x", said.text, re.MULTILINE)
    return Path(found[1]) if found else None


def _wrapper_of(library: Path | None) -> str | None:
    """The compiler wrapper of the installation that a library belongs to."""
    if library is None:
        return None
    is_open_mpi = _is_open_mpi(library)
    suffix = None if is_open_mpi is None else _SUFFIXES["Open MPI" if is_open_mpi else "Hydra"]
    for place in list(library.absolute().parents)[:_LEVELS]:
        if library.name.startswith(_STANDARD):
            path = place / "bin" / "mpicc_abi"
            if os.access(path, os.X_OK):
                return str(path)
        elif (found := _wrapper_in(place / "bin", suffix)) is not None:
            return found
    return None


def _wrapper_beside(command: TracedCommand, environment: Mapping[str, str]) -> str | None:
    """The compiler wrapper beside a launcher, or beside the Python that runs a script."""
    word = command.words[command.start]
    if not command.is_launcher and not Path(word).name.startswith("python"):
        return None
    found = shutil.which(word, path=environment.get("PATH", os.defpath))
    suffix = _SUFFIXES.get(command.family or "")
    return None if found is None else _wrapper_in(Path(found).parent, suffix)


def _wrapper_in(folder: Path, suffix: str | None) -> str | None:
    """A compiler wrapper in a folder, first the one of a make where the folder has several."""
    own = [f"{name}.{suffix}" for name in MPI_COMPILERS] if suffix else []
    for name in (*own, *MPI_COMPILERS):
        path = folder / name
        if os.access(path, os.X_OK):
            return str(path)
    return None


def _is_open_mpi(library: Path) -> bool | None:
    """Whether a library is that of Open MPI; None if it can be loaded and not read."""
    try:
        return b"ompi_mpi_comm_world" in library.read_bytes()
    except OSError:
        return None


def _refuse_another(mpi: Mpi, linked: Path) -> None:
    """Make sure that a program is linked with the make of MPI that the library is built for."""
    is_open_mpi = _is_open_mpi(linked)
    if is_open_mpi is None:
        return  # the library looks again when it is loaded
    if is_open_mpi != (mpi.library == "Open MPI"):
        own = "Open MPI" if is_open_mpi else "another MPI"
        raise ToolchainError(
            f"the program is linked with {own} ({linked}), but {mpi.compiler.command[0]} belongs "
            "to "
            f"{mpi.name}",
            "load the module of the program's MPI, or set MPICC to its compiler wrapper",
        )
