"""``popmodel communication``."""

from __future__ import annotations

import typer

from popmodel.cli.options import (
    DRAWN,
    ApplicationOption,
    DrawnFormatOption,
    DrawnOutputOption,
    FlopRateOption,
    FoaOption,
    ForceOption,
    FromStartOption,
    RegionOption,
    TraceArgument,
    WindowOption,
    flop_rate_of,
    whole_number,
)

EXAMPLES = (
    "popmodel communication run.prv",
    "popmodel communication run.prv -o matrix.svg",
    "popmodel communication run.prv --foa auto",
    "popmodel communication run.prv --format json | jq .patterns",
)


def command(
    ctx: typer.Context,
    trace: TraceArgument,
    format: DrawnFormatOption = None,
    output: DrawnOutputOption = None,
    force: ForceOption = False,
    flop_rate: FlopRateOption = None,
    application: ApplicationOption = "1",
    window: WindowOption = None,
    region: RegionOption = None,
    from_start: FromStartOption = False,
    foa: FoaOption = None,
) -> None:
    """Show who talks to whom, how much, and in which patterns.

    Shows the messages between processes as a matrix and by size, the MPI calls that communicate,
    the grid that the processes form, and the patterns of their messages: halo, shift, pipeline,
    butterfly, transpose, ring, all pairs, root; and collectives with their groups. A pattern is
    exact if generating it gives the same messages each time.
    """
    from popmodel.api.communication import communication
    from popmodel.cli.output import target
    from popmodel.reports.communication import VIEWS

    goal = target(ctx.obj, output, format, force=force, names=DRAWN)
    found = communication(
        trace,
        window=window,
        region=region,
        from_start=from_start,
        foa=foa,
        application=whole_number("--application", application),
        flop_rate=flop_rate_of(flop_rate),
    )
    goal.write(found.to_dict(), VIEWS, found.files)
