"""Calls of MPI: how many, how granular, how many bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from synthetic import Program, Rank, run
from synthetic.program import Steps

from popmodel.phases.calls import CallUse, calls
from popmodel.structure import find
from popmodel.trace import Trace


@pytest.fixture
def ring(tmp_path: Path) -> Trace:
    """Three processes pass 100 bytes on, twenty times, and add up 8 bytes each time."""

    def body(me: Rank) -> Steps:
        for _ in range(20):
            yield me.compute(1e-3)
            request = yield me.irecv((me.rank - 1) % me.size, 100)
            yield me.send((me.rank + 1) % me.size, 100)
            yield me.wait(request)
            yield me.compute(2e-3)
            yield me.collective("Allreduce", 8)

    return run(Program(3, body)).read(tmp_path)


def by_name(trace: Trace, begin: int | None = None, end: int | None = None) -> dict[str, CallUse]:
    first, last = trace.begin if begin is None else begin, trace.end if end is None else end
    begin, end = (np.full(trace.processes, time) for time in (first, last))
    return {use.name: use for use in calls(find(trace), trace, begin, end)}


def test_numbers_and_bytes_are_those_of_the_program(ring: Trace) -> None:
    found = by_name(ring)
    assert {name: use.calls for name, use in found.items() if name.endswith(("nd", "uce"))} == {
        "MPI_Send": 60,
        "MPI_Allreduce": 60,
    }
    assert found["MPI_Send"].bytes == 100
    assert found["MPI_Allreduce"].bytes == 8
    assert found["MPI_Wait"].bytes is None


def test_computing_before_calls_is_that_of_the_program(ring: Trace) -> None:
    found = by_name(ring)
    assert found["MPI_Irecv"].before == pytest.approx(1e-3, rel=1e-3)
    assert found["MPI_Allreduce"].before == pytest.approx(2e-3, rel=1e-3)


def test_the_time_in_calls_is_that_of_the_trace(ring: Trace) -> None:
    lengths = ring.calls().exit - ring.calls().entry
    assert sum(use.time for use in by_name(ring).values()) == pytest.approx(lengths.sum() / 1e9)


def test_a_window_has_the_calls_that_begin_in_it(ring: Trace) -> None:
    ends = sorted(ring.calls().entry.tolist())
    found = by_name(ring, end=ends[len(ends) // 2])
    assert 25 <= found["MPI_Send"].calls <= 35


def test_calls_that_communicate_nothing_count(ring: Trace) -> None:
    found = by_name(ring)["MPI_Finalize"]
    assert (found.calls, found.before, found.bytes) == (3, None, None)
