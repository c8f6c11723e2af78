"""The critical path of a replay: tables of who is on it and for what; events of a trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.arrays import alike, spread
from popmodel.base.errors import UsageError
from popmodel.base.values import dataclass
from popmodel.efficiency.evidence import site_name
from popmodel.sensitivity.region_speeds import marked_at, places_of
from popmodel.simulator.execution import PathPart
from popmodel.traces.codes import Event
from popmodel.traces.intervals import TracePieces
from popmodel.traces.paraver.writer import add_events

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from popmodel.sensitivity.region_speeds import RegionGains
    from popmodel.simulator.execution import CriticalPath
    from popmodel.simulator.program import Program
    from popmodel.traces import Trace

    Changes = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


# The critical path of a replay as tables: who is on it, in which regions and calls, for what.
#
# Every step of the path is time that the runtime grows with, so that the tables are derivatives as
# well: time of computing by a factor on it, latencies by the latency, bytes by the time per byte.


_NS = 1e9


@dataclass(frozen=True)
class Spent:
    """What time on the critical path is spent on, s."""

    computing: float  # Between MPI calls
    latency: float  # Latencies of messages and collectives
    bandwidth: float  # What their sizes cost
    overhead: float  # Of calls, which depends on neither

    @property
    def time(self) -> float:
        """All together, s."""
        return self.computing + self.latency + self.bandwidth + self.overhead


@dataclass(frozen=True)
class Entry:
    """What one rank, region, call or pair of ranks has on the critical path."""

    name: str
    spent: Spent
    share: float  # Its time as part of the runtime
    latencies: float  # Derivative of the runtime by the latency there
    bytes: float  # Derivative by the time per byte there, B
    steps: int  # How many steps of the path it has


@dataclass(frozen=True)
class PathTable:
    """Entries with most time on the critical path, the longest first."""

    entries: tuple[Entry, ...]
    others: int  # How many more there are
    others_time: float  # Their time together, s


@dataclass(frozen=True)
class Stay:
    """A time for which the critical path stays on a rank."""

    rank: int
    # In the replay, s.
    begin: float
    end: float


@dataclass(frozen=True)
class PathTables:
    """The critical path of a replay."""

    spent: Spent  # All of it; its time is the runtime
    steps: int  # How many steps it has
    changes: int  # How often it goes to another rank
    longest: Stay  # The longest time for which it stays on one
    # Time by rank (of transfers the receiver), by region (computing only), by MPI call, and by
    # sender and receiver of messages.
    ranks: PathTable
    regions: PathTable
    calls: PathTable
    pairs: PathTable


def path_tables(
    path: CriticalPath,
    program: Program,
    regions: RegionGains,
    trace: Trace | None = None,
    *,
    most: int = 20,
) -> PathTables:
    """Sum a critical path up in tables."""
    cost = _costs(path)
    runtime = float(cost[:4].sum())
    steps = np.arange(cost.shape[1])
    stayed = stays(path, program)
    longest = max(stayed, key=lambda one: one.end - one.begin, default=Stay(0, 0.0, 0.0))

    def table(
        rows: NDArray[np.int64],
        keys: Sequence[NDArray[np.int64]],
        name: Callable[..., str],
        weight: NDArray[np.float64] | None = None,
    ) -> PathTable:
        columns = cost[:, rows] if weight is None else cost[:, rows] * weight
        return _table(columns, keys, name, runtime, most)

    part_of_step, parts, share = _parts(path, program, regions)
    made = np.flatnonzero((path.part != PathPart.COMPUTE) & (path.operation >= 0))
    calls, caller_of, callers = _callers(path, made, program, trace)
    message, sender, receiver = _pairs(path, program)
    return PathTables(
        Spent(*cost.sum(axis=1)[:4].tolist()),
        len(steps),
        len(stayed) - 1 if stayed else 0,
        longest,
        table(steps, [program.owner[path.process].astype(np.int64)], lambda rank: f"rank {rank}"),
        table(
            part_of_step,
            [regions.region[parts].astype(np.int64)],
            lambda one: regions.names[one],
            share,
        ),
        table(
            made,
            [program.call_code[calls].astype(np.int64), caller_of],
            lambda code, caller: site_name(program.call_name[code], *callers[caller]),
        ),
        table(message, [sender, receiver], lambda one, other: f"{one} -> {other}"),
    )


def critical_times(
    path: CriticalPath, program: Program, regions: RegionGains
) -> NDArray[np.float64]:
    """Time of each region on the critical path by process, s: float64[regions, P].

    It is the derivative of the runtime by a factor on the time of that region on that process.
    """
    step, part, share = _parts(path, program, regions)
    shape = len(regions), program.sequences
    cell = regions.region[part] * np.int64(shape[1]) + path.process[step]
    time = path.time[step] * share / _NS
    times = np.bincount(cell, time, shape[0] * shape[1]).astype(np.float64, copy=False)
    return times.reshape(shape)


def stays(path: CriticalPath, program: Program) -> list[Stay]:
    """For how long the path is on which rank, in order of time; of transfers on the receiver's."""
    if not len(path.process):
        return []
    rank = program.owner[path.process]
    ends = np.cumsum(path.time) / _NS
    last = np.append(np.flatnonzero(np.diff(rank)), len(ends) - 1)
    end = ends[last]
    begin = np.concatenate([[0.0], end[:-1]])
    return list(map(Stay, rank[last].tolist(), begin.tolist(), end.tolist()))


