"""Time to read archives of OTF2, as a ratio to OTF2's own reader with empty callbacks.

    python tests/benchmarks/archives.py [EVENTS]

The archive is made here: 16 processes that exchange messages, call functions and reduce. Printed
are the best of five runs of each: the library alone, `popmodel.read` on one core and on all, and
a process with ``popmodel metrics``. `popmodel.read` should take at most twice the time of the
library, the process three times. Seconds that passed mean something only on an idle machine.
"""

from __future__ import annotations

import ctypes
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import popmodel
from popmodel.kernel import _kernel
from popmodel.traces.otf2 import archive_reader
from popmodel.traces.otf2.archive_writer import (
    COLLECTIVE_BEGIN,
    COLLECTIVE_END,
    ENTER,
    LEAVE,
    RECEIVE,
    SEND,
)
from popmodel.traces.otf2.libotf2 import find_library
from popmodel.traces.workers import usable_cores

PROCESSES = 16
REPEATS = 5
EMPTY = "int empty(void) { return 0; }"
KINDS = ("Enter", "Leave", "MpiSend", "MpiRecv", "MpiCollectiveBegin", "MpiCollectiveEnd")
REGIONS = ("main", "solve", "MPI_Init", "MPI_Send", "MPI_Recv", "MPI_Allreduce", "MPI_Finalize")


def step(rank: int) -> list[tuple[int, ...]]:
    """Records of a step of a process: ten calls of a function, two messages, a reduction."""
    right, left = (rank + 1) % PROCESSES, (rank - 1) % PROCESSES
    records: list[tuple[int, ...]] = []
    for _ in range(10):
        records += [(ENTER, 1), (LEAVE, 1)]
    return [
        *records,
        *((ENTER, 3), (SEND, right, 0, 1, 1024), (LEAVE, 3)),
        *((ENTER, 4), (RECEIVE, left, 0, 1, 1024), (LEAVE, 4)),
        *((ENTER, 5), (COLLECTIVE_BEGIN,), (COLLECTIVE_END, 11, 0, 2**32 - 1, 128, 128)),
        (LEAVE, 5),
    ]


def write(folder: Path, events: int) -> Path:
    """Write an archive of so many events."""
    writer = _kernel.Otf2Writer(find_library(), str(folder), "traces")
    implied = np.array([-1, -1, 15, 4, 3, 13, 15], np.int32)
    none = np.empty(0, np.int64)
    writer.describe(implied, (implied > 0).astype(np.uint8), np.empty(0, np.int32),
                    np.empty(0, np.uint32))  # fmt: skip
    definitions: list[tuple[object, ...]] = [("string", 0, b"")]
    definitions += [("string", n, name.encode()) for n, name in enumerate(REGIONS, 1)]
    definitions += [("node", 0, 0, 0, 2**32 - 1), ("clock", 10**9, 0)]
    definitions += [("process", p, 0, 0, 1, 2**32 - 1) for p in range(PROCESSES)]
    for rank in range(PROCESSES):
        body = step(rank)
        steps = events // PROCESSES // len(body)
        table = np.zeros((len(body), 7), np.int64)
        for row, record in enumerate(body):
            table[row, : len(record)] = record
        first = [(ENTER, 0), (ENTER, 2), (LEAVE, 2)]
        last = [(ENTER, 6), (LEAVE, 6), (LEAVE, 0)]
        around = [np.array([(*each, 0, 0, 0, 0, 0) for each in some]) for some in (first, last)]
        rows = np.concatenate([around[0], np.tile(table, (steps, 1)), around[1]])
        times = 100 * np.arange(len(rows), dtype=np.int64)
        count = writer.location(
            rank, True, times, rows[:, 0].astype(np.uint8),
            np.ascontiguousarray(rows[:, 1:]).reshape(-1), none, none, np.empty(0, np.int32),
        )  # fmt: skip
        definitions.append(("location", rank, 0, count, rank, 1))
    for number, name in enumerate(REGIONS):
        paradigm = 4 if name.startswith("MPI") else 2
        definitions.append(("region", number, number + 1, 0, 1, paradigm))
    ranks = list(range(PROCESSES))
    definitions += [("group", 0, 0, 4, 4, ranks), ("group", 1, 0, 5, 4, ranks)]
    definitions.append(("communicator", 0, 0, 1))
    writer.finish(np.arange(PROCESSES, dtype=np.uint64), definitions)
    return folder / "traces.otf2"


