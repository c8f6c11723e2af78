"""``popmodel info``."""

from __future__ import annotations

from typing import Annotated

import typer

from popmodel.cli.options import (
    ApplicationOption,
    CacheOption,
    ForceOption,
    FormatOption,
    FromStartOption,
    OutputOption,
    RegionOption,
    WindowOption,
    whole_number,
)

EXAMPLES = (
    "popmodel info run.prv",
    "popmodel info run.prv --window 2s:5s",
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
    window: WindowOption = None,
    region: RegionOption = None,
    from_start: FromStartOption = False,
) -> None:
    """Summarise a trace.

    Shows processes and threads, records, MPI calls, parallel regions, regions marked by the user,
    counters, and what is wrong with the trace. Numbers are those of the whole trace unless --window
    or --region selects a part; "analysed" is what other commands analyse.
    """
    from popmodel import provenance
    from popmodel.cli.output import target
    from popmodel.report.info import VIEWS
    from popmodel.trace import read
    from popmodel.trace.info import info
    from popmodel.trace.part import Part

    goal = target(output, format, force=force)
    which = whole_number("--application", application)
    part = Part.of(window, region, from_start)
    facts = info(read(trace, application=which, cache=not no_cache), part)
    stamp = provenance.collect(ctx.obj, [trace]).to_dict()
    goal.write({"schema": "popmodel/info/1", **facts, "provenance": stamp}, VIEWS)
