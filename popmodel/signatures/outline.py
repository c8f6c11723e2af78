"""The program of a run in outline: what repeats, what is computed, who exchanges what.

It says the same as the items of a signature, but refers to what was measured where these have
values. What is computed is known by points: a burst before a place of the program, or a region.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from popmodel.base.arrays import spread
from popmodel.base.values import dataclass
from popmodel.efficiency.measure import useful_times
from popmodel.efficiency.region_efficiencies import waiting_in
from popmodel.structure.bursts import counted, regions, teams
from popmodel.traces.caveats import delays
from popmodel.traces.intervals import Intervals, alone

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from popmodel.signatures.scaling_lists import ScalingGrid
    from popmodel.simulator import Program
    from popmodel.structure.message_rows import PlaceTable
    from popmodel.structure.program_events import ProgramEvents
    from popmodel.structure.structure import Structure
    from popmodel.traces import Trace

_NS = 1e9
_COUNTER = "instructions"


# -- what there is


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
class OutlinePoint:
    """What is computed before a place of the program, or in a parallel region."""

    # The place: what stands before it is meant, or itself if it is a region; -1 for what comes
    # behind the last event of each sequence.
    place: int
    in_region: bool  # Whether the region itself is meant
    # int32[S, n]: Its event on each sequence at each execution; -1 where there is none.
    event: NDArray[np.int32]
    seconds: NDArray[np.float64]  # float64[S, n]: How long; nan where there is none
    along: tuple[int, ...] = ()  # Further places, before it, whose computing is in it
    instructions: float | None = None  # Summed over all; None where nobody counted them
    turns: int = 0  # How often a signature executes it; 0 for as often as the trace does
    label: str = ""  # What it is, in words
    name: str = ""  # What it is called in formulas
    team: OutlineTeam | None = None  # Of a parallel region

    @property
    def there(self) -> NDArray[np.bool_]:
        """Where there is an execution."""
        return np.isfinite(self.seconds)

    @property
    def places(self) -> list[int]:
        """All places whose computing it is; the end is the last one."""
        return [place for place in (*self.along, self.place) if place >= 0] or [self.place]

    @property
    def executions(self) -> int:
        """Executions of which at least one sequence has part."""
        return int(np.count_nonzero(self.there.any(axis=0)))

    @property
    def most(self) -> int:
        """Executions of the sequence that has most of them."""
        return int(self.there.sum(axis=1).max(initial=1))

    @property
    def total(self) -> float:
        """Summed over all sequences, s."""
        return float(np.nansum(self.seconds))

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

    def merged(self, then: OutlinePoint) -> OutlinePoint:
        """Put what is computed here to what a later point computes in the same executions."""
        event = np.where(then.event >= 0, then.event, self.event)
        seconds = np.nan_to_num(self.seconds) + np.nan_to_num(then.seconds)
        instructions = None
        if self.instructions is not None and then.instructions is not None:
            instructions = self.instructions + then.instructions
        return replace(
            then,
            event=event,
            seconds=np.where(event >= 0, seconds, np.nan),
            along=(*self.along, self.place, *then.along),
            instructions=instructions,
        )

    def led(
        self, here: OutlinePoint, begun: NDArray[np.bool_], counts: Timing | None
    ) -> tuple[OutlinePoint, OutlinePoint]:
        """Put to it, before some calls, what comes before a process's first one of them.

        At the edge of a grid processes lack the first calls of an exchange: what they compute
        before it stands before another call than that of the others.
        """
        moves = here.there & ~begun & ~self.there
        first, rest = self.instructions, here.instructions
        if counts is not None and first is not None and rest is not None:
            moved = float(counts.before[here.event[moves]].sum())
            first, rest = first + moved, rest - moved
        lead = replace(
            self,
            event=np.where(moves, here.event, self.event),
            seconds=np.where(moves, here.seconds, self.seconds),
            instructions=first,
        )
        left = replace(
            here,
            event=np.where(moves, -1, here.event),
            seconds=np.where(moves, np.nan, here.seconds),
            instructions=rest,
        )
        return lead, left


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
    # int32[m]: Which messages of the program, in all executions; empty once it is laid out
    sent: NDArray[np.int32]
    times: int  # Executions in the signature
    exact: bool  # Whether most executions do exactly this; else a summary of them
    places: tuple[int, ...]  # Where
    every: str  # As of `OutlineRepeat`
    # By how much ranks of receivers are above those of senders, modulo P, most bytes first.
    offsets: tuple[int, ...]
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
    times: int  # Executions in the signature
    place: int  # Where
    every: str = ""  # As of `OutlineRepeat`


Node: TypeAlias = "OutlineRepeat | OutlineWork | OutlineCalls | OutlineMeeting"


@dataclass(frozen=True)
class Outline:
    """The program of a run."""

    body: tuple[Node, ...]  # In order
    points: tuple[OutlinePoint, ...]  # Of each `OutlineWork` and each row that computes
    notes: tuple[str, ...] = ()  # What is not as it was traced
    grid: ScalingGrid | None = None  # Of the processes, if lists of calls hold on one
    summed: float = 0.0  # Share of the time in summaries of what is small

    @property
    def total(self) -> float:
        """Computing of all points and sequences, s; 1 where there is none."""
        return sum(point.total for point in self.points) or 1.0


def paths(
    body: Sequence[Node], before: tuple[int, ...] = ()
) -> Iterator[tuple[tuple[int, ...], Node]]:
    """All nodes with where they stand, loops before what is in them."""
    for index, node in enumerate(body):
        yield (*before, index), node
        if isinstance(node, OutlineRepeat):
            yield from paths(node.body, (*before, index))


def points_of(node: Node) -> Iterator[int]:
    """The points of a node itself, those of rows of calls among them."""
    if isinstance(node, OutlineWork):
        yield node.point
    elif isinstance(node, OutlineCalls):
        yield from row_points(node.rows)


def row_points(rows: Sequence[Mapping[str, Any]]) -> Iterator[int]:
    """The points of the rows of a list that compute."""
    for row in rows:
        if "calls" in row:
            yield from row_points(row["calls"])
        elif "point" in row:
            yield row["point"]


def row_at(rows: Sequence[dict[str, Any]], where: tuple[int, ...]) -> dict[str, Any]:
    """Return a row of a list of calls by where it stands."""
    row = rows[where[0]]
    return row if len(where) == 1 else row_at(row["calls"], where[1:])


# -- how long


class Timing(NamedTuple):
    """Times of the events of a program, ns, or instructions that were counted in these times."""

    # float64[E]: Computing before each event, and in it, if it is a region.
    before: NDArray[np.float64]
    inside: NDArray[np.float64]
    after: NDArray[np.float64]  # float64[S]: Computing behind the last event of each sequence

    def at_place(
        self,
        table: PlaceTable,
        place: int,
        which: NDArray[np.int64],
        in_region: bool,
        counts: Timing | None,
    ) -> OutlinePoint:
        """Return the computing of a place at some of its executions."""
        event = table.event[place][:, which]
        column = self.inside if in_region else self.before
        seconds = np.where(event >= 0, column[event] / _NS, np.nan)
        instructions = None
        if counts is not None:
            column = counts.inside if in_region else counts.before
            instructions = float(column[event[event >= 0]].sum())
        return OutlinePoint(place, in_region, event, seconds, instructions=instructions)


def timing(events: ProgramEvents) -> Timing:
    """Return the program's own times; calls of MPI and waiting for CPUs are no part of regions."""
    length = (events.end - events.begin).astype(np.float64) - events.in_calls - events.delayed
    inside = np.where(events.is_region, np.maximum(length, 0.0), 0.0)
    return Timing(events.before, inside, events.after)


