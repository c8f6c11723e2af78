"""The ends of messages in the records of a thread, with the times that name them in a trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from popmodel.base.arrays import distinct
from popmodel.tracer.raw_records import CallTables, InCalls, RecordKind
from popmodel.tracer.temporary import Spool

SENT = np.dtype(
    [
        ("time", np.int64),
        ("partner", np.int64),
        ("communicator", np.int64),
        ("logical", np.int64),
        ("physical", np.int64),
        ("size", np.int64),
        ("row", np.int64),
    ]
)
"""A message that was sent. `partner` is rank << 32 | tag; `logical` is -1 outside of any call."""
POSTED = np.dtype([("number", np.int64), ("time", np.int64)])
"""A receive that was posted; the time is -1 outside of any call."""
RECEIVED = np.dtype(
    [
        ("number", np.int64),
        ("partner", np.int64),
        ("communicator", np.int64),
        ("begin", np.int64),
        ("physical", np.int64),
        ("size", np.int64),
        ("row", np.int64),
    ]
)
"""A receive that was completed. `begin` is the entry of the call if that counts as its posting,
else -1; `physical` is -1 outside of any call."""


def sent(
    records: NDArray[np.void],
    time: NDArray[np.int64],
    calls: InCalls,
    tables: CallTables,
    communicators: NDArray[np.int64],
    row: int,
) -> NDArray[np.void]:
    """Messages that were sent."""
    rows = np.flatnonzero(records["kind"] == RecordKind.SEND)
    found = np.empty(len(rows), SENT)
    some = records[rows]
    found["time"], found["partner"], found["size"] = time[rows], some["b"], some["c"]
    found["communicator"] = global_ids(some["a"], communicators)
    found["row"] = row
    enter, leave = calls.around(rows)
    at_entry = tables.sent_at_entry[records["call"][enter]]
    found["logical"] = np.where(calls.hold(rows), time[enter], -1)
    found["physical"] = np.where(at_entry, time[enter], time[leave])
    return found


def posted(
    records: NDArray[np.void], time: NDArray[np.int64], calls: InCalls, tables: CallTables
) -> NDArray[np.void]:
    """Receives that were posted."""
    rows = np.flatnonzero(records["kind"] == RecordKind.POST)
    found = np.empty(len(rows), POSTED)
    found["number"] = records["b"][rows]
    enter, leave = calls.around(rows)
    at_exit = tables.posted_at_exit[records["call"][enter]]
    when = np.where(at_exit, time[leave], time[enter])
    found["time"] = np.where(calls.hold(rows), when, -1)
    return found


def received(
    records: NDArray[np.void],
    time: NDArray[np.int64],
    calls: InCalls,
    tables: CallTables,
    communicators: NDArray[np.int64],
    row: int,
) -> tuple[NDArray[np.void], int]:
    """Receives that were completed, and how many of them lack their number."""
    kind = records["kind"]
    rows = np.flatnonzero(kind == RecordKind.RECEIVE)
    followed = np.append(kind[1:] == RecordKind.RECEIVED, False)[rows]
    lacking = int(np.count_nonzero(~followed))
    rows = rows[followed]
    found = np.empty(len(rows), RECEIVED)
    some = records[rows]
    found["number"] = records["b"][rows + 1]
    found["partner"], found["size"] = some["b"], some["c"]
    found["communicator"] = global_ids(some["a"], communicators)
    found["row"] = row
    enter, leave = calls.around(rows)
    inside = calls.hold(rows)
    begins = inside & tables.receive_begins[records["call"][enter]]
    found["begin"] = np.where(begins, time[enter], -1)
    found["physical"] = np.where(inside, time[leave], -1)
    return found, lacking


def global_ids(local: NDArray[np.uint32], table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers of communicators in the trace; 0 where the process never described one."""
    known = local < len(table)
    return np.where(known, table[np.where(known, local, 0)], 0)


# Which send and which receive are the same message.
#
# MPI keeps the order of messages between two processes: of those with one tag on one communicator,
# the k-th that is sent belongs to the k-th receive that is *posted*, whatever the order in which
# receives complete. So each send and each receive gets a number among those of its kind, and the
# two
# sides are joined on (communicator, sender, receiver, tag, number).
#
# Memory is bounded by `HELD` rows and by one counter for each combination of partner, tag and
# communicator that a process uses; the rest waits in the spool.


