"""When the calls of a replayed run begin and end, and with them everything else in its trace.

What lies between two calls of MPI moves with them as a whole: it was measured and takes as long as
it did, but for the CPU factor. Times are whole nanoseconds; those of the replay are rounded once,
at the end of a call, so that time outside of MPI stays exact.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.arrays import spread
from popmodel.base.errors import ReplayError
from popmodel.base.values import dataclass
from popmodel.simulator.match_calls import communicators_of_callers
from popmodel.simulator.mpi_calls import Action, action_of, state_of
from popmodel.simulator.program import COLLECTIVES, Op
from popmodel.simulator.replayer import Replayer
from popmodel.traces import Trace
from popmodel.traces.calls import CallTable, CollectiveArguments
from popmodel.traces.codes import IDLE, TRACING_DISABLED
from popmodel.traces.intervals import TracePieces
from popmodel.traces.paraver.writer import labels_of, write_trace
from popmodel.traces.records import Others, RecordColumns
from popmodel.traces.tables import EventTable, MessageTable, States, location_of_row, offsets_of

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    from popmodel.network.network import Network
    from popmodel.simulator.program import Program


@dataclass(frozen=True)
class ClockCourse:
    """How the time of a process in the trace becomes its time in the replay."""

    # int64[2 K + 2]: Its begin, the entry and the exit of each of its K calls, and its end, ns: in
    # the analysed part of the trace without tracing-disabled time, and in the replay.
    before: NDArray[np.int64]
    after: NDArray[np.int64]

    def inside(self, stretch: NDArray[np.int64], time: NDArray[np.int64]) -> NDArray[np.int64]:
        """Times in the replay, where it is known between which two entries of `before` they lie."""
        begin, length = self.before[stretch], np.diff(self.before)[stretch]
        passed = np.clip(time - begin, 0, length)
        new = np.diff(self.after)[stretch]
        scaled = np.minimum((passed * (new / np.maximum(length, 1))).astype(np.int64), new)
        retimed = np.where(length == new, passed, np.where(passed == length, new, scaled))
        # What took no time happens at its begin, however long it takes now.
        after: NDArray[np.int64] = self.after[stretch] + np.where(length == 0, 0, retimed)
        return after

    def begins(self, time: NDArray[np.int64]) -> NDArray[np.int64]:
        """Begins of states in the replay: what begins with the end of a call begins after it."""
        stretch = np.searchsorted(self.before, time, side="right") - 1
        return self.inside(np.clip(stretch, 0, len(self.before) - 2), time)

    def ends(self, time: NDArray[np.int64]) -> NDArray[np.int64]:
        """Ends of states in the replay, and times of events that belong to no call."""
        stretch = np.maximum(np.searchsorted(self.before, time, side="left") - 1, 0)
        end = self.after[np.minimum(stretch + 1, len(self.after) - 1)]
        whole = time >= self.before[np.minimum(stretch + 1, len(self.before) - 1)]
        return np.where(whole, end, self.inside(np.minimum(stretch, len(self.before) - 2), time))


@dataclass(frozen=True)
class RetimedCalls:
    """Calls of the analysed part of a run, in the time of its replay."""

    row: NDArray[np.int64]  # int64[n]: Of each call among those of the whole run, ascending
    # int64[P + 1]: Those of process p are ``offsets[p]`` up to ``offsets[p + 1]``.
    offsets: NDArray[np.int64]
    # int64[n]: ns.
    entry: NDArray[np.int64]
    exit: NDArray[np.int64]
    courses: list[ClockCourse]  # Of each process

    @property
    def ends(self) -> NDArray[np.int64]:
        """End of each process, ns."""
        return np.array([course.after[-1] for course in self.courses], np.int64)


def retimed_calls(
    trace: Trace, program: Program, end: NDArray[np.float64], cpu: float
) -> RetimedCalls:
    """Find when the calls of a run begin and end in a replay."""
    whole = trace.whole or trace
    masters = np.asarray(whole.process_offsets[:-1], np.int64)
    calls = whole.calls()
    pieces = trace.pieces or TracePieces.window(trace.begin, trace.end)
    kept = np.ones(len(calls), np.bool_)
    if whole is not trace:
        kept = pieces.overlap(calls.entry, calls.exit)[1] > 0
        kept[program.call] = True
    row = np.flatnonzero(kept)
    offsets = np.searchsorted(row, np.append(calls.offsets[masters], len(calls)))
    disabled = trace.records.in_state(TRACING_DISABLED)

    def clock(time: NDArray[np.int64], master: int) -> NDArray[np.int64]:
        """Times of the whole run in its analysed part, without tracing-disabled time."""
        here = pieces.moved(time)
        return here - disabled.before(np.full(len(here), master), here)

    until = np.full(len(calls), np.iinfo(np.int64).min)  # the last operation of each call
    last = np.flatnonzero(np.append(np.diff(program.call) != 0, True)[: len(program.call)])
    until[program.call[last]] = _rounded(end[last])
    counted = program.compute()
    entry, exit_, courses = np.empty(len(row), np.int64), np.empty(len(row), np.int64), []
    for process, master in enumerate(masters.tolist()):
        mine = slice(int(offsets[process]), int(offsets[process + 1]))
        rows = row[mine]
        before = np.stack([clock(calls.entry[rows], master), clock(calls.exit[rows], master)])
        length = before[1] - before[0]
        outside = before[0] - trace.begin - (np.cumsum(length) - length)
        computed = _scaled(outside, cpu)
        # What waiting up to the end of each call comes to, so that it ends when the replay says.
        needed = np.where(until[rows] >= 0, until[rows] - computed, 0)
        waited = np.maximum.accumulate(np.maximum(needed, 0))
        exit_[mine] = computed + waited
        entry[mine] = computed + np.concatenate([[0], waited])[:-1]
        over = max(float(counted[process]), float(outside[-1]) if len(rows) else 0.0)
        finish = int(_scaled(np.array([over]), cpu)[0]) + int(waited[-1] if len(rows) else 0)
        measured = int(clock(whole.ends()[process : process + 1], master)[0])
        courses.append(
            ClockCourse(
                _bounds(trace.begin, before[0], before[1], measured),
                _bounds(0, entry[mine], exit_[mine], finish),
            )
        )
    return RetimedCalls(row, offsets.astype(np.int64), entry, exit_, courses)


def _bounds(
    begin: int, entry: NDArray[np.int64], exit_: NDArray[np.int64], end: int
) -> NDArray[np.int64]:
    bounds = np.empty(2 * len(entry) + 2, np.int64)
    bounds[0], bounds[-1] = begin, end
    bounds[1:-1:2], bounds[2:-1:2] = entry, exit_
    return np.maximum.accumulate(bounds)


def _rounded(time: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole nanoseconds; halves go up, so that adding a whole number changes nothing."""
    return np.floor(time + 0.5).astype(np.int64)


