"""The loop nest that all sequences have in common, and where each event stands in it.

The nests of the sequences are merged one by one. Bodies are laid beside one another by what their
places and loops share, the closest first. The sweeps of a wavefront look alike: what a corner does
forward, another one does backward. But what is sent in a loop forward is received in one forward:
so loops that exchange their messages belong together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.base.arrays import alike
from popmodel.kernel import _kernel
from popmodel.simulator.program import Op
from popmodel.structure.structure import FoundLoop, Leaf, Nest, grouped, leaves

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator.program import Program
    from popmodel.structure.program_events import ProgramEvents
    from popmodel.structure.repetition import RepeatedCalls, Repetition

_MOST = 3_000
"""Loops and calls of a sequence that are told one by one; half of those of all sequences."""
_WORTH = np.array([3.0, 2.0, 0.5])
"""What speaks for two nodes being one, by the labels that they share."""
_MESSAGES = 0.5
"""Share of the messages of a loop with a group of sequences, above which they are one loop's."""
_TURNS = 2.0
"""How many times the iterations of a loop another one has that is not it: a master takes a turn for
each of its workers."""


class Common(NamedTuple):
    """A nest common to all sequences."""

    nest: Nest
    # int32[E]: Place of each event, and how many times it was passed before.
    place: NDArray[np.int32]
    execution: NDArray[np.int32]

    @property
    def places(self) -> int:
        """How many there are: each has an event."""
        return int(self.place.max(initial=-1)) + 1


class MergeNode:
    """A loop or a place of the common nest while it grows."""

    __slots__ = ("children", "coarse", "counts", "exact", "flows", "is_loop", "leaves", "local",
                 "receives", "tagged")  # fmt: skip

    def __init__(self, is_loop: bool, receives: bool = False) -> None:
        self.is_loop = is_loop
        self.receives = receives  # whether it is a blocking receive
        # Tokens of the events at a place.
        self.coarse: set[int] = set()
        self.tagged: set[int] = set()
        self.exact: set[int] = set()
        self.flows: set[int] = set()  # of a loop: numbers of `flows_of`
        self.leaves: set[int] = set()  # tagged tokens of all places in it
        # Of a loop: how often it is repeated on the sequences that have it (`Repetition.counts`).
        self.counts: set[bytes] = set()
        self.children: list[MergeNode] = []
        self.local: dict[int, int] = {}  # its node in the nest of each group of sequences

    def size(self) -> int:
        """Places in it."""
        return sum(child.size() for child in self.children) if self.is_loop else 1

    def merge(self, other: MergeNode) -> None:
        """Put another nest into this one."""
        self.coarse |= other.coarse
        self.tagged |= other.tagged
        self.exact |= other.exact
        self.flows |= other.flows
        self.leaves |= other.leaves
        self.counts |= other.counts
        self.local |= other.local
        children = []
        for left, right in _aligned(self.children, other.children):
            if left is not None and right is not None:
                left.merge(right)
            children.append(left or right)
        self.children = [child for child in children if child is not None]


def common_nest(program: Program, events: ProgramEvents, repeats: RepeatedCalls) -> Common | None:
    """What of the loops of each sequence is the same; None where they have too much of their own.

    Bodies are compared pair by pair: it takes too long where calls hardly ever repeat.
    """
    if max((len(nest.token) for nest in repeats.nests), default=0) > _MOST:
        return None
    receives = np.zeros(len(events), bool)
    acts = np.diff(events.first) > 0
    receives[acts] = program.kind[events.first[:-1][acts]] == Op.RECEIVE
    flows = flows_of(program, events, repeats)
    trees = []
    for group, (nest, begin) in enumerate(zip(repeats.nests, repeats.first, strict=True)):
        event = np.zeros(len(nest.token), np.int64)  # the first event of each node; 0 of loops
        event[nest.node[::-1]] = np.arange(begin, begin + len(nest.node))[::-1]
        columns = (events.coarse, events.tagged, events.exact, receives)
        tokens = [column[event].tolist() if len(events) else [0] for column in columns]
        trees.append(_tree(nest, tokens, flows[group].tolist(), group, 0))
    root, *others = sorted(trees, key=lambda tree: -tree.size())
    for tree in others:
        root.merge(tree)
        if root.size() > 2 * _MOST:
            return None
    common = _numbered(root, events, repeats)
    return _with_cut_iterations(events, _ends(program, events), common)


