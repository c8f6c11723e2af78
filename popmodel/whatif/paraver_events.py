"""The critical path of a replay as events of a trace, by the measured times of the run.

A replay has its own times, in which waiting differs from the run. The events mark what of the run
the path is made of: the computing before an operation, and the calls in which something was on it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from popmodel.errors import UsageError
from popmodel.simulator.path import PathPart
from popmodel.trace.codes import Event
from popmodel.trace.intervals import TracePieces
from popmodel.trace.paraver.writer import add_events

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator.path import CriticalPath
    from popmodel.simulator.program import Program
    from popmodel.trace import Trace

    Changes = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]

COMPUTING, IN_MPI = 1, 2
_VALUES = {0: "not on it", COMPUTING: "computing", IN_MPI: "in MPI"}


def write_path(
    path: CriticalPath, program: Program, trace: Trace, target: Path, network: str
) -> None:
    """Write a trace with the critical path of its replay."""
    if len(program.threads):
        raise UsageError(
            f"-o {target}: threads call MPI on their own, so that the critical path has no place "
            "on the ranks of the trace",
            "see the tables of the critical path instead",
        )
    process, time, value = path_events(path, program, trace)
    label = f"Critical path of a replay ({network}), at measured times"
    events = process, time + trace.origin, value
    source = Path(trace.path)
    add_events(source, target, Event.CRITICAL_PATH, label, _VALUES, trace.application, *events)


def path_events(path: CriticalPath, program: Program, trace: Trace) -> Changes:
    """When the processes of a measured run come to parts of the path, and leave them."""
    return _changes(*_measured(path, program, trace))


def _changes(
    process: NDArray[np.int64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    value: NDArray[np.int64],
) -> Changes:
    """Where stretches of processes begin and end; the same may be there several times."""
    some = np.flatnonzero(end > begin)
    some = some[np.lexsort((value[some], end[some], begin[some], process[some]))]
    process, begin, end, value = (column[some] for column in (process, begin, end, value))
    # What follows at once begins itself what ends here, or goes on.
    touches = (process[1:] == process[:-1]) & (begin[1:] <= end[:-1])
    goes_on = touches & (value[1:] == value[:-1])
    starts = np.insert(~goes_on, 0, True)[: len(process)]
    ends = np.append(~touches, True)[: len(process)]
    changes = np.concatenate(
        [
            np.stack([process[starts], begin[starts], value[starts]]),
            np.stack([process[ends], end[ends], np.zeros_like(end[ends])]),
        ],
        axis=1,
    )
    process, time, value = changes[:, np.lexsort((changes[1], changes[0]))]
    return process, time, value


def _measured(
    path: CriticalPath, program: Program, trace: Trace
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Process, begin and end (ns of the whole run) and value of what each step stands for."""
    whole = trace.whole or trace
    pieces = trace.pieces or TracePieces.window(trace.begin, trace.end)
    calls = whole.calls()
    process = path.process.astype(np.int64)
    computes = path.part == PathPart.COMPUTE
    tail = computes & (path.operation < 0)
    operation = np.where(tail, program.offsets[process + 1], path.operation)
    own = np.append(program.call.astype(np.int64), 0)[operation]
    before = operation - 1
    first = before < program.offsets[process]
    previous = program.call.astype(np.int64)[np.maximum(before, 0)] if program.operations else own
    entry = np.where(tail, np.minimum(whole.ends()[process], pieces.end[-1]), _at(calls.entry, own))
    left = np.where(first, pieces.begin[0], _at(calls.exit, previous))
    # of a part of several pieces: computing does not reach back over the gap before its piece
    piece = np.maximum(np.searchsorted(pieces.begin, entry, side="right") - 1, 0)
    begin = np.where(computes, np.maximum(left, pieces.begin[piece]), _at(calls.entry, own))
    end = np.where(computes, entry, _at(calls.exit, own))
    return process, begin, end, np.where(computes, COMPUTING, IN_MPI)


def _at(times: NDArray[np.int64], calls: NDArray[np.int64]) -> NDArray[np.int64]:
    """Times of some calls; of a run without any whatever."""
    return times[calls] if len(times) else np.zeros(len(calls), np.int64)
