"""``popmodel structure``."""

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
    NoRegionOption,
    NoWindowOption,
    TraceArgument,
    flop_rate_of,
    whole_number,
)

EXAMPLES = (
    "popmodel structure run.prv",
    "popmodel structure run.prv -o structure.svg",
    "popmodel structure run.prv --foa iterations=10:12 -o three.svg",
    "popmodel structure run.prv --format json | jq .foa",
)


def command(
    ctx: typer.Context,
    trace: TraceArgument,
    format: DrawnFormatOption = None,
    output: DrawnOutputOption = None,
    force: ForceOption = False,
    flop_rate: FlopRateOption = None,
    application: ApplicationOption = "1",
    foa: FoaOption = None,
    region: NoRegionOption = None,
    window: NoWindowOption = None,
) -> None:
    """Find the iterations of a run.

    Shows the run over time with its iterations, its loops with how often they repeat, how sure this
    is, and the focus of analysis: a few iterations that are like the others, which --foa auto takes
    in other commands. Here --foa shows other ones.
    """
    from popmodel.api.find_structure import find_structure
    from popmodel.base import shell
    from popmodel.base.errors import UsageError
    from popmodel.cli.output import target
    from popmodel.reports.structure import VIEWS

    for option, value in (("region", region), ("window", window)):
        if value is not None:
            raise UsageError(
                f"--{option}: structure shows whole runs, whose iterations --foa counts",
                f"popmodel phases --{option} {shell.quote(value)} shows what a {option} computes",
            )
    goal = target(ctx.obj, output, format, force=force, names=DRAWN)
    found = find_structure(
        trace,
        foa=foa,
        application=whole_number("--application", application),
        flop_rate=flop_rate_of(flop_rate),
    )
    goal.write(found.to_dict(), VIEWS, found.files)
