"""What a run computes where, and why processes differ in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from popmodel.api.inputs import TraceLike, path_of, trace_of
from popmodel.api.phases_document import described
from popmodel.base.units import format_time, plural
from popmodel.base.values import dataclass
from popmodel.reports.phases import VIEWS
from popmodel.reports.result import OfTrace
from popmodel.structure.part_of_run import on_sequences, part_of_run, structure_of
from popmodel.structure.phases import Phases, phases
from popmodel.traces.caveats import caveats
from popmodel.traces.selection import Foa, TracePart, Window, focused

if TYPE_CHECKING:
    from popmodel.reports.views import Views
    from popmodel.structure.structure import Structure

_MOST = 5000
"""Phases from which on small ones are summed up."""


@dataclass(frozen=True)
class FoundPhases(OfTrace):
    """The phases of a run, as returned by `find_phases`."""

    trace: str  # Path of the trace
    structure: Structure  # Where the phases are
    found: Phases  # The bursts and parallel regions, by their place in the program
    document: dict[str, Any]  # Schema ``popmodel/phases/1``, without provenance

    def __repr__(self) -> str:
        computing = format_time(self.found.seconds, digits=3)
        return f"<Phases of {self.trace}: {plural(len(self.found), 'phase')}, {computing}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the document, schema ``popmodel/phases/1``, without provenance."""
        return self.document

    @property
    def views(self) -> Views:
        return VIEWS


def find_phases(
    trace: TraceLike,
    *,
    window: Window | None = None,
    region: str | None = None,
    from_start: bool = False,
    foa: Foa | None = None,
    application: int = 1,
    flop_rate: float | None = None,
) -> FoundPhases:
    """Find the phases of a run: its bursts of computing and parallel regions, by their place.

    Bursts are told apart by where they stand (between which calls, in which loop), not by what they
    are like. For each phase: how long and how often, how it differs between processes (always the
    same ones, or other ones each time), and where hardware counters exist whether instructions,
    IPC or frequency make the difference. Of a run with more than 5,000 phases, those below 0.1 % of
    all computing are summed up, bursts and regions apart.

    Parameters
    ----------
    trace : path or Trace
        The run.
    window, region, from_start, foa, application
        As for `popmodel.analyse`. Occurrences of a region are joined together, and phases are told
        apart in what comes of that.
    flop_rate : float, optional
        As for `popmodel.read`.

    Raises
    ------
    FileError
        If the trace cannot be read, or has no iterations where these are asked for.
    PartError
        If the trace has no such window or region.
    UsageError
        If options contradict each other.

    Examples
    --------
    >>> import popmodel
    >>> found = popmodel.find_phases("tests/data/ft.S.4.prv.gz")
    >>> longest = max(found.to_dict()["phases"], key=lambda phase: phase["time"])
    >>> longest["executions"]
    6
    """
    asked = TracePart.of(window, region, from_start, foa)
    given = trace_of(trace, application=application, flop_rate=flop_rate, rated=True)
    part, focus = focused(given, part_of_run(asked, given))
    structure, whole = structure_of(given if region is None else part)
    limits = on_sequences(asked, given) if region is None else None
    found = phases(structure, whole, part, limits, _MOST)
    told = caveats(part, focus) if part.timed else focus.caveats
    document = described(path_of(trace), structure, whole, found, part, focus, told)
    return FoundPhases(path_of(trace), structure, found, document)
