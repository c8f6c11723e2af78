"""Options that several verbs share, each declared once, and readers of the texts that they have."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any

from popmodel.base.errors import UsageError, did_you_mean
from popmodel.base.units import parse_flop_rate, parse_size
from popmodel.cli.command import Read, argument, flag, option
from popmodel.cli.completion import TRACES, machine_presets, signature_parameters, spread_names


def example(option: str, value: object) -> str:
    """How a parameter is given: ``--procs 4`` on a command line, ``procs=4`` in Python."""
    return f"{option} {value}" if option.startswith("-") else f"{option}={value}"


def choice(option: str, given: Any, choices: Sequence[str]) -> str:
    """One of some words."""
    if given in choices:
        return str(given)
    hint = did_you_mean(str(given), choices, f"choose one of {', '.join(choices)}")
    raise UsageError(f"{option}: unknown value {given!r}", hint)


def whole_number(option: str, given: Any, least: int = 1) -> int:
    """A whole number."""
    text = given.strip() if isinstance(given, str) else ""
    # More digits are no count of anything and may exceed what Python converts.
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else given
    is_number = isinstance(number, Real) and not isinstance(number, bool)
    if is_number and least <= number < math.inf and int(number) == number:
        return int(number)
    raise UsageError(
        f"{option}: must be a whole number, at least {least}, not {given!r}",
        f"try {example(option, 4)}",
    )


def whole_numbers(option: str, given: Any) -> list[int]:
    """Whole numbers, of a text with commas between them or of values."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        given = str(given).split(",") if isinstance(given, str) else [given]
    numbers = [whole_number(option, part) for part in given]
    if not numbers:
        raise UsageError(f"{option}: no number given", f"try {example(option, 64)}")
    return numbers


def one_of(choices: Sequence[str]) -> Read:
    """Read one of some words."""
    return partial(choice, choices=choices)


def quantity(parse: Callable[[str], float]) -> Read:
    """Read a quantity with a unit, or a number in SI units; messages begin with the option."""

    def read(option: str, given: Any) -> float:
        try:
            if isinstance(given, str):
                return parse(given)
            return _number(given, option, least=0.0, hint="give a number in SI units, or a text")
        except UsageError as error:
            begin = "" if error.message.startswith(option) else f"{option}: "
            raise UsageError(f"{begin}{error.message}", error.hint) from None

    return read


size = quantity(parse_size)
"""Bytes, of a size such as ``2GiB``."""


def fraction(text: str) -> float:
    """A fraction, which may be written as a percentage; NaN for what is no number."""
    number = text.strip()
    return number_of(number.removesuffix("%")) / (100 if number.endswith("%") else 1)


def number_of(given: Any) -> float:
    """A number; NaN for what is none."""
    try:
        return float(given)
    except (TypeError, ValueError):
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


def settings(option: str, given: Any) -> dict[str, float]:
    """Numbers by name, of texts such as ``N=4096`` or of a mapping."""
    return {
        name: _number(number, where) for name, number, where in assignments(option, given, "N=4096")
    }


def spreads(option: str, given: Any) -> dict[str, float]:
    """The spreads that ``--imbalance`` gives."""
    from popmodel.model.symbols import SPREADS

    found: dict[str, float] = {}
    for name, number, where in assignments(option, given, "persistent=0.05"):
        if name not in SPREADS:
            hint = did_you_mean(name, SPREADS, f"known: {', '.join(SPREADS)}")
            raise UsageError(f"{where}: unknown name '{name}'", hint)
        value = fraction(number) if isinstance(number, str) else number_of(number)
        found[name] = _number(value, where, least=0.0, given=number, hint=f"try {name}=0.05")
    return found


def assignments(option: str, given: Any, such: str) -> Iterator[tuple[str, Any, str]]:
    """Names with what they are set to, and where; each name once."""
    if isinstance(given, Mapping):
        yield from ((name, value, f"{option}: {name}={value!r}") for name, value in given.items())
        return
    if isinstance(given, str) and "=" not in given.partition(",")[0] and not option.startswith("-"):
        raise UsageError(f"{option}: must be a dict of names and numbers, not {given!r}")
    names = set()
    for text in given.split(",") if isinstance(given, str) else given:
        name, sign, number = (part.strip() for part in text.partition("="))
        where = f"{option} {text.strip()}"
        if not sign or not name:
            raise UsageError(f"{where}: value missing", f"write NAME=VALUE, such as {such}")
        if name in names:
            raise UsageError(f"{where}: {name} is given twice", "leave one of them out")
        names.add(name)
        yield name, number, where


def _number(
    value: Any, where: str, *, least: float = -math.inf, given: Any = None, hint: str = ""
) -> float:
    """A finite number, at least some; `given` is what it was read from."""
    given = value if given is None else given
    number = number_of(value)
    if not (math.isfinite(number) and number >= least) or isinstance(value, bool):
        several = isinstance(given, str) and "," in given and "=" in given
        hint = "give the option once for each NAME=VALUE" if several else hint or "try N=4096"
        bound = f", at least {least:g}" if least > -math.inf else ""
        raise UsageError(f"{where}: must be a number{bound}, not {given!r}", hint)
    return number


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
    one_of(("close", "spread", "none")),
)
SCALING = option(
    "auto|strong|weak",
    "Whether all runs do the same work (strong) or the work grows with the cores (weak); auto: "
    "detect it.",
    one_of(("auto", "strong", "weak")),
)
