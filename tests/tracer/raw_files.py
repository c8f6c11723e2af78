"""What the library has written, read in the plainest way: the oracle of its tests."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SOURCES = Path(__file__).resolve().parents[2] / "microbench" / "tracer"

_RECORD = np.dtype(
    [("time", "u8"), ("kind", "u2"), ("call", "u2"), ("a", "u4"), ("b", "i8"), ("c", "i8")]
)
_HEADER = 64

CALLS = {
    int(number): name
    for name, number in re.findall(r"X\((\w+), (\d+), ", (SOURCES / "calls.h").read_text())
}
KINDS = {
    name: int(number)
    for name, number in re.findall(
        r"^ +([A-Z_]+) = (\d+)",
        (SOURCES / "record.h").read_text().partition("\nenum construct")[0],
        re.MULTILINE,
    )
}


@dataclass
class Thread:
    """Records of one thread, without the tail that was never filled."""

    header: bytes
    records: np.ndarray[Any, Any]
    tail: int

    def of(self, *kinds: str) -> np.ndarray[Any, Any]:
        """Records of these kinds."""
        return self.records[np.isin(self.records["kind"], [KINDS[kind] for kind in kinds])]

    def calls(self) -> Counter[str]:
        """Finished calls by name; those that stand for several count as several."""
        counts: Counter[str] = Counter()
        for record in self.of("LEAVE"):
            counts[CALLS[int(record["call"])]] += max(1, int(record["b"]))
        return counts


@dataclass
class Process:
    """Files of one process."""

    stem: str
    threads: list[Thread]
    meta: list[dict[str, Any]]

    def events(self, name: str) -> list[dict[str, Any]]:
        """Lines of the meta file about this event."""
        return [event for event in self.meta if event["event"] == name]

    @property
    def rank(self) -> int:
        """Rank in MPI_COMM_WORLD."""
        (event,) = self.events("mpi")
        return int(event["rank"])

    def calls(self) -> Counter[str]:
        """Calls of all threads."""
        return sum((thread.calls() for thread in self.threads), Counter())

    def of(self, *kinds: str) -> np.ndarray[Any, Any]:
        """Records of all threads."""
        return np.concatenate([thread.of(*kinds) for thread in self.threads])

    def messages(self) -> Counter[tuple[str, int, int, int]]:
        """What happened, partner, tag and bytes of all messages."""
        counts: Counter[tuple[str, int, int, int]] = Counter()
        for kind, what in (("SEND", "sent"), ("RECEIVE", "received")):
            for record in self.of(kind):
                end = int(record["b"])
                counts[what, end >> 32, end & 0xFFFFFFFF, int(record["c"])] += 1
        return counts


def read(directory: Path) -> list[Process]:
    """All processes of a raw directory, by rank where they have one."""
    processes = []
    for meta in sorted(directory.glob("*.meta")):
        stem = meta.name.removesuffix(".meta")
        files = [directory / f"{stem}.t{n}.raw" for n in range(len(list(directory.glob("*"))))]
        events = [json.loads(line) for line in meta.read_text(encoding="utf-8").splitlines()]
        processes.append(Process(stem, [_thread(file) for file in files if file.exists()], events))
    return sorted(processes, key=lambda process: [e["rank"] for e in process.events("mpi")])


def _thread(file: Path) -> Thread:
    content = file.read_bytes()
    header, body = content[:_HEADER], content[_HEADER:]
    records = np.frombuffer(body[: len(body) // _RECORD.itemsize * _RECORD.itemsize], _RECORD)
    blank = np.flatnonzero(records["kind"] == 0)
    length = int(blank[0]) if len(blank) else len(records)
    assert not records["kind"][length:].any(), f"{file} goes on after its end"
    assert (np.diff(records["time"][:length].astype(np.int64)) >= 0).all(), f"{file}: order of time"
    return Thread(header, records[:length], len(records) - length)
