"""The loop nest of a program: loops around places, common to all sequences."""

from __future__ import annotations

from collections.abc import Iterator

from popmodel.values import dataclass


@dataclass(frozen=True)
class LoopPlace:
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

    count: float  # How often, on average over its executions
    # How often at each execution (all enclosing loops flattened); equal unless it drifts, 0 where
    # the loop was left out. Where sequences differ, the largest of them.
    counts: tuple[int, ...]
    body: tuple[FoundLoop | Leaf, ...]


Nest = tuple[FoundLoop | Leaf, ...]


def leaves(nest: Nest) -> Iterator[Leaf]:
    """All leaves, depth first."""
    for each in nest:
        if isinstance(each, Leaf):
            yield each
        else:
            yield from leaves(each.body)


def loops(nest: Nest) -> Iterator[FoundLoop]:
    """All loops, outer ones before those inside."""
    for each in nest:
        if isinstance(each, FoundLoop):
            yield each
            yield from loops(each.body)
