"""``popmodel phases``."""

from __future__ import annotations

from typing import Annotated

import typer

from popmodel.cli.options import (
    FORMATS,
    ApplicationOption,
    CacheOption,
    FlopRateOption,
    FoaOption,
    ForceOption,
    FromStartOption,
    TraceArgument,
    WindowOption,
    flop_rate_of,
    format_option,
    result_option,
    whole_number,
)

DRAWN = (*FORMATS, "svg")
EXAMPLES = (
    "popmodel phases run.prv",
    "popmodel phases run.prv --foa auto",
    "popmodel phases run.prv -o phases.svg",
    "popmodel phases run.prv --format json | jq .load_balance",
)


def command(
    ctx: typer.Context,
    trace: TraceArgument,
    format: Annotated[
        str | None, format_option(DRAWN, "Output format. Default: by the suffix of -o, else table.")
    ] = None,
    output: Annotated[str | None, result_option(DRAWN)] = None,
    force: ForceOption = False,
    flop_rate: FlopRateOption = None,
    no_cache: CacheOption = False,
    application: ApplicationOption = "1",
    window: WindowOption = None,
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

    goal = target(ctx.obj, output, format, force=force, names=DRAWN)
    found = find_phases(
        trace,
        window=window,
        from_start=from_start,
        foa=foa,
        application=whole_number("--application", application),
        cache=not no_cache,
        flop_rate=flop_rate_of(flop_rate),
    )
    goal.write(found.to_dict(), found.views, found.files)
