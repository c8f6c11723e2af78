"""Functions and source lines of addresses, by a program's file.

Names of functions come from its symbol table, which all programs have that were not stripped; lines
from its debugging data (``-g``), by addr2line.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from popmodel.trace.function_names import readable
from popmodel.tracer.demangle import demangle
from popmodel.tracer.symbols import read_symbols
from popmodel.values import dataclass

TOOLS = ("addr2line", "eu-addr2line", "llvm-addr2line")

_PATIENCE = 120.0  # seconds: programs with the debugging data of large libraries
_AT_ONCE = 1000  # addresses in a command
_LINE = re.compile(r"(.+):(\d+)(?: \(discriminator \d+\))?")


@dataclass(frozen=True)
class Place:
    """Where in a program an address is."""

    function: str | None = None  # As its author wrote it
    line: str | None = None  # Such as ``solver.c:42``


class SourceLines:
    """Finds functions and source lines, and remembers why it could not.

    Attributes
    ----------
    problem : str or None
        Why lines are missing that might have been found.
    """

    def __init__(self) -> None:
        self.problem: str | None = None

    def __call__(self, module: str, offsets: Sequence[int]) -> list[Place]:
        """Find places in a program or library."""
        symbols = read_symbols(module)
        told = self._lines(module, offsets)
        names = [
            # Where a function was inlined into another, the line is in the inner one.
            (name if line else None) or (symbols(offset) if symbols else None)
            for offset, (name, line) in zip(offsets, told, strict=True)
        ]
        plain = iter(demangle([_mangled(name) for name in names if name]))
        return [
            Place(readable(next(plain)) if name else None, line)
            for name, (_, line) in zip(names, told, strict=True)
        ]

    def _lines(self, module: str, offsets: Sequence[int]) -> list[tuple[str | None, str | None]]:
        """Function and line of each address, as the debugging data have them."""
        none: list[tuple[str | None, str | None]] = [(None, None)] * len(offsets)
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
            (None if name.startswith("??") else name.strip(), _short(line))
            for name, line in zip(said[::2], said[1::2], strict=True)
        ]


def _mangled(name: str) -> str:
    """A name without what compilers add to it, which is in the way of demangling."""
    return readable(name) if name.startswith("_Z") else name


def _short(said: str) -> str | None:
    """File and line; None where the program was built without debugging data (``-g``)."""
    found = _LINE.fullmatch(said.strip())
    if found is None or found[1].startswith("??") or found[2] == "0":
        return None
    return f"{Path(found[1]).name}:{found[2]}"
