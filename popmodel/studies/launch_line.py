"""The same command with another placement: processes apart, a core for each thread.

Everything of the user's command stays but what says where processes and threads go: those options
of the launcher, ``taskset`` and ``numactl``, and the variables of OpenMP, which stand in front.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from popmodel.base import shell
from popmodel.tracer.commands import Family, TracedCommand

VARIABLES = ("OMP_NUM_THREADS", "OMP_PLACES", "OMP_PROC_BIND")
RIVALS = (
    *("GOMP_CPU_AFFINITY", "KMP_AFFINITY", "KMP_HW_SUBSET", "KMP_ALL_THREADS", "OMP_DYNAMIC"),
    *("KMP_DEVICE_THREAD_LIMIT", "OMP_THREAD_LIMIT"),
)
"""Variables that runtimes of OpenMP heed before these, or that make teams smaller."""

_BINDING: Mapping[Family, Mapping[str, int]] = {
    "Open MPI": {
        **dict.fromkeys(("bind-to", "map-by", "rank-by", "cpu-set", "cpu-list", "rankfile"), 1),
        **dict.fromkeys(("rf", "cpus-per-proc", "cpus-per-rank", "npersocket", "npernode"), 1),
        **dict.fromkeys(("use-hwthread-cpus", "oversubscribe", "nooversubscribe", "pernode"), 0),
        **dict.fromkeys(("bind-to-core", "bind-to-socket", "bycore", "bysocket", "bynode"), 0),
    },
    "Hydra": dict.fromkeys(("bind-to", "map-by", "binding"), 1),
    "srun": {
        **dict.fromkeys(("cpu-bind", "cpu_bind", "c", "cpus-per-task", "hint", "distribution"), 1),
        **dict.fromkeys(("m", "ntasks-per-core", "threads-per-core", "extra-node-info", "B"), 1),
        **dict.fromkeys(("O", "overcommit"), 0),
    },
}
"""Options of launchers that say where ranks go, without dashes, and how many words follow."""
_NUMBER: Mapping[Family, tuple[str, ...]] = {
    "Open MPI": ("n", "np", "c"),
    "Hydra": ("n", "np"),
    "srun": ("n", "ntasks"),
}
_OF_PINNING: Mapping[str, int] = {
    **dict.fromkeys(("-C", "-N", "-m", "-l", "-i", "-p", "-w"), 1),
    **dict.fromkeys(("--cpunodebind", "--physcpubind", "--membind", "--interleave"), 1),
    "-l": 0,
    "--localalloc": 0,
}


class Line(NamedTuple):
    """A command to be started by a shell."""

    environment: dict[str, str]
    words: list[str]

    def __str__(self) -> str:
        set_ = [f"{name}={shell.quote(value)}" for name, value in self.environment.items()]
        return " ".join([*set_, *map(shell.quote, self.words)])


def line_with(
    command: TracedCommand,
    cores: int,
    *,
    ranks: int | None = None,
    openmp: bool = True,
    several_nodes: bool = False,
    environment: Mapping[str, str] = os.environ,
) -> Line | None:
    """Return a command with so many cores for each process; None where that is not known.

    With ``openmp`` a thread runs on each. ``ranks`` changes the number of processes.
    """
    before, behind = _unpinned(command.words[: command.start]), list(command.words[command.start :])
    values = (str(cores), "cores", "close") if openmp else ()
    variables = dict(zip(VARIABLES, values, strict=False))
    unset = [word for name in RIVALS if openmp and name in environment for word in ("-u", name)]
    before = [*(["env", *unset] if unset else []), *before]
    if not command.is_launcher:
        return Line(variables, [*before, *_unpinned(behind)])
    family = command.family
    at = _program_at(behind, command.program, environment)
    if family is None or at is None or ":" in behind:
        return None
    launcher, options, program = behind[0], behind[1:at], _unpinned(behind[at:])
    options = _without(options, family, drop_number=ranks is not None)
    if family == "Open MPI":
        bound = ["--map-by", f"slot:PE={cores}"] if cores > 1 else []
        flags = [*bound, "--bind-to", "core"]
        flags += [word for name in variables if several_nodes for word in ("-x", name)]
    elif family == "Hydra":
        flags = ["-bind-to", f"core:{cores}" if cores > 1 else "core"]
    else:
        flags = ["-c", str(cores), "--cpu-bind=cores"]
    number = [] if ranks is None else ["-n", str(ranks)]
    return Line(variables, [*before, launcher, *number, *flags, *options, *program])


def is_by_hardware_thread(words: Sequence[str], variables: Mapping[str, str]) -> bool:
    """Whether a user asked for hardware threads, by the launcher or by OpenMP."""
    text = " ".join(words)
    asked = r"hwthread|hint[ =]multithread|cpu-bind[ =]\S*threads|threads-per-core[ =][2-9]"
    return re.search(asked, text) is not None or variables.get("OMP_PLACES") == "threads"


def _program_at(
    words: Sequence[str], program: Path | None, environment: Mapping[str, str]
) -> int | None:
    """Where the program stands behind a launcher."""
    if program is None:
        return None
    path = environment.get("PATH", os.defpath)
    for at, word in enumerate(words):
        path_of_word = None if at == 0 or word.startswith("-") else shutil.which(word, path=path)
        if path_of_word is not None and Path(path_of_word) == program:
            return at
    return None


def _without(options: Sequence[str], family: Family, *, drop_number: bool) -> list[str]:
    """Options of a launcher but for those that place ranks and OpenMP's variables."""
    dropped = dict(_BINDING[family])
    if drop_number:
        dropped |= dict.fromkeys(_NUMBER[family], 1)
    kept: list[str] = []
    number = 0
    while number < len(options):
        word = options[number]
        name, equals, _ = word.lstrip("-").partition("=")
        behind = options[number + 1 : number + 2]
        sets = {"Open MPI": ("x",), "Hydra": ("genv", "env"), "srun": ()}[family]
        if not word.startswith("-"):
            kept.append(word)
        elif name in dropped:
            number += 0 if equals else dropped[name]
        elif re.fullmatch(r"-[cnm]\d+", word) and word[1] in dropped:
            pass  # -c4 of srun
        elif name in sets and behind and behind[0].partition("=")[0] in (*VARIABLES, *RIVALS):
            number += 1 if family == "Open MPI" else 2
        else:
            kept.append(word)
        number += 1
    return kept


