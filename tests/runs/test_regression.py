"""Whether a program became slower, and which factor moved: statistics and the exact split."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from popmodel.runs.regression import (
    FACTORS,
    HistoryComparison,
    change_interval,
    compare_history,
    effect,
    rank_test,
    runtime_factors,
)
from popmodel.runs.run_history import HistoryLine

Values = Sequence[float]
DISTINCT = st.lists(st.integers(1, 10**6), min_size=6, max_size=22, unique=True)
TIED = st.lists(st.integers(1, 5), min_size=3, max_size=6)
POSITIVE = st.floats(1e-3, 1e3)


def line(factors: dict[str, float], label: str = "now", **given: object) -> HistoryLine:
    """A run with these factors."""
    known: dict[str, object] = {
        "label": label, "time": "2026-01-01T00:00:00Z", "run": "run", "machine": "M, 4 CPUs",
        "processes": 4, "threads": 1, "part": "", "calls": {"MPI_Send": 2}, "functions": ("solve",),
        "runtime": 1.0, "factors": factors, "metrics": {"mpi": {"load_balance": 0.9}},
        "regions": {}, "call_sites": {}, "caveats": (), "provenance": {},
    }  # fmt: skip
    return HistoryLine(**{**known, **given})  # type: ignore[arg-type]


def compared(old: Sequence[HistoryLine], new: Sequence[HistoryLine]) -> HistoryComparison:
    (comparison,) = compare_history([*old, *new], new)
    return comparison


@given(DISTINCT, st.data())
def test_the_rank_test_is_that_of_scipy_where_no_values_are_equal(
    values: list[int], data: st.DataObject
) -> None:
    size = data.draw(st.integers(1, len(values) - 1))
    old, new = values[:size], values[size:]
    expected = stats.mannwhitneyu(new, old, alternative="greater", method="exact").pvalue
    assert rank_test(old, new) == pytest.approx(expected, rel=1e-12)


@given(TIED, TIED)
def test_the_rank_test_counts_all_divisions_where_values_are_equal(
    old: list[int], new: list[int]
) -> None:
    ranks = stats.rankdata([*old, *new])
    sums = [sum(some) for some in combinations(ranks, len(new))]
    least = ranks[len(old) :].sum()
    share = sum(one >= least - 1e-9 for one in sums) / len(sums)
    assert rank_test(old, new) == pytest.approx(share, rel=1e-12)


def test_three_runs_on_each_side_can_just_decide() -> None:
    assert rank_test([1, 2, 3], [4, 5, 6]) == 0.05
    assert rank_test([1, 2], [4, 5, 6]) > 0.05


@given(DISTINCT, st.data())
def test_the_interval_excludes_no_change_where_the_test_decides(
    values: list[int], data: st.DataObject
) -> None:
    size = data.draw(st.integers(3, len(values) - 3))
    old, new = values[:size], values[size:]
    interval = change_interval(old, new)
    assert interval is not None
    assert (interval[0] > 1) == (rank_test(old, new) <= 0.05)
    assert (interval[1] < 1) == (rank_test(new, old) <= 0.05)


def test_too_few_values_have_no_interval() -> None:
    assert change_interval([1, 2], [3, 4, 5]) is None


@pytest.mark.long
def test_the_interval_holds_in_nine_of_ten_draws() -> None:
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(2000):
        old, new = rng.lognormal(0, 0.03, 10), 1.05 * rng.lognormal(0, 0.03, 5)
        low, high = change_interval(old.tolist(), new.tolist()) or (2.0, 0.0)
        held += low <= 1.05 <= high
    assert 0.89 <= held / 2000 <= 0.94  # a rank test has steps: at least 90 %, a little more


TIMES = ("runtime", "useful_mean", "outside_mpi_mean", "outside_mpi_max", "ideal_runtime")
COUNTS = ("instructions_sum", "cycles_sum")
AGGREGATES = st.fixed_dictionaries(dict.fromkeys((*TIMES, *COUNTS), POSITIVE))
LACKING = st.sets(st.sampled_from(["instructions_sum", "ideal_runtime", "outside_mpi_mean"]))


@given(st.lists(AGGREGATES, min_size=2, max_size=6), st.data(), st.booleans())
def test_the_factors_multiply_to_the_change_of_the_runtime_exactly(
    runs: list[dict[str, float]], data: st.DataObject, has_mpi: bool
) -> None:
    lines = []
    for number, known in enumerate(runs):
        # Whatever a run lacks, all threads are useful_sum / useful_mean many: 8.
        aggregates = {**known, "useful_sum": 8 * known["useful_mean"]}
        for name in data.draw(LACKING):
            del aggregates[name]
        factors = runtime_factors(aggregates, has_mpi=has_mpi)
        label = "before" if number == 0 else "now"
        lines.append(line(factors, label, runtime=known["runtime"]))
    comparison = compared(lines[:1], lines[1:])
    runtime = comparison.change("runtime")
    assert runtime is not None
    total = math.fsum(effect(factor) for factor in comparison.factors())
    assert total == pytest.approx(math.log(runtime.ratio), abs=1e-9)


def test_the_split_is_as_fine_as_all_runs_know() -> None:
    fine = {"runtime": 2, "useful_sum": 4, "useful_mean": 1, "outside_mpi_mean": 1.2,
            "outside_mpi_max": 1.5, "ideal_runtime": 1.8, "instructions_sum": 8,
            "cycles_sum": 4}  # fmt: skip
    coarse = {name: fine[name] for name in fine if name not in ("ideal_runtime", "cycles_sum")}
    whole, part = (runtime_factors(one, has_mpi=True) for one in (fine, coarse))
    assert whole["ipc"] == 2
    assert whole["thread_efficiency"] == pytest.approx(1 / 1.2)
    assert compared([line(whole, "before")], [line(whole)]).split == (
        "instructions", "ipc", "frequency",
        "load_balance", "serialisation", "transfer", "thread_efficiency",
    )  # fmt: skip
    assert compared([line(part, "before")], [line(whole)]).split == (
        "useful_time", "load_balance", "communication", "thread_efficiency",
    )  # fmt: skip
    alone = runtime_factors(fine, has_mpi=False)
    assert compared([line(alone, "before")], [line(whole)]).split == (
        "instructions", "ipc", "frequency", "parallel_efficiency",
    )  # fmt: skip


BASE = {
    "instructions": 1e10, "ipc": 1.5, "frequency": 2e9, "load_balance": 0.9,
    "serialisation": 0.95, "transfer": 0.97, "thread_efficiency": 1.0,
}  # fmt: skip
NOISE = {"ipc": 0.02, "frequency": 0.015, "load_balance": 0.01, "serialisation": 0.01,
         "transfer": 0.00866}  # fmt: skip
PLANTED = {
    "imbalance": "load_balance", "extra barrier": "serialisation", "more messages": "transfer",
    "slower clock": "frequency", "more instructions": "instructions",
}  # fmt: skip


def drawn(
    rng: np.random.Generator, number: int, label: str, factor: str = "ipc", slower: float = 1.0
) -> list[HistoryLine]:
    """Runs with 3 % noise in their runtime, of which a factor makes so much more."""
    assert math.hypot(*NOISE.values()) == pytest.approx(0.03, abs=1e-4)
    lines = []
    for _ in range(number):
        factors = {
            name: value * math.exp(rng.normal(0, NOISE.get(name, 0)))
            for name, value in BASE.items()
        }
        factors[factor] *= slower ** FACTORS[factor][1]
        runtime = math.prod(value ** FACTORS[name][1] for name, value in factors.items())
        whole = dict.fromkeys(("useful_time", "parallel_efficiency", "communication"), 0.5)
        lines.append(line(whole | factors, label, runtime=runtime))
    return lines


def found_and_named(slower: float, repeats: int, draws: int, seed: int) -> tuple[float, float]:
    """Shares of planted regressions that are found, and of these with the right first cause."""
    rng = np.random.default_rng(seed)
    found = named = 0
    for _ in range(draws):
        for factor in PLANTED.values():
            comparison = compared(
                drawn(rng, 10, "before"), drawn(rng, repeats, "now", factor, slower)
            )
            change = comparison.change("runtime")
            if change and change.is_shown and change.ratio > 1:
                found += 1
                named += comparison.causes()[0].id == factor
    return found / (draws * len(PLANTED)), named / found


@pytest.mark.parametrize(
    ("slower", "repeats", "share"),
    [(1.08, 5, 0.95), (1.05, 5, 0.8), (1.05, 10, 0.95)],
)
@pytest.mark.long(after=1)
def test_planted_regressions_are_found_and_the_right_factor_is_named(
    slower: float, repeats: int, share: float
) -> None:
    draws = 40 if repeats == 5 and slower == 1.08 else 400
    found, named = found_and_named(slower, repeats, draws, seed=40)
    print(f"{slower} x, {repeats} repeats: found {found:.3f}, of these rightly named {named:.3f}")
    assert found >= share
    assert named >= 0.95


@pytest.mark.long
@pytest.mark.parametrize("repeats", [3, 5, 10])
def test_unchanged_code_fails_in_one_of_twenty_draws_at_most(repeats: int) -> None:
    rng = np.random.default_rng(41)
    draws, alarms, failures = 2000, 0, 0
    for draw in range(draws):
        change = compared(drawn(rng, 10, "a"), drawn(rng, repeats, "b")).change("runtime")
        assert change is not None
        alarms += change.is_shown and change.ratio > 1
        failures += draw < 400 and change.is_shown and change.ratio > 1.05
    print(
        f"{repeats} repeats: {failures} of 400 fail by 'runtime > +5 %'; {alarms} of {draws} slower"
    )
    assert failures <= 0.05 * 400
    # "Slower" alone is as frequent as the exact test says, in the long run: three deviations.
    assert alarms <= 0.05 * draws + 3 * math.sqrt(0.05 * 0.95 * draws)


def test_fewer_than_three_runs_on_a_side_decide_nothing() -> None:
    rng = np.random.default_rng(1)
    comparison = compared(drawn(rng, 10, "a"), drawn(rng, 2, "b", "ipc", 2.0))
    assert not comparison.is_decided
    assert "nothing is decided with 2 runs now, 10 before" in comparison.sentence()
    change = comparison.change("runtime")
    assert change is not None and not change.is_shown


def test_the_place_is_the_innermost_region_that_grew() -> None:
    rng = np.random.default_rng(2)
    regions = {"before": {"main loop": 1.0, "solve": 0.5, "io": 0.1},
               "now": {"main loop": 1.3, "solve": 0.8, "io": 0.1}}  # fmt: skip
    sides = [
        [
            line(dict(run.factors), label, runtime=run.runtime,
                 regions={name: time * rng.lognormal(0, 0.001) for name, time in times.items()})
            for run in drawn(rng, 5, label, "instructions", 1.0 if label == "before" else 1.3)
        ]
        for label, times in regions.items()
    ]  # fmt: skip
    place = compared(*sides).place()
    assert place is not None
    assert place[0] == "solve"
    assert place[1] == pytest.approx(0.3, rel=0.01)


def test_runs_of_other_machines_configurations_and_programs_are_not_compared() -> None:
    rng = np.random.default_rng(3)
    (run,) = drawn(rng, 1, "now")
    others = [
        line(BASE, "before", machine="other"),
        line(BASE, "before", processes=8),
        line(BASE, "before", threads=2),
        line(BASE, "before", part="region solve"),
        line(BASE, "before", functions=("alpha", "beta"), calls={"MPI_Put": 3}),
    ]
    run = line(BASE, functions=("solve", "halo"))
    assert compare_history([*others, run], [run])[0].last == ()


def test_repeats_of_two_labels_may_alternate() -> None:
    rng = np.random.default_rng(4)
    lines = [one for _ in range(4) for label in "ab" for one in drawn(rng, 1, label)]
    (comparison,) = compare_history(lines, lines[-1:])
    assert (len(comparison.new), len(comparison.last)) == (4, 4)
    (again,) = compare_history([*lines, *drawn(rng, 5, "c")], lines[-1:])
    assert again.last == comparison.last
