"""``popmodel replay``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

import typer

from popmodel.cli.options import (
    FORMATS,
    ApplicationOption,
    CacheOption,
    FlopRateOption,
    FoaOption,
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
from popmodel.grids import read_values
from popmodel.network.network import PRESETS, READINGS, Network, describe, preset
from popmodel.report import formats
from popmodel.units import parse_bandwidth, parse_size, parse_time

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
            help=f"Base network: {_PRESETS}; or a configuration of Dimemas (.cfg), with its "
            "machine and mapping. Default: ideal, unless --machine is given.",
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
        str | None,
        typer.Option(metavar="TIME,...", help="Latency: 5us, or a range, 0.1us:100us:log13."),
    ] = None,
    bandwidth: Annotated[
        str | None,
        typer.Option(metavar="RATE,...", help="Bandwidth: 1GB/s, inf, or a range, as of latency."),
    ] = None,
    eager_threshold: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE,...",
            help="A blocking send of at least this size waits for its receive. Default: 32KiB.",
        ),
    ] = None,
    send_overhead: Annotated[
        str | None,
        typer.Option(metavar="TIME,...", help="CPU time to send a message, beside the latency."),
    ] = None,
    receive_overhead: Annotated[
        str | None,
        typer.Option(metavar="TIME,...", help="CPU time to receive a message, likewise."),
    ] = None,
    collectives: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help=f"Which ranks wait for which in collectives: {', '.join(READINGS)}.",
        ),
    ] = None,
    collective_cost: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="How often a collective pays its fan-in and fan-out: constant, linear or "
            "logarithmic, or a file of Dimemas with factors and sizes by operation.",
        ),
    ] = None,
    algorithm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OPERATION=NAME",
            help="Carry collectives out as messages, an operation by this algorithm: "
            "allreduce=ring; by size: allreduce=recursive_doubling:8KiB,ring. Repeat it for other "
            "operations; of one operation, one replay for each.",
        ),
    ] = None,
    mapping: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Nodes of ranks: traced, block:4 (4 consecutive ranks on each node), cyclic:4 "
            "(dealt out in turn to nodes of 4), or a file with the node of one rank per line.",
        ),
    ] = None,
    cpu_factor: Annotated[
        str | None,
        typer.Option(metavar="FACTOR,...", help="CPU speed relative to the traced run."),
    ] = None,
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
    foa: FoaOption = None,
) -> None:
    """Simulate a run on another network.

    Replays what every process did: computation takes as long as it was traced, MPI as long as it
    would on the network. By default the network is ideal: no latency, infinite bandwidth. Options
    of the network take several values, separated by commas, or ranges: 1us:100us:log5 is 5 values
    with equal ratios, 1us:5us:lin5 with equal steps. There is one replay for each combination. The
    replay covers the end of MPI_Init on the last rank to the start of MPI_Finalize on the first.

    In JSON, infinite values are null (in CSV, empty fields).
    """
    from popmodel.api.outcomes import BASELINES
    from popmodel.api.replay import replay
    from popmodel.cli.output import target
    from popmodel.cli.trace_target import checked
    from popmodel.network.selection import parse_selection
    from popmodel.network.speeds import parse_speeds
    from popmodel.report.networks import differences
    from popmodel.report.replay import VIEWS
    from popmodel.whatif.region_speeds import parse_region_speeds

    to_trace = output is not None and output.endswith((".prv", ".prv.gz"))
    goal = target(ctx.obj, None if to_trace else output, format, force=force)
    which = whole_number("--application", application)
    base = None if against is None else BASELINES[choice("--against", against, tuple(BASELINES))]
    found = replay(
        trace,
        None if network is None else _values("--network", network, _base),
        machine=None if machine is None else _values("--machine", machine, str),
        latency=_range("--latency", latency, parse_time),
        bandwidth=_range("--bandwidth", bandwidth, parse_bandwidth),
        eager_threshold=_range("--eager-threshold", eager_threshold, parse_size),
        send_overhead=_range("--send-overhead", send_overhead, parse_time),
        receive_overhead=_range("--receive-overhead", receive_overhead, parse_time),
        collectives=_several("--collectives", collectives, _rule),
        collective_cost=_several("--collective-cost", collective_cost, str),
        algorithm=_texts("--algorithm", algorithm, parse_selection),
        mapping=_several("--mapping", mapping, str),
        rank_speed=_texts("--rank-speed", rank_speed, parse_speeds),
        region_speed=parse_region_speeds(region_speed or []),
        cpu_factor=_range("--cpu-factor", cpu_factor, _parse_factor),
        links=_several("--links", links, _links),
        buses=_several("--buses", buses, _count),
        links_within=_several("--intra-links", intra_links, _count),
        sharing=_several("--sharing", sharing, _sharing),
        topology=_several("--topology", topology, str),
        against=base,
        metrics=metrics,
        output=checked(output, force=force) if to_trace and output else None,
        window=window,
        region=region,
        from_start=from_start,
        foa=foa,
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


def _base(text: str) -> Network | str:
    """A preset, or the name of a configuration of Dimemas."""
    return text if text.endswith(".cfg") else preset(text)


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


def _range(option: str, text: str | None, read: Callable[[str], float]) -> list[float] | None:
    """The values of an option of which ranges can be given."""
    found = _several(option, text, partial(read_values, read=read))
    return None if found is None else [value for values in found for value in values]


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


def _links(text: str) -> str:
    from popmodel.api.shared import links_of

    links_of(text)
    return text


def _count(text: str) -> int:
    from popmodel.api.shared import number_of

    return number_of(text)


def _sharing(text: str) -> str:
    return Network(sharing=text).sharing


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
