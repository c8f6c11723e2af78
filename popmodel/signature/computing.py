"""What is computed at each point of a program, and the program with other times there."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from popmodel.simulator import Program
    from popmodel.structure.message_rows import PlaceTable
    from popmodel.structure.program_events import ProgramEvents

_NS = 1e9


@dataclass(frozen=True)
class Computing:
    """What is computed at one point of the program: before a place, or in a parallel region."""

    # The place: what stands before it is meant, or itself if it is a region; -1 for what comes
    # behind the last event of each sequence.
    place: int
    in_region: bool  # Whether the region itself is meant
    # int64[S, n]: Its event on each sequence at each execution; -1 where there is none.
    event: NDArray[np.int64]
    seconds: NDArray[np.float64]  # float64[S, n]: How long; nan where there is none
    along: tuple[int, ...] = ()  # Further places, before it, whose computing is in it
    # float64[S, n] or None: How many, 0 where there is none; None where nobody counted them.
    instructions: NDArray[np.float64] | None = None
    turns: int = 0  # How often a signature executes it; 0 for as often as the trace does

    @property
    def there(self) -> NDArray[np.bool_]:
        """Where there is an execution."""
        return np.isfinite(self.seconds)

    @property
    def places(self) -> list[int]:
        """All places whose computing it is."""
        return [place for place in (*self.along, self.place) if place >= 0]

    @property
    def executions(self) -> int:
        """Executions of which at least one sequence has part."""
        return int(np.count_nonzero(self.there.any(axis=0)))

    @property
    def most(self) -> int:
        """Executions of the sequence that has most of them."""
        return int(self.there.sum(axis=1).max(initial=1))

    @property
    def sequence(self) -> NDArray[np.float64]:
        """Its times in the executions of a signature: float64[S, turns], s.

        Where these are fewer or more than in the trace, each has the part of the time that is its.
        """
        seconds = np.nan_to_num(self.seconds[:, self.there.any(axis=0)])
        turns = self.turns or seconds.shape[1]
        if turns == seconds.shape[1]:
            return seconds
        passed = np.pad(np.cumsum(seconds, axis=1), ((0, 0), (1, 0)))
        at = np.linspace(0, seconds.shape[1], turns + 1)
        until = np.array([np.interp(at, np.arange(passed.shape[1]), row) for row in passed])
        return np.diff(until, axis=1)

    @property
    def total(self) -> float:
        """Summed over all sequences, s."""
        return float(np.nansum(self.seconds))


@dataclass(frozen=True)
class Timing:
    """Times of the events of a program, ns, or instructions that were counted in these times."""

    # float64[E]: Computing before each event, and in it, if it is a region.
    before: NDArray[np.float64]
    inside: NDArray[np.float64]
    after: NDArray[np.float64]  # float64[S]: Computing behind the last event of each sequence

    @classmethod
    def of(
        cls, events: int, sequences: int, points: Iterable[tuple[Computing, NDArray[np.float64]]]
    ) -> Timing:
        """Times of points, s; what is in none of them takes no time."""
        before, inside, after = np.zeros(events), np.zeros(events), np.zeros(sequences)
        for point, seconds in points:
            there = point.there
            if point.place < 0:
                after += np.nan_to_num(seconds[:, 0]) * _NS
                continue
            column = inside if point.in_region else before
            column[point.event[there]] = seconds[there] * _NS
        return cls(before, inside, after)


def timing(events: ProgramEvents) -> Timing:
    """Return the program's own times; calls of MPI and waiting for CPUs are no part of regions."""
    length = (events.end - events.begin).astype(np.float64) - events.in_calls - events.delayed
    inside = np.where(events.is_region, np.maximum(length, 0.0), 0.0)
    return Timing(events.before, inside, events.after)


def own_times(program: Program, events: ProgramEvents) -> Program:
    """Return a program without what its threads waited for CPUs."""
    return retimed(program, events, timing(events)) if events.waited else program


def at_place(
    table: PlaceTable,
    times: Timing,
    place: int,
    which: NDArray[np.int64],
    *,
    in_region: bool = False,
    counts: Timing | None = None,
) -> Computing:
    """Return the computing of a place at some of its executions."""
    event = table.event[place][:, which]
    column = times.inside if in_region else times.before
    seconds = np.where(event >= 0, column[event] / _NS, np.nan)
    instructions = None
    if counts is not None:
        column = counts.inside if in_region else counts.before
        instructions = np.where(event >= 0, column[event], 0.0)
    return Computing(place, in_region, event, seconds, instructions=instructions)


def merged(first: Computing, then: Computing) -> Computing:
    """Put what is computed at a point to what is computed at a later one of the same executions."""
    seconds = np.nan_to_num(first.seconds) + np.nan_to_num(then.seconds)
    event = np.where(then.event >= 0, then.event, first.event)
    along = (*first.along, first.place, *then.along)
    seconds = np.where(event >= 0, seconds, np.nan)
    instructions = None
    if first.instructions is not None and then.instructions is not None:
        instructions = first.instructions + then.instructions
    return replace(then, event=event, seconds=seconds, along=along, instructions=instructions)


def led(lead: Computing, here: Computing, begun: NDArray[np.bool_]) -> tuple[Computing, Computing]:
    """Put to what is computed before some calls what comes before a process's first one of them.

    At the edge of a grid processes lack the first calls of an exchange: what they compute before
    it stands before another call than that of the others.
    """
    moves = here.there & ~begun & ~lead.there
    first, rest = lead.instructions, here.instructions
    if first is not None and rest is not None:
        first, rest = np.where(moves, rest, first), np.where(moves, 0.0, rest)
    return (
        replace(
            lead,
            event=np.where(moves, here.event, lead.event),
            seconds=np.where(moves, here.seconds, lead.seconds),
            instructions=first,
        ),
        replace(
            here,
            event=np.where(moves, -1, here.event),
            seconds=np.where(moves, np.nan, here.seconds),
            instructions=rest,
        ),
    )


def retimed(program: Program, events: ProgramEvents, times: Timing) -> Program:
    """Return a program whose processes compute as long as they are said to."""
    burst = np.zeros(program.operations)
    tail = np.zeros(program.sequences)
    spent = np.cumsum(times.before + times.inside)
    acts = np.diff(events.first) > 0
    for sequence, (begin, end) in enumerate(pairwise(events.offsets.tolist())):
        start = spent[begin - 1] if begin else 0.0
        acting = begin + np.flatnonzero(acts[begin:end])
        # what an event computes itself comes behind its operations
        reached = spent[acting] - times.inside[acting]
        left = np.concatenate([[start], reached])
        burst[events.first[acting]] = np.diff(left)
        last = spent[end - 1] if end > begin else start
        tail[sequence] = last - left[-1] + times.after[sequence]
    return replace(program, burst=np.maximum(burst, 0.0), tail=np.maximum(tail, 0.0))
