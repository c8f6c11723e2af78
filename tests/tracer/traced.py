"""A traced run of a program that counts itself what it does, and what the two have to agree on."""

from __future__ import annotations

import json
import os
import shlex
import struct
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest
from patience import GENEROUS
from real_mpi import ENVIRONMENT
from surroundings import shared
from tracer.raw_files import CALLS, KINDS, Process, Thread, read

from popmodel.tracer.library import find_or_build

HERE = Path(__file__).resolve().parent
MICROBENCH = HERE.parents[1] / "microbench"
Finished = subprocess.CompletedProcess[str]


BYTES = (1 << 48) - 1  # of the field that ENTER shares with the number of the call site


class Mpi(Protocol):
    """What the fixture of that name gives."""

    mpicc: Sequence[str]

    def start(self, ranks: int, *command: str | Path, **variables: str) -> Finished: ...


@pytest.fixture(scope="session")
def library(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is tested."""
    return build_library(mpi.mpicc, tmp_path_factory)


def build_library(mpicc: Sequence[str], factory: pytest.TempPathFactory) -> Path:
    """The library as ``popmodel trace`` builds it, in the cache of all tests."""
    top = factory.getbasetemp()
    folder = top.parent if "PYTEST_XDIST_WORKER" in os.environ else top
    with shared(factory, "tracer"), pytest.MonkeyPatch.context() as patch:
        patch.setenv("POPMODEL_CACHE_DIR", str(folder / "cache"))
        return find_or_build(None, {**os.environ, "MPICC": shlex.join(mpicc)}).path


@pytest.fixture(scope="session")
def program(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Build one of the programs beside this file, once per name and flags."""

    def build(name: str, *flags: str) -> Path:
        with shared(tmp_path_factory, "programs") as folder:
            made = folder / "-".join([name, *(flag.strip("-") for flag in flags)])
            if not made.exists():
                source = HERE / "programs" / f"{name}.c"
                command = [*mpi.mpicc, "-std=c11", "-pthread", *flags, "-o", made, source]
                built = subprocess.run(command, capture_output=True, text=True, check=False)
                assert built.returncode == 0, built.stderr
            return made

    return build


class Run:
    """A traced run: how it ended, what was recorded, what it counted."""

    def __init__(self, mpi: Mpi, library: Path, folder: Path) -> None:
        self.mpi = mpi
        self.library = library
        self.raw = folder / "raw"
        self.counts = folder / "counts"
        self.raw.mkdir()
        self.counts.mkdir()

    def start(self, ranks: int, *command: str | Path, before: str = "") -> Finished:
        """Run traced ranks; `before` is put into each rank's shell."""
        preload = f"LD_PRELOAD={self.library} POPMODEL_TRACE_DIR={self.raw} COUNTS={self.counts}"
        return self.mpi.start(
            ranks, "sh", "-c", f'{before} exec env {preload} "$0" "$@"', *map(str, command)
        )

    def start_alone(self, *command: str | Path) -> int:
        """Run one traced process without a launcher; return its exit status."""
        preload = {"LD_PRELOAD": str(self.library), "POPMODEL_TRACE_DIR": str(self.raw)}
        # It sends nothing, and may close all files: Open MPI waits for ever where it misses the
        # socket that it listens at for others.
        nobody_listens = {"OMPI_MCA_btl": "self"}
        return subprocess.run(
            command,
            env={**os.environ, **ENVIRONMENT, **nobody_listens, **preload},
            check=False,
            timeout=GENEROUS,
        ).returncode

    def processes(self) -> list[Process]:
        """What was recorded."""
        return read(self.raw)

    def counted(self) -> list[dict[str, Any]]:
        """What the ranks counted."""
        files = sorted(self.counts.glob("*.json"), key=lambda file: int(file.stem))
        return [json.loads(file.read_text()) for file in files]


@pytest.fixture
def run(mpi: Mpi, library: Path, tmp_path: Path) -> Run:
    return Run(mpi, library, tmp_path)


def compare(run: Run, ranks: int) -> list[Process]:
    """Calls and messages recorded are those counted; entries and exits come in pairs."""
    processes, counted = run.processes(), run.counted()
    assert len(processes) == len(counted) == ranks
    for process, counts in zip(processes, counted, strict=True):
        assert process.rank == counts["rank"]
        assert process.calls() == Counter(counts["calls"])
        assert process.messages() == Counter(
            (what, partner, tag & 0xFFFFFFFF, size)  # collectives have tags below 0
            for what, partner, tag, size in counts["messages"]
        )
        assert not process.events("full")
        check_threads(process)
    return processes


def check_threads(process: Process) -> None:
    (end,) = process.events("end")
    assert end["reason"] == "exit"
    for number, thread in enumerate(process.threads):
        magic, mark, version, header, record, pid, own = struct.unpack("=8s6I", thread.header[:32])
        assert (magic, mark, version, header, record) == (b"popmodel", 0x01020304, 2, 64, 32)
        assert (pid, own) == (process.events("start")[0]["pid"], number)
        assert thread.tail == 0
        assert end["records"][str(number)] == len(thread.records)
        assert thread.records["kind"][-1] == KINDS["END"]
        calls = thread.of("ENTER", "LEAVE")
        assert (calls["kind"][::2] == KINDS["ENTER"]).all()
        assert (calls["kind"][1::2] == KINDS["LEAVE"]).all()
        assert (calls["call"][::2] == calls["call"][1::2]).all()
        inside = np.isin(thread.records["kind"], [KINDS["ENTER"], KINDS["LEAVE"]]).cumsum() % 2
        of_calls = np.isin(thread.records["kind"], [KINDS[k] for k in ("SEND", "POST", "RECEIVE")])
        assert inside[of_calls].all()
        received = np.flatnonzero(thread.records["kind"] == KINDS["RECEIVE"])
        assert (thread.records["kind"][received + 1] == KINDS["RECEIVED"]).all()
    posted, received = process.of("POST")["b"], process.of("RECEIVED")["b"]
    # MPI_Imrecv posts what its probe has matched once more
    assert max(Counter(posted.tolist()).values(), default=1) <= 2
    assert len(set(received.tolist())) == len(received)
    assert set(received.tolist()) <= set(posted.tolist())


def check_collectives(run: Run) -> list[Process]:
    processes = run.processes()
    for process, counts in zip(processes, run.counted(), strict=True):
        names = {note[0] for note in counts["notes"]}
        (thread,) = process.threads
        assert collectives(thread, names) == counts["notes"]
    return processes


def collectives(thread: Thread, names: set[str]) -> list[list[Any]]:
    found: list[list[Any]] = []
    for record in thread.records:
        kind, name = int(record["kind"]), CALLS.get(int(record["call"]), "")
        if kind == KINDS["ENTER"] and name in names:
            found.append([name, int(record["b"]), int(record["c"]) & BYTES, 0])
        elif kind == KINDS["ROOT"]:
            found[-1][3] = 1
    return found


def check_communicators(run: Run) -> None:
    """Both ends of a message are in one communicator, and different ones are told apart."""
    processes = compare(run, 4)
    identity: dict[int, tuple[str, int]] = {}  # by tag: each communicator has had one of its own
    members: dict[tuple[str, int], list[int]] = {}
    for process in processes:
        known = {event["id"]: event for event in process.events("communicator")}
        assert known[1]["size"] == 4
        assert known[1]["rank"] == process.rank
        for event in known.values():
            if "members" in event:
                members[event["hash"], event["ordinal"]] = event["members"]
    for process, counts in zip(processes, run.counted(), strict=True):
        known = {event["id"]: event for event in process.events("communicator")}
        groups = {tag: group for _, tag, group in counts["notes"]}
        names = {tag: name for name, tag, _ in counts["notes"]}
        for record in process.of("SEND", "RECEIVE"):
            tag = int(record["b"]) & 0xFFFFFFFF
            if tag not in groups or (tag == 1 and int(record["a"]) != 1):
                continue
            event = known[int(record["a"])]
            key = (event["hash"], event["ordinal"])
            if "remote_size" not in event:
                assert members[key] == groups[tag]
            if names[tag].startswith(("self", "split", "dup of split", "cart_sub", "one of many")):
                continue  # several of them at once: each has its own
            assert identity.setdefault(tag, key) == key, names[tag]
    again = {"dup": "dup again", "cart_create": "cart again", "intercomm_create": "intercomm again"}
    tags = {name: tag for note in run.counted() for name, tag, _ in note["notes"]}
    for first, second in again.items():
        assert identity[tags[first]] == identity[tags[second]]
    others = [identity[tag] for name, tag in tags.items() if tag in identity if name not in again]
    assert len(set(others)) == len(others)