def own_times(structure: Structure) -> Program:
    """Return a program without what its threads waited for CPUs."""
    events = structure.events
    return retimed(structure, timing(events)) if events.waited else structure.program


def retimed(structure: Structure, times: Timing) -> Program:
    """Return a program whose processes compute as long as they are said to."""
    program, events = structure.program, structure.events
    spent = np.concatenate([[0.0], np.cumsum(times.before + times.inside)])
    acting = np.flatnonzero(np.diff(events.first))
    sequence = events.sequence[acting]
    # what an event computes itself comes behind its operations
    reached = spent[1:][acting] - times.inside[acting]
    left = spent[events.offsets[:-1]]  # when each sequence begins, then where its last act is
    since = np.append(0.0, reached)[: len(reached)]
    new = np.diff(sequence, prepend=-1) != 0
    since[new] = left[sequence[new]]
    left[sequence] = reached
    burst = np.zeros(program.operations)
    burst[events.first[acting]] = reached - since
    tail = spent[events.offsets[1:]] - left + times.after
    return replace(program, burst=np.maximum(burst, 0.0), tail=np.maximum(tail, 0.0))


def instructions(trace: Trace, structure: Structure) -> Timing | None:
    """Count the instructions at the events of a run, where hardware counters were traced."""
    if not trace.timed or not trace.records.counter_names():
        return None
    events, useful, parallel = structure.events, useful_times(trace), regions(structure)
    sequence, since, until = events.gaps(trace.begin, trace.ends()[structure.program.owner])
    location = np.asarray(trace.process_offsets, np.int64)[sequence]
    outside = counted(trace, useful.running, location, since, until)[0].get(_COUNTER)
    if outside is None:
        return None
    before, after = np.split(outside, [len(events)])
    inside = np.zeros(len(events))
    if len(parallel):
        counts = teams(trace, parallel, parallel.sequence.astype(np.int64), useful)[1]
        if _COUNTER not in counts:
            return None
        inside[events.is_region] = counts[_COUNTER]
    return Timing(before, inside, after)