def _tree(
    nest: Repetition, tokens: list[list[int]], flows: Sequence[int], group: int, mine: int
) -> MergeNode:
    """The nest of a group of sequences, with tokens of each node: coarse, tagged, exact."""
    node = MergeNode(bool(nest.token[mine] < 0), bool(tokens[3][mine]))
    node.local[group] = mine
    if node.is_loop:
        node.counts.add(nest.counts_of(mine).tobytes())
        node.flows.update(flow for flow in (flows[mine],) if flow >= 0)
        node.children = [_tree(nest, tokens, flows, group, each) for each in nest.children[mine]]
        node.leaves.update(*(child.leaves for child in node.children))
    else:
        node.leaves.add(tokens[1][mine])
        for labels, column in zip((node.coarse, node.tagged, node.exact), tokens, strict=False):
            labels.add(column[mine])
    return node


def _aligned(
    one: list[MergeNode], other: list[MergeNode]
) -> Iterator[tuple[MergeNode | None, MergeNode | None]]:
    """Nodes of two bodies side by side, in the order of both."""
    begin, end = 0, 0
    most = min(len(one), len(other))
    while begin < most and _same(one[begin], other[begin]):
        begin += 1
    while end < most - begin and _same(one[-1 - end], other[-1 - end]):
        end += 1
    left, right = one[begin : len(one) - end], other[begin : len(other) - end]
    yield from zip(one[:begin], other[:begin], strict=True)
    i = j = 0
    for a, b in (*_compared(left, right), (len(left), len(right))):
        yield from _between(left[i:a], right[j:b])
        if a < len(left):
            yield left[a], right[b]
        i, j = a + 1, b + 1
    yield from zip(one[len(one) - end :], other[len(other) - end :], strict=True)


def _same(one: MergeNode, other: MergeNode) -> bool:
    return not one.is_loop and not other.is_loop and bool(one.exact & other.exact)


def _between(
    left: list[MergeNode], right: list[MergeNode]
) -> Iterator[tuple[MergeNode | None, MergeNode | None]]:
    """Nodes that have no counterpart: receives of both first, as in pipelines and exchanges."""
    i = j = 0
    while i < len(left) or j < len(right):
        ahead = i < len(left) and left[i].receives
        if i < len(left) and (ahead or j == len(right) or not right[j].receives):
            yield left[i], None
            i += 1
        else:
            yield None, right[j]
            j += 1


def _compared(left: list[MergeNode], right: list[MergeNode]) -> list[tuple[int, int]]:
    """Which nodes of two bodies are the same: those that share labels, numbers of what they share.

    Of places these are their tokens from the finest to the coarsest; of loops the messages between
    them, else their places and counts; their places; their counts alone.
    """
    if not left or not right:
        return []
    numbers: dict[tuple[object, ...], int] = {}
    none: set[int] = set()
    exact, flows = (
        none.union(*(getattr(node, name) for node in left))
        & none.union(*(getattr(node, name) for node in right))
        for name in ("exact", "flows")
    )

    def labels(node: MergeNode) -> tuple[tuple[object, ...], ...]:
        if not node.is_loop:
            finest = min(node.exact & exact or node.exact)
            return ("exact", finest), ("tagged", min(node.tagged)), ("coarse", min(node.coarse))
        leaves, counts = frozenset(node.leaves), min(node.counts)
        flow = node.flows & flows
        finest_of_loop = ("flow", min(flow)) if flow else ("loop", leaves, counts)
        return finest_of_loop, ("leaves", leaves), ("counts", counts)

    one, other = (
        np.array([[numbers.setdefault(label, len(numbers)) for label in labels(n)] for n in body])
        for body in (left, right)
    )
    first, second = (each.tolist() for each in _kernel.align(one, other, _WORTH))
    return list(zip(first, second, strict=True))


