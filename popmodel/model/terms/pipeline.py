"""Wavefronts: every process waits for its predecessors block by block.

Source: A. Hoisie, O. Lubeck, H. Wasserman, Int. J. High Perform. Comput. Appl. 14 (2000) 330
(pipelined wavefront sweeps).
"""

from __future__ import annotations

from collections.abc import Sequence

from popmodel.expressions.elementary import Value


def fill(extent: Sequence[int]) -> int:
    """Return the blocks that the last process waits for: ``sum (P_d - 1)``."""
    return sum(count - 1 for count in extent)


def ideal_time(extent: Sequence[int], blocks: Value, sweep: Value) -> Value:
    """Return ``(K + sum (P_d - 1)) t/K``, the time of a sweep without the cost of messages.

    Parameters
    ----------
    extent : sequence of int
        Processes along each dimension that the wave runs through.
    blocks : value
        Blocks K of the sweep of a process.
    sweep : value
        Time of the whole sweep of a process, s.
    """
    return (blocks + fill(extent)) * sweep / blocks


def transfer_time(extent: Sequence[int], blocks: Value, message: Value) -> Value:
    """Return ``(K + sum (P_d - 1) - 1)`` times a message: those that the last process waits for."""
    hops = fill(extent)
    return (blocks + hops - 1) * message if hops else 0.0 * message
