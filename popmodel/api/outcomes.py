"""One replay after the other: what came out, its efficiencies, and what it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from popmodel.base.errors import ReplayError
from popmodel.base.units import format_time
from popmodel.base.values import dataclass
from popmodel.efficiency.family import FamilyEvaluation
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.observables import FAMILIES, Observables, of_execution
from popmodel.network.network import PRESETS, Network
from popmodel.simulator import Execution, Replayer

Against = Literal["ideal", "first", "measured"]
Replay: TypeAlias = Callable[[Network], Execution]
"""Replays the program on a network."""
BASELINES: Mapping[str, Against] = {"ideal": "ideal", "first": "first", "measured": "measured"}
IDEAL = PRESETS["ideal"]

Evaluations = Mapping[str, FamilyEvaluation]


@dataclass(frozen=True)
class Baseline:
    """The runtime that replays are compared with."""

    what: Against  # The replay on the ideal network, the first of the replays, or the measured run
    runtime: float | None  # Seconds; None where that replay stopped


@dataclass(frozen=True)
class VerbOutcome:
    """A replay on one network."""

    network: Network  # The network
    found: Execution | ReplayError  # What came out, or what stopped the replay
    evaluations: Evaluations  # Efficiencies by family, if requested

    def __repr__(self) -> str:
        return f"<Outcome on {self.network.name}: {self.told()}>"

    def told(self) -> str:
        """The runtime, or that there is none."""
        return "stopped" if isinstance(self.found, ReplayError) else format_time(self.found.runtime)

    def facts(self, against: Baseline) -> dict[str, Any]:
        """What a document has of the replay, compared with others."""
        head = {"network": self.network}
        if isinstance(self.found, ReplayError):
            nothing = dict.fromkeys(("runtime", "operations", "change"))
            return {**head, **nothing, "ranks": [], "error": self.found.message}
        times = zip(self.found.compute, self.found.end, strict=True)
        base = against.runtime
        return {
            **head,
            "runtime": self.found.runtime,
            "operations": self.found.operations,
            "change": self.found.runtime / base - 1 if base else None,
            "ranks": [{"compute": compute, "end": end} for compute, end in times],
            **({"metrics": values_of(self.evaluations)} if self.evaluations else {}),
        }


def replays_once(replayer: Replayer, networks: Iterable[Network]) -> Replay:
    """Replay a program on each network once: on many in few passes, on others when asked for."""
    given = list(dict.fromkeys(networks))
    try:
        found = dict(zip(given, replayer.scenarios(given), strict=True))
    except ReplayError:
        found = {}

    def once(network: Network) -> Execution:
        if network not in found:
            found[network] = replayer.run(network)
        return found[network]

    return once


def outcome(
    replay: Replay,
    network: Network,
    observed: Observables | None,
    unknown: Mapping[str, str],
    *,
    alone: bool,
) -> VerbOutcome:
    """Replay a program on a network."""
    try:
        found = replay(network)
        if observed is None:
            return VerbOutcome(network, found, {})
        run = of_execution(observed, found, replay(network.ideal()))
    except ReplayError as error:
        if alone:
            raise
        return VerbOutcome(network, error, {})
    return VerbOutcome(network, found, evaluate(run, unknown))


def evaluate(run: Observables, unknown: Mapping[str, str]) -> dict[str, FamilyEvaluation]:
    """Evaluate the families that replays give, but for those that are unknown here."""
    families, aggregates = load_families(), run.aggregates()
    return {
        name: families[name].evaluate(aggregates, run.absent)
        for name in FAMILIES
        if name not in unknown
    }


def values_of(evaluations: Evaluations) -> dict[str, Mapping[str, float]]:
    """Return values by family and metric id."""
    return {name: evaluation.values for name, evaluation in evaluations.items()}


def _usual(networks: Sequence[Network]) -> Against:
    """What a change of the network shows best against."""
    if len(networks) > 1:
        return "first"
    return "measured" if networks[0] == IDEAL else "ideal"


def baseline(
    against: Against | None, replay: Replay, outcomes: Sequence[VerbOutcome], measured: float | None
) -> Baseline:
    """Find what replays are compared with."""
    what = against or _usual([one.network for one in outcomes])
    if what == "measured" and measured is None:
        what = "ideal"
    if what == "measured":
        return Baseline(what, measured)
    if what == "ideal":
        try:
            return Baseline(what, replay(IDEAL).runtime)
        except ReplayError:  # the change is not known then; the replays that were asked for are
            return Baseline(what, None)
    first = outcomes[0].found
    return Baseline(what, None if isinstance(first, ReplayError) else first.runtime)
