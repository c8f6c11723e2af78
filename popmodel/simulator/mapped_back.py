"""What a replay of a laid-out program says of the program that it was made of."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from popmodel.simulator.path import CriticalPath, Part

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator.laid_out import LaidOut
    from popmodel.simulator.program import Program

_OF_COLLECTIVES = {
    Part.SEND: Part.MESSAGE_SEND,
    Part.RECEIVE: Part.MESSAGE_RECEIVE,
    Part.TRANSFER: Part.MESSAGE,
}


def moments_of(
    program: Program,
    laid: LaidOut,
    begin: NDArray[np.float64],
    end: NDArray[np.float64],
    cpu: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return when the operations of a program begin and end, ns."""
    operations = np.arange(program.operations)
    first = np.searchsorted(laid.origin, operations, side="left")
    last = np.searchsorted(laid.origin, operations, side="right") - 1
    some = last >= first
    began, ended = np.zeros((2, program.operations))
    began[some], ended[some] = begin[first[some]], end[last[some]]
    # What came to nothing takes no time after its burst.
    nothing = np.flatnonzero(~some)
    process = np.searchsorted(program.offsets, nothing, side="right") - 1
    for at, p in zip(nothing.tolist(), process.tolist(), strict=True):
        before = ended[at - 1] if at > program.offsets[p] else 0.0
        began[at] = ended[at] = before + program.burst[at] * cpu[p]
    return began, ended


def path_of(laid: LaidOut, path: CriticalPath) -> CriticalPath:
    """Return the critical path of a program by the operations and collectives that it has."""
    operation, part, row = path.operation.copy(), path.part.copy(), path.row.copy()
    operation[operation >= 0] = laid.origin[operation[operation >= 0]]
    for own, of_collective in _OF_COLLECTIVES.items():
        mine = np.flatnonzero(path.part == own)
        mine = mine[laid.sent_for[path.row[mine]] >= 0]
        part[mine], row[mine] = of_collective, laid.sent_for[path.row[mine]]
    stays = np.isin(path.part, [Part.COLLECTIVE, Part.REQUEST, *_OF_COLLECTIVES.values()])
    row[stays] = laid.stay[path.row[stays]]
    return replace(path, operation=operation, part=part, row=row)
