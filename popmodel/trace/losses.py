"""Where the records of a run end before the run does: full disks, crashes, kills.

The tracer's merge says so on every thread that it concerns, from which on the thread is in state
`TRACING_DISABLED`: nothing is known of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from popmodel.trace.event import Event
from popmodel.units import plural
from popmodel.values import dataclass

if TYPE_CHECKING:
    from popmodel.trace.trace import Trace

FULL, KILLED, ABORTED, CUT, LIMITED = 1, 2, 3, 4, 5
REASONS: Mapping[int, str] = {
    FULL: "disk full",
    KILLED: "killed or crashed",
    ABORTED: "ended by MPI_Abort",
    CUT: "truncated files",
    LIMITED: "--max-size reached",
}
_SHOWN = 3
_NS = 1e9


@dataclass(frozen=True)
class RecordLoss:
    """Since when nothing is recorded of threads of a process, and why."""

    process: int
    threads: int  # How many of its threads
    time: int  # Of the first of them, ns
    reason: int  # A key of `REASONS`


def losses(trace: Trace) -> list[RecordLoss]:
    """Losses of a run, the earliest first."""
    lost = trace.marks(Event.LOST)
    process = trace.process_of_location()[lost.location]
    found: dict[tuple[int, int], list[int]] = {}
    for who, value, time in zip(
        process.tolist(), lost.value.tolist(), lost.time.tolist(), strict=True
    ):
        found.setdefault((who, value), []).append(time)
    made = [RecordLoss(who, len(times), min(times), value) for (who, value), times in found.items()]
    return sorted(made, key=lambda each: (each.time, each.process))


def describe(found: list[RecordLoss]) -> str:
    """Losses in words, the earliest few with their ranks and times."""
    parts = []
    for each in found[:_SHOWN]:
        who = f"rank {each.process}"
        if each.reason in (FULL, CUT, LIMITED):
            who = f"{plural(each.threads, 'thread')} of {who}"
        parts.append(
            f"{who} from {each.time / _NS:.3g} s on ({REASONS.get(each.reason, 'reason unknown')})"
        )
    if len(found) > _SHOWN:
        parts.append(f"{len(found) - _SHOWN} more")
    return f"records lost: {', '.join(parts)}"