def _numbered(root: MergeNode, events: ProgramEvents, repeats: RepeatedCalls) -> Common:
    """The nest of merged nodes, and the place and execution of each event."""
    nests = repeats.nests
    places = [np.zeros(len(nest.token), np.int32) for nest in nests]
    # Iterations of the loop around each node, in terms of the common nest.
    turns_of: list[dict[int, NDArray[np.int64]]] = [{} for _ in nests]
    numbers = count()

    def body_of(node: MergeNode, turns: dict[int, NDArray[np.int64]], executions: int) -> Nest:
        """The body of a node, executed so many times; `turns` are those of each group."""
        body: list[int | FoundLoop] = []
        for child in node.children:
            if child.is_loop:
                body.append(loop_of(child, turns, executions))
                continue
            body.append(number := next(numbers))
            for group, mine in child.local.items():
                places[group][mine] = number
                turns_of[group][mine] = turns[group]
        return grouped(body)

    def loop_of(node: MergeNode, turns: dict[int, NDArray[np.int64]], executions: int) -> FoundLoop:
        counts = np.zeros(executions, np.int64)
        times = {
            group: nests[group].counts_of(mine).astype(np.int64)
            for group, mine in node.local.items()
        }
        for group, mine in times.items():
            np.maximum.at(counts, turns[group], mine)
        before = np.cumsum(counts) - counts
        inner = {
            group: np.repeat(before[turns[group]] - (np.cumsum(mine) - mine), mine)
            + np.arange(mine.sum())
            for group, mine in times.items()
        }
        return FoundLoop(tuple(counts.tolist()), body_of(node, inner, int(counts.sum())))

    common = body_of(root, {group: np.zeros(1, np.int64) for group in root.local}, 1)
    executions = [_executions(nest, turns) for nest, turns in zip(nests, turns_of, strict=True)]
    place, execution = np.empty((2, len(events)), np.int32)
    bounds = events.offsets.tolist()
    for group, begin, end in zip(repeats.group, bounds[:-1], bounds[1:], strict=True):
        place[begin:end] = places[group][nests[group].node]
        execution[begin:end] = executions[group]
    return Common(common, place, execution)


def _executions(nest: Repetition, turns: dict[int, NDArray[np.int64]]) -> NDArray[np.int64]:
    """Execution of each event of a group, node by node."""
    execution = np.empty(len(nest.node), np.int64)
    order = np.argsort(nest.node, kind="stable")
    bounds = np.searchsorted(nest.node[order], np.arange(len(nest.token) + 1)).tolist()
    for node, mine in turns.items():
        rows = order[bounds[node] : bounds[node + 1]]
        execution[rows] = mine[nest.iteration[rows]]
    return execution


# Which loops of different sequences belong together, told by the messages between them.


def flows_of(
    program: Program, events: ProgramEvents, repeats: RepeatedCalls
) -> list[NDArray[np.int64]]:
    """Of each node of each nest a number that loops share which exchange their messages.

    Loops are compared with those at the same depth. Two are linked if each of them has most of the
    messages that it exchanges with the group of sequences of the other in that other loop, and
    about as many iterations. What is linked is one flow, unless it would hold two loops of one
    nest: then its loops have none (-1), as places have.
    """
    sizes = np.array([len(nest.token) for nest in repeats.nests])
    base = np.cumsum(sizes) - sizes
    group_of = np.repeat(np.arange(len(sizes)), sizes)
    parent = np.concatenate([nest.parent + b for nest, b in zip(repeats.nests, base, strict=True)])
    parent[base] = base
    is_loop = np.concatenate([nest.token for nest in repeats.nests]) < 0
    turns = np.concatenate([_iterations(nest) for nest in repeats.nests])
    bounds = events.offsets.tolist()
    node = np.empty(len(events), np.int64)
    for group, begin, end in zip(repeats.group, bounds[:-1], bounds[1:], strict=True):
        node[begin:end] = repeats.nests[group].node + base[group]
    sent, received = _ends(program, events)
    pairs, which = alike(node[sent], node[received])
    often = np.bincount(which, minlength=len(pairs))
    depth = _depths(parent)
    flow = np.full(len(parent), -1, np.int64)
    for level in range(1, int(depth.max(initial=0)) + 1):
        one, other = (_at_depth(each, parent, depth, level) for each in pairs.T)
        linked = _linked(one, other, often, group_of)
        linked = linked[(is_loop[linked] & (depth[linked] == level)).all(axis=1)]
        of_both = turns[linked]
        _number(flow, linked[of_both.max(axis=1) < _TURNS * of_both.min(axis=1)], group_of)
    return np.split(flow, base[1:])


def _ends(program: Program, events: ProgramEvents) -> NDArray[np.int64]:
    """Events that messages are sent and received in, where both are known: int64[2, m]."""
    sent = events.of_messages(program, Op.SEND, Op.ISEND)
    received = events.of_messages(program, Op.RECEIVE, Op.POST)
    known = (sent >= 0) & (received >= 0)
    return np.stack([sent[known], received[known]])


