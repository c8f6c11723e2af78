"""``popmodel explain``."""

from __future__ import annotations

from typing import Annotated

import typer

from popmodel.cli.options import ForceOption, FormatOption, OutputOption

EXAMPLES = (
    "popmodel explain",
    "popmodel explain load_balance",
    "popmodel explain talp.openmp_scheduling_efficiency",
)


def command(
    ctx: typer.Context,
    metric: Annotated[
        str | None,
        typer.Argument(metavar="[METRIC]", help="A metric, or FAMILY.METRIC; all without it."),
    ] = None,
    format: FormatOption = None,
    output: OutputOption = None,
    force: ForceOption = False,
) -> None:
    """Say what a metric means.

    Its formula, its source, what it is made of, what to look at when it is low. Without a metric,
    list them all by family.
    """
    from popmodel import provenance
    from popmodel.cli.output import target
    from popmodel.metrics.explain import explain
    from popmodel.metrics.hierarchy import load_families
    from popmodel.report.explain import VIEWS, catalogue, document

    goal = target(output, format, force=force)
    families = load_families()
    result = catalogue(families) if metric is None else document(explain(metric, families))
    goal.write({**result, "provenance": provenance.collect(ctx.obj).to_dict()}, VIEWS)
