"""What is known of how a run is built: a nest of loops around places, its parts and iterations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.base.values import dataclass
from popmodel.simulator.program import Op

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator.program import Program
    from popmodel.structure.program_events import ProgramEvents

ASKED = "as asked for"
"""Why the focus is what it is, where a user has chosen it."""
LIKELY = 0.5
"""Confidence below which iterations are doubtful."""
_CERTAINTY = (
    (0.8, "sure"),
    (LIKELY, "likely"),
    (0.2, "doubtful"),
    (0.0, "hardly more than a guess"),
)


def certainty(confidence: float) -> str:
    """A confidence with what it means in words."""
    words = next(words for least, words in _CERTAINTY if confidence >= least)
    return f"{confidence:.2f}, {words}"


class LoopPlace(NamedTuple):
    """A place of the program, the same on all sequences that pass it."""

    number: int  # Its index in `Structure.places`, in the order of the program
    name: str  # ``MPI_Send``, or the name of a parallel region
    leaf: int  # The leaf that holds it, counted depth first
    is_region: bool  # Whether it is a parallel region
    inside: str  # User region or call site, where known


@dataclass(frozen=True)
class Leaf:
    """Places that follow one another, repeated by no inner loop."""

    places: tuple[int, ...]  # Numbers of the places, in order


@dataclass(frozen=True)
class FoundLoop:
    """A body that is repeated."""

    # How often at each execution (all enclosing loops flattened); equal unless it drifts, 0 where
    # the loop was left out. Where sequences differ, the largest of them.
    counts: tuple[int, ...]
    body: tuple[FoundLoop | Leaf, ...]

    @cached_property
    def count(self) -> float:
        """How often, on average over its executions."""
        return float(np.mean(self.counts))

    @cached_property
    def first(self) -> NDArray[np.int64]:
        """The first iteration of each execution, and behind them their number: int64[n + 1]."""
        return np.concatenate([[0], np.cumsum(self.counts, dtype=np.int64)])


Nest = tuple[FoundLoop | Leaf, ...]


def leaves(nest: Nest) -> Iterator[Leaf]:
    """All leaves, depth first."""
    for node in nest:
        if isinstance(node, Leaf):
            yield node
        else:
            yield from leaves(node.body)


def grouped(body: Iterable[int | FoundLoop]) -> Nest:
    """The nodes of a body of loops and places: those that follow one another are a leaf."""
    nest: list[FoundLoop | Leaf] = []
    places: list[int] = []
    for node in body:
        if isinstance(node, FoundLoop):
            nest += [Leaf(tuple(places)), node] if places else [node]
            places = []
        else:
            places.append(node)
    return (*nest, Leaf(tuple(places))) if places else tuple(nest)


def loops_around(nest: Nest) -> list[tuple[FoundLoop, ...]]:
    """The loops around each place, the outermost first."""
    around: dict[int, tuple[FoundLoop, ...]] = {}

    def walk(nodes: Nest, path: tuple[FoundLoop, ...]) -> None:
        for node in nodes:
            if isinstance(node, Leaf):
                around.update(dict.fromkeys(node.places, path))
            else:
                walk(node.body, (*path, node))

    walk(nest, ())
    return [around[place] for place in range(len(around))]


class StructurePart(NamedTuple):
    """A part of a run."""

    kind: str  # ``"initialisation"``, ``"iterations"`` or ``"finalisation"``
    # From the first sequence that is in it to the last that leaves it, ns.
    begin: int
    end: int
    iterations: int = 0  # How many the part holds; 0 but for the iterative part


class StructureFocus(NamedTuple):
    """A few representative iterations, or what else of the run is worth a look."""

    # What all sequences share of it, ns.
    begin: int
    end: int
    # Iterations, from 0, both included; ``last`` is below ``first`` where there are none.
    first: int
    last: int
    why: str  # Why these, in a sentence


@dataclass(frozen=True, eq=False)
class Structure:
    """The structure of a run."""

    program: Program
    events: ProgramEvents
    nest: Nest  # Common to all sequences
    places: tuple[LoopPlace, ...]
    place: NDArray[np.int32]  # int32[E]: Of each event
    # int32[E]: How many times its place was passed before, all enclosing loops flattened: the same
    # number for all sequences at the same iteration, whether each has an event there or not.
    execution: NDArray[np.int32]
    # Initialisation, iterations, finalisation; those that there are
    parts: tuple[StructurePart, ...]
    # The iterative part: the outermost loop that holds most of the elapsed time
    loop: FoundLoop | None
    # int64[n + 1, S]: When each iteration begins on each sequence, and when the last ends, ns.
    iterations: NDArray[np.int64]
    # int64[n]: Kind of each iteration where steps alternate; 0 is the most frequent one.
    kinds: NDArray[np.int64]
    period: float | None  # Median duration of an iteration, s
    # Share of the time that the iterative part explains, times how regular it is, 0 to 1; less
    # where a loop inside takes nearly all its time.
    confidence: float
    focus: StructureFocus
    notes: tuple[str, ...]  # What could not be told, a sentence each

    @property
    def rows(self) -> list[NDArray[np.int64]]:
        """The events at each place, in order."""
        return events_at(self.place, len(self.places))


def events_at(place: NDArray[np.int32], places: int) -> list[NDArray[np.int64]]:
    """The rows of events at each of so many places, in order."""
    order = np.argsort(place, kind="stable")
    bounds = np.searchsorted(place[order], np.arange(1, places))
    return np.split(order, bounds) if places else []


def with_common_places(structure: Structure) -> Structure:
    """Return a structure in which members of a collective pass the same place, where they can.

    A root that calls MPI_Bcast in one line and the others that call it in another one pass two
    places of the program, but it is one collective. They can where these places are in one leaf,
    and the order of all events of a process stays.
    """
    program, events = structure.program, structure.events
    arrives = np.flatnonzero(np.isin(program.kind, (Op.COLLECTIVE, Op.ARRIVE)))
    if not len(arrives):
        return structure
    event = events.of_operation[arrives]
    place = structure.place[event].astype(np.int64)
    leaf = np.array([where.leaf for where in structure.places], dtype=np.int64)
    goal = np.full(len(program.collectives), len(leaf), dtype=np.int64)
    np.minimum.at(goal, program.target[arrives], place)
    wanted = goal[program.target[arrives]]
    same = (wanted != place) & (leaf[wanted] == leaf[place])
    moved = structure.place.copy()
    for number in np.unique(place[same]).tolist():
        mine = place == number
        goals = np.unique(wanted[mine])
        if len(goals) == 1 and same[mine].all():
            moved[event[mine]] = goals[0]
    sequence = events.sequence
    together = (
        (sequence[1:] == sequence[:-1])
        & (leaf[moved[1:]] == leaf[moved[:-1]])
        & (structure.execution[1:] == structure.execution[:-1])
    )
    in_order = (moved[1:] > moved[:-1])[together].all()
    return replace(structure, place=moved) if in_order else structure
