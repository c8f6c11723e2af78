"""From a measured run to the program that the replay executes.

The rules, with the behaviour of Dimemas that they reproduce, are those under which the ideal
runtime of real traces equals Dimemas' to the nanosecond:

- the burst before an operation is the wall time of the process's master thread outside MPI since
  its previous call, tracing-disabled time left out; time inside MPI calls is discarded;
- messages are matched by the trace's communication records; a receive is complete in the call at
  whose exit its record says so;
- Sendrecv posts its receive, sends blocking, then waits;
- a Waitall waits for its messages in the order in which they left (their physical sends), which
  matters where waiting for a message takes CPU time of its own;
- a trace does not say which isend or nonblocking collective a Wait completes: a Wait (or a
  successful Test) that completes no receive takes the oldest outstanding one, a Waitall (Testall)
  takes all of them;
- collectives of one communicator match in call order; MPI_Init acts as a barrier at its exit;
- one-sided operations, I/O and calls that only manage objects are local and take no time;
- in a part of a trace (a window, or several that follow one another), calls that lie wholly outside
  take no part, but for requests that are open when a window begins and completed inside, which are
  made at its begin: what is matched is the whole run, so that the turns of collectives stay right.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from popmodel.kernel import _kernel
from popmodel.simulator.calls import MasterCalls, master_calls
from popmodel.simulator.messages import MatchedMessages, match_messages, note_calls_without_record
from popmodel.simulator.mpi_calls import Action
from popmodel.simulator.program import Messages, Op, Program, Uneven
from popmodel.simulator.turns import MatchedCollectives, match_collectives, note_calls_apart
from popmodel.trace.intervals import Intervals
from popmodel.trace.losses import describe, losses
from popmodel.trace.pieces import Pieces
from popmodel.trace.states import TRACING_DISABLED
from popmodel.units import count, plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.trace import Trace

__all__ = ["from_trace"]


class _Operations(NamedTuple):
    """Operations in no order: the calls they stem from, and their place inside the call."""

    call: NDArray[np.int64]
    place: NDArray[np.int8]
    kind: NDArray[np.uint8]
    target: NDArray[np.int32]


def from_trace(trace: Trace) -> Program:
    """Program of a traced run.

    Parameters
    ----------
    trace : Trace
        The run or a part of it; for hybrid runs the MPI calls of the master threads.

    Returns
    -------
    Program
        With one process per process of the trace.

    Raises
    ------
    ReplayError
        If threads other than the masters call MPI, members of a communicator call different
        collectives at the same turn, or a message names a call that is not there.
    """
    whole = trace.whole or trace
    pieces = trace.pieces or Pieces.window(trace.begin, trace.end)
    calls = master_calls(whole)
    messages = match_messages(whole, calls, pieces)
    collectives = match_collectives(whole, calls)
    left = np.asarray(whole.messages.physical_send)[messages.row]
    operations = _operations(calls, messages, left, collectives)
    notes = [*_ignored(calls), *note_calls_without_record(calls, messages)]
    notes += note_calls_apart(calls, collectives)
    if whole is not trace:
        operations, collectives, cut = _within(pieces, calls, messages, collectives, operations)
        notes += cut
    lost = losses(whole)
    return replace(
        _assemble(trace, whole, pieces, calls, messages, collectives, operations),
        notes=tuple(notes),
        lost=describe(lost) if lost else "",
    )


def _ignored(calls: MasterCalls) -> list[str]:
    counts = np.bincount(calls.code[calls.action == Action.IGNORED], minlength=len(calls.names))
    ignored = [
        f"{count(n)} {name}" for name, n in zip(calls.names, counts.tolist(), strict=True) if n
    ]
    if not ignored:
        return []
    return [f"calls not modelled by the replay, assumed to take no time: {', '.join(ignored)}"]


def _operations(
    calls: MasterCalls,
    messages: MatchedMessages,
    left: NDArray[np.int64],
    collectives: MatchedCollectives,
) -> _Operations:
    """Operations of all calls; inside one call it posts, then sends, then waits.

    `left` is the time of each message's physical send.
    """
    message = np.arange(len(messages.send), dtype=np.int32)
    plain = (messages.post == messages.wait) & (calls.action[messages.post] == Action.RECEIVE)
    waits = np.flatnonzero(~plain)
    waits = waits[np.argsort(left[waits], kind="stable")]
    blocking = np.isin(calls.action[messages.send], (Action.SEND, Action.SENDRECEIVE))
    at_once = calls.action[collectives.call] == Action.COLLECTIVE
    send_wait, collective_wait = _completions(
        calls, messages, messages.send[~blocking], collectives.call[~at_once]
    )
    parts = [
        (0, Op.POST, messages.post[~plain], message[~plain]),
        (1, Op.SEND, messages.send[blocking], message[blocking]),
        (1, Op.ISEND, messages.send[~blocking], message[~blocking]),
        (2, Op.RECEIVE, messages.wait[plain], message[plain]),
        (2, Op.WAIT_RECEIVE, messages.wait[waits], message[waits]),
        (3, Op.WAIT_SEND, send_wait, message[~blocking]),
        (0, Op.COLLECTIVE, collectives.call[at_once], collectives.collective[at_once]),
        (0, Op.ARRIVE, collectives.call[~at_once], collectives.collective[~at_once]),
        (4, Op.WAIT_COLLECTIVE, collective_wait, collectives.collective[~at_once]),
    ]
    call = np.concatenate([c for _, _, c, _ in parts])
    there = call >= 0  # a request that no call completes has no wait
    return _Operations(
        call[there],
        np.concatenate([np.full(len(c), place, np.int8) for place, _, c, _ in parts])[there],
        np.concatenate([np.full(len(c), op, np.uint8) for _, op, c, _ in parts])[there],
        np.concatenate([target for _, _, _, target in parts])[there],
    )


def _completions(
    calls: MasterCalls,
    messages: MatchedMessages,
    isends: NDArray[np.int64],
    nonblocking: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Calls that complete isends and nonblocking collectives, or -1."""
    action = np.zeros(len(calls), dtype=np.uint8)
    action[isends] = 1
    action[nonblocking] = 1
    receives = np.zeros(len(calls), dtype=bool)
    receives[messages.wait] = True
    action[(calls.action == Action.WAIT) & ~receives] = 2
    action[calls.action == Action.WAITALL] = 3
    completed = _kernel.complete_requests(calls.offsets, action)
    return completed[isends], completed[nonblocking]


