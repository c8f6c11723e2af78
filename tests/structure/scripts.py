"""Structures of programs that tests write down: what each rank does at each place of a nest.

Nothing here is shared with what is tested: messages are matched by their order, requests by theirs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from popmodel.simulator.program import COLLECTIVES, Collectives, Op, Program, ProgramMessages
from popmodel.structure.program_events import ProgramEvents
from popmodel.structure.structure import FoundLoop, Leaf, LoopPlace, Structure

_TOKENS = ("inside", "coarse", "tagged", "sized", "exact")
"""What events are told apart by where loops are sought: not here."""

#: ("send", to, bytes, tag), ("isend", ...), ("recv", from, tag), ("irecv", from, tag),
#: ("sendrecv", to, from, bytes, tag), ("wait", k) of the k-th open request, ("waitall",),
#: (collective, communicator, bytes, root)
Do = tuple
At = Callable[[int, int], Sequence[Do]]
"""What a rank does at an execution of a place; nothing: it has no call there."""


@dataclass
class Step:
    """A place."""

    does: At
    name: str = "MPI_Call"
    seconds: Callable[[int, int], float] = lambda *_: 0.0
    region: bool = False


@dataclass
class Repeat:
    """A loop; `times` by execution, or the same always."""

    times: int | Sequence[int]
    body: list[Step | Repeat]


@dataclass
class _Rank:
    ops: list[tuple[Op, tuple]] = field(default_factory=list)
    events: list[tuple[int, int, int]] = field(default_factory=list)  # place, execution, operations
    before: list[float] = field(default_factory=list)
    opened: list[tuple[Op, tuple]] = field(default_factory=list)


def structure(
    ranks: int,
    body: list[Step | Repeat],
    communicators: dict[int, Sequence[int]] | None = None,
    nodes: Sequence[int] | None = None,
) -> Structure:
    """Unroll a program and arrange it as a structure does."""
    places: list[Step] = []
    leaves = [0]
    nest, walk = _nest(body, places, leaves, 1)
    found = [_Rank() for _ in range(ranks)]
    passes = [0] * len(places)
    sent: dict[tuple, list[int]] = defaultdict(list)
    received: dict[tuple, list[int]] = defaultdict(list)
    sizes: list[tuple[int, int, int, int]] = []
    keys: list[tuple] = []

    def message(sender: int, receiver: int, tag: int, size: int | None) -> int:
        """Row of the next message of a pair, as sender (with a size) or as receiver."""
        mine, other = (sent, received) if size is not None else (received, sent)
        key = sender, receiver, tag
        turn = len(mine[key])
        if turn < len(other[key]):
            row = other[key][turn]
        else:
            row = len(sizes)
            sizes.append((sender, receiver, 0, tag))
            keys.append(key)
        mine[key].append(row)
        if size is not None:
            sizes[row] = sender, receiver, size, tag
        return row

    turns: dict[tuple[int, int], int] = defaultdict(int)
    collectives: dict[tuple[int, int], int] = {}
    facts: list[tuple[int, int, int, int, int]] = []
    members = {0: list(range(ranks))} | {k: list(v) for k, v in (communicators or {}).items()}

    def act(rank: int, do: Do) -> None:
        mine = found[rank]
        match do:
            case ("send", to, size, tag):
                mine.ops.append((Op.SEND, (message(rank, to, tag, size),)))
            case ("isend", to, size, tag):
                row = message(rank, to, tag, size)
                mine.ops.append((Op.ISEND, (row,)))
                mine.opened.append((Op.WAIT_SEND, (row,)))
            case ("recv", source, tag):
                mine.ops.append((Op.RECEIVE, (message(source, rank, tag, None),)))
            case ("irecv", source, tag):
                row = message(source, rank, tag, None)
                mine.ops.append((Op.POST, (row,)))
                mine.opened.append((Op.WAIT_RECEIVE, (row,)))
            case ("sendrecv", to, source, size, tag):
                row = message(source, rank, tag, None)
                mine.ops.append((Op.POST, (row,)))
                mine.ops.append((Op.SEND, (message(rank, to, tag, size),)))
                mine.ops.append((Op.WAIT_RECEIVE, (row,)))
            case ("wait", k):
                mine.ops.append(mine.opened.pop(k))
            case ("waitall",):
                mine.ops += mine.opened
                mine.opened.clear()
            case (kind, communicator, size, root):
                turn = turns[rank, communicator]
                turns[rank, communicator] += 1
                row = collectives.setdefault((communicator, turn), len(collectives))
                if row == len(facts):
                    facts.append((COLLECTIVES.index(kind), communicator, size, root, 0))
                mine.ops.append((Op.COLLECTIVE, (row,)))
            case _:
                raise AssertionError(do)

    for place, execution in walk():
        step = places[place]
        passes[place] = max(passes[place], execution + 1)
        for rank, mine in enumerate(found):
            before = len(mine.ops)
            dos = step.does(rank, execution)
            for do in dos:
                act(rank, do)
            if step.region or len(mine.ops) > before:
                mine.events.append((place, execution, len(mine.ops) - before))
                mine.before.append(step.seconds(rank, execution) * 1e9)
    for key in set(sent) | set(received):
        assert sent[key] == received[key], key
    operations = [op for mine in found for op in mine.ops]
    events = [event for mine in found for event in mine.events]
    counts = np.array([len(mine.ops) for mine in found])
    table = np.array(sizes, np.int64).reshape(-1, 4)
    rows = np.array(facts, np.int64).reshape(-1, 5)
    total = len(operations)
    program = Program(
        offsets=np.concatenate([[0], np.cumsum(counts)]),
        kind=np.array([op for op, _ in operations], np.uint8),
        target=np.array([target for _, (target,) in operations], np.int32),
        burst=np.zeros(total),
        tail=np.zeros(ranks),
        messages=ProgramMessages(
            table[:, 0].astype(np.int32),
            table[:, 1].astype(np.int32),
            table[:, 2],
            table[:, 3],
            np.zeros(len(table), np.int8),
        ),
        collectives=Collectives(
            rows[:, 0].astype(np.int8),
            rows[:, 1],
            np.array([len(members[c]) for c in rows[:, 1].tolist()], np.int32),
            rows[:, 3].astype(np.int32),
            rows[:, 2],
            rows[:, 2],
            rows[:, 2],
            np.zeros(len(rows), bool),
        ),
        call=np.zeros(total, np.int32),
        call_name=("MPI_Call",),
        call_code=np.zeros(1, np.int16),
        call_time=np.zeros(1, np.int64),
        communicators={k: np.array(v, np.int32) for k, v in members.items()},
        nodes=np.array(nodes if nodes is not None else [0] * ranks, np.int32),
    )
    names = tuple(dict.fromkeys(step.name for step in places))
    place = np.array([event[0] for event in events], np.int32)
    lengths = [event[2] for event in events]
    none = np.zeros(len(events), np.int64)
    return Structure(
        program=program,
        events=ProgramEvents(
            offsets=np.concatenate([[0], np.cumsum([len(mine.events) for mine in found])]),
            begin=none,
            end=none,
            before=np.array([time for mine in found for time in mine.before]),
            after=np.zeros(ranks),
            is_region=np.array([places[p].region for p in place], bool),
            in_calls=none.astype(np.float64),
            delayed=none.astype(np.float64),
            waited=0.0,
            first=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            name=np.array([names.index(places[p].name) for p in place], np.int32),
            names=names,
            insides=("",),
            **dict.fromkeys(_TOKENS, none.astype(np.int32)),
        ),
        nest=nest,
        places=tuple(
            LoopPlace(number, step.name, leaf, step.region, "")
            for number, (step, leaf) in enumerate(
                zip(places, _leaf_of(nest, len(places)), strict=True)
            )
        ),
        place=place,
        execution=np.array([event[1] for event in events], np.int32),
        parts=(),
        loop=None,
        iterations=np.zeros((1, ranks), np.int64),
        kinds=np.zeros(0, np.int64),
        period=None,
        confidence=1.0,
        focus=None,
        notes=(),
    )


def _nest(body, places, leaves, executions):
    """Nodes of a body, and a function that yields place and execution in order."""
    nodes: list[Leaf | FoundLoop] = []
    walkers = []
    for item in body:
        if isinstance(item, Step):
            number = len(places)
            places.append(item)
            if nodes and isinstance(nodes[-1], Leaf):
                nodes[-1] = Leaf((*nodes[-1].places, number))
            else:
                nodes.append(Leaf((number,)))
            state = [0]

            def visit(number=number, state=state):
                yield number, state[0]
                state[0] += 1

        else:
            counts = [item.times] * executions if isinstance(item.times, int) else list(item.times)
            assert len(counts) == executions
            inner, walk = _nest(item.body, places, leaves, sum(counts))
            nodes.append(FoundLoop(tuple(counts), inner))
            state = [0]

            def visit(counts=counts, state=state, walk=walk):
                for _ in range(counts[state[0]]):
                    yield from walk()
                state[0] += 1

        walkers.append(visit)

    def run():
        for each in walkers:
            yield from each()

    return tuple(nodes), run


def _leaf_of(nest, number):
    found = [0] * number
    leaf = [0]

    def walk(nodes):
        for node in nodes:
            if isinstance(node, Leaf):
                for place in node.places:
                    found[place] = leaf[0]
                leaf[0] += 1
            else:
                walk(node.body)

    walk(nest)
    return found
