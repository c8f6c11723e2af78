"""Kinds of calls that a trace leaves out, as popmodel's tracer marks them in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from popmodel.trace.event import Event
from popmodel.units import plural

if TYPE_CHECKING:
    from popmodel.trace.trace import Trace

KINDS: Mapping[int, str] = {
    1: "tests and probes that found nothing",
    2: "requests for loop iterations",
    3: "single constructs",
    4: "one-sided communication",
    5: "MPI I/O",
}
BY_RATE = 10
"""Added to the value where there were more records per second than the user wanted."""
LABELS: Mapping[int, str] = {
    value + by_rate: name + (" (--max-rate)" if by_rate else "")
    for by_rate in (0, BY_RATE)
    for value, name in KINDS.items()
}
_NS = 1e9


def left_out(trace: Trace) -> list[str]:
    """What a trace leaves out, in a sentence each; since when, where that is not the begin."""
    whole = trace.whole or trace
    marks = whole.marks(Event.LEFT_OUT)
    process = whole.process_of_location()[marks.location]
    first: dict[int, int] = {}
    where: dict[int, set[int]] = {}
    for value, time, rank in zip(
        marks.value.tolist(), marks.time.tolist(), process.tolist(), strict=True
    ):
        first[value] = min(first.get(value, time), time)
        where.setdefault(value, set()).add(rank)
    said = []
    for value, time in sorted(first.items()):
        by_rate, kind = divmod(value, BY_RATE)
        name = KINDS.get(kind, f"calls of kind {kind}")
        since = f" from {time / _NS:.3g} s on (--max-rate)" if by_rate else ""
        who = plural(len(where[value]), "process", "processes")
        said.append(f"{name} are not recorded in {who}{since}: their time counts as useful")
    return said
