"""The nests of all sequences as one: which loops and tokens of them are the same places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.kernel import _kernel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from popmodel.structure.repetition import Repetition

_SHOWN = 64
"""How many loops a loop is compared with in search of the one that shares places with it."""
_WORTH = np.array([3.0, 2.0, 0.5, 0.3])
"""What speaks for two nodes being one, by the labels that they share."""


class MergeNode:
    """A loop or a place of the common nest while it grows.

    Attributes
    ----------
    coarse, tagged : set of int
        Tokens of the events at a place.
    exact : set of int
    flows : set of int
        Of a loop, numbers of `popmodel.structure.flows.flows_of`.
    leaves : set of int
        Tagged tokens of all places in it.
    children : list of Node
    counts : set of bytes
        Of a loop, how often it is repeated on the sequences that have it (`Repetition.counts`).
    local : dict of int to int
        Its node in the nest of each group of sequences.
    """

    __slots__ = (
        "children",
        "coarse",
        "counts",
        "exact",
        "flows",
        "is_loop",
        "leaves",
        "local",
        "receives",
        "tagged",
    )

    def __init__(self, is_loop: bool, receives: bool = False) -> None:
        self.is_loop = is_loop
        self.receives = receives
        self.coarse: set[int] = set()
        self.tagged: set[int] = set()
        self.exact: set[int] = set()
        self.flows: set[int] = set()
        self.leaves: set[int] = set()
        self.children: list[MergeNode] = []
        self.counts: set[bytes] = set()
        self.local: dict[int, int] = {}

    def size(self) -> int:
        """Places in it."""
        return sum(each.size() for each in self.children) if self.is_loop else 1


def tree_of(
    found: Repetition,
    tokens: tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[bool]],
    flows: Sequence[int],
    group: int,
    mine: int = 0,
) -> MergeNode:
    """The nest of a group of sequences."""
    node = MergeNode(bool(found.token[mine] < 0), tokens[3][mine])
    node.local[group] = mine
    if node.is_loop:
        node.counts.add(found.counts_of(mine).tobytes())
        node.flows.update(flow for flow in (flows[mine],) if flow >= 0)
        node.children = [
            tree_of(found, tokens, flows, group, each) for each in found.children[mine]
        ]
        node.leaves.update(*(each.leaves for each in node.children))
    else:
        node.leaves.add(tokens[1][mine])
        for one, column in zip((node.coarse, node.tagged, node.exact), tokens, strict=False):
            one.add(column[mine])
    return node


def merged(one: MergeNode, other: MergeNode) -> MergeNode:
    """Put a nest into another one."""
    one.coarse |= other.coarse
    one.tagged |= other.tagged
    one.exact |= other.exact
    one.flows |= other.flows
    one.leaves |= other.leaves
    one.counts |= other.counts
    one.local |= other.local
    children = []
    for left, right in _aligned(one.children, other.children):
        if left is None or right is None:
            children.append(left or right)
        else:
            children.append(merged(left, right))
    one.children = [each for each in children if each is not None]
    return one


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
    """Which nodes of two bodies are the same."""
    if not left or not right:
        return []
    labels = _Labels(left, right)
    one, other = labels.of(left), labels.of(right)
    first, second = (each.tolist() for each in _kernel.align(one, other, _WORTH))
    return list(zip(first, second, strict=True))


class _Labels:
    """Numbers of what nodes of two bodies have in common, the closest first.

    Of places these are their tokens from the finest to the coarsest; of loops the messages between
    them, else their places and counts; their places; some of their places; their counts alone.
    """

    def __init__(self, one: list[MergeNode], other: list[MergeNode]) -> None:
        self._numbers: dict[tuple[object, ...], int] = {}
        none: set[int] = set()
        self._exact = none.union(*(each.exact for each in one)) & none.union(
            *(each.exact for each in other)
        )
        self._flows = none.union(*(each.flows for each in one)) & none.union(
            *(each.flows for each in other)
        )
        self._pairs: dict[int, int] = {}
        loops = [each for each in other if each.is_loop]
        for number, mine in enumerate(each for each in one if each.is_loop):
            shared: list[int] = [len(mine.leaves & each.leaves) for each in loops[:_SHOWN]]
            if any(shared):
                theirs = loops.pop(shared.index(max(shared)))
                self._pairs[id(mine)] = self._pairs[id(theirs)] = number

    def of(self, body: list[MergeNode]) -> NDArray[np.int64]:
        rows = [self._loop(each) if each.is_loop else self._place(each) for each in body]
        return np.array(rows, np.int64).reshape(-1, len(_WORTH))

    def _place(self, node: MergeNode) -> list[int]:
        exact = node.exact & self._exact or node.exact
        return [
            self._number("exact", min(exact)),
            self._number("tagged", min(node.tagged)),
            self._number("coarse", min(node.coarse)),
            -1,
        ]

    def _loop(self, node: MergeNode) -> list[int]:
        leaves, counts = frozenset(node.leaves), min(node.counts)
        flows = node.flows & self._flows
        return [
            self._number("flow", min(flows)) if flows else self._number(leaves, counts),
            self._number("leaves", leaves),
            self._number("pair", self._pairs[id(node)]) if id(node) in self._pairs else -1,
            self._number("counts", counts),
        ]

    def _number(self, *what: object) -> int:
        return self._numbers.setdefault(what, len(self._numbers))
