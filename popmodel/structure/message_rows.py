"""Lists of calls that replay what processes do at some places, as signatures write them.

The events of a run become numbers that are equal where a process does the same with the same
partners: so executions of places are compared without looking at their operations again. The calls
of all processes at a place become as few rows as formulas allow: who takes part (``on``), what is
done (``do``), with whom (``to``, ``from``), how much (``bytes``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from popmodel.base.arrays import alike
from popmodel.simulator.program import Op
from popmodel.structure.rank_formulas import NOBODY, split, who
from popmodel.structure.structure import loops_around

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator.program import Program
    from popmodel.structure.structure import Structure

Row = dict[str, Any]

_ROWS = 4
"""Rows of one call at most; beyond it the partners of all ranks are listed."""
_NONE = -1
"""No event: a process that passes a place without doing anything there."""
_SENDS = Op.SEND, Op.ISEND
_WAITS = Op.WAIT_RECEIVE, Op.WAIT_SEND


class CallRows(NamedTuple):
    """A list of calls."""

    # Rows as in a signature's ``messages``: ``on`` is a condition or a list of ranks; ``to``,
    # ``from`` and ``bytes`` are formulas or numbers, or where these would be many a list with a
    # value for each rank (a partner of -1 is none). ``seconds`` of a row ``compute`` is such a
    # list: the mean over `executions`.
    calls: list[Row]
    executions: NDArray[np.int64]  # int64[n]: Which executions of the places do exactly these calls
    why: str = ""  # Why there is no list, where `calls` is empty for that reason


class PatternCall(NamedTuple):
    """What one process does."""

    do: str  # As in signatures: send, recv, isend, irecv, sendrecv, wait, waitall
    # Partners; -1 for none.
    to: int = NOBODY
    source: int = NOBODY
    # Bytes of the message that is sent, else received; and its tag, where it matters.
    size: int | None = None
    tag: int | None = None
    request: int = 0  # Of a wait: which of the open requests, from the oldest


class Unlisted(Exception):
    """Why calls cannot be listed."""


def _numbered_columns(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for each column, equal where the columns are."""
    if len(rows) <= rows.shape[1]:
        return alike(*rows)[1]
    # Few executions on many processes: to go through them process by process takes far longer.
    numbers: dict[bytes, int] = {}
    return np.array(
        [numbers.setdefault(column.tobytes(), len(numbers)) for column in rows.T], np.int64
    )


