"""Which calls send, post and complete each message of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.errors import ReplayError
from popmodel.simulator.calls import ONLY_MASTERS, MasterCalls, Timetable
from popmodel.simulator.mpi_calls import Action
from popmodel.units import plural
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.trace import Trace
    from popmodel.trace.pieces import Pieces

__all__ = ["MatchedMessages", "match_messages", "note_calls_without_record"]


@dataclass(frozen=True)
class MatchedMessages:
    """Calls of each message of a trace.

    Attributes
    ----------
    row : int64[M]
        Row of the trace's messages.
    sender, receiver : int64[M]
        Processes.
    send, post, wait : int64[M]
        Calls that send it, post its receive and complete that.
    """

    row: NDArray[np.int64]
    sender: NDArray[np.int64]
    receiver: NDArray[np.int64]
    send: NDArray[np.int64]
    post: NDArray[np.int64]
    wait: NDArray[np.int64]


def match_messages(trace: Trace, calls: MasterCalls, pieces: Pieces) -> MatchedMessages:
    """Find the calls of every communication record.

    A record names its calls by their times: the entry of the send, the entry of the Recv or the
    exit of the Irecv, and the exit of the call that completed the receive.

    Raises
    ------
    ReplayError
        If a message is of a thread that is not a master, or one that is under way in one of the
        pieces of the run names a call that is not there.
    """
    records = trace.messages
    process_of = np.full(len(trace.node_of_location), -1, dtype=np.int64)
    process_of[trace.process_offsets[:-1]] = np.arange(trace.processes)
    sender, receiver = process_of[records.sender], process_of[records.receiver]
    other = np.flatnonzero((sender < 0) | (receiver < 0))
    if len(other):
        time = records.logical_send[other[0]] / 1e9
        raise ReplayError(
            f"{trace.path}: a thread other than its process's master sends or receives a message "
            f"(sent at {time:.9f} s)",
            ONLY_MASTERS,
        )
    send = _sends(calls, sender, records.logical_send)
    post, wait = _receives(calls, receiver, records.logical_receive, records.physical_receive)
    matched = (send >= 0) & (post >= 0) & (wait >= 0)
    touches = pieces.touch(records.logical_send, records.physical_receive)
    wrong = np.flatnonzero(~matched & touches)
    _refuse_unmatched(trace, wrong, sender, receiver, send, post, wait)
    row = np.flatnonzero(matched)
    return MatchedMessages(row, sender[row], receiver[row], send[row], post[row], wait[row])


def _having(calls: MasterCalls, *actions: Action) -> NDArray[np.bool_]:
    return np.isin(calls.action, actions)


def _sends(
    calls: MasterCalls, process: NDArray[np.int64], begin: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Calls that send the messages of some processes and times, or -1."""
    each = Timetable.of(
        calls, _having(calls, Action.SEND, Action.ISEND, Action.SENDRECEIVE), calls.entry
    )
    send = each.find(process, begin, shared=False)
    rest = np.flatnonzero(send < 0)
    starts = Timetable.of(calls, _having(calls, Action.START), calls.entry)
    send[rest] = starts.find(process[rest], begin[rest], shared=True)
    return send


def _receives(
    calls: MasterCalls,
    process: NDArray[np.int64],
    posted: NDArray[np.int64],
    received: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Calls that post and that complete the receives of some processes and times, or -1."""
    at_once = _having(calls, Action.RECEIVE, Action.SENDRECEIVE)
    lasts = calls.exit > calls.entry
    post = np.full(len(process), -1, dtype=np.int64)
    # One call that posts and completes, from the one time to the other. Those of no length can
    # share their times; of the others one begins at a time.
    for rows, chosen in (
        (np.flatnonzero(received > posted), at_once & lasts),
        (np.flatnonzero(received == posted), at_once & ~lasts),
    ):
        found = Timetable.of(calls, chosen, calls.entry).find(
            process[rows], posted[rows], shared=False
        )
        there = found >= 0
        there[there] = calls.exit[found[there]] == received[rows[there]]
        post[rows[there]] = found[there]
    wait = post.copy()
    for times, action, shared in (
        (calls.exit, Action.IRECEIVE, False),
        (calls.entry, Action.START, True),
    ):
        rest = np.flatnonzero(post < 0)
        table = Timetable.of(calls, _having(calls, action), times)
        post[rest] = table.find(process[rest], posted[rest], shared=shared)
    rest = np.flatnonzero((wait < 0) & (post >= 0))
    rest = rest[np.argsort(post[rest], kind="stable")]
    waits = Timetable.of(calls, _having(calls, Action.WAIT, Action.WAITALL), calls.exit)
    wait[rest] = waits.find(process[rest], received[rest], shared=True, after=post[rest])
    return post, wait


def note_calls_without_record(calls: MasterCalls, matched: MatchedMessages) -> list[str]:
    """Say how many calls have no record, for these never block."""
    sends = np.isin(calls.action, (Action.SEND, Action.ISEND, Action.SENDRECEIVE))
    sends[matched.send] = False
    receives = np.isin(calls.action, (Action.RECEIVE, Action.IRECEIVE, Action.SENDRECEIVE))
    receives[matched.post] = False
    index = np.flatnonzero(sends | receives)
    if not len(index):
        return []
    return [
        f"{plural(len(index), 'point-to-point call')} without a communication record "
        "(MPI_PROC_NULL, never completed, or record lost), assumed not to block (first: "
        f"{calls.where(int(index[0]))})"
    ]


def _refuse_unmatched(
    trace: Trace,
    index: NDArray[np.int64],
    sender: NDArray[np.int64],
    receiver: NDArray[np.int64],
    send: NDArray[np.int64],
    post: NDArray[np.int64],
    wait: NDArray[np.int64],
) -> None:
    if not len(index):
        return
    i, records = int(index[0]), trace.messages
    lacking = [
        f"{what} of rank {rank[i]} at {time[i] / 1e9:.9f} s"
        for what, call, rank, time in (
            ("a send", send, sender, records.logical_send),
            ("a receive", post, receiver, records.logical_receive),
            ("the end of a receive", wait, receiver, records.physical_receive),
        )
        if call[i] < 0
    ]
    raise ReplayError(
        f"{trace.path}: {plural(len(index), 'message')} without an MPI call in the trace; the "
        f"first ({records.size[i]} B, tag {records.tag[i]}, rank {sender[i]} to rank "
        f"{receiver[i]}) lacks {', '.join(lacking)}",
        "events of MPI calls are missing: trace the run again, or analyse a window without them",
    )
