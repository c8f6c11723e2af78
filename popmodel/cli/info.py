"""``popmodel info``."""

from __future__ import annotations

from typing import Annotated

import typer

from popmodel.cli.options import (
    ApplicationOption,
    CacheOption,
    ForceOption,
    FormatOption,
    OutputOption,
    whole_number,
)

EXAMPLES = (
    "popmodel info run.prv",
    "popmodel info run.prv.gz --format json | jq .calls",
)


def command(
    ctx: typer.Context,
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="A trace (.prv or .prv.gz).")],
    format: FormatOption = None,
    output: OutputOption = None,
    force: ForceOption = False,
    no_cache: CacheOption = False,
    application: ApplicationOption = "1",
) -> None:
    """Summarise a trace.

    Processes and threads, records, MPI calls by name, counters, and what is wrong with it.
    """
    from popmodel import provenance
    from popmodel.cli.output import target
    from popmodel.report.info import VIEWS
    from popmodel.trace import read
    from popmodel.trace.info import info

    goal = target(output, format, force=force)
    which = whole_number("--application", application)
    facts = info(read(trace, application=which, cache=not no_cache))
    stamp = provenance.collect(ctx.obj, [trace]).to_dict()
    goal.write({"schema": "popmodel/info/1", **facts, "provenance": stamp}, VIEWS)
