"""What the events of a Paraver trace say, as semantic tables."""

from __future__ import annotations

import itertools
import re
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from popmodel.arrays import alike
from popmodel.trace.blocks import take
from popmodel.trace.event import MARKS, Event
from popmodel.trace.function_names import full_name, without_arguments
from popmodel.trace.instants import Instants
from popmodel.trace.paraver.calls import named_calls, pair, tally
from popmodel.trace.paraver.events import instants, select, select_by_lines, types_of
from popmodel.trace.paraver.numbers import (
    BARRIERS,
    COUNTER_RANGE,
    COUNTERS,
    LOCKS,
    MPI_TYPES,
    NUMBERS,
    OUTLINED,
    PARALLEL,
)
from popmodel.trace.paraver.openmp import openmp, synchronisation
from popmodel.trace.paraver.others import others
from popmodel.trace.paraver.user_regions import user_regions
from popmodel.trace.records import CallSites, Records
from popmodel.trace.tables import EventTable

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from popmodel.trace.calls import CallTable
    from popmodel.trace.paraver.events import Selected
    from popmodel.trace.paraver.labels import Labels
    from popmodel.trace.records import NamedCall, OpenMP, Others, Synchronisation, Tally
    from popmodel.trace.tables import MessageTable, States
    from popmodel.trace.user_regions import Occurrences

_APPLICATION = NUMBERS[Event.APPLICATION]
_CALLER, _LINE = NUMBERS[Event.CALLER], NUMBERS[Event.CALLER_LINE]
_WAITED = (Event.LOCKS_WAITED, Event.CRITICALS_WAITED, Event.ATOMICS_WAITED)
_PLACE = re.compile(r"(\d+) \((.+?)(?:, [^,]+)?\)")
_SHORTENED = re.compile(r".+\) \[(.+)\]")
_NOT_FOUND = ("Unresolved", "_NOT_Found")  # what Extrae calls them