def _iterations(nest: Repetition) -> NDArray[np.int64]:
    """How many iterations each loop of a nest has in all; 0 of places."""
    passed = np.concatenate([[0], np.cumsum(nest.counts, dtype=np.int64)])
    turns: NDArray[np.int64] = np.diff(passed[nest.offsets])
    return turns


def _depths(parent: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many loops are around each node; parents of roots are themselves."""
    depth = np.zeros(len(parent), np.int64)
    up = parent
    inner = up != np.arange(len(parent))
    while inner.any():
        depth += inner
        inner = parent[up] != up
        up = parent[up]
    return depth


def _at_depth(
    node: NDArray[np.int64], parent: NDArray[np.int64], depth: NDArray[np.int64], level: int
) -> NDArray[np.int64]:
    """The node at a depth that is around each node, or itself where that is not as deep."""
    while (deeper := depth[node] > level).any():
        node = np.where(deeper, parent[node], node)
    return node


def _linked(
    one: NDArray[np.int64],
    other: NDArray[np.int64],
    often: NDArray[np.int64],
    group_of: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Pairs of nodes that have most of their messages with one another: int64[n, 2].

    Of all messages that each has with the sequences of the other.
    """
    some = group_of[one] != group_of[other]
    pairs, which = alike(np.minimum(one, other)[some], np.maximum(one, other)[some])
    messages = np.bincount(which, often[some], len(pairs))
    both = np.concatenate([pairs, pairs[:, ::-1]])
    rows = alike(both[:, 0].copy(), group_of[both[:, 1]])[1]
    whole = np.bincount(rows, np.tile(messages, 2))[rows].reshape(2, -1)
    found: NDArray[np.int64] = pairs[(messages > _MESSAGES * whole).all(axis=0)]
    return found


def _number(
    flow: NDArray[np.int64], linked: NDArray[np.int64], group_of: NDArray[np.int64]
) -> None:
    """Number what is linked, directly or by others, where each nest has one loop of it."""
    above: dict[int, int] = {}

    def root(node: int) -> int:
        while (up := above.setdefault(node, node)) != node:
            above[node] = above[up]
            node = up
        return node

    for one, other in linked.tolist():
        above[root(one)] = root(other)
    members: dict[int, list[int]] = {}
    for node in list(above):
        members.setdefault(root(node), []).append(node)
    for number, nodes in members.items():
        if len(set(group_of[nodes].tolist())) == len(nodes):
            flow[nodes] = number


# The last iteration of processes that were cut in it.
#
# Where nothing synchronises all processes, the end of a window cuts some of them in an iteration
# that others completed. What is left of it there is no repetition, and would be calls of its own
# behind the loop. It is that iteration if it begins as the one before did, and if its messages are
# exchanged with the same iteration of others.


def _with_cut_iterations(events: ProgramEvents, ends: NDArray[np.int64], common: Common) -> Common:
    """The same nest with cut iterations where they belong; `ends`: events of messages."""
    number, order = 0, np.argsort(common.place, kind="stable")
    while number < len(known := list(_loops(common.nest))):
        found = _with_those_of(known[number], events, ends, common, order)
        if found is not common:
            common, order = found, np.argsort(found.place, kind="stable")
        number += 1
    return common


def _loops(nest: Nest) -> Iterator[FoundLoop]:
    """All loops, outer ones before those inside."""
    for node in nest:
        if isinstance(node, FoundLoop):
            yield node
            yield from _loops(node.body)


def _with_those_of(
    loop: FoundLoop,
    events: ProgramEvents,
    ends: NDArray[np.int64],
    common: Common,
    order: NDArray[np.int64],
) -> Common:
    """The same where what stands behind one loop is in it, if that leaves no loop behind."""
    first: dict[int, NDArray[np.int64]] = {}
    until = loop.first[1:]
    _firsts(loop.body, np.arange(until[-1] + 1), first)
    low, high = min(first), max(first)
    bounds = np.searchsorted(common.place[order], np.arange(low, high + 2)).tolist()
    turn = np.empty(bounds[-1] - bounds[0], np.int64)
    for place, (begin, end) in enumerate(pairwise(bounds), low):
        execution = common.execution[order[begin:end]]
        found = np.searchsorted(first[place], execution, side="right") - 1
        turn[begin - bounds[0] : end - bounds[0]] = found
    rows = order[bounds[0] : bounds[-1]]
    of_program = np.argsort(rows)
    rows, turn = rows[of_program], turn[of_program]
    tails = _tails(until, events, rows, turn)
    if not tails:
        return common
    turns = np.full(len(events), -1, np.int64)
    turns[rows] = turn
    tails = _that_fit(tails, ends, turns)
    return _moved(common, first, turns, tails) if tails else common


def _firsts(body: Nest, begins: NDArray[np.int64], found: dict[int, NDArray[np.int64]]) -> None:
    """The first execution of each place in each iteration of a loop, and how many there are.

    ``begins`` are those of the body that the places are in.
    """
    for node in body:
        if isinstance(node, Leaf):
            found.update(dict.fromkeys(node.places, begins))
        else:
            _firsts(node.body, node.first[begins], found)


def _tails(
    until: NDArray[np.int64],
    events: ProgramEvents,
    rows: NDArray[np.int64],
    turn: NDArray[np.int64],
) -> dict[int, NDArray[np.int64]]:
    """What ends a sequence like the begin of its last iteration, though others have another one.

    The loop has these events (``rows``, in order, each in an iteration, ``turn``) and ends after so
    many iterations (``until``, at each of its executions).
    The first event of each such tail, and those of that iteration that its events are like.
    """
    found: dict[int, NDArray[np.int64]] = {}
    if not len(rows):
        return found
    sequence = np.searchsorted(events.offsets, rows, side="right") - 1
    last = np.append(np.flatnonzero(np.diff(sequence)), len(rows) - 1)
    end = events.offsets[sequence[last] + 1]
    cut = (end > rows[last] + 1) & ~np.isin(turn[last] + 1, until)
    begin = 0
    for at, stop, is_cut in zip(last.tolist(), end.tolist(), cut.tolist(), strict=True):
        if is_cut:
            like = rows[begin : at + 1][turn[begin : at + 1] == turn[at]]
            tail = int(rows[at]) + 1
            length = stop - tail
            if length <= len(like) and np.array_equal(
                events.exact[tail:stop], events.exact[like[:length]]
            ):
                found[tail] = like[:length]
        begin = at + 1
    return found


def _that_fit(
    tails: dict[int, NDArray[np.int64]], ends: NDArray[np.int64], turn: NDArray[np.int64]
) -> dict[int, NDArray[np.int64]]:
    """The tails that have messages, all of them with the iteration that they are to be."""
    tail = np.full(len(turn), -1, np.int64)
    moved = turn.copy()
    for begin, like in tails.items():
        tail[begin : begin + len(like)] = begin
        moved[begin : begin + len(like)] = turn[like[0]] + 1
    sent, received = ends
    some = (tail[sent] >= 0) | (tail[received] >= 0)
    both = np.stack([sent[some], received[some]])
    wrong = set(tails) - set(tail[both].ravel().tolist())
    while True:
        for begin in wrong:
            moved[begin : begin + len(tails[begin])] = -1
        tails = {begin: like for begin, like in tails.items() if begin not in wrong}
        differ = moved[both[0]] != moved[both[1]]
        wrong = set(tail[both[:, differ]].ravel().tolist()) & set(tails)
        if not wrong:
            return tails


def _moved(
    common: Common,
    first: dict[int, NDArray[np.int64]],
    turn: NDArray[np.int64],
    tails: dict[int, NDArray[np.int64]],
) -> Common:
    """Events of tails at the places of the loop, and the nest without what is empty then."""
    place, execution = common.place.copy(), common.execution.copy()
    for tail, like in tails.items():
        for event, model in enumerate(like.tolist(), tail):
            begins, mine = first[int(common.place[model])], turn[model]
            place[event] = common.place[model]
            execution[event] = begins[mine + 1] + common.execution[model] - begins[mine]
            if execution[event] >= begins[mine + 2]:
                return common  # others repeat less in this iteration
    left = np.bincount(place, minlength=common.places) > 0
    gone = np.bincount(common.place[place != common.place], minlength=len(left)) > 0
    for loop in _loops(common.nest):
        held = [number for leaf in leaves(loop.body) for number in leaf.places]
        if gone[held].any() and left[held].any():
            return common  # how often it is repeated is not known any more
    number = (np.cumsum(left) - 1).astype(np.int32)

    def without_empty(nest: Nest) -> Nest:
        body: list[int | FoundLoop] = []
        for node in nest:
            if isinstance(node, Leaf):
                body += [int(number[each]) for each in node.places if left[each]]
            elif inside := without_empty(node.body):
                body.append(FoundLoop(node.counts, inside))
        return grouped(body)

    return common._replace(
        nest=without_empty(common.nest), place=number[place], execution=execution
    )
