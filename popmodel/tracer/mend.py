"""Puts records right that do not nest, one after the other.

Ends are lacking where tracing was switched off in between, where records were lost, or where a
program jumped out of a call; then they are added at the latest possible time. Ends without a begin
are left out. A task that waits can be left for another one, which crosses its wait: the wait then
ends where the task is left.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from popmodel.tracer.openings import Openings
from popmodel.tracer.records import RECORD, Kind

_UNENDED = "calls and regions without a recorded end (ended at the next record that implies it)"
_UNBEGUN = "ends of calls and regions without a recorded start (dropped)"


def closing(open_: NDArray[np.void], time: int) -> NDArray[np.void]:
    """Records that end what other records opened."""
    records = open_.copy()
    records["time"] = time
    kind = open_["kind"]
    # Of every pair the end has the next number; tracing is switched by one kind.
    records["kind"] = np.where(kind == Kind.TRACING, kind, kind + 1)
    calls = kind == Kind.ENTER
    records["a"][calls | (kind == Kind.TRACING)] = 1
    records["b"][calls] = records["c"][calls] = 0
    return records


def mend(
    records: NDArray[np.void],
    found: Openings,
    before: NDArray[np.void],
    opened: Openings,
    counts: Counter[str],
) -> NDArray[np.void]:
    """Return records that nest."""
    levels = before["call"].tolist()
    stack = list(zip(opened.group.tolist(), levels, range(-len(before), 0), strict=True))
    both = np.concatenate([before, records])
    kinds, calls = records["kind"].tolist(), records["call"].tolist()
    steps, groups = found.step.tolist(), found.group.tolist()
    pieces: list[NDArray[np.void]] = []
    begin = 0  # of the records that are kept as they are

    def end_from(level: int, row: int, said: bool) -> None:
        """End what is open from a level on, in front of a record."""
        nonlocal begin
        if level >= len(stack):
            return
        rows = [index + len(before) for _, _, index in stack[level:][::-1]]
        pieces.append(records[begin:row])
        pieces.append(closing(both[rows], int(records["time"][row])))
        begin = row
        if said:
            counts[_UNENDED] += len(rows)
        del stack[level:]

    for row in np.flatnonzero(found.step).tolist():
        group = groups[row]
        if steps[row] > 0:
            if kinds[row] == Kind.ENTER:  # calls of MPI do not nest
                end_from(_level(stack, group), row, True)
            elif kinds[row] == Kind.TASK_BEGIN and calls[row]:
                level = next(
                    (
                        i
                        for i, (other, at_level, _) in enumerate(stack)
                        if other == group and at_level >= calls[row]
                    ),
                    len(stack),
                )
                end_from(level, row, True)
            elif kinds[row] == Kind.TRACING:
                end_from(0, row, False)
            stack.append((group, calls[row], row))
            continue
        level = next((i for i in reversed(range(len(stack))) if stack[i][0] == group), -1)
        if level < 0:
            pieces.append(records[begin:row])
            begin = row + 1
            counts[_UNBEGUN] += kinds[row] != Kind.TRACING
        else:
            end_from(level + 1, row, kinds[row] != Kind.TASK_STOP)
            del stack[level]
    pieces.append(records[begin:])
    return np.concatenate([np.empty(0, RECORD), *pieces])


def _level(stack: list[tuple[int, int, int]], group: int) -> int:
    """Where in a stack the first of a group is; its length where there is none."""
    return next((i for i, (other, _, _) in enumerate(stack) if other == group), len(stack))
