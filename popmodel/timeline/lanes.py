"""What threads do over time, in lanes of equal steps, measured and replayed."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.arrays import among, spread
from popmodel.base.units import count, plural
from popmodel.base.values import dataclass
from popmodel.kernel import _kernel
from popmodel.simulator.program import Op, ProgramMessages
from popmodel.traces.calls import CallGroup, CallTable
from popmodel.traces.codes import TRACING_DISABLED
from popmodel.traces.intervals import Intervals, TracePieces, alone
from popmodel.traces.regions import parallel_regions, user_regions
from popmodel.traces.tables import MessageTable, walk

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator import Program
    from popmodel.simulator.execution import CriticalPath, Moments
    from popmodel.timeline.window_sums import Activity
    from popmodel.traces import Trace


# What a thread can do at a time, as a timeline shows it.


@dataclass(frozen=True)
class LaneKind:
    """A colour of a timeline."""

    # For programs and for people.
    id: str
    label: str
    # ``useful``, ``mpi``, ``openmp``, ``other``, ``device``, or empty where nothing is recorded.
    group: str


KINDS = (
    LaneKind("none", "nothing recorded", ""),
    LaneKind("computing", "computing", "useful"),
    LaneKind("parallel", "computing in a parallel region", "useful"),
    LaneKind("point-to-point", "MPI point to point", "mpi"),
    LaneKind("wait", "MPI wait or test", "mpi"),
    LaneKind("collective", "MPI collective", "mpi"),
    LaneKind("other-mpi", "other MPI", "mpi"),
    LaneKind("openmp", "OpenMP runtime, or idle in a region", "openmp"),
    LaneKind("idle", "idle outside regions, I/O, other", "other"),
    # Of runs with devices only.
    LaneKind("kernel", "kernel on a device", "device"),
    LaneKind("transfer", "copy on a device, no kernel", "device"),
    LaneKind("device-call", "in the runtime of a device", "device"),
)
"""Every kind; its number is its place here. Where several take equally long, the first counts."""

NONE, COMPUTING, PARALLEL, POINT_TO_POINT, WAIT, COLLECTIVE, OTHER_MPI, OPENMP, IDLE = range(9)
KERNEL, TRANSFER, DEVICE_CALL = range(9, 12)
MPI = (POINT_TO_POINT, WAIT, COLLECTIVE, OTHER_MPI)

_WAITS = ("MPI_Wait", "MPI_Test", "MPI_Probe", "MPI_Iprobe", "MPI_Mprobe", "MPI_Improbe")
_GROUPS = {CallGroup.POINT_TO_POINT: POINT_TO_POINT, CallGroup.COLLECTIVE: COLLECTIVE}


def kind_of_call(calls: CallTable) -> NDArray[np.int64]:
    """Kind of the calls of each name: int64[names]."""
    kinds = [
        WAIT if name.startswith(_WAITS) else _GROUPS.get(group, OTHER_MPI)
        for name, group in zip(calls.names, calls.group, strict=True)
    ]
    return np.array(kinds, np.int64)


# Equal steps of time, and how much of each is covered by intervals of many threads.


@dataclass(frozen=True)
class TimeAxis:
    """Columns of equal length, one after the other."""

    begin: int  # When the first begins, ns
    step: int  # How long each is, ns
    columns: int  # How many there are
    end: int  # Where the last one ends, ns; it may be shorter than the others

    @classmethod
    def over(cls, begin: int, length: int, most: int) -> TimeAxis:
        """Up to `most` equal columns that cover a length, ns; none is shorter than a nanosecond."""
        step = max(1, -(-length // most))
        columns = max(1, -(-length // step))
        return cls(begin, step, columns, begin + columns * step)

    def covered(
        self,
        spans: Intervals,
        lane: NDArray[np.int64],
        some: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.int64]:
        """Time of each lane's intervals in each column, ns: int64[lanes, columns].

        All sums are exact. Where intervals overlap, each counts.
        """
        lanes, width = int(lane.max(initial=0)) + 1, self.columns + 2
        # How much more of a column is covered than of the one before it: an interval's begin makes
        # two differences, its end undoes them.
        change = np.zeros(lanes * width, np.int64)
        for block in walk(spans.begin, spans.end):
            bounds = np.clip(spans.offsets, block.start, block.stop)
            row = np.repeat(lane, bounds[1:] - bounds[:-1])
            begin, end = spans.begin[block], spans.end[block]
            if some is not None:
                counting = some[block]
                row, begin, end = row[counting], begin[counting], end[counting]
            for time, sign in ((begin, 1), (end, -1)):
                since = np.clip(time, self.begin, self.end) - self.begin
                column, over = np.divmod(since, self.step)
                at = row * width + column
                np.add.at(change, at, sign * (self.step - over))
                np.add.at(change, at + 1, sign * over)
        time_in = change.reshape(lanes, width)
        np.cumsum(time_in, axis=1, out=time_in)
        return time_in[:, : self.columns]


# The lanes of a timeline: a thread each, or several neighbours where there are too many.


@dataclass(frozen=True, eq=False)
class LaneRows:
    """Which threads are in which lane, process-major."""

    # int64[R + 1]: First location of each lane, and the number of locations.
    first: NDArray[np.int64]
    labels: tuple[str, ...]  # ``rank 3``, ``rank 3, thread 1``, ``ranks 4-5``
    # What a lane is where it is not one thread, such as ``2 neighbouring ranks to a row``; else
    # empty.
    shared: str = ""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def threads(self) -> NDArray[np.int64]:
        return np.diff(self.first)

    @property
    def of_location(self) -> NDArray[np.int64]:
        """Lane of each location: int64[L]."""
        return np.repeat(np.arange(len(self)), self.threads)


def rows_of(trace: Trace, most: int) -> LaneRows:
    """Arrange the threads of a run in at most so many lanes.

    Threads of a process share lanes first; only where there are more processes than lanes do
    neighbouring processes, with all their threads.
    """
    bounds = np.asarray(trace.process_offsets, np.int64)
    threads, processes = np.diff(bounds), trace.processes
    if processes > most:
        together = -(-processes // most)
        first = np.append(bounds[:-1][::together], bounds[-1])
        ranks = [
            (begin, min(begin + together, processes) - 1) for begin in range(0, processes, together)
        ]
        labels = tuple(_span("rank", *pair) for pair in ranks)
        return LaneRows(first, labels, f"up to {plural(together, 'neighbouring rank')} to a row")
    together = 1 if bounds[-1] <= most else -(-int(threads.max()) // (most // processes))
    starts, labels_of = [], []
    for rank, (begin, size) in enumerate(zip(bounds.tolist(), threads.tolist(), strict=False)):
        for thread in range(0, size, together):
            starts.append(begin + thread)
            last = min(thread + together, size) - 1
            alone = size == 1 or last - thread + 1 == size
            labels_of.append(
                f"rank {rank}" if alone else f"rank {rank}, {_span('thread', thread, last)}"
            )
    shared = "" if together == 1 else f"up to {plural(together, 'thread')} of a rank to a row"
    return LaneRows(np.array([*starts, bounds[-1]], np.int64), tuple(labels_of), shared)


def rows_of_devices(trace: Trace, most: int) -> LaneRows:
    """Arrange the devices of a run in at most so many lanes, below those of its threads."""
    names = trace.devices.devices
    together = max(-(-len(names) // most), 1)
    first = np.append(np.arange(0, len(names), together), len(names))
    labels = tuple(
        names[begin] if end - begin == 1 else f"{names[begin]} and {end - begin - 1} more"
        for begin, end in pairwise(first.tolist())
    )
    shared = "" if together == 1 else f"up to {plural(together, 'device')} to a row"
    return LaneRows(first, labels, shared)


def _span(noun: str, first: int, last: int) -> str:
    return f"{noun} {first}" if first == last else f"{noun}s {first}-{last}"


# What time a replay shows when processes pass what they did at a time of the measured run.


@dataclass(frozen=True, eq=False)
class ModelledLane:
    """The calls of a run that its program has operations of, by process and in order."""

    offsets: NDArray[np.int64]  # int64[P + 1]
    call: NDArray[np.int64]  # int64[K]: Row among the calls of the whole run
    # int64[K]: Measured, ns, in the time of the trace.
    entry: NDArray[np.int64]
    exit: NDArray[np.int64]
    # float64[K]: Replayed, ns from 0: begin of the call's first operation and end of its last.
    begin: NDArray[np.float64]
    end: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LaneClock:
    """From times of the measured run to those of a replay.

    Between modelled calls a replay repeats what a process computed: its clock runs as fast as the
    measured one, and stands still where the replay takes no time, in calls that are not modelled
    and while tracing is disabled. A modelled call lasts as long as the replay says.
    """

    begin: int  # Measured time at which the replay is at 0, ns
    calls: ModelledLane
    outside: Intervals  # Of each process, by its number: when it does not compute, measured
    last: NDArray[np.float64]  # float64[P]: When the replay of each process ends, ns

    def at(self, process: NDArray[np.int64], time: NDArray[np.int64]) -> NDArray[np.float64]:
        """Replayed times, ns from 0, of measured times of some processes."""
        calls = self.calls
        before = _kernel.locate(calls.offsets, calls.entry, process, time)
        some = np.flatnonzero(before >= calls.offsets[process])
        computed = self._computed(process, time)
        shown = computed.astype(np.float64)
        mine, now = before[some], time[some]
        length = calls.exit[mine] - calls.entry[mine]
        passed = np.minimum(now - calls.entry[mine], length) / np.maximum(length, 1)
        passed[length == 0] = 1.0
        inside = calls.begin[mine] + passed * (calls.end[mine] - calls.begin[mine])
        after = computed[some] - self._computed(process[some], calls.exit[mine])
        shown[some] = inside + np.maximum(after, 0)
        return np.clip(shown, 0.0, self.last[process])

    def spans(self, spans: Intervals, process: NDArray[np.int64]) -> Intervals:
        """Intervals of locations where they lie in the replay, whose 0 is at `begin`; whole ns."""
        mine = process[spans.location]
        begin, end = (self.shown(self.at(mine, each)) for each in (spans.begin, spans.end))
        return Intervals(spans.offsets, begin, end)

    def shown(self, time: NDArray[np.float64]) -> NDArray[np.int64]:
        """Replayed times on the axis of the measured run: whole ns, 0 at `begin`."""
        return np.rint(time).astype(np.int64) + self.begin

    def _computed(self, process: NDArray[np.int64], time: NDArray[np.int64]) -> NDArray[np.int64]:
        """Computing of a process up to a measured time, ns."""
        return time - self.begin - self.outside.before(process, time)


def clock_of(trace: Trace, program: Program, moments: Moments) -> LaneClock:
    masters = np.asarray(trace.process_offsets[:-1], np.int64)
    sets = [
        trace.calls().intervals().at(masters),
        trace.records.in_state(TRACING_DISABLED).at(masters),
    ]
    outside = alone(sets, [])
    by_process = Intervals(
        np.append(outside.offsets[masters], outside.offsets[-1]), outside.begin, outside.end
    )
    return LaneClock(trace.begin, _modelled(trace, program, moments), by_process, moments.last)


def _modelled(trace: Trace, program: Program, moments: Moments) -> ModelledLane:
    new = np.ones(program.operations, bool)
    new[1:] = program.call[1:] != program.call[:-1]
    new[program.offsets[:-1][np.diff(program.offsets) > 0]] = True
    first = np.flatnonzero(new)
    last = np.append(first[1:], program.operations)[: len(first)] - 1
    call = program.call[first].astype(np.int64)
    whole = (trace.whole or trace).calls()
    pieces = trace.pieces or TracePieces.window(trace.begin, trace.end)
    return ModelledLane(
        np.searchsorted(first, program.offsets),
        call,
        pieces.moved(whole.entry[call]),
        pieces.moved(whole.exit[call]),
        moments.begin[first],
        moments.end[last],
    )


# What each lane mostly does in each column, measured and in a replay.


@dataclass(frozen=True, eq=False)
class Lanes:
    kind: NDArray[np.uint8]  # uint8[R, C]: What takes most of each column, by number in `KINDS`
    # int64[R, kinds]: Time of each lane in each kind, ns, of all its threads together.
    spent: NDArray[np.int64]


def measured(trace: Trace, doing: Activity, axis: TimeAxis, rows: LaneRows) -> Lanes:
    """Lay out the measured run."""
    calls = trace.calls()
    most = _Most(axis, rows, np.full(trace.locations, trace.end))
    most.add(NONE, doing.unrecorded)
    most.add_computing(doing.serial, doing.running)
    most.add_calls(doing.in_calls, kind_of_call(calls)[calls.name])
    most.add(OPENMP, doing.in_runtime)
    most.add(DEVICE_CALL, doing.in_device)
    return most.lanes()


def with_devices(trace: Trace, lanes: Lanes, axis: TimeAxis, rows: LaneRows) -> Lanes:
    """Lanes of threads with those of devices below."""
    if not len(rows):
        return lanes
    devices = trace.devices
    most = _Most(axis, rows, np.full(len(devices.devices), trace.end))
    most.add(NONE, Intervals.none(len(devices.devices)))
    most.add(KERNEL, devices.kernels())
    most.add(TRANSFER, devices.transfers())
    below = most.lanes()
    return Lanes(
        np.concatenate([lanes.kind, below.kind]), np.concatenate([lanes.spent, below.spent])
    )


def replayed(
    trace: Trace, doing: Activity, clock: LaneClock, axis: TimeAxis, rows: LaneRows
) -> Lanes:
    """Lay out a replay.

    What threads compute is as measured, at the times of the replay's clock. Calls of MPI are on
    masters, from their first operation to their last.
    """
    process = trace.process_of_location().astype(np.int64)
    most = _Most(axis, rows, clock.shown(clock.last)[process])
    most.add(NONE, clock.spans(doing.unrecorded, process))
    running = clock.spans(doing.running, process)
    serial = running if doing.serial is doing.running else clock.spans(doing.serial, process)
    most.add_computing(serial, running)
    calls, shown = (trace.whole or trace).calls(), clock.calls
    is_master = np.zeros(trace.locations, np.int64)
    is_master[np.asarray(trace.process_offsets[:-1])] = 1
    of_masters = np.concatenate([[0], np.cumsum(np.diff(shown.offsets)[process] * is_master)])
    spans = Intervals(of_masters, clock.shown(shown.begin), clock.shown(shown.end))
    most.add_calls(spans, kind_of_call(calls)[calls.name[shown.call]])
    most.add(OPENMP, clock.spans(doing.in_runtime, process))
    most.add(DEVICE_CALL, clock.spans(doing.in_device, process))
    return most.lanes()


class _Most:
    """The kind that takes most of each step, kind by kind in the order of their numbers.

    Nobody holds the times of all kinds at once: they are nine numbers for each cell.
    """

    def __init__(self, axis: TimeAxis, rows: LaneRows, over: NDArray[np.int64]) -> None:
        self._axis, self._lane = axis, rows.of_location
        room = (axis.step * rows.threads)[:, None]
        self._rest = np.repeat(room, axis.columns, axis=1)
        self._most = np.full_like(self._rest, -1)
        self._kind = np.zeros(self._rest.shape, np.uint8)
        self._spent = np.zeros((len(rows), len(KINDS)), np.int64)
        after = np.arange(len(over) + 1), over, np.maximum(over, axis.end)
        self._after: NDArray[np.int64] = axis.covered(Intervals(*after), self._lane)

    def add(self, number: int, spans: Intervals, some: NDArray[np.bool_] | None = None) -> None:
        if number == NONE:
            self._add(NONE, self._after + self._axis.covered(spans, self._lane))
        elif len(spans):
            self._add(number, self._axis.covered(spans, self._lane, some))

    def add_computing(self, serial: Intervals, running: Intervals) -> None:
        """Add computing outside of parallel regions, and inside."""
        outside = self._axis.covered(serial, self._lane)
        self._add(COMPUTING, outside)
        if serial is not running:
            inside = self._axis.covered(running, self._lane) - outside
            self._add(PARALLEL, np.maximum(inside, 0))

    def add_calls(self, spans: Intervals, kind: NDArray[np.int64]) -> None:
        for number in MPI:
            some = kind == number
            if some.any():
                self.add(number, spans, some)

    def lanes(self) -> Lanes:
        """The kinds; what none explains is idle."""
        self._add(IDLE, np.maximum(self._rest, 0))
        return Lanes(self._kind, self._spent)

    def _add(self, number: int, time: NDArray[np.int64]) -> None:
        self._spent[:, number] = time.sum(axis=1)
        self._rest -= time
        np.copyto(self._kind, number, where=time > self._most)  # of equal ones the first counts
        np.maximum(self._most, time, out=self._most)


# Which region each lane is in: those that users mark, and parallel regions of OpenMP.


@dataclass(frozen=True, eq=False)
class NamedRegions:
    """Regions of all threads, by location and begin; those of one thread nest."""

    names: tuple[str, ...]  # Of the regions that users mark, then of parallel regions
    marked: int  # How many names are of the first kind
    location: NDArray[np.int64]  # int64[N]
    # int64[N]: Nanoseconds; none is empty.
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    label: NDArray[np.int64]  # int64[N]: Index into `names`


def regions_of(trace: Trace) -> NamedRegions:
    """Find when threads are in which region: parallel regions are those of the whole team."""
    marked, openmp = user_regions(trace), parallel_regions(trace)
    names = list(dict.fromkeys([*marked.names, *openmp.names]))
    number = {name: place for place, name in enumerate(names)}
    bounds = np.asarray(trace.process_offsets, np.int64)
    process = trace.process_of_location().astype(np.int64)[openmp.on_master.location]
    row, location = spread(bounds[process], np.diff(bounds)[process])
    numbers = [
        np.array([number[name] for name in each], np.int64) for each in (marked.names, openmp.names)
    ]
    columns = (
        np.concatenate([marked.location, location]),
        np.concatenate([marked.begin, openmp.on_master.begin[row]]),
        np.concatenate([marked.end, openmp.on_master.end[row]]),
        np.concatenate([numbers[0][marked.label], numbers[1][openmp.label[row]]]),
    )
    # Of two that begin at once the longer one is outside.
    order = np.lexsort((-columns[2], columns[1], columns[0]))
    order = order[columns[2][order] > columns[1][order]]
    return NamedRegions(tuple(names), len(marked.names), *(each[order] for each in columns))


# Messages and the critical path, for drawing on lanes: the largest where there are too many.


@dataclass(frozen=True, eq=False)
class Arrows:
    """Messages from lane to lane, in order of their sending."""

    # int64[M]: Lanes.
    sender: NDArray[np.int64]
    receiver: NDArray[np.int64]
    # int64[M]: Entry of the call that sends and exit of the one that completes the receive, ns.
    sent: NDArray[np.int64]
    received: NDArray[np.int64]
    size: NDArray[np.int64]  # int64[M]: Bytes
    every: int  # How many messages there are; more than M where only the largest are here

    def __len__(self) -> int:
        return len(self.size)

    def at(self, some: NDArray[np.int64]) -> Arrows:
        """Some of them."""
        return Arrows(
            self.sender[some],
            self.receiver[some],
            self.sent[some],
            self.received[some],
            self.size[some],
            self.every,
        )

    @property
    def note(self) -> str | None:
        """What is left out, if anything is."""
        if self.every == len(self):
            return None
        return f"the {count(len(self))} largest of {count(self.every)} messages"


def measured_messages(trace: Trace, rows: LaneRows, most: int) -> Arrows:
    """Messages of a run that are under way while it lasts."""
    messages, lane = trace.messages, rows.of_location
    sent, received = messages.logical_send, messages.physical_receive
    inside = (np.minimum(sent, received) < trace.end) & (np.maximum(sent, received) > trace.begin)
    # One that comes from before or arrives afterwards is drawn as far as that is in sight.
    before, after = trace.begin - trace.duration, trace.end + trace.duration
    sent, received = np.clip(sent, before, after), np.clip(received, before, after)
    return _largest(messages, lane, sent, received, np.flatnonzero(inside), most)


def replayed_messages(
    trace: Trace, program: Program, moments: Moments, rows: LaneRows, most: int
) -> Arrows:
    """Messages of a replay; its time 0 is the begin of the run."""
    messages = program.messages
    sent, received = np.full((2, len(messages)), np.nan)
    for ops, time, into in (
        ((Op.SEND, Op.ISEND), moments.begin, sent),
        ((Op.RECEIVE, Op.WAIT_RECEIVE), moments.end, received),
    ):
        mine = np.flatnonzero(among(program.kind, ops))
        into[program.target[mine]] = time[mine]
    lane = rows.of_location[np.asarray(trace.process_offsets[:-1])]
    both = np.flatnonzero(np.isfinite(sent) & np.isfinite(received))
    sent, received = (np.rint(np.nan_to_num(each)).astype(np.int64) for each in (sent, received))
    return _largest(messages, lane, sent + trace.begin, received + trace.begin, both, most)


def _largest(
    messages: MessageTable | ProgramMessages,
    lane: NDArray[np.int64],
    sent: NDArray[np.int64],
    received: NDArray[np.int64],
    some: NDArray[np.int64],
    most: int,
) -> Arrows:
    """Some messages in order of their sending: the largest where there are too many."""
    kept = some
    if len(some) > most:
        kept = some[np.argsort(-messages.size[some], kind="stable")[:most]]
    kept = kept[np.argsort(sent[kept], kind="stable")]
    return Arrows(
        lane[messages.sender[kept]],
        lane[messages.receiver[kept]],
        sent[kept].astype(np.int64),
        received[kept].astype(np.int64),
        messages.size[kept].astype(np.int64),
        every=len(some),
    )


@dataclass(frozen=True, eq=False)
class Path:
    """The critical path of a replay, as stretches on one lane after the other."""

    lane: NDArray[np.int64]  # int64[K]
    # int64[K]: Nanoseconds; each begins where the one before ends.
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    changes: int  # How often it goes over to another process
    shortest: int  # Shorter stretches are drawn with those before them, ns; 0 where there are none

    def __len__(self) -> int:
        return len(self.lane)


def path_on(trace: Trace, path: CriticalPath, rows: LaneRows, most: int) -> Path:
    """Lay a critical path on lanes; of more than `most` stretches the shortest are left out."""
    lane = rows.of_location[np.asarray(trace.process_offsets[:-1])][path.process]
    end = np.rint(np.cumsum(path.time)).astype(np.int64) + trace.begin
    lane, end = _joined(lane, end)
    shortest = 0
    while len(lane) > most:
        length = np.diff(end, prepend=trace.begin)
        shortest = max(
            2 * shortest, int(np.partition(length, len(lane) - most)[len(lane) - most]), 1
        )
        kept = length >= shortest
        kept[-1] = True
        # What is left out goes to the stretch before it, or at the begin to the one behind.
        end = np.append(end[np.flatnonzero(kept)[1:] - 1], end[-1]) if kept.any() else end
        lane, end = _joined(lane[kept], end)
    begin = np.concatenate([[trace.begin], end[:-1]]) if len(end) else end
    return Path(lane, begin, end, path.changes, shortest)


def _joined(
    lane: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Neighbouring stretches on one lane as one."""
    last = np.append(lane[1:] != lane[:-1], [True])[: len(lane)]
    return lane[last], end[last]
