"""What the communication of a run means: who talks to whom, how much, and in which patterns."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.api.inputs import TraceLike, path_of, trace_of
from popmodel.base.plain import document
from popmodel.base.units import count, format_size, plural
from popmodel.base.values import cut, dataclass
from popmodel.reports.communication import VIEWS
from popmodel.reports.result import OfTrace
from popmodel.simulator.program import unmodelled_calls
from popmodel.structure import traffic
from popmodel.structure.iterations import find as find_structure
from popmodel.structure.part_of_run import part_of_run
from popmodel.structure.patterns import FoundCommunication, find_communication
from popmodel.structure.structure import loops_around
from popmodel.traces.calls import calls_made
from popmodel.traces.caveats import devices
from popmodel.traces.selection import PROGRAM, Foa, TraceFocus, TracePart, Window, focused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from popmodel.reports.views import Views
    from popmodel.structure.patterns import Pattern
    from popmodel.structure.structure import FoundLoop, Structure

SCHEMA = "popmodel/communication/1"


@dataclass(frozen=True)
class Communication(OfTrace):
    """The communication of a run, as returned by `communication`."""

    trace: str  # Path of the trace
    structure: Structure  # Of what is analysed of it
    meaning: FoundCommunication  # Grids and patterns
    window: TraceFocus | None  # What is analysed; None: all that processes do
    caveats: tuple[str, ...]  # What has to be known before numbers are read
    nodes: int | None  # Nodes of the processes; None where the trace does not tell them
    # Time of all threads in the calls of each name, s; empty where no times were measured.
    times: Mapping[str, float]
    made: Mapping[str, int]  # Number of calls of each name

    def __repr__(self) -> str:
        program = self.structure.program
        rows = traffic.sent(program)
        shown = [
            plural(program.processes, "process", "processes"),
            plural(len(rows), "message"),
            format_size(float(program.messages.size[rows].sum())),
            f"grid {self.meaning.grid}" if self.meaning.grid else "no grid",
            plural(len(self.meaning.patterns), "pattern"),
        ]
        return cut(f"<Communication of {self.trace}: {', '.join(shown)}>")

    def to_dict(self) -> dict[str, Any]:
        """Return the document, schema ``popmodel/communication/1``, without provenance."""
        program = self.structure.program
        rows = traffic.sent(program)
        pairs = traffic.pairs(program, rows)
        together, shown = traffic.gathered(pairs, program.processes)
        within = pairs.within
        partners = np.bincount(pairs.sender[pairs.sender != pairs.receiver], minlength=1)
        partners = np.concatenate([partners, np.zeros(program.processes, np.int64)])
        neighbours = partners[: program.processes]
        loops = loops_around(self.structure.nest)
        return document(
            SCHEMA,
            trace=self.trace,
            processes=program.processes,
            nodes=self.nodes,
            analysed=self.window,
            caveats=self.caveats,
            messages=len(rows),
            bytes=program.messages.size[rows].sum(),
            within_nodes=None
            if self.nodes is None
            else {
                "messages": pairs.messages[within].sum(),
                "bytes": pairs.bytes[within].sum(),
            },
            neighbours={
                "min": neighbours.min(initial=program.processes),
                "mean": float(neighbours.mean()),
                "max": neighbours.max(initial=0),
            },
            per_iteration=_per_iteration(self.structure),
            sizes=[
                {"from": low, "below": high, "messages": number, "bytes": size}
                for low, high, number, size in traffic.by_size(program, rows)
            ],
            calls=[
                {
                    "name": use.name,
                    "calls": use.calls,
                    "bytes": use.bytes,
                    "time": self.times.get(use.name),
                    "collective": use.collective,
                }
                for use in traffic.uses(program, self.made)
            ],
            ranks_together=together,
            pairs={
                "from": shown.sender,
                "to": shown.receiver,
                "messages": shown.messages,
                "bytes": shown.bytes,
                "within_node": shown.within,
            },
            grids=[
                {"dims": grid.dims, "periodic": grid.periodic, "share": grid.confidence}
                for grid in self.meaning.grids
            ],
            grid_note=self.meaning.why or None,
            patterns=[_described(self.structure, loops, one) for one in self.meaning.patterns],
            notes=[*program.notes, *self.structure.notes],
        )

    @property
    def views(self) -> Views:
        return VIEWS


def communication(
    trace: TraceLike,
    *,
    window: Window | None = None,
    region: str | None = None,
    from_start: bool = False,
    foa: Foa | None = None,
    application: int = 1,
    flop_rate: float | None = None,
) -> Communication:
    """Find out who talks to whom, how much, and which patterns that makes.

    Messages are added up by pair and by size, calls by name. The places of the program whose
    messages belong together are read as patterns on a Cartesian grid of the ranks: halos, shifts
    and pipelines; else as butterflies, transposes, rings, exchanges of all pairs or with a root. A
    pattern counts as exact if generating it gives the same messages at every execution. Collectives
    have their sizes and communicators, as a formula of the rank where there is one.

    Parameters
    ----------
    trace : path or Trace
        The run.
    window, region, from_start, foa, application
        As for `popmodel.analyse`; without any of them all that processes do counts.
    flop_rate : float, optional
        As for `popmodel.read`.

    Raises
    ------
    FileError
        If the trace cannot be read, or has no iterations where these are asked for.
    PartError
        If the trace has no such window or region.
    ReplayError
        If its messages or collectives cannot be matched.
    UsageError
        If options contradict each other.

    Examples
    --------
    >>> import popmodel
    >>> popmodel.communication("tests/data/comd.4.prv.gz").to_dict()["grids"][0]["dims"]
    [2, 2]
    """
    asked = TracePart.of(window, region, from_start, foa)
    read = trace_of(trace, application=application, flop_rate=flop_rate)
    wanted = part_of_run(asked, read)
    part, focus = (read, None) if wanted == PROGRAM else focused(read, wanted)
    structure = find_structure(part)
    told = (*devices(read), *(() if focus is None else focus.caveats))
    program = structure.program
    nodes = len(np.unique(program.nodes[: program.processes])) if read.nodes else None
    return Communication(
        path_of(trace),
        structure,
        find_communication(structure),
        focus,
        (*unmodelled_calls(program.unmodelled), *told),
        nodes,
        traffic.times(part),
        calls_made(part),
    )


def _per_iteration(structure: Structure) -> dict[str, float] | None:
    """What is sent in an iteration on average; None where nothing repeats."""
    found = traffic.sent_in_iterations(structure)
    if found is None:
        return None
    iterations, messages, size = found
    return {
        "iterations": iterations,
        "messages": messages / iterations,
        "bytes": size / iterations,
    }


def _described(
    structure: Structure, loops: Sequence[tuple[FoundLoop, ...]], pattern: Pattern
) -> dict[str, Any]:
    """A pattern, and where it stands: calls, loops around it, and the region or call site."""
    places = [structure.places[place] for place in pattern.places]
    inside = list(dict.fromkeys(place.inside for place in places if place.inside))
    return {
        "kind": pattern.kind,
        "places": [place.number for place in places],
        "calls": _in_words([place.name for place in places]),
        "inside": inside,
        "loops": [loop.count for loop in loops[pattern.places[0]]],
        "executions": pattern.executions,
        "messages": pattern.messages,
        "bytes": pattern.bytes,
        "exact": pattern.exact,
        "why": pattern.why or None,
        "facts": pattern.facts,
    }


def _in_words(names: Sequence[str]) -> str:
    """Calls in order, equal ones that follow each other once."""
    runs = [(name, len(list(same))) for name, same in groupby(names)]
    return ", ".join(name if number == 1 else f"{count(number)} {name}" for name, number in runs)
