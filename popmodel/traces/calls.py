"""MPI calls of a run, whatever its format."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from popmodel.base.arrays import among, spread
from popmodel.base.values import NamedTuple, dataclass
from popmodel.kernel import _kernel
from popmodel.traces.intervals import Intervals, TracePieces, cut_spans
from popmodel.traces.tables import TraceWarning, part_of, walk

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.traces.recorded_run import Trace

Number = TypeVar("Number", int, float)

FOUND_NOTHING = " (found nothing)"
"""Behind the names of tests and probes that returned without having completed or found anything."""


class CallGroup(Enum):
    """What a call of MPI is about."""

    POINT_TO_POINT = "MPI point to point"
    COLLECTIVE = "MPI collective"
    OTHER = "MPI other"
    ONE_SIDED = "MPI one-sided"
    IO = "MPI I/O"


@dataclass(frozen=True, eq=False)
class CollectiveArguments:
    """What calls of collectives tell of themselves."""

    # int64[c]: Rows of `CallTable`, ascending; only those of which the trace tells anything.
    call: NDArray[np.int64]
    # int64[c]: Bytes that the caller puts in for all peers, and gets from all of them, its own part
    # included. The root of Bcast receives nothing, that of Reduce sends nothing. Readers convert
    # what a format records to this.
    sent: NDArray[np.int64]
    received: NDArray[np.int64]
    # int64[c]: Its number in `Trace.communicators`; 0 where it is not told.
    communicator: NDArray[np.int64]
    is_root: NDArray[np.bool_]  # bool[c]: Whether the caller is the root
    # Of calls of which a format tells it, the bytes for each peer, in the order of ranks.
    parts: Mapping[int, NDArray[np.int64]] = field(default_factory=dict)

    @classmethod
    def none(cls) -> CollectiveArguments:
        """Of calls that tell nothing."""
        nothing = np.empty(0, np.int64)
        return cls(nothing, nothing, nothing, nothing, np.empty(0, bool))

    def at(self, rows: NDArray[np.int64], calls: NDArray[np.int64]) -> CollectiveArguments:
        """Some of the rows, of calls that have other numbers."""
        of = self.call[rows].tolist() if self.parts else []
        parts = {
            call: self.parts[one]
            for one, call in zip(of, calls.tolist(), strict=False)
            if one in self.parts
        }
        return CollectiveArguments(
            calls,
            self.sent[rows],
            self.received[rows],
            self.communicator[rows],
            self.is_root[rows],
            parts,
        )


@dataclass(frozen=True, eq=False)
class CallTable:
    """MPI calls by location, in order of their entry."""

    # int64[L + 1]: Rows of location ``l`` are ``offsets[l]`` up to ``offsets[l + 1]``.
    offsets: NDArray[np.int64]
    # int64[n]: Nanoseconds.
    entry: NDArray[np.int64]
    exit: NDArray[np.int64]
    name: NDArray[np.int16]  # int16[n]: Index into `names` and `group`
    names: tuple[str, ...]  # Such as ``MPI_Send``
    group: tuple[CallGroup, ...]  # Of each name
    collectives: CollectiveArguments
    # Calls whose begin or end is not recorded; of a part of a run those of the whole run.
    warnings: tuple[TraceWarning, ...] = ()
    # int32[n], int64[n], int64[n], int32[n], or None: Of formats without records of messages:
    # location that a call sends to or receives from (-1 for none), tag and bytes of the message,
    # and the number of the request that it opens or completes.
    partner: NDArray[np.int32] | None = None
    tag: NDArray[np.int64] | None = None
    bytes: NDArray[np.int64] | None = None
    request: NDArray[np.int32] | None = None

    def __len__(self) -> int:
        return len(self.entry)

    def intervals(self) -> Intervals:
        return Intervals.of(self.offsets, self.entry, self.exit)

    def named(self, names: Collection[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Calls of a few names: location and row of each, ascending."""
        wanted = among(self.name, [i for i, name in enumerate(self.names) if name in names])
        rows = np.flatnonzero(wanted)
        return part_of(self.offsets, rows), rows


def mpi_io(trace: Trace) -> Intervals:
    calls = trace.calls()
    of_io = np.array([group is CallGroup.IO for group in calls.group], bool)
    rows = np.flatnonzero(of_io[calls.name]) if of_io.any() else np.arange(0)
    return Intervals.of(np.searchsorted(rows, calls.offsets), calls.entry[rows], calls.exit[rows])


