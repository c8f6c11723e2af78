"""What faster regions are worth, by hand and by programs that are changed independently."""

from __future__ import annotations

import numpy as np
import pytest

from popmodel.network.network import Network
from popmodel.sensitivity.region_gains import worth_of
from popmodel.sensitivity.region_speeds import LAST, regions_of
from popmodel.simulator import replay
from popmodel.simulator.program import Op, ProgramBuilder

MS = 1e-3


def run(program) -> float:
    return replay(program, Network()).runtime


def two_ranks(times):
    """Rank 0 and rank 1 compute, meet in a barrier, then rank 0 computes 2 ms alone."""
    builder = ProgramBuilder(2)
    barrier = builder.collective("barrier")
    for process, time in enumerate(times):
        builder.compute(process, time)
        builder.do(process, Op.COLLECTIVE, barrier)
    builder.compute(0, 2 * MS)
    return builder.build()


def worth(times, critical, **options):
    program = two_ranks(times)
    regions = regions_of(program)
    counted = []

    def counting(program) -> float:
        counted.append(program)
        return run(program)

    found, rest = worth_of(program, regions, np.array(critical), counting, **options)
    return {one.name: one for one in found}, rest, len(counted)


BEFORE = "before collective"


def test_a_region_gains_until_another_rank_is_the_last():
    # rank 1 takes 10 ms, rank 0 takes 6 ms
    found, _, _ = worth((6 * MS, 10 * MS), [[0, 10 * MS], [2 * MS, 0]])
    one = found[BEFORE]
    assert one.kind == "phase"
    assert one.time == pytest.approx(8 * MS)
    assert one.share == pytest.approx(8 / 12)
    assert one.critical == pytest.approx(10 * MS)
    assert {g.faster: round(g.runtime / MS, 9) for g in one.gain} == {
        0.1: 11.0,
        0.25: 9.5,
        0.5: 7.0,
        1.0: 2.0,
    }
    assert one.slowest.rank == 1
    assert {g.faster: round(g.runtime / MS, 9) for g in one.slowest.gain} == {
        0.1: 11.0,
        0.25: 9.5,
        0.5: 8.0,
        1.0: 8.0,
    }
    assert one.balanced == pytest.approx(10 * MS)
    assert one.balance == pytest.approx(0.8)


def test_a_region_of_one_rank_is_balanced_among_those_that_take_part():
    found, _, _ = worth((6 * MS, 10 * MS), [[0, 10 * MS], [2 * MS, 0]])
    assert found[LAST].balance == 1.0
    assert found[LAST].balanced == pytest.approx(12 * MS)


def test_a_region_off_the_critical_path_gains_nothing_and_needs_no_replay_but_balanced():
    builder = ProgramBuilder(2)
    barrier = builder.collective("barrier")
    message = builder.message(0, 1, 8)
    builder.compute(0, 1 * MS)
    builder.do(0, Op.ISEND, message)
    builder.do(0, Op.COLLECTIVE, barrier)
    builder.compute(1, 5 * MS)
    builder.do(1, Op.COLLECTIVE, barrier)
    builder.do(1, Op.RECEIVE, message)
    program = builder.build()
    regions = regions_of(program)
    index = regions.names.index("before isend")
    critical = np.zeros((2, 2))
    critical[1 - index, 1] = 5 * MS
    calls = []

    def counting(program) -> float:
        calls.append(program)
        return run(program)

    found, _ = worth_of(program, regions, critical, counting)
    one = {one.name: one for one in found}["before isend"]
    assert one.gain[-1].runtime == one.slowest.gain[-1].runtime == 5 * MS
    # the run itself; the other region without its time on all, on one rank and three steps between
    assert len(calls) == 1 + 2 * 4


def test_where_a_gain_is_linear_to_its_end_one_replay_says_all():
    _, _, replays = worth((6 * MS, 10 * MS), [[0, 10 * MS], [2 * MS, 0]])
    # the run; of the phase before the barrier 1 on all ranks, 4 on the slowest, 1 balanced; of the
    # last phase 1 and 1, since it is balanced
    assert replays == 1 + 6 + 2


def test_regions_beyond_the_most_are_summed_up():
    found, rest, _ = worth((6 * MS, 10 * MS), [[0, 10 * MS], [2 * MS, 0]], most=1)
    assert list(found) == [BEFORE]
    assert rest.regions == 1
    assert rest.share == pytest.approx(1 / 12)
    assert rest.critical == pytest.approx(2 * MS)


def test_the_most_regions_are_those_on_the_path_and_those_with_most_time():
    builder = ProgramBuilder(2)
    first, second = (builder.message(1, 0, 8) for _ in range(2))
    for message, op, time in ((first, Op.ISEND, 3 * MS), (second, Op.SEND, 1 * MS)):
        builder.compute(1, time)
        builder.do(1, op, message)
    builder.compute(0, 2 * MS)
    builder.do(0, Op.RECEIVE, first)
    builder.compute(0, 0.1 * MS)
    builder.do(0, Op.RECEIVE, second)
    program = builder.build()
    regions = regions_of(program)
    critical = np.zeros((3, 2))
    critical[regions.names.index("before isend"), 1] = 3 * MS
    critical[regions.names.index("before send"), 1] = 1 * MS
    found, rest = worth_of(program, regions, critical, run, most=2)
    assert [one.name for one in found] == ["before isend", "before receive"]
    assert rest.regions == 1
    assert rest.critical == pytest.approx(1 * MS)


def test_a_faster_cpu_shortens_the_times():
    program = two_ranks((6 * MS, 10 * MS))
    regions = regions_of(program)
    half = Network(cpu_factor=2.0)
    found, _ = worth_of(
        program,
        regions,
        np.array([[0, 5 * MS], [1 * MS, 0]]),
        lambda program: replay(program, half).runtime,
        cpu=0.5,
    )
    assert found[0].time == pytest.approx(4 * MS)
    assert found[0].gain[-1].runtime == pytest.approx(1 * MS)
