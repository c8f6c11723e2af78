"""When iterations begin, what the focus is, and what a run without any is told."""

from pathlib import Path

import numpy as np
import pytest

from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.program import Op, ProgramBuilder
from popmodel.structure.focus import focus_of
from popmodel.structure.iterations import Iterations, find, structure_of
from popmodel.structure.program_events import events_of
from popmodel.traces import read

DATA = Path(__file__).parent.parent / "data"
MS = 1_000_000


def stepping(times, processes=2, initial=0.0, final=0.0):
    """Steps of these lengths (s), each an allreduce; more computing before and after."""
    builder = ProgramBuilder(processes)
    for process in range(processes):
        builder.do(process, Op.COLLECTIVE, 0)
        builder.compute(process, initial)
    builder.collective("init")
    for seconds in times:
        target = builder.collective("allreduce", 8, 8)
        for process in range(processes):
            builder.compute(process, seconds)
            builder.do(process, Op.COLLECTIVE, target)
    for process in range(processes):
        builder.compute(process, final)
    return structure_of(builder.build())


def test_an_iteration_begins_where_the_one_before_ends():
    found = stepping([0.01] * 8)
    assert found.iterations[:, 0].tolist() == [10 * MS * n for n in range(9)]
    assert found.period == pytest.approx(0.01)
    assert found.confidence == pytest.approx(1.0)
    assert [(each.kind, each.iterations) for each in found.parts] == [("iterations", 8)]


def test_computing_before_the_loop_is_initialisation():
    found = stepping([0.01] * 8, initial=0.5, final=0.2)
    assert [(each.kind, each.begin, each.end) for each in found.parts] == [
        ("initialisation", 0, 500 * MS),
        ("iterations", 500 * MS, 580 * MS),
        ("finalisation", 580 * MS, 780 * MS),
    ]
    assert found.confidence == pytest.approx(0.08 / 0.78)


def test_irregular_iterations_are_less_sure():
    steady, varied = stepping([0.01] * 12), stepping([0.01, 0.03] * 6)
    assert varied.confidence < 0.7 * steady.confidence


def test_the_focus_is_nearest_to_the_median_and_leaves_out_the_warm_up():
    found = stepping([0.02, 0.013, 0.012, 0.01, 0.01, 0.01, 0.008])
    assert (found.focus.first, found.focus.last) == (3, 5)
    assert found.focus.end - found.focus.begin == 30 * MS
    assert found.focus.why == (
        "nearest to the median in duration, balance and computing "
        "(10.00 ms each, median 10.00 ms); the first is a warm-up; what all processes share of them"
    )


def iterations(begin, compute=None):
    begin = np.asarray(begin, np.int64)
    compute = np.diff(begin, axis=0) * 1.0 if compute is None else compute
    return Iterations(begin, np.empty(0, np.int64), compute)


def test_a_focus_holds_all_kinds_of_iterations():
    begin = np.cumsum([0, *[10, 10, 10, 25] * 5])[:, None] * MS
    focus = focus_of(iterations(begin), np.array([0, 0, 0, 1] * 5))
    assert focus.last - focus.first + 1 == 4
    assert "kinds of iterations come round every 4 iterations" in focus.why


def test_processes_that_are_further_apart_than_some_iterations_get_more_of_them():
    begin = np.arange(21)[:, None] * 10 * MS + np.array([0, 45]) * MS
    focus = focus_of(iterations(begin), np.zeros(20, np.int64))
    assert focus.end > focus.begin
    assert focus.last - focus.first + 1 > 4


def test_processes_that_share_no_time_of_any_iteration():
    begin = np.arange(4)[:, None] * 10 * MS + np.array([0, 500]) * MS
    focus = focus_of(iterations(begin), np.zeros(3, np.int64))
    assert (focus.begin, focus.end) == (0, 530 * MS)
    assert focus.why.endswith("all that any process has of them, as they share no time")


def test_processes_without_a_call_in_the_iterations_are_said():
    builder = ProgramBuilder(3)
    for _ in range(9):
        message = builder.message(0, 1, 8)
        builder.compute(0, 0.01)
        builder.compute(1, 0.01)
        builder.do(0, Op.SEND, message)
        builder.do(1, Op.RECEIVE, message)
    found = structure_of(builder.build())
    assert found.notes == ("1 of 3 processes and threads have no call in the iterations",)
    assert found.iterations.shape == (10, 3)


def test_a_window_of_a_run_has_a_structure_of_its_own():
    whole = read(DATA / "comd.4.prv.gz")
    run = find(whole)
    begin, end = int(run.iterations[1].min()), int(run.iterations[3].max())
    part = find(whole.window(begin, end))
    assert part.loop is not None
    assert begin <= part.parts[0].begin
    assert part.parts[-1].end <= end
    assert np.all((part.events.begin >= begin) & (part.events.end <= end))


def test_computing_and_regions_are_all_of_the_time_outside_of_mpi():
    trace = read(DATA / "bt-mz.S.2x2.prv.gz")
    program = from_trace(trace)
    events = events_of(program, trace)
    regions = np.where(events.is_region, events.end - events.begin, 0)
    for process in range(2):
        mine = slice(*events.offsets[process : process + 2])
        found = (events.before + regions)[mine].sum() + events.after[process]
        assert found == pytest.approx(program.compute()[process], rel=1e-9)
