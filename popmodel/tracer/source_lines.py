"""Source lines of functions: what addr2line makes of their places in a program's file."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

TOOLS = ("addr2line", "eu-addr2line", "llvm-addr2line")

_PATIENCE = 120.0  # seconds: programs with the debugging data of large libraries
_LINE = re.compile(r"(.+):(\d+)(?: \(discriminator \d+\))?")


class SourceLines:
    """Finds source lines, and remembers why it could not.

    Attributes
    ----------
    problem : str or None
        Why lines are missing that might have been found.
    """

    def __init__(self) -> None:
        self.problem: str | None = None

    def __call__(self, module: str, offsets: Sequence[int]) -> list[str | None]:
        """Find the lines of places in a program or library, such as ``solver.c:42``.

        Parameters
        ----------
        module : str
            Its file.
        offsets : sequence of int
            Addresses as they are in the file.
        """
        none: list[str | None] = [None] * len(offsets)
        tool = next(filter(None, map(shutil.which, TOOLS)), None)
        if tool is None:
            self.problem = "source lines of parallel regions: there is no addr2line (binutils)"
            return none
        try:
            done = subprocess.run(
                [tool, "-e", module, *map(hex, offsets)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "LC_ALL": "C"},
                timeout=_PATIENCE,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            self.problem = f"source lines of parallel regions: {error}"
            return none
        said = done.stdout.decode("utf-8", "replace").splitlines()
        if done.returncode != 0 or len(said) != len(offsets):
            self.problem = f"source lines of parallel regions: {tool} cannot read {module}"
            return none
        return [_short(line) for line in said]


def _short(said: str) -> str | None:
    """File and line; None where the program was built without debugging data (``-g``)."""
    found = _LINE.fullmatch(said.strip())
    if found is None or found[1].startswith("??") or found[2] == "0":
        return None
    return f"{Path(found[1]).name}:{found[2]}"
