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
            metavar="WORDS",
            help="What starts ranks, with its flags. Found out without it.",
            show_default=False,
        ),
    ] = None,
    format: FormatOption = None,
    output: OutputOption = None,
    force: ForceOption = False,
) -> None:
    """Say whether this machine can be measured.

    Compiler, OpenMP, MPI, counters, cores, noise, cache: what is there, and what to do about the
    rest. Exit status 1 if something is missing that popmodel bench needs.
    """
    from popmodel import provenance
    from popmodel.cli.output import target
    from popmodel.machine import hardware
    from popmodel.machine.doctor import examine, measurable
    from popmodel.report.doctor import VIEWS

    goal = target(output, format, force=force)
    machine = hardware.here()
    checks = examine(machine, launcher)
    document = {
        "schema": "popmodel/doctor/1",
        "measurable": measurable(checks),
        "machine": {**machine.host(), **machine.topology()},
        "checks": [vars(check) for check in checks],
        "provenance": provenance.collect(ctx.obj).to_dict(),
    }
    goal.write(document, VIEWS)
    if not measurable(checks):
        raise typer.Exit(1)
