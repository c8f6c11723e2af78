"""A list of calls that replays what processes do between some places, as signatures write it.

The calls of all processes at a place become as few rows as formulas allow: who takes part
(``on``), what is done (``do``), with whom (``to``, ``from``), how much (``bytes``). What a loop
does the same each time is written once, with ``repeat``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.patterns.calls import PatternCall, Requests, Untold, calls_of
from popmodel.patterns.formulas import NOBODY, split, who
from popmodel.patterns.table import PatternTable, iterations, table
from popmodel.structure.nest import FoundLoop, Leaf
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.structure.structure import Structure

Row = dict[str, Any]
Node = FoundLoop | Leaf

_ROWS = 4
"""Rows of one call at most; beyond it the partners of all ranks are listed."""


@dataclass(frozen=True)
class CallRows:
    """A list of calls."""

    # Rows as in a signature's ``messages``: ``on`` is a condition or a list of ranks; ``to``,
    # ``from`` and ``bytes`` are formulas or numbers, or where these would be many a list with a
    # value for each rank (a partner of -1 is none). ``seconds`` of a row ``compute`` is such a
    # list: the mean over `executions`.
    calls: list[Row]
    # int64[n]: Which executions of the places do exactly these calls; `total` are all.
    executions: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    total: int = 0  # How often the places are passed
    why: str = ""  # Why there is no list, where `calls` is empty for that reason

    @property
    def exact(self) -> bool:
        """Whether every execution does exactly these calls."""
        return not self.why and len(self.executions) == self.total


def rows(
    structure: Structure,
    places: Sequence[int],
    execution: int | None = None,
    compute: Collection[int] | None = None,
) -> CallRows:
    """List the calls between some places; see `CallLists.rows`."""
    return CallLists(structure).rows(places, execution, compute)


class CallLists:
    """Lists the calls of a structure; made once for all of its places."""

    def __init__(self, structure: Structure, arranged: PatternTable | None = None) -> None:
        self.structure = structure
        self.table = arranged or table(structure)

    def rows(
        self,
        places: Sequence[int],
        execution: int | None = None,
        compute: Collection[int] | None = None,
    ) -> CallRows:
        """List the calls between some places."""
        nodes, total = _select(self.structure.nest, frozenset(places), 1)
        wanted = frozenset(places if compute is None else compute)
        return self.of(nodes, total, wanted, execution)

    def of(
        self,
        nodes: Sequence[Node],
        total: int,
        compute: frozenset[int],
        execution: int | None = None,
        among: NDArray[np.int64] | None = None,
    ) -> CallRows:
        """List the calls of nodes of a body: of an execution, or what most (of some) do."""
        program = self.structure.program
        if len(program.threads):
            return CallRows([], why="threads call MPI on their own")
        same = self._same(nodes, total)
        if execution is None:
            known = same if among is None else same[among]
            execution = int(np.argmax(same == np.bincount(known).argmax()))
        alike = np.flatnonzero(same == same[execution])
        alike = np.concatenate([[execution], alike[alike != execution]])
        requests = Requests.none(program.processes)
        try:
            calls = self._body(nodes, total, alike, requests, compute)
            requests.check_none()
        except Untold as reason:
            return CallRows([], np.sort(alike), total, str(reason))
        return CallRows(calls, np.sort(alike), total)

    def _same(self, nodes: Sequence[Node], executions: int) -> NDArray[np.int64]:
        """A number for each execution of some nodes, equal where all processes do the same."""
        columns = []
        for node in nodes:
            if isinstance(node, Leaf):
                columns += [self.table.same[place] for place in node.places]
            else:
                first = iterations(node, executions)
                columns.append(_runs_alike(self._same(node.body, int(first[-1])), first))
        numbers: dict[tuple[int, ...], int] = {}
        stacked = np.stack(columns, axis=1) if columns else np.zeros((executions, 1), np.int64)
        return np.array([numbers.setdefault(tuple(row), len(numbers)) for row in stacked.tolist()])

    def _body(
        self,
        nodes: Sequence[Node],
        executions: int,
        alike: NDArray[np.int64],
        requests: Requests,
        compute: frozenset[int],
    ) -> list[Row]:
        """Rows of some nodes: the first of executions that are alike, the mean of their times."""
        found: list[Row] = []
        for node in nodes:
            if isinstance(node, Leaf):
                for place in node.places:
                    if place in compute:
                        found += self._computing(place, alike)
                    found += self._place(place, int(alike[0]), requests)
            else:
                found += self._loop(node, executions, alike, requests, compute)
        return found

    def _loop(
        self,
        loop: FoundLoop,
        executions: int,
        alike: NDArray[np.int64],
        requests: Requests,
        compute: frozenset[int],
    ) -> list[Row]:
        first = iterations(loop, executions)
        total = int(first[-1])
        same = self._same(loop.body, total)
        begin, end = int(first[alike[0]]), int(first[alike[0] + 1])
        found: list[Row] = []
        for start, stop in _runs(same[begin:end]):
            each = (first[alike][:, None] + np.arange(start, stop)).T  # iterations x executions
            before = requests.copy()
            calls = self._body(loop.body, total, each.ravel(), requests, compute)
            if requests.opened == before.opened:
                found += [{"repeat": stop - start, "calls": calls}] if stop - start > 1 else calls
            else:  # an iteration leaves requests to the next
                requests.reset(before)
                for iteration in each:
                    found += self._body(loop.body, total, iteration, requests, compute)
        return found

    def _computing(self, place: int, alike: NDArray[np.int64]) -> Iterator[Row]:
        events = self.table.event[place][:, alike]
        before = np.where(events >= 0, self.structure.events.before[events], 0.0)
        seconds = before.mean(axis=1) / 1e9
        if seconds.any():
            yield {"do": "compute", "seconds": seconds.tolist()}

    def _place(self, place: int, execution: int, requests: Requests) -> list[Row]:
        """Rows of one place."""
        events = self.table.event[place][:, execution]
        done: dict[int, list[PatternCall]] = {
            int(rank): calls_of(self.structure, self.table, int(events[rank]), requests)
            for rank in np.flatnonzero(events >= 0)
        }
        found: list[Row] = []
        for turn in range(max(map(len, done.values()), default=0)):
            now = {rank: calls[turn] for rank, calls in done.items() if turn < len(calls)}
            found += _turn(now, requests, len(events))
        return found


def _turn(calls: dict[int, PatternCall], requests: Requests, processes: int) -> list[Row]:
    """Rows of calls that ranks do at the same turn, one each."""
    if any(call.do == "sendrecv" for call in calls.values()):
        both = {"send": "sendrecv", "recv": "sendrecv"}
        calls = {rank: call.named(both.get(call.do, call.do)) for rank, call in calls.items()}
    found: list[Row] = []
    for do in dict.fromkeys(call.do for call in calls.values()):
        mine = {rank: call for rank, call in calls.items() if call.do == do}
        if do == "waitall":
            found.append({**_on(_all_idle(mine, calls, requests, processes)), "do": do})
        elif do == "wait":
            for request in dict.fromkeys(call.request for call in mine.values()):
                ranks = np.zeros(processes, bool)
                ranks[[rank for rank, call in mine.items() if call.request == request]] = True
                which: Row = {"request": request} if request else {}
                found.append({**_on(ranks), "do": do, **which})
        else:
            found += _messages(do, mine, processes)
    return found


def _all_idle(
    mine: dict[int, PatternCall], calls: dict[int, PatternCall], requests: Requests, processes: int
) -> NDArray[np.bool_]:
    """Ranks that wait for all requests: all, if those that do not wait have none open."""
    ranks = np.zeros(processes, bool)
    ranks[list(mine)] = True
    idle = [ranks[rank] or (rank not in calls and requests.idle(rank)) for rank in range(processes)]
    return np.ones(processes, bool) if all(idle) else ranks


def _messages(do: str, calls: dict[int, PatternCall], processes: int) -> Iterator[Row]:
    """Rows of calls that send, receive or do both."""
    to, source, size, tag = (np.full(processes, NOBODY, np.int64) for _ in range(4))
    for rank, call in calls.items():
        to[rank], source[rank] = call.to, call.source
        size[rank] = NOBODY if call.size is None else call.size
        tag[rank] = NOBODY if call.tag is None else call.tag
    amounts = list(dict.fromkeys(call.amount for call in calls.values()))
    made: list[Row] = []
    for amount in amounts:
        ranks = np.zeros(processes, bool)
        ranks[[rank for rank, call in calls.items() if call.amount == amount]] = True
        rest: Row = {} if amount[0] is None else {"bytes": amount[0]}
        rest |= {} if amount[1] is None else {"tag": amount[1]}
        goals, sources = (np.where(ranks, each, NOBODY) for each in (to, source))
        made += [{**row, **rest} for row in _partners(do, goals, sources)]
    if len(made) <= _ROWS:
        yield from made
        return
    # many rows tell less than what each rank does
    taking = np.zeros(processes, bool)
    taking[list(calls)] = True
    listed: Row = {**(_on(taking) if do in ("isend", "irecv") else {}), "do": do}
    listed |= {"to": to.tolist()} if do != "recv" and do != "irecv" else {}
    listed |= {"from": source.tolist()} if do != "send" and do != "isend" else {}
    listed["bytes"] = amounts[0][0] if np.ptp(size[size >= 0]) == 0 else size.clip(0).tolist()
    if (tag >= 0).any():
        listed["tag"] = int(tag.max()) if np.ptp(tag[tag >= 0]) == 0 else tag.clip(0).tolist()
    yield listed


def _partners(do: str, to: NDArray[np.int64], source: NDArray[np.int64]) -> Iterator[Row]:
    """Rows of calls that differ in nothing but their partners."""
    if do != "sendrecv":
        key, partner = ("to", to) if do in ("send", "isend") else ("from", source)
        # a request without a partner would be open all the same
        for row in split(partner, free=do in ("send", "recv")):
            yield {**_on(row.ranks), "do": do, key: row.formula}
        return
    goals, sources = split(to, free=True), split(source, free=True)
    if len(goals) == len(sources) == 1 and goals[0].ranks.all() and sources[0].ranks.all():
        yield {"do": do, "to": goals[0].formula, "from": sources[0].formula}
        return
    for goal in split(np.where(source >= 0, to, NOBODY)):
        for row in split(np.where(goal.ranks, source, NOBODY)):
            yield {**_on(row.ranks), "do": do, "to": goal.formula, "from": row.formula}
    for row in split(np.where(to < 0, source, NOBODY)):
        yield {**_on(row.ranks), "do": "recv", "from": row.formula}
    for row in split(np.where(source < 0, to, NOBODY)):
        yield {**_on(row.ranks), "do": "send", "to": row.formula}


def _on(ranks: NDArray[np.bool_]) -> Row:
    """Who carries a call out: a condition, or a list of ranks where there is none."""
    text = who(ranks)
    return {"on": text} if text else {}


def _select(
    nodes: Sequence[Node], places: frozenset[int], executions: int
) -> tuple[list[Node], int]:
    """The nodes of one body that hold exactly some places, and how often the body is executed."""
    for node in nodes:
        if isinstance(node, FoundLoop) and places < _places(node):
            return _select(node.body, places, int(iterations(node, executions)[-1]))
    found: list[Node] = []
    taken: set[int] = set()
    for node in nodes:
        mine = _places(node) & places
        if not mine:
            continue
        if isinstance(node, Leaf):
            found.append(Leaf(tuple(place for place in node.places if place in places)))
        elif mine == _places(node):
            found.append(node)
        taken |= mine if isinstance(node, Leaf) or mine == _places(node) else set()
    if not places or taken != places:
        raise ValueError("the places are not those of one body of the nest")
    return found, executions


def _places(node: Node) -> frozenset[int]:
    if isinstance(node, Leaf):
        return frozenset(node.places)
    return frozenset[int]().union(*(_places(inner) for inner in node.body))


def _runs(numbers: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Stretches of equal numbers, as first and behind the last."""
    edges = np.flatnonzero(np.diff(numbers)) + 1
    bounds = [0, *edges.tolist(), len(numbers)]
    return [(a, b) for a, b in pairwise(bounds) if b > a]


def _runs_alike(same: NDArray[np.int64], first: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for each execution of a loop, equal where its iterations are."""
    numbers: dict[bytes, int] = {}
    return np.array(
        [
            numbers.setdefault(same[a:b].tobytes(), len(numbers))
            for a, b in zip(first[:-1].tolist(), first[1:].tolist(), strict=True)
        ],
        dtype=np.int64,
    )
