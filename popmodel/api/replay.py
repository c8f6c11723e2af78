"""Replays of a traced run on networks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from popmodel.api.inputs import ProfileLike, TraceLike, path_of, profile_of, several, trace_of
from popmodel.api.networks import NetworkLike, combinations, networks
from popmodel.api.outcomes import (
    BASELINES,
    Against,
    Baseline,
    Evaluations,
    Outcome,
    baseline,
    evaluate,
    outcome,
    plain,
)
from popmodel.api.results import Result
from popmodel.efficiency.measure import analyse, runtime
from popmodel.efficiency.replayed import unknown_families
from popmodel.errors import ReplayError, UsageError
from popmodel.machine.network import network_of
from popmodel.machine.profile import Profile
from popmodel.network.network import Network
from popmodel.report.replay import VIEWS
from popmodel.simulator import from_trace
from popmodel.trace.caveats import caveats
from popmodel.trace.focus import Focus, focused
from popmodel.trace.part import Part, Window
from popmodel.units import format_time, plural
from popmodel.values import cut, dataclass

if TYPE_CHECKING:
    from popmodel.report.render import Views

__all__ = ["Replays", "replay"]

SCHEMA = "popmodel/replay/1"
NO_MPI = (
    "no MPI to replay: no process sends, receives or takes part in a collective, so that a network "
    "changes nothing (popmodel metrics shows where such a run loses time)"
)


@dataclass(frozen=True)
class Replays(Result):
    """A run replayed on one or several networks; made by `replay`.

    Attributes
    ----------
    trace : str
        The trace.
    measured : float
        Its runtime as measured, s.
    nodes : int
        Nodes that its processes were on, as they are in the replays.
    outcomes : tuple of Outcome
        For each network what came out.
    against : Baseline
        What the replays are compared with.
    window : Focus
        What of the trace was replayed.
    caveats, notes : tuple of str
        What has to be known before the numbers are read; what was left out or treated as
        computation.
    evaluations : mapping of str to Evaluation
        Efficiencies of the measured run by family, where they were asked for.
    unknown : mapping of str to str
        Families whose efficiencies replays do not give, with the reason.
    inputs : tuple of str
        The files that were read.
    """

    trace: str
    measured: float
    nodes: int
    outcomes: tuple[Outcome, ...]
    against: Baseline
    window: Focus
    caveats: tuple[str, ...]
    notes: tuple[str, ...]
    evaluations: Evaluations
    unknown: Mapping[str, str]
    inputs: tuple[str, ...]

    def __repr__(self) -> str:
        shown = [f"{one.network.name} {one.told()}" for one in self.outcomes[:_SHOWN]]
        if len(self.outcomes) > _SHOWN:
            shown.append("...")
        return cut(
            f"<Replays of {self.trace}: measured {format_time(self.measured)}, "
            f"{plural(len(self.outcomes), 'replay')}: {', '.join(shown)}>"
        )

    @property
    def failures(self) -> Mapping[int, ReplayError]:
        """What stopped replays, by their number from 1."""
        return {
            number: outcome.found
            for number, outcome in enumerate(self.outcomes, start=1)
            if isinstance(outcome.found, ReplayError)
        }

    def to_dict(self) -> dict[str, Any]:
        """Give the document, schema ``popmodel/replay/1``, without provenance."""
        efficiencies = {}
        if self.evaluations:
            efficiencies = {
                "measured_metrics": plain(self.evaluations),
                "unknown_families": dict(self.unknown),
            }
        return {
            "schema": SCHEMA,
            "caveats": list(self.caveats),
            "window": self.window.to_dict(),
            "nodes": self.nodes,
            "measured_runtime": self.measured,
            "against": self.against.to_dict(),
            **efficiencies,
            "notes": list(self.notes),
            "runs": [
                {"trace": self.trace, **outcome.to_dict(self.against)} for outcome in self.outcomes
            ],
        }

    def _views(self) -> Views:
        return VIEWS

    def _drawn(self, document: dict[str, Any]) -> str:
        from popmodel.report.replay_plot import svg

        return svg(document)

    def _inputs(self) -> tuple[str, ...]:
        return self.inputs


_SHOWN = 8
_OF_NETWORKS = ("latency", "bandwidth", "eager_threshold")  # what the profile of a machine says


def replay(
    trace: TraceLike,
    network: NetworkLike | Iterable[NetworkLike] | None = None,
    *,
    machine: ProfileLike | Iterable[ProfileLike] | None = None,
    latency: float | str | Iterable[float | str] | None = None,
    bandwidth: float | str | Iterable[float | str] | None = None,
    eager_threshold: float | str | Iterable[float | str] | None = None,
    collectives: str | Iterable[str] | None = None,
    cpu_factor: float | Iterable[float] | None = None,
    against: Against | None = None,
    metrics: bool = False,
    window: Window | None = None,
    region: str | None = None,
    from_start: bool = False,
    application: int = 1,
    cache: bool = True,
) -> Replays:
    """Simulate a traced run on networks.

    Parameters
    ----------
    trace : path or Trace
        The trace.
    network : str or Network, or several of them, optional
        Networks to start from; default, unless there is a machine: the ideal one, without latency
        and with infinite bandwidth.
    machine : str or Profile, or several of them, optional
        Machine profiles (files, names of presets) whose networks to use, with the placement of
        processes on nodes as traced.
    latency : float or str, or several, optional
        Seconds, or a text such as ``"5us"``. Several values of any of these parameters give a
        replay for each combination.
    bandwidth : float or str, or several, optional
        B/s, or a text such as ``"1GB/s"``.
    eager_threshold : float or str, or several, optional
        Bytes from which a send waits for its receive, or a text such as ``"32KiB"``.
    collectives : str or several, optional
        ``dimemas``, ``synchronising``, ``rooted`` or ``algorithm``: who waits for whom.
    cpu_factor : float or several, optional
        Speed of the processors; 2 is twice as fast.
    against : {"ideal", "first", "measured"}, optional
        What runtimes are compared with: the replay on the ideal network, the first of the replays,
        or the measured run, which a replay simplifies. Default: the first of several replays, the
        ideal one for a single replay, and for that one itself the measured run.
    metrics : bool
        Whether to compute the efficiencies of each replay.
    window : str or pair, optional
        Analyse a window of time: ``"1.5s:3s"`` or ``(1.5, 3)`` in seconds from the start of the
        trace; an end that is left out, or None, is the trace's.
    region : str, optional
        Analyse the occurrences of a region, one after the other.
    from_start : bool
        Analyse the whole run. By default it is the part from the end of MPI_Init of the last rank
        to the start of MPI_Finalize of the first.
    application : int
        Which application of the trace, from 1.
    cache : bool
        Whether to keep the parsed trace, and to use one that is kept.

    Raises
    ------
    FileError
        If the trace or a profile cannot be read.
    ReplayError
        If the only replay stops, for instance in a deadlock. Of several replays each has its own.
    MissingQuantity
        If a machine's profile does not know the network between the processes.
    UsageError
        If there is no such network or baseline, or a value makes no sense.

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
    part = Part.of(window, region, from_start)
    path = path_of(trace)
    given = {
        "latency": latency,
        "bandwidth": bandwidth,
        "eager_threshold": eager_threshold,
        "collectives": collectives,
        "cpu_factor": cpu_factor,
    }
    profiles = [] if machine is None else [profile_of(one) for one in several(machine)]
    if against is not None and against not in BASELINES:
        raise UsageError(f"against: unknown value {against!r}", f"one of {', '.join(BASELINES)}")
    if network is None and profiles:
        for name in _OF_NETWORKS:
            if given[name] is not None:
                raise UsageError(
                    f"{name.replace('_', ' ')}: a machine profile says this itself",
                    "leave it out, or name the network that it changes, such as ideal",
                )
    asked = [] if network is None and profiles else networks(network or "ideal", **given)
    whole = trace_of(trace, application=application, cache=cache)
    source, focus = focused(whole, part)
    program = from_trace(source)
    changes = combinations(collectives=collectives, cpu_factor=cpu_factor)
    scenarios = [
        *asked,
        *(
            network_of(profile, program.nodes).with_(name=name, **change)
            for profile, name in zip(profiles, _names(profiles, asked), strict=True)
            for change in changes
        ),
    ]
    measured = runtime(source)
    observed, unknown, evaluations = None, {}, {}
    if metrics:
        observed = analyse(whole, part=part).observables
        unknown = unknown_families(observed)
        evaluations = evaluate(observed, unknown)
    outcomes = tuple(
        outcome(program, network, observed, unknown, alone=len(scenarios) == 1)
        for network in scenarios
    )
    return Replays(
        path,
        measured,
        len(set(program.nodes.tolist())),
        outcomes,
        baseline(against, program, outcomes, measured),
        focus,
        (*caveats(source, focus), *([] if program.operations else [NO_MPI])),
        program.notes,
        evaluations,
        unknown,
        (path, *(profile.path for profile in profiles)),
    )


def _names(profiles: Sequence[Profile], networks: Sequence[Network]) -> list[str]:
    """A name for each machine: its own, or its file if others have that name, too."""
    taken = [*{network.name for network in networks}, *(one.name for one in profiles)]
    return [
        one.name if one.is_preset or taken.count(one.name) == 1 else one.path for one in profiles
    ]
