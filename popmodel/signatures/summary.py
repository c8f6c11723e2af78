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

from popmodel.base.errors import PopmodelError
from popmodel.base.units import plural
from popmodel.signatures.document import TomlItem, text_of
from popmodel.signatures.outline import (
    OutlineCalls,
    OutlineMeeting,
    OutlineRepeat,
    OutlineTeam,
    OutlineWork,
    paths,
    points_of,
    row_points,
)
from popmodel.structure.rank_formulas import NOBODY, split

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from popmodel.signatures.outline import Node, OutlinePoint
    from popmodel.simulator import Program
    from popmodel.structure.structure import Structure

    Whole = NDArray[np.int64]
    Sent = NDArray[np.int32]

LINES = 300  # of a signature at most, where summaries of what is small can do that
_SHARES = (5e-4, 2e-3, 1e-2, 5e-2, 0.2)  # of all time: what is small, the first that will do
_EVEN = 0.1  # relative spread of sizes of messages that are written as one, their mean
_PARTNERS = 6  # at most, of what stands for messages at another number of processes


# -- messages


def exchange(
    program: Program,
    name: str,
    sent: Sent,
    times: int,
    places: tuple[int, ...],
    every: str,
    rows: Sequence[dict[str, Any]] | None = None,
) -> OutlineCalls:
    """Note what is exchanged in some executions: as rows say, else all messages at once."""
    is_exact = True
    if rows is None:
        rows, is_exact = exchange_rows(program, sent, times)
    size = float(program.messages.size[sent].sum())
    return OutlineCalls(
        name, tuple(rows), len(sent) / times, size / times, sent, times, is_exact, places, every,
        _offsets(program, sent),
    )  # fmt: skip