def _within(
    pieces: Pieces,
    calls: MasterCalls,
    messages: MatchedMessages,
    collectives: MatchedCollectives,
    operations: _Operations,
) -> tuple[_Operations, MatchedCollectives, list[str]]:
    """What of the operations belongs to a part of the run: calls of which something lies inside.

    A request that is open when a window begins, and is completed inside, is made at its begin. Of
    other messages with a call outside nothing is left: before the window they have arrived, after
    it nobody waits. A collective counts the members that call it inside or have it open.
    """
    inside = pieces.overlap(calls.entry, calls.exit)[1] > 0
    earlier = ~inside & (calls.exit <= pieces.begin[-1])
    completes = inside[operations.call]

    sent = inside[messages.send]
    completed = operations.target[completes & (operations.kind == Op.WAIT_SEND)]
    sent[completed] |= earlier[messages.send[completed]]
    # A receive that is completed inside was posted there or before.
    message_inside = sent & inside[messages.wait]
    touched = inside[messages.send] | inside[messages.post] | inside[messages.wait]
    cut = int(np.count_nonzero(touched & ~message_inside))

    processes = np.int64(len(calls.offsets) - 1)
    member = collectives.collective * processes + calls.process[collectives.call]
    of_member = operations.target * processes + calls.process[operations.call]
    arrives = inside[collectives.call]
    arrives |= earlier[collectives.call] & np.isin(
        member, of_member[completes & (operations.kind == Op.WAIT_COLLECTIVE)]
    )
    everyone = collectives.collectives
    members = np.bincount(collectives.collective[arrives], minlength=len(everyone))
    root_inside = np.zeros(len(everyone), dtype=bool)
    is_root = everyone.root[collectives.collective] == calls.process[collectives.call]
    root_inside[collectives.collective[arrives & is_root]] = True

    about_message = operations.kind < Op.COLLECTIVE
    kept = np.isin(of_member, member[arrives])
    kept[about_message] = message_inside[operations.target[about_message]]
    # What is completed after the window, or was before it, is not waited for.
    waits = np.isin(operations.kind, (Op.WAIT_SEND, Op.WAIT_COLLECTIVE))
    kept &= completes | ~waits
    remaining, row = collectives.called_by(
        members.astype(np.int32),
        np.where(root_inside, everyone.root, -1).astype(np.int32),
    )
    target = operations.target.copy()
    target[~about_message] = row[target[~about_message]]
    return (
        _Operations(
            operations.call[kept],
            operations.place[kept],
            operations.kind[kept],
            target[kept],
        ),
        remaining,
        [
            f"{plural(cut, 'message')} across the edge of the window, assumed to take no time: "
            "waiting there counts as transfer"
        ]
        if cut
        else [],
    )