def _scaled(time: NDArray[np.int64] | NDArray[np.float64], cpu: float) -> NDArray[np.int64]:
    if cpu == 1:
        return time.astype(np.int64)
    return _rounded(np.asarray(time * cpu, np.float64))


# The trace that a replayed run would have left.
#
# Calls of MPI have the times of the replay, and the state in them that tracers write; messages
# leave and arrive when they do there. All else (computing, OpenMP, regions, counters) is that of
# the measured run and moves with the time outside MPI of its process: threads that work while their
# master is in MPI are stretched or shortened with it. In a part of a run, collectives that not all
# members call there have communicators of their own, so that the trace is complete in itself.


_ALLTOALL, _INIT = COLLECTIVES.index("alltoall"), COLLECTIVES.index("init")


def write_replay(
    trace: Trace, program: Program, network: Network, output: str | os.PathLike[str]
) -> None:
    """Replay the program of a trace once more and write what happens as a Paraver trace."""
    if len(program.threads):
        raise ReplayError(
            f"{trace.path}: not only masters call MPI: such a replay cannot be written as a trace",
            "leave out --save-trace",
        )
    moments = Replayer(program).moments(network)
    told = replayed(trace, program, moments.begin, moments.end, 1 / network.cpu_factor)
    write_trace(output, told, labels_of(trace))


def replayed(
    trace: Trace,
    program: Program,
    begin: NDArray[np.float64],
    end: NDArray[np.float64],
    cpu: float = 1.0,
) -> Trace:
    """Return the trace of a replay."""
    whole = trace.whole or trace
    retimed = retimed_calls(trace, program, end, cpu)
    communicators, number = communicators_of_callers(whole.communicators, program)
    calls = _calls(whole, program, retimed, number)
    process = whole.process_of_location()
    ends = retimed.ends
    return dataclasses.replace(
        trace,
        application=1,
        applications=1,
        begin=0,
        end=int(ends.max(initial=0)),
        communicators=communicators,
        records=RecordColumns(
            _states(trace, retimed, calls),
            calls,
            _messages(whole, program, retimed, begin, end),
            _others(trace, retimed),
            ends[process],
        ),
        warnings=(),
        timed=True,
        whole=None,
        pieces=None,
        _derived={},
    )


