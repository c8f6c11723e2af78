"""``popmodel replay``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

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
from popmodel.errors import ReplayError, UsageError
from popmodel.units import parse_bandwidth, parse_size, parse_time

if TYPE_CHECKING:
    from popmodel.network.network import Network

EXAMPLES = (
    "popmodel replay run.prv",
    "popmodel replay run.prv --latency 1us,5us --bandwidth 1GB/s",
    "popmodel replay run.prv --network dimemas --format json",
    "popmodel replay run.prv --cpu-factor 0.5,1,2",
)


def command(
    ctx: typer.Context,
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="A trace (.prv or .prv.gz).")],
    network: Annotated[
        str, typer.Option(metavar="NAME", help="The network to start from.")
    ] = "ideal",
    latency: Annotated[
        str | None, typer.Option(metavar="TIME", help="Latency, for example 5us.")
    ] = None,
    bandwidth: Annotated[
        str | None, typer.Option(metavar="RATE", help="Bandwidth, for example 1GB/s, or inf.")
    ] = None,
    eager_threshold: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="From this size a send waits for its receive. 32KiB if not given."
        ),
    ] = None,
    collectives: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Who waits for whom: dimemas, synchronising, rooted, algorithm."
        ),
    ] = None,
    cpu_factor: Annotated[
        str | None, typer.Option(metavar="FACTOR", help="Speed of the processors; 2 is twice.")
    ] = None,
    format: FormatOption = None,
    output: OutputOption = None,
    force: ForceOption = False,
    no_cache: CacheOption = False,
    application: ApplicationOption = "1",
    window: WindowOption = None,
    region: RegionOption = None,
    from_start: FromStartOption = False,
) -> None:
    """Say what another network would change.

    Replays what every process did on a network: by default the ideal one, without latency and with
    infinite bandwidth. The program is replayed, from the end of MPI_Init of the last rank to the
    begin of MPI_Finalize of the first; times count from there. Every option of the network takes
    several values, separated by commas: there is one replay for each combination.

    In JSON what is infinite is null (in CSV an empty field). The notes and the measured runtime
    hold for all replays and stand beside them, not in each.
    """
    from popmodel import provenance
    from popmodel.api.replay import replay
    from popmodel.cli.output import target
    from popmodel.report.replay import VIEWS, differences

    goal = target(output, format, force=force)
    which = whole_number("--application", application)
    networks = _networks(
        network,
        latency=latency,
        bandwidth=bandwidth,
        eager_threshold=eager_threshold,
        collectives=collectives,
        cpu_factor=cpu_factor,
    )
    found = replay(
        trace,
        networks,
        window=window,
        region=region,
        from_start=from_start,
        application=which,
        cache=not no_cache,
    )
    result = found.to_dict()
    stamp = provenance.collect(ctx.obj, [trace]).to_dict()
    goal.write({**result, "provenance": stamp}, VIEWS)
    if failures := found.failures:
        # The other networks have their result; the failure is told after them.
        named = [f"run {number} ({differences(result, number)})" for number in failures]
        raise _stopped(named, next(iter(failures.values())))


def _stopped(runs: Sequence[str], first: ReplayError) -> ReplayError:
    """One error for the runs without result, with what happened in the first of them."""
    others = f"; no result for {', '.join(runs[1:])} either" if len(runs) > 1 else ""
    return ReplayError(f"{runs[0]}: {first.message}{others}", first.hint)


def _networks(presets: str, **options: str | None) -> list[Network]:
    """One network for each combination of the values of the options."""
    from popmodel.network.network import preset

    readers: dict[str, Callable[[str], Any]] = {
        "latency": parse_time,
        "bandwidth": parse_bandwidth,
        "eager_threshold": parse_size,
        "collectives": str,
        "cpu_factor": _parse_factor,
    }
    given = {
        name: _values(f"--{name.replace('_', '-')}", text, readers[name])
        for name, text in options.items()
        if text is not None
    }
    return [
        base.with_(**dict(zip(given, values, strict=True)))
        for base in _values("--network", presets, preset)
        for values in product(*given.values())
    ]


def _values(option: str, text: str, read: Callable[[str], Any]) -> list[Any]:
    """The values of an option that are separated by commas."""
    parts = [part.strip() for part in text.split(",")]
    if "" in parts:
        raise UsageError(f"{option} '{text}': a value is empty", "separate values by one comma")
    try:
        return [read(part) for part in parts]
    except UsageError as error:
        raise UsageError(f"{option}: {error.message}", error.hint) from error


def _parse_factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        raise UsageError(f"'{text}' is not a number", "write a number such as 0.5 or 2") from None
    if not 0 < factor < math.inf:
        raise UsageError(
            f"'{text}': a CPU factor is more than zero and finite",
            "write 2 for processors twice as fast as the traced ones",
        )
    return factor
