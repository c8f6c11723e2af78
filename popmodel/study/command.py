"""The command of a study: words with placeholders for what differs from run to run.

``{P}`` stands for the number of processes, ``{T}`` for that of threads, and ``{NAME}`` for a
parameter whose values the user gives.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from popmodel.errors import UsageError, did_you_mean
from popmodel.shell import PLACEHOLDER, filled, plain

__all__ = ["EXAMPLE", "PROCESSES", "THREADS", "check", "filled", "names", "uses"]

PROCESSES, THREADS = "P", "T"
EXAMPLE = "popmodel study --cores 64 -- mpirun -n {P} ./app"


def uses(words: Sequence[str], name: str) -> bool:
    """Whether a command has a placeholder of that name."""
    return name in names(words)


def check(words: Sequence[str], parameters: Collection[str], *, starts_ranks: bool) -> None:
    """Make sure that a command says what differs from run to run, and nothing else."""
    for name in parameters:
        if name in (PROCESSES, THREADS):
            what = "processes" if name == PROCESSES else "threads"
            raise UsageError(
                f"--set {name}: {{{name}}} is the number of {what}, which the study chooses",
                "name the runs instead: --runs 1x1,2x1",
            )
    known = {PROCESSES, THREADS, *parameters}
    for name in names(words):
        if name not in known:
            near = did_you_mean(name, known, f"give its values: --set {name}=100,200")
            raise UsageError(f"{{{name}}}: nothing says what it stands for", near)
    for name in parameters:
        if not uses(words, name):
            raise UsageError(
                f"--set {name}: the command has no {{{name}}}",
                f"put {{{name}}} where the program takes it: mpirun -n {{P}} ./app {{{name}}}",
            )
    if starts_ranks and not uses(words, PROCESSES):
        raise UsageError(
            f"{' '.join(words)}: the number of processes must be {{P}}", f"try {EXAMPLE}"
        )
    for word in words:
        plain(word, "the command")


def names(words: Sequence[str]) -> list[str]:
    """Names of the placeholders of a command, in their order."""
    return list(dict.fromkeys(name for word in words for name in re.findall(PLACEHOLDER, word)))
