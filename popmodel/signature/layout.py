"""From the structure of a run to its outline."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.errors import PopmodelError
from popmodel.patterns.rows import CallLists
from popmodel.patterns.table import Table, iterations
from popmodel.signature.call_lists import listable, open_before, segments
from popmodel.signature.collectives import meetings
from popmodel.signature.computing import Computing, Timing, at_place, led, merged, timing
from popmodel.signature.loops import turns
from popmodel.signature.names import short, told_apart
from popmodel.signature.outline import Calls, Node, Outline, Repeat, Team, Work, walk
from popmodel.signature.phase_times import instructions
from popmodel.signature.scaling_lists import Grid, general, grid_of, tidy
from popmodel.signature.threads import team
from popmodel.simulator.program import Op
from popmodel.structure.nest import Leaf, Loop
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from popmodel.structure.structure import Structure
    from popmodel.trace import Trace


_PARTNERS = 6  # at most, of a list that is written for one number of processes
_OWN = 0.002  # share of all computing from which on a burst is an item of its own
_TINY = 2e-4  # below which it joins the next one


_INSIDE = (
    "MPI is called inside parallel regions: the calls are written behind them, and time in which "
    "other threads wait for a call is left out"
)


def laid_out(
    structure: Structure, trace: Trace, taken: Collection[str] = ()
) -> tuple[Outline, Structure]:
    """Lay out the program of a run; gives the structure as lists of calls can say it, too."""
    if len(structure.program.threads):
        raise PopmodelError(
            f"{trace.path}: threads call MPI on their own, which no signature can say",
            "trace a run in which only masters call MPI",
        )
    found = listable(structure)
    changed = found.structure
    counts = instructions(trace, structure)
    times = timing(structure.events)
    builder = _Builder(changed, CallLists(changed), times, trace, found.late, counts)
    body = builder.nodes(structure.nest, 1, np.zeros(1, dtype=np.int64))
    body += builder.behind()
    if structure.events.in_calls.any():
        builder.notes.append(_INSIDE)
    on_grid, grid = _on_grid(tuple(body), structure.program.processes)
    whole = Outline(
        on_grid,
        tuple(builder.points),
        tuple(builder.labels),
        told_apart(builder.words, taken),
        tuple(builder.teams),
        (*found.notes, *dict.fromkeys(builder.notes)),
        grid,
    )
    return whole, changed


def _on_grid(body: tuple[Node, ...], processes: int) -> tuple[tuple[Node, ...], Grid | None]:
    """Write lists of calls for any number of processes, where they hold on a grid."""
    lists = [(one.rows, one.bytes + one.messages) for one in walk(body) if isinstance(one, Calls)]
    if not lists or processes == 1:
        return body, None
    grid = grid_of(lists, processes)

    def changed(node: Node) -> Node:
        if isinstance(node, Repeat):
            return replace(node, body=tuple(map(changed, node.body)))
        if isinstance(node, Calls) and node.exact:
            found = general(node.rows, grid)
            if found is not None:
                return replace(node, rows=found.rows, moves=found.moves)
        return node

    made = tuple(map(changed, body))
    used = any(isinstance(one, Calls) and one.moves is not None for one in walk(made))
    return made, grid if used else None


@dataclass
class _Builder:
    """Collects what is measured while it walks over the nest."""

    structure: Structure
    lists: CallLists
    times: Timing
    trace: Trace
    late: NDArray[np.bool_]
    counts: Timing | None = None
    points: list[Computing] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    teams: list[Team | None] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    loops: int = 0

    def __post_init__(self) -> None:
        self.segment = segments(self.structure)
        self.busy = open_before(self.structure)
        spent = self.times.before.sum() + self.times.inside.sum() + self.times.after.sum()
        self.all = max(float(spent) / 1e9, 1e-12)

    @property
    def table(self) -> Table:
        return self.lists.table

    def nodes(
        self, nodes: Sequence[Loop | Leaf], executions: int, which: NDArray[np.int64]
    ) -> list[Node]:
        """Lay out what follows one another, at some of its executions."""
        found: list[Node] = []
        for node in nodes:
            if isinstance(node, Leaf):
                found += self.leaf(node, which)
            else:
                found += self.loop(node, executions, which)
        return found

    # -- loops

    def loop(self, loop: Loop, executions: int, which: NDArray[np.int64]) -> list[Node]:
        """Lay out a loop; where its iterations differ, as several."""
        self.loops += 1
        name = f"loop {self.loops}"
        found = turns(self.table, loop, executions, which, name)
        self.notes += found.notes
        total = int(iterations(loop, executions)[-1])
        made: list[Node] = []
        for stretch in found.stretches:
            body: list[Node] = []
            for step in stretch.steps:
                inner = self.nodes(loop.body, total, step.which)
                body += _repeated(name, step.count, inner)
            made += _repeated(name, stretch.count, body)
        return made

    # -- what is in them

    def leaf(self, leaf: Leaf, which: NDArray[np.int64]) -> list[Node]:
        """Lay out places that follow one another."""
        event = self.table.event
        there = [place for place in leaf.places if (event[place][:, which] >= 0).any()]
        found: list[Node] = []
        pending: Computing | None = None
        stretch: list[int] = []
        computed: dict[int, Computing] = {}
        lead: int | None = None  # point of what is computed right before a stretch of calls

        def close() -> None:
            nonlocal lead
            lead = None
            if stretch:
                found.extend(self.calls(tuple(stretch), which, dict(computed)))
                stretch.clear()
                computed.clear()

        for place in there:
            here = self.computing(place, which)
            if pending is not None:
                here, pending = merged(pending, here), None
            is_call = self.segment[place] >= 0
            inside = bool(stretch) and is_call and self.segment[stretch[-1]] == self.segment[place]
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
                found.append(self.work(here))
                lead = len(self.points) - 1
            if is_call:
                if stretch and self.segment[stretch[-1]] != self.segment[place]:
                    close()
                stretch.append(place)
                continue
            close()
            if self.structure.places[place].is_region:
                found.append(self.region(place, which))
            else:
                name = self._named(place)
                made, notes = meetings(self.structure, self.table, place, which, name)
                self.notes += notes
                found += made
        close()
        return found

    def computing(
        self, place: int, which: NDArray[np.int64], *, in_region: bool = False
    ) -> Computing:
        """What is computed at a place."""
        return at_place(
            self.table, self.times, place, which, in_region=in_region, counts=self.counts
        )

    def work(self, computing: Computing) -> Work:
        """Note what is computed before a place."""
        name = f"before {self._named(computing.place)}"
        return Work(name, self._point(computing, name, None))

    def region(self, place: int, which: NDArray[np.int64]) -> Work:
        """Note a parallel region."""
        computing = self.computing(place, which, in_region=True)
        name = self._named(place)
        return Work(name, self._point(computing, name, team(self.trace, self.structure, computing)))

    def calls(
        self, places: tuple[int, ...], which: NDArray[np.int64], computed: dict[int, Computing]
    ) -> list[Node]:
        """List point-to-point calls."""
        found = self.lists.rows(places, int(which[0]), tuple(computed), inside=True)
        if found.why:
            raise PopmodelError(f"{self.trace.path}: calls cannot be listed: {found.why}")
        exact = bool(np.isin(which, found.executions).all())
        if not exact:
            self.notes.append(
                f"executions of the calls from {self._named(places[0])} on differ: "
                "those that most are equal to are kept"
            )
        events = self.table.event
        in_order = [
            place
            for place in places
            if place in computed and self._computes(events[place][:, found.executions])
        ]
        points = {
            place: self._point(computed[place], f"before {self._named(place)}", None)
            for place in in_order
        }
        rows = _referring(found.calls, [points[place] for place in in_order])
        rows += self._received(places, int(which[0]))
        messages, volume, offsets = self._volume(places, which)
        first = self._named(places[0])
        name = first if len(places) == 1 else f"{first} to {self.structure.places[places[-1]].name}"
        processes = self.structure.program.processes
        if not messages:  # what was waited for is received elsewhere
            return [Work(self.labels[row["point"]], row["point"]) for row in rows if "point" in row]
        rows = tidy(rows, processes)
        return [Calls(name, tuple(rows), messages, volume, exact, places, offsets)]

    def behind(self) -> list[Node]:
        """What processes compute behind their last call."""
        after = self.times.after / 1e9
        if after.sum() < _TINY * self.all:
            return []
        event = np.full((len(after), 1), -1, dtype=np.int64)
        counts = None if self.counts is None else self.counts.after[:, None]
        computing = Computing(-1, False, event, after[:, None], instructions=counts)
        return [Work("at the end", self._point(computing, "behind the last call", None))]

    def _received(self, places: tuple[int, ...], execution: int) -> list[dict[str, Any]]:
        """Rows that receive what is sent at some places and received elsewhere in the run."""
        if not self.late.any():
            return []
        program, first = self.structure.program, self.structure.events.first
        rows: list[dict[str, Any]] = []
        for place in places:
            events = self.table.event[place][:, execution]
            for event in events[events >= 0].tolist():
                here = slice(int(first[event]), int(first[event + 1]))
                sends = np.isin(program.kind[here], (Op.SEND, Op.ISEND))
                message = program.target[here][sends]
                rows += [self._receive(one) for one in message[self.late[message]].tolist()]
        return rows

    def _receive(self, message: int) -> dict[str, Any]:
        """A row that receives one message."""
        told = self.structure.program.messages
        row = {
            "on": f"rank == {told.receiver[message]}",
            "do": "recv",
            "from": int(told.sender[message]),
            "bytes": int(told.size[message]),
        }
        return row | ({"tag": int(told.tag[message])} if self.table.needs_tags else {})

    def _computes(self, event: NDArray[np.int64]) -> bool:
        before = np.where(event >= 0, self.structure.events.before[event], 0.0)
        return bool(before.mean(axis=1).any())

    def _volume(
        self, places: tuple[int, ...], which: NDArray[np.int64]
    ) -> tuple[float, float, tuple[int, ...]]:
        """Messages and bytes of an execution, and how far they go."""
        program, events = self.structure.program, self.structure.events
        rows = np.concatenate([self.table.event[place][:, which].reshape(-1) for place in places])
        mine = np.zeros(len(events.first), dtype=np.int64)
        mine[rows[rows >= 0]] = 1
        operation = np.repeat(mine[:-1], np.diff(events.first)).astype(bool)
        sends = np.isin(program.kind, (Op.SEND, Op.ISEND)) & operation
        message = program.target[sends]
        told, processes = program.messages, program.processes
        size = told.size[message].astype(np.float64)
        away = (told.receiver[message].astype(np.int64) - told.sender[message]) % processes
        by_offset = np.bincount(away, size + 1, processes)
        by_offset[0] = 0  # to themselves
        order = np.argsort(-by_offset, kind="stable")[:_PARTNERS]
        offsets = tuple(int(one) for one in order if by_offset[one])
        signed = tuple(one if 2 * one <= processes else one - processes for one in offsets)
        return len(size) / len(which), float(size.sum()) / len(which), signed

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

    def _point(self, computing: Computing, label: str, threads: Team | None) -> int:
        self.points.append(computing)
        self.labels.append(label)
        self.words.append(self._word(computing))
        self.teams.append(threads)
        return len(self.points) - 1


def _repeated(name: str, count: int, body: list[Node]) -> list[Node]:
    return [Repeat(name, count, tuple(body))] if count > 1 and body else body


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
