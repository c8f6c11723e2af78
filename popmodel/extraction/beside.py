"""Runs laid beside the first, place by place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.extraction.aligned import homes, totals
from popmodel.extraction.computing import Computing
from popmodel.extraction.growing import unequal
from popmodel.extraction.instructions import instructions
from popmodel.extraction.largest import dealt
from popmodel.extraction.meeting_places import met
from popmodel.extraction.meetings import sizes_at
from popmodel.extraction.one_program import require_places
from popmodel.extraction.sent import Sent, sent
from popmodel.extraction.teams import team
from popmodel.extraction.whole_iterations import whole_iterations
from popmodel.fitting.samples import Sample
from popmodel.structure.find import find
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from popmodel.extraction.aligned import Totals
    from popmodel.extraction.largest import Dealt
    from popmodel.extraction.outline import Outline, Team
    from popmodel.structure.structure import Structure
    from popmodel.trace import Trace

_NS = 1e9


@dataclass(frozen=True)
class Counted:
    """Instructions of all processes."""

    # float64[places + 1]: Before each place, and in it, if it is a region; the last entry is the
    # end.
    before: NDArray[np.float64]
    inside: NDArray[np.float64]


@dataclass(frozen=True)
class Beside:
    """A run laid beside the first."""

    # P and T.
    processes: int
    threads: int
    parameters: Mapping[str, float]  # Of the problem
    totals: Totals  # Of the places of the first run
    both: NDArray[np.bool_]  # bool[places + 1]: Which places it has, too
    # By point that is a parallel region of the first run, what threads do in it.
    teams: Mapping[int, Team]
    sent: Sent  # Its messages at the places of the first run
    # Bytes of a process in its collectives, by place of the first run and kind.
    met: Mapping[tuple[int, str], float]
    unequal: Sample | None  # How much its processes differ for good
    dealt: Dealt | None  # How its work is dealt out to them
    active: int  # Threads on the node that has the most of them
    cores: int  # CPUs of the largest node, as the header of the trace states; 0 where it does not
    # Instructions at the places of the first run; None where nobody counted them.
    counted: Counted | None

    def useful(self, point: int) -> float:
        """Useful time of the average thread in an execution of a parallel region, s."""
        return self.teams[point].useful if point in self.teams else 0.0

    def sample(
        self, value: float, error: float | None = None, more: Mapping[str, float] | None = None
    ) -> Sample:
        """A value of this run, by its parameters and more of them."""
        parameters = {**self.parameters, **(more or {})}
        return Sample(self.processes, self.threads, value, parameters, error)

    def often(self, places: Sequence[int]) -> float:
        """How often a body is executed: as its places are that the run has, in their middle."""
        executions = self.totals.executions[list(places)]
        there = executions[executions > 0]
        return float(np.median(there)) if len(there) else 1.0


def beside(
    trace: Trace, parameters: Mapping[str, float], first: Trace, base: Structure, outline: Outline
) -> Beside:
    """Lay a run beside the first."""
    structure, threads = whole_iterations(met(find(trace))), int(max(trace.threads))
    require_places(first, base, trace, structure)
    home, both = homes(base, structure)
    places = len(base.places)
    teams = {}
    for point, (computing, one) in enumerate(zip(outline.points, outline.teams, strict=True)):
        regions = None if one is None else _executions(structure, home == computing.place)
        if regions is not None:
            teams[point] = team(trace, structure, regions)
    given = {name: float(value) for name, value in parameters.items()}
    return Beside(
        trace.processes,
        threads,
        given,
        totals(structure).moved(home, places),
        both,
        teams,
        sent(structure, home),
        sizes_at(structure, home),
        unequal(structure, threads, given),
        dealt(structure, given),
        int(np.bincount(trace.node_of_location).max(initial=1)),
        max(trace.nodes, default=0),
        _counted(trace, structure, np.append(home, places)),
    )


def _executions(structure: Structure, mine: NDArray[np.bool_]) -> Computing | None:
    """The executions of regions of some places; None if there are none."""
    events = np.flatnonzero(mine[structure.place] & structure.events.is_region)
    if not len(events):
        return None
    sequence = structure.events.sequence[events].astype(np.int64)
    often = np.bincount(sequence, minlength=structure.program.sequences)
    number = np.arange(len(events)) - np.repeat(np.cumsum(often) - often, often)
    event = np.full((len(often), int(often.max())), -1, dtype=np.int64)
    event[sequence, number] = events
    length = (structure.events.end - structure.events.begin)[event] / _NS
    return Computing(
        int(structure.place[events[0]]), True, event, np.where(event >= 0, length, np.nan)
    )


def _counted(trace: Trace, structure: Structure, home: NDArray[np.int64]) -> Counted | None:
    counts = instructions(trace, structure)
    if counts is None:
        return None
    places, where = len(home) - 1, home[structure.place]
    before = np.bincount(where, counts.before, home[-1] + 1)
    before[home[places]] += counts.after.sum()
    inside = np.bincount(where, counts.inside, home[-1] + 1)
    return Counted(before.astype(np.float64), inside.astype(np.float64))
