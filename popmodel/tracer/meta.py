"""What a traced process wrote about itself: one JSON object a line, one line an event."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from popmodel.errors import TraceError
from popmodel.trace.trace import TraceWarning
from popmodel.tracer.records import LATEST

AGAIN = "copy the raw directory again, or trace the run again"
VERSION = 1


@dataclass(frozen=True)
class Communicator:
    """A communicator as one of its processes knows it.

    Attributes
    ----------
    hash : str
        Of the world ranks of its members.
    ordinal : int
        How many with the same members this process had before it.
    size, rank : int
        Members, and this process's rank among them.
    members : tuple of int, optional
        World ranks, where this process is the one that says so.
    intercommunicator : bool
        Whether it joins two groups.
    """

    hash: str
    ordinal: int
    size: int
    rank: int
    members: tuple[int, ...] | None = None
    intercommunicator: bool = False


@dataclass(frozen=True)
class Function:
    """A function that OpenMP made of a region: what the dynamic linker knows of its address."""

    name: str | None
    module: str
    offset: int


@dataclass(frozen=True)
class Exchange:
    """Round trips between a process and the one whose clock counts.

    Attributes
    ----------
    when : str
        ``init`` or ``finalize``.
    reference : str
        Host of the other.
    round_trips : tuple of (int, int, int)
        Sent and received here, and the other's time between; ns of each one's own clock.
    """

    when: str
    reference: str
    round_trips: tuple[tuple[int, int, int], ...]


@dataclass
class Meta:
    """What a process wrote about itself.

    Attributes
    ----------
    host, pid, executable, arguments
        What ran where.
    begin : int
        When tracing began, ns of the host's monotonic clock.
    realtime : int
        The same instant in ns since 1970.
    boot : str
        What the clock belongs to: the start of the system, or the host where that is not known.
    rank, size : int, optional
        In MPI_COMM_WORLD; None in a process without MPI.
    library : str
        Of MPI, as it calls itself.
    end : int, optional
        When tracing ended; None after a crash.
    reason : str, optional
        Why it ended.
    records : mapping of int to int
        How many records each thread wrote; empty after a crash.
    lost_from : mapping of int to int
        Threads whose disk was full, and since when, ns.
    """

    path: Path
    host: str
    pid: int
    begin: int
    realtime: int
    boot: str
    executable: str = ""
    arguments: tuple[str, ...] = ()
    rank: int | None = None
    size: int | None = None
    library: str = ""
    end: int | None = None
    reason: str | None = None
    records: dict[int, int] = field(default_factory=dict)
    communicators: dict[int, Communicator] = field(default_factory=dict)
    functions: dict[int, Function] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    exchanges: list[Exchange] = field(default_factory=list)
    counters: tuple[str, ...] = ()
    no_counters: str | None = None
    openmp: str | None = None
    openmp_runtime: str = ""
    lost_from: dict[int, int] = field(default_factory=dict)
    notes: Counter[str] = field(default_factory=Counter)


def read_meta(path: Path) -> tuple[Meta | None, list[TraceWarning]]:
    """Read what a process wrote about itself; None where it could not even write its first line.

    Raises
    ------
    TraceError
        The file cannot be read, is damaged, or was written by another version.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        problem = f"cannot be read: {(error.strerror or str(error)).lower()}"
        raise TraceError(path, problem, hint=AGAIN) from None
    *lines, rest = text.split(b"\n")
    warnings = []
    if rest:  # each line is one write: a process can be killed in it, on a full disk for instance
        text_ = "processes whose description ends in the middle of a line, which is left out"
        warnings.append(TraceWarning(text_))
    meta: Meta | None = None
    for number, line in enumerate(lines, start=1):
        try:
            event = json.loads(line)
            kind = event["event"]
            if meta is None:
                meta = _start(path, kind, event)
            elif take := _EVENTS.get(kind):
                take(meta, event)
            elif kind not in _IGNORED:
                meta.notes[f"events of a kind {kind!r} that popmodel does not know"] += 1
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            reason = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise TraceError(
                path, f"the line is damaged: {reason}", line=number, hint=AGAIN
            ) from None
    if meta is None:
        text_ = "processes that could not say what they are (no room on the disk?), left out"
        return None, [TraceWarning(text_)]
    return meta, warnings


