"""From a measured run to the program that the replay executes.

The rules, with the behaviour of Dimemas that they reproduce, are those under which the ideal
runtime of real traces equals Dimemas' to the nanosecond:

- the burst before an operation is the wall time of the process's master thread outside MPI since
  its previous call, tracing-disabled time left out; time inside MPI calls is discarded;
- messages are matched by the trace's communication records; a receive is complete in the call at
  whose exit its record says so;
- Sendrecv posts its receive, sends blocking, then waits;
- a trace does not say which isend or nonblocking collective a Wait completes: a Wait (or a
  successful Test) that completes no receive takes the oldest outstanding one, a Waitall (Testall)
  takes all of them;
- collectives of one communicator match in call order; MPI_Init acts as a barrier at its exit;
- one-sided operations, I/O and calls that only manage objects are local and take no time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.errors import ReplayError
from popmodel.kernel import _kernel
from popmodel.replay.mpi_calls import BUFFERED, Action, action_of, collective_of
from popmodel.replay.program import COLLECTIVES, Collectives, Messages, Op, Program
from popmodel.trace.intervals import Intervals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.trace import Trace
    from popmodel.trace.calls import Calls

__all__ = ["from_trace"]

_SENT, _RECEIVED, _ROOT, _COMMUNICATOR = 50100001, 50100002, 50100003, 50100004
_APPLICATION = 40000001
_DISABLED = 14


def from_trace(trace: Trace) -> Program:
    """Program of a traced run.

    Parameters
    ----------
    trace : Trace
        The run; for hybrid runs the MPI calls of the master threads.

    Returns
    -------
    Program
        With one process per process of the trace.

    Raises
    ------
    ReplayError
        If threads other than the masters call MPI, or members of a communicator call different
        collectives at the same turn.
    """
    return _Builder(trace).build()


class _Builder:
    """Intermediate columns of one translation, one row per MPI call of a master thread."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.processes = trace.processes
        self.masters = np.asarray(trace.process_offsets[:-1], dtype=np.int64)
        calls = trace.calls()
        _refuse_other_threads(trace, calls, self.masters)
        # With no call on other threads, the calls of the masters are all calls, in order.
        bounds = np.asarray(calls.offsets)
        self.offsets = np.append(bounds[self.masters], bounds[-1]).astype(np.int64)
        self.entry = np.ascontiguousarray(calls.entry, dtype=np.int64)
        self.exit = np.ascontiguousarray(calls.exit, dtype=np.int64)
        self.row = np.ascontiguousarray(calls.row, dtype=np.int64)
        self.count = len(self.entry)
        self.process = np.repeat(np.arange(self.processes), np.diff(self.offsets))
        self._classify(calls)
        self.notes: list[str] = []
        # Operations: the call they stem from, their order inside the call, kind and target.
        self.ops: list[tuple[NDArray[np.int64], int, Op, NDArray[np.int32]]] = []

    def _classify(self, calls: Calls) -> None:
        key = calls.type.astype(np.int64) << 32 | (calls.value.astype(np.int64) & 0xFFFFFFFF)
        distinct, code = np.unique(key, return_inverse=True)
        names, actions, kinds = [], [], []
        for k in distinct.tolist():
            type_, value = k >> 32, k & 0xFFFFFFFF
            name = self.trace.mpi_name(type_, value)
            action = action_of(type_, name)
            collective = collective_of(name)
            names.append(name)
            actions.append(action)
            kinds.append(-1 if collective is None else COLLECTIVES.index(collective))
        self.names = tuple(names)
        self.code = code.astype(np.int32)
        self.action = np.array(actions, dtype=np.int8)[code] if names else np.empty(0, np.int8)
        self.kind = np.array(kinds, dtype=np.int8)[code] if names else np.empty(0, np.int8)
        buffered = np.array([n in BUFFERED for n in names], dtype=np.int8)
        self.buffered = buffered[code] if names else np.empty(0, np.int8)

    def build(self) -> Program:
        ignored = np.bincount(
            self.code[self.action == Action.IGNORED], minlength=len(self.names)
        ).tolist()
        self.notes += [
            f"{n} {name} calls are local time: not modelled by the replay"
            for name, n in zip(self.names, ignored, strict=True)
            if n
        ]
        messages, completes_receive = self._messages()
        collectives = self._collectives()
        self._requests(completes_receive)
        return self._program(messages, collectives)

    # -- point to point ------------------------------------------------------------------------

    def _messages(self) -> tuple[Messages, NDArray[np.bool_]]:
        trace, records = self.trace, self.trace.messages
        process_of = np.zeros(len(trace.node_of_location), dtype=np.int64)
        process_of[self.masters[1:]] = 1
        process_of = np.cumsum(process_of)
        is_master = np.zeros(len(process_of), dtype=bool)
        is_master[self.masters] = True
        kept = is_master[records.sender] & is_master[records.receiver]
        if not kept.all():
            i = int(np.flatnonzero(~kept)[0])
            raise ReplayError(
                f"{trace.path}: a message sent at {records.logical_send[i] / 1e9:.9f} s is of a "
                "thread that is not its process's master",
                "the replay covers MPI calls of master threads only (MPI_THREAD_FUNNELED)",
            )
        sender = process_of[records.sender]
        receiver = process_of[records.receiver]
        sending = self._find(
            self.entry,
            sender,
            records.logical_send,
            (Action.SEND, Action.ISEND, Action.SENDRECEIVE, Action.START),
        )
        posting = self._find(
            self.entry,
            receiver,
            records.logical_receive,
            (Action.RECEIVE, Action.SENDRECEIVE, Action.START),
            ends=records.physical_receive,
        )
        later = self._find(self.exit, receiver, records.logical_receive, (Action.IRECEIVE,))
        posting = np.where(posting >= 0, posting, later)
        completing = self._find(
            self.exit,
            receiver,
            records.physical_receive,
            (Action.RECEIVE, Action.SENDRECEIVE, Action.WAIT, Action.WAITALL),
        )
        inside = (
            (records.logical_send >= trace.begin)
            & (records.physical_receive <= trace.end)
            & (records.logical_receive >= trace.begin)
        )
        used = (sending >= 0) & (posting >= 0) & (completing >= 0)
        self._refuse_unmatched(inside & ~used, sending, posting, completing, sender, receiver)
        # A message that is cut by the window's edge costs nothing: it is in flight before or after.
        self._note_cut(np.flatnonzero(~inside & ~used), sender, receiver)
        index = np.flatnonzero(used)
        send, post, wait = sending[index], posting[index], completing[index]
        target = np.arange(len(index), dtype=np.int32)
        self._point_to_point_ops(send, post, wait, target)
        self._note_calls_without_record(sending, posting)
        completes = np.zeros(self.count, dtype=bool)
        completes[wait] = True
        return (
            Messages(
                sender[index].astype(np.int32),
                receiver[index].astype(np.int32),
                np.asarray(records.size)[index].astype(np.int64),
                np.asarray(records.tag)[index].astype(np.int64),
                self.buffered[send],
            ),
            completes,
        )

    def _find(
        self,
        times: NDArray[np.int64],
        process: NDArray[np.int64],
        time: NDArray[np.int64],
        actions: tuple[int, ...],
        ends: NDArray[np.int64] | None = None,
    ) -> NDArray[np.int64]:
        """Call of `process` with one of `actions` whose `times` is exactly `time`, or -1.

        Calls of no length can share a time, so candidates are tried backwards. With `ends`, a
        call that is no Start has to end at that time too: it is the one that both posts and
        completes.
        """
        time = np.ascontiguousarray(time, dtype=np.int64)
        found = _kernel.locate(self.offsets, times, process, time)
        wanted = np.isin(self.action, actions)
        first = self.offsets[process]
        result = np.full(len(found), -1, dtype=np.int64)
        open_ = np.arange(len(found))
        while len(open_):
            open_ = open_[found[open_] >= first[open_]]
            open_ = open_[times[found[open_]] == time[open_]]
            candidate = found[open_]
            good = wanted[candidate]
            if ends is not None:
                good &= (self.exit[candidate] == ends[open_]) | (
                    self.action[candidate] == Action.START
                )
            result[open_[good]] = candidate[good]
            open_ = open_[~good]
            found[open_] -= 1
        return result

    def _point_to_point_ops(
        self,
        send: NDArray[np.int64],
        post: NDArray[np.int64],
        wait: NDArray[np.int64],
        target: NDArray[np.int32],
    ) -> None:
        """Operations of the calls, in the order they have inside one call: post, send, wait."""
        simple = (post == wait) & (self.action[post] == Action.RECEIVE)
        self._add(post[simple], 2, Op.RECEIVE, target[simple])
        self._add(post[~simple], 0, Op.POST, target[~simple])
        self._add(wait[~simple], 2, Op.WAIT_RECEIVE, target[~simple])
        blocking = np.isin(self.action[send], (Action.SEND, Action.SENDRECEIVE))
        self._add(send[blocking], 1, Op.SEND, target[blocking])
        self._add(send[~blocking], 1, Op.ISEND, target[~blocking])
        self.isend_call = send[~blocking]
        self.isend_message = target[~blocking]

    def _refuse_unmatched(
        self,
        chosen: NDArray[np.bool_],
        sending: NDArray[np.int64],
        posting: NDArray[np.int64],
        completing: NDArray[np.int64],
        sender: NDArray[np.int64],
        receiver: NDArray[np.int64],
    ) -> None:
        index = np.flatnonzero(chosen)
        if not len(index):
            return
        i, records = int(index[0]), self.trace.messages
        lacking = [
            f"{what} of rank {rank[i]} at {time[i] / 1e9:.9f} s"
            for what, call, rank, time in (
                ("a send", sending, sender, records.logical_send),
                ("a receive", posting, receiver, records.logical_receive),
                ("the end of a receive", completing, receiver, records.physical_receive),
            )
            if call[i] < 0
        ]
        raise ReplayError(
            f"{self.trace.path}: {len(index)} messages belong to no MPI call of the trace; the "
            f"first, {records.size[i]} B with tag {records.tag[i]} from rank {sender[i]} to rank "
            f"{receiver[i]}, names {', '.join(lacking)}, where there is none",
            "events of MPI calls are missing from the trace: trace again, or analyse a window "
            "without them",
        )

    def _note_cut(
        self, index: NDArray[np.int64], sender: NDArray[np.int64], receiver: NDArray[np.int64]
    ) -> None:
        if len(index):
            i = int(index[0])
            self.notes.append(
                f"{len(index)} messages cross the edge of the window and take no time "
                f"(first: rank {sender[i]} to rank {receiver[i]} at "
                f"{self.trace.messages.logical_send[i] / 1e9:.9f} s)"
            )

    def _note_calls_without_record(
        self, sending: NDArray[np.int64], posting: NDArray[np.int64]
    ) -> None:
        sends = np.isin(self.action, (Action.SEND, Action.ISEND, Action.SENDRECEIVE))
        sends[sending[sending >= 0]] = False
        receives = np.isin(self.action, (Action.RECEIVE, Action.IRECEIVE, Action.SENDRECEIVE))
        receives[posting[posting >= 0]] = False
        index = np.flatnonzero(sends | receives)
        if len(index):
            i = int(index[0])
            self.notes.append(
                f"{len(index)} point-to-point calls lack a communication record (partner "
                "MPI_PROC_NULL, never completed, or record lost) and wait for nobody "
                f"(first: {self._where(i)})"
            )

    # -- collectives ---------------------------------------------------------------------------

    def _collectives(self) -> Collectives:
        index = np.flatnonzero(np.isin(self.action, (Action.COLLECTIVE, Action.ICOLLECTIVE)))
        sent, received, root, communicator = self._collective_attributes(index)
        init = self.kind[index] == COLLECTIVES.index("init")
        # MPI_Init comes before any communicator: a turn of its own, over all processes.
        communicator[init] = -1
        process = self.process[index]
        order = np.lexsort((index, process, communicator))
        group = np.stack([communicator[order], process[order]])
        new = np.ones(len(order), dtype=bool)
        new[1:] = (group[:, 1:] != group[:, :-1]).any(axis=0)
        starts = np.flatnonzero(new)
        turn = np.empty(len(order), dtype=np.int64)
        turn[order] = np.arange(len(order)) - np.repeat(
            starts, np.diff(np.append(starts, len(order)))
        )
        pairs, instance = _rows(communicator, turn)
        count = len(pairs)
        first = np.full(count, -1, dtype=np.int64)
        first[instance[::-1]] = np.arange(len(index))[::-1]
        self._check_same_kind(index, instance, first)
        members = np.bincount(instance, minlength=count)
        for c in np.unique(pairs[:, 0]).tolist() if count else []:
            known = self.trace.communicators.get(c)
            if known is not None:
                members[pairs[:, 0] == c] = len(known)
            elif c == 0:
                members[pairs[:, 0] == c] = self.processes
        roots = np.full(count, -1, dtype=np.int32)
        roots[instance[root]] = process[root]
        root_sent = np.zeros(count, dtype=np.int64)
        root_sent[instance[root]] = sent[root]
        largest = np.zeros((2, count), dtype=np.int64)
        np.maximum.at(largest[0], instance, sent)
        np.maximum.at(largest[1], instance, received)
        blocking = self.action[index] == Action.COLLECTIVE
        target = instance.astype(np.int32)
        self._add(index[blocking], 0, Op.COLLECTIVE, target[blocking])
        self._add(index[~blocking], 0, Op.ARRIVE, target[~blocking])
        self.nonblocking_call = index[~blocking]
        self.nonblocking_collective = target[~blocking]
        return Collectives(
            self.kind[index][first].astype(np.int8),
            np.maximum(pairs[:, 0], 0),
            members.astype(np.int32),
            roots,
            largest[0],
            largest[1],
            root_sent,
        )

    def _collective_attributes(
        self, index: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
        """Bytes sent and received, root flag and communicator of the calls `index`."""
        events = self.trace.events
        values = np.zeros((4, self.count), dtype=np.int64)
        rows = np.flatnonzero((events.type >= _SENT) & (events.type <= _COMMUNICATOR))
        location = np.searchsorted(events.offsets, rows, side="right") - 1
        owner = self.masters[self.process]

        def belongs(call: NDArray[np.int64]) -> NDArray[np.bool_]:
            return (owner[call] == location) & (self.entry[call] == events.time[rows])

        # The attributes stand on the line of the entry event, after it; or, in traces of other
        # writers, before it at the same time.
        call = np.searchsorted(self.row, rows, side="right") - 1
        call = np.clip(call, 0, max(self.count - 1, 0))
        following = np.minimum(call + 1, max(self.count - 1, 0))
        if self.count:
            call = np.where(belongs(call), call, following)
        fits = belongs(call) if self.count else np.zeros(len(rows), dtype=bool)
        rows, call = rows[fits], call[fits]
        values[events.type[rows].astype(np.int64) - _SENT, call] = events.value[rows]
        sent, received, root, communicator = values[:, index]
        return sent, received, root != 0, communicator.copy()

    def _check_same_kind(
        self, index: NDArray[np.int64], instance: NDArray[np.int64], first: NDArray[np.int64]
    ) -> None:
        kind = self.kind[index]
        different = np.flatnonzero(kind != kind[first[instance]])
        if len(different):
            i = int(different[0])
            raise ReplayError(
                f"{self.trace.path}: members of a communicator call different collectives at the "
                f"same turn: {self._where(int(index[first[instance[i]]]))}, "
                f"{self._where(int(index[i]))}",
                "an event of a collective is missing from the trace, or the program is wrong",
            )

    # -- requests ------------------------------------------------------------------------------

    def _requests(self, completes_receive: NDArray[np.bool_]) -> None:
        """Completion of isends and nonblocking collectives, which the trace does not name.

        A Startall can start several sends: they complete together.
        """
        action = np.zeros(self.count, dtype=np.uint8)
        action[self.isend_call] = 1
        action[self.nonblocking_call] = 1
        action[(self.action == Action.WAIT) & ~completes_receive] = 2
        action[self.action == Action.WAITALL] = 3
        completed = _kernel.complete_requests(self.offsets, action)
        wait = completed[self.isend_call]
        self._add(wait[wait >= 0], 3, Op.WAIT_SEND, self.isend_message[wait >= 0])
        wait = completed[self.nonblocking_call]
        self._add(wait[wait >= 0], 4, Op.WAIT_COLLECTIVE, self.nonblocking_collective[wait >= 0])

    # -- assembly ------------------------------------------------------------------------------

    def _add(self, call: NDArray[np.int64], order: int, op: Op, target: NDArray[np.int32]) -> None:
        self.ops.append((call, order, op, target))

    def _program(self, messages: Messages, collectives: Collectives) -> Program:
        call = np.concatenate([c for c, _, _, _ in self.ops])
        rank = np.concatenate([np.full(len(c), o, np.int8) for c, o, _, _ in self.ops])
        kind = np.concatenate([np.full(len(c), op, np.uint8) for c, _, op, _ in self.ops])
        target = np.concatenate([t for _, _, _, t in self.ops]).astype(np.int32)
        order = np.lexsort((rank, call))
        call, kind, target = call[order], kind[order], target[order]
        outside, ends = self._time_outside_mpi()
        process = self.process[call]
        offsets = np.searchsorted(process, np.arange(self.processes + 1)).astype(np.int64)
        burst = np.diff(outside[call], prepend=0.0)
        occupied = offsets[:-1] < offsets[1:]
        first = offsets[:-1][occupied]
        burst[first] = outside[call[first]]
        last = np.zeros(self.processes)
        last[occupied] = outside[call[offsets[1:][occupied] - 1]]
        nodes = np.asarray(self.trace.node_of_location)[self.masters]
        return Program(
            offsets=offsets,
            kind=kind,
            target=target,
            burst=burst,
            tail=ends - last,
            messages=messages,
            collectives=collectives,
            call=call.astype(np.int32),
            call_name=self.names,
            call_code=self.code,
            call_time=self.entry,
            communicators={
                c: np.asarray(ranks, dtype=np.int32)
                for c, ranks in self.trace.communicators.items()
            },
            nodes=nodes.astype(np.int32),
            notes=tuple(self.notes),
        )

    def _time_outside_mpi(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Time outside MPI up to each call's entry, and up to each process's end, ns."""
        begin, end = self.trace.begin, self._ends()
        disabled = Intervals.in_state(self.trace.states, _DISABLED)
        before_entry = disabled.before(self.masters[self.process], self.entry)
        before_exit = disabled.before(self.masters[self.process], self.exit)
        inside = (self.exit - before_exit) - (self.entry - before_entry)
        passed = np.concatenate([[0], np.cumsum(inside)])
        in_mpi = passed[:-1] - passed[self.offsets[:-1]][self.process]
        outside = self.entry - before_entry - begin - in_mpi
        total = passed[self.offsets[1:]] - passed[self.offsets[:-1]]
        tail = end - disabled.before(self.masters, end) - begin - total
        return outside.astype(np.float64), tail.astype(np.float64)

    def _ends(self) -> NDArray[np.int64]:
        """When each process ends: its application-end event, else its last record."""
        trace = self.trace
        ends = np.full(self.processes, trace.begin, dtype=np.int64)
        for p, m in enumerate(self.masters.tolist()):
            e = slice(trace.events.offsets[m], trace.events.offsets[m + 1])
            over = (trace.events.type[e] == _APPLICATION) & (trace.events.value[e] == 0)
            at = np.flatnonzero(over)
            if len(at):
                ends[p] = trace.events.time[e][at[-1]]
                continue
            s = slice(trace.states.offsets[m], trace.states.offsets[m + 1])
            ends[p] = max(
                trace.states.end[s].max(initial=trace.begin),
                trace.events.time[e].max(initial=trace.begin),
            )
        return ends

    def _where(self, call: int) -> str:
        return (
            f"rank {self.process[call]} in {self.names[self.code[call]]} at "
            f"{self.entry[call] / 1e9:.9f} s"
        )


def _rows(
    a: NDArray[np.int64], b: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct rows of two columns, in order, and the index of each row among them."""
    order = np.lexsort((b, a))
    pairs = np.stack([a[order], b[order]], axis=1)
    new = np.ones(len(order), dtype=bool)
    new[1:] = (pairs[1:] != pairs[:-1]).any(axis=1)
    inverse = np.empty(len(order), dtype=np.int64)
    inverse[order] = np.cumsum(new) - 1
    return pairs[new], inverse


def _refuse_other_threads(trace: Trace, calls: Calls, masters: NDArray[np.int64]) -> None:
    count = np.diff(calls.offsets)
    count[masters] = 0
    location = np.flatnonzero(count)
    if len(location):
        where = int(location[0])
        row = int(calls.offsets[where])
        process = int(np.searchsorted(masters, where, side="right")) - 1
        name = trace.mpi_name(int(calls.type[row]), int(calls.value[row]))
        raise ReplayError(
            f"{trace.path}: thread {where - masters[process]} of rank {process} calls {name} at "
            f"{calls.entry[row] / 1e9:.9f} s ({int(count.sum())} MPI calls of threads that are "
            "not their process's master)",
            "the replay covers MPI calls of master threads only (MPI_THREAD_FUNNELED)",
        )
