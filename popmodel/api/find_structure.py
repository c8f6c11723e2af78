"""How a run is built: its iterations, its loops, and the part that is worth a look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from popmodel.api.inputs import TraceLike, path_of, trace_of
from popmodel.api.structure_document import described
from popmodel.base.units import format_time, plural
from popmodel.base.values import dataclass
from popmodel.reports.result import OfTrace
from popmodel.reports.structure import VIEWS
from popmodel.structure.part_of_run import part_of_run, structure_of
from popmodel.structure.structure import Structure, StructureFocus
from popmodel.traces.caveats import crowding, describe_losses, devices, losses
from popmodel.traces.selection import PROGRAM, Foa, TracePart

if TYPE_CHECKING:
    from popmodel.reports.views import Views
    from popmodel.traces import Trace


@dataclass(frozen=True)
class FoundStructure(OfTrace):
    """The structure of a run, as returned by `find_structure`."""

    trace: str  # Path of the trace
    found: Structure  # Loops, places, parts, iterations and focus
    document: dict[str, Any]  # Schema ``popmodel/structure/1``, without provenance

    def __repr__(self) -> str:
        iterations = self.document["iterations"]
        if iterations is None:
            return f"<Structure of {self.trace}: no iterations>"
        number = plural(len(iterations["begins"]) - 1, "iteration")
        period = format_time(self.document["period"], digits=3)
        return f"<Structure of {self.trace}: {number} of {period}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the document, schema ``popmodel/structure/1``, without provenance."""
        return self.document

    @property
    def views(self) -> Views:
        return VIEWS


def find_structure(
    trace: TraceLike,
    *,
    foa: Foa | None = None,
    application: int = 1,
    flop_rate: float | None = None,
) -> FoundStructure:
    """Find the structure of a run: initialisation, iterations, finalisation, and the loops in them.

    Iterations are found from the sequence of MPI calls and parallel regions, which repeats; the
    focus of analysis is a few of them that are like the others.

    Parameters
    ----------
    trace : path or Trace
        The run.
    foa : str, optional
        Show another focus than the one that is found: ``"iterations=10:20"``, or times as
        ``"0.8s:1.2s"``.
    application
        As for `popmodel.analyse`.
    flop_rate : float, optional
        As for `popmodel.read`.

    Raises
    ------
    FileError
        If the trace cannot be read, or has no iterations where these are asked for.
    PartError
        If the run has not that many.

    Examples
    --------
    >>> import popmodel
    >>> found = popmodel.find_structure("tests/data/ft.S.4.prv.gz")
    >>> [(part["kind"], part["iterations"]) for part in found.to_dict()["parts"]]
    [('initialisation', 0), ('iterations', 6), ('finalisation', 0)]
    """
    asked = TracePart.of(foa=foa)
    given = trace_of(trace, application=application, flop_rate=flop_rate, rated=True)
    structure, whole = structure_of(given)
    lost = losses(whole)
    caveats = [*devices(whole), *crowding(whole), *([describe_losses(lost)] if lost else [])]
    document = described(path_of(trace), structure, whole, _focus(asked, structure, whole), caveats)
    return FoundStructure(path_of(trace), structure, document)


def _focus(asked: TracePart, structure: Structure, trace: Trace) -> StructureFocus:
    """The focus that is asked for, else the one that was found."""
    if asked == PROGRAM or asked.auto:
        return structure.focus
    part = part_of_run(asked, trace)
    begin = trace.begin if part.begin is None else part.begin
    end = trace.end if part.end is None else part.end
    if asked.iterations is None:
        return StructureFocus(begin, end, 0, -1, "as asked for")
    first, last = asked.iterations
    last = len(structure.iterations) - 1 if last is None else last
    return StructureFocus(begin, end, first - 1, last - 1, "as asked for")
