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

from popmodel.patterns.calls import Call, Requests, Untold, calls_of
from popmodel.patterns.formulas import NOBODY, condition, split
from popmodel.patterns.table import Table, iterations, table
from popmodel.structure.nest import Leaf, Loop
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.structure.structure import Structure

__all__ = ["CallLists", "Rows", "rows"]

Row = dict[str, Any]
Node = Loop | Leaf


@dataclass(frozen=True)
class Rows:
    """A list of calls.

    Attributes
    ----------
    calls : list of dict
        Rows as in a signature's ``messages``. ``seconds`` of a row ``compute`` is a list with a
        value for each rank: the mean over `executions`.
    executions : int64[n]
        Which executions of the places do exactly these calls; `total` are all.
    total : int
        How often the places are passed.
    why : str
        Why there is no list, where `calls` is empty for that reason.
    """

    calls: list[Row]
    executions: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    total: int = 0
    why: str = ""

    @property
    def exact(self) -> bool:
        """Whether every execution does exactly these calls."""
        return not self.why and len(self.executions) == self.total


def rows(
    structure: Structure,
    places: Sequence[int],
    execution: int | None = None,
    compute: Collection[int] | None = None,
) -> Rows:
    """List the calls between some places; see `CallLists.rows`."""
    return CallLists(structure).rows(places, execution, compute)


class CallLists:
    """Lists the calls of a structure; made once for all of its places."""

    def __init__(self, structure: Structure, arranged: Table | None = None) -> None:
        self.structure = structure
        self.table = arranged or table(structure)

    def rows(
        self,
        places: Sequence[int],
        execution: int | None = None,
        compute: Collection[int] | None = None,
        *,
        inside: bool = False,
    ) -> Rows:
        """List the calls between some places.

        Parameters
        ----------
        places : sequence of int
            Numbers of places that follow one another in one body of the nest; of a loop all or
            none.
        execution : int, optional
            Which execution of the places is listed; by default one of those that most are equal to.
        compute : collection of int, optional
            Places before which the computing of a process is listed too; by default all.
        inside : bool
            Of the places of a whole loop: list one iteration of it, not all that it does.

        Returns
        -------
        Rows
            With `Rows.why` where such a list cannot say it: collectives and parallel regions among
            the places, calls of threads, requests that are open before or behind, or that are
            waited for in another order.

        Raises
        ------
        ValueError
            If the places are not of one body, or only a part of a loop within it.
        """
        program = self.structure.program
        if len(program.threads):
            return Rows([], why="threads call MPI on their own")
        nodes, total = _select(self.structure.nest, frozenset(places), 1, inside)
        same = self._same(nodes, total)
        if execution is None:
            execution = int(np.argmax(same == np.bincount(same).argmax()))
        alike = np.flatnonzero(same == same[execution])
        wanted = frozenset(places if compute is None else compute)
        alike = np.concatenate([[execution], alike[alike != execution]])
        requests = Requests.none(program.processes)
        try:
            calls = self._body(nodes, total, alike, requests, wanted)
            requests.check_none()
        except Untold as reason:
            return Rows([], np.sort(alike), total, str(reason))
        return Rows(calls, np.sort(alike), total)

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
        loop: Loop,
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
        done: dict[int, list[Call]] = {
            int(rank): calls_of(self.structure, self.table, int(events[rank]), requests)
            for rank in np.flatnonzero(events >= 0)
        }
        found: list[Row] = []
        for turn in range(max(map(len, done.values()), default=0)):
            now = {rank: calls[turn] for rank, calls in done.items() if turn < len(calls)}
            found += _turn(now, requests, len(events))
        return found


def _turn(calls: dict[int, Call], requests: Requests, processes: int) -> list[Row]:
    """Rows of calls that ranks do at the same turn, one each."""
    if any(call.do == "sendrecv" for call in calls.values()):
        both = {"send": "sendrecv", "recv": "sendrecv"}
        calls = {rank: call.named(both.get(call.do, call.do)) for rank, call in calls.items()}
    everybody, found = range(processes), list[Row]()
    for do in dict.fromkeys(call.do for call in calls.values()):
        mine = {rank: call for rank, call in calls.items() if call.do == do}
        if do in ("wait", "waitall"):
            ranks = np.zeros(processes, bool)
            ranks[list(mine)] = True
            idle = [
                ranks[rank] or (rank not in calls and requests.idle(rank)) for rank in everybody
            ]
            on = "" if do == "waitall" and all(idle) else condition(ranks)
            found.append({**_on(on), "do": do})
            continue
        for amount in dict.fromkeys(call.amount for call in mine.values()):
            some = {rank: call for rank, call in mine.items() if call.amount == amount}
            found += _partners(do, some, amount, processes)
    return found


def _partners(
    do: str, calls: dict[int, Call], amount: tuple[int | None, int | None], processes: int
) -> Iterator[Row]:
    """Rows of calls that differ in nothing but their partners."""
    to, source = (np.full(processes, NOBODY, np.int64) for _ in range(2))
    for rank, call in calls.items():
        to[rank], source[rank] = call.to, call.source
    size, tag = amount
    rest: Row = {} if size is None else {"bytes": size}
    rest |= {} if tag is None else {"tag": tag}
    if do != "sendrecv":
        key, partner = ("to", to) if do in ("send", "isend") else ("from", source)
        for row in split(partner, free=True):
            yield {**_on(condition(row.ranks)), "do": do, key: row.formula, **rest}
        return
    goals, sources = split(to, free=True), split(source, free=True)
    if len(goals) == len(sources) == 1 and goals[0].ranks.all() and sources[0].ranks.all():
        yield {"do": do, "to": goals[0].formula, "from": sources[0].formula, **rest}
        return
    lonely = [("recv", "from", np.where(to < 0, source, NOBODY))]
    lonely += [("send", "to", np.where(source < 0, to, NOBODY))]
    for goal in split(np.where(source >= 0, to, NOBODY)):
        for row in split(np.where(goal.ranks, source, NOBODY)):
            on = _on(condition(row.ranks))
            yield {**on, "do": do, "to": goal.formula, "from": row.formula, **rest}
    for name, key, partner in lonely:
        for row in split(partner):
            yield {**_on(condition(row.ranks)), "do": name, key: row.formula, **rest}


def _on(text: str) -> Row:
    return {"on": text} if text else {}


def _select(
    nodes: Sequence[Node], places: frozenset[int], executions: int, inside: bool
) -> tuple[list[Node], int]:
    """The nodes of one body that hold exactly some places, and how often the body is executed."""
    for node in nodes:
        if isinstance(node, Loop):
            held = _places(node)
            if places < held or (inside and places == held):
                # a loop that is all of another's body is that body's only node
                deeper = inside and any(_places(inner) == places for inner in node.body)
                executions = int(iterations(node, executions)[-1])
                return _select(node.body, places, executions, inside and deeper)
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