def library_alone(anchor: Path, empty: ctypes.CDLL) -> None:
    """Read all events with callbacks that do nothing."""
    library = ctypes.CDLL(find_library())
    for name in ("Reader_Open", "Reader_GetEvtReader", "EvtReaderCallbacks_New",
                 "Reader_GetGlobalDefReader"):  # fmt: skip
        getattr(library, f"OTF2_{name}").restype = ctypes.c_void_p
    pointer = ctypes.c_void_p
    reader = pointer(library.OTF2_Reader_Open(str(anchor).encode()))
    library.OTF2_Reader_SetSerialCollectiveCallbacks(reader)
    count = ctypes.c_uint64()
    definitions = pointer(library.OTF2_Reader_GetGlobalDefReader(reader))
    library.OTF2_Reader_ReadAllGlobalDefinitions(reader, definitions, ctypes.byref(count))
    callbacks = pointer(library.OTF2_EvtReaderCallbacks_New())
    for kind in KINDS:
        set_ = getattr(library, f"OTF2_EvtReaderCallbacks_Set{kind}Callback")
        set_(callbacks, ctypes.cast(empty.empty, pointer))
    for rank in range(PROCESSES):
        library.OTF2_Reader_SelectLocation(reader, ctypes.c_uint64(rank))
    library.OTF2_Reader_OpenEvtFiles(reader)
    for rank in range(PROCESSES):
        events = pointer(library.OTF2_Reader_GetEvtReader(reader, ctypes.c_uint64(rank)))
        library.OTF2_Reader_RegisterEvtCallbacks(reader, events, callbacks, None)
        library.OTF2_Reader_ReadAllLocalEvents(reader, events, ctypes.byref(count))
        library.OTF2_Reader_CloseEvtReader(reader, events)
    library.OTF2_Reader_Close(reader)


def times(run: Callable[[], object]) -> tuple[float, float]:
    """CPU time of a run, with that of processes that it started, and the time that passed, s."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin, passed = time.process_time(), time.perf_counter()
    run()
    own, passed = time.process_time() - begin, time.perf_counter() - passed
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own + after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, passed


def read(anchor: Path, cores: int) -> None:
    """Read an archive on some cores."""
    archive_reader.usable_cores = lambda: cores
    popmodel.read(anchor)


def main() -> None:
    events = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**7
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "empty.c").write_text(EMPTY)
        build = ["cc", "-O2", "-shared", "-fPIC", "-o", "empty.so", "empty.c"]
        subprocess.run(build, cwd=folder, check=True)
        empty = ctypes.CDLL(str(folder / "empty.so"))
        anchor = write(folder / "archive", events)
        command = [sys.executable, "-m", "popmodel", "metrics", str(anchor), "--format", "json"]
        runs: dict[str, Callable[[], object]] = {
            "library alone": lambda: library_alone(anchor, empty),
            "popmodel.read": lambda: read(anchor, 1),
            f"on {usable_cores()} cores": lambda: read(anchor, usable_cores()),
            "process": lambda: subprocess.run(command, check=True, capture_output=True),
        }
        taken = {what: [times(run)] for what, run in runs.items()}
        for _ in range(REPEATS - 1):
            for what, run in runs.items():
                taken[what].append(times(run))
        best = {what: np.min(measured, axis=0) for what, measured in taken.items()}
        print(f"{events:.0e} events  CPU s  of the library alone  passed s  of the library alone")
        for what, least in best.items():
            cpu, passed = least / best["library alone"]
            print(f"{what:14} {least[0]:7.3f}  {cpu:20.2f}  {least[1]:8.3f}  {passed:20.2f}")
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"most memory of the process: {peak:.0f} MiB")


if __name__ == "__main__":
    main()
