"""What is told of patterns beside what generates their messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.structure.nest import FoundLoop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from popmodel.patterns.recognise import PatternReading
    from popmodel.patterns.units import Class
    from popmodel.structure.nest import Leaf
    from popmodel.structure.structure import Structure


def of_pipeline(structure: Structure, place: int, reading: PatternReading) -> dict[str, Any]:
    """Which dimensions a wavefront crosses, which way, and in how many blocks."""
    moves = np.array([way["move"] for way in reading.facts["directions"]])
    dims = [int(axis) for axis in np.flatnonzero(moves.any(axis=0))]
    ways = moves.sum(axis=0)
    return {
        "crosses": dims,
        "direction": ["forward" if ways[axis] > 0 else "backward" for axis in dims],
        "blocks": _blocks(structure, place),
    }


def _blocks(structure: Structure, place: int) -> float:
    """Iterations of the innermost loop around a place; 1 where there is none."""

    def inner(nodes: Sequence[FoundLoop | Leaf], count: float) -> float | None:
        for node in nodes:
            if isinstance(node, FoundLoop):
                if (deeper := inner(node.body, node.count)) is not None:
                    return deeper
            elif place in node.places:
                return count
        return None

    return inner(structure.nest, 1.0) or 1.0


def of_list(each: Class, processes: int) -> dict[str, Any]:
    """Messages by offset of the receiver, modulo P, and how much processes send."""
    messages = each.messages
    offsets, often = np.unique(
        (messages.receiver - messages.sender) % processes, return_counts=True
    )
    sent = np.bincount(messages.sender, minlength=processes)
    return {
        "by_offset": [
            {
                "offset": int(offset) - processes if 2 * offset > processes else int(offset),
                "messages": int(times),
            }
            for offset, times in zip(offsets, often, strict=True)
        ],
        "per_process": [int(sent.min()), int(sent.max())],
    }