def _start(path: Path, kind: str, event: Mapping[str, Any]) -> Meta:
    if kind != "start":
        raise ValueError(f"the first event is {kind!r}, not 'start'")
    if event["version"] != VERSION:
        raise ValueError(
            f"written in version {event['version']} of the format, this popmodel reads {VERSION}"
        )
    return Meta(
        path=path,
        host=str(event["host"]),
        pid=int(event["pid"]),
        begin=_instant(event["monotonic"]),
        realtime=_instant(event["realtime"]),
        executable=str(event.get("exe") or ""),
        boot=str(event.get("boot") or event["host"]),
        arguments=tuple(map(str, event.get("argv", ()))),
    )


def _instant(value: Any) -> int:
    """A time of a clock, ns."""
    found = int(value)
    if not 0 <= found <= LATEST:
        raise ValueError(f"{found} ns is a time that no clock shows")
    return found


def _mpi(meta: Meta, event: Mapping[str, Any]) -> None:
    meta.rank, meta.size = int(event["rank"]), int(event["size"])
    meta.library = str(event.get("library", ""))
    if not 0 <= meta.rank < meta.size:
        raise ValueError(f"rank {meta.rank} of {meta.size}")


def _communicator(meta: Meta, event: Mapping[str, Any]) -> None:
    members = event.get("members")
    meta.communicators[int(event["id"])] = Communicator(
        hash=str(event["hash"]),
        ordinal=int(event["ordinal"]),
        size=int(event["size"]),
        rank=int(event["rank"]),
        members=None if members is None else tuple(map(int, members)),
        intercommunicator="remote_size" in event or "remote" in event,
    )


def _function(meta: Meta, event: Mapping[str, Any]) -> None:
    name = event["name"]
    meta.functions[int(event["address"], 16)] = Function(
        name=None if name is None else str(name),
        module=str(event.get("module") or ""),
        offset=int(event.get("offset") or "0", 16),
    )


def _name(meta: Meta, event: Mapping[str, Any]) -> None:
    meta.names[int(event["id"])] = str(event["text"])


def _clock(meta: Meta, event: Mapping[str, Any]) -> None:
    trips = tuple((_instant(a), _instant(b), _instant(c)) for a, b, c in event["round_trips"])
    meta.exchanges.append(Exchange(str(event["when"]), str(event["with"]), trips))


def _counters(meta: Meta, event: Mapping[str, Any]) -> None:
    meta.counters = tuple(map(str, event.get("names", ())))
    meta.no_counters = None if meta.counters else str(event.get("why", "not said"))


def _openmp(meta: Meta, event: Mapping[str, Any]) -> None:
    meta.openmp = str(event["how"])
    meta.openmp_runtime = str(event.get("runtime") or "")


def _full(meta: Meta, event: Mapping[str, Any]) -> None:
    meta.lost_from[int(event["thread"])] = _instant(event["lost_from"])


def _end(meta: Meta, event: Mapping[str, Any]) -> None:
    meta.end = _instant(event["time"])
    meta.reason = str(event.get("reason", ""))
    meta.records = {int(thread): int(count) for thread, count in event["records"].items()}


def _note(meta: Meta, event: Mapping[str, Any]) -> None:
    # It is written when first seen and, with its count, at the end.
    text, count = str(event["text"]), int(event.get("count", 1))
    meta.notes[text] = max(meta.notes[text], count)


_EVENTS: Mapping[str, Callable[[Meta, Mapping[str, Any]], None]] = {
    "mpi": _mpi,
    "communicator": _communicator,
    "function": _function,
    "name": _name,
    "clock": _clock,
    "counters": _counters,
    "openmp": _openmp,
    "full": _full,
    "end": _end,
    "note": _note,
}
# Threads are found by their files, and the end of MPI is the call of MPI_Finalize.
_IGNORED = {"thread", "finalize"}
