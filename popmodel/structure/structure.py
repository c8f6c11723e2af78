"""What is known of how a run is built."""

from __future__ import annotations

from typing import TYPE_CHECKING

from popmodel.values import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from popmodel.simulator.program import Program
    from popmodel.structure.events import ProgramEvents
    from popmodel.structure.nest import FoundLoop, LoopPlace, Nest

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


@dataclass(frozen=True)
class StructurePart:
    """A part of a run."""

    kind: str  # ``"initialisation"``, ``"iterations"`` or ``"finalisation"``
    # From the first sequence that is in it to the last that leaves it, ns.
    begin: int
    end: int
    iterations: int = 0  # How many the part holds; 0 but for the iterative part


@dataclass(frozen=True)
class StructureFocus:
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
    parts: tuple[
        StructurePart, ...
    ]  # Initialisation, iterations, finalisation; those that there are
    loop: (
        FoundLoop | None
    )  # The iterative part: the outermost loop that holds most of the elapsed time
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
