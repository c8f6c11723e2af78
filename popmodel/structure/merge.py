"""The nests of all sequences as one: which loops and tokens of them are the same places."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from popmodel.structure.repetition import Repetition

__all__ = ["Node", "merged"]

_LARGE = 4_000_000
"""Pairs of a comparison beyond which only what begins and ends alike is compared."""


class Node:
    """A loop or a place of the common nest while it grows.

    Parameters
    ----------
    is_loop : bool

    Attributes
    ----------
    coarse, tagged : set of int
        Tokens of the events at a place.
    exact : set of int
    children : list of Node
    counts : set of bytes
        Of a loop, how often it is repeated on the sequences that have it (`Repetition.counts`).
    local : dict of int to int
        Its node in the nest of each group of sequences.
    """

    __slots__ = ("children", "coarse", "counts", "exact", "is_loop", "local", "tagged")

    def __init__(self, is_loop: bool) -> None:
        self.is_loop = is_loop
        self.coarse: set[int] = set()
        self.tagged: set[int] = set()
        self.exact: set[int] = set()
        self.children: list[Node] = []
        self.counts: set[bytes] = set()
        self.local: dict[int, int] = {}

    def size(self) -> int:
        """Places in it."""
        return sum(each.size() for each in self.children) if self.is_loop else 1


def tree_of(
    found: Repetition,
    tokens: tuple[Sequence[int], Sequence[int], Sequence[int]],
    group: int,
    mine: int = 0,
) -> Node:
    """The nest of a group of sequences.

    Parameters
    ----------
    found : Repetition
    tokens : (sequence, sequence, sequence) of int
        Coarse, tagged and exact token of each node.
    group, mine : int
        Number of the group, and the node that is the root.
    """
    node = Node(is_loop=found.token[mine] < 0)
    node.local[group] = mine
    if node.is_loop:
        node.counts.add(found.counts_of(mine).tobytes())
        node.children = [tree_of(found, tokens, group, each) for each in found.children[mine]]
    else:
        for one, column in zip((node.coarse, node.tagged, node.exact), tokens, strict=True):
            one.add(column[mine])
    return node


def merged(one: Node, other: Node) -> Node:
    """Put a nest into another one."""
    one.coarse |= other.coarse
    one.tagged |= other.tagged
    one.exact |= other.exact
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


def _likeness(one: Node, other: Node) -> float:
    """How much speaks for two nodes being one; 0 where nothing does."""
    if one.is_loop != other.is_loop:
        return 0.0
    if not one.is_loop:
        if one.exact & other.exact:
            return 3.0
        if one.tagged & other.tagged:
            return 2.0
        return 0.5 if one.coarse & other.coarse else 0.0
    pairs = _aligned(one.children, other.children)
    shared = sum(_likeness(a, b) for a, b in pairs if a is not None and b is not None)
    return shared + (1.0 if one.counts & other.counts else 0.0)


def _aligned(one: list[Node], other: list[Node]) -> list[tuple[Node | None, Node | None]]:
    """Nodes of two bodies side by side, in the order of both."""
    head: list[tuple[Node | None, Node | None]] = []
    tail: list[tuple[Node | None, Node | None]] = []
    begin, ends = 0, (len(one), len(other))
    while begin < min(ends) and _same(one[begin], other[begin]):
        head.append((one[begin], other[begin]))
        begin += 1
    while min(ends) > begin and _same(one[ends[0] - 1], other[ends[1] - 1]):
        tail.append((one[ends[0] - 1], other[ends[1] - 1]))
        ends = ends[0] - 1, ends[1] - 1
    left, right = one[begin : ends[0]], other[begin : ends[1]]
    return head + _compared(left, right) + tail[::-1]


def _same(one: Node, other: Node) -> bool:
    return not one.is_loop and not other.is_loop and bool(one.exact & other.exact)


def _compared(left: list[Node], right: list[Node]) -> list[tuple[Node | None, Node | None]]:
    if len(left) * len(right) > _LARGE or not left or not right:
        return [(each, None) for each in left] + [(None, each) for each in right]
    score = [[_likeness(a, b) for b in right] for a in left]
    best = [[0.0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in range(len(left) - 1, -1, -1):
        for j in range(len(right) - 1, -1, -1):
            both = best[i + 1][j + 1] + score[i][j] if score[i][j] else 0.0
            best[i][j] = max(both, best[i + 1][j], best[i][j + 1])
    i = j = 0
    pairs: list[tuple[Node | None, Node | None]] = []
    while i < len(left) and j < len(right):
        if score[i][j] and best[i][j] == best[i + 1][j + 1] + score[i][j]:
            pairs.append((left[i], right[j]))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            pairs.append((left[i], None))
            i += 1
        else:
            pairs.append((None, right[j]))
            j += 1
    return pairs + [(each, None) for each in left[i:]] + [(None, each) for each in right[j:]]
