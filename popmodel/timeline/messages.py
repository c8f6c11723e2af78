"""Messages and the critical path, for drawing on lanes: the largest where there are too many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.arrays import among
from popmodel.simulator.program import Op
from popmodel.units import count
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator import Program
    from popmodel.simulator.path import CriticalPath
    from popmodel.simulator.replayer import Moments
    from popmodel.timeline.lanes import LaneRows
    from popmodel.trace import Trace


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
    told, lane = trace.messages, rows.of_location
    sent, received = told.logical_send, told.physical_receive
    inside = (np.minimum(sent, received) < trace.end) & (np.maximum(sent, received) > trace.begin)
    # One that comes from before or arrives afterwards is drawn as far as that is in sight.
    before, after = trace.begin - trace.duration, trace.end + trace.duration
    sent, received = np.clip(sent, before, after), np.clip(received, before, after)
    return _largest(
        np.flatnonzero(inside), lane[told.sender], lane[told.receiver], sent, received, told.size,
        most,
    )  # fmt: skip


def replayed_messages(
    trace: Trace, program: Program, moments: Moments, rows: LaneRows, most: int
) -> Arrows:
    """Messages of a replay; its time 0 is the begin of the run."""
    told = program.messages
    sent, received = np.full((2, len(told)), np.nan)
    for ops, time, into in (
        ((Op.SEND, Op.ISEND), moments.begin, sent),
        ((Op.RECEIVE, Op.WAIT_RECEIVE), moments.end, received),
    ):
        mine = np.flatnonzero(among(program.kind, ops))
        into[program.target[mine]] = time[mine]
    lane = rows.of_location[np.asarray(trace.process_offsets[:-1])]
    both = np.flatnonzero(np.isfinite(sent) & np.isfinite(received))
    sent, received = (np.rint(np.nan_to_num(each)).astype(np.int64) for each in (sent, received))
    return _largest(
        both, lane[told.sender], lane[told.receiver], sent + trace.begin, received + trace.begin,
        told.size, most,
    )  # fmt: skip


def _largest(
    some: NDArray[np.int64],
    sender: NDArray[np.int64],
    receiver: NDArray[np.int64],
    sent: NDArray[np.int64],
    received: NDArray[np.int64],
    size: NDArray[np.int64],
    most: int,
) -> Arrows:
    kept = some
    if len(some) > most:
        kept = some[np.argsort(-size[some], kind="stable")[:most]]
    kept = kept[np.argsort(sent[kept], kind="stable")]
    return Arrows(
        sender=sender[kept].astype(np.int64),
        receiver=receiver[kept].astype(np.int64),
        sent=sent[kept].astype(np.int64),
        received=received[kept].astype(np.int64),
        size=size[kept].astype(np.int64),
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
