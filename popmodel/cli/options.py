"""Options that several verbs share, each declared once, and readers of their texts.

Every option that is not a flag arrives as the text that was typed. It is read here and not by
typer: the messages are this program's own, and typer would load a validation library for it that
costs more time than reading a small trace.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from popmodel.base.errors import UsageError, did_you_mean
from popmodel.reports import formats

if TYPE_CHECKING:
    from popmodel.efficiency.scaling import Mode

FORMATS = formats.NAMES


def format_option(names: Sequence[str], help: str) -> Any:
    """``--format`` of a verb whose result has some formats."""
    choices = "|".join(names)
    if len(choices) > _LONGEST:  # a narrow terminal has no room for it
        choices, help = "FORMAT", f"{', '.join(names[:-1])} or {names[-1]}: the {_lowered(help)}"
    return typer.Option(
        "--format", metavar=choices, help=help, show_default=False, autocompletion=lambda: names
    )


_LONGEST = 28


def _lowered(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def output_option(help: str) -> Any:
    """``-o`` of a verb that writes a file."""
    return typer.Option("--output", "-o", metavar="FILE", help=help, show_default=False)


def result_option(names: Sequence[str]) -> Any:
    """``-o`` of a verb whose result has some formats."""
    suffixes = formats.suffixes(names)
    return output_option(f"Write to FILE ({suffixes}). Default: standard output (-).")


FORMAT_HELP = "Output format. Default: by the suffix of -o, else table."
FormatOption: TypeAlias = Annotated[str | None, format_option(FORMATS, FORMAT_HELP)]
OutputOption: TypeAlias = Annotated[
    str | None,
    result_option(FORMATS),
]
DRAWN = (*FORMATS, formats.SVG.name, formats.HTML.name)
"""Formats of a verb that also draws."""
DrawnFormatOption: TypeAlias = Annotated[str | None, format_option(DRAWN, FORMAT_HELP)]
DrawnOutputOption: TypeAlias = Annotated[str | None, result_option(DRAWN)]
ForceOption: TypeAlias = Annotated[
    bool, typer.Option("--force", help="Overwrite FILE if it exists.", show_default=False)
]
SCALING_MODES: dict[str, Mode | None] = {"auto": None, "strong": "strong", "weak": "weak"}
ScalingOption: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="|".join(SCALING_MODES),
        help="Whether all runs do the same work (strong) or the work grows with the cores (weak); "
        "auto: detect it.",
    ),
]
TraceArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="TRACE", help="A trace (.prv, .ti, .dim, .goal, or with .gz).")
]
RunArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="TRACE",
        help="A trace (.prv, .ti, .dim, .goal, or with .gz), or a signature (.toml).",
    ),
]
ApplicationOption: TypeAlias = Annotated[
    str, typer.Option("--application", metavar="N", help="Number of the application in the trace.")
]
WindowOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="BEGIN:END",
        help="Analyse a window of time, for example 1.5s:3s, :2s or 500ms:. Times count from the "
        "first record of the trace; plain numbers are seconds.",
    ),
]
RegionOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Analyse all occurrences of a region, joined together: a user region or a parallel "
        "region.",
    ),
]
NoRegionOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--region", metavar="NAME", hidden=True),
]
NoWindowOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--window", metavar="BEGIN:END", hidden=True),
]
"""Of a command that shows whole runs, and says so; so is the one above."""
FromStartOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--from-start",
        help="Analyse the whole run, or all of a region. Default: from the end of MPI_Init to "
        "the start of MPI_Finalize.",
        show_default=False,
    ),
]
FoaOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--foa",
        metavar="auto|A:B|iterations=A:B",
        help="Focus of analysis: auto for a few representative iterations, times such as "
        "0.8s:1.2s, or iterations such as iterations=10:20 (from 1; see popmodel inspect).",
    ),
]
FlopRateOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="RATE",
        help="Flop per second of one process, for example 1Gflop/s: what traces of SimGrid SMPI, "
        "which give computation in flop, need.",
        show_default=False,
    ),
]

AppArgument: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="[APP]",
        help="The application: a signature (.toml) or the name of a bundled one. Default: "
        "stencil3d.",
    ),
]
MachineOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Machine profile: a file (.json) or the name of a preset. Default: the preset "
        "sandybridge-fdr.",
    ),
]
SetOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Set a parameter of the application. Can be repeated.",
    ),
]
ImbalanceOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME=CV,...",
        help="Set how much the work of processes differs (coefficient of variation): persistent "
        "(the same process is slow in every step) or transient (another one in every step).",
    ),
]
NodesOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        help="Distribute the processes evenly over N nodes, which may exceed those of the "
        "profile. Default: as few as possible.",
    ),
]
CoresPerNodeOption: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="C", help="Use at most C cores of each node. Default: all."),
]
BindOption: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="close|spread|none",
        help="Where the threads of a process are: next to each other, as far apart as its cores "
        "allow, or bound to nothing.",
    ),
]
PredictedFamilyOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--family",
        metavar="NAMES",
        help="Metric families in the table, separated by commas, or all. Default: "
        "hybrid-additive; other formats contain all.",
    ),
]


def choice(option: str, text: str, choices: Sequence[str]) -> str:
    """One of some words."""
    if text in choices:
        return text
    hint = did_you_mean(text, choices, f"choose one of {', '.join(choices)}")
    raise UsageError(f"{option}: unknown value '{text}'", hint)


def binding(text: str) -> str:
    """Return how threads are bound, one of `BINDS`; raises as `choice`."""
    from popmodel.model.run.placement import BINDS

    return choice("--bind", text, BINDS)


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


def size(option: str, text: str) -> float:
    """Bytes, of a size such as ``2GiB``."""
    from popmodel.base.units import parse_size

    try:
        return parse_size(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error.message}", error.hint) from None


def flop_rate_of(text: str | None) -> float | None:
    """Flop per second, of a rate such as ``1Gflop/s``."""
    from popmodel.base.units import parse_flop_rate

    try:
        return None if text is None else parse_flop_rate(text)
    except UsageError as error:
        raise UsageError(f"--flop-rate: {error.message}", error.hint) from None


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


def optional_number(option: str, text: str | None) -> int | None:
    """A whole number, if the option is given; raises as `whole_number`."""
    return None if text is None else whole_number(option, text)


def families(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """The families of metrics that ``--family`` names."""
    if text == "all":
        return tuple(known)
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known, f"choose from all, {', '.join(known)}")
            raise UsageError(f"--family {text}: unknown family '{name}'", hint)
    return names


def settings(texts: Sequence[str], option: str = "--set") -> dict[str, float]:
    """The values that ``--set``, or another option like it, gives."""
    return _settings(option, texts)


def split_and_settings(option: str, text: str) -> tuple[int, int, dict[str, float]]:
    """A run as ``PxT`` or ``PxT,NAME=VALUE,...``: processes, threads, and parameters."""
    split, *rest = text.split(",")
    match = re.fullmatch(r"\s*([1-9][0-9]{0,17})\s*x\s*([1-9][0-9]{0,17})\s*", split)
    if match is None:
        raise UsageError(
            f"{option} {text}: '{split}' must be PROCESSESxTHREADS",
            f"try {option} 1x1, or {option} 1x1,N=256",
        )
    return int(match[1]), int(match[2]), _settings(option, rest)


def _settings(option: str, texts: Sequence[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for text in texts:
        name, sign, number = (part.strip() for part in text.partition("="))
        if not sign or not name:
            raise UsageError(f"{option} {text}: value missing", "write NAME=VALUE, such as N=4096")
        if name in found:
            raise UsageError(f"{option} {text}: {name} is set twice", "leave one of them out")
        found[name] = _number(number, f"{option} {text}")
    return found


def spreads(text: str | None) -> dict[str, float]:
    """The spreads that ``--imbalance`` gives."""
    if text is None:
        return {}
    from popmodel.model.scale_factors import SPREADS

    found: dict[str, float] = {}
    for part in text.split(","):
        name, sign, number = (word.strip() for word in part.partition("="))
        what = f"--imbalance {part.strip()}"
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
