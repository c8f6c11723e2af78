"""The library that is loaded into programs: for which MPI it has to be, and building it.

A library built for one make of MPI does not work with another: handles and constants differ. The
MPI of a command is the one that its program is linked with, or that of its launcher, where they are
installed with a compiler wrapper; else the one that `popmodel.host.toolchain` finds.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from popmodel.errors import PopmodelError
from popmodel.host.build import build, build_tracer
from popmodel.host.processes import output_of
from popmodel.host.toolchain import (
    MPI_COMPILERS,
    Compiler,
    Mpi,
    ToolchainError,
    find_compiler,
    find_mpi,
)
from popmodel.tracer import prebuilt as kept
from popmodel.tracer.commands import TracedCommand, is_dynamic
from popmodel.tracer.environment import refuse_unloadable
from popmodel.values import dataclass

_PATIENCE = 60.0  # seconds for the loader to look at all libraries, over a slow network
_LEVELS = 4  # folders above a library, of which one has a bin: lib, lib64, lib/x86_64-linux-gnu
_SUFFIXES: Mapping[str, str] = {"Open MPI": "openmpi", "Hydra": "mpich"}
"""Ends of names by which Debian tells several makes of MPI in one folder: mpicc.mpich."""


@dataclass(frozen=True)
class Library:
    """A built library."""

    path: Path  # The file
    compiler: Compiler  # What linked it
    mpi: Mpi | None  # The MPI that it is for; None if it observes OpenMP only
    without_mpi: str | None = None  # Why it is for none
    # The program that measures what recording costs (`popmodel.tracer.summary`).
    cost: Path | None = None
    without_cost: str | None = None  # Why there is none


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
    except ToolchainError:
        if _has_compiler(environment):
            raise
        # On a node without a compiler: what was built for it on another one.
        there = kept.find(
            None if linked is None else _is_open_mpi(linked),
            environment,
            for_mpi=linked is not None or (command is not None and command.is_launcher),
        )
        if there is None:
            raise
        refuse_unloadable(there.path, "set POPMODEL_CACHE_DIR to another directory")
        no_cost = None if there.cost else "there is no compiler on this machine"
        return Library(there.path, there.compiler, there.mpi, None, there.cost, no_cost)


def _has_compiler(environment: Mapping[str, str]) -> bool:
    try:
        find_compiler(None, environment)
    except ToolchainError:
        return False
    return True


def _built(
    command: TracedCommand | None,
    linked: Path | None,
    environment: Mapping[str, str],
    on_build: Callable[[str], None] | None,
) -> Library:
    own = dict(environment)
    if command is not None and not own.get("MPICC"):
        found = _wrapper_of(linked) or _wrapper_of_launcher(command, environment)
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
    cost, no_cost = None, None
    try:
        cost = build("trace-cost", compiler, own)
    except PopmodelError as error:  # a program can be traced without it
        no_cost = error.message
    kept.keep(kept.Kept(path, compiler, mpi, cost))
    return Library(path, compiler, mpi, why, cost, no_cost)


def _linked_with(command: TracedCommand, environment: Mapping[str, str]) -> Path | None:
    """The MPI library that the program of a command is linked with; None for none, or a script."""
    program = command.program
    if program is None or not is_dynamic(program):
        return None
    # What ldd does: the loader says what it would load, and starts nothing.
    said = output_of(
        [str(program.absolute())],
        timeout=_PATIENCE,
        environment={**environment, "LD_TRACE_LOADED_OBJECTS": "1"},
    )
    found = re.search(r"^\s*libmpi(?:ch)?\.so[.\d]* => (/.+) \(0x", said.text, re.MULTILINE)
    return Path(found[1]) if found else None


def _wrapper_of(library: Path | None) -> str | None:
    """The compiler wrapper of the installation that a library belongs to."""
    if library is None:
        return None
    is_open_mpi = _is_open_mpi(library)
    suffix = None if is_open_mpi is None else _SUFFIXES["Open MPI" if is_open_mpi else "Hydra"]
    for place in list(library.absolute().parents)[:_LEVELS]:
        if found := _wrapper_in(place / "bin", suffix):
            return found
    return None


def _wrapper_of_launcher(command: TracedCommand, environment: Mapping[str, str]) -> str | None:
    if not command.is_launcher:
        return None
    found = shutil.which(command.words[command.start], path=environment.get("PATH", os.defpath))
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