def _unpinned(words: Sequence[str]) -> list[str]:
    """Words without taskset and numactl, and without OpenMP's variables behind ``env``."""
    left = list(words)
    made: list[str] = []
    while left:
        word = left.pop(0)
        name = Path(word).name
        if name == "taskset":
            while left and left[0].startswith("-") and left[0] not in ("-c", "--cpu-list"):
                left.pop(0)
            del left[: 2 if left[:1] in (["-c"], ["--cpu-list"]) else 1]
        elif name == "numactl":
            while left and left[0].startswith("-"):
                option = left.pop(0)
                del left[: 0 if "=" in option else _OF_PINNING.get(option, 0)]
        elif name == "env":
            kept = []
            while left and (left[0].startswith("-") or "=" in left[0]):
                setting = left.pop(0)
                if setting in ("-u", "--unset", "-C", "--chdir"):
                    kept += [setting, *left[:1]]
                    del left[:1]
                elif setting.partition("=")[0] not in (*VARIABLES, *RIVALS):
                    kept.append(setting)
            made += [word, *kept] if kept else []
        elif name in ("time", "nice", "nohup", "timeout", "stdbuf", "setsid"):
            made.append(word)
            while left and (left[0].startswith("-") or re.fullmatch(r"[\d.]+[smhd]?", left[0])):
                made.append(left.pop(0))
        else:
            return [*made, word, *left]
    return made
