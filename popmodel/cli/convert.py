"""``popmodel convert``."""

from __future__ import annotations

from typing import Annotated

import typer

from popmodel.base.errors import UsageError
from popmodel.cli.options import (
    ApplicationOption,
    FlopRateOption,
    FoaOption,
    ForceOption,
    FromStartOption,
    RegionOption,
    WindowOption,
    flop_rate_of,
    output_option,
    whole_number,
)

EXAMPLES = (
    "popmodel convert run.prv.gz -o run.ti.gz",
    "popmodel convert run.prv.gz -o run.goal --from-start",
    "popmodel convert run.prv.gz -o run.perfetto.json.gz",
    "popmodel convert run.prv.gz -o timeline.svg --foa auto",
    "popmodel convert a.prv.gz:N=128 b.prv.gz:N=256 -o runs.csv",
    "popmodel convert runs.csv -o runs.jsonl",
    "popmodel convert a.prv.gz:N=128 b.prv.gz:N=256 -o run.sites.csv",
)


def command(
    ctx: typer.Context,
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="TRACE_OR_TABLE",
            help="A trace (.prv, .ti, .dim, .goal, or with .gz). For a table of runs: traces and "
            "tables (.csv, .json, .jsonl, .txt, also of sacct -P), each with parameters of the "
            "application, such as run.prv.gz:N=128.",
        ),
    ],
    output: Annotated[
        str | None,
        output_option(
            "Write to FILE. A program: .ti or .ti.txt for SimGrid SMPI, .goal for LogGOPSim. A "
            "timeline: .perfetto.json for ui.perfetto.dev and chrome://tracing, .svg for a "
            "drawing. .gz compresses. A table of runs: .csv, .json, or .jsonl for "
            "Extra-P; .sites.csv has what traced runs do at each place in the code."
        ),
    ] = None,
    force: ForceOption = False,
    flop_rate: FlopRateOption = None,
    application: ApplicationOption = "1",
    window: WindowOption = None,
    region: RegionOption = None,
    from_start: FromStartOption = False,
    foa: FoaOption = None,
) -> None:
    """Write a trace as a program or as a timeline, or runs as a table.

    The program is what replay simulates: what every process computes and calls, in order, without
    the time spent in MPI. A timeline has what every thread does over time, and the ideal replay
    beside it. A table has processes, threads, parameters, runtime and metrics of each
    run. What the format cannot express goes to standard error.
    """
    from popmodel.api.convert import convert
    from popmodel.cli.streams import remark, write_out

    if output is None:
        raise UsageError(
            "-o FILE is missing",
            "try -o program.ti.gz, -o program.goal, -o timeline.svg or -o runs.csv",
        )
    found = convert(
        sources,
        output,
        force=force,
        flop_rate=flop_rate_of(flop_rate),
        window=window,
        region=region,
        from_start=from_start,
        foa=foa,
        application=whole_number("--application", application),
        arguments=ctx.obj,
    )
    for line in (*found.caveats, *found.notes):
        remark(line)
    write_out(f"{found}\n")
