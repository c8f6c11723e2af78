"""What the events of a Paraver trace say, as semantic tables."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from popmodel.base.arrays import alike, among
from popmodel.kernel import _kernel
from popmodel.traces.codes import FILE_CALLS, MARKS, Event
from popmodel.traces.intervals import Instants, Intervals, Spans, TracePieces, alone
from popmodel.traces.paraver.device_streams import call_types
from popmodel.traces.paraver.events import (
    Selected,
    instants,
    kinds_of,
    pair,
    rows_where_type,
    select,
    select_by_lines,
    types_of,
    where_nonzero,
)
from popmodel.traces.paraver.numbers import (
    BARRIERS,
    CONSTRUCTS,
    COUNTER_RANGE,
    COUNTERS,
    LINE_OF,
    LOCKS,
    MPI_TYPES,
    NUMBERS,
    OPENMP_TYPES,
    OUTLINED,
    PARALLEL,
    SHORT_OPENMP,
    USER_EVENTS,
)
from popmodel.traces.records import (
    CallSites,
    FileMoves,
    FunctionTimes,
    OpenMP,
    Others,
    Records,
    Synchronisation,
)
from popmodel.traces.regions import (
    Occurrences,
    WithoutWaits,
    full_name,
    running_time,
    without_arguments,
)
from popmodel.traces.tables import EventTable, MessageTable, States, location_of_row, take

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.traces.calls import CallTable
    from popmodel.traces.device_rows import DeviceRows
    from popmodel.traces.paraver.labels import Labels

_APPLICATION, _USER_FUNCTION = NUMBERS[Event.APPLICATION], NUMBERS[Event.USER_REGION]
_CALLER, _LINE = NUMBERS[Event.CALLER], NUMBERS[Event.CALLER_LINE]
_WAITED = (Event.LOCKS_WAITED, Event.CRITICALS_WAITED, Event.ATOMICS_WAITED)
_PLACE = re.compile(r"(\d+) \((.+?)(?:, [^,]+)?\)")
_SHORTENED = re.compile(r".+\) \[(.+)\]")
_NOT_FOUND = ("Unresolved", "_NOT_Found")  # what Extrae calls them
# What calls of MPI tell of themselves; begin and end of processes and of tracing, and what the
# tracer told of the machine it ran on.
_OF_CALLS_AND_RUN = tuple(
    NUMBERS[event]
    for event in (
        *(Event.BYTES_SENT, Event.BYTES_RECEIVED, Event.IS_ROOT, Event.COMMUNICATOR),
        *(Event.APPLICATION, Event.TRACING, Event.CPUS, Event.SHARING),
        *(Event.USED, Event.WAITED, Event.DELAYED, Event.WOKEN),
    )
)


class ParaverRecords(Records):
    def __init__(
        self,
        states: States,
        events: EventTable,
        messages: MessageTable,
        labels: Labels,
        end: int,
        path: str,
        devices: DeviceRows | None = None,
    ) -> None:
        super().__init__(len(states.offsets) - 1)
        self._states, self._events, self._messages = states, events, messages
        self.labels = labels
        self._end, self._path, self._devices = end, path, devices

    @property
    def states(self) -> States:
        return self._states

    @property
    def messages(self) -> MessageTable:
        return self._messages

    @property
    def events(self) -> EventTable:
        return self._events

    def others(self) -> Others:
        """Events of the program: all but those of MPI calls, processes and the tracer."""
        events = self.events
        of_mpi = among(events.type, MPI_TYPES)
        kept = np.flatnonzero(~(of_mpi | among(events.type, _OF_CALLS_AND_RUN)))
        type_ = events.type[kept]
        lasting = (type_ >= USER_EVENTS.start) & (type_ < USER_EVENTS.stop)
        lasting |= among(type_, (*OPENMP_TYPES, _USER_FUNCTION, NUMBERS[Event.FILE_CALL]))
        offsets = np.searchsorted(kept, events.offsets)
        chosen = EventTable(offsets, events.time[kept], type_, events.value[kept])
        return Others(chosen, _turns(events, of_mpi)[kept], lasting)

    def calls(self) -> CallTable:
        return pair(self.events, self.labels, self._end, self._path)

    def sites(self) -> CallSites:
        """Where MPI is called: the first events of callers behind the entry, at its time."""
        if not self.types & {_CALLER, _LINE}:
            return super().sites()
        number: dict[tuple[int, int], int] = {}
        sites = [np.empty(0, np.int32)]
        for found in select_by_lines(self.events, (*MPI_TYPES, _CALLER, _LINE)):
            entries = np.flatnonzero((found.type <= max(MPI_TYPES)) & (found.value != 0))
            kinds, site = alike(*(_at_entry(found, entries, type_) for type_ in (_CALLER, _LINE)))
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
        """Parallel constructs and outlined functions; what is still open ends with the run."""
        events = self._having(*PARALLEL, *OUTLINED)
        found = select(events, (*PARALLEL, *OUTLINED))
        constructs, construct_names = self._spans(events, found, PARALLEL)
        functions, function_names = self._spans(events, found, OUTLINED)
        return OpenMP(constructs, functions, construct_names, function_names)

    def _spans(
        self, events: EventTable, found: Selected, types: Sequence[int]
    ) -> tuple[Spans, list[tuple[str, str]]]:
        """When one of some types is open, which of its values opened it, their names and labels."""
        spans, opening = where_nonzero(found, types, self._end)
        kinds, what = kinds_of(found.type[opening], found.value[opening])
        example = np.zeros(len(kinds), dtype=np.int64)
        example[what] = found.row[opening]
        names = [
            (_region_name(events, self.labels, *kind, row), self.labels.label(*kind))
            for kind, row in zip(kinds, example.tolist(), strict=True)
        ]
        return Spans(spans.offsets, spans.begin, spans.end, what.astype(np.int32)), names

    def synchronisation(self) -> Synchronisation:
        """Barriers, locks and critical sections; what is still open ends with the run."""
        found = select(self._having(*BARRIERS, *LOCKS), (*BARRIERS, *LOCKS))

        def intervals(types: Sequence[int]) -> tuple[Intervals, ...]:
            return tuple(where_nonzero(found, (type_,), self._end)[0] for type_ in types)

        return Synchronisation(intervals(BARRIERS), intervals(LOCKS))

    def user_regions(self) -> Occurrences:
        """Regions that users mark in their programs; what is still open ends with the run."""
        typed = [
            regions
            for type_ in sorted(self.types)
            if type_ == _USER_FUNCTION or (type_ in USER_EVENTS and type_ not in SHORT_OPENMP)
            if (regions := _marked(self.events, self.labels, type_, self._end))
        ]
        names = tuple(sorted({name for of_type, _ in typed for name in of_type}))
        number = {name: index for index, name in enumerate(names)}
        columns = [np.empty((4, 0), np.int64)]
        for of_type, (index, *others) in typed:
            label = np.array([number[name] for name in of_type], np.int64)[index]
            columns.append(np.stack([label, *others]))
        return Occurrences.in_order(names, *np.concatenate(columns, axis=1))

    def functions(
        self, process_offsets: NDArray[np.int64], pieces: TracePieces | None = None
    ) -> FunctionTimes | None:
        """Time in the functions, or regions that users mark, which have begins and ends."""
        if _USER_FUNCTION not in self.types:
            return None
        masters = np.zeros(self.locations, np.uint8)
        masters[process_offsets[:-1]] = True
        running = running_time(self, self.devices().calls)
        numbers, times, _ = _functions(
            self.events, self._end, masters, running, self.openmp(), pieces
        )
        names = [_marked_name(self.labels, _USER_FUNCTION, number) for number in numbers]
        return FunctionTimes(tuple(names), *times)

    def lock_waits(self) -> Instants:
        return self._told(*(NUMBERS[event] for event in _WAITED))

    def misses(self) -> Instants:
        return self._told(NUMBERS[Event.MISSES])

    def counters(self, counters: Sequence[Event | str], locations: slice) -> list[Instants]:
        """Readings of counters of some locations; of hardware's whatever numbers the trace has."""
        types = [self._types_of_counter(counter) for counter in counters]
        return instants(self._having(*itertools.chain(*types)).at(locations), *types)

    def _types_of_counter(self, counter: Event | str) -> list[int]:
        if isinstance(counter, str):
            return sorted(self._types_named(counter))
        if counter not in COUNTERS:
            return [NUMBERS[counter]]
        types = self._types_named(COUNTERS[counter])
        return sorted({*types, NUMBERS[counter]})

    def _types_named(self, name: str) -> set[int]:
        named = self.labels.event_types.items()
        return {type_ for type_, text in named if text.split()[:1] == [name]}

    def counter_names(self) -> list[str]:
        counters = sorted(type_ for type_ in self.types if type_ in COUNTER_RANGE)
        return [self.labels.event_type(type_) for type_ in counters]

    def marks(self) -> Mapping[Event, Instants]:
        types = [NUMBERS[mark] for mark in MARKS]
        found = instants(self._having(*types), *([type_] for type_ in types))
        return dict(zip(MARKS, found, strict=True))

    def ends(self) -> NDArray[np.int64]:
        """End of each thread, ns: the end of the application there, else its last record."""
        ends = self.last_times()
        applications = self._told(_APPLICATION)
        over = np.flatnonzero(applications.value == 0)
        # Rows are in time order: of a thread's the last one counts.
        ends[applications.location[over]] = applications.time[over]
        return ends

    def last_times(self) -> NDArray[np.int64]:
        """End of the last state or event of each location, ns; 0 without any."""
        ends, events = super().ends(), self.events
        some = events.offsets[1:] > events.offsets[:-1]
        ends[some] = np.maximum(ends[some], take(events.time, events.offsets[1:][some] - 1))
        return ends

    @cached_property
    def types(self) -> set[int]:
        """Types of events that occur: of most kinds a trace has none."""
        return types_of(self.events)

    def with_states(self, states: States, note: str) -> Self:
        """The records with other states, and a note on how they were found."""
        devices = None if self._devices is None else replace(self._devices, note=note)
        tables = states, self._events, self._messages
        return type(self)(*tables, self.labels, self._end, self._path, devices)

    @property
    def end(self) -> int:
        return self._end

    def file_io(self) -> Intervals:
        """Calls of POSIX that open, read or write files, outside of flushing the trace."""
        types = (NUMBERS[Event.FILE_CALL], NUMBERS[Event.FLUSH])
        found = select(self._having(types[0]), types)
        calls, flushes = (where_nonzero(found, (type_,), self._end)[0] for type_ in types)
        return alone([calls], [flushes]) if len(flushes) else calls

    def file_moves(self) -> FileMoves | None:
        kinds = ((Event.FILE_CALL, Event.FILE_BYTES), (Event.IO, Event.MPI_FILE_BYTES))
        types = [(NUMBERS[call], NUMBERS[size]) for call, size in kinds]
        found = select(self._having(*(size for _, size in types)), [*itertools.chain(*types)])
        if not len(found.row):
            return None
        location = location_of_row(found.offsets).astype(np.int64)
        columns = []
        for call, size in types:
            changes = np.flatnonzero(found.type == call)
            begins, moving = changes[found.value[changes] != 0], np.flatnonzero(found.type == size)
            last = np.searchsorted(begins, moving) - 1  # the call that it is told of
            row = np.append(begins, -1)[last]
            known = (last >= 0) & (location[row] == location[moving])
            row, moving = row[known], moving[known]
            after = np.append(changes, -1)[np.searchsorted(changes, row, side="right")]
            ends = np.where(location[after] == location[row], found.time[after], self._end)
            values, kind = np.unique(found.value[row], return_inverse=True)
            names = [
                self.labels.mpi_name(call, value).lower()
                if call == NUMBERS[Event.IO]
                else (self.labels.label(call, value) or FILE_CALLS.get(value, "")).lower()
                for value in values.tolist()
            ]
            reads, writes = (np.array([way in name for name in names]) for way in ("read", "write"))
            some = np.flatnonzero((reads | writes)[kind]) if names else np.arange(0)
            columns.append(
                FileMoves(
                    location[row][some],
                    found.time[row][some],
                    np.maximum(ends, found.time[row])[some],
                    found.value[moving][some],
                    reads[kind[some]] if names else np.zeros(0, bool),
                    np.full(len(some), call == NUMBERS[Event.IO]),
                )
            )
        joint = [np.concatenate(pair) for pair in zip(*columns, strict=True)]
        order = np.argsort(joint[0], kind="stable")
        return FileMoves(*(column[order] for column in joint))

    def devices(self) -> DeviceRows:
        """Streams of devices; what threads call of the device's runtime ends with the run."""
        if self._devices is None:
            return super().devices()
        types = call_types(self.labels, self.types)
        calls, names = self._spans(self.events, select(self._having(*types), types), types)
        named = [label or f"call {number}" for number, (_, label) in enumerate(names, start=1)]
        return replace(self._devices, calls=calls, call_names=tuple(named))

    def _told(self, *types: int) -> Instants:
        (told,) = instants(self._having(*types), types)
        return told

    def _having(self, *types: int) -> EventTable:
        """All events if there are any of these types, else none: nobody has to look for them."""
        return EventTable.none(self.locations) if self.types.isdisjoint(types) else self.events


