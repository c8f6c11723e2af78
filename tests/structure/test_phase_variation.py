"""How times of a phase vary: imbalance that stays or changes, its causes, bursts without a core."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.structure.phase_variation import causes, imbalance, interruptions
from popmodel.structure.phases import SEVERAL, Phase, Phases

RANKS, TIMES = 4, 100


def run(wall: np.ndarray, instructions: np.ndarray | None = None) -> Phases:
    """One phase of some ranks, with these times of executions."""
    ranks, times = wall.shape
    phase = Phase(
        name="MPI_Send to MPI_Recv",
        kind="serial",
        place=0,
        part="iterations",
        sequences=ranks,
        sequence=np.repeat(np.arange(ranks, dtype=np.int32), times),
        execution=np.tile(np.arange(times), ranks),
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
    found, told = interruptions(run(wall + 8e-3 * hit))
    assert found["bursts"] == 5
    assert found["time"] == pytest.approx(5 * 8e-3, rel=0.05)
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
    columns = ("sequence", "execution", "wall", "useful", "cut", "instructions")
    joined = {
        name: np.concatenate([getattr(first, name), getattr(second, name)])
        for name in columns
        if getattr(first, name) is not None
    }
    places = np.repeat(np.array([3, 8], np.int32), RANKS * TIMES)
    both = replace(first, **joined, place=SEVERAL, places=places)
    found = interruptions(replace(runs[0], phases=(both,)))[0]
    apart = [interruptions(each)[0] for each in runs]
    assert (found["bursts"], [each["bursts"] for each in apart]) == (3, [1, 2])
    assert found["time"] == pytest.approx(sum(each["time"] for each in apart), rel=1e-12)


def test_what_has_other_causes_is_no_interruption() -> None:
    longer, slow, short, few = noisy(), noisy(), noisy() / 100, noisy()[:, :5]
    longer[:, ::10] += 8e-3  # every tenth step writes a file, for instance
    slow[2] *= 5
    short[0, 3] *= 50  # 0.5 ms
    few[0, 3] += 8e-3
    for name, wall in (("longer", longer), ("slow", slow), ("short", short), ("few", few)):
        assert interruptions(run(wall))[0]["bursts"] == 0, name
    nothing = Phases((), 1, 1, np.zeros(1, np.int64), np.ones(1, np.int64))
    assert interruptions(nothing)[0]["share"] == 0


def test_more_instructions_are_more_work() -> None:
    wall, instructions = noisy(), np.full((RANKS, TIMES), 1e6)
    wall[0, 3] += 8e-3
    wall[1, 7] += 8e-3
    instructions[1, 7] *= 9
    assert interruptions(run(wall, instructions))[0]["bursts"] == 1


def test_one_process_is_judged_with_counters_only() -> None:
    wall = noisy()[:1]
    wall[0, 3] += 8e-3
    assert interruptions(run(wall))[0]["bursts"] == 0
    told = interruptions(run(wall, np.full((1, TIMES), 1e6)))[1]
    assert told is not None
    assert told.startswith("1 burst with no more instructions took up to 7.94 ms")


def test_little_is_not_worth_a_word() -> None:
    wall = noisy()
    wall[0, 3] += 3e-3
    found, told = interruptions(run(wall))
    assert (found["bursts"], told) == (1, None)


# Imbalance.


def of_matrix(seconds: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Rows of a matrix of ranks and executions; NaN for none."""
    rank, execution = np.nonzero(~np.isnan(seconds))
    return rank.astype(np.int32), execution, seconds[rank, execution], len(seconds)


def test_differences_between_ranks_that_stay_are_persistent() -> None:
    found = imbalance(*of_matrix(np.tile([[1.0], [2.0], [3.0]], (1, 7))))
    assert found.persistent == pytest.approx(0.5)
    assert found.transient == pytest.approx(0, abs=1e-12)
    assert found.common == pytest.approx(0, abs=1e-12)
    assert found.by_rank == pytest.approx([0.5, 1.0, 1.5])


def test_what_all_ranks_do_alike_is_no_imbalance() -> None:
    found = imbalance(*of_matrix(np.tile([1.0, 2.0, 3.0, 2.0], (5, 1))))
    assert (found.persistent, found.transient) == pytest.approx((0, 0), abs=1e-9)
    assert found.common == pytest.approx(np.std([1, 2, 3, 2], ddof=1) / 2)


def test_another_slow_rank_each_time_is_transient() -> None:
    ranks = 4
    seconds = np.tile(1 + np.eye(ranks), (1, 50))
    found = imbalance(*of_matrix(seconds))
    assert found.persistent == pytest.approx(0, abs=1e-9)
    assert found.transient == pytest.approx(np.std(seconds[0]) / seconds.mean(), rel=0.2)


