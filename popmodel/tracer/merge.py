"""From a raw directory to a Paraver trace.

Twice through the run. First thread by thread: records become states, events and ends of messages,
which wait in a temporary file; the ends of messages are joined. Then window by window of time:
what all threads have in it is brought in order and written as text.

`popmodel.trace.paraver.writer.TraceWriter` holds all records and sorts them at the end, which is
right for tests and examples; only its header and its files of names serve here.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from popmodel import files
from popmodel.errors import TraceError, UsageError
from popmodel.trace import formats
from popmodel.trace.caveats import crowded
from popmodel.trace.paraver.labels import legend
from popmodel.trace.paraver.writer import write_beside
from popmodel.trace.tables import TraceWarning
from popmodel.tracer.conversion import Conversion
from popmodel.tracer.events import EventLoad
from popmodel.tracer.identities import Locate
from popmodel.tracer.raw import Raw, read
from popmodel.tracer.records import known_calls
from popmodel.tracer.temporary import Spool
from popmodel.tracer.trace_text import names_of_rows, names_of_values, write_text
from popmodel.values import dataclass

_SUFFIXES = (".prv.gz", ".prv")


@dataclass(frozen=True)
class Merged:
    """A merged trace."""

    path: Path  # The ``.prv`` or ``.prv.gz`` file
    size: int  # Its bytes
    raw_size: int  # Bytes of the records that it was made from
    processes: int
    hosts: int
    threads: tuple[int, ...]  # Of each process
    duration: int  # ns
    records: int  # Records of the tracer
    loads: tuple[EventLoad, ...]  # What was recorded of each thread
    calls: Mapping[str, int]  # How often each MPI call was made, the most frequent first
    only_masters_call: bool  # Whether no other thread calls MPI, as a replay needs
    messages: int
    message_bytes: int
    # By how much times of different hosts may be wrong, ns; None where that is unknown.
    clock_residual: int | None
    library: str  # The MPI, as it calls itself; empty where there was none
    openmp: Mapping[str, int]  # How many processes had their OpenMP observed in which way
    # How many processes read hardware counters (key ``""``), or why they did not.
    counters: Mapping[str, int]
    warnings: tuple[TraceWarning, ...]  # What is not there, or not as it should be
    spawned: bool = False  # Whether another run started this one by MPI_Comm_spawn
    crowding: tuple[str, ...] = ()  # Whether threads shared CPUs or waited for them


def merge(
    directory: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    locate: Locate | None = None,
    progress: Callable[[float], None] | None = None,
) -> Merged:
    """Merge the raw files of a run into a trace."""
    target = _target(output)
    runs = read(directory)
    if len(runs) > 1:
        raise TraceError(
            Path(directory),
            f"contains {len(runs)} runs",
            hint="merge_runs makes a trace of each, as popmodel trace merge does",
        )
    return _merged_run(runs[0], target, locate, progress)


def merge_runs(
    directory: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    locate: Locate | None = None,
    progress: Callable[[float], None] | None = None,
    check: Callable[[Path], object] | None = None,
) -> tuple[Merged, ...]:
    """Merge the raw files of all runs in a directory, each into a trace."""
    target = _target(output)
    runs = read(directory)
    paths = [target]
    if len(runs) > 1:
        paths = [of_run(target, number) for number in range(1, len(runs) + 1)]
        if check is not None:
            for path in paths:
                check(path)
    made = []
    for number, (raw, path) in enumerate(zip(runs, paths, strict=True)):

        def part(done: float, number: int = number) -> None:
            if progress is not None:
                progress((number + done) / len(runs))

        made.append(_merged_run(raw, path, locate, part))
    return tuple(made)


def of_run(target: Path, number: int) -> Path:
    """The trace of one of several runs."""
    suffix = next(suffix for suffix in _SUFFIXES if target.name.endswith(suffix))
    return target.with_name(f"{target.name.removesuffix(suffix)}.run{number}{suffix}")


def _target(output: str | os.PathLike[str]) -> Path:
    target = Path(output)
    if not target.name.endswith(_SUFFIXES):
        raise UsageError(f"{target}: must end in .prv or .prv.gz")
    return target


def _merged_run(
    raw: Raw, target: Path, locate: Locate | None, progress: Callable[[float], None] | None
) -> Merged:
    spool = Spool(target.absolute().parent)
    try:
        done = Conversion(raw, spool, locate, progress)
        size = _written(done, done.run(), target)
    finally:
        spool.close()
    return _merged(done, target, size)


def _written(done: Conversion, messages: list[tuple[str, int]], target: Path) -> int:
    """Write the trace and the files beside it; gives its bytes."""
    try:
        with files.written(target, read=partial(formats.read)) as file:
            write_text(done, file, messages, compressed=target.name.endswith(".gz"))
            file.flush()
            size = file.tell()
            named = names_of_values(done.calls, done.functions, done.names, done.sites)
            write_beside(target, legend(named, counters=done.counted), names_of_rows(done))
    except OSError as error:
        problem = f"cannot be written: {(error.strerror or str(error)).lower()}"
        raise TraceError(target, problem, hint="write it elsewhere, or free some space") from None
    return size


def _merged(done: Conversion, target: Path, size: int) -> Merged:
    metas = [p.meta for p in done.raw.processes]
    cpus, sharing, used, waited = done.cpus
    named = Counter(
        {
            f"MPI_{known_calls()[number].name}": int(done.calls[number])
            for number in np.flatnonzero(done.calls).tolist()
        }
    )
    return Merged(
        path=target,
        size=size,
        raw_size=32 * done.records,
        processes=done.raw.size,
        hosts=len({meta.host for meta in metas}),
        threads=tuple(done.threads),
        duration=done.duration,
        records=done.records,
        loads=tuple(done.loads),
        calls=dict(named.most_common()),
        only_masters_call=done.only_masters_call,
        messages=done.matcher.messages,
        message_bytes=done.matcher.bytes,
        clock_residual=done.residual,
        library=metas[0].library,
        openmp=Counter(meta.openmp for meta in metas if meta.openmp is not None),
        counters=Counter(
            "" if meta.counters else str(meta.no_counters)
            for meta in metas
            if meta.counters or meta.no_counters is not None
        ),
        warnings=tuple(TraceWarning(t, count) for t, count in done.warnings.items() if count),
        spawned=done.raw.spawned,
        crowding=tuple(crowded(cpus, sharing, used, waited, done.first)),
    )