class ParaverRecords(Records):
    """Records of a Paraver trace."""

    def __init__(
        self,
        states: States,
        events: EventTable,
        messages: MessageTable,
        labels: Labels,
        end: int,
        path: str,
    ) -> None:
        super().__init__(len(states.offsets) - 1)
        self._states, self._events, self._messages = states, events, messages
        self.labels = labels
        self._end, self._path = end, path

    @property
    def states(self) -> States:
        """What each thread was doing."""
        return self._states

    @property
    def messages(self) -> MessageTable:
        """Point-to-point messages."""
        return self._messages

    @property
    def events(self) -> EventTable:
        """All events."""
        return self._events

    def others(self) -> Others:
        """Events of the program: all but those of MPI calls, processes and the tracer."""
        return others(self.events)

    def calls(self) -> CallTable:
        """MPI calls, paired from their entries and exits."""
        return pair(self.events, self.labels, self._end, self._path)

    def tally(self) -> Tally:
        """Count the MPI calls by name, the most frequent first."""
        return tally(self.events, self.labels)

    def calls_named(self, names: Collection[str]) -> list[NamedCall]:
        """Calls of a few names, without holding all."""
        return named_calls(self.events, self.labels, self._end, names)

    def sites(self) -> CallSites:
        """Where MPI is called: the first events of callers behind the entry, at its time."""
        if not self.types & {_CALLER, _LINE}:
            return super().sites()
        number: dict[tuple[int, int], int] = {}
        sites = [np.empty(0, np.int32)]
        for found in select_by_lines(self.events, (*MPI_TYPES, _CALLER, _LINE)):
            entries = np.flatnonzero((found.type <= max(MPI_TYPES)) & (found.value != 0))
            kinds, site = alike(*(_beside(found, entries, type_) for type_ in (_CALLER, _LINE)))
            numbers = [number.setdefault((*kind,), len(number)) for kind in kinds.tolist()]
            sites.append(np.array(numbers, np.int32)[site])
        if len(number) <= 1:
            sites = sites[:1]
        places = [(self._function(caller), self._place(line)) for caller, line in number]
        return CallSites(np.concatenate(sites), places or (("", ""),))

    def _function(self, value: int) -> str:
        label = self.labels.label(_CALLER, value).strip()
        if not value or label in _NOT_FOUND:
            return ""
        return without_arguments(full_name(label)) if label else f"function {value}"

    def _place(self, value: int) -> str:
        label = self.labels.label(_LINE, value).strip()
        whole = _SHORTENED.fullmatch(label) if label.endswith("]") else None
        line = _PLACE.fullmatch(whole[1] if whole else label)
        if line is None:
            return "" if not value or label in _NOT_FOUND else label or f"line {value}"
        if line[2] in _NOT_FOUND:
            return ""
        return line[2] if line[1] == "0" else f"{line[2]}:{line[1]}"

    def openmp(self) -> OpenMP:
        """Parallel regions of OpenMP."""
        return openmp(self._having(*PARALLEL, *OUTLINED), self.labels, self._end)

    def synchronisation(self) -> Synchronisation:
        """When threads wait for each other."""
        return synchronisation(self._having(*BARRIERS, *LOCKS), self._end)

    def user_regions(self) -> Occurrences:
        """Regions that users mark in their programs."""
        return user_regions(self.events, self.labels, self._end)

    def lock_waits(self) -> Instants:
        """Time waited for locks that are summed up, ns."""
        types = [NUMBERS[event] for event in _WAITED]
        (told,) = instants(self._having(*types), types)
        return told

    def misses(self) -> Instants:
        """Tests and probes in a row that found nothing."""
        type_ = NUMBERS[Event.MISSES]
        (told,) = instants(self._having(type_), [type_])
        return told

    def counters(self, counters: Sequence[Event], locations: slice) -> list[Instants]:
        """Readings of counters of some locations; of hardware's whatever numbers the trace has."""
        types = [self._types_of_counter(counter) for counter in counters]
        return instants(self._having(*itertools.chain(*types)).at(locations), *types)

    def _types_of_counter(self, counter: Event) -> list[int]:
        if counter not in COUNTERS:
            return [NUMBERS[counter]]
        named = self.labels.event_types.items()
        types = {type_ for type_, text in named if text.split()[:1] == [COUNTERS[counter]]}
        return sorted({*types, NUMBERS[counter]})

    def counter_names(self) -> list[str]:
        """All hardware counters of which there are readings."""
        counters = sorted(type_ for type_ in self.types if type_ in COUNTER_RANGE)
        return [self.labels.event_type(type_) for type_ in counters]

    def marks(self) -> Mapping[Event, Instants]:
        """What the tracer tells about the trace."""
        types = [NUMBERS[mark] for mark in MARKS]
        every = select(self._having(*types), types)
        found = {}
        for mark in MARKS:
            mine = every.of([NUMBERS[mark]])
            found[mark] = Instants(mine.offsets, mine.time, mine.value)
        return found

    def ends(self) -> NDArray[np.int64]:
        """End of each thread, ns: the end of the application there, else its last record."""
        ends, events = super().ends(), self.events
        some = events.offsets[1:] > events.offsets[:-1]
        ends[some] = np.maximum(ends[some], take(events.time, events.offsets[1:][some] - 1))
        (told,) = instants(self._having(_APPLICATION), (_APPLICATION,))
        over = np.flatnonzero(told.value == 0)
        ends[told.location[over]] = told.time[over]  # rows are in time order: the last one counts
        return ends

    @cached_property
    def types(self) -> set[int]:
        """Types of events that occur: of most kinds a trace has none."""
        return types_of(self.events)

    def _having(self, *types: int) -> EventTable:
        """All events if there are any of these types, else none: nobody has to look for them."""
        return EventTable.none(self.locations) if self.types.isdisjoint(types) else self.events


def _beside(found: Selected, entries: NDArray[np.int64], type_: int) -> NDArray[np.int64]:
    """Value of the first event of a type behind each entry and at its time; 0 for none."""
    values = np.zeros(len(entries), np.int64)
    rows = np.flatnonzero(found.type == type_)
    # Up to the next call, which can begin at the same time.
    call = np.searchsorted(entries, rows, side="right") - 1
    first = np.flatnonzero(np.append(call[:1] >= 0, call[1:] > call[:-1]))
    call, rows = call[first], rows[first]
    same = found.time[rows] == found.time[entries[call]]
    values[call[same]] = found.value[rows[same]]
    return values
