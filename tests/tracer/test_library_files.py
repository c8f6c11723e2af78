"""Calls for files, as a program counts them itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tracer.traced import Run

import popmodel
from popmodel.traces import Trace
from popmodel.traces.codes import FILE_CALLS, Event
from popmodel.traces.paraver.numbers import NUMBERS

RANKS = 2
UNCOUNTED = "fflush"
"""Called once more when the counts are written, and by libraries where the program forks."""


def calls_and_bytes(trace: Trace, rank: int) -> tuple[Counter[str], Counter[str]]:
    """Of each call for files of the first thread of a process."""
    calls: Counter[str] = Counter()
    moved: Counter[str] = Counter()
    events = trace.records.events
    location = int(trace.process_offsets[rank])
    rows = slice(*events.offsets[location : location + 2].tolist())
    names: list[str] = []  # of the call last begun
    open_: list[int] = []
    for type_, value in zip(events.type[rows].tolist(), events.value[rows].tolist(), strict=True):
        if type_ == NUMBERS[Event.FILE_CALL]:
            if value == (open_[-2:-1] or [0])[0]:  # the call around goes on
                open_.pop()
                continue
            open_.append(value)
            names.append(FILE_CALLS[value])
            calls[names[-1]] += 1
        elif type_ == NUMBERS[Event.FILE_CALLS]:
            calls[names[-1]] += value - 1
        elif type_ == NUMBERS[Event.FILE_BYTES]:
            moved[names[-1]] += value
    return calls, moved


@pytest.fixture
def traced(run: Run, program: Callable[..., Path], tmp_path: Path) -> Trace:
    done = run.start(
        RANKS,
        program("file_calls", "-D_GNU_SOURCE"),
        tmp_path,
        before="export POPMODEL_TRACE_FILES=1;",
    )
    assert done.returncode == 0, done.stderr
    popmodel.trace(merge=run.raw, output=tmp_path / "x.prv")
    return popmodel.read(tmp_path / "x.prv")


def test_calls_bytes_and_times_are_those_that_the_program_counts(traced: Trace, run: Run) -> None:
    io = popmodel.metrics(traced, from_start=True).runs[0].observables.io
    assert io is not None
    for rank, counted in enumerate(run.counted()):
        calls, moved = calls_and_bytes(traced, rank)
        assert calls.pop(UNCOUNTED) > counted.pop(UNCOUNTED)[0]
        own = {name: each for name, each in counted.items() if isinstance(each, list)}
        assert {name: calls[name] for name in own} == {name: c for name, (c, _) in own.items()}
        assert {name: moved[name] for name in own} == {name: b for name, (_, b) in own.items()}
        # The program's clock is read around each call, and what lies between is not I/O.
        location = int(traced.process_offsets[rank])
        assert io.read is not None
        assert io.written is not None
        ways = ((io.read, "read", 2000), (io.written, "write", 4000))  # and MPI-IO
        for bytes_, way, of_mpi in ways:
            wanted = of_mpi + sum(moved[name] for name in own if way in name)
            assert bytes_[location] == wanted, way
        assert 0.9 <= io.posix[location] <= counted["seconds"] + 0.5
        assert 0 < io.mpi[location] <= counted["mpi_seconds"] + 0.5


def test_mpi_io_tells_its_bytes(traced: Trace) -> None:
    events = traced.records.events
    chosen = events.type == NUMBERS[Event.MPI_FILE_BYTES]
    assert events.value[chosen].tolist() == [4000, 2000] * RANKS


def test_without_being_asked_for_calls_for_files_are_not_recorded(
    run: Run, program: Callable[..., Path], tmp_path: Path
) -> None:
    assert run.start(RANKS, program("file_calls", "-D_GNU_SOURCE"), tmp_path).returncode == 0
    assert not any(len(process.of("FILE_ENTER", "FILE_LEAVE")) for process in run.processes())
