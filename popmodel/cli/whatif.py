"""``popmodel whatif``: what another network, node or faster region would change."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from popmodel.base.errors import PopmodelError, ReplayError, UsageError
from popmodel.base.plain import document
from popmodel.base.units import format_time, plural
from popmodel.base.values import cut, dataclass
from popmodel.cli.command import CommandParameter, flag, option
from popmodel.cli.completion import (
    Words,
    collective_readings,
    machine_presets,
    network_names,
)
from popmodel.cli.options import whole_number
from popmodel.cli.parameters import (
    APPLICATION,
    FLOP_RATE,
    FOA,
    FROM_START,
    REGION,
    RUN,
    SET,
    WINDOW,
    one_of,
)
from popmodel.network.network import PRESETS, READINGS, describe
from popmodel.reports.formats import HTML, NAMES
from popmodel.reports.result import Result, ResultValue

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from popmodel.api.inputs import ProfileLike, SignatureLike, TraceLike
    from popmodel.efficiency.observables import Observables
    from popmodel.machines.profile import Profile
    from popmodel.network.network import Network
    from popmodel.network.scenarios import NetworkLike
    from popmodel.network.topology import Topology
    from popmodel.reports.views import Record, Views
    from popmodel.sensitivity.runtime_sensitivity import RuntimeSensitivity
    from popmodel.simulator import Execution, Program
    from popmodel.traces import Trace
    from popmodel.traces.selection import Foa, TraceFocus, TracePart, Window

    RunLike: TypeAlias = TraceLike | SignatureLike
    Several: TypeAlias = float | str | Iterable[float | str] | None
    Texts: TypeAlias = str | Iterable[str] | None
    TopologyLike: TypeAlias = str | os.PathLike[str] | Topology
    Efficiencies: TypeAlias = Mapping[str, Mapping[str, float]]
    """Values by family and metric."""

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
CONDITIONS = True
RENAMED = {
    "--intra-links": "--links-within",
    "--async-small-thresh": "--eager-threshold",
    "--latency-range": "--latency with --sensitivity: the curve goes to twice that",
    "--bandwidth-range": "--bandwidth with --sensitivity: the curve goes from half of that",
}
Against = Literal["ideal", "first", "measured"]
AGAINST: tuple[Against, ...] = ("ideal", "first", "measured")
DEFAULT_NETWORK = "alpha-beta"
"""The network whose sensitivity is found."""
NO_MPI = (
    "no MPI to replay: no process sends, receives or takes part in a collective, so that a network "
    "changes nothing (popmodel metrics shows where such a run loses time)"
)
NONE_MODELLED = (
    "no call of MPI that is modelled: a network changes nothing here, whatever it would change in "
    "the run"
)
ONE_NODE = (
    "all ranks are on one node, so that no message takes a link between nodes (--mapping block:1 "
    "places each rank on a node of its own)"
)
_OF_MACHINES = (
    "latency",
    "bandwidth",
    "eager_threshold",
    "send_is_detached_thresh",
    "send_overhead",
    "receive_overhead",
)
"""What the profile of a machine says of its network."""
_SHOWN = 8
_NULL = ("measured_runtime",)  # keys of the document that stay where there is no value
_PRESETS = ", ".join(f"{name} ({describe(network)})" for name, network in PRESETS.items())


@dataclass(frozen=True)
class ReplayedScenario:
    """A replay on one network."""

    network: Network
    execution: Execution | None  # What came out
    error: ReplayError | None = None  # What stopped it
    metrics: Efficiencies | None = None  # Efficiencies, if requested

    def __repr__(self) -> str:
        return f"<Scenario {self.network.name}: {self.outcome}>"

    @property
    def runtime(self) -> float | None:
        """Seconds; None where the replay stopped."""
        return None if self.execution is None else self.execution.runtime

    @property
    def outcome(self) -> str:
        """The runtime in words."""
        return "stopped" if self.runtime is None else format_time(self.runtime)

    def facts(self, against: float | None) -> dict[str, Any]:
        """What a document has of it, compared with a runtime."""
        if self.execution is None:
            nothing = dict.fromkeys(("runtime", "operations", "change"))
            error = "" if self.error is None else self.error.message
            return {"network": self.network, **nothing, "ranks": [], "error": error}
        times = zip(self.execution.compute, self.execution.end, strict=True)
        return {
            "network": self.network,
            "runtime": self.execution.runtime,
            "operations": self.execution.operations,
            "change": self.execution.runtime / against - 1 if against else None,
            "ranks": [{"compute": compute, "end": end} for compute, end in times],
            **({} if self.metrics is None else {"metrics": self.metrics}),
        }


@dataclass(frozen=True)
class SimulatedRun:
    """The run that is replayed: a traced one, or one that a signature describes."""

    kind: str  # ``trace`` or ``signature``
    path: str  # Where it comes from
    files: tuple[str, ...]  # What was read
    program: Program  # What every process does
    source: Trace | None  # The analysed part of the trace
    window: TraceFocus  # What part that is
    measured: float | None  # Its measured runtime, s; None where it has no measured times
    caveats: tuple[str, ...]  # What limits its numbers
    # Gives what is known of it without its MPI, and its measured efficiencies.
    observe: Callable[[], tuple[Observables, Efficiencies]]


@dataclass(frozen=True)
class WhatIf(Result):
    """What the runtime of a run depends on, or the run in scenarios, as returned by `whatif`."""

    run: SimulatedRun
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

    def __repr__(self) -> str:
        from popmodel.reports.sensitivity_tables import conclusion

        if self.sensitivity is not None:
            return cut(f"<WhatIf of {self.run.path}: {conclusion(self.to_dict())}>")
        measured = self.run.measured
        shown = [
            f"{name or one.network.name}: {one.outcome}"
            for name, one in zip(self.names[:_SHOWN], self.runs, strict=False)
        ]
        if len(self.runs) > _SHOWN:
            shown.append("...")
        head = "" if measured is None else f"measured {format_time(measured)}, "
        size = plural(len(self.runs), "scenario")
        return cut(f"<WhatIf of {self.run.path}: {head}{size}: {'; '.join(shown)}>")

    @property
    def names(self) -> list[str]:
        """What tells each scenario from the others."""
        from popmodel.reports.networks import differences

        networks = {"runs": [{"network": one.network.to_dict()} for one in self.runs]}
        return [differences(networks, number) for number in range(1, len(self.runs) + 1)]

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
            kind=self.run.kind,
            trace=self.run.path,
            doubts=self.doubts,
            caveats=self.caveats,
            window=self.run.window,
            processes=self.run.program.processes,
            nodes=self.nodes,
            measured_runtime=self.run.measured,
            written=self.written,
            notes=self.notes,
            **found,
        )
        return {key: value for key, value in whole.items() if value is not None or key in _NULL}

    @property
    def views(self) -> Views:
        from popmodel.reports import scenario_tables, sensitivity_tables

        return scenario_tables.VIEWS if self.sensitivity is None else sensitivity_tables.VIEWS

    def values(self) -> list[ResultValue]:
        """The runtime and what it is made of, or the runtimes of the scenarios."""
        if self.sensitivity is not None:
            shares, runtime = self.sensitivity.shares, self.sensitivity.runtime
            parts = ("computing", "latency", "bandwidth", "overhead")
            return [
                ResultValue("runtime", runtime),
                ResultValue("ideal_runtime", self.sensitivity.ideal_runtime),
                *(
                    ResultValue(
                        f"{name}_share", getattr(shares, name) / runtime if runtime else 0.0
                    )
                    for name in parts
                ),
            ]
        found = []
        for name, one in zip(self.names, self.runs, strict=True):
            facts = one.facts(self.against[1])
            why = facts.get("error", "the baseline has no runtime")
            found += [ResultValue(id, facts[id], name, why) for id in ("runtime", "change")]
            for family, values in (one.metrics or {}).items():
                found += [
                    ResultValue(f"{family}.{id}", value, name) for id, value in values.items()
                ]
        return found

    def failure(self) -> PopmodelError | None:
        """The replays that stopped, where others have a result."""
        stopped = [
            (f"run {number} ({name})", one.error)
            for number, (name, one) in enumerate(zip(self.names, self.runs, strict=True), start=1)
            if one.error is not None
        ]
        if not stopped:
            return None
        (first, error), *others = stopped
        also = ", ".join(name for name, _ in others)
        more = f"; no result for {also} either" if also else ""
        return ReplayError(f"{first}: {error.message}{more}", error.hint)

    def _records(self) -> list[Record]:
        """The records, in which no limit, for which documents have null, is infinity."""
        return [
            {**one, **{name: math.inf for name in _LIMITS if one.get(name, 0) is None}}
            for one in super()._records()
        ]


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


def _read(name: str, given: Any) -> list[Any]:
    from popmodel.network.scenarios import scenario_values

    return scenario_values(name.removeprefix("--").replace("-", "_"), given, name)


def _machines(name: str, text: str) -> list[str]:  # noqa: ARG001 (a reader's signature)
    return text.split(",")


def _region_speeds(name: str, texts: Sequence[str]) -> dict[str, float]:  # noqa: ARG001 (likewise)
    from popmodel.sensitivity.regions import parse_region_speeds

    return parse_region_speeds(texts)


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
    collective_cost: Annotated[
        Texts,
        _scenarios(
            "NAME",
            "How often a collective pays its fan-in and fan-out: constant, linear or logarithmic, "
            "or a file of Dimemas with factors and sizes by operation.",
        ),
    ] = None,
    eager_threshold: Annotated[
        Several,
        _scenarios(
            "SIZE",
            "A blocking send of at least this size waits for its receive. Default: 32KiB; smpi: 0.",
        ),
    ] = None,
    send_is_detached_thresh: Annotated[
        Several,
        _scenarios(
            "SIZE",
            "Of smpi: a sender does not wait for the receive of a smaller message, whose transfer "
            "does. Default: 64KiB.",
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
    bandwidth, eager_threshold, send_is_detached_thresh : float or str, or several, optional
        B/s or bytes, or text such as ``"1GB/s"`` or ``"32KiB"``.
    cpu_factor : float or several, optional
        CPU speed relative to the run; 2 is twice as fast.
    region_speed : mapping of str to float, optional
        CPU speeds in regions on all ranks, relative to the run, in all scenarios.
    rank_speed : str or several, optional
        CPU speeds of single ranks, ``"0=2,4-7=0.5"``.
    mapping : str or several, optional
        On which nodes ranks run. Matters where messages cost less inside a node, as with `machine`.
    collectives, collective_cost, algorithm : str or several, optional
        How collectives are carried out and what they cost.
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
    from popmodel.api.inputs import profile_of, several
    from popmodel.network.scenarios import combinations
    from popmodel.simulator.program import unmodelled_calls
    from popmodel.traces.selection import TracePart

    costs: dict[str, Any] = {
        "latency": latency,
        "bandwidth": bandwidth,
        "eager_threshold": eager_threshold,
        "send_is_detached_thresh": send_is_detached_thresh,
        "send_overhead": send_overhead,
        "receive_overhead": receive_overhead,
    }
    others: dict[str, Any] = {
        "cpu_factor": cpu_factor,
        "collectives": collectives,
        "collective_cost": collective_cost,
        "algorithm": algorithm,
        "mapping": mapping,
        "rank_speed": rank_speed,
        "links": links,
        "buses": buses,
        "links_within": links_within,
        "sharing": sharing,
        "topology": topology,
    }
    asked = [network, machine, region_speed, *costs.values(), *others.values()]
    alone = sensitivity or all(one is None for one in asked)
    profiles = [] if machine is None else [profile_of(one) for one in several(machine)]
    if against is not None and against not in AGAINST:
        raise UsageError(f"against: unknown value {against!r}", f"one of {', '.join(AGAINST)}")
    if network is None and profiles:
        for name, value in costs.items():
            if value is not None:
                raise UsageError(
                    f"{name.replace('_', ' ')}: already set by the machine profile",
                    "leave it out, or name a network as well, such as ideal",
                )
    plain = [] if network is None and profiles else combinations({**costs, **others})
    of_machines = combinations(others)
    if save_trace is not None:
        save_trace = _target(save_trace, region_speed, force=force)
    part = TracePart.of(window, region, from_start, foa)
    signature, traced = _either(trace, procs)
    if traced is not None:
        of_signatures = {
            "--procs": procs is not None,
            "--threads": threads != 1,
            "--set": settings,
        }
        run = _of_trace(traced, part, region_speed, application, flop_rate, of_signatures)
    else:
        of_traces = {
            "window": window,
            "region": region,
            "from start": from_start,
            "focus of analysis": foa,
            "flop rate": flop_rate,
            "speeds of regions": region_speed,
            "save trace": save_trace,
        }
        assert signature is not None
        on = profiles[0] if profiles else None
        run = _of_signature(signature, on, procs, threads, settings, seed, of_traces)
    if against == "measured" and run.measured is None:
        raise UsageError(
            f"{run.path}: no measured times to compare with", "against: ideal or first"
        )
    base = network if network is not None else DEFAULT_NETWORK if alone else "ideal"
    networks, files = _networks(run.program, base, plain, profiles, of_machines)
    if sharing is not None and not any(one.contended for one in networks):
        raise UsageError(
            "sharing: no network has anything to share",
            "limit links, buses or links within nodes, or name a topology",
        )
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
    found: dict[str, Any] = (
        _sensitivity(run, networks[0], save_trace)
        if alone
        else _replays(run, networks, against, save_trace, metrics=metrics)
    )
    nodes = set(_nodes(run.program, {"mapping": networks[0].mapping} if alone else {}).tolist())
    lacking = _lacking(run.program, profiles, of_machines)
    caveats = [*lacking, *unmodelled_calls(run.program.unmodelled), *run.caveats]
    return WhatIf(
        run=run,
        nodes=len(nodes),
        caveats=(*caveats, *_limits(run.program, networks)),
        notes=(*_speeds(region_speed or {}), *found.pop("notes", ()), *run.program.notes),
        files=(*run.files, *(one.path for one in profiles), *_topologies(topology), *files),
        written=None if save_trace is None else os.fspath(save_trace),
        **found,
    )


def _sensitivity(
    run: SimulatedRun, network: Network, target: str | os.PathLike[str] | None
) -> dict[str, Any]:
    """What the runtime depends on; the critical path is written into the trace."""
    from popmodel.sensitivity.critical_path import write_path
    from popmodel.sensitivity.runtime_sensitivity import critical_path, runtime_sensitivity
    from popmodel.simulator.replayer import Replayer

    found = runtime_sensitivity(run.program, network, run.source)
    if target is not None and run.source is not None:
        path = critical_path(run.program, network)
        write_path(path, run.program, run.source, Path(target), describe(network))
    once = Replayer(run.program).run
    return {"sensitivity": found, "notes": found.notes, "doubts": tuple(_doubts(run, once))}


def _replays(
    run: SimulatedRun,
    networks: Sequence[Network],
    against: Against | None,
    target: str | os.PathLike[str] | None,
    *,
    metrics: bool,
) -> dict[str, Any]:
    """The run in each scenario, and what they are compared with."""
    from popmodel.efficiency.observables import evaluate_replay, of_execution, unknown_families
    from popmodel.simulator.replayer import Replayer, replays_once
    from popmodel.simulator.trace_output import write_replay

    observed, measured = run.observe() if metrics else (None, {})
    unknown = {} if observed is None else unknown_families(observed)
    # Scenarios share their ideal network, which is the usual baseline, too.
    ideal = [network.ideal() for network in networks] if metrics else []
    slow = [] if run.measured is None else [_slow(run.program)]
    once = replays_once(Replayer(run.program), [*networks, *ideal, *slow])

    def scenario(network: Network) -> ReplayedScenario:
        try:
            execution = once(network)
            if observed is None:
                return ReplayedScenario(network, execution)
            replayed = of_execution(observed, execution, once(network.ideal()))
        except ReplayError as error:
            if len(networks) == 1:
                raise
            return ReplayedScenario(network, None, error)
        evaluations = evaluate_replay(replayed, unknown)
        values = {name: found.values for name, found in evaluations.items()}
        return ReplayedScenario(network, execution, metrics=values)

    runs = tuple(map(scenario, networks))
    if target is not None and run.source is not None:
        write_replay(run.source, run.program, networks[0], target)
    return {
        "doubts": tuple(_doubts(run, once)),
        "runs": runs,
        "against": _baseline(against, once, runs, run.measured),
        "measured_metrics": measured or None,
        "unknown_families": unknown if metrics else None,
    }


def _baseline(
    against: Against | None,
    once: Callable[[Network], Execution],
    runs: Sequence[ReplayedScenario],
    measured: float | None,
) -> tuple[Against, float | None]:
    """What runtimes are compared with: by default what a change of the network shows best in."""
    ideal = PRESETS["ideal"]
    if against is None:
        own = "measured" if runs[0].network == ideal and measured is not None else "ideal"
        against = "first" if len(runs) > 1 else own  # type: ignore[assignment]
    if against == "first":
        return "first", runs[0].runtime
    if against == "measured":
        return "measured", measured
    try:
        return "ideal", once(ideal).runtime
    except ReplayError:  # the change is not known then; the replays that were asked for are
        return "ideal", None


def _networks(
    program: Program,
    base: NetworkLike | Iterable[NetworkLike],
    changes: Sequence[dict[str, Any]],
    profiles: Sequence[Profile],
    of_machines: Sequence[dict[str, Any]],
) -> tuple[list[Network], list[str]]:
    """The networks of the scenarios, and the configurations that they were read from."""
    from popmodel.machines.profile_comparison import network_of
    from popmodel.network.dimemas_cfg import Machine
    from popmodel.network.scenarios import changed, refuse_idle_mapping, scenario_values

    bases = scenario_values("network", base) if changes else []
    found = [changed(one, change, program.processes) for one in bases for change in changes]
    if not any(isinstance(one, Machine) for one in bases):  # whose mapping is their own
        refuse_idle_mapping(found)
    for profile, name in zip(profiles, _names(profiles, found), strict=True):
        for change in of_machines:
            network = network_of(profile, _nodes(program, change))
            found.append(network.with_(name=name, **change))
    return found, [one.path for one in bases if isinstance(one, Machine)]


def _names(profiles: Sequence[Profile], networks: Sequence[Network]) -> list[str]:
    """A name for each machine: its own, or its file if others have that name, too."""
    taken = [*{network.name for network in networks}, *(one.name for one in profiles)]
    return [
        one.name if one.is_preset or taken.count(one.name) == 1 else one.path for one in profiles
    ]


def _nodes(program: Program, change: Mapping[str, Any]) -> NDArray[np.int32]:
    """Node of each process under a change."""
    mapping = change.get("mapping")
    if mapping is not None:
        nodes: NDArray[np.int32] = mapping.nodes_of(program.processes)
        return nodes
    return program.nodes[: program.processes]


def _target(
    target: str | os.PathLike[str], speeds: Mapping[str, float] | None, *, force: bool
) -> Path:
    """Where a trace is written; refused before any work what would be refused after it."""
    from popmodel.cli.trace import trace_file

    path = os.fspath(target)
    if speeds:
        raise UsageError(
            f"--save-trace {path}: the records of a region cannot be stretched",
            "leave out --region-speed",
        )
    return trace_file(path, force=force, option="--save-trace")


def _doubts(run: SimulatedRun, once: Callable[[Network], Execution]) -> Iterable[str]:
    """Whether the measured run took longer than even a slow network explains, as in `metrics`."""
    if run.measured is None or not run.program.operations:
        return
    from popmodel.efficiency.loss_causes import slow_network_doubt

    network = _slow(run.program)
    try:
        yield from slow_network_doubt(network, once(network).runtime, run.measured)
    except ReplayError:
        return


def _slow(program: Program) -> Network:
    """A network slower than those that programs run on."""
    from popmodel.efficiency.evidence import SLOW

    return SLOW[len(set(program.nodes.tolist())) <= 1]


def _lacking(
    program: Program, profiles: Sequence[Profile], changes: Iterable[Mapping[str, Any]]
) -> Iterable[str]:
    """What the replays assume of machines."""
    from popmodel.machines.profile_comparison import network_lacks

    nodes = [_nodes(program, change) for change in changes]
    return dict.fromkeys(
        text for profile in profiles for one in nodes for text in network_lacks(profile, one)
    )


def _speeds(speeds: Mapping[str, float]) -> list[str]:
    return [
        f"computing in {name} is taken as {speed:g} times as fast as in the run, on the ideal "
        "network, too"
        for name, speed in speeds.items()
    ]


def _limits(program: Program, networks: Sequence[Network]) -> list[str]:
    """What limits the numbers of replays of a program."""
    if not program.operations:
        return [NONE_MODELLED if program.unmodelled else NO_MPI]
    between = [one for one in networks if one.with_(links_within=0).contended]
    if between and all(len(set(program.on(one.mapping).nodes.tolist())) == 1 for one in between):
        return [ONE_NODE]
    return []


def _topologies(given: Any) -> list[str]:
    """Files that describe topologies."""
    from popmodel.api.inputs import several

    some = [] if given is None else several(given)
    return [os.fspath(one) for one in some if isinstance(one, str | os.PathLike)]


def _either(run: RunLike, procs: int | None) -> tuple[SignatureLike, None] | tuple[None, TraceLike]:
    """A signature or a trace: TOML is the first, and so is what has a number of processes."""
    from popmodel.traces import Trace
    from popmodel.traces.formats import FORMATS as TRACES

    if isinstance(run, Trace):
        return None, run
    if not isinstance(run, str | os.PathLike):
        return run, None
    path = os.fspath(run)  # a trace needs nothing of the model, which takes long
    traced = any(form.is_named(Path(path)) for form in TRACES)
    if path.endswith(".toml") or (procs is not None and not traced):
        return run, None
    return None, run


def _of_trace(
    trace: TraceLike,
    part: TracePart,
    speeds: Mapping[str, float] | None,
    application: int,
    flop_rate: float | None,
    of_signatures: Mapping[str, Any],
) -> SimulatedRun:
    """A traced run."""
    from popmodel.api.inputs import path_of, trace_of
    from popmodel.efficiency.measure import analyse, before_replay, runtime
    from popmodel.efficiency.observables import evaluate_replay, unknown_families
    from popmodel.sensitivity.regions import at_speeds
    from popmodel.simulator import from_trace
    from popmodel.structure.part_of_run import part_of_run
    from popmodel.traces.caveats import caveats
    from popmodel.traces.selection import focused

    path = path_of(trace)
    for name, given in of_signatures.items():
        if given:
            raise UsageError(
                f"{path}: {name} is for signatures; this is a trace, which is replayed as it is",
                f"leave out {name}, or name a signature (.toml)",
            )
    whole = trace_of(trace, application=application, flop_rate=flop_rate, rated=True)
    chosen = part_of_run(part, whole)
    source, focus = focused(whole, chosen)
    program = from_trace(source)
    if speeds:
        program = at_speeds(program, source, speeds)

    def observe() -> tuple[Observables, Efficiencies]:
        if not whole.timed:
            return before_replay(source), {}
        found = analyse(whole, part=chosen).observables
        measured = evaluate_replay(found, unknown_families(found))
        return found, {name: one.values for name, one in measured.items()}

    return SimulatedRun(
        "trace",
        path,
        (path,),
        program,
        source,
        focus,
        runtime(source) if source.timed else None,
        caveats(source, focus),
        observe,
    )


def _of_signature(
    application: SignatureLike,
    machine: Profile | None,
    procs: int | None,
    threads: int,
    settings: Mapping[str, float] | None,
    seed: int,
    of_traces: Mapping[str, Any],
) -> SimulatedRun:
    """A run that a signature describes, with every step."""
    from popmodel.api.inputs import numbers, profile_of, signature_of
    from popmodel.api.inputs import whole_number as checked_number
    from popmodel.model.full_program import whole
    from popmodel.traces.selection import TraceFocus

    signature, profile = signature_of(application), profile_of(machine)
    if procs is None:
        raise UsageError(f"{signature.path}: how many processes?", "--procs 4 (procs=4 in Python)")
    for name, value in of_traces.items():
        if value:
            raise UsageError(
                f"{signature.path}: {name}: a signature has no trace to take it from",
                "leave it out",
            )
    made = whole(
        signature,
        profile,
        checked_number("procs", procs),
        checked_number("threads", threads),
        numbers("settings", settings),
        seed,
    )
    end = round(float(made.program.compute().max(initial=0.0)))
    split = f"{made.placement.processes} x {made.placement.threads}"
    return SimulatedRun(
        "signature",
        signature.path,
        (signature.path, profile.path),
        made.program,
        None,
        TraceFocus(0, end, 0, 0, "every step of the signature"),
        None,
        (f"computation is that of {split} on {profile.name}, as predicted, not measured",),
        lambda: (made.observed, {}),
    )
