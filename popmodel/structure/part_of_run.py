"""When the iterations of a run are that users ask for: known from its structure only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from popmodel.base.errors import PartError, TraceError
from popmodel.base.units import count, plural
from popmodel.traces.selection import TracePart

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from popmodel.structure.structure import Structure
    from popmodel.traces import Trace

_NO_ITERATIONS = "no iterations found: nothing repeats in its MPI calls and parallel regions"
_INSTEAD = "choose a part with --window, for example --window 1s:2s"


def part_of_run(asked: TracePart, trace: Trace) -> TracePart:
    """The part of a run that is asked for, with a window of time in place of iterations."""
    if not asked.auto and asked.iterations is None:
        return asked
    from popmodel.structure.structure import LIKELY, certainty

    found = _with_iterations(trace)
    first, last = _wanted(asked, trace, found)
    number = count(len(found.iterations) - 1)
    name = f"iterations {count(first)} to {count(last)}"
    why = f"{name if first < last else f'iteration {count(first)}'} of {number}"
    begin, end = found.focus.begin, found.focus.end
    if asked.auto:
        why += ", the focus"
    else:
        begins = found.iterations.max(axis=1)
        begin, end = int(begins[first - 1]), int(begins[last])
    if found.confidence < LIKELY:
        why += f", confidence {certainty(found.confidence)}"
    return TracePart(begin, end, asked.region, why=why)


def on_sequences(
    asked: TracePart, trace: Trace
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """When the iterations that are asked for begin and end on each sequence of a run, ns.

    None where no iterations are asked for. Raises as `part_of_run`.
    """
    if not asked.auto and asked.iterations is None:
        return None
    found = _with_iterations(trace)
    first, last = _wanted(asked, trace, found)
    return found.iterations[first - 1], found.iterations[last]


def _with_iterations(trace: Trace) -> Structure:
    found, _ = structure_of(trace)
    if found.loop is None or len(found.iterations) < 2:
        raise TraceError(trace.path, _NO_ITERATIONS, hint=_INSTEAD)
    return found


def _wanted(asked: TracePart, trace: Trace, structure: Structure) -> tuple[int, int]:
    """First and last of the iterations that are asked for, from 1."""
    if asked.iterations is None:
        return structure.focus.first + 1, structure.focus.last + 1
    number = len(structure.iterations) - 1
    first, last = asked.iterations
    last = number if last is None else last
    if last > number:
        raise PartError(
            trace.path,
            f"no iteration {count(last)}: the run has {plural(number, 'iteration')}",
            hint="popmodel inspect shows them",
        )
    return first, last


def structure_of(trace: Trace) -> tuple[Structure, Trace]:
    """Structure of a run, and what it is of: the whole run, where a window of one is given."""
    from popmodel.structure.iterations import find

    pieces = trace.pieces
    whole = trace if pieces is None or len(pieces) > 1 else trace.whole or trace
    return find(whole), whole