class PlaceTable:
    """Events of a structure by place, execution and sequence, and the calls in them as lists.

    Attributes
    ----------
    event : list of int32[S, n]
        For each place the event of each sequence at each of its n executions; -1 for none.
    same : list of int64[n]
        For each place a number for each execution, equal where all sequences do the same.
    needs_tags : bool
        Whether a process takes messages of another in another order than they are sent in.
    """

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        program, events = structure.program, structure.events
        # Behind those of the events what stands for none, which is the last.
        token = np.append(_tokens(program, events.first, events.is_region), _NONE)
        sequence = events.sequence
        self.event: list[NDArray[np.int32]] = []
        self.same: list[NDArray[np.int64]] = []
        around, sequences = loops_around(structure.nest), len(events.offsets) - 1
        times = [int(path[-1].first[-1]) if path else 1 for path in around]
        # One long array, of which those of places are parts: it may lie in a file.
        ends = sequences * np.cumsum(times)
        together = np.full(int(ends[-1]) if len(ends) else 0, _NONE, np.int32)
        for rows, passes, end in zip(structure.rows, times, ends, strict=True):
            here = together[end - sequences * passes : end].reshape(sequences, passes)
            here[sequence[rows], structure.execution[rows]] = rows
            self.event.append(here)
            self.same.append(_numbered_columns(token[here]))
        self.needs_tags = _overtakes(program)

    def rows(
        self,
        places: Sequence[int],
        compute: Collection[int] = (),
        among: NDArray[np.int64] | None = None,
    ) -> CallRows:
        """List the calls at places of one leaf, as most executions (of some) do them.

        What is computed before the places of `compute` stands ahead of their calls.
        """
        numbers: dict[tuple[int, ...], int] = {}
        columns = np.stack([self.same[place] for place in places], axis=1).tolist()
        same = np.array([numbers.setdefault(tuple(each), len(numbers)) for each in columns])
        most = int(np.bincount(same if among is None else same[among]).argmax())
        equal = np.flatnonzero(same == most)
        opened: list[list[tuple[int, bool]]] = [[] for _ in range(self.structure.program.processes)]
        calls: list[Row] = []
        try:
            for place in places:
                if place in compute:
                    calls += self._computing(place, equal)
                calls += self._place(place, int(equal[0]), opened)
            late = [rank for rank, mine in enumerate(opened) if mine]
            if late:
                raise Unlisted(f"rank {late[0]} leaves requests open behind the last place")
        except Unlisted as reason:
            return CallRows([], equal, str(reason))
        return CallRows(calls, equal)

    def _computing(self, place: int, executions: NDArray[np.int64]) -> Iterator[Row]:
        events = self.event[place][:, executions]
        before = np.where(events >= 0, self.structure.events.before[events], 0.0)
        seconds = before.mean(axis=1) / 1e9
        if seconds.any():
            yield {"do": "compute", "seconds": seconds.tolist()}

    def _place(self, place: int, execution: int, opened: list[list[tuple[int, bool]]]) -> list[Row]:
        """Rows of one place."""
        events = self.event[place][:, execution]
        calls = {
            int(rank): self._calls(int(events[rank]), opened)
            for rank in np.flatnonzero(events >= 0)
        }
        found: list[Row] = []
        for turn in range(max(map(len, calls.values()), default=0)):
            now = {rank: mine[turn] for rank, mine in calls.items() if turn < len(mine)}
            idle = np.array([not mine for mine in opened])
            found += _turn(now, idle)
        return found

    def _calls(self, event: int, opened: list[list[tuple[int, bool]]]) -> list[PatternCall]:
        """What one event does; `opened` are the requests of each process, the oldest first.

        Of each its message, and whether that is sent; here requests become open and complete.
        """
        program, events = self.structure.program, self.structure.events
        begin, end = int(events.first[event]), int(events.first[event + 1])
        kinds = [Op(kind) for kind in program.kind[begin:end].tolist()]
        targets = program.target[begin:end].tolist()
        messages = program.messages
        calls: list[PatternCall] = []
        at = 0
        while at < len(kinds):
            kind, message = kinds[at], targets[at]
            if kind in _WAITS:
                stop = at
                while stop < len(kinds) and kinds[stop] in _WAITS:
                    stop += 1
                waited = [(targets[i], kinds[i] is Op.WAIT_SEND) for i in range(at, stop)]
                side = messages.sender if kind is Op.WAIT_SEND else messages.receiver
                rank = int(side[message])
                calls += _completed(opened[rank], waited, rank, events.names[events.name[event]])
                at = stop
                continue
            sender, receiver = int(messages.sender[message]), int(messages.receiver[message])
            size = int(messages.size[message])
            tag = int(messages.tag[message]) if self.needs_tags else None
            at += 1
            if kind is Op.SEND:
                calls.append(PatternCall("send", receiver, NOBODY, size, tag))
            elif kind is Op.ISEND:
                opened[sender].append((message, True))
                calls.append(PatternCall("isend", receiver, NOBODY, size, tag))
            else:
                sent = self._sent_while_received(kinds[at : at + 2], targets[at : at + 2], message)
                if sent is not None:
                    to, size = int(messages.receiver[sent]), int(messages.size[sent])
                    calls.append(PatternCall("sendrecv", to, sender, size, tag))
                    at += 2
                elif kind is Op.RECEIVE:
                    calls.append(PatternCall("recv", NOBODY, sender, size, tag))
                elif (kinds[at : at + 1], targets[at : at + 1]) == ([Op.WAIT_RECEIVE], [message]):
                    calls.append(PatternCall("recv", NOBODY, sender, size, tag))
                    at += 1
                else:
                    opened[receiver].append((message, False))
                    calls.append(PatternCall("irecv", NOBODY, sender, size, tag))
        return calls

    def _sent_while_received(self, kinds: list[Op], targets: list[int], message: int) -> int | None:
        """The message that is sent between the post of another one and the wait for that."""
        if kinds != [Op.SEND, Op.WAIT_RECEIVE] or targets[1] != message:
            return None
        tag = self.structure.program.messages.tag
        return None if self.needs_tags and tag[targets[0]] != tag[message] else targets[0]


def _completed(
    opened: list[tuple[int, bool]], waited: list[tuple[int, bool]], rank: int, name: str
) -> list[PatternCall]:
    """Calls that complete requests of a rank: all that are open, or some, one by one."""
    if not set(waited) <= set(opened):
        raise Unlisted(f"{name} of rank {rank} completes a request of before the first place")
    if len(waited) == len(opened) and (len(opened) > 1 or name.lower().endswith("all")):
        opened.clear()
        return [PatternCall("waitall")]
    calls = []
    for request in sorted(waited, key=opened.index):
        calls.append(PatternCall("wait", request=opened.index(request)))
        opened.remove(request)
    return calls


def _turn(calls: dict[int, PatternCall], idle: NDArray[np.bool_]) -> list[Row]:
    """Rows of calls that ranks do at the same turn, one each; idle ones have no open request."""
    if any(call.do == "sendrecv" for call in calls.values()):
        calls = {
            rank: call._replace(do="sendrecv") if call.do in ("send", "recv") else call
            for rank, call in calls.items()
        }
    found: list[Row] = []
    for do in dict.fromkeys(call.do for call in calls.values()):
        mine = {rank: call for rank, call in calls.items() if call.do == do}
        if do == "waitall":
            waiting, others = _mask(mine, len(idle)), _mask(calls, len(idle))
            # Who has nothing to wait for may wait as well.
            everybody = (waiting | (idle & ~others)).all()
            found.append({**_on(np.ones_like(waiting) if everybody else waiting), "do": do})
        elif do == "wait":
            for request in dict.fromkeys(call.request for call in mine.values()):
                some = [rank for rank, call in mine.items() if call.request == request]
                which: Row = {"request": request} if request else {}
                found.append({**_on(_mask(some, len(idle))), "do": do, **which})
        else:
            found += _messages(do, mine, len(idle))
    return found