HELD = 1 << 19
"""Sends and receives that are joined at a time."""
_BLOCK = 1 << 16
"""Receives of a process that are put in order at a time."""
_TOGETHER = 12
"""Bits of a number that stay together when rows are divided among buckets."""

END = np.dtype(
    [
        ("pair", np.int64),
        ("where", np.int64),
        ("number", np.int64),
        ("logical", np.int64),
        ("physical", np.int64),
        ("size", np.int64),
        ("row", np.int64),
        ("receives", np.int64),
    ]
)
"""One end of a message; `pair` is sender and receiver, `where` communicator and tag."""
MESSAGE = np.dtype(
    [
        ("physical_send", np.int64),
        ("logical_send", np.int64),
        ("logical_receive", np.int64),
        ("physical_receive", np.int64),
        ("size", np.int64),
        ("tag", np.int64),
        ("sender", np.int64),
        ("receiver", np.int64),
    ]
)

UNTRACED = "messages with one end where tracing was off (dropped)"
UNSENT = "receives without a matching send (dropped)"
UNRECEIVED = "sends without a matching receive (dropped)"
OUTSIDE = "messages to or from processes of other jobs, spawned or connected (dropped)"
UNEQUAL = "messages whose sender and receiver state different sizes: some may be mismatched"
EARLY = "messages received before they were sent: clocks differ, or some are mismatched"


