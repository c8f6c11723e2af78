"""What the numbers in a trace that popmodel writes mean: its ``.pcf`` file."""

from __future__ import annotations

from collections.abc import Mapping

from popmodel.trace.event import Event
from popmodel.trace.left_out import LABELS
from popmodel.trace.losses import REASONS
from popmodel.trace.paraver.labels import Labels
from popmodel.trace.paraver.numbers import COUNTER_RANGE, EVENT_TYPES, NUMBERS
from popmodel.trace.states import STATES

_ON_OFF = {0: "End", 1: "Begin"}
_LOCK = {0: "Unlocked", 3: "Waiting for the lock", 6: "Locked"}
_VALUES: Mapping[Event, Mapping[int, str]] = {
    Event.APPLICATION: _ON_OFF,
    Event.FLUSH: _ON_OFF,
    Event.TRACING: {0: "Disabled", 1: "Enabled"},
    Event.PARALLEL: {0: "close", 1: "DO (open)", 2: "SECTIONS (open)", 3: "REGION (open)"},
    Event.WORK_SHARING: {0: "End", 5: "SECTIONS", 6: "SINGLE"},
    Event.BARRIER: _ON_OFF,
    Event.JOIN: _ON_OFF,
    Event.NAMED_CRITICAL: _LOCK,
    Event.CRITICAL: _LOCK,
    Event.SET_LOCK: _LOCK,
    Event.OVERHEAD: _ON_OFF,
    Event.ORDERED: {0: "Outside", 1: "Waiting"},
    Event.TASKWAIT: _ON_OFF,
    Event.TASKGROUP: _ON_OFF,
    Event.LOST: REASONS,
    Event.LEFT_OUT: LABELS,
}
_OWN: Mapping[Event, str] = {
    Event.USER_REGION: "User region",
    Event.OUTLINED_LINE: "Executed OpenMP parallel function, line and file",
    Event.MISSES: "Calls in a row that found nothing",
    Event.LOST: "Records lost",
    Event.LEFT_OUT: "Not recorded from here on",
    Event.CPUS: "CPUs that the thread may use",
    Event.SHARING: "Threads that may use only these CPUs",
    Event.USED: "Time on a CPU, ns",
    Event.WAITED: "Time waiting for a CPU, ns",
    Event.DELAYED: "Time waiting for a CPU in the computing that ends, ns",
    Event.WOKEN: "Time waiting for a CPU when woken up by the team, ns",
    Event.CALLER: "Caller at level 1",
    Event.CALLER_LINE: "Caller line at level 1",
}
_IF_NAMED = frozenset(
    NUMBERS[event] for event in (*list(Event)[:5], Event.CALLER, Event.CALLER_LINE)
)
_LEAST = 40_000_000  # short numbers are not written


def legend(values: Mapping[Event, Mapping[int, str]], *, counters: bool) -> Labels:
    """Names for a trace."""
    named = {NUMBERS[event]: each for event, each in {**_VALUES, **values}.items()}
    types = {**EVENT_TYPES, **{NUMBERS[event]: name for event, name in _OWN.items()}}
    used = {
        type_: name
        for type_, name in types.items()
        if type_ >= _LEAST
        and (type_ in named or type_ not in _IF_NAMED)
        and (counters or type_ not in COUNTER_RANGE)
    }
    return Labels(STATES, used, {type_: dict(named[type_]) for type_ in used if type_ in named})
