"""What a program does in order, as the interpreter notes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import sympy

from popmodel.source.formula_text import guess
from popmodel.source.intermediate_form import SourcePlace


class Access(NamedTuple):
    """An element of an array that an iteration reads or writes."""

    array: str  # Of which block of memory
    path: tuple[sympy.Expr | str, ...]  # Of the element, and fields on the way to it
    is_store: bool
    size: int  # Bytes
    place: SourcePlace
    depends: frozenset[sympy.Symbol] = frozenset()  # Loops whose turns decide which element it is
    record: int = 0  # Bytes of the object in an array that it is a field of


@dataclass
class Tally:
    """What one iteration of a loop does, loops inside left out."""

    flops: dict[str, float] = field(default_factory=dict)  # By operator, or function
    accesses: list[Access] = field(default_factory=list)

    @property
    def size(self) -> float:
        """How much there is to do, to compare two branches."""
        return sum(self.flops.values()) + len(self.accesses)


@dataclass
class Nest:
    """A loop that computes, with the loops inside of it."""

    variable: sympy.Symbol
    trip: sympy.Expr
    place: SourcePlace
    tally: Tally = field(default_factory=Tally)
    inner: list[Nest] = field(default_factory=list)


@dataclass
class Work:
    """Computing without messages: by one thread or, with a directive, by all."""

    nest: Nest
    directive: str  # Clauses included; empty where one thread does it
    function: str


@dataclass
class MessageCall:
    """A call of MPI."""

    name: str  # In lower case, without ``MPI_``
    place: SourcePlace
    communicator: str
    bytes: sympy.Expr | None = None  # What a process sends, or receives where it only receives
    partner: sympy.Expr | None = None  # Rank that is sent to, or received from
    source: sympy.Expr | None = None  # Of calls that do both
    root: sympy.Expr | None = None


@dataclass
class RepeatedEvents:
    """What is done several times."""

    count: sympy.Expr
    body: list[Event]
    place: SourcePlace
    name: str
    variable: sympy.Symbol | None = None


@dataclass
class Conditional:
    """What is done where a condition holds."""

    condition: sympy.Basic
    body: list[Event]
    place: SourcePlace


Event: TypeAlias = Work | MessageCall | RepeatedEvents | Conditional


def with_conditions(
    events: Sequence[Event],
    conditions: tuple[sympy.Basic, ...],
    chosen: Callable[[Sequence[Event]], Sequence[Event]],
) -> Iterator[tuple[Any, tuple[sympy.Basic, ...]]]:
    """Events with the conditions around them; of each body those that are chosen."""
    for event in chosen(events):
        if isinstance(event, Conditional):
            yield from with_conditions(event.body, (*conditions, event.condition), chosen)
        else:
            yield event, conditions


_MESSAGE = 1_000
"""Operations that a call of MPI counts as."""


def estimate(events: Iterable[Event]) -> float:
    """About how much there is to do, with a guess for each number that is not known."""
    total = 0.0
    for event in events:
        if isinstance(event, MessageCall):
            total += _MESSAGE + (0 if event.bytes is None else guess(event.bytes))
        elif isinstance(event, Conditional):
            total += estimate(event.body)
        elif isinstance(event, RepeatedEvents):
            total += guess(event.count) * estimate(event.body)
        else:
            total += _estimate(event.nest)
    return total


def _estimate(nest: Nest) -> float:
    return guess(nest.trip) * (nest.tally.size + 1 + sum(map(_estimate, nest.inner)))


def has_flops(nest: Nest) -> bool:
    return bool(nest.tally.flops) or any(map(has_flops, nest.inner))


def all_events(events: Iterable[Event]) -> Iterator[Event]:
    for event in events:
        yield event
        if isinstance(event, (Conditional, RepeatedEvents)):
            yield from all_events(event.body)


def formulas_of(event: Event) -> Iterator[sympy.Basic]:
    if isinstance(event, MessageCall) and event.bytes is not None:
        yield event.bytes
    if isinstance(event, Work):
        stack = [event.nest]
        while stack:
            nest = stack.pop()
            yield nest.trip
            stack += nest.inner
