"""``popmodel sensitivity``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated

import typer

from popmodel.cli.options import (
    FORMAT_HELP,
    FORMATS,
    ApplicationOption,
    CacheOption,
    FlopRateOption,
    FoaOption,
    ForceOption,
    FromStartOption,
    RegionOption,
    WindowOption,
    choice,
    flop_rate_of,
    format_option,
    number_of,
    output_option,
    whole_number,
)
from popmodel.errors import UsageError
from popmodel.network.network import PRESETS, READINGS, describe
from popmodel.report import formats
from popmodel.units import parse_bandwidth, parse_size, parse_time

DRAWN = (*FORMATS, "svg")
EXAMPLES = (
    "popmodel sensitivity run.prv",
    "popmodel sensitivity run.prv --machine machine.json",
    "popmodel sensitivity run.prv --latency 1us -o run.svg",
    "popmodel sensitivity run.prv --latency-range 0:1ms --format json",
    "popmodel sensitivity run.prv -o path.prv.gz",
)

_PRESETS = ", ".join(f"{name} ({describe(network)})" for name, network in PRESETS.items())


def command(
    ctx: typer.Context,
    trace: Annotated[
        str, typer.Argument(metavar="TRACE", help="A trace (.prv, .ti.txt, or with .gz).")
    ],
    network: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"Network of the run: {_PRESETS}; or a configuration of Dimemas (.cfg). Default: "
            "alpha-beta, unless --machine is given.",
            show_default=False,
        ),
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(
            metavar="PROFILE",
            help="The network of a machine profile (.json) or preset, with the placement of "
            "processes on nodes as traced. Latency and bandwidth are varied between nodes.",
        ),
    ] = None,
    latency: Annotated[
        str | None, typer.Option(metavar="TIME", help="Latency, for example 5us.")
    ] = None,
    bandwidth: Annotated[
        str | None, typer.Option(metavar="RATE", help="Bandwidth, for example 1GB/s, or inf.")
    ] = None,
    eager_threshold: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="A blocking send of at least this size waits for its receive. Default: 32KiB.",
        ),
    ] = None,
    send_overhead: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="CPU time to send a message, beside the latency."),
    ] = None,
    receive_overhead: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="CPU time to receive a message, likewise."),
    ] = None,
    collectives: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"Which ranks wait for which in collectives: {', '.join(READINGS)}.",
        ),
    ] = None,
    algorithm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OPERATION=NAME",
            help="Carry collectives out as messages, an operation by this algorithm: "
            "allreduce=ring. Repeat it for other operations.",
        ),
    ] = None,
    mapping: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Nodes of ranks: block:4, cyclic:4, or a file with the node of one rank per line.",
        ),
    ] = None,
    cpu_factor: Annotated[
        str | None,
        typer.Option(metavar="FACTOR", help="CPU speed relative to the traced run."),
    ] = None,
    latency_range: Annotated[
        str | None,
        typer.Option(
            metavar="LOW:HIGH",
            help="Latencies to look at. Default: 0:100us, or up to twice that of the network.",
        ),
    ] = None,
    bandwidth_range: Annotated[
        str | None,
        typer.Option(
            metavar="LOW:HIGH",
            help="Bandwidths to look at. Default: 100MB/s:inf, or from half that of the network.",
        ),
    ] = None,
    slowdown: Annotated[
        str,
        typer.Option(
            metavar="PERCENT,...",
            help="Find the latency and the bandwidth at which the run is this much slower.",
        ),
    ] = "1%,2%,5%",
    format: Annotated[str | None, format_option(DRAWN, FORMAT_HELP)] = None,
    output: Annotated[
        str | None,
        output_option(
            f"Write to FILE ({formats.suffixes(DRAWN)}). Default: standard output (-). A .prv or "
            ".prv.gz FILE gets the trace with the critical path as events, and the result goes to "
            "standard output."
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
    """Find what the runtime of a run depends on.

    Tells whether latency or bandwidth bounds the run, how much of both it tolerates, and all
    breakpoints of its runtime over both: exactly, from one trace. The runtime on a network without
    shared links is the length of a critical path, so its derivatives are what that path pays.

    In JSON, infinite values are null.
    """
    from popmodel.api.sensitivity import sensitivity
    from popmodel.cli.output import target
    from popmodel.cli.trace_target import checked
    from popmodel.report.sensitivity import VIEWS

    to_trace = output is not None and output.endswith((".prv", ".prv.gz"))
    goal = target(ctx.obj, None if to_trace else output, format, force=force, names=DRAWN)
    which = whole_number("--application", application)
    found = sensitivity(
        trace,
        None if network is None else _base(network),
        machine=machine,
        latency=_read("--latency", latency, parse_time),
        bandwidth=_read("--bandwidth", bandwidth, parse_bandwidth),
        eager_threshold=_read("--eager-threshold", eager_threshold, parse_size),
        collectives=None if collectives is None else choice("--collectives", collectives, READINGS),
        send_overhead=_read("--send-overhead", send_overhead, parse_time),
        receive_overhead=_read("--receive-overhead", receive_overhead, parse_time),
        algorithm=algorithm,
        mapping=mapping,
        cpu_factor=None if cpu_factor is None else number_of(cpu_factor),
        latency_range=latency_range,
        bandwidth_range=bandwidth_range,
        slowdowns=[_percent(one) for one in slowdown.split(",")],
        output=checked(output, force=force) if to_trace and output else None,
        window=window,
        region=region,
        from_start=from_start,
        foa=foa,
        application=which,
        cache=not no_cache,
        flop_rate=flop_rate_of(flop_rate),
    )
    goal.write(found.to_dict(), VIEWS, found.files)


def _base(name: str) -> str:
    """A preset, or the name of a configuration of Dimemas."""
    return name if name.endswith(".cfg") else choice("--network", name, tuple(PRESETS))


def _read(option: str, text: str | None, read: Callable[[str], float]) -> float | None:
    if text is None:
        return None
    try:
        return read(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error.message}", error.hint) from error


def _percent(text: str) -> float:
    """A slowdown, with or without the sign."""
    found = number_of(text.strip().removesuffix("%"))
    if not 0 < found < math.inf:
        raise UsageError(
            f"--slowdown: must be per cent above 0, not '{text}'", "try --slowdown 1%,5%"
        )
    return found / 100
