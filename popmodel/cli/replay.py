"""``popmodel replay``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from popmodel.cli.options import (
    FORMATS,
    ApplicationOption,
    CacheOption,
    FlopRateOption,
    ForceOption,
    FormatOption,
    FromStartOption,
    RegionOption,
    WindowOption,
    choice,
    flop_rate_of,
    output_option,
    whole_number,
)
from popmodel.errors import ReplayError, UsageError
from popmodel.network.network import PRESETS, READINGS, Network, describe, preset
from popmodel.report import formats
from popmodel.units import parse_bandwidth, parse_size, parse_time

EXAMPLES = (
    "popmodel replay run.prv",
    "popmodel replay run.prv --latency 1us,5us --bandwidth 1GB/s",
    "popmodel replay run.prv --network dimemas --format json",
    "popmodel replay run.prv --cpu-factor 0.5,1,2 --metrics",
    "popmodel replay run.prv --network ideal --machine m.json",
    "popmodel replay run.prv --latency 5us -o replayed.prv.gz",
)


_PRESETS = ", ".join(f"{name} ({describe(network)})" for name, network in PRESETS.items())


def command(
    ctx: typer.Context,
    trace: Annotated[
        str, typer.Argument(metavar="TRACE", help="A trace (.prv, .ti, .dim, .goal, or with .gz).")
    ],
    network: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help=f"Base network: {_PRESETS}. Default: ideal, unless --machine is given.",
            show_default=False,
        ),
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(
            metavar="PROFILE,...",
            help="Replay on the network of a machine profile (.json) or preset, with the "
            "placement of processes on nodes as traced.",
        ),
    ] = None,
    latency: Annotated[
        str | None, typer.Option(metavar="TIME,...", help="Latency, for example 5us.")
    ] = None,
    bandwidth: Annotated[
        str | None, typer.Option(metavar="RATE,...", help="Bandwidth, for example 1GB/s, or inf.")
    ] = None,
    eager_threshold: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE,...",
            help="A blocking send of at least this size waits for its receive. Default: 32KiB.",
        ),
    ] = None,
    collectives: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help=f"Which ranks wait for which in collectives: {', '.join(READINGS)}.",
        ),
    ] = None,
    cpu_factor: Annotated[
        str | None,
        typer.Option(metavar="FACTOR,...", help="CPU speed relative to the traced run."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="ideal|first|measured",
            help="Compare runtimes with the replay on the ideal network, with the first replay, "
            "or with the measured run. Default: first if there are several replays, else ideal "
            "(measured for the ideal network itself).",
            show_default=False,
        ),
    ] = None,
    metrics: Annotated[
        bool,
        typer.Option("--metrics", help="Show the efficiencies of each replay.", show_default=False),
    ] = False,
    format: FormatOption = None,
    output: Annotated[
        str | None,
        output_option(
            f"Write to FILE ({formats.suffixes(FORMATS)}). Default: standard output (-). A .prv or "
            ".prv.gz FILE gets the replayed run as a trace, and the result goes to standard output."
        ),
    ] = None,
    force: ForceOption = False,
    flop_rate: FlopRateOption = None,
    no_cache: CacheOption = False,
    application: ApplicationOption = "1",
    window: WindowOption = None,
    region: RegionOption = None,
    from_start: FromStartOption = False,
) -> None:
    """Simulate a run on another network.

    Replays what every process did: computation takes as long as it was traced, MPI as long as it
    would on the network. By default the network is ideal: no latency, infinite bandwidth. Options
    of the network take several values, separated by commas: one replay for each combination. The
    replay covers the end of MPI_Init on the last rank to the start of MPI_Finalize on the first.

    In JSON, infinite values are null (in CSV, empty fields).
    """
    from popmodel.api.outcomes import BASELINES
    from popmodel.api.replay import replay
    from popmodel.cli.output import target
    from popmodel.cli.trace_target import checked
    from popmodel.report.networks import differences
    from popmodel.report.replay import VIEWS

    to_trace = output is not None and output.endswith((".prv", ".prv.gz"))
    goal = target(ctx.obj, None if to_trace else output, format, force=force)
    which = whole_number("--application", application)
    base = None if against is None else BASELINES[choice("--against", against, tuple(BASELINES))]
    found = replay(
        trace,
        None if network is None else _values("--network", network, preset),
        machine=None if machine is None else _values("--machine", machine, str),
        latency=_several("--latency", latency, parse_time),
        bandwidth=_several("--bandwidth", bandwidth, parse_bandwidth),
        eager_threshold=_several("--eager-threshold", eager_threshold, parse_size),
        collectives=_several("--collectives", collectives, _rule),
        cpu_factor=_several("--cpu-factor", cpu_factor, _parse_factor),
        against=base,
        metrics=metrics,
        output=checked(output, force=force) if to_trace and output else None,
        window=window,
        region=region,
        from_start=from_start,
        application=which,
        cache=not no_cache,
        flop_rate=flop_rate_of(flop_rate),
    )
    result = found.to_dict()

    def report_failures() -> None:
        if failures := found.failures:
            # The other networks have their result; what stopped these is said after it.
            named = [f"run {number} ({differences(result, number)})" for number in failures]
            raise _stopped(named, next(iter(failures.values())))

    goal.write(result, VIEWS, found.files, report_failures)


def _stopped(runs: Sequence[str], first: ReplayError) -> ReplayError:
    """One error for the runs without result, with what happened in the first of them."""
    others = f"; no result for {', '.join(runs[1:])} either" if len(runs) > 1 else ""
    return ReplayError(f"{runs[0]}: {first.message}{others}", first.hint)


def _several(option: str, text: str | None, read: Callable[[str], Any]) -> list[Any] | None:
    return None if text is None else _values(option, text, read)


def _values(option: str, text: str, read: Callable[[str], Any]) -> list[Any]:
    """The values of an option that are separated by commas."""
    parts = [part.strip() for part in text.split(",")]
    if "" in parts:
        raise UsageError(f"{option} '{text}': a value is empty", "separate values by one comma")
    try:
        return [read(part) for part in parts]
    except UsageError as error:
        raise UsageError(f"{option}: {error.message}", error.hint) from error


def _rule(text: str) -> str:
    return Network(collectives=text).collectives


def _parse_factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        raise UsageError(
            f"must be a number, not '{text}'", "write a number such as 0.5 or 2"
        ) from None
    if not 0 < factor < math.inf:
        raise UsageError(
            f"must be above 0 and finite, not '{text}'",
            "write 2 for CPUs twice as fast as in the trace",
        )
    return factor
