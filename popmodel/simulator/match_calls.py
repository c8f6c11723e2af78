"""Which calls belong to one collective, and which send, post and complete each message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.errors import ReplayError
from popmodel.base.units import count, plural
from popmodel.base.values import dataclass
from popmodel.kernel import _kernel
from popmodel.simulator.mpi_calls import BUFFERED
from popmodel.simulator.program import (
    COLLECTIVES,
    NONE_UNEVEN,
    Collectives,
    Op,
    ProgramMessages,
    UnevenBytes,
)
from popmodel.simulator.program_calls import SequenceCalls
from popmodel.traces.tables import give_back

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from numpy.typing import NDArray

    from popmodel.simulator.program import Program
    from popmodel.simulator.program_calls import CallColumns, CallThreads
    from popmodel.traces import Trace
    from popmodel.traces.calls import CollectiveArguments
    from popmodel.traces.intervals import TracePieces


# Communicators by those who call collectives on them.


_INIT = COLLECTIVES.index("init")


def communicators_of_callers(
    listed: Mapping[int, NDArray[np.signedinteger[Any]]], program: Program
) -> tuple[dict[int, NDArray[np.int32]], NDArray[np.int64]]:
    """Communicators in which each collective has exactly those members that call it.

    Where these are others than the trace lists (in a window of a run, or where threads call), they
    get a communicator of their own; MPI_Init has none.
    """
    communicators = {number: np.asarray(ranks, np.int32) for number, ranks in listed.items()}
    collectives = program.collectives
    number = collectives.communicator.copy()
    arrive = np.flatnonzero((program.kind == Op.COLLECTIVE) | (program.kind == Op.ARRIVE))
    sequence = np.searchsorted(program.offsets, arrive, side="right") - 1
    target = program.target[arrive]
    callers = np.bincount(target, minlength=len(collectives))
    by_thread = target[sequence >= program.processes]
    sequence = sequence[np.argsort(target, kind="stable")]
    first = np.cumsum(callers) - callers
    numbers, which = np.unique(number, return_inverse=True)
    sizes = np.array([len(communicators.get(each, ())) for each in numbers.tolist()], np.int64)
    others = callers != sizes[which]
    others[by_thread] = True
    owner = program.owner
    numbers_of: dict[tuple[int, bytes], int] = {}
    free = max([0, *communicators, *numbers.tolist()]) + 1
    for c in np.flatnonzero(others & (collectives.kind != _INIT)).tolist():
        members = np.sort(sequence[first[c] : first[c] + callers[c]]).astype(np.int32)
        key = int(number[c]), members.tobytes()
        if key not in numbers_of:
            numbers_of[key] = free + len(numbers_of)
            ranks = np.asarray(listed.get(key[0], owner[members]))
            order = np.argsort(ranks, kind="stable")
            rank = order[np.searchsorted(ranks[order], owner[members])]
            communicators[numbers_of[key]] = members[np.argsort(rank, kind="stable")]
        number[c] = numbers_of[key]
    return communicators, number


# Which calls take part in the same collective: those of one communicator match in call order.


_WITHOUT_BYTES = (COLLECTIVES.index("init"), COLLECTIVES.index("barrier"))
_WAIT_FOR_ALL = (COLLECTIVES.index("barrier"), COLLECTIVES.index("allreduce"))
_APART = 100_000  # ns; clocks of nodes may differ by less
_OF_INIT = np.iinfo(np.int64).min  # the communicator of MPI_Init, which comes before any


@dataclass(frozen=True)
class MatchedCollectives:
    """Collectives of a trace, and the collective of each call."""

    collectives: Collectives  # One row each
    # int32[n]: Calls of collectives, and the row of `collectives` that each takes part in.
    call: NDArray[np.int32]
    collective: NDArray[np.int32]
    # uint8[C]: Whether members send different amounts (1), or receive such (2).
    differ: NDArray[np.uint8]
    notes: tuple[str, ...]  # What of them cannot be

    def of_part(
        self, members: NDArray[np.int32], root: NDArray[np.int32]
    ) -> tuple[Collectives, NDArray[np.uint8]]:
        """Those that some members call in a part of the run, and whether their amounts differ."""
        some = members > 0
        columns = {**vars(self.collectives), "members": members, "root": root}
        parts = self.collectives.kind == COLLECTIVES.index("alltoall")  # one for each member
        for name in ("sent", "received"):
            whole = columns[name] * members // np.maximum(self.collectives.members, 1)
            columns[name] = np.where(parts, whole, columns[name])
        kept = Collectives(**{name: column[some] for name, column in columns.items()})
        return kept, self.differ[some]


def match_collectives(trace: Trace, calls: SequenceCalls) -> MatchedCollectives:
    """Group the calls of collectives by communicator and turn."""
    arguments = calls.calls.collectives
    columns, row = calls.columns, None
    if calls.threads is not None:
        columns, row = _by_process(calls)
        place = np.argsort(row)[arguments.call]
        order = np.argsort(place)
        arguments = arguments.at(order, place[order])
    listed = sorted(trace.communicators)
    ranks = [np.sort(trace.communicators[number]).astype(np.int32) for number in listed]
    matched = _kernel.match_collectives(
        **columns,
        kind=calls.collective,
        argument_call=arguments.call,
        sent=arguments.sent,
        received=arguments.received,
        communicator=arguments.communicator,
        is_root=arguments.is_root,
        listed=np.array(listed, dtype=np.int64),
        listed_offsets=np.cumsum([0, *map(len, ranks)], dtype=np.int64),
        listed_member=np.concatenate([np.empty(0, np.int32), *ranks]),
    )
    if row is not None:
        _number_again(matched, row, calls)
    if matched["stranger"] >= 0:
        raise _of_stranger(trace, calls, matched["stranger"])
    call, first = matched["different"]
    if call >= 0:
        raise ReplayError(
            f"{trace.path}: members of a communicator call different collectives: "
            f"{calls.where(first)}, {calls.where(call)}",
            "an event of a collective is missing from the trace, or the program is wrong",
        )
    arguments, differ = calls.calls.collectives, matched["uneven"]
    by_part = [call for call, each in arguments.parts.items() if each.min() != each.max()]
    differ[matched["collective"][np.searchsorted(matched["call"], by_part)]] |= 1
    free = _without_waiting(matched) if trace.timed else np.zeros(len(matched["kind"]), bool)
    number, turns = matched["number"], matched["turns"]
    by_peer = np.zeros(len(matched["kind"]), bool)
    by_peer[matched["collective"]] = calls.by_peer[calls.calls.name[matched["call"]]]
    sizes = [
        trace.processes if each == 0 else len(trace.communicators.get(each, range(callers)))
        for each, callers in zip(number.tolist(), matched["callers"].tolist(), strict=True)
    ]
    collectives = Collectives(
        kind=matched["kind"],
        communicator=np.repeat(np.where(number == _OF_INIT, 0, number), turns),
        members=np.repeat(np.array(sizes, dtype=np.int32), turns),
        root=matched["root"],
        sent=matched["sent"],
        received=matched["received"],
        root_sent=matched["root_sent"],
        by_peer=by_peer,
    )
    # In place, Extrae records that nothing is sent.
    in_place = (collectives.kind == COLLECTIVES.index("allgather")) & (collectives.sent == 0)
    shares = collectives.received[in_place] // np.maximum(collectives.members[in_place], 1)
    collectives.sent[in_place] = shares
    kept = {name: column[~free] for name, column in vars(collectives).items()}
    members = ~free[matched["collective"]]
    number_of = np.cumsum(~free, dtype=np.int32) - 1
    entered, left = matched["entered"][~free], matched["left"][~free]
    return MatchedCollectives(
        Collectives(**kept),
        matched["call"][members],
        number_of[matched["collective"][members]],
        differ[~free],
        (
            *(_note_apart(kept["kind"], entered, left) if trace.timed else ()),
            *_note_free(collectives.kind[free]),
        ),
    )


def _without_waiting(matched: _kernel.Collectives) -> NDArray[np.bool_]:
    """Which collectives hold nobody: those of a kind that moves no bytes and was seen not to.

    MPI need not synchronise where there is nothing to send: Open MPI and MPICH return at once from
    most calls with a count of 0. So if one of a kind was left before all had entered it, none of
    that kind without bytes holds anybody. Others synchronise, as all do in Dimemas.
    """
    kind = matched["kind"]
    empty = (matched["sent"] == 0) & (matched["received"] == 0) & ~np.isin(kind, _WITHOUT_BYTES)
    early = empty & (matched["left"] < matched["entered"] - _APART)
    free: NDArray[np.bool_] = empty & np.isin(kind, kind[early])
    return free


def _note_free(kind: NDArray[np.int8]) -> list[str]:
    names, number = np.unique(kind, return_counts=True)
    calls = [
        f"{count(many)} {COLLECTIVES[name]}"
        for name, many in zip(names, number.tolist(), strict=True)
    ]
    if not calls:
        return []
    return [f"collectives without bytes that wait for nobody, as in the run: {', '.join(calls)}"]


def _by_process(calls: SequenceCalls) -> tuple[CallColumns, NDArray[np.int64]]:
    """The calls of all threads of each process in order of time, and the row of each in `calls`.

    Threads of a process may take turns at the collectives of a communicator.
    """
    columns = calls.columns
    process = np.repeat(calls.owner, np.diff(calls.offsets))
    row = np.lexsort((columns["entry"], process)).astype(np.int64)
    bounds = np.searchsorted(process[row], np.arange(calls.owner.max() + 2))
    for name in ("entry", "exit", "code"):
        columns[name] = columns[name][row]
    columns["offsets"] = bounds.astype(np.int64)
    return columns, row


def _number_again(
    matched: _kernel.Collectives, row: NDArray[np.int64], calls: SequenceCalls
) -> None:
    """From rows of `_by_process` to those of the calls, and from processes to their sequences."""
    called = row[matched["call"]].astype(np.int32)
    order = np.argsort(called)
    matched["call"], matched["collective"] = called[order], matched["collective"][order]
    sequence = np.searchsorted(calls.offsets, matched["call"], side="right") - 1
    is_root = calls.owner[sequence] == matched["root"][matched["collective"]]
    matched["root"][matched["collective"][is_root]] = sequence[is_root]
    matched["stranger"] = int(row[matched["stranger"]]) if matched["stranger"] >= 0 else -1
    call, first = (int(row[c]) if c >= 0 else -1 for c in matched["different"])
    matched["different"] = call, first


def uneven_arrivals(
    kind: NDArray[np.uint8],
    target: NDArray[np.int32],
    call: NDArray[np.int32],
    collectives: Collectives,
    differ: NDArray[np.uint8],
    arguments: CollectiveArguments,
) -> UnevenBytes:
    """Operations that arrive at collectives whose members have different amounts.

    Of Gather that is what they send, of Scatter what they receive; of others with a root, who has
    all or gives all, there are none.
    """
    meant = np.where(collectives.root < 0, 3, 0)
    for name, side in (("gather", 1), ("scatter", 2)):
        meant[(collectives.kind == COLLECTIVES.index(name)) & (collectives.root >= 0)] = side
    uneven = (differ & meant) > 0
    if not uneven.any():
        return NONE_UNEVEN
    operation = np.flatnonzero((kind == Op.COLLECTIVE) | (kind == Op.ARRIVE))
    operation = operation[uneven[target[operation]]]
    row = np.searchsorted(arguments.call, call[operation])
    has_amounts = row < len(arguments.call)
    has_amounts[has_amounts] = arguments.call[row[has_amounts]] == call[operation[has_amounts]]
    amounts = np.zeros((2, len(operation)), dtype=np.int64)
    amounts[:, has_amounts] = arguments.sent[row[has_amounts]], arguments.received[row[has_amounts]]
    calls = enumerate(call[operation].tolist()) if arguments.parts else ()
    parts = {place: arguments.parts[of] for place, of in calls if of in arguments.parts}
    return UnevenBytes(operation, target[operation], amounts[0], amounts[1], parts)


def _note_apart(
    kind: NDArray[np.int8], entered: NDArray[np.int64], left: NDArray[np.int64]
) -> list[str]:
    """Say how many collectives cannot be what they are: a member leaves before another one enters.

    Calls are matched by their turns, so one that was not recorded (tracing was switched on between
    the same calls of two processes) moves all that follow it. Barrier and Allreduce show it, as
    nobody leaves them before all have entered.
    """
    blocking = np.isin(kind, _WAIT_FOR_ALL) & (left < np.iinfo(np.int64).max)
    number = int(np.count_nonzero(blocking & (entered - _APART > left)))
    if not number:
        return []
    return [
        f"{number} of {plural(int(np.count_nonzero(blocking)), 'call')} of MPI_Barrier and "
        "MPI_Allreduce end on one rank before they begin on another: records are missing (was "
        "tracing switched on during the run?) or clocks differ; serialisation and transfer are "
        "doubtful"
    ]


def _of_stranger(trace: Trace, calls: SequenceCalls, call: int) -> ReplayError:
    """A process calls a collective of others: it would count as a member."""
    arguments = calls.calls.collectives
    row = np.searchsorted(arguments.call, call)
    number = (
        arguments.communicator[row]
        if row < len(arguments.call) and arguments.call[row] == call
        else 0
    )
    return ReplayError(
        f"{trace.path}: {calls.where(call)} calls a collective on communicator {number}, of which "
        "the trace does not list it as a member",
        "the trace's list of communicators is wrong: trace the run again",
    )


# Which calls send, post and complete each message of a trace.


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
    own_calls: Sequence[NDArray[np.int32]],
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
        *(np.concatenate(each) for each in zip(own_calls, added, strict=True)),
    )


def _of_partners(calls: SequenceCalls, process_of: NDArray[np.int32]) -> MatchedMessages:
    """Match the k-th send of a process to another with a tag and that one's k-th receive of it."""
    table = calls.calls
    assert table.partner is not None  # these come together
    assert table.tag is not None
    assert table.bytes is not None
    assert table.request is not None
    send, post, wait, sender, receiver = _kernel.match_partners(
        **calls.columns,
        partner=np.where(table.partner < 0, np.int32(-1), process_of[table.partner]),
        tag=table.tag,
        request=table.request,
    )
    size, tag = table.bytes[send], table.tag[send]
    ends = calls.owner[sender], calls.owner[receiver]
    messages = ProgramMessages(*ends, size, tag, _modes(calls, send))
    return MatchedMessages(messages, post.astype(np.int64), send, post, wait, table.request)


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
    calls: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]],
) -> ReplayError:
    """Say how many messages lack a call, and which ones the first of them lacks."""
    first, records = int(wrong[0]), trace.messages
    sender, receiver = process_of[records.sender[first]], process_of[records.receiver[first]]
    lacking = [
        f"{what} of rank {rank} at {time[first] / 1e9:.9f} s"
        for call, what, rank, time in zip(
            calls,
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
