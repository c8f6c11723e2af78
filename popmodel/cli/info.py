"""``popmodel info``."""

from __future__ import annotations

import typer

from popmodel.cli.options import (
    ApplicationOption,
    FlopRateOption,
    FoaOption,
    ForceOption,
    FormatOption,
    FromStartOption,
    OutputOption,
    RegionOption,
    TraceArgument,
    WindowOption,
    flop_rate_of,
    whole_number,
)

EXAMPLES = (
    "popmodel info run.prv",
    "popmodel info run.prv --window 2s:5s",
    "popmodel info run.prv.gz --format json | jq .calls",
)


def command(
    ctx: typer.Context,
    trace: TraceArgument,
    format: FormatOption = None,
    output: OutputOption = None,
    force: ForceOption = False,
    flop_rate: FlopRateOption = None,
    application: ApplicationOption = "1",
    window: WindowOption = None,
    region: RegionOption = None,
    from_start: FromStartOption = False,
    foa: FoaOption = None,
) -> None:
    """Summarise a trace.

    Shows processes and threads, records, MPI calls, parallel regions, regions marked by the user,
    counters, and what is wrong with the trace. Numbers are those of the whole trace unless --window
    or --region selects a part; "analysed" is what other commands analyse.
    """
    from popmodel.api.info import info
    from popmodel.cli.output import target
    from popmodel.reports.info import VIEWS

    goal = target(ctx.obj, output, format, force=force)
    which = whole_number("--application", application)
    found = info(
        trace,
        window=window,
        region=region,
        from_start=from_start,
        foa=foa,
        application=which,
        flop_rate=flop_rate_of(flop_rate),
    )
    goal.write(found, VIEWS, [trace])
