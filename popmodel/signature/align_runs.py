"""Runs of one program side by side: equal places, grids, and what each run did there."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

import numpy as np

from popmodel.errors import PopmodelError
from popmodel.fit.samples import Sample
from popmodel.model.run.grid import best_grid, divisors
from popmodel.patterns.table import table
from popmodel.signature.block_distribution import dealt
from popmodel.signature.collectives import met, sizes_at
from popmodel.signature.computing import Computing, timing
from popmodel.signature.imbalance import unequal
from popmodel.signature.loops import whole_iterations
from popmodel.signature.phase_times import instructions
from popmodel.signature.threads import team
from popmodel.simulator.program import Op
from popmodel.structure.find import find
from popmodel.structure.nest import Leaf
from popmodel.structure.same_program import difference
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from popmodel.signature.block_distribution import Dealt
    from popmodel.signature.outline import Outline, Team
    from popmodel.signature.scaling_lists import Grid
    from popmodel.structure.nest import Loop
    from popmodel.structure.structure import Structure
    from popmodel.trace import Trace


# Runs that one signature is made of are of one program, or refused.


_HINT = "give runs of one program, best of one build"
_IN_COMMON = 0.25
"""Share of the places of the larger program that the smaller one has, too, both with loops found.

Of runs of one program on 2 processes or more it was 0.6 and more in all traces tried, of runs of
different programs 0.2 and less, even where one has all calls of the other.
"""
_OF_THE_SMALLER = 0.5
"""The same of the smaller program, where it may do less: one process, or no loop found."""


def require_names(first: Trace, other: Trace) -> None:
    """Refuse a run of another program, by the names in its trace."""
    found = difference(first, other)
    if found is not None:
        raise PopmodelError(f"{_apart(first, other)}: {found}", _HINT)


def require_places(first: Trace, structure: Structure, other: Trace, found: Structure) -> None:
    """Refuse a run of another program, by the order of its calls and regions."""
    mine, theirs = keys(structure), keys(found)
    blocks = SequenceMatcher(None, mine, theirs, autojunk=False).get_matching_blocks()
    same, sizes = sum(block.size for block in blocks), (len(mine), len(theirs))
    comparable = all(
        one.loop is not None and one.program.processes > 1 for one in (structure, found)
    )
    enough = _IN_COMMON * max(sizes) if comparable else _OF_THE_SMALLER * min(sizes)
    if same < enough:
        raise PopmodelError(
            f"{_apart(first, other)}: only {same} of its {len(theirs)} calls and parallel regions "
            f"are, in their order, among the {len(mine)} there",
            _HINT,
        )


def _apart(first: Trace, other: Trace) -> str:
    return f"{other.path}: not the program of {first.path}"


# Messages of a run at the places of another one: from whom, to whom, how large.


@dataclass(frozen=True)
class Sent:
    """Messages."""

    place: NDArray[np.int64]  # int64[M]: Where each is sent
    # int64[M]: Ranks.
    sender: NDArray[np.int64]
    receiver: NDArray[np.int64]
    size: NDArray[np.int64]  # int64[M]: Bytes

    def at(self, places: Sequence[int]) -> Sent:
        """Return those that are sent at some places."""
        return self.chosen(np.isin(self.place, places))

    def chosen(self, rows: NDArray[np.bool_]) -> Sent:
        """Return some of them."""
        return Sent(self.place[rows], self.sender[rows], self.receiver[rows], self.size[rows])


def sent(structure: Structure, home: NDArray[np.int64] | None = None) -> Sent:
    """Return the messages of a run."""
    program, messages = structure.program, structure.program.messages
    operation = np.flatnonzero(np.isin(program.kind, (Op.SEND, Op.ISEND)))
    event = np.searchsorted(structure.events.first, operation, side="right") - 1
    place = structure.place[event].astype(np.int64)
    row = program.target[operation]
    return Sent(
        place if home is None else home[place],
        messages.sender[row].astype(np.int64),
        messages.receiver[row].astype(np.int64),
        messages.size[row].astype(np.int64),
    )


# The grid that a run has, where another run of the program has one: by where its messages go.


Axes = tuple[bool, ...]
"""Along which dimensions a message goes one step."""

_MOST = 0.5
"""Share of the bytes below which the messages of a run go to no neighbours of a grid."""


def extents_like(
    grid: Grid, sent: Sent, processes: int, kinds: Collection[Axes]
) -> tuple[int, ...] | None:
    """Return the extents at which the messages of a run go as those of another one do."""
    taken = best_grid(processes, grid.cells, grid.periodic)
    if not len(sent.size):
        return taken
    best, most = None, 0.0
    for dims in (taken, *_extents(processes, len(grid.dims))):
        going = along(dims, grid.periodic, sent)
        known = np.zeros(len(sent.size), dtype=bool)
        for kind in kinds:
            known |= (going == np.array(kind)).all(axis=1)
        moved = float((sent.size + 1)[known].sum())
        if moved > most * (1 + 1e-9):
            best, most = dims, moved
    return best if most > _MOST * float((sent.size + 1).sum()) else None


def along(dims: tuple[int, ...], periodic: tuple[bool, ...], sent: Sent) -> NDArray[np.int64]:
    """Return along which dimensions messages go: int64[M, dimensions]; -1 for more than a step."""
    found = np.zeros((len(sent.size), len(dims)), dtype=np.int64)
    stride = 1
    for axis in range(len(dims) - 1, -1, -1):
        extent = dims[axis]
        away = sent.receiver // stride % extent - sent.sender // stride % extent
        if periodic[axis]:
            away = (away + extent // 2) % extent - extent // 2
        found[:, axis] = np.where(np.abs(away) <= 1, np.abs(away), -1)
        stride *= extent
    return found


def _extents(processes: int, dimensions: int) -> Iterator[tuple[int, ...]]:
    if dimensions == 1:
        yield (processes,)
        return
    for first in divisors(processes):
        for rest in _extents(processes // first, dimensions - 1):
            yield first, *rest


# The same places in several runs of a program.
#
# Places are in the order of the program, so that those of two runs are laid beside each other as
# two
# versions of a text: the longest common parts belong together. What one run alone passes counts
# with
# what comes next, so that no time is lost.


_NS = 1e9
_NONE = -1


@dataclass(frozen=True)
class Totals:
    """Of the places of a run, and of the end behind them (the last entry)."""

    # float64[places + 1]: Seconds before each place, and in it, if it is a region; all processes
    # together.
    computing: NDArray[np.float64]
    inside: NDArray[np.float64]
    # float64[places + 1]: How often the busiest process passes it; 1 for the end.
    executions: NDArray[np.float64]
    # float64[places + 1]: Sent there, by all processes together.
    messages: NDArray[np.float64]
    bytes: NDArray[np.float64]

    def moved(self, home: NDArray[np.int64], places: int) -> Totals:
        """The same for the places of another run, by where each of these belongs there."""
        whole = np.append(home, places)
        summed = {
            name: np.bincount(whole, getattr(self, name), places + 1).astype(np.float64)
            for name in ("computing", "inside", "messages", "bytes")
        }
        executions = np.zeros(places + 1)
        np.maximum.at(executions, whole, self.executions)
        return Totals(**summed, executions=executions)


def totals(structure: Structure) -> Totals:
    """Sum up what happens at the places of a run."""
    program, events = structure.program, structure.events
    places = len(structure.places)
    times = timing(events)
    place = structure.place.astype(np.int64)
    sends = np.flatnonzero(np.isin(program.kind, (Op.SEND, Op.ISEND)))
    sent_at = place[np.searchsorted(events.first, sends, side="right") - 1]
    sizes = program.messages.size[program.target[sends]].astype(np.float64)
    executions = [event.shape[1] for event in table(structure).event]

    def by_place(where: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(where, values, minlength=places + 1).astype(np.float64)

    computing = by_place(place, times.before) / _NS
    computing[places] = times.after.sum() / _NS
    return Totals(
        computing,
        by_place(place, times.inside) / _NS,
        np.array([*executions, 1], dtype=np.float64),
        by_place(sent_at, np.ones(len(sends))),
        by_place(sent_at, sizes),
    )


def homes(structure: Structure, other: Structure) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Lay the places of another run beside those of the first."""
    mine, theirs = keys(structure), keys(other)
    found = np.full(len(theirs), _NONE, dtype=np.int64)
    matcher = SequenceMatcher(None, mine, theirs, autojunk=False)
    for a, b, size in matcher.get_matching_blocks():
        found[b : b + size] = np.arange(a, a + size)
    both = np.zeros(len(mine) + 1, dtype=bool)
    whole = (found >= 0) & _everywhere(other)
    both[found[whole]] = True
    both[:-1] &= _everywhere(structure)
    both[-1] = True
    behind = len(mine)
    for index in range(len(found) - 1, -1, -1):
        if found[index] == _NONE:
            found[index] = behind
        behind = int(found[index])
    return found, both


def _everywhere(structure: Structure) -> NDArray[np.bool_]:
    """Which places all processes pass: bool[places]."""
    passing = [(event >= 0).any(axis=1).sum() for event in table(structure).event]
    whole: NDArray[np.bool_] = np.array(passing, dtype=np.int64) == structure.program.sequences
    return whole


def keys(structure: Structure) -> list[tuple[str, str, bool, int]]:
    """What places of two runs are known by: name, where, whether a region, and loops around."""
    depth = np.zeros(len(structure.places), dtype=np.int64)

    def walk(nodes: Sequence[Loop | Leaf], level: int) -> None:
        for node in nodes:
            if isinstance(node, Leaf):
                depth[list(node.places)] = level
            else:
                walk(node.body, level + 1)

    walk(structure.nest, 0)
    return [
        (one.name, one.inside, one.is_region, int(depth[one.number])) for one in structure.places
    ]


# Runs laid beside the first, place by place.


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