def team(trace: Trace, structure: Structure, region: OutlinePoint) -> OutlineTeam:
    """Return how the executions of a region spend their time, on average."""
    rows = np.flatnonzero(structure.events.is_region)
    every = trace.derived("times of regions", lambda trace: _times(trace, structure, rows))
    mine = np.searchsorted(rows, region.event[region.event >= 0])
    mean, busiest, wall, idle, waiting = (column[mine] for column in every)
    useful, unused = float(mean.sum()), float(idle.sum())
    # a process that does not execute it has no time in it: of all of them is the mean
    executions = len(region.event) * (region.turns or region.most)
    return OutlineTeam(
        useful / executions,
        float((busiest - mean).sum()) / useful if useful else 0.0,
        float(np.maximum(wall - busiest, 0.0).sum()) / executions,
        min(float(waiting.sum()) / unused, 1.0) if unused > 0 else 0.0,
    )


def _times(
    trace: Trace, structure: Structure, event: NDArray[np.int64]
) -> tuple[NDArray[np.float64], ...]:
    """Measure executions of regions as metrics are (`popmodel.efficiency.region_efficiencies`), s.

    Useful time of the average and of the busiest thread; time of the master outside MPI; time of
    the average thread neither useful nor in MPI, and what of it is in barriers, critical sections
    and locks.
    """
    measured, calls = useful_times(trace), trace.calls()
    running = measured.running
    every_call = Intervals.of(calls.offsets, calls.entry, calls.exit)
    waits = waiting_in(trace, running, every_call)
    bounds = np.asarray(trace.process_offsets, dtype=np.int64)
    process = structure.events.sequence[event]
    threads = np.diff(bounds)[process]
    starts = np.cumsum(threads) - threads
    which, location = spread(bounds[process], threads)
    first, last = structure.events.begin[event], structure.events.end[event]
    begin, end = first[which], last[which]
    busy = running.inside(location, begin, end) - delays(trace).inside(location, begin, end)
    busy, delayed = np.maximum(busy, 0), structure.events.delayed[event]
    useful = np.maximum(busy - measured.apart.inside(location, begin, end), 0)
    in_calls = alone([every_call], [running]).inside(location, begin, end)
    waiting = waits.inside(location, begin, end) + running.waits.inside(location, begin, end)
    idle = np.maximum(end - begin - delayed[which] - busy - in_calls, 0)

    def average(times: NDArray[np.int64]) -> NDArray[np.float64]:
        mean: NDArray[np.float64] = np.add.reduceat(times, starts) / (threads * _NS)
        return mean

    return (
        average(useful),
        np.maximum.reduceat(useful, starts) / _NS,
        (last - first - in_calls[starts] - delayed) / _NS,
        average(idle),
        average(waiting),
    )


# -- what it is called

# People read and set names of phases: ``t_sweep`` is the time of the region sweep,
# ``t_partlist_sendrecv_2`` that of the second phase in the function partlist_sendrecv,
# ``t_allreduce`` that before the first MPI_Allreduce of an unknown one.

TIME, RECORDED = "t_", "r_"  # before the name of a phase: its time, and its recorded times
_LONGEST = 24  # letters of a name, without a prefix and a number behind it
_ADDRESS = re.compile(r"\+?0x[0-9a-f]+", re.IGNORECASE)
_LINE = re.compile(r"\(([^()]*):(\d+)\)\s*$")


def short_name(name: str, inside: str = "") -> str:
    """Return a word for a call or a region, as formulas may hold it."""
    word = _word(name)
    if inside:
        function = _LINE.sub("", inside).rpartition("::")[2] or inside
        first = _word(function)
        repeats = not first or not word or first.endswith(word)
        both = first or word if repeats else f"{first}_{word}"
        word = both if len(both) <= _LONGEST else first or word
    if len(word) > _LONGEST:  # of whole parts, where these are not too long
        word = word[: _LONGEST + 1].rpartition("_")[0].strip("_") or word[:_LONGEST]
    return word or "phase"


def _word(text: str) -> str:
    line = _LINE.search(text)
    kept = text if line is None else f"{text[: line.start()] or line[1]} {line[2]}"
    kept = _ADDRESS.sub(" ", kept).removeprefix("MPI_")
    return re.sub(r"[^a-z0-9]+", "_", kept.lower()).strip("_")


def numbered_names(words: Sequence[str], taken: Collection[str] = ()) -> list[str]:
    """Number words that come again, from the second one on."""
    avoided = {name.removeprefix(TIME) for name in taken if name.startswith(TIME)}
    numbers: dict[str, int] = {}
    own, names = set(words), []
    for word in words:
        number = numbers.get(word, 0) + 1
        name = word if number == 1 else f"{word}_{number}"
        while name in avoided or (number > 1 and name in own):
            number += 1
            name = f"{word}_{number}"
        numbers[word] = number
        avoided.add(name)
        names.append(name)
    return names