class Matcher:
    """Joins the ends of messages."""

    def __init__(self, spool: Spool, expected: int) -> None:
        self._spool = spool
        self._buckets = min(max(-(-expected // HELD), 1), 1 << 12)
        self.counts: Counter[str] = Counter()
        self.bytes = 0
        self.messages = 0
        self._senders: list[int] = []
        self._receives: set[int] = set()

    def sent(self, row: int, sent: NDArray[np.void]) -> None:
        """Take messages that a thread sent, in order."""
        if len(sent):
            if row not in self._senders:
                self._senders.append(row)
            self._spool.append(("sent", row), sent)

    def received(self, posted: NDArray[np.void], received: NDArray[np.void]) -> None:
        """Take receives that a thread posted, and receives that were completed in it."""
        for what, rows in (("posted", posted), ("received", received)):
            block = rows["number"] // _BLOCK
            for each in distinct(block).tolist():
                self._receives.add(each)
                self._spool.append((what, each), rows[block == each])

    def end_process(self, rank: int) -> None:
        """Number what a process sent and received; the next rows are of another one."""
        numbers = _MessageNumbers()
        for sent in self._in_order():
            outside = sent["partner"] < 0
            self.counts[OUTSIDE] += int(np.count_nonzero(outside))
            sent = sent[~outside]
            ends = _ends(sent, numbers)
            ends["pair"] = rank << 32 | sent["partner"] >> 32
            ends["logical"] = sent["logical"]
            self._put(ends)
        numbers = _MessageNumbers()
        blocks, self._receives = sorted(self._receives), set()
        for block in blocks:
            received, logical = self._block(block)
            outside = received["partner"] < 0
            self.counts[OUTSIDE] += int(np.count_nonzero(outside))
            received, logical = received[~outside], logical[~outside]
            ends = _ends(received, numbers)
            ends["pair"] = (received["partner"] >> 32) << 32 | rank
            ends["logical"] = logical
            ends["receives"] = 1
            self._put(ends)

    def join(self) -> list[tuple[str, int]]:
        """Join all ends; returns the streams of the spool in which the messages then are."""
        streams = []
        for bucket in range(self._buckets):
            key = ("ends", bucket)
            if self._spool.count(key):
                messages = self._join(self._spool.read(key))
                self._spool.drop(key)
                self._spool.append(("messages", bucket), messages)
                if len(messages):
                    streams.append(("messages", bucket))
        return streams

    def _in_order(self) -> Iterator[NDArray[np.void]]:
        """Messages that a process sent, in order, whatever thread sent them."""
        keys = [("sent", row) for row in sorted(self._senders)]
        self._senders = []
        for edge in self._spool.edges(keys, HELD // 4):
            parts = [self._spool.take_before(key, edge) for key in keys]
            sent = np.concatenate([np.empty(0, SENT), *parts])
            yield sent[np.argsort(sent["time"], kind="stable")]
        for key in keys:
            self._spool.drop(key)

    def _block(self, block: int) -> tuple[NDArray[np.void], NDArray[np.int64]]:
        """Completed receives of some numbers, in order, and when each was posted."""
        keys = ("posted", block), ("received", block)
        posted, received = (
            self._spool.read(key) if self._spool.count(key) else np.empty(0, dtype)
            for key, dtype in zip(keys, (POSTED, RECEIVED), strict=True)
        )
        for key in keys:
            self._spool.drop(key)
        received = received[np.argsort(received["number"], kind="stable")]
        # What a matched probe posts is posted again by the call that goes on with it.
        when = np.full(_BLOCK, -1, np.int64)
        when[posted["number"] % _BLOCK] = posted["time"]
        logical = when[received["number"] % _BLOCK]
        return received, np.where(received["begin"] >= 0, received["begin"], logical)

    def _put(self, ends: NDArray[np.void]) -> None:
        key = ends["pair"].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        key ^= ends["where"].astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
        key += (ends["number"] >> _TOGETHER).astype(np.uint64) * np.uint64(0x165667B19E3779F9)
        bucket = (key >> np.uint64(20)) % np.uint64(self._buckets)
        for each in distinct(bucket).tolist():
            self._spool.append(("ends", int(each)), ends[bucket == each])

    def _join(self, ends: NDArray[np.void]) -> NDArray[np.void]:
        order = np.lexsort((ends["receives"], ends["number"], ends["where"], ends["pair"]))
        ends = ends[order]
        same = ends["receives"][1:] > ends["receives"][:-1]
        for name in ("pair", "where", "number"):
            same &= ends[name][1:] == ends[name][:-1]
        send = np.flatnonzero(same)
        alone = np.ones(len(ends), bool)
        alone[send] = alone[send + 1] = False
        self.counts[UNSENT] += int(np.count_nonzero(alone & (ends["receives"] == 1)))
        self.counts[UNRECEIVED] += int(np.count_nonzero(alone & (ends["receives"] == 0)))
        sent, received = ends[send], ends[send + 1]
        traced = (sent["logical"] >= 0) & (received["logical"] >= 0) & (received["physical"] >= 0)
        self.counts[UNTRACED] += int(np.count_nonzero(~traced))
        self.counts[UNEQUAL] += int(np.count_nonzero(sent["size"] != received["size"]))
        sent, received = sent[traced], received[traced]
        self.counts[EARLY] += int(np.count_nonzero(received["physical"] < sent["logical"]))
        messages = np.empty(len(sent), MESSAGE)
        messages["physical_send"], messages["logical_send"] = sent["physical"], sent["logical"]
        messages["physical_receive"] = received["physical"]
        messages["logical_receive"] = received["logical"]
        messages["size"], messages["tag"] = sent["size"], sent["where"] & 0xFFFFFFFF
        messages["sender"], messages["receiver"] = sent["row"], received["row"]
        self.messages += len(messages)
        self.bytes += int(messages["size"].sum())
        return messages[np.argsort(messages["physical_send"], kind="stable")]


class _MessageNumbers:
    """How many messages of each kind there were so far."""

    def __init__(self) -> None:
        self._next: dict[tuple[int, int], int] = {}

    def __call__(
        self, partner: NDArray[np.int64], communicator: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Number of each message among those of its partner, tag and communicator."""
        order = np.lexsort((communicator, partner))
        partner, communicator = partner[order], communicator[order]
        new = np.ones(len(order), bool)
        new[1:] = (partner[1:] != partner[:-1]) | (communicator[1:] != communicator[:-1])
        first = np.flatnonzero(new)
        many = np.diff(np.append(first, len(order)))
        begin = np.empty(len(first), np.int64)
        kinds = zip(partner[first].tolist(), communicator[first].tolist(), strict=True)
        for i, (kind, count) in enumerate(zip(kinds, many.tolist(), strict=True)):
            begin[i] = before = self._next.get(kind, 0)
            self._next[kind] = before + count
        numbers = np.empty(len(order), np.int64)
        numbers[order] = np.arange(len(order)) + np.repeat(begin - first, many)
        return numbers


def _ends(rows: NDArray[np.void], numbers: _MessageNumbers) -> NDArray[np.void]:
    """Ends of messages, still without the pair and the logical time."""
    ends = np.zeros(len(rows), END)
    ends["where"] = rows["communicator"] << 32 | (rows["partner"] & 0xFFFFFFFF)
    ends["number"] = numbers(rows["partner"], rows["communicator"])
    for name in ("physical", "size", "row"):
        ends[name] = rows[name]
    return ends
