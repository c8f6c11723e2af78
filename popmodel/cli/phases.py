"""``popmodel phases``."""

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
    "popmodel phases run.prv",
    "popmodel phases run.prv --foa auto",
    "popmodel phases run.prv --region solve",
    "popmodel phases run.prv -o phases.svg",
    "popmodel phases run.prv --format json | jq .load_balance",
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
    """Show what a run computes where, and why processes differ.

    Computing is told apart by its place in the program: between which calls, in which region. For
    each place: how often and how long, whether always the same processes are slow or other ones
    each time, and where the trace has hardware counters whether instructions, IPC or frequency make
    the difference. Also how many MPI calls there are, and how much lies between them.
    """
    from popmodel.api.find_phases import find_phases
    from popmodel.cli.output import target
    from popmodel.reports.phases import VIEWS

    goal = target(ctx.obj, output, format, force=force, names=DRAWN)
    found = find_phases(
        trace,
        window=window,
        region=region,
        from_start=from_start,
        foa=foa,
        application=whole_number("--application", application),
        flop_rate=flop_rate_of(flop_rate),
    )
    goal.write(found.to_dict(), VIEWS, found.files)
