"""Replays of a traced run on networks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from popmodel.api.inputs import TraceLike, path_of, trace_of
from popmodel.api.networks import NetworkLike, networks
from popmodel.api.results import Result
from popmodel.efficiency.measure import runtime
from popmodel.errors import ReplayError
from popmodel.network.network import Network
from popmodel.report.replay import VIEWS, document
from popmodel.simulator import Execution, from_trace
from popmodel.simulator import replay as carry_out
from popmodel.trace.caveats import caveats
from popmodel.trace.focus import Focus, focused
from popmodel.units import format_time, plural
from popmodel.values import cut, dataclass

if TYPE_CHECKING:
    from popmodel.report.render import Views

__all__ = ["Replays", "replay"]


@dataclass(frozen=True)
class Replays(Result):
    """A run replayed on one or several networks; made by `replay`.

    Attributes
    ----------
    trace : str
        The trace.
    measured : float
        Its runtime as measured, s.
    outcomes : tuple of (Network, Execution or ReplayError)
        For each network what came out, or what stopped the replay.
    window : Focus
        What of the trace was replayed.
    caveats, notes : tuple of str
        What has to be known before the numbers are read; what was left out or taken as local.
    """

    trace: str
    measured: float
    outcomes: tuple[tuple[Network, Execution | ReplayError], ...]
    window: Focus
    caveats: tuple[str, ...]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        shown = [
            f"{network.name} stopped"
            if isinstance(outcome, ReplayError)
            else format_time(outcome.runtime)
            for network, outcome in self.outcomes
        ]
        if len(shown) > _SHOWN:
            shown[_SHOWN:] = ["..."]
        return cut(
            f"<Replays of {self.trace}: measured {format_time(self.measured)}, "
            f"{plural(len(self.outcomes), 'replay')}: {', '.join(shown)}>"
        )

    @property
    def failures(self) -> Mapping[int, ReplayError]:
        """What stopped replays, by their number from 1."""
        return {
            number: outcome
            for number, (_, outcome) in enumerate(self.outcomes, start=1)
            if isinstance(outcome, ReplayError)
        }

    def to_dict(self) -> dict[str, Any]:
        """Give the document, schema ``popmodel/replay/1``, without provenance."""
        replays = [
            (network, outcome.message if isinstance(outcome, ReplayError) else outcome)
            for network, outcome in self.outcomes
        ]
        return document(self.trace, self.measured, self.notes, replays, self.window, self.caveats)

    def _views(self) -> Views:
        return VIEWS

    def _drawn(self, document: dict[str, Any]) -> str:
        from popmodel.report.replay_plot import svg

        return svg(document)

    def _inputs(self) -> tuple[str, ...]:
        return (self.trace,)


_SHOWN = 8


def replay(
    trace: TraceLike,
    network: NetworkLike | Iterable[NetworkLike] = "ideal",
    *,
    latency: float | str | Iterable[float | str] | None = None,
    bandwidth: float | str | Iterable[float | str] | None = None,
    eager_threshold: float | str | Iterable[float | str] | None = None,
    collectives: str | Iterable[str] | None = None,
    cpu_factor: float | Iterable[float] | None = None,
    from_start: bool = False,
    application: int = 1,
    cache: bool = True,
) -> Replays:
    """Simulate a traced run on networks.

    Parameters
    ----------
    trace : path or Trace
        The trace.
    network : str or Network, or several of them
        Networks to start from; default: the ideal one, without latency and with infinite bandwidth.
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
    from_start : bool
        Take the whole run, not from the end of MPI_Init to MPI_Finalize.
    application : int
        Which application of the trace, from 1.
    cache : bool
        Whether to keep the parsed trace, and to use one that is kept.

    Raises
    ------
    FileError
        If the trace cannot be read.
    ReplayError
        If the only replay stops, for instance in a deadlock. Of several replays each has its own.
    UsageError
        If there is no such network, or a value makes no sense.

    Examples
    --------
    >>> import popmodel
    >>> found = popmodel.replay("tests/data/cg.S.2.prv.gz", latency=["1us", "20us"])
    >>> fast, slow = (execution.runtime for _, execution in found.outcomes)
    >>> fast < slow
    True
    >>> found.to_dataframe()["network_latency"].unique().tolist()
    [1e-06, 2e-05]
    """
    path = path_of(trace)
    asked = networks(
        network,
        latency=latency,
        bandwidth=bandwidth,
        eager_threshold=eager_threshold,
        collectives=collectives,
        cpu_factor=cpu_factor,
    )
    source, window = focused(
        trace_of(trace, application=application, cache=cache), from_start=from_start
    )
    program = from_trace(source)
    outcomes: list[tuple[Network, Execution | ReplayError]] = []
    for each in asked:
        try:
            outcomes.append((each, carry_out(program, each)))
        except ReplayError as error:
            if len(asked) == 1:
                raise
            outcomes.append((each, error))
    said = tuple(caveats(source, window))
    return Replays(path, runtime(source), tuple(outcomes), window, said, program.notes)
