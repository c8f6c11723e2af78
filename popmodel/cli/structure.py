"""``popmodel structure``."""

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
    TraceArgument,
    flop_rate_of,
    format_option,
    result_option,
    whole_number,
)

DRAWN = (*FORMATS, "svg")
EXAMPLES = (
    "popmodel structure run.prv",
    "popmodel structure run.prv -o structure.svg",
    "popmodel structure run.prv --foa iterations=10..12 -o three.svg",
    "popmodel structure run.prv --format json | jq .foa",
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
    foa: FoaOption = None,
) -> None:
    """Find the iterations of a run.

    Shows the run over time with its iterations, its loops with how often they repeat, how sure this
    is, and the focus of analysis: a few iterations that are like the others, which --foa auto takes
    in other commands. Here --foa shows other ones.
    """
    from popmodel.api.find_structure import find_structure
    from popmodel.cli.output import target

    goal = target(ctx.obj, output, format, force=force, names=DRAWN)
    found = find_structure(
        trace,
        foa=foa,
        application=whole_number("--application", application),
        cache=not no_cache,
        flop_rate=flop_rate_of(flop_rate),
    )
    goal.write(found.to_dict(), found.views, found.files)
