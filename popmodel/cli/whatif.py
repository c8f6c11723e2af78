"""``popmodel whatif``: what another network, node or faster region would change."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from popmodel.base.errors import PopmodelError, ReplayError, UsageError
from popmodel.base.values import dataclass, document, fields_of
from popmodel.cli.command import CommandParameter, flag, option, verb
from popmodel.cli.completion import (
    Words,
    collective_readings,
    machine_presets,
    network_names,
)
from popmodel.cli.options import (
    APPLICATION,
    FLOP_RATE,
    FOA,
    FROM_START,
    REGION,
    RUN,
    SET,
    WINDOW,
    one_of,
    whole_number,
)
from popmodel.network.network import PRESETS, READINGS, describe
from popmodel.reports.formats import HTML, NAMES
from popmodel.reports.result import Result, ResultValue

if TYPE_CHECKING:
    import pandas

    from popmodel.cli.inputs import ProfileLike, SignatureLike, TraceLike
    from popmodel.network.network import Network
    from popmodel.network.scenario_networks import NetworkLike
    from popmodel.network.topology import Topology
    from popmodel.sensitivity.runtime_sensitivity import RuntimeSensitivity
    from popmodel.sensitivity.scenarios import (
        Against,
        Efficiencies,
        ReplayedScenario,
        SimulatedRun,
    )
    from popmodel.traces.selection import Foa, TraceFocus, Window

    RunLike: TypeAlias = TraceLike | SignatureLike
    Several: TypeAlias = float | str | Iterable[float | str] | None
    Texts: TypeAlias = str | Iterable[str] | None
    TopologyLike: TypeAlias = str | os.PathLike[str] | Topology

EXAMPLES = (
    "popmodel whatif run.prv",
    "popmodel whatif run.prv --network ideal",
    "popmodel whatif run.prv --latency 1us,5us --bandwidth 1GB/s",
    "popmodel whatif run.prv --latency 1us:100us:log9 --bandwidth 1GB/s,9GB/s",
    "popmodel whatif run.prv --cpu-factor 0.5,1,2 --metrics",
    "popmodel whatif run.prv --region-speed solve=2",
    "popmodel whatif run.prv --machine m.json --mapping traced,block:8,cyclic:8",
    "popmodel whatif run.prv --machine m.json --sensitivity",
    "popmodel whatif run.prv --latency 5us --save-trace replayed.prv.gz",
    "popmodel whatif app.toml --procs 16 --threads 2 --network alpha-beta",
)
FORMATS = (*NAMES, HTML.name)
RESOURCES = True
CONDITIONS = True
RENAMED = {
    "--intra-links": "--links-within",
    "--async-small-thresh": "--eager-threshold",
    "--send-is-detached-thresh": "popmodel.Network(send_is_detached_thresh=...) in Python",
    "--collective-cost": "popmodel.Network(collective_cost=...) in Python, or a .cfg of Dimemas",
    "--slowdown": "in JSON: the tolerance for 1, 2 and 5 %",
    "--latency-range": "--latency with --sensitivity: the curve goes to twice that",
    "--bandwidth-range": "--bandwidth with --sensitivity: the curve goes from half of that",
}
AGAINST: tuple[Against, ...] = ("ideal", "first", "measured")
DEFAULT_NETWORK = "alpha-beta"
"""The network whose sensitivity is found."""
_SCENARIOS = (
    *("latency", "bandwidth", "eager_threshold", "send_overhead", "receive_overhead"),
    *("cpu_factor", "collectives", "algorithm", "mapping", "rank_speed", "links", "buses"),
    *("links_within", "sharing", "topology"),
)
"""Parameters that make scenarios, the first of which varies most slowly."""
_OF_SIGNATURES = ("procs", "threads", "settings")
_OF_TRACES = ("window", "region", "foa", "from_start", "flop_rate", "region_speed", "save_trace")
_NULL = ("measured_runtime",)  # keys of the document that stay where there is no value
_PRESETS = ", ".join(f"{name} ({describe(network)})" for name, network in PRESETS.items())


@dataclass(frozen=True)
class WhatIf(Result):
    """What the runtime of a run depends on, or the run in scenarios, as returned by `whatif`."""

    trace: str  # The trace, or the signature
    kind: str  # What it is: ``trace`` or ``signature``
    window: TraceFocus  # The part of it that was replayed
    measured: float | None  # Its measured runtime, s; None where it has no measured times
    processes: int
    nodes: int  # Nodes of the processes
    doubts: tuple[str, ...]  # Why nothing that is said of the run is reliable
    caveats: tuple[str, ...]  # What limits the numbers
    notes: tuple[str, ...]  # What was omitted or assumed
    files: tuple[str, ...]  # The files that were read
    sensitivity: RuntimeSensitivity | None = None  # What the runtime depends on
    runs: tuple[ReplayedScenario, ...] = ()  # The scenarios
    against: tuple[Against, float | None] = ("ideal", None)  # What they are compared with, its s
    measured_metrics: Efficiencies | None = None  # By family, if requested
    unknown_families: Mapping[str, str] | None = None  # That replays do not give, with the reason
    written: str | None = None  # The trace that was written

    @property
    def names(self) -> list[str]:
        """What tells each scenario from the others."""
        from popmodel.reports.scenario_tables import differences

        found = self.to_dict()
        return [differences(found, number) for number in range(1, len(self.runs) + 1)]

    def to_dict(self) -> dict[str, Any]:
        """Return the document, schema ``popmodel/whatif/1``, without provenance."""
        found: dict[str, Any]
        if self.sensitivity is not None:
            found = {"sensitivity": self.sensitivity.to_dict()}
        else:
            what, base = self.against
            found = {
                "against": {"what": what, "runtime": base},
                "measured_metrics": self.measured_metrics,
                "unknown_families": self.unknown_families,
                "runs": [one.facts(base) for one in self.runs],
            }
        whole = document(
            "popmodel/whatif/1",
            **fields_of(self, "kind", "trace", "doubts", "caveats"),
            **fields_of(self, "window", "processes", "nodes"),
            measured_runtime=self.measured,
            written=self.written,
            notes=self.notes,
            **found,
        )
        return {key: value for key, value in whole.items() if value is not None or key in _NULL}

    def values(self) -> list[ResultValue]:
        """The runtime and what it is made of, or the runtimes of the scenarios."""
        if self.sensitivity is not None:
            known = self.sensitivity.to_dict()
            found = [ResultValue(id, known[id]) for id in ("runtime", "ideal_runtime")]
            for name, time in known["shares"].items():
                share = time / known["runtime"] if known["runtime"] else 0.0
                found.append(ResultValue(f"{name}_share", share))
            return found
        found = []
        for name, facts in zip(self.names, self.to_dict()["runs"], strict=True):
            why = facts.get("error", "the baseline has no runtime")
            found += [ResultValue(id, facts[id], name, why) for id in ("runtime", "change")]
            for family, values in facts.get("metrics", {}).items():
                found += [ResultValue(f"{family}.{id}", values[id], name) for id in values]
        return found

    def failure(self) -> PopmodelError | None:
        """The replays that stopped, where others have a result."""
        if all(one.error is None for one in self.runs):
            return None
        stopped = [
            (f"run {number} ({name})", one.error)
            for number, (name, one) in enumerate(zip(self.names, self.runs, strict=True), start=1)
            if one.error is not None
        ]
        (first, error), *others = stopped
        also = ", ".join(name for name, _ in others)
        more = f"; no result for {also} either" if also else ""
        return ReplayError(f"{first}: {error.message}{more}", error.hint)

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the rows of ``--format csv``: no limit, null in documents, is infinity."""
        table = super().to_dataframe()
        return table.fillna({name: math.inf for name in _LIMITS if name in table})