def test_noise_is_not_taken_for_persistence() -> None:
    """Means of few noisy executions differ, too: that much is taken off."""
    noise = np.random.default_rng(5)
    found = imbalance(*of_matrix(1 + 0.1 * noise.standard_normal((400, 4))))
    assert found.persistent is not None
    assert found.persistent < 0.02
    assert found.transient == pytest.approx(0.1, rel=0.05)


@given(
    persistent=st.floats(0.02, 0.3),
    transient=st.floats(0.01, 0.3),
    common=st.floats(0, 0.3),
    seed=st.integers(0, 2**31),
)
def test_the_parts_that_a_simulation_put_in_come_out(
    persistent: float, transient: float, common: float, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    seconds = (
        1
        + persistent * draw.standard_normal((300, 1))
        + common * draw.standard_normal((1, 200))
        + transient * draw.standard_normal((300, 200))
    ) * 1e-3
    found = imbalance(*of_matrix(seconds))
    mean = seconds.mean() / 1e-3
    assert found.persistent == pytest.approx(persistent / mean, rel=0.2)
    assert found.transient == pytest.approx(transient / mean, rel=0.05)
    assert found.common == pytest.approx(common / mean, rel=0.3, abs=0.01)


def test_ranks_that_lack_executions_are_compared_by_what_they_share() -> None:
    """A rank that has only the long executions is not slow."""
    seconds = np.tile([1.0, 5.0], (4, 10))
    seconds[0, ::2] = np.nan
    found = imbalance(*of_matrix(seconds))
    assert found.persistent == pytest.approx(0, abs=1e-6)
    assert found.by_rank == pytest.approx(np.ones(4), abs=1e-6)


def test_what_cannot_be_told_apart_is_not_known() -> None:
    half = pytest.approx(np.sqrt(2) / 2)
    gap = imbalance(*of_matrix(np.array([[1.0, 1.0], [np.nan, np.nan], [3.0, 3.0]])))
    assert np.isnan(gap.by_rank).tolist() == [False, True, False]
    assert gap.persistent == half
    once = imbalance(*of_matrix(np.array([[1.0], [3.0]])))  # all of it is persistent
    assert (once.persistent, once.transient) == (half, None)
    alone = imbalance(*of_matrix(np.array([[1.0, 3.0]])))
    assert (alone.persistent, alone.transient, alone.common) == (None, None, half)
    for nothing in (np.empty((2, 0)), np.zeros((2, 3))):
        assert imbalance(*of_matrix(nothing))[:3] == (None, None, None)


# Why processes take different time.


EACH = st.lists(
    st.tuples(st.floats(1e6, 1e9), st.floats(0.2, 4), st.floats(1e9, 4e9)), min_size=1, max_size=9
)


@given(EACH)
def test_the_factors_multiply_to_the_imbalance(each: list[tuple[float, float, float]]) -> None:
    instructions, ipc, frequency = (np.array(column) for column in zip(*each, strict=True))
    cycles = instructions / ipc
    found = causes(cycles / frequency, instructions, cycles)
    assert found is not None
    product = found["instructions"] * found["ipc"] * found["frequency"]
    assert product == pytest.approx(1 / found["value"], rel=1e-9)


@pytest.mark.parametrize(
    ("cause", "factor"), [("instructions", (2, 1, 1)), ("ipc", (1, 2, 1)), ("frequency", (1, 1, 2))]
)
def test_one_cause_is_named(cause: str, factor: tuple[int, int, int]) -> None:
    """The last of four processes has twice the instructions, half the IPC or half the clock."""
    one = np.array([1.0, 1.0, 1.0, 0.0])
    last = np.array([0.0, 0.0, 0.0, 1.0])
    instructions = 1e9 * (one + factor[0] * last)
    cycles = instructions * (one + factor[1] * last)
    found = causes(cycles * (one + factor[2] * last) / 1e9, instructions, cycles)
    assert found is not None
    assert found["main"] == cause
    assert found["process"] == 3
    assert found["value"] == pytest.approx(1.25 / 2)


def test_without_counters_the_cause_is_not_known() -> None:
    found = causes(np.array([1.0, 3.0]))
    assert found is not None
    assert (found["value"], found["process"], found["main"]) == (pytest.approx(2 / 3), 1, None)


def test_without_cycles_instructions_are_told_alone() -> None:
    found = causes(np.array([1.0, 3.0]), np.array([1e6, 1e6]))
    assert found is not None
    assert (found["instructions"], found["ipc"]) == (1.0, None)


def test_nothing_computed_has_no_balance() -> None:
    assert causes(np.zeros(3)) is None
