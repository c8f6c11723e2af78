"""``popmodel replay``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from popmodel.base.errors import ReplayError, UsageError
from popmodel.base.units import parse_bandwidth, parse_size, parse_time
from popmodel.cli.network_options import (
    base,
    each,
    eager,
    factor,
    network_option,
    ranges,
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
    RunArgument,
    SetOption,
    WindowOption,
    choice,
    flop_rate_of,
    optional_number,
    output_option,
    settings,
    whole_number,
)
from popmodel.network.network import Network
from popmodel.reports import formats

if TYPE_CHECKING:
    from popmodel.reports.html.contents import Contents
    from popmodel.reports.views import Document

EXAMPLES = (
    "popmodel replay run.prv",
    "popmodel replay run.prv --latency 1us,5us --bandwidth 1GB/s",
    "popmodel replay run.prv --network dimemas --format json",
    "popmodel replay run.prv --cpu-factor 0.5,1,2 --metrics",
    "popmodel replay run.prv --network ideal --machine m.json",
    "popmodel replay run.prv --latency 1us:100us:log9 --bandwidth 1GB/s,9GB/s",
    "popmodel replay run.prv --machine m.json --mapping traced,block:8,cyclic:8",
    "popmodel replay run.prv --network alpha-beta --algorithm allreduce=ring",
    "popmodel replay run.prv --latency 5us -o replayed.prv.gz",
    "popmodel replay app.toml --procs 16 --threads 2 --network alpha-beta",
)


def command(
    ctx: typer.Context,
    trace: RunArgument,
    network: Annotated[
        str | None,
        network_option("network", "Default: ideal, unless --machine is given.", several=True),
    ] = None,
    machine: Annotated[str | None, network_option("machine", several=True)] = None,
    latency: Annotated[
        str | None, network_option("latency", "Or a range, 0.1us:100us:log13.", several=True)
    ] = None,
    bandwidth: Annotated[
        str | None, network_option("bandwidth", "Or a range, as of latency.", several=True)
    ] = None,
    eager_threshold: Annotated[str | None, network_option("eager_threshold", several=True)] = None,
    async_small_thresh: Annotated[
        str | None, network_option("async_small_thresh", several=True)
    ] = None,
    send_is_detached_thresh: Annotated[
        str | None, network_option("send_is_detached_thresh", several=True)
    ] = None,
    send_overhead: Annotated[str | None, network_option("send_overhead", several=True)] = None,
    receive_overhead: Annotated[
        str | None, network_option("receive_overhead", several=True)
    ] = None,
    collectives: Annotated[str | None, network_option("collectives", several=True)] = None,
    collective_cost: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="How often a collective pays its fan-in and fan-out: constant, linear or "
            "logarithmic, or a file of Dimemas with factors and sizes by operation.",
        ),
    ] = None,
    algorithm: Annotated[
        list[str] | None, network_option("algorithm", "Of one operation, one replay for each.")
    ] = None,
    mapping: Annotated[str | None, network_option("mapping", several=True)] = None,
    cpu_factor: Annotated[str | None, network_option("cpu_factor", several=True)] = None,
    rank_speed: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RANKS=FACTOR,...",
            help="CPU speed of single ranks relative to the traced run: 0=2,4-7=0.5. Repeat it for "
            "further replays.",
        ),
    ] = None,
    region_speed: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FACTOR",
            help="CPU speed in a region on all ranks, relative to the traced run: solve=2. Regions "
            "are those that popmodel sensitivity lists. Repeat it for other regions.",
        ),
    ] = None,
    links: Annotated[
        str | None,
        typer.Option(
            metavar="N,...",
            help="Links of each node, in and out, for messages to other nodes: 1, or OUT:IN, 2:1. "
            "0: as many as needed; one of both 0: half duplex.",
        ),
    ] = None,
    buses: Annotated[
        str | None,
        typer.Option(metavar="N,...", help="Messages between nodes under way at a time at most."),
    ] = None,
    intra_links: Annotated[
        str | None,
        typer.Option(metavar="N,...", help="Links, each way, of each rank inside its node."),
    ] = None,
    sharing: Annotated[
        str | None,
        typer.Option(
            metavar="fifo|fair,...",
            help="Whether links serve one message after the other, as in Dimemas (default), or "
            "messages share their bandwidth.",
            show_default=False,
        ),
    ] = None,
    topology: Annotated[
        str | None,
        typer.Option(
            metavar="FILE,...",
            help="A fat tree or torus described in TOML (docs/contention.md), whose links messages "
            "share.",
        ),
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
    format: DrawnFormatOption = None,
    output: Annotated[
        str | None,
        output_option(
            f"Write to FILE ({formats.suffixes(DRAWN)}). Default: standard output (-). A .prv or "
            ".prv.gz FILE gets the replayed run as a trace, and the result goes to standard output."
        ),
    ] = None,
    force: ForceOption = False,
    flop_rate: FlopRateOption = None,
    application: ApplicationOption = "1",
    window: WindowOption = None,
    region: RegionOption = None,
    from_start: FromStartOption = False,
    foa: FoaOption = None,
    procs: Annotated[
        str | None, typer.Option(metavar="P", help="Of a signature: number of processes.")
    ] = None,
    threads: Annotated[
        str, typer.Option(metavar="T", help="Of a signature: threads per process.")
    ] = "1",
    set_: SetOption = None,
) -> None:
    """Simulate a run on another network.

    Replays what every process did: computation takes as long as it was traced, MPI as long as it
    would on the network. By default the network is ideal: no latency, infinite bandwidth. Options
    of the network take several values, separated by commas, or ranges: 1us:100us:log5 is 5 values
    with equal ratios, 1us:5us:lin5 with equal steps. There is one replay for each combination. The
    replay covers the end of MPI_Init on the last rank to the start of MPI_Finalize on the first.

    With --procs the run is that of a signature, every step of it; it computes as predicted for the
    first --machine, else the default one.

    In JSON, infinite values are null (in CSV, empty fields).
    """
    from popmodel.api.outcomes import BASELINES
    from popmodel.api.replay import replay
    from popmodel.cli.output import target
    from popmodel.cli.trace_target import checked
    from popmodel.network.collectives import parse_selection
    from popmodel.network.placement import parse_speeds
    from popmodel.reports.networks import differences
    from popmodel.reports.replay import VIEWS
    from popmodel.sensitivity.regions import parse_region_speeds

    to_trace = output is not None and output.endswith((".prv", ".prv.gz"))
    goal = target(ctx.obj, None if to_trace else output, format, force=force, names=DRAWN)
    which = whole_number("--application", application)
    baseline = (
        None if against is None else BASELINES[choice("--against", against, tuple(BASELINES))]
    )
    found = replay(
        trace,
        each("--network", network, base),
        machine=each("--machine", machine, str),
        latency=ranges("--latency", latency, parse_time),
        bandwidth=ranges("--bandwidth", bandwidth, parse_bandwidth),
        eager_threshold=eager(
            ranges("--eager-threshold", eager_threshold, parse_size),
            ranges("--async-small-thresh", async_small_thresh, parse_size),
        ),
        send_is_detached_thresh=ranges(
            "--send-is-detached-thresh", send_is_detached_thresh, parse_size
        ),
        send_overhead=ranges("--send-overhead", send_overhead, parse_time),
        receive_overhead=ranges("--receive-overhead", receive_overhead, parse_time),
        collectives=each("--collectives", collectives, reading),
        collective_cost=each("--collective-cost", collective_cost, str),
        algorithm=_texts("--algorithm", algorithm, parse_selection),
        mapping=each("--mapping", mapping, str),
        rank_speed=_texts("--rank-speed", rank_speed, parse_speeds),
        region_speed=parse_region_speeds(region_speed or []),
        cpu_factor=ranges("--cpu-factor", cpu_factor, factor),
        links=each("--links", links, _links),
        buses=each("--buses", buses, _count),
        links_within=each("--intra-links", intra_links, _count),
        sharing=each("--sharing", sharing, _sharing),
        topology=each("--topology", topology, str),
        against=baseline,
        metrics=metrics,
        output=checked(output, force=force) if to_trace and output else None,
        window=window,
        region=region,
        from_start=from_start,
        foa=foa,
        application=which,
        flop_rate=flop_rate_of(flop_rate),
        procs=optional_number("--procs", procs),
        threads=whole_number("--threads", threads),
        settings=settings(set_ or []),
    )
    result = found.to_dict()

    def report_failures() -> None:
        if failures := found.failures:
            # The other networks have their result; what stopped these is said after it.
            named = [f"run {number} ({differences(result, number)})" for number in failures]
            raise _stopped(named, next(iter(failures.values())))

    part = {
        "window": window,
        "region": region,
        "from_start": from_start,
        "foa": foa,
        "application": which,
        "flop_rate": flop_rate_of(flop_rate),
    }
    # Neither signatures nor runs with other speeds of regions have sensitivities.
    views = VIEWS
    if found.kind == "trace" and not region_speed:
        views = replace(VIEWS, contents=partial(_contents, found.outcomes[0].network, part))
    goal.write(result, views, found.files, report_failures)


def _contents(network: Network, part: Mapping[str, Any], document: Document) -> Contents:
    """What a page shows of replays of a trace."""
    from popmodel.api.replay_page import with_sensitivity

    return with_sensitivity(document, network, part)


def _stopped(runs: Sequence[str], first: ReplayError) -> ReplayError:
    """One error for the runs without result, with what happened in the first of them."""
    others = f"; no result for {', '.join(runs[1:])} either" if len(runs) > 1 else ""
    return ReplayError(f"{runs[0]}: {first.message}{others}", first.hint)


def _texts(option: str, texts: list[str] | None, read: Callable[[str], object]) -> list[str] | None:
    """The texts of an option that may be repeated, each of which can be read."""
    for text in texts or ():
        try:
            read(text)
        except UsageError as error:
            raise UsageError(f"{option}: {error.message}", error.hint) from error
    return texts or None


def _links(text: str) -> str:
    from popmodel.api.shared import links_of

    links_of(text)
    return text


def _count(text: str) -> int:
    from popmodel.api.shared import number_of

    return number_of(text)


def _sharing(text: str) -> str:
    return Network(sharing=text).sharing
