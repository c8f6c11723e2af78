"""Which calls send, post and complete each message of a trace."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from popmodel.errors import ReplayError
from popmodel.kernel import _kernel
from popmodel.simulator.calls import SequenceCalls
from popmodel.simulator.mpi_calls import BUFFERED
from popmodel.simulator.program import ProgramMessages
from popmodel.trace.tables import give_back
from popmodel.units import plural
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from popmodel.simulator.calls import CallThreads
    from popmodel.trace import Trace
    from popmodel.trace.intervals import TracePieces


@dataclass(frozen=True)
class MatchedMessages:
    """Messages of a trace, and the calls of each."""

    messages: ProgramMessages  # One row each
    # int64[M]: When each leaves its sender, ns; where that is not known, the order of the receives.
    left: NDArray[np.int64]
    # int32[M]: Calls that send it, post its receive and complete that.
    send: NDArray[np.int32]
    post: NDArray[np.int32]
    wait: NDArray[np.int32]
    # int32[K]: Number of the request that each call opens or completes; empty where it is not
    # known.
    request: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))


def match_messages(trace: Trace, calls: SequenceCalls, pieces: TracePieces) -> MatchedMessages:
    """Find the calls of every message.

    A communication record names its calls by their times: the entry of the send, the entry of the
    Recv or the exit of the Irecv, and the exit of the call that completed the receive. In formats
    without such records calls tell their partners, tags and requests.
    """
    process_of = np.full(trace.locations, -1, dtype=np.int32)  # sequences
    process_of[calls.location] = np.arange(len(calls.location))
    if calls.calls.partner is not None:
        return _of_partners(calls, process_of)
    records = trace.messages
    send, post, wait, stranger = _kernel.match_messages(
        **calls.columns,
        process_of=process_of,
        message_offsets=records.offsets,
        receiver=records.receiver,
        logical_send=records.logical_send,
        logical_receive=records.logical_receive,
        physical_receive=records.physical_receive,
    )
    times = records.logical_send, records.logical_receive, records.physical_receive
    for column in (*times, records.receiver):
        give_back(column, 0, len(column))
    if stranger >= 0:
        raise ReplayError(
            f"{trace.path}: a thread that does not call MPI sends or receives a message "
            f"(sent at {records.logical_send[stranger] / 1e9:.9f} s)",
            "events of MPI calls are missing: trace the run again",
        )
    rows: slice | NDArray[np.int64] = slice(None)  # views of the trace's columns
    if min(each.min(initial=0) for each in (send, post, wait)) < 0:
        matched = (send >= 0) & (post >= 0) & (wait >= 0)
        touches = pieces.touch(records.logical_send, records.physical_receive)
        wrong = np.flatnonzero(~matched & touches)
        if len(wrong):
            raise _unmatched(trace, trace.process_of_location(), wrong, (send, post, wait))
        rows = np.flatnonzero(matched)
        send, post, wait = send[rows], post[rows], wait[rows]
    sender, receiver = records.sender[rows], records.receiver[rows]
    if trace.locations > trace.processes:
        sender, receiver = (calls.owner[process_of[each]] for each in (sender, receiver))
    size, tag, left = records.size[rows], records.tag[rows], records.physical_send[rows]
    messages = ProgramMessages(sender, receiver, size, tag, _modes(calls, send))
    if calls.threads is None:
        return MatchedMessages(messages, left, send, post, wait)
    return _with_threads(calls, calls.threads, messages, left, (send, post, wait))


def _with_threads(
    calls: SequenceCalls,
    threads: CallThreads,
    own: ProgramMessages,
    left: NDArray[np.int64],
    found: Sequence[NDArray[np.int32]],
) -> MatchedMessages:
    """Messages of a run, and those that fork, join and hold its threads."""
    inside = calls.owner[np.searchsorted(calls.offsets, threads.send, side="right") - 1]
    nothing = np.zeros(len(inside), np.int64)
    messages = ProgramMessages(
        np.concatenate([own.sender, inside]),
        np.concatenate([own.receiver, inside]),
        np.concatenate([own.size, nothing]),
        np.concatenate([own.tag, nothing]),
        np.concatenate([own.mode, np.ones(len(inside), np.int8)]),
    )
    added = threads.send, threads.receive, threads.receive
    return MatchedMessages(
        messages,
        np.concatenate([left, nothing]),
        *(np.concatenate(each) for each in zip(found, added, strict=True)),
    )


def _of_partners(calls: SequenceCalls, process_of: NDArray[np.int32]) -> MatchedMessages:
    """Match the k-th send of a process to another with a tag and that one's k-th receive of it."""
    told = calls.calls
    assert told.partner is not None  # these come together
    assert told.tag is not None
    assert told.bytes is not None
    assert told.request is not None
    send, post, wait, sender, receiver = _kernel.match_partners(
        **calls.columns,
        partner=np.where(told.partner < 0, np.int32(-1), process_of[told.partner]),
        tag=told.tag,
        request=told.request,
    )
    size, tag = told.bytes[send], told.tag[send]
    ends = calls.owner[sender], calls.owner[receiver]
    messages = ProgramMessages(*ends, size, tag, _modes(calls, send))
    return MatchedMessages(messages, post.astype(np.int64), send, post, wait, told.request)


def _modes(calls: SequenceCalls, send: NDArray[np.int32]) -> NDArray[np.int8]:
    """`ProgramMessages.mode` of messages by the calls that send them."""
    mode = np.zeros(len(send), dtype=np.int8)
    never_waits = np.array([name in BUFFERED for name in calls.calls.names])
    if never_waits.any():
        mode[:] = never_waits[calls.calls.name[send]]
    return mode


def _unmatched(
    trace: Trace,
    process_of: NDArray[np.int32],
    wrong: NDArray[np.int64],
    found: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]],
) -> ReplayError:
    """Say how many messages lack a call, and which ones the first of them lacks."""
    first, records = int(wrong[0]), trace.messages
    sender, receiver = process_of[records.sender[first]], process_of[records.receiver[first]]
    lacking = [
        f"{what} of rank {rank} at {time[first] / 1e9:.9f} s"
        for call, what, rank, time in zip(
            found,
            ("a send", "a receive", "the end of a receive"),
            (sender, receiver, receiver),
            (records.logical_send, records.logical_receive, records.physical_receive),
            strict=True,
        )
        if call[first] < 0
    ]
    return ReplayError(
        f"{trace.path}: {plural(len(wrong), 'message')} without an MPI call in the trace; the "
        f"first ({records.size[first]} B, tag {records.tag[first]}, rank {sender} to rank "
        f"{receiver}) lacks {', '.join(lacking)}",
        "events of MPI calls are missing: trace the run again, or analyse a window without them",
    )