def _turns(events: EventTable, of_mpi: NDArray[np.bool_]) -> NDArray[np.int64]:
    """`Others.turn` of all rows: calls of the location that have begun, and whether one goes on."""
    begins = of_mpi & (events.value != 0)
    begun = np.concatenate([[0], np.cumsum(begins)])
    counts = np.diff(events.offsets)
    before = np.repeat(begun[events.offsets[:-1]], counts)
    rows = np.arange(len(of_mpi))
    last = np.maximum.accumulate(np.where(of_mpi, rows, -1))
    goes_on = (last >= np.repeat(events.offsets[:-1], counts)) & begins[last]
    turns: NDArray[np.int64] = 2 * (begun[1:] - before) - goes_on
    return turns


def _at_entry(found: Selected, entries: NDArray[np.int64], type_: int) -> NDArray[np.int64]:
    """Value of the first event of a type behind each entry and at its time; 0 for none.

    Where there is none, that of an event before it: the order of lines may have been lost.
    """
    values = np.zeros(len(entries), np.int64)
    rows = np.flatnonzero(found.type == type_)
    location = location_of_row(found.offsets)
    # Up to the next call, which can begin at the same time.
    behind = np.searchsorted(entries, rows, side="right")
    for call in (behind, behind - 1):
        told = (call >= 0) & (call < len(entries))
        for column in (found.time, location):
            told[told] = column[rows[told]] == column[entries[call[told]]]
        mine = np.flatnonzero(told)[::-1]  # of equal indices the last assignment stays
        values[call[mine]] = found.value[rows[mine]]
    return values