def _calls(
    whole: Trace, program: Program, retimed: RetimedCalls, number: NDArray[np.int64]
) -> CallTable:
    """The calls in the time of the replay, with the communicators that their collectives have."""
    calls = whole.calls()
    masters = np.asarray(whole.process_offsets[:-1], np.int64)
    counts = np.zeros(whole.locations, np.int64)
    counts[masters] = np.diff(retimed.offsets)
    new = np.full(len(calls), -1, np.int64)
    new[retimed.row] = np.arange(len(retimed.row))
    given = calls.collectives
    kept = np.flatnonzero(new[given.call] >= 0)
    communicator = np.zeros(len(calls), np.int64)
    communicator[given.call] = given.communicator
    arrive = np.flatnonzero((program.kind == Op.COLLECTIVE) | (program.kind == Op.ARRIVE))
    arrive = arrive[program.collectives.kind[program.target[arrive]] != _INIT]
    communicator[program.call[arrive]] = number[program.target[arrive]]
    silent = np.setdiff1d(program.call[arrive], given.call)
    nothing = np.zeros(len(silent), np.int64)
    call = np.concatenate([given.call[kept], silent])
    order = np.argsort(call, kind="stable")
    # Of an Alltoall that not all members call there, the parts for those that do.
    parts = arrive[program.collectives.kind[program.target[arrive]] == _ALLTOALL]
    here = np.zeros(len(calls), np.int64)
    here[program.call[parts]] = program.collectives.members[program.target[parts]]
    here = here[given.call]
    sizes = {0: whole.processes, **{c: len(ranks) for c, ranks in whole.communicators.items()}}
    listed = [sizes.get(each, 0) for each in given.communicator.tolist()]
    members = np.where(here > 0, np.array(listed, np.int64), 0)
    some, every = members > 0, np.maximum(members, 1)
    sent, received = (
        np.where(some, column * here // every, column) for column in (given.sent, given.received)
    )
    arguments = CollectiveArguments(
        new[call][order],
        np.concatenate([sent[kept], nothing])[order],
        np.concatenate([received[kept], nothing])[order],
        communicator[call][order],
        np.concatenate([given.is_root[kept], nothing != 0])[order],
    )
    return CallTable(
        offsets_of(counts),
        retimed.entry,
        retimed.exit,
        calls.name[retimed.row],
        calls.names,
        calls.group,
        arguments,
    )


def _states(trace: Trace, retimed: RetimedCalls, calls: CallTable) -> States:
    """States outside MPI, retimed, and those in calls."""
    states = trace.states
    disabled = trace.records.in_state(TRACING_DISABLED)
    in_call = np.array([state_of(*each) for each in zip(calls.group, calls.names, strict=True)])
    process = trace.process_of_location().tolist()
    masters = set(np.asarray(trace.process_offsets[:-1]).tolist())
    parts = []
    for location in range(trace.locations):
        rows = slice(int(states.offsets[location]), int(states.offsets[location + 1]))
        master = int(trace.process_offsets[process[location]])
        course = retimed.courses[process[location]]
        begin, end = (
            each - disabled.before(np.full(len(each), master), each)
            for each in (states.begin[rows], states.end[rows])
        )
        begin, end, state = (
            course.begins(begin),
            course.ends(end),
            states.state[rows].astype(np.int64),
        )
        if location in masters:
            begin, end, state = _around_calls(begin, end, state, calls, location, in_call)
        some = (end > begin) & (state != IDLE)
        parts.append((begin[some], end[some], state[some]))
    columns = [np.concatenate(each) for each in zip(*parts, strict=True)]
    counts = np.array([len(part[0]) for part in parts], np.int64)
    return States(offsets_of(counts), columns[0], columns[1], columns[2].astype(np.int32))


def _around_calls(
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    state: NDArray[np.int64],
    calls: CallTable,
    location: int,
    in_call: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """States of a thread with its calls cut out, and those in the calls."""
    mine = slice(int(calls.offsets[location]), int(calls.offsets[location + 1]))
    entry, exit_ = calls.entry[mine], calls.exit[mine]
    # What lies between calls, the first from the begin and the last without end.
    since = np.concatenate([[0], exit_])
    until = np.append(entry, np.iinfo(np.int64).max)
    first = np.searchsorted(until, begin, side="right")
    count = np.maximum(np.searchsorted(since, end, side="left") - first, 0)
    row, gap = spread(first, count)
    begin = np.concatenate([np.maximum(begin[row], since[gap]), entry])
    end = np.concatenate([np.minimum(end[row], until[gap]), exit_])
    state = np.concatenate([state[row], in_call[calls.name[mine]]])
    order = np.lexsort((end, begin))
    return begin[order], end[order], state[order]


def _messages(
    whole: Trace,
    program: Program,
    retimed: RetimedCalls,
    begin: NDArray[np.float64],
    end: NDArray[np.float64],
) -> MessageTable:
    """Messages between the calls that send, post and complete them.

    A message leaves when its sender is done with it, or, where that waits for its receive, when
    this is posted.
    """
    calls = whole.calls()
    masters = np.asarray(whole.process_offsets[:-1], np.int64)
    new = np.empty(len(calls), np.int64)
    new[retimed.row] = np.arange(len(retimed.row))
    send = _operations(program, Op.SEND, Op.ISEND)
    post = _operations(program, Op.POST, Op.RECEIVE)
    wait = _operations(program, Op.WAIT_RECEIVE, Op.RECEIVE)
    m = np.flatnonzero((send >= 0) & (post >= 0) & (wait >= 0))
    send, post, wait = send[m], post[m], wait[m]
    logical_send = retimed.entry[new[program.call[send]]]
    posted = new[program.call[post]]
    apart = np.array([action_of(*each) for each in zip(calls.group, calls.names, strict=True)])
    is_apart = apart[calls.name[program.call[post]]] == Action.IRECEIVE
    physical_receive = retimed.exit[new[program.call[wait]]]
    blocking = program.kind[send] == Op.SEND
    left = np.where(
        blocking, np.minimum(end[send], np.maximum(begin[send], begin[post])), end[send]
    )
    left = np.floor(left + 0.5).astype(np.int64)
    physical_send = np.clip(left, logical_send, np.maximum(physical_receive, logical_send))
    process = np.searchsorted(program.offsets, np.stack([send, wait]), side="right") - 1
    sender, receiver = masters[process]
    order = np.lexsort((send, physical_send, sender))
    counts = np.bincount(sender, minlength=whole.locations)
    return MessageTable(
        offsets_of(counts),
        sender[order].astype(np.int32),
        receiver[order].astype(np.int32),
        logical_send[order],
        physical_send[order],
        np.where(is_apart, retimed.exit[posted], retimed.entry[posted])[order],
        physical_receive[order],
        program.messages.size[m][order],
        program.messages.tag[m][order],
    )


def _operations(program: Program, *kinds: Op) -> NDArray[np.int64]:
    """The operation of one of some kinds about each message, or -1."""
    operation = np.full(len(program.messages), -1, np.int64)
    for kind in kinds:
        rows = np.flatnonzero(program.kind == kind)
        operation[program.target[rows]] = rows
    return operation


def _others(trace: Trace, retimed: RetimedCalls) -> Others:
    """Other events of the part, retimed; what was open when it begins is opened there."""
    whole = trace.whole or trace
    others = whole.records.others()
    events = others.events
    location = location_of_row(events.offsets).astype(np.int64)
    pieces = trace.pieces or TracePieces.window(trace.begin, trace.end)
    inside = pieces.holding(events.time) >= 0
    rows = np.flatnonzero(inside | _open_before(others, location, int(pieces.begin[0])))
    calls = whole.calls()
    kept = np.zeros(len(calls) + 1, np.int64)  # calls before each that are kept
    kept[retimed.row + 1] = 1
    kept = np.cumsum(kept)
    turn, where = others.turn[rows], location[rows]
    call = calls.offsets[where] + turn // 2
    is_kept = (turn % 2 == 1) & (kept[np.minimum(call + 1, len(calls))] > kept[call])
    turn = 2 * (kept[call] - kept[calls.offsets[where]]) + is_kept
    disabled = trace.records.in_state(TRACING_DISABLED)
    process = whole.process_of_location()[where]
    masters = np.asarray(whole.process_offsets[:-1], np.int64)
    time = pieces.moved(events.time[rows])
    time -= disabled.before(masters[process], time)
    is_master = masters[process] == where
    bounds = np.searchsorted(process, np.arange(whole.processes + 1))
    for p, course in enumerate(retimed.courses):
        mine = slice(int(bounds[p]), int(bounds[p + 1]))
        time[mine] = np.where(
            is_master[mine],
            course.inside(np.where(is_master[mine], turn[mine], 0), time[mine]),
            course.ends(time[mine]),
        )
    return Others(
        EventTable(
            np.searchsorted(rows, events.offsets), time, events.type[rows], events.value[rows]
        ),
        turn,
        others.lasting[rows],
    )


def _open_before(others: Others, location: NDArray[np.int64], begin: int) -> NDArray[np.bool_]:
    """Rows whose value holds when the part begins: the last of their type before it, if not 0."""
    is_open = np.zeros(len(location), np.bool_)
    rows = np.flatnonzero(others.lasting & (others.events.time < begin))
    if len(rows):
        type_ = others.events.type[rows]
        order = np.lexsort((rows, type_, location[rows]))
        key = np.stack([location[rows], type_.astype(np.int64)])[:, order]
        last = np.append(np.any(key[:, 1:] != key[:, :-1], axis=0), True)
        rows = rows[order[last]]
        is_open[rows[others.events.value[rows] != 0]] = True
    return is_open
