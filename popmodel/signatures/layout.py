"""From the structure of a run to its outline."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from popmodel.base.errors import PopmodelError
from popmodel.signatures.outline import (
    Node,
    Outline,
    OutlineCalls,
    OutlinePoint,
    OutlineRepeat,
    OutlineWork,
    instructions,
    numbered_names,
    paths,
    short_name,
    team,
    timing,
)
from popmodel.signatures.place_calls import (
    meetings,
    messages_at,
    open_before,
    segments,
    within_stretches,
)
from popmodel.signatures.scaling_lists import ScalingGrid, general, grid_of, tidy
from popmodel.signatures.summary import LINES, by_frequency, exchange, is_read, shortened
from popmodel.structure.message_rows import PlaceTable
from popmodel.structure.structure import FoundLoop, Leaf

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from popmodel.signatures.outline import OutlineTeam
    from popmodel.structure.structure import Structure
    from popmodel.traces import Trace

    Whole = NDArray[np.int64]

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
    builder = _OutlineBuilder(structure, trace)
    top = _LoopBody(np.zeros(1, dtype=np.int64), 1, 1, 1)
    body = [*builder.nodes(structure.nest, top), *builder.behind()]
    notes: list[str] = []
    kinds: dict[str, list[str]] = {}
    for note in dict.fromkeys(builder.notes):
        kinds.setdefault(note.rpartition(": ")[2], []).append(note)
    for kind, several in kinds.items():
        notes += several[:_NOTES]
        if len(several) > _NOTES:
            notes.append(f"{len(several) - _NOTES} more: {kind}")
    if structure.events.in_calls.any():
        notes.append(_INSIDE)
    short, points, said, share = shortened(tuple(body), builder.points, structure, limit)
    names = numbered_names([point.name for point in points], taken)
    named = [replace(point, name=name) for point, name in zip(points, names, strict=True)]
    on_grid, grid = _on_grid(short, structure.program.processes)
    return Outline(on_grid, tuple(named), (*notes, *said), grid, share)


def _on_grid(body: tuple[Node, ...], processes: int) -> tuple[tuple[Node, ...], ScalingGrid | None]:
    """Write lists of calls for any number of processes, where they hold on a grid."""
    lists = [
        (node.rows, node.bytes + node.messages)
        for _, node in paths(body)
        if isinstance(node, OutlineCalls)
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
                return replace(node, rows=tuple(found[0]), moves=found[1])
        return node

    made = tuple(map(changed, body))
    used = any(isinstance(node, OutlineCalls) and node.moves is not None for _, node in paths(made))
    return made, grid if used else None


class _LoopBody(NamedTuple):
    """What a loop repeats, or the whole program."""

    which: Whole  # Executions in the run that are meant
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


class _OutlineBuilder:
    """Collects what is measured while it walks over the nest."""

    def __init__(self, structure: Structure, trace: Trace) -> None:
        self.structure, self.trace = structure, trace
        self.counts = instructions(trace, structure)
        # lists are of messages that begin and end in one stretch of calls; others cross them
        whole, self.crossing = within_stretches(structure)
        self.table = PlaceTable(whole)
        self.times = timing(structure.events)
        self.segment = segments(structure)
        self.busy = open_before(whole)  # what crosses stretches no list holds
        spent = self.times.before.sum() + self.times.inside.sum() + self.times.after.sum()
        self.all = max(float(spent) / 1e9, 1e-12)
        self.points: list[OutlinePoint] = []
        self.notes: list[str] = []
        self.loops = 0

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
        pending: OutlinePoint | None = None
        stretch: list[int] = []
        computed: dict[int, OutlinePoint] = {}
        lead: int | None = None  # point of what is computed right before a stretch of calls

        def close() -> None:
            nonlocal lead
            lead = None
            if stretch:
                found.extend(self.calls(tuple(stretch), body, dict(computed)))
                stretch.clear()
                computed.clear()

        for place in there:
            here = self.times.at_place(self.table, place, which, False, self.counts)
            if pending is not None:
                here, pending = pending.merged(here), None
            is_call = self.segment[place] >= 0
            inside = bool(stretch) and is_call and self.segment[stretch[-1]] == self.segment[place]
            if inside and not self.busy[place]:
                inside = np.array_equal(turns[stretch[-1]], turns[place])
            if inside and lead is not None:
                begun = np.logical_or.reduce([event[one][:, which] >= 0 for one in stretch])
                self.points[lead], here = self.points[lead].led(here, begun, self.counts)
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

    def work(self, point: OutlinePoint, body: _LoopBody) -> OutlineWork:
        """Note what is computed before a place."""
        name = f"before {self._named(point.place)}"
        every, times = body.frequency(point.executions)
        return OutlineWork(name, self._add(point, name, times), every)

    def region(self, place: int, body: _LoopBody) -> OutlineWork:
        """Note a parallel region."""
        point = self.times.at_place(self.table, place, body.which, True, self.counts)
        name = self._named(place)
        every, times = body.frequency(point.executions)
        threads = team(self.trace, self.structure, replace(point, turns=times))
        return OutlineWork(name, self._add(point, name, times, threads), every)

    def meetings(self, place: int, body: _LoopBody) -> list[Node]:
        """Note the collectives of a place."""
        made, notes = meetings(self.structure, self.table, place, body.which, self._named(place))
        self.notes += notes
        found: list[Node] = []
        for meeting in made:
            every, times = body.frequency(meeting.times)
            count = max(round(meeting.times / body.turns), 1)
            if count == 1:
                found.append(replace(meeting, times=times, every=every))
            else:
                inner = replace(meeting, times=times * count)
                found.append(OutlineRepeat(f"{meeting.name}, {count} times", count, (inner,)))
        return found

    def calls(
        self, places: tuple[int, ...], body: _LoopBody, computed: dict[int, OutlinePoint]
    ) -> list[Node]:
        """List point-to-point calls; a summary of them where a list would not say what they do."""
        program, events = self.structure.program, self.table.event
        turns = np.logical_or.reduce([(events[each][:, body.which] >= 0).any(0) for each in places])
        which = body.which[turns]
        every, times = body.frequency(len(which))
        name = self._named(places[0])
        name += "" if len(places) == 1 else f" to {self.structure.places[places[-1]].name}"
        sent = messages_at(self.structure, [events[each][:, which] for each in places])
        crosses = self.crossing[sent]
        rows: list[dict[str, Any]] = []
        if not crosses.all():
            rows = self.listed(places, which, computed, times)
        made: list[Node] = []
        if rows:
            made.append(exchange(program, name, sent[~crosses], times, places, every, rows))
            sent = sent[crosses]
        elif computed:  # before it
            both, *others = (computed[place] for place in places if place in computed)
            for point in others:
                both = both.merged(point)
            made.append(self.work(both, body))
        if len(sent):
            self.notes.append(_SUMMED.format(name=name))
        for some, executions in by_frequency(program, sent, len(which)):
            every, times = body.frequency(executions)
            made.append(exchange(program, name, some, times, places, every))
        return made

    def listed(
        self,
        places: tuple[int, ...],
        which: Whole,
        computed: dict[int, OutlinePoint],
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
        numbers = iter(range(len(self.points), len(self.points) + len(in_order)))

        def numbered(row: dict[str, Any]) -> dict[str, Any]:
            if row.get("do") == "compute":
                return {"do": "compute", "point": next(numbers)}
            if "calls" in row:
                return {**row, "calls": [numbered(call) for call in row["calls"]]}
            return row

        rows = tidy([numbered(row) for row in found.calls], processes)
        if len(in_order) < len(computed) or not is_read(rows, processes):
            return []
        for place in in_order:
            self._add(computed[place], f"before {self._named(place)}", times)
        return rows

    def behind(self) -> list[Node]:
        """What processes compute behind their last call."""
        after = self.times.after / 1e9
        if after.sum() < _TINY * self.all:
            return []
        event = np.full((len(after), 1), -1, dtype=np.int32)
        counts = None if self.counts is None else float(self.counts.after.sum())
        point = OutlinePoint(-1, False, event, after[:, None], instructions=counts)
        return [OutlineWork("at the end", self._add(point, "behind the last call"))]

    def _computes(self, event: NDArray[np.int32]) -> bool:
        before = np.where(event >= 0, self.structure.events.before[event], 0.0)
        return bool(before.mean(axis=1).any())

    def _named(self, place: int) -> str:
        where = self.structure.places[place]
        return f"{where.name} in {where.inside}" if where.inside else where.name

    def _add(
        self, point: OutlinePoint, label: str, times: int = 0, threads: OutlineTeam | None = None
    ) -> int:
        """Note what is computed at a point; return its number."""
        word = "end"
        if point.place >= 0:
            where = self.structure.places[point.place]
            word = short_name(where.name, "" if where.is_region else where.inside)
            if where.is_region and not point.in_region:
                word = short_name(f"before {where.name}")
        self.points.append(replace(point, turns=times, label=label, name=word, team=threads))
        return len(self.points) - 1