def exchange_rows(
    program: Program, sent: Sent, executions: int
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
        calls: list[dict[str, Any]] = []
        for do, key, partner, each in (
            ("irecv", "from", source, of_receiver),
            ("isend", "to", to, of_sender),
        ):
            for row in split(partner):
                on = np.flatnonzero(row.ranks).tolist()
                call = {"do": do, key: row.formula, "bytes": each}
                calls.append(call if len(on) == processes else {"on": on, **call})
        rows += calls if times == 1 else [{"repeat": times, "calls": calls}]
    return [*rows, {"do": "waitall"}], is_even


def by_frequency(program: Program, sent: Sent, executions: int) -> Iterator[tuple[Sent, int]]:
    """Divide messages into those of pairs that have one most times, and others; how often each."""
    if not len(sent):
        return
    count = _per_pair(program, sent)
    rare = 2 * count < executions
    if not rare.all():
        yield sent[~rare], executions
    if rare.any():
        yield sent[rare], int(count[rare].max())


def _per_pair(program: Program, sent: Sent) -> Whole:
    """How many of some messages the pair of processes of each has."""
    messages = program.messages
    pairs = messages.sender[sent].astype(np.int64) * program.processes + messages.receiver[sent]
    _, which, count = np.unique(pairs, return_inverse=True, return_counts=True)
    return np.asarray(count[which], dtype=np.int64)


def _offsets(program: Program, sent: Sent) -> tuple[int, ...]:
    """How far messages go, modulo P, where most bytes do first."""
    messages, processes = program.messages, program.processes
    away = (messages.receiver[sent].astype(np.int64) - messages.sender[sent]) % processes
    by_offset = np.bincount(away, messages.size[sent] + 1.0, processes)
    by_offset[0] = 0  # to themselves
    order = np.argsort(-by_offset, kind="stable")[:_PARTNERS].tolist()
    offsets = (offset for offset in order if by_offset[offset])
    return tuple(away if 2 * away <= processes else away - processes for away in offsets)


def is_read(rows: Sequence[dict[str, Any]], processes: int) -> bool:
    """Whether a signature with a list of calls is read, and comes to its end."""
    item = TomlItem("messages", {"name": "calls", "calls": [_timed(row) for row in rows]})
    return _is_read(text_of((), (), (item,)), processes)


@lru_cache(maxsize=256)
def _is_read(text: str, processes: int) -> bool:
    from popmodel.model.signatures import from_text
    from popmodel.signatures.compare_replay import carried_out

    head = 'schema = "popmodel/signature/1"\n[app]\nname = "list"\n'
    try:
        carried_out(from_text(head + text), processes, 1)
    except PopmodelError:
        return False
    return True


def _timed(row: dict[str, Any]) -> dict[str, Any]:
    if "calls" in row:
        return {**row, "calls": [_timed(call) for call in row["calls"]]}
    return {"do": "compute", "seconds": 1e-6} if "point" in row else row


# -- parts of a program


def shortened(
    body: tuple[Node, ...], points: Sequence[OutlinePoint], structure: Structure, limit: int
) -> tuple[tuple[Node, ...], list[OutlinePoint], tuple[str, ...], float]:
    """Sum up parts of a program that take least until it is short enough.

    The program with summaries, the points that are in it, what summaries are of, and the share of
    the time that is in them.
    """
    found = body
    summaries = _Summaries(body, points, structure)
    if summaries.lines(body) > limit:
        for share in _SHARES:
            summaries = _Summaries(body, points, structure)
            found = tuple(summaries.of(body, share, 1, 1))
            if summaries.lines(found) <= limit:
                break
    notes: tuple[str, ...] = ()
    if summaries.count:
        notes = (
            f"{100 * summaries.summed / summaries.all:.2g} % of the time, in small parts, is in "
            f"{plural(summaries.count, 'summary', 'summaries')}: done as often, in no order",
        )
    found, kept = _renumbered(found, summaries.points)
    return found, kept, notes, summaries.summed / summaries.all


class _Site(NamedTuple):
    """What processes do together in some places, and points of what they compute before."""

    nodes: list[Any]
    before: list[int]


class _Summaries:
    """Sums up the parts of a program."""

    def __init__(
        self, body: Sequence[Node], points: Sequence[OutlinePoint], structure: Structure
    ) -> None:
        self.points, self.structure = [*points], structure
        events, places = structure.events, len(structure.places)
        in_calls = np.where(events.is_region, 0, events.end - events.begin) / 1e9
        called = np.bincount(structure.place, in_calls, places)
        self.all = sum(point.total for point in points) + float(called.sum()) or 1.0
        # of calls at a place that are several nodes, each has its part
        nodes = [place for _, node in paths(body) for place in _places_of(node)]
        self.called = called / np.maximum(
            np.bincount(np.array(nodes, np.int64), minlength=places), 1
        )
        self.summed, self.count = 0.0, 0

    # -- how long, and how many lines

    def time(self, node: Node) -> float:
        """Seconds of all processes in a node, calls of MPI included."""
        if isinstance(node, OutlineRepeat):
            return sum(map(self.time, node.body))
        called = float(self.called[np.array(_places_of(node), np.int64)].sum())
        return sum(self.points[point].total for point in points_of(node)) + called

    def lines(self, nodes: Sequence[Node]) -> int:
        """Lines that nodes take, about: an entry in a line or two, times in four and more."""
        total = 0
        for _, node in paths(nodes):
            match node:
                case OutlineRepeat():
                    total += 3
                case OutlineWork():
                    total += 8 + len(self.points[node.point].seconds) // 10
                case OutlineMeeting():
                    total += 4
                case OutlineCalls():
                    total += 5 + sum(1 + str(row).count("\n") for row in node.rows)
                    total += sum(3 for _ in points_of(node))
        return total

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

    def _summary(self, nodes: list[Node], times: int, length: int) -> list[Node]:
        """A summary of some nodes, if it is shorter than they are."""
        before = len(self.points)
        made = self._summed(nodes, times, length) if len(nodes) > 1 else nodes
        if self.lines(made) < self.lines(nodes):
            self.summed += sum(map(self.time, nodes))
            self.count += 1
            return made
        del self.points[before:]
        return nodes

    def _summed(self, nodes: Sequence[Node], times: int, length: int) -> list[Node]:
        """Sites of some nodes: what is done together, how often, and what is computed before it."""
        sites: dict[tuple[Any, ...], _Site] = {}
        pending: list[int] = []
        for _, node in paths(nodes):
            key: tuple[Any, ...]
            match node:
                case OutlineRepeat():
                    continue
                case OutlineWork() if self.points[node.point].team is None:
                    pending.append(node.point)
                    continue
                case OutlineWork():
                    sites.setdefault(("region",), _Site([], [])).nodes.append(node)
                    continue
                case OutlineMeeting():
                    key = (node.op, node.comm, node.root)
                case OutlineCalls():
                    key = ("messages",)
                    pending += row_points(node.rows)
            site = sites.setdefault(key, _Site([], []))
            site.nodes.append(node)
            site.before.extend(pending)
            pending = []
        if pending:
            sites["rest",] = _Site([], pending)
        often = {key: self._often(site, times) for key, site in sites.items()}
        # as many turns as what is done together most often; what is not in each is outside
        together = [often[key] for key in sites if key[0] not in ("region", "rest")]
        turns = max(round(max(together, default=1.0)), 1)
        inside: list[Node] = []
        outside: list[Node] = []
        for key, site in sites.items():
            every, count = "", 1
            if often[key] < 1 < length:  # done in some turns of the loop around
                every = _every(length, often[key] * length)
                done = times // length * int(every.partition("/")[2] or length)
                outside += self._site(site, done, every)
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
        if turns > 1:
            inside = [OutlineRepeat(f"summary {self.count + 1}", turns, tuple(inside))]
        return [*inside, *outside]

    def _often(self, site: _Site, times: int) -> float:
        """How often something is done in one execution of the body around."""
        if not site.nodes:
            return 1.0
        if isinstance(site.nodes[0], OutlineWork):
            executions = sum(self.points[node.point].turns or 1 for node in site.nodes)
        else:
            executions = sum(node.times for node in site.nodes)
        if isinstance(site.nodes[0], OutlineCalls):  # no more than a pair of processes has messages
            sent = np.concatenate([node.sent for node in site.nodes])
            executions = min(executions, int(_per_pair(self.structure.program, sent).max()))
        return executions / times

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
        places = tuple(place for node in site.nodes for place in node.places)
        return [*found, exchange(self.structure.program, name, sent, times, places, every)]

    def _computed(self, numbers: Sequence[int], name: str, times: int, every: str) -> OutlineWork:
        """What is computed at several points, as one."""
        points = [self.points[number] for number in numbers]
        event = np.concatenate([point.event for point in points], axis=1)
        there = event >= 0  # in order of time, by how many events processes have passed before
        passed = np.where(there, event - self.structure.events.offsets[:-1, None], 0).sum(axis=0)
        count = there.sum(axis=0)
        mean = np.divide(passed, count, out=np.full(len(count), np.inf), where=count > 0)
        order = np.argsort(mean, kind="stable")
        counts = [point.instructions for point in points if point.instructions is not None]
        self.points.append(
            replace(
                points[-1],
                event=event[:, order],
                seconds=np.concatenate([point.seconds for point in points], axis=1)[:, order],
                along=tuple(place for one in points for place in (*one.along, one.place))[:-1],
                instructions=sum(counts) if len(counts) == len(points) else None,
                turns=times,
                label=name,
                name=points[0].name,
                team=_team_of(points, times),
            )
        )
        return OutlineWork(name, len(self.points) - 1, every)


def _places_of(node: Node) -> list[int]:
    """Where a node calls MPI."""
    if isinstance(node, OutlineMeeting):
        return [node.place]
    return [*node.places] if isinstance(node, OutlineCalls) else []


def _every(length: int, often: float) -> str:
    """``every`` of what is done so often in so many turns; empty for in each."""
    number = max(round(often), 1)
    return "" if number >= length else f"{length}/{number}"


def _team_of(points: Sequence[OutlinePoint], times: int) -> OutlineTeam | None:
    """What threads do in several regions, as one that is executed so many times."""
    teams = [point.team for point in points if point.team is not None]
    if not teams:
        return None
    table = np.array([(one.useful, one.useful * one.imbalance, one.overhead) for one in teams])
    idle = table[:, 1] + table[:, 2]
    waits = np.array([one.synchronisation for one in teams])
    weights = np.array([point.turns or 1 for point in points])
    useful, uneven, overhead = weights @ table / times
    share = float(weights * idle @ waits / (weights @ idle)) if idle.any() else 0.0
    return OutlineTeam(
        float(useful), float(uneven / useful) if useful else 0.0, float(overhead), share
    )


def _renumbered(
    body: tuple[Node, ...], points: Sequence[OutlinePoint]
) -> tuple[tuple[Node, ...], list[OutlinePoint]]:
    """Refer to points in order, without those that nothing refers to, and let messages go."""
    number: dict[int, int] = {}

    def of(point: int) -> int:
        return number.setdefault(point, len(number))

    def row_of(row: dict[str, Any]) -> dict[str, Any]:
        if "calls" in row:
            return {**row, "calls": [row_of(call) for call in row["calls"]]}
        return {**row, "point": of(row["point"])} if "point" in row else row

    def node_of(node: Node) -> Node:
        match node:
            case OutlineRepeat():
                return replace(node, body=tuple(map(node_of, node.body)))
            case OutlineWork():
                return replace(node, point=of(node.point))
            case OutlineCalls():
                return replace(node, rows=tuple(map(row_of, node.rows)), sent=node.sent[:0].copy())
            case OutlineMeeting():
                return node

    made = tuple(map(node_of, body))
    return made, [points[point] for point in number]
