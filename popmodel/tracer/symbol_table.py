"""Functions and source lines of addresses, by a program's file.

Names of functions come from its symbol table, which all programs have that were not stripped, lines
from its debugging data (``-g``): addr2line tells both.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from popmodel.traces.regions import readable, without_arguments

_RUNTIMES = {"GOMP_parallel": "OpenMP", "__kmpc_fork_call": "OpenMP", "PMPI_Init": "MPI"}
TOOLS = ("addr2line", "eu-addr2line", "llvm-addr2line")

_PATIENCE = 120.0  # seconds: programs with the debugging data of large libraries
_AT_ONCE = 1000  # addresses in a command
_LINE = re.compile(r"(.+):(\d+)(?: \(discriminator \d+\))?")


class SymbolPlace(NamedTuple):
    """Where in a program an address is."""

    function: str | None = None  # As its author wrote it
    line: str | None = None  # Such as ``solver.c:42``


class SourceLines:
    """Finds functions and source lines, and remembers why it could not."""

    def __init__(self) -> None:
        self.problem: str | None = None  # why lines are missing that might have been found

    def __call__(self, module: str, offsets: Sequence[int]) -> list[SymbolPlace]:
        """Find places in a program or library."""
        told = self._lines(module, offsets)
        # What compilers add to a name is in the way of demangling.
        names = [readable(name) if name.startswith("_Z") else name for name, _ in told]
        return [
            SymbolPlace(readable(name) or None, line)
            for name, (_, line) in zip(demangle(names), told, strict=True)
        ]

    def _lines(self, module: str, offsets: Sequence[int]) -> list[tuple[str, str | None]]:
        """Function and line of each address, as the debugging data have them."""
        none: list[tuple[str, str | None]] = [("", None)] * len(offsets)
        tool = next(filter(None, map(shutil.which, TOOLS)), None)
        if tool is None:
            self.problem = "no source lines: addr2line (binutils) not found"
            return none
        said: list[str] = []
        for begin in range(0, len(offsets), _AT_ONCE):
            try:
                done = subprocess.run(
                    [tool, "-f", "-e", module, *map(hex, offsets[begin : begin + _AT_ONCE])],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env={**os.environ, "LC_ALL": "C"},
                    timeout=_PATIENCE,
                    check=False,
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                self.problem = f"no source lines: {error}"
                return none
            said += done.stdout.decode("utf-8", "replace").splitlines()
            if done.returncode != 0:
                break
        if len(said) != 2 * len(offsets):
            self.problem = f"no source lines: {tool} cannot read {module}"
            return none
        return [
            ("" if name.startswith("??") else name.strip(), _short(line))
            for name, line in zip(said[::2], said[1::2], strict=True)
        ]


def _short(said: str) -> str | None:
    """File and line; None where the program was built without debugging data (``-g``)."""
    found = _LINE.fullmatch(said.strip())
    if found is None or found[1].startswith("??") or found[2] == "0":
        return None
    return f"{Path(found[1]).name}:{found[2]}"


def built_in(program: str) -> list[str]:
    """What a program brings along that the tracer would have to be in front of: OpenMP, MPI.

    Nothing where that is not known: for scripts, and for programs without symbols.
    """
    tool = next(filter(None, map(shutil.which, ("nm", "llvm-nm"))), None)
    if tool is None:
        return []
    command = [tool, "--defined-only", program]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    names = set(re.findall(r"^[0-9a-f]+ \w (\w+)$", done.stdout.decode("utf-8", "replace"), re.M))
    return sorted({what for name, what in _RUNTIMES.items() if name in names})


# Names of C++ functions.


_LIBRARIES = ("libstdc++.so.6", "libc++abi.so.1")


def demangle(names: Sequence[str]) -> list[str]:
    """Names without their mangling, arguments and result: ``Mesh::split`` for ``_ZN4Mesh5splitEv``.

    What is no such name, or no library here knows, stays as it is.
    """
    mangled = sorted({name for name in names if name.startswith("_Z")})
    plain = dict(zip(mangled, _by_library(mangled), strict=True))
    return [without_arguments(plain[name]) if name in plain else name for name in names]


def _by_library(names: Sequence[str]) -> list[str]:
    """By the library that every C++ program is linked with."""
    function = _function()
    made: list[str] = []
    for name in names:
        status = ctypes.c_int(-1)
        text = function and function(name.encode(), None, None, ctypes.byref(status))
        if status.value == 0 and text:
            made.append(ctypes.string_at(text).decode("utf-8", "replace"))
            ctypes.CDLL(None).free(ctypes.c_void_p(text))
        else:
            made.append(name)
    return made


@cache
def _function() -> Any:
    for name in _LIBRARIES:
        try:
            function = ctypes.CDLL(name)["__cxa_demangle"]
        except (OSError, AttributeError):
            continue
        function.restype = ctypes.c_void_p
        function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        return function
    return None
