"""What repeats in a sequence of tokens: nested loops, whose counts may vary.

Maximal repetitions become tokens of their own, whatever their counts, and the search goes on in the
shorter sequence: so loops around others whose counts drift are found, too. All in n log n
(``popmodel/kernel/runs.hpp``).
"""

from __future__ import annotations

from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING

from popmodel.kernel import _kernel
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


class Way(IntEnum):
    """Which of the repetitions that overlap are loops; the compiled core has the same numbers."""

    CONSTANT = 0  #: the longest, then those in their bodies: best where counts are constant
    LONGEST_FIRST = 1  #: the same, with bodies of loops known again where they stand alone
    SHORTEST_FIRST = 2  #: those of the shortest periods: best where counts vary
    NO_PAIRS_FIRST = 3  #: the same, those of two turns only where there are no others


@dataclass(frozen=True, eq=False)
class Repetition:
    """A sequence as a nest of loops around tokens.

    Nodes are loops and tokens, numbered depth first; node 0 is the whole sequence.
    """

    token: NDArray[np.int32]  # int32[N]: Of each node; -1 for a loop
    parent: NDArray[np.int32]  # int32[N]: The loop around each node; -1 of the whole sequence
    # int64[N + 1]: Executions of loop n are rows ``offsets[n] .. offsets[n + 1]`` of `counts`.
    offsets: NDArray[np.int64]
    counts: NDArray[np.int32]  # int32[c]: How often a loop was repeated at an execution
    # int32[n]: Of each token of the sequence its node, and how many iterations of the loop around
    # it began before, all enclosing loops flattened.
    node: NDArray[np.int32]
    iteration: NDArray[np.int32]

    def counts_of(self, node: int) -> NDArray[np.int32]:
        """How often a loop was repeated, at each of its executions."""
        return self.counts[self.offsets[node] : self.offsets[node + 1]]

    @cached_property
    def children(self) -> list[list[int]]:
        """Nodes in the body of each node, in order."""
        found: list[list[int]] = [[] for _ in self.parent]
        for node, parent in enumerate(self.parent.tolist()):
            if parent >= 0:
                found[parent].append(node)
        return found


def repetition(tokens: NDArray[np.int32], way: Way = Way.CONSTANT) -> Repetition:
    """Find the loops of a sequence."""
    return Repetition(*_kernel.repetition(tokens, int(way)))


def repetitions(sequences: Sequence[NDArray[np.int32]]) -> list[Repetition]:
    """Find the loops of some sequences, all in that way in which they need the fewest nodes."""
    found = [[repetition(each, way) for each in sequences] for way in Way]
    return min(found, key=lambda nests: sum(len(each.token) for each in nests))
