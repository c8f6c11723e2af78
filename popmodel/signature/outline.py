"""The program of a run in outline: what repeats, what is computed, who exchanges what.

It says the same as the items of a signature, but refers to what was measured where these have
values: runs of several sizes are laid beside each other as outlines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    from popmodel.signature.computing import Computing
    from popmodel.signature.scaling_lists import ScalingGrid


@dataclass(frozen=True)
class OutlineRepeat:
    """A loop."""

    name: str  # In the signature
    count: int  # Iterations
    body: tuple[Node, ...]  # What is repeated
    every: str = ""  # Turns of the loop around it for one execution, as a formula; empty for each


@dataclass(frozen=True)
class OutlineWork:
    """Something computed."""

    name: str  # In the signature
    point: int  # Which of the outline's points
    every: str = ""  # As of `OutlineRepeat`


@dataclass(frozen=True)
class OutlineCalls:
    """Point-to-point calls."""

    name: str  # In the signature
    # As in a signature, but a row ``compute`` has the number of its ``point``.
    rows: tuple[dict[str, Any], ...]
    # How many are sent by all processes in one execution, and of how many bytes together.
    messages: float
    bytes: float
    sent: NDArray[np.int64]  # Which messages of the program, in all executions
    times: int  # Executions in the signature
    exact: bool = True  # Whether most executions do exactly this; else a summary of them
    places: tuple[int, ...] = ()  # Where
    every: str = ""  # As of `OutlineRepeat`
    # By how much ranks of receivers are above those of senders, modulo P, most bytes first.
    offsets: tuple[int, ...] = ()
    # For each row with partners, by where it stands, the step in the grid to its partner; None
    # where rows hold for the traced number of processes only.
    moves: Mapping[tuple[int, ...], tuple[int, ...]] | None = None


@dataclass(frozen=True)
class OutlineMeeting:
    """A collective."""

    # In the signature.
    name: str
    op: str
    bytes: float  # Of a process
    comm: str  # ``world`` or the colour of the rank
    root: int  # Rank in its communicator, or -1
    times: int = 1  # Executions in the signature
    place: int = -1  # Where
    every: str = ""  # As of `OutlineRepeat`


Node: TypeAlias = "OutlineRepeat | OutlineWork | OutlineCalls | OutlineMeeting"


@dataclass(frozen=True)
class OutlineTeam:
    """What the threads of a process do in a parallel region."""

    useful: float  # Time of the average thread in user code in one execution, s
    imbalance: float  # By how much the busiest thread exceeds it, as a fraction
    overhead: float  # The rest of the time of the master in the region, without its calls of MPI, s
    # How much of the time that threads neither compute nor are in MPI they are in barriers,
    # critical sections and locks, as a fraction.
    synchronisation: float


@dataclass(frozen=True)
class Outline:
    """The program of a run."""

    body: tuple[Node, ...]  # In order
    points: tuple[
        Computing, ...
    ]  # What was measured of each `OutlineWork` and each row that computes
    labels: tuple[str, ...]  # What each of them is, in words
    names: tuple[str, ...]  # What each of them is called in formulas
    teams: tuple[OutlineTeam | None, ...]  # For each of them, if it is a parallel region
    notes: tuple[str, ...] = ()  # What is not as it was traced
    grid: ScalingGrid | None = None  # Of the processes, if lists of calls hold on one
    summed: float = 0.0  # Share of the time in summaries of what is small


def walk(body: tuple[Node, ...]) -> Iterator[Node]:
    """All nodes, loops before what is in them."""
    for node in body:
        yield node
        if isinstance(node, OutlineRepeat):
            yield from walk(node.body)
