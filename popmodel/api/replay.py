"""Replays of a traced run on networks."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from popmodel.api.inputs import ProfileLike, profile_of, several
from popmodel.api.networks import (
    NetworkLike,
    OnMachine,
    combinations,
    networks,
    nodes_of,
    refuse_idle_mapping,
    settled,
)
from popmodel.api.outcomes import (
    BASELINES,
    Against,
    Baseline,
    Evaluations,
    VerbOutcome,
    baseline,
    outcome,
    replays_once,
    values_of,
)
from popmodel.api.replay_input import RunLike, either, of_signature, of_trace
from popmodel.api.shared import Counts, TopologyLike
from popmodel.api.written import check_writable
from popmodel.base.errors import ReplayError, UsageError
from popmodel.base.plain import document
from popmodel.base.units import format_time, plural
from popmodel.base.values import cut, dataclass
from popmodel.machines.profile import Profile
from popmodel.machines.profile_comparison import network_lacks, network_of
from popmodel.network.network import Network
from popmodel.reports.networks import differences
from popmodel.reports.replay import VIEWS
from popmodel.reports.result import Result
from popmodel.simulator import Replayer
from popmodel.simulator.program import unmodelled_calls
from popmodel.traces.selection import Foa, TraceFocus, TracePart, Window

if TYPE_CHECKING:
    from popmodel.reports.views import Record, Views
    from popmodel.simulator import Program

SCHEMA = "popmodel/replay/1"
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


@dataclass(frozen=True)
class Replays(Result):
    """A run replayed on one or several networks, as returned by `replay`."""

    trace: str  # The trace, or the signature
    measured: float | None  # Its measured runtime, s; None where the trace has no measured times
    nodes: int  # Nodes of the traced processes, which the replays keep
    outcomes: tuple[VerbOutcome, ...]  # The result on each network
    against: Baseline  # The baseline of the comparison
    window: TraceFocus  # The part of the trace that was replayed
    # What limits the numbers; what was omitted or treated as computation.
    caveats: tuple[str, ...]
    notes: tuple[str, ...]
    evaluations: Evaluations  # Efficiencies of the measured run by family, if requested
    unknown: Mapping[str, str]  # Families whose efficiencies replays do not give, with the reason
    files: tuple[str, ...]  # The files that were read
    written: str | None = None  # The trace that the replay was written to
    kind: str = "trace"  # What was replayed: ``trace`` or ``signature``

    def __repr__(self) -> str:
        networks = {"runs": [{"network": one.network.to_dict()} for one in self.outcomes]}
        shown = [
            f"{differences(networks, number) or one.network.name}: {one.told()}"
            for number, one in enumerate(self.outcomes[:_SHOWN], start=1)
        ]
        if len(self.outcomes) > _SHOWN:
            shown.append("...")
        measured = "" if self.measured is None else f"measured {format_time(self.measured)}, "
        return cut(
            f"<Replays of {self.trace}: {measured}"
            f"{plural(len(self.outcomes), 'replay')}: {'; '.join(shown)}>"
        )

    @property
    def failures(self) -> Mapping[int, ReplayError]:
        """Errors that stopped replays, by number from 1."""
        return {
            number: outcome.found
            for number, outcome in enumerate(self.outcomes, start=1)
            if isinstance(outcome.found, ReplayError)
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the document, schema ``popmodel/replay/1``, without provenance."""
        efficiencies: dict[str, Any] = {}
        if self.evaluations:
            efficiencies = {
                "measured_metrics": values_of(self.evaluations),
                "unknown_families": self.unknown,
            }
        return document(
            SCHEMA,
            kind=self.kind,
            caveats=self.caveats,
            window=self.window,
            nodes=self.nodes,
            measured_runtime=self.measured,
            against=self.against,
            **efficiencies,
            **({} if self.written is None else {"written": self.written}),
            notes=self.notes,
            runs=[
                {"trace": self.trace, **outcome.facts(self.against)} for outcome in self.outcomes
            ],
        )

    @property
    def views(self) -> Views:
        return VIEWS

    def _records(self) -> list[Record]:
        """The records, in which no limit, for which documents have null, is infinity."""
        return [
            {**one, **{name: math.inf for name in _LIMITS if one.get(name, 0) is None}}
            for one in super()._records()
        ]


