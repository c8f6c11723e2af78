"""What is known of how a run is built."""

from __future__ import annotations

from typing import TYPE_CHECKING

from popmodel.values import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from popmodel.simulator.program import Program
    from popmodel.structure.events import Events
    from popmodel.structure.nest import Loop, Nest, Place

__all__ = ["LIKELY", "Focus", "Part", "Structure", "certainty"]

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
class Part:
    """A part of a run.

    Attributes
    ----------
    kind : str
        ``"initialisation"``, ``"iterations"`` or ``"finalisation"``.
    begin, end : int
        From the first sequence that is in it to the last that leaves it, ns.
    iterations : int
        How many the part holds; 0 but for the iterative part.
    """

    kind: str
    begin: int
    end: int
    iterations: int = 0


@dataclass(frozen=True)
class Focus:
    """A few representative iterations, or what else of the run is worth a look.

    Attributes
    ----------
    begin, end : int
        What all sequences share of it, ns.
    first, last : int
        Iterations, from 0, both included; ``last`` is below ``first`` where there are none.
    why : str
        Why these, in a sentence.
    """

    begin: int
    end: int
    first: int
    last: int
    why: str


@dataclass(frozen=True, eq=False)
class Structure:
    """The structure of a run.

    Attributes
    ----------
    program : Program
    events : Events
    nest : tuple of Loop or Leaf
        Common to all sequences.
    places : tuple of Place
    place : int32[E]
        Of each event.
    execution : int32[E]
        How many times its place was passed before, all enclosing loops flattened: the same number
        for all sequences at the same iteration, whether each has an event there or not.
    parts : tuple of Part
        Initialisation, iterations, finalisation; those that there are.
    loop : Loop or None
        The iterative part: the outermost loop that holds most of the elapsed time.
    iterations : int64[n + 1, S]
        When each iteration begins on each sequence, and when the last ends, ns.
    kinds : int64[n]
        Kind of each iteration where steps alternate; 0 is the most frequent one.
    period : float or None
        Median duration of an iteration, s.
    confidence : float
        Share of the time that the iterative part explains, times how regular it is: 0 to 1.
    focus : Focus
    notes : tuple of str
        What could not be told, a sentence each.
    """

    program: Program
    events: Events
    nest: Nest
    places: tuple[Place, ...]
    place: NDArray[np.int32]
    execution: NDArray[np.int32]
    parts: tuple[Part, ...]
    loop: Loop | None
    iterations: NDArray[np.int64]
    kinds: NDArray[np.int64]
    period: float | None
    confidence: float
    focus: Focus
    notes: tuple[str, ...]
