"""``popmodel convert``."""

from __future__ import annotations

from typing import Annotated

from popmodel.cli.options import (
    ApplicationOption,
    CacheOption,
    FlopRateOption,
    FoaOption,
    ForceOption,
    FromStartOption,
    RegionOption,
    TraceArgument,
    WindowOption,
    flop_rate_of,
    output_option,
    whole_number,
)
from popmodel.errors import UsageError

EXAMPLES = (
    "popmodel convert run.prv.gz -o run.ti.gz",
    "popmodel convert run.prv.gz -o run.goal --from-start",
)


def command(
    trace: TraceArgument,
    output: Annotated[
        str | None,
        output_option(
            "Write to FILE: .ti or .ti.txt for SimGrid SMPI, .goal for LogGOPSim; .gz compresses."
        ),
    ] = None,
    force: ForceOption = False,
    flop_rate: FlopRateOption = None,
    no_cache: CacheOption = False,
    application: ApplicationOption = "1",
    window: WindowOption = None,
    region: RegionOption = None,
    from_start: FromStartOption = False,
    foa: FoaOption = None,
) -> None:
    """Write a trace as a program for another simulator.

    The program is what replay simulates: what every process computes and calls, in order, without
    the time spent in MPI. What the format cannot express goes to standard error.
    """
    from popmodel.api.convert import convert
    from popmodel.cli.streams import remark, write_out

    if output is None:
        raise UsageError("-o FILE is missing", "try -o program.ti.gz or -o program.goal")
    found = convert(
        trace,
        output,
        force=force,
        flop_rate=flop_rate_of(flop_rate),
        window=window,
        region=region,
        from_start=from_start,
        foa=foa,
        application=whole_number("--application", application),
        cache=not no_cache,
    )
    for line in (*found.caveats, *found.notes):
        remark(line)
    write_out(f"{found}\n")
