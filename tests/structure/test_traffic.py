"""Sums of messages and calls; how granular calls are."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from structure.scripts import Repeat, Step, structure
from synthetic import Program, Rank, run
from synthetic.program import Steps

from popmodel.structure import traffic
from popmodel.structure.iterations import find
from popmodel.structure.traffic import calls_in_part
from popmodel.traces import Trace, read
from popmodel.traces.paraver.writer import TraceWriter


@pytest.fixture
def made():
    """Rank 0 sends 0, 8 and 12 bytes to rank 1 in each of 5 steps, which sends 100 to rank 2."""

    def does(rank, _):
        if rank == 0:
            return [("send", 1, size, 0) for size in (0, 8, 12)]
        if rank == 1:
            return [*[("recv", 0, 0)] * 3, ("send", 2, 100, 0)]
        return [("recv", 1, 0)]

    steps = [
        Repeat(5, [Step(does)]),
        Step(lambda *_: [("bcast", 0, 64, 1)], "MPI_Bcast"),
        Step(lambda *_: [("allreduce", 0, 8, -1)], "MPI_Allreduce"),
    ]
    return structure(3, steps, nodes=[0, 0, 1])


def test_pairs_are_added_up(made):
    found = traffic.pairs(made.program, traffic.sent(made.program))
    assert found.sender.tolist() == [0, 1]
    assert found.receiver.tolist() == [1, 2]
    assert found.messages.tolist() == [15, 5]
    assert found.bytes.tolist() == [100, 500]
    assert found.within.tolist() == [True, False]


def test_of_too_many_pairs_neighbouring_ranks_are_taken_together():
    ranks = np.repeat(np.arange(100), 100), np.tile(np.arange(100), 100)
    ones = np.ones(10_000, np.int64)
    every = traffic.Pairs(*ranks, ones, 8 * ones, ranks[0] // 50 == ranks[1] // 50)
    assert traffic.gathered(every, 100)[0] == 1
    each, found = traffic.gathered(every, 100, most=1000)
    assert each == 4
    # 25 groups; ranks 48 to 51 are on both nodes, so that pairs with them are of both kinds
    assert len(found.sender) == 25 * 25 + 2 * 25 - 1
    assert (found.messages.sum(), found.bytes.sum()) == (10_000, 80_000)
    assert found.messages[found.within].sum() == 2 * 50 * 50
    assert set(found.sender % 4) == set(found.receiver % 4) == {0}


def test_sizes_have_classes_of_powers_of_two(made):
    assert [
        tuple(row.values()) for row in traffic.by_size(made.program, traffic.sent(made.program))
    ] == [(0, 1, 5, 0), (8, 16, 10, 100), (64, 128, 5, 500)]


def test_bytes_of_calls_are_what_they_put_in(made):
    (calls,) = traffic.uses(made.program, {made.program.call_name[0]: 5}, {})
    assert calls["bytes"] == 600 + 64 + 3 * 8  # what is handed out counts once
    amount = traffic.given(made.program)
    assert amount.sum() == calls["bytes"]


def test_a_program_without_messages():
    made = structure(2, [Step(lambda *_: [("barrier", 0, 0, -1)], "MPI_Barrier")])
    rows = traffic.sent(made.program)
    assert len(rows) == 0
    assert len(traffic.pairs(made.program, rows).sender) == 0
    assert traffic.by_size(made.program, rows) == []
    assert np.array_equal(traffic.given(made.program), [0, 0])


MS = 1_000_000


def test_forks_and_joins_of_threads_that_call_mpi_are_no_messages_of_iterations(tmp_path):
    writer = TraceWriter([2, 2], communicators={1: [0, 1]})
    for each in range(8):
        begin = 10 * each * MS
        sent, received = begin + 2 * MS, begin + 3 * MS
        for process in (0, 1):
            writer.event(process, 0, begin, [(60000001, 1)])
            for thread in (0, 1):
                who = process, thread
                writer.state(*who, begin, sent, 1)
                writer.event(*who, begin, [(60000018, 1)])
                writer.event(*who, sent, [(50000001, 41)])  # MPI_Sendrecv
                writer.event(*who, received, [(50000001, 0)])
                writer.event(*who, received, [(60000018, 0)])
                times = (sent, sent), (sent, received)
                writer.message(who, (1 - process, thread), *times, 8, thread)
            writer.event(process, 0, received, [(60000001, 0)])
            writer.state(process, 0, received, begin + 9 * MS, 1)
            writer.event(process, 0, begin + 9 * MS, [(50000002, 8), (50100004, 1)])
            writer.event(process, 0, begin + 10 * MS, [(50000002, 0)])
    writer.write(tmp_path / "threads.prv")
    made = find(read(tmp_path / "threads.prv"))
    found = traffic.sent_in_iterations(made)
    assert found["messages"] == pytest.approx(4, rel=0.2)
    assert found["bytes"] == 8 * found["messages"]


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


def by_name(
    trace: Trace, begin: int | None = None, end: int | None = None
) -> dict[str, dict[str, Any]]:
    first, last = trace.begin if begin is None else begin, trace.end if end is None else end
    begin, end = (np.full(trace.processes, time) for time in (first, last))
    return {use["name"]: use for use in calls_in_part(find(trace), trace, begin, end)}


def test_numbers_and_bytes_are_those_of_the_program(ring: Trace) -> None:
    found = by_name(ring)
    assert {name: use["calls"] for name, use in found.items() if name.endswith(("nd", "uce"))} == {
        "MPI_Send": 60,
        "MPI_Allreduce": 60,
    }
    assert found["MPI_Send"]["bytes"] == 100
    assert found["MPI_Allreduce"]["bytes"] == 8
    assert found["MPI_Wait"]["bytes"] is None


def test_computing_before_calls_is_that_of_the_program(ring: Trace) -> None:
    found = by_name(ring)
    assert found["MPI_Irecv"]["computing_before"] == pytest.approx(1e-3, rel=1e-3)
    assert found["MPI_Allreduce"]["computing_before"] == pytest.approx(2e-3, rel=1e-3)


def test_the_time_in_calls_is_that_of_the_trace(ring: Trace) -> None:
    lengths = ring.calls().exit - ring.calls().entry
    assert sum(use["time"] for use in by_name(ring).values()) == pytest.approx(lengths.sum() / 1e9)


def test_a_window_has_the_calls_that_begin_in_it(ring: Trace) -> None:
    ends = sorted(ring.calls().entry.tolist())
    found = by_name(ring, end=ends[len(ends) // 2])
    assert 25 <= found["MPI_Send"]["calls"] <= 35


def test_calls_that_communicate_nothing_count(ring: Trace) -> None:
    found = by_name(ring)["MPI_Finalize"]
    assert (found["calls"], found["computing_before"], found["bytes"]) == (3, None, None)
