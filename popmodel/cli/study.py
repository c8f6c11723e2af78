"""``popmodel study``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from popmodel.base.errors import UsageError
from popmodel.cli.app import Verb
from popmodel.cli.options import (
    FORMATS,
    format_option,
    number_of,
    optional_number,
    output_option,
    settings,
    whole_numbers,
)

if TYPE_CHECKING:
    pass

EXAMPLES = (
    "popmodel study --cores 64 -- mpirun -n {P} ./app",
    "popmodel study --cores 64 --dry-run -- mpirun -n {P} ./app",
    "popmodel study --cores 64 --set N=64,128 -- mpirun -n {P} ./app {N}",
    "popmodel study --cores 256 --script slurm --max-cores 16 -- ./app",
)


class StudyCommand(Verb):
    """The verb, whose options end where the command begins, which has options of its own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options up to the command."""
        ctx.allow_interspersed_args = False
        rest: list[str] = super().parse_args(ctx, args)
        return rest


VERB = StudyCommand


def command(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[--] COMMAND...",
            help="The command to run, with {P} for the number of processes, and where the program "
            "needs them {T} for threads and {NAME} for a parameter (--set). Threads are also given "
            "as OMP_NUM_THREADS.",
            show_default=False,
        ),
    ] = None,
    cores: Annotated[
        str | None,
        typer.Option(metavar="N[,N...]", help="Cores to find the best split for."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=V[,V...]",
            help="Values of a parameter in the small runs, the smallest first. Can be repeated.",
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            metavar="NAME=VALUE",
            help="Value of a parameter to predict. Default: the last one of --set. Can be "
            "repeated.",
        ),
    ] = None,
    budget: Annotated[
        str, typer.Option(metavar="TIME", help="Time for all runs together, with their repeats.")
    ] = "5min",
    runs: Annotated[
        str | None,
        typer.Option(
            metavar="PxT[,PxT...]",
            help="The small runs. Default: a handful of splits of the cores of this machine.",
            show_default=False,
        ),
    ] = None,
    wait: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Wait until the machine is quiet before the first run, at most so long.",
            show_default=False,
        ),
    ] = None,
    max_cores: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Cores that a run may use. Default: those of this machine.",
            show_default=False,
        ),
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Profile of the machine that the runs are made on. Default: it is measured, "
            "which takes about a minute.",
            show_default=False,
        ),
    ] = None,
    target_machine: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Profile of the machine to find the best split for. Default: as many nodes like "
            "this one as are needed.",
            show_default=False,
        ),
    ] = None,
    signature: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Use this signature. Default: it is found in the traces.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the planned runs and exit.")
    ] = False,
    script: Annotated[
        str | None,
        typer.Option(
            metavar="slurm",
            help="Write the runs as a job instead of running. It is not submitted; after it has "
            "ended, the same command goes on.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        output_option(
            "Keep everything in this directory. Default: named after the program, in the current "
            "directory."
        ),
    ] = None,
    format: Annotated[str | None, format_option(FORMATS, "Output format. Default: table.")] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Begin anew in place of another study in the directory."),
    ] = False,
) -> None:
    """Find the best split for a program by a few small runs.

    Runs the program on few cores of this machine, each split several times, traces it, finds its
    signature in the traces, measures the machine, checks the prediction with a split that it left
    out, and predicts every split of the cores that you ask for. An interrupted study goes on when
    the same command is run again.
    """
    from popmodel.api import study as api
    from popmodel.base.shell import plain
    from popmodel.cli.output import target as goal_of
    from popmodel.cli.study_run import carry_out, write_script
    from popmodel.reports.study import PLAN
    from popmodel.studies.plan import StudyRequest

    goal = goal_of(ctx.obj, None, format, force=force)
    if cores is None:
        raise UsageError("--cores is missing", "try --cores 64")
    request = StudyRequest(
        command=tuple(words or ()),
        cores=tuple(whole_numbers("--cores", cores)),
        settings=_values(set_ or []),
        at=settings(target or [], "--target"),
        runs=runs,
        budget=_time("--budget", budget),
        max_cores=optional_number("--max-cores", max_cores),
        machine=machine,
        target_machine=target_machine,
        signature=signature,
        script=_is_script(script),
    )
    folder = api.default_folder(request) if output is None else Path(plain(output, "-o"))
    if dry_run:
        goal.write(api.plan(request, folder), PLAN)
    elif not (request.script and write_script(request, folder, force=force)):
        patience = None if wait is None else _time("--wait", wait)
        carry_out(request, folder, goal, patience, force=force)


def _is_script(text: str | None) -> bool:
    from popmodel.cli.options import choice
    from popmodel.tracer.run import SYSTEMS

    return text is not None and bool(choice("--script", text, SYSTEMS))


def _time(option: str, text: str) -> float:
    from popmodel.base.units import parse_time

    try:
        seconds = parse_time(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error.message}", error.hint) from None
    if not seconds > 0:
        raise UsageError(f"{option} {text}: must be above 0", f"try {option} 5min")
    return seconds


def _values(texts: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """The values that ``--set`` gives."""
    found: dict[str, tuple[float, ...]] = {}
    for text in texts:
        name, sign, values = (part.strip() for part in text.partition("="))
        numbers = [number_of(value) for value in values.split(",")]
        if not sign or not name or not all(abs(one) < 1e15 for one in numbers):
            raise UsageError(f"--set {text}: must be NAME=VALUE,VALUE,...", "try --set N=128,256")
        if name in found:
            raise UsageError(
                f"--set {text}: {name} is set twice", f"write --set {name}=VALUE,VALUE"
            )
        found[name] = tuple(dict.fromkeys(numbers))
    return found
