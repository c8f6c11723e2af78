"""What the processes of a run call differently and is one thing: communicators, functions, names,
call sites.

Each process numbers its own communicators and knows functions by their addresses. In the trace each
has one number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from popmodel.base.values import dataclass
from popmodel.tracer.meta import Communicator, Function, Meta, TracedSite
from popmodel.tracer.raw import Process
from popmodel.tracer.raw_records import INCOMPLETE, SITE_SHIFT, known_calls
from popmodel.tracer.symbol_table import SymbolPlace, demangle
from popmodel.traces.calls import FOUND_NOTHING
from popmodel.traces.codes import Event
from popmodel.traces.regions import readable

WORLD, SELF = 1, 2
"""What every process calls MPI_COMM_WORLD and MPI_COMM_SELF."""

Locate = Callable[[str, Sequence[int]], Sequence[SymbolPlace]]
"""From a module and offsets in it to functions and source lines."""


class ProcessNumbers(dict[int, int]):
    """Numbers by what a process calls its own; what it never described gets one when it is met."""

    def __init__(self, known: Mapping[int, int], unknown: Callable[[int], int]) -> None:
        super().__init__(known)
        self._unknown = unknown

    def __missing__(self, own: int) -> int:
        self[own] = number = self._unknown(own)
        return number


@dataclass
class Communicators:
    """All communicators of a run."""

    # World ranks by number; without intercommunicators, of which a trace does not tell them.
    members: dict[int, tuple[int, ...]] = field(default_factory=dict)
    _numbers: dict[tuple[str, int], int] = field(default_factory=dict)

    @classmethod
    def of(cls, processes: Sequence[Process], size: int) -> Communicators:
        """Number the communicators of all processes, MPI_COMM_WORLD as 1."""
        made = cls()
        partial: dict[int, dict[int, int]] = {}
        for process in processes:
            for number, each in sorted(process.meta.communicators.items()):
                own = made._number(each)
                if each.intercommunicator:
                    continue
                if each.members is not None:
                    made.members[own] = each.members
                partial.setdefault(own, {})[each.rank] = process.rank
                if number == WORLD:
                    made.members[own] = tuple(range(size))
        for own, ranks in partial.items():
            # Where the process that lists them is not there: those that say they belong to it.
            made.members.setdefault(own, tuple(rank for _, rank in sorted(ranks.items())))
        made.members = {
            number: tuple(rank for rank in ranks if 0 <= rank < size)
            for number, ranks in sorted(made.members.items())
        }
        return made

    def of_process(self, meta: Meta) -> NDArray[np.int64]:
        """Numbers by what a process calls its communicators; 0 for what it never described."""
        table = np.zeros(max(meta.communicators, default=0) + 1, np.int64)
        for number, each in meta.communicators.items():
            table[number] = self._number(each)
        return table

    def _number(self, each: Communicator) -> int:
        return self._numbers.setdefault((each.hash, each.ordinal), len(self._numbers) + 1)


@dataclass
class Functions:
    """Functions of parallel regions and tasks, numbered from 1."""

    # Of function 1, 2, ... as their authors wrote them.
    names: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)  # Source lines; empty where unknown
    _numbers: dict[tuple[str, str | int], int] = field(default_factory=dict)
    _known: list[Function] = field(default_factory=list)

    def of_process(self, meta: Meta) -> ProcessNumbers:
        """Numbers by address in a process."""
        known = {address: self._number(each) for address, each in sorted(meta.functions.items())}
        return ProcessNumbers(known, lambda address: self._number(Function(None, "", address)))

    def locate(self, locate: Locate) -> None:
        """Find the names and the source lines of all functions."""
        found = _located(locate, [(each.module, each.offset) for each in self._known])
        for number, place in enumerate(found):
            self.names[number] = place.function or self.names[number]
            self.lines[number] = place.line or ""
        # Regions of one function have its name: without their lines they need another sign.
        same = Counter(zip(self.names, self.lines, strict=True))
        for number, (name, line) in enumerate(zip(list(self.names), self.lines, strict=True)):
            if not line and same[name, line] > 1:
                self.names[number] = f"{name} ({_address(self._known[number])})"

    def _number(self, each: Function) -> int:
        key: tuple[str, str | int] = (each.module, each.name or each.offset)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.names) + 1
            (name,) = demangle([readable(each.name)]) if each.name else (_address(each),)
            self.names.append(name)
            self.lines.append("")
            self._known.append(each)
        return number


@dataclass
class Sites:
    """Call sites of MPI."""

    functions: list[str] = field(default_factory=list)  # Functions 1, 2, ... that they are in
    # Lines 1, 2, ... as Extrae writes them: ``42 (solver.c, app)``; where the line is not known ``0
    # (app+0x1234, app)``.
    lines: list[str] = field(default_factory=list)
    _known: dict[TracedSite, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, metas: Sequence[Meta], locate: Locate | None) -> Sites:
        """Find functions and lines of the call sites of all processes."""
        made = cls()
        sites = sorted(
            {each for meta in metas for each in meta.sites.values()},
            key=lambda each: (each.module, each.offset),
        )
        # What is known is where a call returns to, which is behind the call.
        places = [(each.module, each.offset - 1) for each in sites]
        found = [SymbolPlace()] * len(sites) if locate is None else _located(locate, places)
        for site, place in zip(sites, found, strict=True):
            module = Path(site.module).name or "unknown"
            file, _, number = (place.line or "").rpartition(":")
            line = f"{number} ({file}, {module})" if file else f"0 ({_address(site)}, {module})"
            made._known[site] = (
                _number(made.functions, place.function or module),
                _number(made.lines, line),
            )
        return made

    def of_process(self, meta: Meta) -> NDArray[np.int64]:
        """Function and line, by what a process calls its call sites; 0 for what it never told."""
        table = np.zeros((1 << (64 - SITE_SHIFT), 2), np.int64)
        for number, site in meta.sites.items():
            if 0 < number < len(table):
                table[number] = self._known[site]
        return table


def _address(place: Function | TracedSite) -> str:
    return f"{Path(place.module).name or 'function'}+{place.offset:#x}"


def _number(known: list[str], text: str) -> int:
    """Number of a text from 1, in a list that is short."""
    if text not in known:
        known.append(text)
    return known.index(text) + 1


def _located(locate: Locate, places: Sequence[tuple[str, int]]) -> list[SymbolPlace]:
    """Find places, all of a module at once."""
    found = [SymbolPlace()] * len(places)
    by_module: dict[str, list[int]] = {}
    for number, (module, _) in enumerate(places):
        by_module.setdefault(module, []).append(number)
    for module, numbers in by_module.items():
        if module:
            told = locate(module, [places[number][1] for number in numbers])
            for number, place in zip(numbers, told, strict=True):
                found[number] = place
    return found


@dataclass
class Names:
    """Names of the user's regions, numbered from 1."""

    numbers: dict[str, int] = field(default_factory=dict)

    def of_process(self, meta: Meta) -> ProcessNumbers:
        """Numbers by the ids of a process."""
        known = {own: self._number(text) for own, text in sorted(meta.names.items())}
        return ProcessNumbers(known, lambda own: self._number(f"region {own}"))

    def _number(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers) + 1)


