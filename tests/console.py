"""Console blocks of the documents: what they say a command prints, and what it does print.

A block begins with ```` ```console ````. A line that begins with ``$ popmodel`` is a command for a
shell (a line that ends with a backslash goes on in the next); what follows it, up to the next
command or the end of the block, is its output.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 80

_BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\$ (popmodel (?:[^\n]*\\\n)*[^\n]*)\n", re.MULTILINE)
_PROVENANCE = re.compile(r"\n\npopmodel \d[^\n]*\n(?:[^\n]+\n)*\Z")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Step:
    """A command of a document and the output shown below it."""

    document: Path
    command: str
    shown: str

    def __str__(self) -> str:
        return f"{self.document.relative_to(ROOT)}: {self.command}"


def documents() -> list[Path]:
    """Every document that may hold console blocks."""
    return [
        *(ROOT / name for name in ("README.md", ".github/CONTRIBUTING.md", ".github/EXTENDING.md")),
        *sorted((ROOT / "popmodel" / "docs").glob("*.md")),
        *sorted((ROOT / "examples").rglob("README.md")),
    ]


def steps(document: Path) -> Iterator[Step]:
    """Give the commands of a document, in its order, with what is shown below each."""
    for block in _BLOCK.finditer(document.read_text()):
        for command, shown in _commands(block[0]):
            yield Step(document, command, shown)


def printed(command: str) -> str:
    """What a command prints in the root of the repository, without the line of provenance.

    Raises
    ------
    RuntimeError
        If it fails or writes to standard error.
    """
    environment = {**os.environ, "COLUMNS": str(WIDTH), "LC_ALL": "C.UTF-8"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    ended = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    if ended.returncode or ended.stderr:
        raise RuntimeError(f"{command}: exit status {ended.returncode}: {ended.stderr.strip()}")
    return _PROVENANCE.sub("\n", ended.stdout)


def updated(text: str) -> str:
    """Put what the commands print now into the console blocks of a document."""

    def block(match: re.Match[str]) -> str:
        found = _commands(match[0])
        if not found:
            return match[0]
        return "\n".join(f"$ {command}\n{printed(command)}" for command, _ in found)

    return _BLOCK.sub(block, text)


def differences(now: str, shown: str) -> list[str]:
    """How an output differs from the one that is shown; nothing if both agree.

    Words have to be the same, in any layout. Numbers may be 2 % or a digit apart: random draws end
    differently on another processor.
    """
    ours, theirs = _NUMBER.sub("#", now).split(), _NUMBER.sub("#", shown).split()
    if ours != theirs:
        return [f"printed: {' '.join(ours)}", f"shown:   {' '.join(theirs)}"]
    pairs = zip(_NUMBER.findall(now), _NUMBER.findall(shown), strict=True)
    return [f"printed: {a}, shown: {b}" for a, b in pairs if not _near(float(a), float(b))]


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= max(0.11, 0.02 * abs(b))


def _commands(block: str) -> list[tuple[str, str]]:
    _, *parts = _COMMAND.split(block)
    return list(zip(parts[::2], parts[1::2], strict=True))
