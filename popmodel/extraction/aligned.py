"""The same places in several runs of a program.

Places are in the order of the program, so that those of two runs are laid beside each other as two
versions of a text: the longest common parts belong together. What one run alone passes counts with
what comes next, so that no time is lost.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING

import numpy as np

from popmodel.extraction.computing import timing
from popmodel.patterns.table import table
from popmodel.simulator.program import Op
from popmodel.structure.nest import Leaf
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from popmodel.structure.nest import Loop
    from popmodel.structure.structure import Structure

_NS = 1e9
_NONE = -1


@dataclass(frozen=True)
class Totals:
    """Of the places of a run, and of the end behind them (the last entry)."""

    # float64[places + 1]: Seconds before each place, and in it, if it is a region; all processes
    # together.
    computing: NDArray[np.float64]
    inside: NDArray[np.float64]
    # float64[places + 1]: How often the busiest process passes it; 1 for the end.
    executions: NDArray[np.float64]
    # float64[places + 1]: Sent there, by all processes together.
    messages: NDArray[np.float64]
    bytes: NDArray[np.float64]

    def moved(self, home: NDArray[np.int64], places: int) -> Totals:
        """The same for the places of another run, by where each of these belongs there."""
        whole = np.append(home, places)
        summed = {
            name: np.bincount(whole, getattr(self, name), places + 1).astype(np.float64)
            for name in ("computing", "inside", "messages", "bytes")
        }
        executions = np.zeros(places + 1)
        np.maximum.at(executions, whole, self.executions)
        return Totals(**summed, executions=executions)


def totals(structure: Structure) -> Totals:
    """Sum up what happens at the places of a run."""
    program, events = structure.program, structure.events
    places = len(structure.places)
    times = timing(events)
    place = structure.place.astype(np.int64)
    sends = np.flatnonzero(np.isin(program.kind, (Op.SEND, Op.ISEND)))
    sent_at = place[np.searchsorted(events.first, sends, side="right") - 1]
    sizes = program.messages.size[program.target[sends]].astype(np.float64)
    executions = [event.shape[1] for event in table(structure).event]

    def by_place(where: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(where, values, minlength=places + 1).astype(np.float64)

    computing = by_place(place, times.before) / _NS
    computing[places] = times.after.sum() / _NS
    return Totals(
        computing,
        by_place(place, times.inside) / _NS,
        np.array([*executions, 1], dtype=np.float64),
        by_place(sent_at, np.ones(len(sends))),
        by_place(sent_at, sizes),
    )


def homes(structure: Structure, other: Structure) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Lay the places of another run beside those of the first."""
    mine, theirs = keys(structure), keys(other)
    found = np.full(len(theirs), _NONE, dtype=np.int64)
    matcher = SequenceMatcher(None, mine, theirs, autojunk=False)
    for a, b, size in matcher.get_matching_blocks():
        found[b : b + size] = np.arange(a, a + size)
    both = np.zeros(len(mine) + 1, dtype=bool)
    whole = (found >= 0) & _everywhere(other)
    both[found[whole]] = True
    both[:-1] &= _everywhere(structure)
    both[-1] = True
    behind = len(mine)
    for index in range(len(found) - 1, -1, -1):
        if found[index] == _NONE:
            found[index] = behind
        behind = int(found[index])
    return found, both


def _everywhere(structure: Structure) -> NDArray[np.bool_]:
    """Which places all processes pass: bool[places]."""
    passing = [(event >= 0).any(axis=1).sum() for event in table(structure).event]
    whole: NDArray[np.bool_] = np.array(passing, dtype=np.int64) == structure.program.sequences
    return whole


def keys(structure: Structure) -> list[tuple[str, str, bool, int]]:
    """What places of two runs are known by: name, where, whether a region, and loops around."""
    depth = np.zeros(len(structure.places), dtype=np.int64)

    def walk(nodes: Sequence[Loop | Leaf], level: int) -> None:
        for node in nodes:
            if isinstance(node, Leaf):
                depth[list(node.places)] = level
            else:
                walk(node.body, level + 1)

    walk(structure.nest, 0)
    return [
        (one.name, one.inside, one.is_region, int(depth[one.number])) for one in structure.places
    ]