def _mask(ranks: Collection[int], processes: int) -> NDArray[np.bool_]:
    mask = np.zeros(processes, bool)
    mask[list(ranks)] = True
    return mask


def _messages(do: str, calls: dict[int, PatternCall], processes: int) -> list[Row]:
    """Rows of calls that send, receive or do both."""
    to, source, size, tag = (np.full(processes, NOBODY, np.int64) for _ in range(4))
    for rank, call in calls.items():
        to[rank], source[rank] = call.to, call.source
        size[rank] = NOBODY if call.size is None else call.size
        tag[rank] = NOBODY if call.tag is None else call.tag
    amounts = dict.fromkeys((call.size, call.tag) for call in calls.values())
    made: list[Row] = []
    for amount in amounts:
        some = [rank for rank, call in calls.items() if (call.size, call.tag) == amount]
        ranks = _mask(some, processes)
        rest = {
            key: value
            for key, value in zip(("bytes", "tag"), amount, strict=True)
            if value is not None
        }
        goals, sources = (np.where(ranks, each, NOBODY) for each in (to, source))
        made += [{**row, **rest} for row in _partners(do, goals, sources)]
    if len(made) <= _ROWS:
        return made
    # many rows tell less than what each rank does
    listed: Row = {**(_on(_mask(calls, processes)) if do in ("isend", "irecv") else {}), "do": do}
    if do not in ("recv", "irecv"):
        listed["to"] = to.tolist()
    if do not in ("send", "isend"):
        listed["from"] = source.tolist()
    for key, values in (("bytes", size), ("tag", tag)):
        told = values[values >= 0]
        if len(told):
            listed[key] = int(told[0]) if np.ptp(told) == 0 else values.clip(0).tolist()
    return [listed]


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


def _tokens(
    program: Program, first: NDArray[np.int64], is_region: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """A number for each event, equal where a sequence does the same: int64[E]."""
    operation = _operation_tokens(program)
    starts, lengths = first[:-1], np.diff(first)
    found = np.where(is_region, -2, -3).astype(np.int64)
    used = 0
    for length in np.unique(lengths[lengths > 0]).tolist():
        rows = np.flatnonzero(lengths == length)
        at = starts[rows, None] + np.arange(length)
        waits = np.isin(program.kind[at], _WAITS)
        content = operation[at]
        begins = ~(waits & np.pad(waits, ((0, 0), (1, 0)))[:, :-1])  # the waits of a call are one
        order = np.lexsort((content, np.cumsum(begins, axis=1)))  # in whatever order they came
        content = np.take_along_axis(content, order, axis=1)
        numbers = alike(*content.T)[1]
        found[rows] = numbers + used
        used += int(numbers.max()) + 1
    return found


def _operation_tokens(program: Program) -> NDArray[np.int64]:
    """A number for each operation: what, with whom, how much, with which tag."""
    messages, collectives = program.messages, program.collectives
    kind, target = program.kind, program.target
    facts = np.zeros((4, len(kind)), np.int64)
    facts[0] = kind
    about = ~np.isin(kind, (Op.COLLECTIVE, Op.ARRIVE, Op.WAIT_COLLECTIVE))
    rows = target[about]
    is_send = np.isin(kind[about], (*_SENDS, Op.WAIT_SEND))
    facts[1, about] = np.where(is_send, messages.receiver[rows], messages.sender[rows])
    facts[2, about], facts[3, about] = messages.size[rows], messages.tag[rows]
    rows = target[~about]
    facts[1, ~about] = collectives.communicator[rows] * 16 + collectives.kind[rows]
    facts[2, ~about] = np.maximum(collectives.sent[rows], collectives.received[rows])
    facts[3, ~about] = collectives.root[rows]
    return alike(*facts)[1]


def _overtakes(program: Program) -> bool:
    """Whether a process takes messages of another in another order than they are sent in."""
    messages = program.messages
    send, post = np.full((2, len(messages)), _NONE, np.int64)
    for end, kinds in ((send, _SENDS), (post, (Op.RECEIVE, Op.POST))):
        operations = np.flatnonzero(np.isin(program.kind, kinds))
        end[program.target[operations]] = operations
    known = np.flatnonzero((send >= 0) & (post >= 0))
    order = known[np.lexsort((send[known], messages.receiver[known], messages.sender[known]))]
    pair = messages.sender[order].astype(np.int64) * program.sequences + messages.receiver[order]
    return bool(np.any((np.diff(pair) == 0) & (np.diff(post[order]) < 0)))
