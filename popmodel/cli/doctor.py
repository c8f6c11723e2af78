"""``popmodel doctor``."""

from __future__ import annotations

from typing import Annotated

import typer

from popmodel.cli.options import ForceOption, FormatOption, OutputOption

EXAMPLES = (
    "popmodel doctor",
    "popmodel doctor --launcher 'srun --mpi=pmix'",
)


def command(
    ctx: typer.Context,
    launcher: Annotated[
        str | None,
        typer.Option(
            "--launcher",
            metavar="COMMAND",
            help="Command that starts MPI ranks, with its options. Default: detected "
            "automatically.",
            show_default=False,
        ),
    ] = None,
    format: FormatOption = None,
    output: OutputOption = None,
    force: ForceOption = False,
) -> None:
    """Check whether this machine can be measured.

    Checks compiler, OpenMP, MPI, hardware counters, cores, noise and cache, and says how to fix
    what does not work. Exits with status 1 if popmodel bench cannot run.
    """
    from popmodel.api.bench import doctor
    from popmodel.cli.output import target
    from popmodel.reports.doctor import VIEWS

    goal = target(ctx.obj, output, format, force=force)
    found = doctor(launcher)
    goal.write(found, VIEWS)
    if not found["measurable"]:
        raise typer.Exit(1)
