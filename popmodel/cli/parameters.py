"""Parameters that several verbs share, each declared once."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from popmodel.base.units import parse_flop_rate
from popmodel.cli.command import Read, argument, flag, option
from popmodel.cli.completion import TRACES, machine_presets, signature_parameters, spread_names
from popmodel.cli.options import choice, settings, size, whole_number, whole_numbers


def one_of(choices: Sequence[str]) -> Read:
    """Read one of some words."""
    return partial(_one_of, choices)


def _one_of(choices: Sequence[str], name: str, text: str) -> str:
    return choice(name, text, choices)


def quantity(parse: Callable[[str], float]) -> Read:
    """Read a quantity with a unit; messages begin with the option."""
    return partial(_quantity, parse)


def _quantity(parse: Callable[[str], float], name: str, text: str) -> float:
    from popmodel.base.errors import UsageError

    try:
        return parse(text)
    except UsageError as error:
        raise UsageError(f"{name}: {error.message}", error.hint) from None


def set_parameters(name: str, texts: Sequence[str]) -> dict[str, float]:
    """Read what ``--set NAME=VALUE`` gives."""
    return settings(texts, name)


TRACE = argument("TRACE", "A trace (.prv, .ti, .dim, .goal, or with .gz).", complete=TRACES)
RUN = argument(
    "TRACE",
    "A trace (.prv, .ti, .dim, .goal, or with .gz), or a signature (.toml).",
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
    set_parameters,
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


def imbalance(name: str, text: str) -> dict[str, float]:  # noqa: ARG001 (a reader's signature)
    """Read the spreads that ``--imbalance`` gives."""
    from popmodel.cli.options import spreads

    return spreads(text)


def binding(name: str, text: str) -> Any:
    """Read how threads are bound."""
    from popmodel.model.run.placement import BINDS

    return choice(name, text, BINDS)


IMBALANCE = option(
    "NAME=CV,...",
    "Set how much the work of processes differs (coefficient of variation): persistent (the same "
    "process is slow in every step) or transient (another one in every step).",
    imbalance,
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
