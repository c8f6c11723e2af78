"""The trace of what processes compute and call, as the compiled core or a reader tells it."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from popmodel.base.errors import TraceError, UsageError
from popmodel.base.units import plural
from popmodel.kernel import _kernel
from popmodel.traces.calls import CallGroup, CallTable, CollectiveArguments
from popmodel.traces.codes import RUNNING
from popmodel.traces.recorded_run import Trace
from popmodel.traces.records import Exact, RecordColumns
from popmodel.traces.resources import memory_error
from popmodel.traces.source import CHUNK, open_source
from popmodel.traces.tables import States, TraceWarning, offsets_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray


_SENDS = tuple(f"MPI_{each}" for each in ("Send", "Ssend", "Bsend", "Isend", "Issend", "Ibsend"))
_RECEIVES = ("MPI_Recv", "MPI_Irecv")


def one_application(path: str | os.PathLike[str], application: int, what: str) -> None:
    """Refuse another application than the only one of a file, which is called `what`."""
    if application != 1:
        raise UsageError(
            f"{os.fspath(path)}: no application {application}", f"the {what} has application 1 only"
        )


def feed_file(
    path: Path, scanner: _kernel.GoalScanner | _kernel.SmpiRanks | _kernel.SmpiScanner
) -> None:
    with open_source(path) as source:
        view = memoryview(bytearray(CHUNK))
        while size := source.readinto(view):
            scanner.feed(view[:size])


@contextmanager
def errors_of(
    path: str | os.PathLike[str], advice: str, hints: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Say in which file and line a scanner found what; some words of errors have hints of their
    own.
    """
    try:
        yield
    except _kernel.ScanError as error:
        number, reason = error.args
        special = [hint for words, hint in (hints or {}).items() if words in reason]
        hint = special[0] if special else advice
        raise TraceError(path, reason, line=number or None, hint=hint) from None
    except MemoryError:
        raise memory_error(path) from None


def trace_of(
    path: str | os.PathLike[str],
    columns: _kernel.UntimedColumns,
    communicators: Mapping[int, Sequence[int]],
    warnings: Sequence[TraceWarning],
    hint: str,
    ranks: NDArray[np.int64] | None = None,
) -> Trace:
    offsets, ends = columns["offsets"], columns["ends"]
    count = len(ends)
    rank_of = np.arange(count) if ranks is None else ranks
    every = np.array(_kernel.UNTIMED_CALLS)
    used = np.flatnonzero(np.bincount(columns["name"], minlength=len(every)))
    used = used[np.argsort(every[used])]
    number = np.zeros(len(every), np.int16)
    number[used] = np.arange(len(used))
    names = tuple(every[used].tolist())
    entry = np.rint(columns["time"]).astype(np.int64)
    calls = CallTable(
        offsets=offsets,
        entry=entry,
        exit=entry,
        name=number[columns["name"]],
        names=names,
        group=tuple(map(_group, names, (used >= _kernel.FIRST_COLLECTIVE).tolist())),
        collectives=CollectiveArguments(
            columns["call"],
            columns["sent"],
            columns["received"],
            columns["communicator"],
            columns["is_root"] != 0,
            columns["parts"],
        ),
        partner=columns["partner"],
        tag=columns["tag"],
        bytes=columns["size"],
        request=columns["request"],
    )
    _refuse_without_other_end(path, calls, hint, rank_of)
    begin, end = (np.rint(columns[side]).astype(np.int64) for side in ("begin", "end"))
    states = States(columns["burst_offsets"], begin, end, np.full(len(begin), RUNNING, np.int32))
    return Trace(
        path=os.fspath(path),
        application=1,
        begin=0,
        end=round(float(ends.max())),
        nodes=(),
        process_offsets=offsets_of(np.bincount(rank_of)),
        node_of_location=np.zeros(count, np.int32),
        communicators={key: np.array(ranks, np.int32) for key, ranks in communicators.items()},
        records=RecordColumns(states, calls, exact=Exact(columns["time"], ends)),
        timed=False,
        warnings=tuple(warnings),
    )


def _group(name: str, collective: bool) -> CallGroup:
    if collective:
        return CallGroup.COLLECTIVE
    return CallGroup.OTHER if name == "MPI_Finalize" else CallGroup.POINT_TO_POINT


def _refuse_without_other_end(
    path: str | os.PathLike[str], calls: CallTable, hint: str, rank_of: NDArray[np.int64]
) -> None:
    """Every send needs its receive: of the same processes and tag there are as many."""
    assert calls.partner is not None  # both were given
    assert calls.tag is not None
    side = np.array([(name in _SENDS) - (name in _RECEIVES) for name in calls.names], np.int8)
    most = int(calls.partner.max(initial=0))
    if most >= len(calls.offsets) - 1:
        problem = f"a message to or from process {most}, of which there are no actions"
        raise TraceError(path, problem, hint=hint)
    wrong = _kernel.unpaired_messages(
        rank_of=rank_of,
        offsets=calls.offsets,
        side=side,
        name=calls.name,
        partner=calls.partner,
        tag=calls.tag,
    )
    if wrong is not None:
        sender, receiver, tag, sends, receives, cases = wrong
        more = f" (and {cases - 1} more such cases)" if cases > 1 else ""
        raise TraceError(
            path,
            f"{plural(sends, 'send')} of process {sender} to process {receiver} with tag {tag}, "
            f"but {plural(receives, 'receive')}{more}",
            hint=hint,
        )