def _assemble(
    trace: Trace,
    whole: Trace,
    pieces: Pieces,
    calls: MasterCalls,
    messages: MatchedMessages,
    collectives: MatchedCollectives,
    operations: _Operations,
) -> Program:
    order = np.lexsort((operations.place, operations.call))
    call = operations.call[order]
    outside, ends = _time_outside_mpi(trace, whole, pieces, calls)
    offsets = np.searchsorted(calls.process[call], np.arange(trace.processes + 1))
    burst = np.diff(outside[call], prepend=0.0)
    occupied = offsets[:-1] < offsets[1:]
    first, last = offsets[:-1][occupied], offsets[1:][occupied] - 1
    burst[first] = outside[call[first]]
    tail = ends.copy()
    tail[occupied] -= outside[call[last]]
    records = whole.messages
    kind, target = operations.kind[order], operations.target[order]
    return Program(
        offsets=offsets.astype(np.int64),
        kind=kind,
        target=target,
        burst=burst,
        tail=tail,
        messages=Messages(
            messages.sender.astype(np.int32),
            messages.receiver.astype(np.int32),
            np.asarray(records.size, dtype=np.int64)[messages.row],
            np.asarray(records.tag, dtype=np.int64)[messages.row],
            calls.buffered[messages.send],
        ),
        collectives=collectives.collectives,
        call=call.astype(np.int32),
        call_name=calls.names,
        call_code=calls.code,
        call_time=calls.entry,
        communicators={
            number: np.asarray(ranks, dtype=np.int32)
            for number, ranks in whole.communicators.items()
        },
        nodes=np.asarray(whole.node_of_location)[whole.process_offsets[:-1]].astype(np.int32),
        uneven=_uneven(kind, target, call, collectives),
    )


def _uneven(
    kind: NDArray[np.uint8],
    target: NDArray[np.int32],
    call: NDArray[np.int64],
    collectives: MatchedCollectives,
) -> Uneven:
    operation = np.flatnonzero((kind == Op.COLLECTIVE) | (kind == Op.ARRIVE))
    operation = operation[collectives.uneven()[target[operation]]]
    row = np.searchsorted(collectives.call, call[operation])
    return Uneven(operation, target[operation], collectives.sent[row], collectives.received[row])


def _time_outside_mpi(
    trace: Trace, whole: Trace, pieces: Pieces, calls: MasterCalls
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Time outside MPI up to each call's entry, and up to each process's end, ns.

    Both count from the begin of the part, and leave out tracing-disabled time.
    """
    masters = np.asarray(whole.process_offsets[:-1], dtype=np.int64)
    disabled = Intervals.in_state(trace.states, TRACING_DISABLED)

    def traced(location: NDArray[np.int64], time: NDArray[np.int64]) -> NDArray[np.int64]:
        return time - disabled.before(location, time)

    entry = traced(calls.location, pieces.moved(calls.entry))
    exit_ = traced(calls.location, pieces.moved(calls.exit))
    begin = traced(masters, np.full(len(masters), trace.begin))
    passed = np.concatenate([[0], np.cumsum(exit_ - entry)])
    in_mpi = passed[:-1] - passed[calls.offsets[:-1]][calls.process]
    total = passed[calls.offsets[1:]] - passed[calls.offsets[:-1]]
    outside = entry - begin[calls.process] - in_mpi
    ends = pieces.moved(whole.ends())
    # A process whose last call goes on after its end event has nothing left to do.
    tail = traced(masters, ends) - begin - total
    return outside.astype(np.float64), np.maximum(tail, 0).astype(np.float64)
