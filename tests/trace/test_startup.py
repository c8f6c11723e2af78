"""Traces that are for a good part the start of MPI."""

from __future__ import annotations

from pathlib import Path

import pytest

from popmodel.trace import Trace, read
from popmodel.trace.startup import startup
from popmodel.trace.writer import TraceWriter

INIT, OTHER = 31, 43


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Two processes, of which the second is initialised later, at 600 of 1000 ms."""
    writer = TraceWriter([1, 1], duration=1_000_000_000)
    for process, end in enumerate((400, 600)):
        writer.event(process, 0, 10 * process, [(50000003, INIT)])
        writer.event(process, 0, end * 1_000_000, [(50000003, 0)])
        writer.event(process, 0, 900_000_000, [(50000003, OTHER)])
        writer.event(process, 0, 950_000_000, [(50000003, 0)])
    writer.write(tmp_path / "x.prv")
    return read(tmp_path / "x.prv", cache=False)


def test_a_long_start_is_told(trace: Trace) -> None:
    (warning,) = startup(trace)
    assert warning.text == (
        "MPI_Init had not ended before 600.0 ms, 60 % of the run. Efficiencies count that as "
        "lost, to transfer most of all: trace a longer run, or switch tracing off until then "
        "(popmodel_trace_off)"
    )


def test_a_window_behind_the_start_is_not_warned_of(trace: Trace) -> None:
    assert startup(trace.window(700_000_000, 1_000_000_000)) == ()


def test_the_start_is_measured_from_the_beginning_of_a_window(trace: Trace) -> None:
    (warning,) = startup(trace.window(200_000_000, 1_000_000_000))
    assert "before 400.0 ms, 50 % of the run" in warning.text


def test_a_short_start_is_not_told(tmp_path: Path) -> None:
    writer = TraceWriter([1], duration=1000)
    writer.event(0, 0, 0, [(50000003, INIT)])
    writer.event(0, 0, 250, [(50000003, 0)])
    writer.write(tmp_path / "x.prv")
    assert startup(read(tmp_path / "x.prv", cache=False)) == ()


def test_a_run_without_mpi_has_no_start(tmp_path: Path) -> None:
    writer = TraceWriter([1], duration=1000)
    writer.state(0, 0, 0, 1000, 1)
    writer.write(tmp_path / "x.prv")
    assert startup(read(tmp_path / "x.prv", cache=False)) == ()
