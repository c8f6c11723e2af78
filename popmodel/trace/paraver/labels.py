"""Names of states, event types and values: from a ``.pcf`` file, or from built-in tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from popmodel.trace.paraver.numbers import EVENT_TYPES, MPI_CALLS
from popmodel.trace.states import STATES
from popmodel.values import dataclass


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
        """Name of an MPI call."""
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
