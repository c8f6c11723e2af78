"""One place for a collective whose members call it at several.

A root that calls MPI_Bcast in one line and the others that call it in another one pass two places
of the program, but it is one collective: a signature has one item for it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from popmodel.simulator.program import Op

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.structure.structure import Structure


def met(structure: Structure) -> Structure:
    """Return a structure in which members of a collective pass the same place, where they can.

    They can where these places are in one leaf, and the order of all events of a process stays.
    """
    program, events = structure.program, structure.events
    arrives = np.flatnonzero(np.isin(program.kind, (Op.COLLECTIVE, Op.ARRIVE)))
    if not len(arrives):
        return structure
    event = np.searchsorted(events.first, arrives, side="right") - 1
    place = structure.place[event].astype(np.int64)
    leaf = np.array([one.leaf for one in structure.places], dtype=np.int64)
    goal = np.full(len(program.collectives), len(leaf), dtype=np.int64)
    np.minimum.at(goal, program.target[arrives], place)
    wanted = goal[program.target[arrives]]
    same = (wanted != place) & (leaf[wanted] == leaf[place])
    moved = structure.place.copy()
    for one in np.unique(place[same]).tolist():
        mine = place == one
        goals = np.unique(wanted[mine])
        if len(goals) == 1 and same[mine].all():
            moved[event[mine]] = goals[0]
    return replace(structure, place=moved) if _in_order(structure, moved, leaf) else structure


def _in_order(structure: Structure, place: NDArray[np.int32], leaf: NDArray[np.int64]) -> bool:
    """Whether every process passes the places of each execution of a leaf in order."""
    sequence = structure.events.sequence
    together = (
        (sequence[1:] == sequence[:-1])
        & (leaf[place[1:]] == leaf[place[:-1]])
        & (structure.execution[1:] == structure.execution[:-1])
    )
    return bool((place[1:] > place[:-1])[together].all())
