"""What the numbers in a merged trace mean: its ``.pcf`` and ``.row`` files."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from popmodel.trace.labels import Labels
from popmodel.trace.left_out import LABELS, LEFT_OUT
from popmodel.trace.losses import LOST, REASONS
from popmodel.trace.names import CALLER, CALLER_LINE, EVENT_TYPES, MPI_TYPES, STATES
from popmodel.trace.processors import LABELS as PROCESSORS
from popmodel.tracer import events
from popmodel.tracer.calls import INCOMPLETE, calls
from popmodel.tracer.identities import Functions, Names, Sites

__all__ = ["labels"]

_ON_OFF = {0: "End", 1: "Begin"}
_LOCK = {0: "Unlocked", 3: "Waiting for the lock", 6: "Locked"}
_VALUES: Mapping[int, Mapping[int, str]] = {
    40000001: _ON_OFF,
    events.FLUSH: _ON_OFF,
    events.TRACING: {0: "Disabled", 1: "Enabled"},
    events.PARALLEL: {0: "close", 1: "DO (open)", 2: "SECTIONS (open)", 3: "REGION (open)"},
    events.WORK_SHARING: {0: "End", 5: "SECTIONS", 6: "SINGLE"},
    events.BARRIER: _ON_OFF,
    events.JOIN: _ON_OFF,
    events.NAMED_CRITICAL: _LOCK,
    events.CRITICAL: _LOCK,
    events.SET_LOCK: _LOCK,
    events.OVERHEAD: _ON_OFF,
    events.ORDERED: {0: "Outside", 1: "Waiting"},
    events.TASKWAIT: _ON_OFF,
    events.TASKGROUP: _ON_OFF,
    LOST: REASONS,
    LEFT_OUT: LABELS,
}
_OWN_TYPES = {
    events.REGION: "User region",
    events.LINE: "Executed OpenMP parallel function, line and file",
    events.MISSES: "Calls in a row that found nothing",
    LOST: "Records lost",
    LEFT_OUT: "Not recorded from here on",
    **PROCESSORS,
    CALLER: "Caller at level 1",
    CALLER_LINE: "Caller line at level 1",
}
_IF_NAMED = {*MPI_TYPES, CALLER, CALLER_LINE}


def labels(
    called: NDArray[np.int64],
    functions: Functions,
    names: Names,
    sites: Sites,
    *,
    counters: bool,
) -> Labels:
    """Names for a trace.

    Parameters
    ----------
    called : int64[n]
        How often each MPI call was made, by its number.
    functions, names, sites
        Of parallel regions, of the user's regions and of MPI calls.
    counters : bool
        Whether hardware counters were read.
    """
    values: dict[int, dict[int, str]] = {type_: dict(each) for type_, each in _VALUES.items()}
    for number in np.flatnonzero(called).tolist():
        call = calls()[number]
        of_type = values.setdefault(call.type, {0: "Outside MPI"})
        # Two calls share a number where Extrae has one for both: the plain name is kept.
        of_type.setdefault(call.value, f"MPI_{call.name}")
        if call.may_miss:
            of_type[call.value + INCOMPLETE] = f"MPI_{call.name} (found nothing)"
    running = {0: "End", **dict(enumerate(functions.names, start=1))}
    for type_ in (events.OUTLINED, events.TASK, events.NEW_TASK):
        values[type_] = running
    if any(functions.lines):
        lines = enumerate(zip(functions.lines, functions.names, strict=True), start=1)
        values[events.LINE] = {0: "End"} | {
            number: f"{line or '?:0'} ({name})" for number, (line, name) in lines
        }
    if sites.lines:
        values[CALLER] = {0: "End", **dict(enumerate(sites.functions, start=1))}
        values[CALLER_LINE] = {0: "End", **dict(enumerate(sites.lines, start=1))}
    values[events.REGION] = {0: "End"} | {number: text for text, number in names.numbers.items()}
    types = {
        type_: name
        for type_, name in {**EVENT_TYPES, **_OWN_TYPES}.items()
        if type_ not in _IF_NAMED or type_ in values
    }
    if not counters:
        types = {type_: name for type_, name in types.items() if not 42000000 <= type_ < 43000000}
    used = {type_: name for type_, name in types.items() if type_ >= 40000000}
    return Labels(STATES, used, {type_: values[type_] for type_ in used if type_ in values})
