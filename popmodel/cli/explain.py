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
)


def command(
    ctx: typer.Context,
    metric: Annotated[
        str | None,
        typer.Argument(
            metavar="[METRIC]", help="A metric, FAMILY.METRIC, or a FAMILY; all without it."
        ),
    ] = None,
    format: FormatOption = None,
    output: OutputOption = None,
    force: ForceOption = False,
) -> None:
    """Explain a metric or a family of metrics.

    Its formula, its source, what it is made of, what to look at when it is low. Of a family: when
    to use it, and its metrics in a line each. Without a name, list all metrics by family.
    """
    from popmodel import provenance
    from popmodel.cli.output import target
    from popmodel.efficiency.explain import explain, find_family
    from popmodel.efficiency.hierarchy import load_families
    from popmodel.report.explain import VIEWS, catalogue, document

    goal = target(output, format, force=force)
    families = load_families()
    family = None if metric is None else find_family(metric, families)
    if metric is None:
        result = catalogue(families.values())
    elif family is not None:
        result = catalogue([family])
    else:
        result = document(explain(metric, families))
    goal.write({**result, "provenance": provenance.collect(ctx.obj).to_dict()}, VIEWS)
