"""Bursts in which a process had no core are told from those that have more to do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from popmodel.phases import Phase, Phases
from popmodel.phases.os_noise import interruptions, remark
from popmodel.phases.phase import SEVERAL

RANKS, TIMES = 4, 100


def run(wall: np.ndarray, instructions: np.ndarray | None = None) -> Phases:
    """One phase of some ranks, with these times of executions."""
    ranks, times = wall.shape
    phase = Phase(
        name="MPI_Send to MPI_Recv",
        kind="serial",
        place=0,
        path=(0,),
        part="iterations",
        sequences=ranks,
        sequence=np.repeat(np.arange(ranks, dtype=np.int32), times),
        execution=np.tile(np.arange(times), ranks),
        begin=np.zeros(ranks * times, np.int64),
        wall=wall.ravel(),
        useful=wall.ravel(),
        instructions=None if instructions is None else instructions.ravel(),
        cycles=None,
        cut=np.zeros(ranks * times, bool),
    )
    return Phases((phase,), ranks, ranks, np.zeros(ranks, np.int64), np.full(ranks, 10**9))


def noisy(cv: float = 0.05) -> np.ndarray:
    return 1e-3 * np.exp(cv * np.random.default_rng(1).standard_normal((RANKS, TIMES)))


def test_slices_of_other_programs_are_found_and_measured() -> None:
    wall = noisy()
    hit = np.zeros(wall.shape, bool)
    hit[[0, 1, 2, 3, 0], [5, 17, 40, 62, 80]] = True
    found = interruptions(run(wall + 8e-3 * hit))
    assert found.bursts == 5
    assert found.lost == pytest.approx(5 * 8e-3, rel=0.05)
    assert found.longest == pytest.approx(8e-3, rel=0.1)
    assert not found.by_work
    told = remark(found)
    assert told is not None
    assert told.startswith("5 bursts of equal place in the program took up to 8.")
    assert "9.1 % of all computing: processes were probably without a core" in told


@pytest.mark.parametrize("counters", [False, True])
def test_phases_that_are_summed_up_are_judged_one_by_one(counters: bool) -> None:
    short, long = noisy() / 10, 3 * noisy()
    short[1, 7] += 8e-3
    long[0, [4, 9]] += 20e-3
    work = np.full((RANKS, TIMES), 1e6) if counters else None
    runs = [run(wall, work) for wall in (short, long)]
    first, second = (found.phases[0] for found in runs)
    columns = ("sequence", "execution", "begin", "wall", "useful", "cut", "instructions")
    joined = {
        name: np.concatenate([getattr(first, name), getattr(second, name)])
        for name in columns
        if getattr(first, name) is not None
    }
    places = np.repeat(np.array([3, 8], np.int32), RANKS * TIMES)
    both = replace(first, **joined, place=SEVERAL, places=places)
    found = interruptions(replace(runs[0], phases=(both,)))
    apart = [interruptions(each) for each in runs]
    assert (found.bursts, [each.bursts for each in apart]) == (3, [1, 2])
    assert found.lost == pytest.approx(sum(each.lost for each in apart), rel=1e-12)


def test_what_all_do_longer_is_work() -> None:
    wall = noisy()
    wall[:, ::10] += 8e-3  # every tenth step writes a file, for instance
    assert interruptions(run(wall)).bursts == 0


def test_a_slow_process_is_not_interrupted() -> None:
    wall = noisy()
    wall[2] *= 5
    assert interruptions(run(wall)).bursts == 0


def test_short_differences_are_no_slices() -> None:
    wall = noisy() / 100
    wall[0, 3] *= 50  # 0.5 ms
    assert interruptions(run(wall)).bursts == 0


def test_more_instructions_are_more_work() -> None:
    wall, instructions = noisy(), np.full((RANKS, TIMES), 1e6)
    wall[0, 3] += 8e-3
    wall[1, 7] += 8e-3
    instructions[1, 7] *= 9
    found = interruptions(run(wall, instructions))
    assert found.bursts == 1
    assert found.by_work


def test_one_process_is_judged_with_counters_only() -> None:
    wall = noisy()[:1]
    wall[0, 3] += 8e-3
    assert interruptions(run(wall)).bursts == 0
    told = remark(interruptions(run(wall, np.full((1, TIMES), 1e6))))
    assert told is not None
    assert told.startswith("1 burst with no more instructions took up to 7.94 ms")


def test_few_executions_tell_nothing() -> None:
    wall = noisy()[:, :5]
    wall[0, 3] += 8e-3
    assert interruptions(run(wall)).bursts == 0


def test_little_is_not_worth_a_word() -> None:
    wall = noisy()
    wall[0, 3] += 3e-3
    found = interruptions(run(wall))
    assert found.bursts == 1
    assert remark(found) is None


def test_a_run_that_computes_nothing() -> None:
    assert interruptions(Phases((), 1, 1, np.zeros(1, np.int64), np.ones(1, np.int64))).share == 0
