"""Names of states, event types and values: from a ``.pcf`` file, built in, written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from popmodel.base.values import dataclass
from popmodel.traces.caveats import LABELS, REASONS
from popmodel.traces.codes import FILE_CALLS, STATES, Event
from popmodel.traces.paraver.numbers import (
    COUNTER_RANGE,
    EVENT_TYPES,
    MPI_CALLS,
    NUMBERS,
)

# Names of states, event types and values: from a ``.pcf`` file, or from built-in tables.


@dataclass(frozen=True)
class Labels:
    """Names found in a ``.pcf`` file."""

    states: Mapping[int, str] = field(default_factory=dict)
    event_types: Mapping[int, str] = field(default_factory=dict)
    event_values: Mapping[int, Mapping[int, str]] = field(default_factory=dict)  # By event type

    def state(self, state: int) -> str:
        """Name of a state: the trace's, else the usual one, else its number."""
        return self.states.get(state) or STATES.get(state) or f"state {state}"

    def event_type(self, type_: int) -> str:
        """Name of an event type: the trace's, else the usual one, else its number."""
        return self.event_types.get(type_) or EVENT_TYPES.get(type_) or f"event {type_}"

    def label(self, type_: int, value: int) -> str:
        """What the trace calls an event's value; empty where it has no name for it."""
        return self.event_values.get(type_, {}).get(value, "")

    def event_value(self, type_: int, value: int) -> str:
        """Name of an event's value; its number where it has none."""
        return self.label(type_, value) or str(value)

    def mpi_name(self, type_: int, value: int) -> str:
        return self.label(type_, value) or MPI_CALLS.get(value) or f"MPI call {type_}:{value}"


_ENTRY = re.compile(r"\s*(-?\d+)\s+(.*)")
_TYPE = re.compile(r"\s*\d+\s+(\d+)\s+(.*)")


def parse_pcf(text: str) -> Labels:
    """Read what a ``.pcf`` file names; anything else in it is passed over.

    A section is a line with its title alone, its entries are the lines after it. The titles that
    count are ``STATES``, ``EVENT_TYPE`` and ``VALUES``; values belong to all types named by the
    ``EVENT_TYPE`` section before them.
    """
    states: dict[int, str] = {}
    types: dict[int, str] = {}
    values: dict[int, dict[int, str]] = {}
    section = ""
    current: list[int] = []
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        entry = _ENTRY.fullmatch(stripped)
        if entry is None:
            section = stripped.upper()
            if section == "EVENT_TYPE":
                current = []
        elif section == "STATES":
            states[int(entry[1])] = entry[2]
        elif section == "EVENT_TYPE":
            typed = _TYPE.fullmatch(stripped)
            if typed is not None:
                current.append(int(typed[1]))
                types[int(typed[1])] = typed[2]
        elif section == "VALUES":
            for type_ in current:
                values.setdefault(type_, {})[int(entry[1])] = entry[2]
    return Labels(states, types, values)


def parse_row(text: str) -> dict[str, tuple[str, ...]]:
    """Read the names in a ``.row`` file by level, for instance ``THREAD``."""
    levels: dict[str, tuple[str, ...]] = {}
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        title = re.fullmatch(r"LEVEL\s+(\w+)\s+SIZE\s+(\d+)\s*", lines[at], re.IGNORECASE)
        at += 1
        if title is not None:
            size = int(title[2])
            levels[title[1].upper()] = tuple(name.strip() for name in lines[at : at + size])
            at += size
    return levels


def beside(path: Path, suffix: str) -> Path:
    """Return the file that belongs to a trace: ``x.prv`` or ``x.prv.gz`` to ``x`` + `suffix`."""
    name = path.name.removesuffix(".gz").removesuffix(".prv")
    return path.with_name(name + suffix)


def read_beside(path: Path, suffix: str) -> tuple[str | None, str | None]:
    """Text of the file that belongs to a trace, and why it cannot be read.

    Both are None where there is no such file. Names come in any encoding; what is not UTF-8 is
    replaced, because only the numbers matter.
    """
    file = beside(path, suffix)
    try:
        if not file.exists():
            return None, None
        if not file.is_file():  # opening a pipe would wait
            return None, "not a file"
        return file.read_text(encoding="utf-8", errors="replace"), None
    except OSError as error:
        return None, (error.strerror or str(error)).lower()


# What the numbers in a trace that popmodel writes mean: its ``.pcf`` file.


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
    Event.FILE_CALL: {0: "End", **FILE_CALLS},
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
    Event.FILE_CALLS: "I/O calls in a row",
    Event.CALLER: "Caller at level 1",
    Event.CALLER_LINE: "Caller line at level 1",
}
_IF_NAMED = frozenset(
    NUMBERS[event] for event in (*list(Event)[:5], Event.CALLER, Event.CALLER_LINE)
)
_LEAST = 40_000_000  # short numbers are not written


def legend(values: Mapping[Event, Mapping[int, str]], *, counters: bool) -> Labels:
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


def thread_names(application: int, threads: Sequence[int]) -> tuple[str, ...]:
    """Names of an application's threads as Paraver numbers them."""
    return tuple(
        f"THREAD {application}.{process}.{thread}"
        for process, count in enumerate(threads, start=1)
        for thread in range(1, count + 1)
    )
