"""``popmodel sensitivity``."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from popmodel.base.errors import UsageError
from popmodel.base.units import parse_bandwidth, parse_size, parse_time
from popmodel.cli.network_options import (
    base,
    eager,
    factor,
    network_option,
    one,
    reading,
)
from popmodel.cli.options import (
    DRAWN,
    ApplicationOption,
    DrawnFormatOption,
    FlopRateOption,
    FoaOption,
    ForceOption,
    FromStartOption,
    RegionOption,
    TraceArgument,
    WindowOption,
    flop_rate_of,
    number_of,
    output_option,
    whole_number,
)
from popmodel.reports import formats

EXAMPLES = (
    "popmodel sensitivity run.prv",
    "popmodel sensitivity run.prv --machine machine.json",
    "popmodel sensitivity run.prv --latency 1us -o run.svg",
    "popmodel sensitivity run.prv --latency-range 0:1ms --format json",
    "popmodel sensitivity run.prv -o path.prv.gz",
)


def command(
    ctx: typer.Context,
    trace: TraceArgument,
    network: Annotated[
        str | None, network_option("network", "Default: alpha-beta, unless --machine is given.")
    ] = None,
    machine: Annotated[
        str | None, network_option("machine", "Latency and bandwidth are varied between nodes.")
    ] = None,
    latency: Annotated[str | None, network_option("latency")] = None,
    bandwidth: Annotated[str | None, network_option("bandwidth")] = None,
    eager_threshold: Annotated[str | None, network_option("eager_threshold")] = None,
    async_small_thresh: Annotated[str | None, network_option("async_small_thresh")] = None,
    send_is_detached_thresh: Annotated[
        str | None, network_option("send_is_detached_thresh")
    ] = None,
    send_overhead: Annotated[str | None, network_option("send_overhead")] = None,
    receive_overhead: Annotated[str | None, network_option("receive_overhead")] = None,
    collectives: Annotated[str | None, network_option("collectives")] = None,
    algorithm: Annotated[list[str] | None, network_option("algorithm")] = None,
    mapping: Annotated[str | None, network_option("mapping")] = None,
    cpu_factor: Annotated[str | None, network_option("cpu_factor")] = None,
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
    format: DrawnFormatOption = None,
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
    from popmodel.reports.sensitivity import VIEWS

    to_trace = output is not None and output.endswith((".prv", ".prv.gz"))
    goal = target(ctx.obj, None if to_trace else output, format, force=force, names=DRAWN)
    which = whole_number("--application", application)
    found = sensitivity(
        trace,
        one("--network", network, base),
        machine=machine,
        latency=one("--latency", latency, parse_time),
        bandwidth=one("--bandwidth", bandwidth, parse_bandwidth),
        eager_threshold=eager(
            one("--eager-threshold", eager_threshold, parse_size),
            one("--async-small-thresh", async_small_thresh, parse_size),
        ),
        send_is_detached_thresh=one(
            "--send-is-detached-thresh", send_is_detached_thresh, parse_size
        ),
        collectives=one("--collectives", collectives, reading),
        send_overhead=one("--send-overhead", send_overhead, parse_time),
        receive_overhead=one("--receive-overhead", receive_overhead, parse_time),
        algorithm=algorithm,
        mapping=mapping,
        cpu_factor=one("--cpu-factor", cpu_factor, factor),
        latency_range=latency_range,
        bandwidth_range=bandwidth_range,
        slowdowns=[_percent(part) for part in slowdown.split(",")],
        output=checked(output, force=force) if to_trace and output else None,
        window=window,
        region=region,
        from_start=from_start,
        foa=foa,
        application=which,
        flop_rate=flop_rate_of(flop_rate),
    )
    goal.write(found.to_dict(), VIEWS, found.files)


def _percent(text: str) -> float:
    """A slowdown, with or without the sign."""
    found = number_of(text.strip().removesuffix("%"))
    if not 0 < found < math.inf:
        raise UsageError(
            f"--slowdown: must be per cent above 0, not '{text}'", "try --slowdown 1%,5%"
        )
    return found / 100
