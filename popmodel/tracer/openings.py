"""Which records open and close something that decides a thread's state."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popmodel.trace.states import INPUT_OUTPUT, RUNNING, SCHEDULING, TRACING_DISABLED
from popmodel.tracer.records import Construct, Kind
from popmodel.tracer.states import IN_CONSTRUCT

_PAIRS = {
    Kind.ENTER: (Kind.LEAVE, 0),
    Kind.PARALLEL_BEGIN: (Kind.PARALLEL_END, SCHEDULING),
    Kind.TASK_BEGIN: (Kind.TASK_END, RUNNING),
    Kind.TASK_RUN: (Kind.TASK_STOP, RUNNING),
    Kind.FLUSH_BEGIN: (Kind.FLUSH_END, INPUT_OUTPUT),
}
_KINDS = 1 << 6
_CONSTRUCTS = max(Construct) + 1

_STEP = np.zeros(_KINDS, np.int8)
_GROUP = np.zeros(_KINDS, np.int64)
_STATE = np.zeros(_KINDS, np.int64)
for _begin, (_end, _state) in _PAIRS.items():
    _STEP[_begin], _STEP[_end] = 1, -1
    _GROUP[_begin] = _GROUP[_end] = _begin
    _STATE[_begin] = _state

_IN_CONSTRUCT = np.full(1 << 16, -1, np.int64)
for _construct, _state in IN_CONSTRUCT.items():
    _IN_CONSTRUCT[_construct] = _state


class Openings(NamedTuple):
    """What records open and close."""

    step: NDArray[np.int8]  # int8[n]: 1 opens, -1 closes, 0 neither
    group: NDArray[np.int64]  # int64[n]: Only what is of the same group closes it
    value: NDArray[np.int64]  # int64[n]: State of the thread in what is opened


def openings(records: NDArray[np.void], state_of_call: NDArray[np.int64]) -> Openings:
    """What each record opens or closes."""
    kind, call = records["kind"], records["call"]
    step, group, value = _STEP[kind], _GROUP[kind], _STATE[kind]
    calls = kind == Kind.ENTER
    value[calls] = state_of_call[call[calls]]
    constructs = np.flatnonzero((kind == Kind.OMP_ENTER) | (kind == Kind.OMP_LEAVE))
    if len(constructs):
        # In the others, such as the body of a critical section, the thread goes on with its work.
        state = _IN_CONSTRUCT[call[constructs]]
        constructs, state = constructs[state >= 0], state[state >= 0]
        step[constructs] = np.where(kind[constructs] == Kind.OMP_ENTER, 1, -1)
        group[constructs] = _KINDS + np.minimum(call[constructs], _CONSTRUCTS)
        value[constructs] = state
    switches = np.flatnonzero(kind == Kind.TRACING)
    if len(switches):
        step[switches] = np.where(records["a"][switches] == 0, 1, -1)
        group[switches] = Kind.TRACING
        value[switches] = TRACING_DISABLED
    return Openings(step, group, value)


def still_open(
    records: NDArray[np.void], found: Openings, before: NDArray[np.void]
) -> NDArray[np.void]:
    """Records that opened what is open after these, the outermost first."""
    depth = len(before) + np.cumsum(found.step, dtype=np.int64)
    if not len(depth):
        return before
    least_after = np.minimum.accumulate(depth[::-1])[::-1]
    kept = np.flatnonzero((found.step > 0) & (depth <= least_after))
    return np.concatenate([before[: min(len(before), int(depth.min()))], records[kept]])