def _costs(path: CriticalPath) -> NDArray[np.float64]:
    """Computing, latency, bandwidth and overhead of each step, s, then latencies and bytes."""
    computing = np.where(path.part == PathPart.COMPUTE, path.time, 0.0)
    times = np.stack([computing, path.latency_time, path.bytes_time, path.overhead]) / _NS
    return np.concatenate([times, np.stack([path.latency, path.bytes])])


def _parts(
    path: CriticalPath, program: Program, regions: RegionGains
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Steps of computing by parts of their bursts: the step, the part, and its share of it."""
    steps = np.flatnonzero(path.part == PathPart.COMPUTE)
    tail = path.operation[steps] < 0
    row = np.where(tail, program.operations + path.process[steps], path.operation[steps])
    first = np.searchsorted(regions.row, row, side="left")
    count = np.searchsorted(regions.row, row, side="right") - first
    which, part = spread(first, count)
    whole = np.add.reduceat(regions.time[part], np.cumsum(count) - count) if len(part) else part
    return steps[which], part, regions.time[part] / whole[which]


def _callers(
    path: CriticalPath, steps: NDArray[np.int64], program: Program, trace: Trace | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], Sequence[tuple[str, str]]]:
    """Calls that some steps are made by, and the callers of each, or else the regions around.

    Callers are functions and places, which may be empty, and the index of each call into them.
    """
    calls = program.call[path.operation[steps]].astype(np.int64)
    if trace is None:
        return calls, np.zeros_like(calls), [("", "")]
    sites = trace.sites()
    if len(sites.places) > 1:
        return calls, places_of(sites, calls), [*sites.places, ("", "")]
    entry = program.call_time[calls]
    time = entry if trace.pieces is None else trace.pieces.moved(entry)
    process = program.owner[path.process[steps]].astype(np.int64)
    region, names = marked_at(trace, process, time)
    return calls, region + 1, [*sites.places, *((name, "") for name in names)]


def _pairs(
    path: CriticalPath, program: Program
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Steps of messages, with their senders and receivers.

    Of the messages of a collective only those are told that the sender decides.
    """
    own = (path.part >= PathPart.SEND) & (path.part <= PathPart.TRANSFER)
    others = (path.part == PathPart.MESSAGE) & (path.source != path.process)
    steps = np.flatnonzero(own | others)
    sender, receiver = path.source[steps].astype(np.int64), path.process[steps].astype(np.int64)
    mine = own[steps]
    row = path.row[steps][mine]
    sender[mine], receiver[mine] = program.messages.sender[row], program.messages.receiver[row]
    owner = program.owner.astype(np.int64)
    return steps, owner[sender], owner[receiver]


def _table(
    columns: NDArray[np.float64],
    keys: Sequence[NDArray[np.int64]],
    name: Callable[..., str],
    runtime: float,
    most: int,
) -> PathTable:
    """Sums of columns by keys, those with most time first."""
    if not columns.shape[1]:
        return PathTable((), 0, 0.0)
    kinds, which = alike(*keys)
    sums = np.stack([np.bincount(which, column, len(kinds)) * 1.0 for column in columns])
    counts = np.bincount(which, minlength=len(kinds))
    times = sums[:4].sum(axis=0)
    order = np.argsort(-times, kind="stable")
    order = order[np.any(sums[:, order] != 0, axis=0)]  # calls that nobody waits for are no part
    entries = tuple(
        Entry(
            name(*kinds[one].tolist()),
            spent := Spent(*sums[:4, one].tolist()),
            spent.time / runtime if runtime else 0.0,
            float(sums[4, one]),
            float(sums[5, one]),
            int(counts[one]),
        )
        for one in order[:most].tolist()
    )
    rest = order[most:]
    return PathTable(entries, len(rest), float(times[rest].sum()))


# The critical path of a replay as events of a trace, by the measured times of the run.
#
# A replay has its own times, in which waiting differs from the run. The events mark what of the run
# the path is made of: the computing before an operation, and the calls in which something was on
# it.


COMPUTING, IN_MPI = 1, 2
_VALUES = {0: "not on it", COMPUTING: "computing", IN_MPI: "in MPI"}


def write_path(
    path: CriticalPath, program: Program, trace: Trace, target: Path, network: str
) -> None:
    """Write a trace with the critical path of its replay."""
    if len(program.threads):
        raise UsageError(
            f"-o {target}: threads call MPI on their own, so that the critical path has no place "
            "on the ranks of the trace",
            "see the tables of the critical path instead",
        )
    process, time, value = path_events(path, program, trace)
    label = f"Critical path of a replay ({network}), at measured times"
    events = process, time + trace.origin, value
    source = Path(trace.path)
    add_events(source, target, Event.CRITICAL_PATH, label, _VALUES, trace.application, *events)


def path_events(path: CriticalPath, program: Program, trace: Trace) -> Changes:
    """When the processes of a measured run come to parts of the path, and leave them."""
    return _changes(*_measured(path, program, trace))


def _changes(
    process: NDArray[np.int64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    value: NDArray[np.int64],
) -> Changes:
    """Where stretches of processes begin and end; the same may be there several times."""
    some = np.flatnonzero(end > begin)
    some = some[np.lexsort((value[some], end[some], begin[some], process[some]))]
    process, begin, end, value = (column[some] for column in (process, begin, end, value))
    # What follows at once begins itself what ends here, or goes on.
    touches = (process[1:] == process[:-1]) & (begin[1:] <= end[:-1])
    goes_on = touches & (value[1:] == value[:-1])
    starts = np.insert(~goes_on, 0, True)[: len(process)]
    ends = np.append(~touches, True)[: len(process)]
    changes = np.concatenate(
        [
            np.stack([process[starts], begin[starts], value[starts]]),
            np.stack([process[ends], end[ends], np.zeros_like(end[ends])]),
        ],
        axis=1,
    )
    process, time, value = changes[:, np.lexsort((changes[1], changes[0]))]
    return process, time, value


def _measured(
    path: CriticalPath, program: Program, trace: Trace
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Process, begin and end (ns of the whole run) and value of what each step stands for."""
    whole = trace.whole or trace
    pieces = trace.pieces or TracePieces.window(trace.begin, trace.end)
    calls = whole.calls()
    process = path.process.astype(np.int64)
    computes = path.part == PathPart.COMPUTE
    tail = computes & (path.operation < 0)
    operation = np.where(tail, program.offsets[process + 1], path.operation)
    own = np.append(program.call.astype(np.int64), 0)[operation]
    before = operation - 1
    first = before < program.offsets[process]
    previous = program.call.astype(np.int64)[np.maximum(before, 0)] if program.operations else own
    entry = np.where(tail, np.minimum(whole.ends()[process], pieces.end[-1]), _at(calls.entry, own))
    left = np.where(first, pieces.begin[0], _at(calls.exit, previous))
    # of a part of several pieces: computing does not reach back over the gap before its piece
    piece = np.maximum(np.searchsorted(pieces.begin, entry, side="right") - 1, 0)
    begin = np.where(computes, np.maximum(left, pieces.begin[piece]), _at(calls.entry, own))
    end = np.where(computes, entry, _at(calls.exit, own))
    return process, begin, end, np.where(computes, COMPUTING, IN_MPI)


def _at(times: NDArray[np.int64], calls: NDArray[np.int64]) -> NDArray[np.int64]:
    """Times of some calls; of a run without any whatever."""
    return times[calls] if len(times) else np.zeros(len(calls), np.int64)
