"""The critical path as tables, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from oracle.script import Script
from sensitivity.paths import Step, path_of

from popmodel.sensitivity.critical_path import Stay, critical_times, path_tables, stays
from popmodel.sensitivity.region_speeds import LAST, RegionGains, regions_of
from popmodel.simulator.execution import PathPart
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.program import Op, ProgramBuilder

US = 1e3  # ns


@pytest.fixture
def program():
    """Rank 0 computes 10 us and sends 1000 B; rank 1 receives, then both meet in a barrier."""
    builder = ProgramBuilder(2)
    message, barrier = builder.message(0, 1, 1000), builder.collective("barrier")
    builder.compute(0, 10e-6)
    builder.do(0, Op.SEND, message)
    builder.do(0, Op.COLLECTIVE, barrier)
    builder.compute(1, 1e-6)
    builder.do(1, Op.RECEIVE, message)
    builder.compute(1, 4e-6)
    builder.do(1, Op.COLLECTIVE, barrier)
    builder.compute(0, 7e-6)
    return builder.build()


@pytest.fixture
def path():
    message = {"latency": 1, "bytes": 1000, "latency_time": 2 * US, "bytes_time": 1 * US}
    return path_of(
        Step(PathPart.COMPUTE, 0, 0, 10 * US),
        Step(PathPart.TRANSFER, 1, 2, 3 * US, row=0, source=0, tier=1, **message),
        Step(PathPart.COMPUTE, 1, 3, 4 * US),
        Step(PathPart.COLLECTIVE, 0, 1, 4.5 * US, 0, 1, 2, 0, 4 * US, overhead=500, tier=1),
        Step(PathPart.COMPUTE, 0, -1, 7 * US),
    )


def test_the_parts_add_up_to_the_runtime(path, program):
    found = path_tables(path, program, regions_of(program))
    assert found.spent.computing == pytest.approx(21e-6)
    assert found.spent.latency == pytest.approx(6e-6)
    assert found.spent.bandwidth == pytest.approx(1e-6)
    assert found.spent.overhead == pytest.approx(0.5e-6)
    assert found.spent.time == pytest.approx(28.5e-6)
    assert found.steps == 5


def test_ranks_are_named_by_their_time(path, program):
    found = path_tables(path, program, regions_of(program)).ranks
    times = {one.name: one.spent.time for one in found.entries}
    assert times == pytest.approx({"rank 0": 21.5e-6, "rank 1": 7e-6})
    assert sum(one.share for one in found.entries) == pytest.approx(1.0)


def test_regions_have_the_computing(path, program):
    found = path_tables(path, program, regions_of(program)).regions
    times = {one.name: one.spent.time for one in found.entries}
    assert times == pytest.approx({"before send": 10e-6, "before collective": 4e-6, LAST: 7e-6})


def test_calls_and_pairs_have_latencies_and_bytes(path, program):
    found = path_tables(path, program, regions_of(program))
    calls = {one.name: (one.latencies, one.bytes) for one in found.calls.entries}
    assert calls == {"collective": (2, 0), "receive": (1, 1000)}
    (pair,) = found.pairs.entries
    assert pair.name == "0 -> 1"
    assert pair.spent.latency == pytest.approx(2e-6)
    assert pair.spent.bandwidth == pytest.approx(1e-6)


def test_messages_of_a_collective_are_of_a_pair(program):
    path = path_of(
        Step(PathPart.COMPUTE, 0, 0, 10 * US),
        Step(PathPart.MESSAGE, 1, 3, 2 * US, row=0, source=0, latency=1, tier=1),
        Step(PathPart.MESSAGE, 1, 3, 2 * US, row=0, source=1, latency=1, tier=1),
    )
    found = path_tables(path, program, regions_of(program))
    assert [one.name for one in found.pairs.entries] == ["0 -> 1"]
    assert [one.name for one in found.calls.entries] == ["collective"]


def test_what_is_beyond_the_most_is_summed_up(path, program):
    found = path_tables(path, program, regions_of(program), most=1)
    assert len(found.regions.entries) == 1
    assert found.regions.others == 2
    assert found.regions.others_time == pytest.approx(11e-6)


def test_calls_that_nobody_waits_for_are_left_out(program):
    path = path_of(
        Step(PathPart.SEND, 0, 0, 0, row=0, source=0, tier=1),
        Step(PathPart.COLLECTIVE, 0, 1, 0, row=0, source=1, latency=2, tier=1),
    )
    found = path_tables(path, program, regions_of(program))
    assert [one.name for one in found.calls.entries] == ["collective"]  # on an ideal network
    assert found.pairs.entries == ()


def test_the_path_stays_on_a_rank_until_it_changes(path, program):
    found = path_tables(path, program, regions_of(program))
    assert found.changes == 2
    assert found.longest == Stay(0, pytest.approx(17e-6), pytest.approx(28.5e-6))
    assert [one.rank for one in stays(path, program)] == [0, 1, 0]


def test_a_burst_of_several_regions_is_divided_in_proportion(program):
    regions = RegionGains(
        ("a", "b"),
        ("user region",) * 2,
        np.array([0, 0, 2, 3, 4], np.int64),
        np.array([0, 1, 0, 1, 1], np.int32),
        np.array([4.0, 6.0, 1.0, 4.0, 7.0]) * US,
    )
    path = path_of(Step(PathPart.COMPUTE, 0, 0, 5 * US), Step(PathPart.COMPUTE, 0, -1, 3.5 * US))
    times = critical_times(path, program, regions)  # on CPUs of twice the speed
    assert times == pytest.approx(np.array([[2e-6, 0], [6.5e-6, 0]]))


def test_nothing_has_no_path():
    program = ProgramBuilder(1).build()
    found = path_tables(path_of(), program, regions_of(program))
    assert (found.spent.time, found.steps, found.changes) == (0, 0, 0)
    assert found.ranks.entries == ()


def test_where_callers_are_not_known_calls_are_told_apart_by_their_regions(tmp_path) -> None:
    script = Script(2)
    for process in range(2):
        script.compute(process, 10)
        script.writer.event(process, 0, script.clock[process], [(60000019, 7)])
        script.collective(process, "Barrier", 20)
        script.writer.event(process, 0, script.clock[process], [(60000019, 0)])
        script.compute(process, 10)
        script.collective(process, "Barrier", 20)
    script.end()
    trace = script.read(tmp_path)
    program = from_trace(trace)
    path = path_of(
        Step(PathPart.COLLECTIVE, 0, 0, 3 * US, row=0, overhead=3 * US),
        Step(PathPart.COLLECTIVE, 1, 3, 2 * US, row=1, overhead=2 * US),
    )
    found = path_tables(path, program, regions_of(program, trace), trace).calls
    assert [one.name for one in found.entries] == ["MPI_Barrier in user function 7", "MPI_Barrier"]
