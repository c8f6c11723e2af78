"""A run in scenarios: replayed on other networks, nodes and CPUs, and compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from popmodel.base.errors import ReplayError, UsageError
from popmodel.base.values import dataclass
from popmodel.efficiency.evidence import SLOW
from popmodel.efficiency.loss_causes import slow_network_doubt
from popmodel.efficiency.measure import analyse, before_replay, runtime
from popmodel.efficiency.observables import (
    Observables,
    evaluate_replay,
    of_execution,
    unknown_families,
)
from popmodel.machines.profile_comparison import network_lacks, network_of
from popmodel.network.dimemas_cfg import Machine
from popmodel.network.network import PRESETS, Network
from popmodel.network.scenario_networks import (
    Change,
    changed,
    combinations,
    refuse_idle_mapping,
    scenario_values,
)
from popmodel.sensitivity.region_speeds import at_speeds
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.replayer import Replayer, replays_once
from popmodel.traces.caveats import caveats, is_contradiction
from popmodel.traces.selection import TraceFocus, TracePart, focused

if TYPE_CHECKING:
    from popmodel.machines.profile import Profile
    from popmodel.model.signature.application import Signature
    from popmodel.simulator import Execution, Program
    from popmodel.traces import Trace

Against = Literal["ideal", "first", "measured"]
Efficiencies: TypeAlias = Mapping[str, Mapping[str, float]]
"""Values by family and metric."""
Replay: TypeAlias = "Callable[[Network], Execution]"
OF_MACHINES = ("latency", "bandwidth", "eager_threshold", "send_overhead", "receive_overhead")
"""What the profile of a machine says of its network."""
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
class SimulatedRun:
    """The run that is replayed: a traced one, or one that a signature describes."""

    kind: str  # ``trace`` or ``signature``
    path: str  # Where it comes from
    files: tuple[str, ...]  # What was read
    program: Program  # What every process does, with other speeds of regions where some are given
    unchanged: Program  # The same without these
    source: Trace | None  # The analysed part of the trace
    window: TraceFocus  # What part that is
    measured: float | None  # Its measured runtime, s; None where it has no measured times
    caveats: tuple[str, ...]  # What limits its numbers
    observe: Callable[[], Observables]  # Gives what is known of it without its MPI


def traced_run(whole: Trace, part: TracePart, speeds: Mapping[str, float]) -> SimulatedRun:
    """A traced run, with regions of other speeds."""
    source, focus = focused(whole, part)
    unchanged = from_trace(source)
    program = at_speeds(unchanged, source, speeds) if speeds else unchanged

    def observe() -> Observables:
        return analyse(whole, part=part).observables if whole.timed else before_replay(source)

    measured = runtime(source) if source.timed else None
    told = caveats(source, focus)
    path = whole.path
    files = (path,)
    return SimulatedRun(
        "trace", path, files, program, unchanged, source, focus, measured, told, observe
    )


def described_run(
    signature: Signature,
    profile: Profile,
    processes: int,
    threads: int,
    settings: Mapping[str, float],
    seed: int,
) -> SimulatedRun:
    """A run that a signature describes, with every step; it computes as predicted on a machine."""
    from popmodel.model.predictor import Study

    made = Study(signature, profile, settings, 0, seed).whole(processes, threads)
    end = round(float(made.program.compute().max(initial=0.0)))
    split = f"{made.placement.processes} x {made.placement.threads}"
    return SimulatedRun(
        "signature",
        signature.path,
        (signature.path, profile.path),
        made.program,
        made.program,
        None,
        TraceFocus(0, end, 0, 0, "every step of the signature"),
        None,
        (f"computation is that of {split} on {profile.name}, as predicted, not measured",),
        lambda: made.observed,
    )


@dataclass(frozen=True)
class WantedNetworks:
    """The networks of some bases and machines, with every combination of some values.

    What the profile of a machine says of its network cannot be given for machines alone.
    """

    base: Any  # Networks, names or files of Dimemas; None for machines alone
    values: Mapping[str, Any]  # By parameter, as of `popmodel.network.scenario_networks`
    machines: tuple[Profile, ...]

    def __post_init__(self) -> None:
        for name in OF_MACHINES if self.base is None else ():
            if self.values[name] is not None:
                raise UsageError(
                    f"{name.replace('_', ' ')}: already set by the machine profile",
                    "leave it out, or name a network as well, such as ideal",
                )
        combinations(self.values)  # what is wrong with them is said before a trace is read

    @property
    def changes(self) -> list[Change]:
        """Combinations of the values that machines take."""
        own = {name: value for name, value in self.values.items() if name not in OF_MACHINES}
        return combinations(own)

    def between(self, program: Program) -> list[Network]:
        """The networks between the processes of a program."""
        bases = [] if self.base is None else scenario_values("network", self.base)
        changes = combinations(self.values) if bases else []
        found = [changed(one, change, program.processes) for one in bases for change in changes]
        if not any(isinstance(one, Machine) for one in bases):  # whose mapping is their own
            refuse_idle_mapping(found)
        taken = [*{one.name for one in found}, *(profile.name for profile in self.machines)]
        for profile in self.machines:
            known = profile.is_preset or taken.count(profile.name) == 1
            name = profile.name if known else profile.path
            for change in self.changes:
                nodes = program.on(change.get("mapping")).nodes[: program.processes]
                found.append(network_of(profile, nodes).with_(name=name, **change))
        if self.values["sharing"] is not None and not any(one.contended for one in found):
            raise UsageError(
                "sharing: no network has anything to share",
                "limit links, buses or links within nodes, or name a topology",
            )
        return found

    def lacks(self, program: Program) -> Iterable[str]:
        """What replays of a program assume of the machines."""
        return dict.fromkeys(
            text
            for profile in self.machines
            for change in self.changes
            for text in network_lacks(
                profile, program.on(change.get("mapping")).nodes[: program.processes]
            )
        )


@dataclass(frozen=True)
class ReplayedScenario:
    """A replay on one network."""

    network: Network
    execution: Execution | None  # What came out
    error: ReplayError | None = None  # What stopped it
    metrics: Efficiencies | None = None  # Efficiencies, if requested

    @property
    def runtime(self) -> float | None:
        """Seconds; None where the replay stopped."""
        return None if self.execution is None else self.execution.runtime

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


class ComparedScenarios(NamedTuple):
    """Scenarios, and what they are compared with."""

    runs: tuple[ReplayedScenario, ...]
    against: tuple[Against, float | None]  # The baseline and its runtime, s
    measured_metrics: Efficiencies | None  # Of the measured run, if requested
    unknown_families: Mapping[str, str] | None  # That replays do not give, with the reason
    doubts: tuple[str, ...]


def replay_scenarios(
    run: SimulatedRun, networks: Sequence[Network], against: Against | None, *, metrics: bool
) -> ComparedScenarios:
    """Replay a run on networks; raises `ReplayError` where the only replay stops."""
    observed = run.observe() if metrics else None
    unknown = None if observed is None else unknown_families(observed)
    # Scenarios share their ideal network, which is the usual baseline, too.
    ideal = [network.ideal() for network in networks] if metrics else []
    slow = [] if run.measured is None else [_slow(run.program)]
    once = replays_once(Replayer(run.program), [*networks, *ideal, *slow])

    def values(observables: Observables) -> Efficiencies:
        found = evaluate_replay(observables, unknown or ())
        return {name: evaluation.values for name, evaluation in found.items()}

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
        return ReplayedScenario(network, execution, metrics=values(replayed))

    runs = tuple(map(scenario, networks))
    return ComparedScenarios(
        runs,
        _baseline(against, once, runs, run.measured),
        None if observed is None or run.measured is None else values(observed),
        unknown,
        tuple(doubts(run, once)),
    )


def _baseline(
    against: Against | None,
    once: Replay,
    runs: Sequence[ReplayedScenario],
    measured: float | None,
) -> tuple[Against, float | None]:
    """What runtimes are compared with: by default what a change of the network shows best in."""
    ideal = PRESETS["ideal"]
    if against is None and len(runs) > 1:
        against = "first"
    elif against is None:
        is_ideal = runs[0].network == ideal
        against = "measured" if is_ideal and measured is not None else "ideal"
    if against == "first":
        return "first", runs[0].runtime
    if against == "measured":
        return "measured", measured
    try:
        return "ideal", once(ideal).runtime
    except ReplayError:  # the change is not known then; the replays that were asked for are
        return "ideal", None


def doubts(run: SimulatedRun, once: Replay) -> Iterator[str]:
    """Whether the measured run took longer than even a slow network explains, as in `metrics`."""
    if run.measured is None or not run.program.operations:
        return
    if any(map(is_contradiction, run.caveats)):  # which explains it
        return
    network = _slow(run.program)
    if run.unchanged is not run.program:
        once = Replayer(run.unchanged).run
    try:
        yield from slow_network_doubt(network, once(network).runtime, run.measured)
    except ReplayError:
        return


def _slow(program: Program) -> Network:
    """A network slower than those that programs run on."""
    return SLOW[len(set(program.nodes.tolist())) <= 1]


def network_limits(program: Program, networks: Sequence[Network]) -> list[str]:
    """What limits the numbers of replays of a program on networks."""
    if not program.operations:
        return [NONE_MODELLED if program.unmodelled else NO_MPI]
    between = [one for one in networks if one.with_(links_within=0).contended]
    if between and all(len(set(program.on(one.mapping).nodes.tolist())) == 1 for one in between):
        return [ONE_NODE]
    return []