def names_of_values(
    called: NDArray[np.int64], functions: Functions, names: Names, sites: Sites
) -> Mapping[Event, Mapping[int, str]]:
    """Names of the values of events that are others in every run."""
    values: dict[Event, dict[int, str]] = {}
    for number in np.flatnonzero(called).tolist():
        call = known_calls()[number]
        of_group = values.setdefault(call.event, {0: "Outside MPI"})
        # Two calls share a number where Extrae has one for both: the plain name is kept.
        of_group.setdefault(call.value, f"MPI_{call.name}")
        if call.may_miss:
            of_group[call.value + INCOMPLETE] = f"MPI_{call.name}{FOUND_NOTHING}"
    running = {0: "End", **dict(enumerate(functions.names, start=1))}
    for event in (Event.OUTLINED, Event.TASK, Event.NEW_TASK):
        values[event] = running
    if any(functions.lines):
        lines = enumerate(zip(functions.lines, functions.names, strict=True), start=1)
        values[Event.OUTLINED_LINE] = {0: "End"} | {
            number: f"{line or '?:0'} ({name})" for number, (line, name) in lines
        }
    if sites.lines:
        values[Event.CALLER] = {0: "End", **dict(enumerate(sites.functions, start=1))}
        values[Event.CALLER_LINE] = {0: "End", **dict(enumerate(sites.lines, start=1))}
    values[Event.USER_REGION] = {0: "End"} | {
        number: text for text, number in names.numbers.items()
    }
    return values