_LIMITS = (
    "network_bandwidth",
    "network_eager_threshold",
    "network_send_is_detached_thresh",
)


def _scenarios(
    metavar: str, help: str, *, several: bool = False, complete: Sequence[str | Words] = ()
) -> CommandParameter:
    """A parameter that makes scenarios: values separated by commas, or the option repeated."""
    metavar = metavar if several else f"{metavar},..."
    return option(metavar, help, _read, several=several, complete=complete)


def _read(name: str, given: Any) -> Any:
    """Refuse what is wrong by the option's name; the function reads it again."""
    from popmodel.network.scenario_networks import scenario_values

    scenario_values(name.removeprefix("--").replace("-", "_"), given, name)
    return given


def _machines(name: str, given: Any) -> Any:  # noqa: ARG001 (a reader's signature)
    return given.split(",") if isinstance(given, str) else given


def _region_speeds(name: str, given: Any) -> Mapping[str, float]:  # noqa: ARG001 (likewise)
    from popmodel.sensitivity.region_speeds import parse_region_speeds

    return given if isinstance(given, Mapping) else parse_region_speeds(given)


@verb
def whatif(
    trace: Annotated[RunLike, RUN],
    network: Annotated[
        NetworkLike | Iterable[NetworkLike] | None,
        _scenarios(
            "NAME",
            f"Network: {_PRESETS}; or a configuration of Dimemas (.cfg), with its machine and "
            "mapping. Default: ideal, unless --machine is given; alpha-beta for sensitivities.",
            complete=(network_names, ".cfg"),
        ),
    ] = None,
    *,
    machine: Annotated[
        ProfileLike | Iterable[ProfileLike] | None,
        option(
            "PROFILE,...",
            "The network of a machine profile (.json) or preset, with the placement of processes "
            "on nodes as traced.",
            _machines,
            complete=(machine_presets, ".json"),
        ),
    ] = None,
    latency: Annotated[
        Several, _scenarios("TIME", "Latency, for example 5us, or a range, 0.1us:100us:log13.")
    ] = None,
    bandwidth: Annotated[
        Several, _scenarios("RATE", "Bandwidth, for example 1GB/s, or inf, or a range.")
    ] = None,
    cpu_factor: Annotated[Several, _scenarios("FACTOR", "CPU speed relative to the run.")] = None,
    region_speed: Annotated[
        Mapping[str, float] | None,
        option(
            "NAME=FACTOR",
            "CPU speed in a region on all ranks, relative to the run: solve=2. Regions are those "
            "that popmodel whatif TRACE lists. Repeat it for other regions.",
            _region_speeds,
            several=True,
        ),
    ] = None,
    rank_speed: Annotated[
        Texts,
        _scenarios(
            "RANKS=FACTOR,...",
            "CPU speed of single ranks relative to the run: 0=2,4-7=0.5. Repeat it for further "
            "scenarios.",
            several=True,
        ),
    ] = None,
    mapping: Annotated[
        Texts,
        _scenarios(
            "NAME",
            "Nodes of ranks: traced, block:4 (4 consecutive ranks on each node), cyclic:4 (dealt "
            "out in turn to nodes of 4), or a file with the node of one rank per line.",
        ),
    ] = None,
    collectives: Annotated[
        Texts,
        _scenarios(
            "NAME",
            f"Which ranks wait for which in collectives: {', '.join(READINGS)}.",
            complete=(collective_readings,),
        ),
    ] = None,
    algorithm: Annotated[
        Texts,
        _scenarios(
            "OPERATION=NAME",
            "Carry collectives out as messages, an operation by this algorithm: allreduce=ring; by "
            "size: allreduce=recursive_doubling:8KiB,ring. Repeat it for other operations; of one "
            "operation, for a scenario each.",
            several=True,
        ),
    ] = None,
    eager_threshold: Annotated[
        Several,
        _scenarios(
            "SIZE",
            "A blocking send of at least this size waits for its receive. Default: 32KiB; smpi: 0.",
        ),
    ] = None,
    send_overhead: Annotated[
        Several, _scenarios("TIME", "CPU time to send a message, beside the latency.")
    ] = None,
    receive_overhead: Annotated[
        Several, _scenarios("TIME", "CPU time to receive a message, likewise.")
    ] = None,
    links: Annotated[
        Several,
        _scenarios(
            "N",
            "Links of each node, in and out, for messages to other nodes: 1, or OUT:IN, 2:1. 0: as "
            "many as needed; one of both 0: half duplex.",
        ),
    ] = None,
    buses: Annotated[
        Several, _scenarios("N", "Messages between nodes under way at a time at most.")
    ] = None,
    links_within: Annotated[
        Several, _scenarios("N", "Links, each way, of each rank inside its node.")
    ] = None,
    sharing: Annotated[
        Texts,
        _scenarios(
            "fifo|fair",
            "Whether links serve one message after the other, as in Dimemas (default), or messages "
            "share their bandwidth.",
            complete=("fifo", "fair"),
        ),
    ] = None,
    topology: Annotated[
        TopologyLike | Iterable[TopologyLike] | None,
        _scenarios(
            "FILE",
            "A fat tree or torus described in TOML (popmodel docs contention), whose links "
            "messages share.",
            complete=(".toml",),
        ),
    ] = None,
    sensitivity: Annotated[
        bool,
        flag(
            "Tell what the runtime on this one network depends on. Default: without any scenario, "
            "on the network alpha-beta."
        ),
    ] = False,
    against: Annotated[
        Against | None,
        option(
            "ideal|first|measured",
            "Compare runtimes with the ideal network, the first scenario, or the measured run. "
            "Default: first if there are several, else ideal (measured for the ideal network "
            "itself).",
            one_of(AGAINST),
        ),
    ] = None,
    metrics: Annotated[bool, flag("Show the efficiencies of each scenario.")] = False,
    save_trace: Annotated[
        str | os.PathLike[str] | None,
        option(
            "FILE",
            "Write a trace (.prv or .prv.gz): the run as it is in the only scenario, or, without "
            "scenarios, with the critical path as events.",
        ),
    ] = None,
    force: bool = False,
    window: Annotated[Window | None, WINDOW] = None,
    region: Annotated[str | None, REGION] = None,
    from_start: Annotated[bool, FROM_START] = False,
    foa: Annotated[Foa | None, FOA] = None,
    application: Annotated[int, APPLICATION] = 1,
    flop_rate: Annotated[float | None, FLOP_RATE] = None,
    procs: Annotated[
        int | None, option("P", "Of a signature: number of processes.", whole_number)
    ] = None,
    threads: Annotated[int, option("T", "Of a signature: threads per process.", whole_number)] = 1,
    settings: Annotated[Mapping[str, float] | None, SET] = None,
    seed: int = 0,
) -> WhatIf:
    """Tell what another network, node or faster region would change.

    Without scenarios: what the runtime depends on. How much of it is computing, latency and
    bandwidth, how much of both the run tolerates, and which faster region would pay: exactly, from
    one trace, as the runtime on a network without shared links is the length of a critical path.

    With options of the network, the CPUs or the placement: the run in each scenario. Computation
    takes as long as in the run, MPI as long as it would on the network. Several values, separated
    by commas, or ranges (1us:100us:log5 is 5 values with equal ratios, 1us:5us:lin5 with equal
    steps) make a scenario of each combination.

    By default the analysis covers the end of MPI_Init on the last rank to the start of
    MPI_Finalize on the first. A signature, with --procs, is a run as well: it computes as predicted
    on the first --machine, else the default one.

    In JSON, infinite values are null (in CSV, empty fields).

    Parameters
    ----------
    trace : path, Trace or Signature
        The trace, or a signature: a file (``.toml``), a loaded one, or, with `procs`, the name of
        a bundled one.
    network : str or Network, or several of them, optional
        Base networks: names, files of Dimemas (``.cfg``), or loaded.
    machine : str or Profile, or several of them, optional
        Machine profiles (files, names of presets) whose networks to use.
    latency, send_overhead, receive_overhead : float or str, or several, optional
        Seconds, or text such as ``"5us"`` or ``"0.1us:100us:log13"``. Several values of any
        parameter down to `topology` give one scenario per combination.
    bandwidth, eager_threshold : float or str, or several, optional
        B/s or bytes, or text such as ``"1GB/s"`` or ``"32KiB"``.
    cpu_factor : float or several, optional
        CPU speed relative to the run; 2 is twice as fast.
    region_speed : mapping of str to float, optional
        CPU speeds in regions on all ranks, relative to the run, in all scenarios.
    rank_speed : str or several, optional
        CPU speeds of single ranks, ``"0=2,4-7=0.5"``.
    mapping : str or several, optional
        On which nodes ranks run. Matters where messages cost less inside a node, as with `machine`.
    collectives, algorithm : str or several, optional
        How collectives are carried out.
    links, buses, links_within : int or str, or several, optional
        What messages share; 0 is as many as needed. Makes the replay time-ordered.
    sharing : str or several, optional
        ``fifo``: links serve one message after the other. ``fair``: messages share the bandwidth.
    topology : path, FatTree or Torus, or several, optional
        A network of switches, or a TOML file that describes it.
    sensitivity : bool
        Whether to tell what the runtime on the given network depends on.
    against : {"ideal", "first", "measured"}, optional
        What runtimes are compared with.
    metrics : bool
        Whether to compute the efficiencies of each scenario.
    save_trace : path, optional
        A Paraver trace to write; `force` overwrites an existing one.
    window, region, from_start, foa, application
        The part of the trace; as for `popmodel.metrics`.
    flop_rate : float, optional
        Flop per second of one process; needed for traces of SimGrid SMPI.
    procs, threads, settings, seed
        Of a signature: processes, threads of each, parameters, and what decides which processes
        are slow where that is left to chance.

    Raises
    ------
    FileError
        If the trace or a profile cannot be read.
    ReplayError
        If the only replay stops, for instance in a deadlock. Of several scenarios, each keeps its
        own error.
    MissingQuantity
        If a machine profile lacks the network between the processes.
    UsageError
        If a value is invalid, or the options contradict each other.

    Examples
    --------
    >>> import popmodel
    >>> found = popmodel.whatif("tests/data/cg.S.2.prv.gz")
    >>> found["latency_share"] > found["bandwidth_share"]
    True
    >>> len(found.sensitivity.over_latency.breakpoints) > 100
    True
    >>> found = popmodel.whatif("tests/data/cg.S.2.prv.gz", latency=["1us", "20us"])
    >>> fast, slow = found["runtime"]
    >>> fast < slow
    True
    >>> found.to_dataframe()["network_latency"].unique().tolist()
    [1e-06, 2e-05]
    """
    given: dict[str, Any] = dict(locals())
    from popmodel.cli.inputs import (
        kind_of,
        path_of,
        profile_of,
        refuse_options,
        several,
        signature_of,
        trace_of,
    )
    from popmodel.sensitivity.scenarios import (
        WantedNetworks,
        described_run,
        network_limits,
        replay_scenarios,
        traced_run,
    )
    from popmodel.simulator.program import unmodelled_calls
    from popmodel.structure.focus import part_of_run
    from popmodel.traces.selection import TracePart

    asked = {name: given[name] for name in _SCENARIOS}
    every = [network, machine, region_speed, *asked.values()]
    alone = sensitivity or all(one is None for one in every)
    base = network or (None if machine is not None else DEFAULT_NETWORK if alone else "ideal")
    profiles = [] if machine is None else [profile_of(one) for one in several(machine)]
    for name, is_given in (("metrics", metrics), ("against", against is not None)):
        if alone and is_given:
            raise UsageError(f"{name}: there is no scenario", "name one, such as --network ideal")
    wanted = WantedNetworks(base, asked, tuple(profiles))
    if save_trace is not None and region_speed:
        raise UsageError(
            f"--save-trace {save_trace}: the records of a region cannot be stretched",
            "leave out --region-speed",
        )
    if save_trace is not None:  # what would be refused after the work is refused before
        from popmodel.cli.trace import trace_file

        save_trace = trace_file(os.fspath(save_trace), force=force, option="--save-trace")
    part = TracePart.of(window, region, from_start, foa)
    source: Any = trace
    if kind_of(trace) != "signature":
        why = f"is for signatures; {path_of(source)} is a trace, which is replayed as it is"
        hint = "leave it out, or name a signature (.toml)"
        refuse_options({**given, "threads": threads != 1}, why, hint, _OF_SIGNATURES)
        whole = trace_of(source, application=application, flop_rate=flop_rate, rated=True)
        run = traced_run(whole, part_of_run(part, whole), region_speed or {})
    else:
        described = signature_of(source)
        if procs is None:
            problem = f"{described.path}: how many processes?"
            raise UsageError(problem, "--procs 4 (procs=4 in Python)")
        why = f"{described.path} is a signature, which has no trace for it"
        refuse_options(given, why, among=_OF_TRACES)
        profile = profiles[0] if profiles else profile_of(None)
        run = described_run(described, profile, procs, threads, settings or {}, seed)
    if against == "measured" and run.measured is None:
        raise UsageError(
            f"{run.path}: no measured times to compare with", "against: ideal or first"
        )
    networks = wanted.between(run.program)
    if alone and len(networks) > 1:
        raise UsageError(
            f"one network at a time, not {len(networks)}",
            "give one value each, or leave --sensitivity out",
        )
    if save_trace is not None and len(networks) > 1:
        raise UsageError(
            f"--save-trace {save_trace}: one replay makes a trace, not {len(networks)} replays",
            "give one value to each option of the network",
        )
    assumed: tuple[str, ...] = ()
    if alone:
        found = _sensitivity(run, networks[0], save_trace)
        assumed = found["sensitivity"].notes
    else:
        found = replay_scenarios(run, networks, against, metrics=metrics)._asdict()
        if save_trace is not None and run.source is not None:
            from popmodel.simulator.trace_output import write_replay

            write_replay(run.source, run.program, networks[0], save_trace)
    placed = run.program.on(networks[0].mapping) if alone else run.program
    caveats = [*wanted.lacks(run.program), *unmodelled_calls(run.program.unmodelled), *run.caveats]
    parts = [
        part.strip()
        for one in (network, topology, mapping)
        for word in several(one)
        if isinstance(word, str | os.PathLike)
        for part in os.fspath(word).split(",")
    ]
    read = (part for part in parts if part not in PRESETS and Path(part).is_file())
    speeds = [
        f"computing in {name} is taken as {speed:g} times as fast as in the run, on the ideal "
        "network, too"
        for name, speed in (region_speed or {}).items()
    ]
    return WhatIf(
        trace=run.path,
        kind=run.kind,
        window=run.window,
        measured=run.measured,
        processes=run.program.processes,
        nodes=len(set(placed.nodes.tolist())),
        caveats=(*network_limits(run.program, networks), *caveats),
        notes=(*speeds, *assumed, *run.program.notes),
        files=(*run.files, *(one.path for one in profiles), *read),
        written=None if save_trace is None else os.fspath(save_trace),
        **found,
    )


def _sensitivity(
    run: SimulatedRun, network: Network, target: str | os.PathLike[str] | None
) -> dict[str, Any]:
    """What the runtime depends on; the critical path is written into the trace."""
    from popmodel.sensitivity.critical_path import write_path
    from popmodel.sensitivity.runtime_sensitivity import critical_path, runtime_sensitivity
    from popmodel.sensitivity.scenarios import doubts
    from popmodel.simulator.replayer import Replayer

    found = runtime_sensitivity(run.program, network, run.source)
    if target is not None and run.source is not None:
        path = critical_path(run.program, network)
        write_path(path, run.program, run.source, Path(target), describe(network))
    return {"sensitivity": found, "doubts": tuple(doubts(run, Replayer(run.program).run))}
