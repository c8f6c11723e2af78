"""Communicators by those who call collectives on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from popmodel.simulator.program import COLLECTIVES, Op

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from popmodel.simulator.program import Program

_INIT = COLLECTIVES.index("init")


def communicators_of_callers(
    listed: Mapping[int, NDArray[np.signedinteger[Any]]], program: Program
) -> tuple[dict[int, NDArray[np.int32]], NDArray[np.int64]]:
    """Communicators in which each collective has exactly those members that call it.

    Where these are others than the trace lists (in a window of a run, or where threads call), they
    get a communicator of their own; MPI_Init has none.
    """
    found = {number: np.asarray(ranks, np.int32) for number, ranks in listed.items()}
    collectives = program.collectives
    number = collectives.communicator.copy()
    arrive = np.flatnonzero((program.kind == Op.COLLECTIVE) | (program.kind == Op.ARRIVE))
    sequence = np.searchsorted(program.offsets, arrive, side="right") - 1
    target = program.target[arrive]
    callers = np.bincount(target, minlength=len(collectives))
    by_thread = target[sequence >= program.processes]
    sequence = sequence[np.argsort(target, kind="stable")]
    first = np.cumsum(callers) - callers
    numbers, which = np.unique(number, return_inverse=True)
    sizes = np.array([len(found.get(each, ())) for each in numbers.tolist()], np.int64)
    others = callers != sizes[which]
    others[by_thread] = True
    owner = program.owner
    known: dict[tuple[int, bytes], int] = {}
    free = max([0, *found, *numbers.tolist()]) + 1
    for c in np.flatnonzero(others & (collectives.kind != _INIT)).tolist():
        members = np.sort(sequence[first[c] : first[c] + callers[c]]).astype(np.int32)
        key = int(number[c]), members.tobytes()
        if key not in known:
            known[key] = free + len(known)
            ranks = np.asarray(listed.get(key[0], owner[members]))
            order = np.argsort(ranks, kind="stable")
            rank = order[np.searchsorted(ranks[order], owner[members])]
            found[known[key]] = members[np.argsort(rank, kind="stable")]
        number[c] = known[key]
    return found, number
