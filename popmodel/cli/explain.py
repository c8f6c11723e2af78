"""``popmodel explain``."""

from __future__ import annotations

from typing import Annotated

import typer

from popmodel.cli.options import ForceOption, FormatOption, OutputOption

EXAMPLES = (
    "popmodel explain",
    "popmodel explain mpi",
    "popmodel explain load_balance",
    "popmodel explain talp.openmp_scheduling_efficiency",
    "popmodel explain memory.bsat",
    "popmodel explain 'expected loss'",
)


def command(
    ctx: typer.Context,
    name: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]",
            help="A metric or its abbreviation, FAMILY.METRIC, a FAMILY, a parameter of a machine, "
            "a key of a signature, or any term on a screen. Default: list all.",
            show_default=False,
        ),
    ] = None,
    format: FormatOption = None,
    output: OutputOption = None,
    force: ForceOption = False,
) -> None:
    """Explain a metric, a parameter or another name on a screen.

    For a metric: formula, source, parts, and what to check when it is low. For a family: when to
    use it, and its metrics, one per line.
    """
    from popmodel.api.explain import explain
    from popmodel.cli.output import target
    from popmodel.reports.explain import VIEWS

    goal = target(ctx.obj, output, format, force=force)
    # several words are one name: quotes are easily forgotten
    goal.write(explain(" ".join(name) if name else None), VIEWS)
