"""What processes do over time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from synthetic import Program, Rank, run
from synthetic.program import Steps

from popmodel.structure.activities import ACTIVITIES, timeline
from popmodel.structure.iterations import find
from popmodel.traces import Trace


@pytest.fixture
def two(tmp_path: Path) -> Trace:
    """Rank 0 computes 8 ms, rank 1 2 ms before a barrier; then a region of 4 ms; ten times."""

    def body(me: Rank) -> Steps:
        for _ in range(10):
            yield me.compute(2e-3 if me.rank else 8e-3)
            yield me.collective("Barrier")
            yield me.region("solve", 4e-3)

    return run(Program(2, body, threads=2), startup=0.0).read(tmp_path)


def test_each_step_has_what_the_process_mostly_does(two: Trace) -> None:
    steps = timeline(find(two), two, two.begin, two.end, 480)
    told = [ACTIVITIES[each] for each in steps.activity[1].tolist()]
    numbers = {name: told.count(name) for name in ("computing", "collective", "parallel")}
    assert numbers == pytest.approx({"computing": 80, "collective": 240, "parallel": 160}, abs=14)


def test_the_share_in_mpi_is_that_of_all_processes(two: Trace) -> None:
    steps = timeline(find(two), two, two.begin, two.end, 100)
    calls = two.calls()
    share = (calls.exit - calls.entry).sum() / (2 * two.duration)
    assert steps.in_mpi.mean() == pytest.approx(share, rel=0.02)
    assert steps.in_mpi.max() <= 1


def test_some_processes_are_shown_as_among_all(two: Trace) -> None:
    structure = find(two)
    both = timeline(structure, two, two.begin, two.end, 100)
    one = timeline(structure, two, two.begin, two.end, 100, np.array([1]))
    assert np.array_equal(one.activity, both.activity[1:])
    assert np.array_equal(one.burst, both.burst[1:])
    assert np.array_equal(one.in_mpi, both.in_mpi)


def test_the_longest_burst_of_each_step(two: Trace) -> None:
    steps = timeline(find(two), two, two.begin, two.end, 480)
    assert np.median(steps.burst[0]) == pytest.approx(8e-3, rel=0.01)
    assert steps.burst[1].max() == pytest.approx(4e-3, rel=0.01)


def test_no_more_steps_than_nanoseconds(two: Trace) -> None:
    assert len(timeline(find(two), two, 10, 15, 100).in_mpi) == 5