def _region_name(events: EventTable, labels: Labels, type_: int, value: int, row: int) -> str:
    """Name of a parallel region, with the source line where the trace has one."""
    name = without_arguments(full_name(labels.label(type_, value)))
    if not name:
        name = (
            f"function {value}" if type_ in OUTLINED else CONSTRUCTS.get(value, f"region {value}")
        )
    line_type = LINE_OF.get(type_, -1)
    for other in range(row + 1, min(row + 4, len(events.time))):
        if events.type[other] == line_type and events.time[other] == events.time[row]:
            where = labels.event_value(line_type, int(events.value[other])).split(" ")[0]
            file, _, line = where.rpartition(":")
            if file and line.isdigit() and line != "0":
                return f"{name} ({where})"
    return name


# Regions that users mark open with their number and close the innermost with 0, as Extrae's user
# functions do (the same event type). Where a region goes on around the one that ends, popmodel's
# tracer writes its number again on the same line, for tools that show the last value. A region that
# ends before one that was begun inside it ends with it; that one begins again at the same time.
# The value of any other event type of a user's own holds until the next one, 0 for nothing, as
# Paraver shows it.


def _functions(
    events: EventTable,
    last: int,
    masters: NDArray[np.uint8],
    running: WithoutWaits,
    openmp: OpenMP,
    pieces: TracePieces | None = None,
) -> tuple[list[int], tuple[NDArray[Any], ...], tuple[NDArray[np.int64], ...]]:
    """Values of the functions, rows of their times, and occurrences that lie in no other one."""
    rows = rows_where_type(events.type, (_USER_FUNCTION,))
    numbers, function = np.unique(take(events.value, rows), return_inverse=True)
    ends = int(len(numbers) > 0 and numbers[0] == 0)
    times, occurrences = _kernel.times_of_functions(
        np.searchsorted(rows, events.offsets),
        take(events.time, rows),
        (function - ends).astype(np.int32),
        len(numbers) - ends,
        masters,
        last,
        *(running.offsets, running.begin, running.end),
        *(running.waits.offsets, running.waits.time, running.waits.value),
        *(openmp.constructs.offsets, openmp.constructs.begin, openmp.constructs.end),
        *(openmp.functions.offsets, openmp.functions.begin, openmp.functions.end),
        *((pieces.begin, pieces.end) if pieces else np.empty((2, 0), np.int64)),
    )
    return numbers[ends:].tolist(), times, occurrences


