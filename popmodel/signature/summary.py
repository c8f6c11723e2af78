"""Stretches of a program in summary: what is done in them how often, in no order.

A summary has one entry for each kind of thing that processes do together: collectives of one kind
in one communicator, messages, parallel regions; with how often, the mean bytes, and the mean
computing before it. Its messages are an exchange of all at once in which what a rank receives is
what its partner sends, so that they match whatever the run did. Small parts of a program, and lists
of messages that no execution repeats, are written so; loops and what takes time stay as they are.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from popmodel.errors import PopmodelError
from popmodel.signature.outline import (
    OutlineCalls,
    OutlineMeeting,
    OutlineRepeat,
    OutlineTeam,
    OutlineWork,
)
from popmodel.signature.toml import TomlItem, text_of
from popmodel.structure.rank_formulas import NOBODY, split
from popmodel.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from popmodel.signature.computing import Computing
    from popmodel.signature.outline import Node
    from popmodel.simulator import Program
    from popmodel.structure.structure import Structure

LINES = 300
"""Lines that a signature has at most, where summaries of what is small can do that."""
_SHARES = (1e-4, 3e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1)
"""Shares of the time of a run below which parts of it are summed up, the first that will do."""
_EVEN = 0.1
"""Relative spread of sizes of messages that are written as one, their mean."""
_PARTNERS = 6  # at most, of what stands for messages at another number of processes


# -- messages


def exchange(
    program: Program, sent: NDArray[np.int64], executions: int
) -> tuple[list[dict[str, Any]], bool]:
    """Return rows in which all messages go at once, and whether they say it by formulas.

    Messages are of so many executions. Processes whose partners are as far away send as many, of
    the mean size; where that is not alike, of their own mean.
    """
    messages, processes = program.messages, program.processes
    sender = messages.sender[sent].astype(np.int64)
    away = (messages.receiver[sent] - sender) % processes
    rows: list[dict[str, Any]] = []
    is_even = True
    for offset in np.unique(away).tolist():
        mine = away == offset
        number = np.bincount(sender[mine], minlength=processes)
        total = np.bincount(sender[mine], messages.size[sent[mine]].astype(np.float64), processes)
        ranks = np.flatnonzero(number)
        times = max(round(float(number[ranks].mean()) / executions), 1)
        size = np.rint(total / (executions * times)).astype(np.int64)
        receiver = (ranks + offset) % processes
        to, source = np.full((2, processes), NOBODY, dtype=np.int64)
        to[ranks], source[receiver] = receiver, ranks
        of_sender: Any = round(float(size[ranks].mean()))
        of_receiver = of_sender
        if size[ranks].std() > _EVEN * of_sender:
            is_even = False
            of_sender, of_receiver = size.tolist(), np.roll(size, offset).tolist()
        calls = [
            {"on": row.ranks, "do": do, key: row.formula, "bytes": each}
            for do, key, partner, each in (
                ("irecv", "from", source, of_receiver),
                ("isend", "to", to, of_sender),
            )
            for row in split(partner)
        ]
        for call in calls:
            on = np.flatnonzero(call["on"]).tolist()
            call["on"] = on
            if len(on) == processes:
                del call["on"]
        rows += calls if times == 1 else [{"repeat": times, "calls": calls}]
    return [*rows, {"do": "waitall"}], is_even


def by_frequency(
    program: Program, sent: NDArray[np.int64], executions: int
) -> Iterator[tuple[NDArray[np.int64], int]]:
    """Divide messages into those of pairs that have one most times, and others; how often each."""
    if not len(sent):
        return
    messages = program.messages
    pairs = messages.sender[sent].astype(np.int64) * program.processes + messages.receiver[sent]
    _, which, count = np.unique(pairs, return_inverse=True, return_counts=True)
    rare = 2 * count[which] < executions
    if not rare.all():
        yield sent[~rare], executions
    if rare.any():
        yield sent[rare], int(count[which][rare].max())


def offsets_of(program: Program, sent: NDArray[np.int64]) -> tuple[int, ...]:
    """How far messages go, modulo P, where most bytes do first."""
    messages, processes = program.messages, program.processes
    away = (messages.receiver[sent].astype(np.int64) - messages.sender[sent]) % processes
    by_offset = np.bincount(away, messages.size[sent] + 1.0, processes)
    by_offset[0] = 0  # to themselves
    order = np.argsort(-by_offset, kind="stable")[:_PARTNERS]
    offsets = (int(one) for one in order if by_offset[one])
    return tuple(one if 2 * one <= processes else one - processes for one in offsets)


def is_read(rows: Sequence[dict[str, Any]], processes: int) -> bool:
    """Whether a signature with a list of calls is read, and comes to its end."""
    timed = [_timed(row) for row in rows]
    item = TomlItem("messages", {"name": "calls", "calls": timed})
    return _is_read(text_of((), (), (item,)), processes)


@lru_cache(maxsize=256)
def _is_read(text: str, processes: int) -> bool:
    from popmodel.model.signatures import from_text
    from popmodel.signature.compare_replay import carried_out

    head = 'schema = "popmodel/signature/1"\n[app]\nname = "list"\n'
    try:
        carried_out(from_text(head + text), processes, 1)
    except PopmodelError:
        return False
    return True


def _timed(row: dict[str, Any]) -> dict[str, Any]:
    if "calls" in row:
        return {**row, "calls": [_timed(one) for one in row["calls"]]}
    return {"do": "compute", "seconds": 1e-6} if "point" in row else row


# -- parts of a program


class Parts(NamedTuple):
    """What was measured at the points of a program; summaries add to it."""

    points: list[Computing]
    labels: list[str]
    words: list[str]
    teams: list[OutlineTeam | None]


class Shortened(NamedTuple):
    """A program with summaries."""

    body: tuple[Node, ...]
    notes: tuple[str, ...]  # What they are of
    share: float  # Of the time that is in them


def shortened(body: tuple[Node, ...], parts: Parts, structure: Structure, limit: int) -> Shortened:
    """Sum up parts of a program that take least until it is short enough; drop unused points."""
    found = body
    summaries = _Summaries(parts, structure)
    if summaries.lines(body) > limit:
        for share in _SHARES:
            before = len(parts.points)
            for each in parts:
                del each[before:]
            summaries = _Summaries(parts, structure)
            found = tuple(summaries.of(body, share, 1, 1))
            if summaries.lines(found) <= limit:
                break
    share = summaries.summed / summaries.all
    return Shortened(_renumbered(found, parts), summaries.notes(), share)


class _Summaries:
    """Sums up the parts of a program."""

    def __init__(self, parts: Parts, structure: Structure) -> None:
        self.parts, self.structure = parts, structure
        events = structure.events
        in_calls = np.where(events.is_region, 0, events.end - events.begin) / 1e9
        self.called = np.bincount(structure.place, in_calls, len(structure.places))
        self.all = sum(point.total for point in parts.points) + float(self.called.sum()) or 1.0
        self.summed, self.count = 0.0, 0

    def notes(self) -> tuple[str, ...]:
        """Say how much is in summaries."""
        if not self.count:
            return ()
        return (
            f"{100 * self.summed / self.all:.2g} % of the time, in small parts, is in "
            f"{plural(self.count, 'summary', 'summaries')}: done as often, in no order",
        )

    # -- how long, and how many lines

    def time(self, node: Node) -> float:
        """Seconds of all processes in a node, calls of MPI included."""
        match node:
            case OutlineRepeat():
                return sum(map(self.time, node.body))
            case OutlineWork():
                return self.parts.points[node.point].total
            case OutlineMeeting():
                return float(self.called[node.place])
            case OutlineCalls():
                inside = sum(self.parts.points[point].total for point in points_of(node.rows))
                return inside + float(self.called[list(node.places)].sum())

    def lines(self, nodes: Sequence[Node]) -> int:
        """Lines that nodes take, about: an entry in a line or two, times in four and more."""
        total = 0
        for node in nodes:
            match node:
                case OutlineRepeat():
                    total += 3 + self.lines(node.body)
                case OutlineWork():
                    total += self._of_point(node.point)
                case OutlineMeeting():
                    total += 4
                case OutlineCalls():
                    total += 5 + sum(1 + str(row).count("\n") for row in node.rows)
                    total += sum(3 for _ in points_of(node.rows))
        return total

    def _of_point(self, point: int) -> int:
        return 8 + len(self.parts.points[point].seconds) // 10

    # -- summaries

    def of(self, nodes: Sequence[Node], share: float, times: int, length: int) -> Iterator[Node]:
        """Sum up what takes less than a share among nodes that are executed so many times."""
        small: list[Node] = []
        for node in nodes:
            if self.time(node) < share * self.all:
                small.append(node)
                continue
            yield from self._summary(small, times, length)
            small = []
            if isinstance(node, OutlineRepeat):
                inside = times * node.count
                if node.every:
                    turns, often = map(int, node.every.split("/"))
                    inside = inside // turns * often
                node = replace(node, body=tuple(self.of(node.body, share, inside, node.count)))
            yield node
        yield from self._summary(small, times, length)

    def _summary(self, nodes: list[Node], times: int, length: int) -> Iterator[Node]:
        before = len(self.parts.points)
        made = self._summed(nodes, times, length) if len(nodes) > 1 else nodes
        if self.lines(made) < self.lines(nodes):
            self.summed += sum(map(self.time, nodes))
            self.count += 1
            yield from made
            return
        for each in self.parts:
            del each[before:]
        yield from nodes

    def _summed(self, nodes: Sequence[Node], times: int, length: int) -> list[Node]:
        """Sites of some nodes: what is done together, how often, and what is computed before it."""
        sites: dict[tuple[Any, ...], _Site] = {}
        pending: list[int] = []
        for node in _flat(nodes):
            match node:
                case OutlineWork() if self.parts.teams[node.point] is None:
                    pending.append(node.point)
                    continue
                case OutlineWork():
                    key: tuple[Any, ...] = ("region",)
                case OutlineMeeting():
                    key = (node.op, node.comm, node.root)
                case OutlineCalls():
                    key = ("messages",)
                    pending += points_of(node.rows)
                case OutlineRepeat():
                    continue
            site = sites.setdefault(key, _Site([], []))
            site.nodes.append(node)
            if key != ("region",):
                site.before.extend(pending)
                pending = []
        if pending:
            sites[("rest",)] = _Site([], pending)
        often = {key: self._often(site, times) for key, site in sites.items()}
        # as many turns as what is done together most often; what is not in each is outside
        together = [often[key] for key in sites if key[0] not in ("region", "rest")]
        turns = max(round(max(together, default=1.0)), 1)
        inside: list[Node] = []
        found: list[Node] = []
        for key, site in sites.items():
            every, count = "", 1
            if often[key] < 1 < length:  # done in some turns of the loop around
                every = _every(length, often[key] * length)
                done = times // length * int(every.partition("/")[2] or length)
                found += self._site(site, done, every)
                continue
            if often[key] < turns:
                every = _every(turns, often[key])
                done = times * int(every.partition("/")[2] or turns)
            else:
                count = round(often[key] / turns)
                done = times * turns * count
            made = self._site(site, done, every)
            name = f"in summary {self.count + 1}"
            inside += made if count == 1 else [OutlineRepeat(name, count, tuple(made))]
        if turns == 1:
            return [*inside, *found]
        return [OutlineRepeat(f"summary {self.count + 1}", turns, tuple(inside)), *found]

    def _often(self, site: _Site, times: int) -> float:
        """How often something is done in one execution of the body around."""
        if not site.nodes:
            return 1.0
        executions = sum(self._executions(node) for node in site.nodes)
        if isinstance(site.nodes[0], OutlineCalls):  # no more than a pair of processes has messages
            messages = self.structure.program.messages
            sent = np.concatenate([node.sent for node in site.nodes])
            pairs = np.stack([messages.sender[sent], messages.receiver[sent]])
            executions = min(executions, int(np.unique(pairs, axis=1, return_counts=True)[1].max()))
        return executions / times

    def _executions(self, node: Node) -> int:
        if isinstance(node, OutlineWork):
            return self.parts.points[node.point].turns or 1
        assert not isinstance(node, OutlineRepeat)
        return node.times

    def _site(self, site: _Site, times: int, every: str) -> list[Node]:
        if not site.nodes:
            return [self._computed(site.before, "the rest of a summary", times, every)]
        first, many = site.nodes[0], len(site.nodes)
        name = first.name if many == 1 else f"{first.name} and {many - 1} others"
        if isinstance(first, OutlineWork):
            return [self._computed([node.point for node in site.nodes], name, times, every)]
        found: list[Node] = []
        if site.before:
            found.append(self._computed(site.before, f"before {name}", times, every))
        if isinstance(first, OutlineMeeting):
            done = [node.times for node in site.nodes]
            size = float(np.average([node.bytes for node in site.nodes], weights=done))
            return [*found, replace(first, name=name, bytes=size, times=times, every=every)]
        sent = np.concatenate([node.sent for node in site.nodes])
        rows, exact = exchange(self.structure.program, sent, times)
        sizes = self.structure.program.messages.size[sent].astype(np.float64)
        places = tuple(place for node in site.nodes for place in node.places)
        offsets = offsets_of(self.structure.program, sent)
        return [*found, OutlineCalls(
            name, tuple(rows), len(sent) / times, float(sizes.sum()) / times, sent, times, exact,
            places, every, offsets,
        )]  # fmt: skip

    def _in_time(self, event: NDArray[np.int64]) -> NDArray[np.int64]:
        """Order of executions, by how many events processes have passed before them."""
        there = event >= 0
        passed = np.where(there, event - self.structure.events.offsets[:-1, None], 0).sum(axis=0)
        count = there.sum(axis=0)
        mean = np.divide(passed, count, out=np.full(len(count), np.inf), where=count > 0)
        return np.argsort(mean, kind="stable")

    def _computed(self, numbers: Sequence[int], name: str, times: int, every: str) -> OutlineWork:
        """What is computed at several points, as one."""
        points = [self.parts.points[number] for number in numbers]
        teams = [team for number in numbers if (team := self.parts.teams[number]) is not None]
        event = np.concatenate([point.event for point in points], axis=1)
        order = self._in_time(event)

        def joined(tables: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
            return np.concatenate(tables, axis=1)[:, order]

        counts = [point.instructions for point in points]
        known = [count for count in counts if count is not None]
        self.parts.points.append(
            replace(
                points[-1],
                event=event[:, order],
                seconds=joined([point.seconds for point in points]),
                along=tuple(place for one in points for place in (*one.along, one.place))[:-1],
                instructions=joined(known) if len(known) == len(counts) else None,
                turns=times,
            )
        )
        self.parts.labels.append(name)
        self.parts.words.append(self.parts.words[numbers[0]])
        done = [point.turns or 1 for point in points]
        self.parts.teams.append(_together(teams, done, times) if teams else None)
        return OutlineWork(name, len(self.parts.points) - 1, every)


def _every(length: int, often: float) -> str:
    """``every`` of what is done so often in so many turns; empty for in each."""
    number = max(round(often), 1)
    return "" if number >= length else f"{length}/{number}"


class _Site(NamedTuple):
    """What processes do together in some places, and points of what they compute before."""

    nodes: list[Any]
    before: list[int]


def _flat(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        if isinstance(node, OutlineRepeat):
            yield from _flat(node.body)
        else:
            yield node


def points_of(rows: Sequence[dict[str, Any]]) -> Iterator[int]:
    """The points of the rows of a list that compute."""
    for row in rows:
        if "calls" in row:
            yield from points_of(row["calls"])
        elif "point" in row:
            yield row["point"]


def _together(teams: Sequence[OutlineTeam], done: Sequence[int], times: int) -> OutlineTeam:
    """What threads do in several regions, as one that is executed so many times."""
    table = np.array([(one.useful, one.useful * one.imbalance, one.overhead) for one in teams])
    idle = table[:, 1] + table[:, 2]
    waits = np.array([one.synchronisation for one in teams])
    weights = np.array(done)
    useful, uneven, overhead = weights @ table / times
    share = float(weights * idle @ waits / (weights @ idle)) if idle.any() else 0.0
    return OutlineTeam(
        float(useful), float(uneven / useful) if useful else 0.0, float(overhead), share
    )


def _renumbered(body: tuple[Node, ...], parts: Parts) -> tuple[Node, ...]:
    """Refer to points in order, without those that nothing refers to."""
    number: dict[int, int] = {}

    def of(point: int) -> int:
        return number.setdefault(point, len(number))

    def row_of(row: dict[str, Any]) -> dict[str, Any]:
        if "calls" in row:
            return {**row, "calls": [row_of(one) for one in row["calls"]]}
        return {**row, "point": of(row["point"])} if "point" in row else row

    def node_of(node: Node) -> Node:
        match node:
            case OutlineRepeat():
                return replace(node, body=tuple(map(node_of, node.body)))
            case OutlineWork():
                return replace(node, point=of(node.point))
            case OutlineCalls():
                return replace(node, rows=tuple(map(row_of, node.rows)))
            case OutlineMeeting():
                return node

    found = tuple(map(node_of, body))
    columns: tuple[list[Any], ...] = parts
    for values in columns:
        values[:] = [values[point] for point in number]
    return found
