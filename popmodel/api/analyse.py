"""One measured run: the times and counts from which all efficiencies follow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from popmodel.api.inputs import TraceLike, trace_of
from popmodel.api.networks import NetworkLike, network_of
from popmodel.cli.metrics import Metrics, of_run
from popmodel.efficiency import measure
from popmodel.reports.result import Result
from popmodel.structure.part_of_run import part_of_run
from popmodel.traces.selection import Foa, TracePart, Window

if TYPE_CHECKING:
    from popmodel.reports.views import Views


class AnalysedRun(measure.MeasuredRun, Result):
    """A measured run, with the attributes of `popmodel.efficiency.measure.Run`.

    Its document, table, screen and drawing are those of `popmodel.metrics` for it alone.
    """

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the result rests on."""
        return (self.trace,)

    def efficiencies(self) -> Metrics:
        """Return the efficiencies of the run, compared with no other."""
        return of_run(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the document of its efficiencies, schema ``popmodel/metrics/1``."""
        return self.efficiencies().to_dict()

    def shown_document(self) -> dict[str, Any]:
        found = self.efficiencies()
        return found.to_dict(found.shown)

    @property
    def views(self) -> Views:
        return self.efficiencies().views


def analyse(
    trace: TraceLike,
    network: NetworkLike = "ideal",
    *,
    window: Window | None = None,
    region: str | None = None,
    from_start: bool = False,
    foa: Foa | None = None,
    application: int = 1,
) -> AnalysedRun:
    """Measure a run, and replay it on an ideal network for its ideal runtime.

    Parameters
    ----------
    trace : path or Trace
        The run.
    network : str or Network, optional
        The network whose runtime counts as ideal.
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

    Returns
    -------
    Run
        ``observables`` in SI units. Quantities that cannot be measured are absent, with the reason;
        so is the ideal runtime of a run that cannot be replayed.

    Raises
    ------
    FileError
        If the trace cannot be read.
    TraceError
        If the trace has no time in states.
    PartError
        If the trace has no such window or region.
    UsageError
        If the network is unknown, or options contradict each other.

    Examples
    --------
    >>> import popmodel
    >>> run = popmodel.analyse("tests/data/bt-mz.S.2x2.prv.gz")
    >>> family = popmodel.load_families()["hybrid-additive"]
    >>> evaluation = family.evaluate(run.observables.aggregates(), run.observables.absent)
    >>> round(evaluation.values["parallel_efficiency"], 3)
    0.205
    """
    asked = TracePart.of(window, region, from_start, foa)
    on = network_of(network)
    whole = trace_of(trace, application=application)
    return AnalysedRun(**vars(measure.analyse(whole, on, part=part_of_run(asked, whole))))
