"""The library that is loaded into programs: for which MPI it has to be, and building it.

A library built for one make of MPI does not work with another: handles and constants differ. The
MPI of a command is that of its launcher, where the launcher has a compiler wrapper beside it; else
the one that `popmodel.machine.toolchain` finds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from popmodel.errors import FileError
from popmodel.machine.build import build_tracer
from popmodel.machine.toolchain import (
    MPI_COMPILERS,
    Compiler,
    Mpi,
    ToolchainError,
    find_compiler,
    find_mpi,
)
from popmodel.tracer.commands import Command


@dataclass(frozen=True)
class Library:
    """A built library.

    Attributes
    ----------
    path : Path
        The file.
    compiler : Compiler
        What linked it.
    mpi : Mpi or None
        The MPI that it is for; None if it observes OpenMP only.
    without_mpi : str or None
        Why it is for none.
    """

    path: Path
    compiler: Compiler
    mpi: Mpi | None
    without_mpi: str | None = None


def find_or_build(
    command: Command | None = None, environment: Mapping[str, str] = os.environ
) -> Library:
    """Build the library for a command, or find it as it was built before.

    Parameters
    ----------
    command : Command, optional
        What is to be traced; without it the library is for the MPI at hand.
    environment : mapping of str to str
        With ``MPICC``, ``CC``, ``PATH``.

    Returns
    -------
    Library
        Without MPI where there is none and the command is not known to need it.

    Raises
    ------
    ToolchainError
        There is no compiler, or no MPI although a launcher of MPI is called.
    BuildError, FileError
        It cannot be built or kept.
    """
    own = dict(environment)
    if command is not None and command.is_launcher and not own.get("MPICC"):
        if beside := _wrapper_beside(command.path):
            own["MPICC"] = beside
    mpi, why = None, None
    try:
        mpi = find_mpi(environment=own)
    except ToolchainError as error:
        if command is None or command.is_launcher or own.get("MPICC"):
            raise
        why = error.message
    compiler = find_compiler(mpi, own)
    path = build_tracer(compiler, mpi, own)
    if re.search(r"[\s:]", str(path)):
        raise FileError(
            path,
            "cannot be loaded into a program: a path in LD_PRELOAD holds no blank and no colon",
            hint="name another folder in POPMODEL_CACHE_DIR",
        )
    return Library(path, compiler, mpi, why)


def _wrapper_beside(launcher: str) -> str | None:
    """The compiler wrapper in the folder of a launcher."""
    for name in MPI_COMPILERS:
        path = Path(launcher).parent / name
        if os.access(path, os.X_OK):
            return str(path)
    return None