_SHOWN = 8
_LIMITS = (
    "network_bandwidth",
    "network_eager_threshold",
    "network_send_is_detached_thresh",
)
_OF_NETWORKS = (
    "latency",
    "bandwidth",
    "eager_threshold",
    "send_is_detached_thresh",
    "send_overhead",
    "receive_overhead",
)  # what the profile of a machine says


def replay(
    trace: RunLike,
    network: NetworkLike | Iterable[NetworkLike] | None = None,
    *,
    machine: ProfileLike | Iterable[ProfileLike] | None = None,
    latency: float | str | Iterable[float | str] | None = None,
    bandwidth: float | str | Iterable[float | str] | None = None,
    eager_threshold: float | str | Iterable[float | str] | None = None,
    send_is_detached_thresh: float | str | Iterable[float | str] | None = None,
    send_overhead: float | str | Iterable[float | str] | None = None,
    receive_overhead: float | str | Iterable[float | str] | None = None,
    collectives: str | Iterable[str] | None = None,
    collective_cost: str | Iterable[str] | None = None,
    algorithm: str | Iterable[str] | None = None,
    mapping: str | Iterable[str] | None = None,
    cpu_factor: float | str | Iterable[float | str] | None = None,
    rank_speed: str | Iterable[str] | None = None,
    region_speed: Mapping[str, float] | None = None,
    links: Counts | None = None,
    buses: Counts | None = None,
    links_within: Counts | None = None,
    sharing: str | Iterable[str] | None = None,
    topology: TopologyLike | Iterable[TopologyLike] | None = None,
    against: Against | None = None,
    metrics: bool = False,
    output: str | os.PathLike[str] | None = None,
    window: Window | None = None,
    region: str | None = None,
    from_start: bool = False,
    foa: Foa | None = None,
    application: int = 1,
    flop_rate: float | None = None,
    procs: int | None = None,
    threads: int = 1,
    settings: Mapping[str, float] | None = None,
    seed: int = 0,
) -> Replays:
    """Simulate a run on networks: one that was traced, or one that a signature describes.

    Parameters
    ----------
    trace : path, Trace or Signature
        The trace, or a signature: a file (``.toml``), a loaded one, or, with `procs`, the name of
        a bundled one. A signature computes what `popmodel.predict` says of the first machine, or
        else of the default one.
    network : str or Network, or several of them, optional
        Base networks: names, files of Dimemas (``.cfg``, with its machine and mapping), or loaded;
        default, unless `machine` is given: the ideal one, with no latency and
        infinite bandwidth.
    machine : str or Profile, or several of them, optional
        Machine profiles (files, names of presets) whose networks to use, with the placement of
        processes on nodes as traced.
    latency : float or str, or several, optional
        Seconds, or text such as ``"5us"``, or a range: ``"0.1us:100us:log13"`` has 13 values with
        equal ratios, ``"0:4us:lin5"`` 5 with equal steps. Several values of any of these
        parameters give one replay per combination.
    bandwidth : float or str, or several, optional
        B/s, or text such as ``"1GB/s"``.
    eager_threshold : float or str, or several, optional
        Smallest message whose blocking send waits for its receive: bytes, or text such as
        ``"32KiB"``.
    send_is_detached_thresh : float or str, or several, optional
        Of the network ``smpi``, as SMPI's option: smallest message whose sender waits for the
        receive, of those whose transfer does.
    send_overhead, receive_overhead : float or str, or several, optional
        CPU time to send and to receive a message, beside the latency: seconds, or text.
    collectives : str or several, optional
        Which ranks wait for which: ``dimemas``, ``synchronising``, ``rooted`` or ``algorithm``.
    collective_cost : str or several, optional
        How often a collective pays its fan-in and fan-out: ``constant``, ``linear`` or
        ``logarithmic``, or a file of Dimemas with factors and sizes by operation.
    algorithm : str or several, optional
        How collectives are carried out as messages, ``"allreduce=ring"`` or by size
        ``"allreduce=recursive_doubling:8KiB,ring"``; several of one operation give several
        replays. Implies the rule ``algorithm`` for collectives.
    mapping : str or several, optional
        On which nodes ranks run: ``"traced"``, ``"block:4"`` (4 consecutive ranks on each node),
        ``"cyclic:4"`` (dealt out in turn to nodes of 4), or a file with the node of one rank per
        line. Matters where messages cost less inside a node, as with `machine`.
    cpu_factor : float or several, optional
        CPU speed relative to the traced run; 2 is twice as fast.
    rank_speed : str or several, optional
        CPU speeds of single ranks relative to the traced run, ``"0=2,4-7=0.5"``; one replay for
        each text.
    region_speed : mapping of str to float, optional
        CPU speeds in regions on all ranks, relative to the traced run, in all replays; the names
        are those of `popmodel.sensitivity`.
    links : int or str, or several, optional
        Links of each node, in and out, that its messages to and from other nodes share; ``"2:1"``
        are two out and one in, ``"1:0"`` one that carries messages in or out (half duplex); 0 are
        as many as needed. What messages share makes the replay time-ordered.
    buses : int or several, optional
        Messages between nodes that are under way at the same time at most; 0: any number.
    links_within : int or several, optional
        Links, each way, of each rank that its messages inside its node share.
    sharing : str or several, optional
        ``fifo``: links serve one message after the other, as in Dimemas. ``fair``: messages that
        use a link at the same time share its bandwidth.
    topology : path, FatTree or Torus, or several, optional
        A network of switches, or a TOML file that describes it, whose links messages share fairly.
    against : {"ideal", "first", "measured"}, optional
        The baseline: the replay on the ideal network, the first replay, or the measured run.
        Default: the first of several replays; for a single replay the ideal network, or the
        measured run if it is on the ideal network itself.
    metrics : bool
        Whether to compute the efficiencies of each replay.
    output : path, optional
        A Paraver trace (``.prv`` or ``.prv.gz``) to write the replayed run to, of a single replay.
    window : str or pair, optional
        Analyse a window of time: ``"1.5s:3s"`` or ``(1.5, 3)`` in seconds from the start of the
        trace; an omitted end, or None, means that of the trace.
    region : str, optional
        Analyse all occurrences of a region, joined together.
    from_start : bool
        Analyse the whole run. Default: from the end of MPI_Init on the last rank to the start of
        MPI_Finalize on the first.
    foa : str, optional
        Focus of analysis: ``"auto"`` for a few representative iterations, ``"iterations=10:20"``,
        or times as ``"0.8s:1.2s"``.
    application : int
        Number of the application in the trace, from 1.
    flop_rate : float, optional
        Flop per second of one process; needed for traces of SimGrid SMPI, which give computing in
        flop.
    procs, threads : int, optional
        Of a signature: processes, and threads of each.
    settings : mapping of str to float, optional
        Of a signature: values instead of its parameters and constants.
    seed : int
        Of a signature: decides which processes are slow, and when, where that is left to chance.

    Raises
    ------
    FileError
        If the trace or a profile cannot be read.
    ReplayError
        If the only replay stops, for instance in a deadlock. Of several replays, each keeps its own
        error.
    MissingQuantity
        If a machine profile lacks the network between the processes.
    UsageError
        If a network or the baseline is unknown, a value is invalid, or several replays are to be
        written as one trace.

    Examples
    --------
    >>> import popmodel
    >>> found = popmodel.replay("tests/data/cg.S.2.prv.gz", latency=["1us", "20us"])
    >>> fast, slow = (outcome.found.runtime for outcome in found.outcomes)
    >>> fast < slow
    True
    >>> found.to_dataframe()["network_latency"].unique().tolist()
    [1e-06, 2e-05]
    """
    asked_part = TracePart.of(window, region, from_start, foa)
    given = {
        "latency": latency,
        "bandwidth": bandwidth,
        "eager_threshold": eager_threshold,
        "send_is_detached_thresh": send_is_detached_thresh,
        "send_overhead": send_overhead,
        "receive_overhead": receive_overhead,
        "cpu_factor": cpu_factor,
    }
    chosen: dict[str, Any] = {
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
    profiles = [] if machine is None else [profile_of(one) for one in several(machine)]
    if against is not None and against not in BASELINES:
        raise UsageError(f"against: unknown value {against!r}", f"one of {', '.join(BASELINES)}")
    if network is None and profiles:
        for name in _OF_NETWORKS:
            if given[name] is not None:
                raise UsageError(
                    f"{name.replace('_', ' ')}: already set by the machine profile",
                    "leave it out, or name a network as well, such as ideal",
                )
    asked = [] if network is None and profiles else networks(network or "ideal", **given, **chosen)
    refuse_idle_mapping(asked)
    if region_speed and output is not None:
        raise UsageError(
            f"{os.fspath(output)}: the records of a region cannot be stretched",
            "leave out the speeds of regions, or name another format",
        )
    signature, traced = either(trace, procs, threads, settings)
    if signature is not None:
        of_traces = {
            "window": window,
            "region": region,
            "from start": from_start,
            "focus of analysis": foa,
            "flop rate": flop_rate,
            "speeds of regions": region_speed,
            "output as a trace": output,
        }
        on = profiles[0] if profiles else None
        run = of_signature(signature, on, procs, threads, settings, seed, of_traces)
    else:
        assert traced is not None
        run = of_trace(
            traced,
            asked_part,
            region_speed,
            application=application,
            flop_rate=flop_rate,
        )
    program = run.program
    if against == "measured" and run.measured is None:
        raise UsageError(
            f"{run.path}: no measured times to compare with", "against: ideal or first"
        )
    changes = combinations(cpu_factor=cpu_factor, **chosen)
    known = settled(asked, program.processes)
    scenarios = [
        *known,
        *(
            network_of(profile, nodes_of(program, change)).with_(name=name, **change)
            for profile, name in zip(profiles, _names(profiles, known), strict=True)
            for change in changes
        ),
    ]
    if sharing is not None and not any(one.contended for one in scenarios):
        raise UsageError(
            "sharing: no network has anything to share",
            "limit links, buses or links within nodes, or name a topology",
        )
    if output is not None:
        check_writable(output, len(scenarios))
    observed, unknown, evaluations = run.observe() if metrics else (None, {}, {})
    # Scenarios share their ideal network, which is the usual baseline, too.
    ideal = [network.ideal() for network in scenarios] if metrics else []
    once = replays_once(Replayer(program), [*scenarios, *ideal])
    outcomes = tuple(
        outcome(once, network, observed, unknown, alone=len(scenarios) == 1)
        for network in scenarios
    )
    if output is not None and run.write and not isinstance(outcomes[0].found, ReplayError):
        run.write(scenarios[0], output)
    return Replays(
        run.path,
        run.measured,
        len(set(program.nodes.tolist())),
        outcomes,
        baseline(against, once, outcomes, run.measured),
        run.focus,
        (
            *_lacking(program, profiles, changes),
            *unmodelled_calls(program.unmodelled),
            *run.caveats,
            *_caveats(program, scenarios),
        ),
        (*_told_speeds(region_speed or {}), *program.notes),
        evaluations,
        unknown,
        (
            *run.files,
            *(profile.path for profile in profiles),
            *_files(topology),
            *dict.fromkeys(one.machine.path for one in asked if isinstance(one, OnMachine)),
        ),
        None if output is None else os.fspath(output),
        run.kind,
    )


def _lacking(
    program: Program, profiles: Sequence[Profile], changes: Iterable[Mapping[str, Any]]
) -> Iterable[str]:
    """What the replays assume of machines."""
    nodes = [nodes_of(program, change) for change in changes]
    return dict.fromkeys(
        text for profile in profiles for one in nodes for text in network_lacks(profile, one)
    )


def _told_speeds(speeds: Mapping[str, float]) -> list[str]:
    """What replays take regions for."""
    return [
        f"computing in {name} is taken as {speed:g} times as fast as traced, in the replays on the "
        "ideal network, too"
        for name, speed in speeds.items()
    ]


def without_mpi(program: Program) -> list[str]:
    """Say that a program has nothing that depends on a network, and whether the run has not."""
    if program.operations:
        return []
    return [NONE_MODELLED if program.unmodelled else NO_MPI]


def _caveats(program: Program, networks: Sequence[Network]) -> list[str]:
    """What limits the numbers of replays of a program."""
    if not program.operations:
        return without_mpi(program)
    between = [one for one in networks if one.contended and not _only_within(one)]
    if between and all(len(set(program.on(one.mapping).nodes.tolist())) == 1 for one in between):
        return [ONE_NODE]
    return []


def _only_within(network: Network) -> bool:
    """Whether messages share links inside nodes only."""
    return not network.with_(links_within=0).contended


def _files(topology: TopologyLike | Iterable[TopologyLike] | None) -> list[str]:
    """Files that describe topologies."""
    given = [] if topology is None else several(topology)
    return [os.fspath(one) for one in given if isinstance(one, str | os.PathLike)]


def _names(profiles: Sequence[Profile], networks: Sequence[Network]) -> list[str]:
    """A name for each machine: its own, or its file if others have that name, too."""
    taken = [*{network.name for network in networks}, *(one.name for one in profiles)]
    return [
        one.name if one.is_preset or taken.count(one.name) == 1 else one.path for one in profiles
    ]
