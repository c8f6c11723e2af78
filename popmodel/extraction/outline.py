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

    from popmodel.extraction.computing import Computing
    from popmodel.extraction.general import Grid

__all__ = ["Calls", "Meeting", "Node", "Outline", "Repeat", "Team", "Work", "walk"]


@dataclass(frozen=True)
class Repeat:
    """A loop.

    Attributes
    ----------
    name : str
        In the signature.
    count : int
        Iterations.
    body : tuple of Node
        What is repeated.
    """

    name: str
    count: int
    body: tuple[Node, ...]


@dataclass(frozen=True)
class Work:
    """Something computed.

    Attributes
    ----------
    name : str
        In the signature.
    point : int
        Which of the outline's points.
    """

    name: str
    point: int


@dataclass(frozen=True)
class Calls:
    """Point-to-point calls.

    Attributes
    ----------
    name : str
        In the signature.
    rows : tuple of dict
        As in a signature, but a row ``compute`` has the number of its ``point``.
    messages, bytes : float
        How many are sent by all processes in one execution, and of how many bytes together.
    exact : bool
        Whether every execution does exactly this.
    places : tuple of int
        Where.
    offsets : tuple of int
        By how much ranks of receivers are above those of senders, modulo P, most bytes first.
    moves : mapping of tuple of int to tuple of int, or None
        For each row with partners, by where it stands, the step in the grid to its partner; None
        where rows hold for the traced number of processes only.
    """

    name: str
    rows: tuple[dict[str, Any], ...]
    messages: float
    bytes: float
    exact: bool = True
    places: tuple[int, ...] = ()
    offsets: tuple[int, ...] = ()
    moves: Mapping[tuple[int, ...], tuple[int, ...]] | None = None


@dataclass(frozen=True)
class Meeting:
    """A collective.

    Attributes
    ----------
    name, op : str
        In the signature.
    bytes : float
        Of a process.
    comm : str
        ``world`` or the colour of the rank.
    root : int
        Rank in its communicator, or -1.
    place : int
        Where.
    """

    name: str
    op: str
    bytes: float
    comm: str
    root: int
    place: int = -1


Node: TypeAlias = "Repeat | Work | Calls | Meeting"


@dataclass(frozen=True)
class Team:
    """What the threads of a process do in a parallel region.

    Attributes
    ----------
    useful : float
        Time of the average thread in user code in one execution, s.
    imbalance : float
        By how much the busiest thread exceeds it, as a fraction.
    overhead : float
        The rest of the time of the master in the region, without its calls of MPI, s.
    synchronisation : float
        How much of the time that threads neither compute nor are in MPI they are in barriers,
        critical sections and locks, as a fraction.
    """

    useful: float
    imbalance: float
    overhead: float
    synchronisation: float


@dataclass(frozen=True)
class Outline:
    """The program of a run.

    Attributes
    ----------
    body : tuple of Node
        In order.
    points : tuple of Computing
        What was measured of each `Work` and each row that computes.
    labels : tuple of str
        What each of them is, in words.
    names : tuple of str
        What each of them is called in formulas.
    teams : tuple of Team or None
        For each of them, if it is a parallel region.
    notes : tuple of str
        What is not as it was traced.
    grid : Grid or None
        Of the processes, if lists of calls hold on one.
    """

    body: tuple[Node, ...]
    points: tuple[Computing, ...]
    labels: tuple[str, ...]
    names: tuple[str, ...]
    teams: tuple[Team | None, ...]
    notes: tuple[str, ...] = ()
    grid: Grid | None = None


def walk(body: tuple[Node, ...]) -> Iterator[Node]:
    """All nodes, loops before what is in them."""
    for node in body:
        yield node
        if isinstance(node, Repeat):
            yield from walk(node.body)
