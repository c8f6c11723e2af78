"""From the structure of a run to its outline."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from popmodel.errors import PopmodelError
from popmodel.signature.call_lists import (
    messages_at,
    open_before,
    segments,
    with_mean_sizes,
    within_stretches,
)
from popmodel.signature.collectives import meetings
from popmodel.signature.computing import Computing, Timing, at_place, led, merged, timing
from popmodel.signature.names import short, told_apart
from popmodel.signature.outline import (
    Node,
    Outline,
    OutlineCalls,
    OutlineRepeat,
    OutlineTeam,
    OutlineWork,
    walk,
)
from popmodel.signature.phase_times import instructions
from popmodel.signature.scaling_lists import ScalingGrid, general, grid_of, tidy
from popmodel.signature.summary import (
    LINES,
    Parts,
    by_frequency,
    exchange,
    is_read,
    offsets_of,
    shortened,
)
from popmodel.signature.threads import team
from popmodel.structure.message_rows import PlaceTable
from popmodel.structure.structure import FoundLoop, Leaf
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from popmodel.structure.structure import Structure
    from popmodel.trace import Trace


_ALIKE = 0.9  # share of executions that do the same calls, from which on these are listed
_NOTES = 2  # of a kind, before the rest is counted
_OWN = 0.002  # share of all computing from which on a burst is an item of its own
_TINY = 2e-4  # below which it joins the next one


_INSIDE = (
    "MPI is called inside parallel regions: the calls are written behind them, and time in which "
    "other threads wait for a call is left out"
)
_SUMMED = "messages of {name}: summed up, as many and as large on average, in no order"


def laid_out(
    structure: Structure, trace: Trace, taken: Collection[str] = (), limit: int = LINES
) -> Outline:
    """Lay out the program of a run; what is below some share of it in summaries, for the size."""
    if len(structure.program.threads):
        raise PopmodelError(
            f"{trace.path}: threads call MPI on their own, which no signature can say",
            "trace a run in which only masters call MPI",
        )
    sized = with_mean_sizes(structure)
    counts = instructions(trace, structure)
    whole, crossing = within_stretches(sized)
    times = timing(structure.events)
    builder = _Builder(sized, PlaceTable(whole), crossing, times, trace, counts)
    top = _LoopBody(np.zeros(1, dtype=np.int64), 1, 1, 1)
    body = builder.nodes(structure.nest, top)
    body += builder.behind()
    notes = _first_of_each(builder.notes)
    if structure.events.in_calls.any():
        notes.append(_INSIDE)
    parts = Parts(builder.points, builder.labels, builder.words, builder.teams)
    short_enough = shortened(tuple(body), parts, sized, limit)
    on_grid, grid = _on_grid(short_enough.body, structure.program.processes)
    return Outline(
        on_grid,
        tuple(parts.points),
        tuple(parts.labels),
        told_apart(parts.words, taken),
        tuple(parts.teams),
        (*notes, *short_enough.notes),
        grid,
        short_enough.share,
    )


def _first_of_each(notes: Sequence[str]) -> list[str]:
    """Notes without those that say of others what the first ones do."""
    kinds: dict[str, list[str]] = {}
    for note in dict.fromkeys(notes):
        kinds.setdefault(note.rpartition(": ")[2], []).append(note)
    found = []
    for kind, several in kinds.items():
        found += several[:_NOTES]
        if len(several) > _NOTES:
            found.append(f"{len(several) - _NOTES} more: {kind}")
    return found


def _on_grid(body: tuple[Node, ...], processes: int) -> tuple[tuple[Node, ...], ScalingGrid | None]:
    """Write lists of calls for any number of processes, where they hold on a grid."""
    lists = [
        (one.rows, one.bytes + one.messages) for one in walk(body) if isinstance(one, OutlineCalls)
    ]
    if not lists or processes == 1:
        return body, None
    grid = grid_of(lists, processes)

    def changed(node: Node) -> Node:
        if isinstance(node, OutlineRepeat):
            return replace(node, body=tuple(map(changed, node.body)))
        if isinstance(node, OutlineCalls) and node.exact:
            found = general(node.rows, grid)
            if found is not None:
                return replace(node, rows=found.rows, moves=found.moves)
        return node

    made = tuple(map(changed, body))
    used = any(isinstance(one, OutlineCalls) and one.moves is not None for one in walk(made))
    return made, grid if used else None


class _LoopBody(NamedTuple):
    """What a loop repeats, or the whole program."""

    which: NDArray[np.int64]  # Those that are meant
    turns: int  # How many of them stand for one execution of every item each
    # How often a signature executes it in all, and in one execution of its loop.
    times: int
    length: int

    def frequency(self, executions: int) -> tuple[str, int]:
        """Return ``every`` of what is executed so often, and how often a signature does then."""
        often = max(round(self.length * executions / self.turns), 1)
        if often >= self.length:
            return "", self.times
        return f"{self.length}/{often}", self.times // self.length * often


@dataclass
class _Builder:
    """Collects what is measured while it walks over the nest."""

    structure: Structure
    table: PlaceTable  # Of messages that begin and end in one stretch of calls
    crossing: NDArray[np.bool_]  # Messages that do not
    times: Timing
    trace: Trace
    counts: Timing | None = None
    points: list[Computing] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    teams: list[OutlineTeam | None] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    loops: int = 0

    def __post_init__(self) -> None:
        self.segment = segments(self.structure)
        self.busy = open_before(self.table.structure)  # what crosses them no list holds
        spent = self.times.before.sum() + self.times.inside.sum() + self.times.after.sum()
        self.all = max(float(spent) / 1e9, 1e-12)

    def nodes(self, nodes: Sequence[FoundLoop | Leaf], body: _LoopBody) -> list[Node]:
        """Lay out what follows one another."""
        found: list[Node] = []
        for node in nodes:
            found += self.leaf(node, body) if isinstance(node, Leaf) else self.loop(node, body)
        return found

    # -- loops

    def loop(self, loop: FoundLoop, body: _LoopBody) -> list[Node]:
        """Lay out a loop; what some of its iterations do is executed every so many turns."""
        self.loops += 1
        name = f"loop {self.loops}"
        first = loop.first
        counts = first[body.which + 1] - first[body.which]
        entered = body.which[counts > 0]
        if not len(entered):
            return []
        counts = counts[counts > 0]
        length = max(round(float(counts.mean())), 1)
        if (counts != length).any():
            self.notes.append(
                f"{name} has {int(counts.min())} to {int(counts.max())} iterations, written as "
                f"{length}: the mean is kept"
            )
        inner = np.concatenate([np.arange(first[one], first[one + 1]) for one in entered])
        if length == 1:
            return self.nodes(loop.body, body._replace(which=inner))
        every, times = body.frequency(len(entered))
        inside = _LoopBody(inner, len(inner), times * length, length)
        return [OutlineRepeat(name, length, tuple(self.nodes(loop.body, inside)), every)]

    # -- what is in them

    def leaf(self, leaf: Leaf, body: _LoopBody) -> list[Node]:
        """Lay out places that follow one another."""
        event, which = self.table.event, body.which
        there = [place for place in leaf.places if (event[place][:, which] >= 0).any()]
        turns = {place: (event[place][:, which] >= 0).any(axis=0) for place in there}
        found: list[Node] = []
        pending: Computing | None = None
        stretch: list[int] = []
        computed: dict[int, Computing] = {}
        lead: int | None = None  # point of what is computed right before a stretch of calls

        def close() -> None:
            nonlocal lead
            lead = None
            if stretch:
                found.extend(self.calls(tuple(stretch), body, dict(computed)))
                stretch.clear()
                computed.clear()

        for place in there:
            here = self.computing(place, which)
            if pending is not None:
                here, pending = merged(pending, here), None
            is_call = self.segment[place] >= 0
            inside = bool(stretch) and is_call and self.segment[stretch[-1]] == self.segment[place]
            if inside and not self.busy[place]:
                inside = np.array_equal(turns[stretch[-1]], turns[place])
            if inside and lead is not None:
                begun = np.logical_or.reduce([event[one][:, which] >= 0 for one in stretch])
                self.points[lead], here = led(self.points[lead], here, begun)
            if not here.total:
                pass
            elif here.total < _TINY * self.all and place != there[-1]:
                pending = here
            elif inside and (self.busy[place] or here.total < _OWN * self.all):
                computed[place] = here
            else:
                close()
                found.append(self.work(here, body))
                lead = len(self.points) - 1
            if is_call:
                if stretch and not inside:
                    close()
                stretch.append(place)
                continue
            close()
            if self.structure.places[place].is_region:
                found.append(self.region(place, body))
            else:
                found += self.meetings(place, body)
        close()
        return found

    def computing(
        self, place: int, which: NDArray[np.int64], *, in_region: bool = False
    ) -> Computing:
        """What is computed at a place."""
        return at_place(
            self.table, self.times, place, which, in_region=in_region, counts=self.counts
        )

    def work(self, computing: Computing, body: _LoopBody) -> OutlineWork:
        """Note what is computed before a place."""
        name = f"before {self._named(computing.place)}"
        every, times = body.frequency(computing.executions)
        return OutlineWork(name, self._point(replace(computing, turns=times), name, None), every)

    def region(self, place: int, body: _LoopBody) -> OutlineWork:
        """Note a parallel region."""
        computing = self.computing(place, body.which, in_region=True)
        name = self._named(place)
        every, times = body.frequency(computing.executions)
        computing = replace(computing, turns=times)
        threads = team(self.trace, self.structure, computing)
        return OutlineWork(name, self._point(computing, name, threads), every)

    def meetings(self, place: int, body: _LoopBody) -> list[Node]:
        """Note the collectives of a place."""
        made, notes = meetings(self.structure, self.table, place, body.which, self._named(place))
        self.notes += notes
        found: list[Node] = []
        for one in made:
            every, times = body.frequency(one.times)
            count = max(round(one.times / body.turns), 1)
            if count == 1:
                found.append(replace(one, times=times, every=every))
            else:
                inner = replace(one, times=times * count)
                found.append(OutlineRepeat(f"{one.name}, {count} times", count, (inner,)))
        return found

    def calls(
        self, places: tuple[int, ...], body: _LoopBody, computed: dict[int, Computing]
    ) -> list[Node]:
        """List point-to-point calls; a summary of them where a list would not say what they do."""
        events = self.table.event
        turns = np.logical_or.reduce([(events[one][:, body.which] >= 0).any(0) for one in places])
        which = body.which[turns]
        every, times = body.frequency(len(which))
        first = self._named(places[0])
        name = first if len(places) == 1 else f"{first} to {self.structure.places[places[-1]].name}"
        sent = messages_at(self.structure, [events[one][:, which] for one in places])
        crosses = self.crossing[sent]
        rows: list[dict[str, Any]] = []
        if not crosses.all():
            rows = self.listed(places, which, computed, times)
        made: list[Node] = []
        if rows:
            made.append(self.exchanged(name, rows, True, sent[~crosses], times, places, every))
            sent = sent[crosses]
        elif computed:  # before it
            parts = [computed[place] for place in places if place in computed]
            both = parts[0]
            for part in parts[1:]:
                both = merged(both, part)
            made.append(self.work(both, body))
        if len(sent):
            self.notes.append(_SUMMED.format(name=name))
        for some, executions in by_frequency(self.structure.program, sent, len(which)):
            every, times = body.frequency(executions)
            rows, exact = exchange(self.structure.program, some, times)
            made.append(self.exchanged(name, rows, exact, some, times, places, every))
        return made

    def exchanged(
        self,
        name: str,
        rows: list[dict[str, Any]],
        exact: bool,
        sent: NDArray[np.int64],
        times: int,
        places: tuple[int, ...],
        every: str,
    ) -> OutlineCalls:
        """Note what is exchanged in a stretch of calls."""
        size = float(self.structure.program.messages.size[sent].sum())
        offsets = offsets_of(self.structure.program, sent)
        return OutlineCalls(
            name, tuple(rows), len(sent) / times, size / times, sent, times, exact, places, every,
            offsets,
        )  # fmt: skip

    def listed(
        self,
        places: tuple[int, ...],
        which: NDArray[np.int64],
        computed: dict[int, Computing],
        times: int,
    ) -> list[dict[str, Any]]:
        """List calls as they are made; none where executions differ, or no signature reads it."""
        found = self.table.rows(places, computed, which)
        if found.why or np.isin(which, found.executions).mean() < _ALIKE:
            return []
        processes = self.structure.program.processes
        alike = found.executions[np.isin(found.executions, which)]
        in_order = [
            place
            for place in places
            if place in computed and self._computes(self.table.event[place][:, alike])
        ]
        numbers = range(len(self.points), len(self.points) + len(in_order))
        rows = tidy(_referring(found.calls, [*numbers]), processes)
        if len(in_order) < len(computed) or not is_read(rows, processes):
            return []
        for place in in_order:
            computing = replace(computed[place], turns=times)
            self._point(computing, f"before {self._named(place)}", None)
        return rows

    def behind(self) -> list[Node]:
        """What processes compute behind their last call."""
        after = self.times.after / 1e9
        if after.sum() < _TINY * self.all:
            return []
        event = np.full((len(after), 1), -1, dtype=np.int64)
        counts = None if self.counts is None else self.counts.after[:, None]
        computing = Computing(-1, False, event, after[:, None], instructions=counts)
        return [OutlineWork("at the end", self._point(computing, "behind the last call", None))]

    def _computes(self, event: NDArray[np.int64]) -> bool:
        before = np.where(event >= 0, self.structure.events.before[event], 0.0)
        return bool(before.mean(axis=1).any())

    def _named(self, place: int) -> str:
        one = self.structure.places[place]
        return f"{one.name} in {one.inside}" if one.inside else one.name

    def _word(self, computing: Computing) -> str:
        if computing.place < 0:
            return "end"
        one = self.structure.places[computing.place]
        if one.is_region and not computing.in_region:
            return short(f"before {one.name}")
        return short(one.name, "" if one.is_region else one.inside)

    def _point(self, computing: Computing, label: str, threads: OutlineTeam | None) -> int:
        self.points.append(computing)
        self.labels.append(label)
        self.words.append(self._word(computing))
        self.teams.append(threads)
        return len(self.points) - 1


def _referring(rows: Sequence[dict[str, Any]], points: list[int]) -> list[dict[str, Any]]:
    """Rows whose computing is that of some points, in order."""
    rest = iter(points)

    def referred(row: dict[str, Any]) -> dict[str, Any]:
        if row.get("do") == "compute":
            return {"do": "compute", "point": next(rest)}
        if "calls" in row:
            return {**row, "calls": [referred(one) for one in row["calls"]]}
        return row

    return [referred(row) for row in rows]
