"""Options that several verbs share, each declared once, and readers of the texts that they have."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from popmodel.base.errors import UsageError, did_you_mean
from popmodel.base.units import parse_flop_rate, parse_size
from popmodel.cli.command import Read, argument, flag, option
from popmodel.cli.completion import TRACES, machine_presets, signature_parameters, spread_names


def choice(option: str, text: str, choices: Sequence[str]) -> str:
    """One of some words."""
    if text in choices:
        return text
    hint = did_you_mean(text, choices, f"choose one of {', '.join(choices)}")
    raise UsageError(f"{option}: unknown value '{text}'", hint)


def whole_number(option: str, text: str, least: int = 1) -> int:
    """A whole number."""
    number = text.strip()
    # More digits are no count of anything and may exceed what Python converts.
    if number.isascii() and number.isdigit() and len(number) <= 18 and int(number) >= least:
        return int(number)
    raise UsageError(
        f"{option}: must be a whole number, at least {least}, not '{text}'",
        f"try {option} 4",
    )


def whole_numbers(option: str, text: str) -> list[int]:
    """Whole numbers, of a text that has commas between them; errors as for `whole_number`."""
    return [whole_number(option, part) for part in text.split(",")]


def one_of(choices: Sequence[str]) -> Read:
    """Read one of some words."""

    def read(option: str, text: str) -> str:
        return choice(option, text, choices)

    return read


def quantity(parse: Callable[[str], float]) -> Read:
    """Read a quantity with a unit; messages begin with the option."""

    def read(option: str, text: str) -> float:
        try:
            return parse(text)
        except UsageError as error:
            raise UsageError(f"{option}: {error.message}", error.hint) from None

    return read


size = quantity(parse_size)
"""Bytes, of a size such as ``2GiB``."""


def fraction(text: str) -> float:
    """A fraction, which may be written as a percentage; NaN for what is no number."""
    number = text.strip()
    return number_of(number.removesuffix("%")) / (100 if number.endswith("%") else 1)


def number_of(text: str) -> float:
    """A number; NaN for what is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def split_and_settings(option: str, text: str) -> tuple[int, int, dict[str, float]]:
    """A run as ``PxT`` or ``PxT,NAME=VALUE,...``: processes, threads, and parameters."""
    split, *rest = text.split(",")
    match = re.fullmatch(r"\s*([1-9][0-9]{0,17})\s*x\s*([1-9][0-9]{0,17})\s*", split)
    if match is None:
        raise UsageError(
            f"{option} {text}: '{split}' must be PROCESSESxTHREADS",
            f"try {option} 1x1, or {option} 1x1,N=256",
        )
    return int(match[1]), int(match[2]), settings(option, rest)


def settings(option: str, texts: Sequence[str]) -> dict[str, float]:
    """The values that ``--set``, or another option like it, gives."""
    found: dict[str, float] = {}
    for text in texts:
        name, sign, number = (part.strip() for part in text.partition("="))
        if not sign or not name:
            raise UsageError(f"{option} {text}: value missing", "write NAME=VALUE, such as N=4096")
        if name in found:
            raise UsageError(f"{option} {text}: {name} is set twice", "leave one of them out")
        found[name] = _number(number, f"{option} {text}")
    return found


def spreads(option: str, text: str) -> dict[str, float]:
    """The spreads that ``--imbalance`` gives."""
    from popmodel.model.symbols import SPREADS

    found: dict[str, float] = {}
    for part in text.split(","):
        name, sign, number = (word.strip() for word in part.partition("="))
        what = f"{option} {part.strip()}"
        if not sign:
            raise UsageError(f"{what}: value missing", "write NAME=CV, such as persistent=0.05")
        if name not in SPREADS:
            hint = did_you_mean(name, SPREADS, f"known: {', '.join(SPREADS)}")
            raise UsageError(f"{what}: unknown name '{name}'", hint)
        if name in found:
            raise UsageError(f"{what}: {name} is given twice", "leave one of them out")
        found[name] = fraction(number)
        if not 0 <= found[name] < math.inf:
            raise UsageError(
                f"{what}: must be a number, at least 0, not '{number}'", f"try {name}=0.05"
            )
    return found


def _number(number: str, where: str) -> float:
    value = number_of(number)
    if not math.isfinite(value):
        several = "," in number and "=" in number
        hint = "give the option once for each NAME=VALUE" if several else "try N=4096"
        raise UsageError(f"{where}: must be a number, not '{number}'", hint)
    return value


TRACE = argument("TRACE", "A trace (.prv, .otf2, .ti, .dim, .goal, or with .gz).", complete=TRACES)
RUN = argument(
    "TRACE",
    "A trace (.prv, .otf2, .ti, .dim, .goal, or with .gz), or a signature (.toml).",
    complete=(*TRACES, ".toml"),
)
APPLICATION = option("N", "Number of the application in the trace.", whole_number)
WINDOW = option(
    "BEGIN:END",
    "Analyse a window of time, for example 1.5s:3s, :2s or 500ms:. Times count from the first "
    "record of the trace; plain numbers are seconds.",
)
REGION = option(
    "NAME",
    "Analyse all occurrences of a region, joined together: a user region or a parallel region.",
)
FROM_START = flag(
    "Analyse the whole run, or all of a region. Default: from the end of MPI_Init to the start of "
    "MPI_Finalize."
)
FOA = option(
    "auto|A:B|iterations=A:B",
    "Focus of analysis: auto for a few representative iterations, times such as 0.8s:1.2s, or "
    "iterations such as iterations=10:20 (from 1; see popmodel inspect).",
)
FLOP_RATE = option(
    "RATE",
    "Flop per second of one process, for example 1Gflop/s: what traces of SimGrid SMPI, which give "
    "computation in flop, need.",
    quantity(parse_flop_rate),
)
MACHINE = option(
    "FILE",
    "Machine profile: a file (.json) or the name of a preset. Default: the preset sandybridge-fdr.",
    complete=(machine_presets, ".json"),
)
SET = option(
    "NAME=VALUE",
    "Set a parameter of the application. Can be repeated.",
    settings,
    name="--set",
    several=True,
    complete=(signature_parameters,),
)
NODES = option(
    "N",
    "Distribute the processes evenly over N nodes, which may exceed those of the profile. Default: "
    "as few as possible.",
    whole_number,
)
CORES_PER_NODE = option("C", "Use at most C cores of each node. Default: all.", whole_number)
CORES = option("N[,N...]", "Cores to split into processes and threads.", whole_numbers)
MAX_MEMORY = option("SIZE", "Memory limit per process.", size)


def binding(option: str, text: str) -> str:
    """Read how threads are bound."""
    from popmodel.model.run.process_placement import BINDS

    return choice(option, text, BINDS)


IMBALANCE = option(
    "NAME=CV,...",
    "Set how much the work of processes differs (coefficient of variation): persistent (the same "
    "process is slow in every step) or transient (another one in every step).",
    spreads,
    complete=(spread_names,),
)
BIND = option(
    "close|spread|none",
    "Where the threads of a process are: next to each other, as far apart as its cores allow, or "
    "bound to nothing.",
    binding,
)
SCALING = option(
    "auto|strong|weak",
    "Whether all runs do the same work (strong) or the work grows with the cores (weak); auto: "
    "detect it.",
    one_of(("auto", "strong", "weak")),
)