def cut_calls(calls: CallTable, pieces: TracePieces) -> CallTable:
    """Calls of which something lies in some pieces of a run, clipped to them.

    Their times are those of the part; a call that goes on from one piece into the next is one in
    each.
    """
    row, offsets, entry, exit_ = cut_spans(calls.offsets, calls.entry, calls.exit, pieces)
    told = calls.collectives
    first = np.searchsorted(row, told.call, side="left")
    which, mine = spread(first, np.searchsorted(row, told.call, side="right") - first)
    return replace(
        calls,
        offsets=offsets,
        entry=entry,
        exit=exit_,
        name=calls.name[row],
        collectives=told.at(which, mine),
        **{
            name: column[row]
            for name in ("partner", "tag", "bytes", "request")
            if (column := getattr(calls, name)) is not None
        },
    )


class CallLengths(NamedTuple):
    """How many calls each of a run of rows is in a part of the run, and how long, ns: int64[n]."""

    calls: NDArray[np.int64]
    time: NDArray[np.int64]


def lengths_in(trace: Trace, rows: slice) -> CallLengths:
    """What of some calls of the whole run lies in a trace, which may be a part of it.

    As `cut_calls`, but without the calls: a long run has many.
    """
    whole = trace.whole or trace
    calls = whole.calls()
    entry, exit_ = calls.entry[rows], calls.exit[rows]
    if trace.pieces is None:
        number, time = np.ones(len(entry), np.int64), exit_ - entry
    else:
        number = trace.pieces.touched(entry, exit_)[1]
        time = trace.pieces.passed(exit_) - trace.pieces.passed(entry)
    row, further = whole.derived("repeated_calls", _repeated)
    mine = slice(*np.searchsorted(row, [rows.start, rows.start + len(entry)]))
    place = row[mine] - rows.start
    number[place] += np.where(number[place] > 0, further[mine], 0)
    return CallLengths(number, time)


def _repeated(trace: Trace) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of tests and probes that stand for several calls, ascending, and how many further ones.

    Those in a row that found nothing are recorded as one call, with the one that ends them.
    """
    told = trace.records.misses()
    if not len(told):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    calls = trace.calls()
    row = np.asarray(_kernel.locate(calls.offsets, calls.exit, told.location, told.time))
    known = row >= calls.offsets[told.location]
    row, misses = row[known], told.value[known]
    missed = np.array([name.endswith(FOUND_NOTHING) for name in calls.names])
    return row, np.maximum(misses - missed[calls.name[row]], 0)


def by_call(names: Iterable[str], values: Iterable[Number]) -> dict[str, Number]:
    """Sum values of names of calls by the names that MPI has, whether they found anything or not.

    Records do not tell these apart: calls that found nothing may be with the one that ends them.
    """
    found: dict[str, Number] = {}
    for name, value in zip(names, values, strict=True):
        name = name.removesuffix(FOUND_NOTHING)
        found[name] = found[name] + value if name in found else value
    return found


def calls_made(trace: Trace, inside: NDArray[np.bool_] | None = None) -> dict[str, int]:
    calls = (trace.whole or trace).calls()
    made = np.zeros(len(calls.names), np.int64)
    for block in walk(rows=len(calls)):
        number = lengths_in(trace, block).calls
        if inside is not None:
            number = number * inside[block]
        made += np.bincount(calls.name[block], number, len(calls.names)).astype(np.int64)
    found: dict[str, int] = by_call(calls.names, made.tolist())
    return {name: count for name, count in found.items() if count}


def call_times(trace: Trace) -> CallLengths:
    """Number of MPI calls of each location, and its time in them, ns: int64[L]; found once."""
    return trace.derived("call_times", _call_times)


def _call_times(trace: Trace) -> CallLengths:
    calls = (trace.whole or trace).calls()
    total = CallLengths(*np.zeros((2, trace.locations), np.int64))
    for block in walk(rows=len(calls)):
        bounds = np.clip(calls.offsets, block.start, block.stop) - block.start
        for sums, values in zip(total, lengths_in(trace, block), strict=True):
            before = np.concatenate([[0], np.cumsum(values)])
            sums += before[bounds[1:]] - before[bounds[:-1]]
    return total
