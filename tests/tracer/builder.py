"""Writes raw directories as the tracer's library does, from what a test wants a run to do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from popmodel.tracer.raw_records import (
    HEADER,
    MAGIC,
    MARK,
    RECORD,
    VERSION,
    RecordKind,
    known_calls,
)
from popmodel.traces import Trace
from popmodel.traces.tables import TraceWarning

NUMBER = {call.name: number for number, call in known_calls().items()}


def group_hash(members: Sequence[int]) -> str:
    """FNV-1a of world ranks."""
    value = 0xCBF29CE484222325
    for rank in members:
        for byte in int(rank).to_bytes(4, "little"):
            value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


class Thread:
    """Records of one thread; times are in ns of its host's clock."""

    def __init__(self, process: Process, number: int) -> None:
        self.process = process
        self.number = number
        self.rows: list[tuple[int, int, int, int, int, int]] = []

    def put(self, time: int, kind: int, call: int = 0, a: int = 0, b: int = 0, c: int = 0) -> None:
        """Add a record."""
        self.rows.append((time, int(kind), call, a, b, c))

    def call(
        self,
        name: str,
        begin: int,
        end: int,
        *inner: tuple[int, int, int, int],
        a: int = 0,
        b: int = 0,
        c: int = 0,
        found: int = 0,
        misses: int = 0,
        between: int = 0,
    ) -> None:
        """Add an MPI call; `inner` are (kind, a, b, c) of the records inside."""
        number = NUMBER[name]
        self.put(begin, RecordKind.ENTER, number, a, b, c)
        for kind, a_, b_, c_ in inner:
            self.put(end if kind in (5, 6, 9) else begin, kind, 0, a_, b_, c_)
        self.put(end, RecordKind.LEAVE, number, found, misses, between)


def end_of(rank: int, tag: int) -> int:
    """The end of a message as records have it."""
    return rank << 32 | tag


def send(to: int, tag: int, size: int, communicator: int = 1) -> tuple[int, int, int, int]:
    """A SEND inside a call."""
    return RecordKind.SEND, communicator, end_of(to, tag), size


def post(number: int, communicator: int = 1, blocking: int = 0) -> tuple[int, int, int, int]:
    """A POST inside a call."""
    return RecordKind.POST, communicator, number, blocking


def receive(
    source: int, tag: int, size: int, number: int, communicator: int = 1
) -> tuple[tuple[int, int, int, int], tuple[int, int, int, int]]:
    """RECEIVE and RECEIVED inside a call."""
    return (
        (RecordKind.RECEIVE, communicator, end_of(source, tag), size),
        (RecordKind.RECEIVED, 0, number, 0),
    )


class Process:
    """One process of a run."""

    def __init__(self, run: Run, rank: int | None, host: str, pid: int, begin: int) -> None:
        self.run = run
        self.rank = rank
        self.host = host
        self.pid = pid
        self.threads: list[Thread] = []
        self.events: list[dict[str, Any]] = [
            {
                "event": "start", "host": host, "pid": pid,
                "monotonic": begin, "realtime": begin + run.epoch, "version": VERSION,
            }
        ]  # fmt: skip
        if rank is not None:
            self.say(
                "mpi", rank=rank, size=run.size, thread_level=1, library="Some MPI", time=begin
            )
            world = list(range(run.size))
            members = {"members": world} if rank == 0 else {}
            self.say(
                "communicator", id=1, size=run.size, hash=group_hash(world), ordinal=0,
                rank=rank, **members,
            )  # fmt: skip
            self.say(
                "communicator", id=2, size=1, hash=group_hash([rank]),
                ordinal=1 if run.size == 1 else 0, rank=0, members=[rank],
            )  # fmt: skip

    def say(self, event: str, **fields: Any) -> None:
        """Add an event to the meta file."""
        self.events.append({"event": event, **fields})

    def thread(self) -> Thread:
        """Add a thread."""
        self.threads.append(Thread(self, len(self.threads)))
        return self.threads[-1]

    def end(self, time: int, reason: str = "exit") -> None:
        """Say that the process ends normally."""
        records = {str(t.number): len(t.rows) for t in self.threads}
        self.say("end", time=time, records=records, reason=reason)

    @property
    def name(self) -> str:
        """How its files begin."""
        return f"{self.host}.{self.pid}"


class Run:
    """A run; `write` makes its raw directory."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.epoch = 1_700_000_000 * 10**9
        self.processes: list[Process] = []

    def process(
        self, rank: int | None = None, host: str = "node1", begin: int = 1000, pid: int = 0
    ) -> Process:
        """Add a process."""
        made = Process(self, rank, host, pid or 100 + len(self.processes), begin)
        self.processes.append(made)
        return made

    def write(self, folder: Path, *, padding: int = 0) -> Path:
        """Write all files; `padding` records of zeros follow those of each thread."""
        folder.mkdir(exist_ok=True)
        for process in self.processes:
            lines = "".join(json.dumps(event) + "\n" for event in process.events)
            (folder / f"{process.name}.meta").write_text(lines)
            for thread in process.threads:
                path = folder / f"{process.name}.t{thread.number}.raw"
                path.write_bytes(raw_file(thread, process.pid, padding))
        return folder


def raw_file(thread: Thread, pid: int, padding: int = 0) -> bytes:
    """The bytes of a thread's file."""
    begin = thread.rows[0][0] if thread.rows else 0
    header = HEADER.pack(
        MAGIC, MARK, VERSION, HEADER.size, RECORD.itemsize, pid, thread.number, 4000, begin
    )
    records = np.zeros(len(thread.rows) + padding, RECORD)
    records[: len(thread.rows)] = thread.rows
    return header + records.tobytes()


def tally(trace: Trace) -> tuple[dict[str, int], tuple[TraceWarning, ...]]:
    """MPI calls of a trace by name, and what is wrong with them."""
    calls = trace.records.calls()
    numbers = np.bincount(calls.name, minlength=len(calls.names)).tolist()
    return {name: n for name, n in zip(calls.names, numbers, strict=True) if n}, calls.warnings
