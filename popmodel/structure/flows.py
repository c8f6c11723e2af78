"""Which loops of different sequences belong together, told by the messages between them.

The sweeps of a wavefront look alike: what a corner does forward, another one does backward. But
what is sent in a loop forward is received in one forward.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.arrays import alike
from popmodel.simulator.program import Op

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator.program import Program
    from popmodel.structure.events import ProgramEvents
    from popmodel.structure.repetition import RepeatedCalls, Repetition

_MOST = 0.5
"""Share of the messages of a loop with a group of sequences, above which they are one loop's."""


_TURNS = 2.0
"""How many times the iterations of a loop another one has that is not it: a master takes a turn for
each of its workers."""


class Ends(NamedTuple):
    """Events that messages are sent and received in, of those messages where both are known."""

    # int64[m]
    sent: NDArray[np.int64]
    received: NDArray[np.int64]


def ends_of(program: Program, events: ProgramEvents) -> Ends:
    """Find the events of each message."""
    event = np.repeat(np.arange(len(events)), np.diff(events.first))
    ends = np.full((2, len(program.messages)), -1, np.int64)
    for row, kinds in zip(ends, ((Op.SEND, Op.ISEND), (Op.RECEIVE, Op.POST)), strict=True):
        mine = (program.kind == kinds[0]) | (program.kind == kinds[1])
        row[program.target[mine]] = event[mine]
    return Ends(*ends[:, (ends >= 0).all(axis=0)])


def flows_of(events: ProgramEvents, repeats: RepeatedCalls, ends: Ends) -> list[NDArray[np.int64]]:
    """Of each node of each nest a number that loops share which exchange their messages.

    Loops are compared with those at the same depth. Two are linked if each of them has most of the
    messages that it exchanges with the group of sequences of the other in that other loop, and
    about as many iterations. What is linked is one flow, unless it would hold two loops of one
    nest: then its loops have none (-1), as places have.
    """
    sizes = np.array([len(each.token) for each in repeats.nests])
    base = np.cumsum(sizes) - sizes
    group_of = np.repeat(np.arange(len(sizes)), sizes)
    parent = np.concatenate([each.parent + b for each, b in zip(repeats.nests, base, strict=True)])
    parent[base] = base
    is_loop = np.concatenate([each.token for each in repeats.nests]) < 0
    turns = np.concatenate([_turns(each) for each in repeats.nests])
    bounds = events.offsets.tolist()
    node = np.empty(len(events), np.int64)
    for group, begin, end in zip(repeats.group, bounds[:-1], bounds[1:], strict=True):
        node[begin:end] = repeats.nests[group].node + base[group]
    pairs, which = alike(node[ends.sent], node[ends.received])
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


def _turns(nest: Repetition) -> NDArray[np.int64]:
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
    count = np.bincount(which, often[some], len(pairs))
    both = np.concatenate([pairs, pairs[:, ::-1]])
    rows = alike(both[:, 0].copy(), group_of[both[:, 1]])[1]
    whole = np.bincount(rows, np.tile(count, 2))[rows].reshape(2, -1)
    found: NDArray[np.int64] = pairs[(count > _MOST * whole).all(axis=0)]
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