def _marked(
    events: EventTable, labels: Labels, type_: int, last: int
) -> tuple[list[str], tuple[NDArray[np.int64], ...]] | None:
    """Names, and for each interval the index of its name, its location, begin and end.

    None for a type whose values never end: a number that a user records is no region.
    """
    if type_ == _USER_FUNCTION:
        locations = len(events.offsets) - 1
        nobody = WithoutWaits.of_running(Intervals.none(locations), Instants.none(locations))
        nowhere = OpenMP(Spans.none(locations), Spans.none(locations), (), ())
        numbers, _, found = _functions(events, last, np.ones(locations, np.uint8), nobody, nowhere)
        return [_marked_name(labels, type_, number) for number in numbers], found
    rows = rows_where_type(events.type, (type_,))
    time, value = take(events.time, rows), take(events.value, rows)
    offsets = np.searchsorted(rows, events.offsets)
    location = location_of_row(offsets).astype(np.int64)
    follows = location[1:] == location[:-1]
    if not np.any(value == 0):
        return None
    until = np.append(time[1:], last)
    until[np.flatnonzero(~follows)] = last
    some = np.flatnonzero(value)
    values, index = np.unique(value[some], return_inverse=True)
    names = [_marked_name(labels, type_, number) for number in values.tolist()]
    return names, (index, location[some], time[some], until[some])


def _marked_name(labels: Labels, type_: int, value: int) -> str:
    """Name of a region: that of its value, else of its type."""
    named = labels.event_values.get(type_, {})
    if type_ == _USER_FUNCTION:
        return full_name(named.get(value, "")) or f"user function {value}"
    if not named:
        return labels.event_type(type_)
    return full_name(named.get(value, "")) or f"{labels.event_type(type_)}: {value}"
