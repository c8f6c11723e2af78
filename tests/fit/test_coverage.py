"""How often 90 % intervals hold the truth, and how far off values are: many draws, counted.

Truths of ten families (some of which no form has), with errors of .3 to 3 %, learnt from two to six
points and carried to 2, 4 and 8 times the processes; with threads and sizes beside.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

from popmodel.fit.baselines import BASELINES, whole_run
from popmodel.fit.efficiency_factors import FACTORS
from popmodel.fit.efficiency_laws import fit_factor
from popmodel.fit.law import law
from popmodel.fit.samples import Interval, Sample

Truth = Callable[[float, float, float], float]
Learnt = Callable[[Sequence[Sample]], Callable[[int, int, dict[str, float]], Interval]]
SERIES: tuple[tuple[tuple[int, int, float], ...], ...] = tuple(
    tuple((p, 1, 64.0) for p in processes)
    for processes in ((1, 2, 4, 8), (2, 4, 8), (4, 8, 16), (2, 4), (2, 4, 8, 16, 32))
)
WITH_THREADS = (
    ((1, 1, 64.0), (2, 1, 64.0), (4, 1, 64.0), (1, 2, 64.0), (2, 2, 64.0)),
    ((2, 1, 64.0), (4, 1, 64.0), (8, 1, 64.0), (2, 2, 64.0), (2, 4, 64.0)),
)
WITH_SIZES = (((1, 1, 64.0), (2, 1, 64.0), (4, 1, 64.0), (2, 1, 96.0), (4, 1, 128.0)),)
FAR = (2, 4, 8)


def truths(rng: np.random.Generator) -> dict[str, Truth]:
    """Seconds by P, T and N, of shares drawn for each family."""

    def share(low: float, high: float) -> float:
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    def divided(rest: Callable[[float], float], of: float) -> Truth:
        return lambda p, t, n: (n / 64) ** 3 * (1 / (p * t) + of * rest(p))

    def uneven(of: float, growth: float) -> Truth:
        return lambda p, t, n: (
            (n / 64) ** 3 / (p * t) * (1 + of * math.sqrt(2 * math.log(p)) * (p / 8) ** growth)
        )

    return {
        "ideal": divided(lambda _: 0.0, 0.0),
        "serial": divided(lambda _: 1.0, share(1e-3, 0.05)),
        "much serial": divided(lambda _: 1.0, share(0.1, 2.0)),
        "surface in 3-D": divided(lambda p: p ** (-2 / 3), share(0.01, 0.3)),
        "surface in 2-D": divided(lambda p: p**-0.5, share(0.01, 0.3)),
        "tree": divided(math.log2, share(1e-4, 1e-2)),
        "all to all": divided(lambda p: p, share(1e-5, 1e-3)),
        "even cells": uneven(share(0.01, 0.1), 0.25),
        "other cells": uneven(share(0.01, 0.1), 0.5),
        "surface and tree": divided(lambda p: p**-0.5 + 0.02 * math.log2(p), share(0.01, 0.2)),
    }


def outcomes(
    learnt: Learnt,
    designs: Sequence[Sequence[tuple[int, int, float]]],
    draws: int,
    error: float | None = None,
    noises: Sequence[float] = (0.003, 0.01, 0.03),
) -> Iterator[tuple[list[Sample], tuple[int, int, float], float, Interval]]:
    """Runs, a target, its truth and what was foretold of it."""
    rng = np.random.default_rng(15)
    for _ in range(draws):
        for truth in truths(rng).values():
            for design in designs:
                for noise in noises:
                    sized = len({n for _, _, n in design}) > 1
                    samples = [
                        Sample(
                            p, t, truth(p, t, n) * math.exp(noise * rng.normal()),
                            {"N": n} if sized else {}, noise if error else None,
                        )
                        for p, t, n in design
                    ]  # fmt: skip
                    found = learnt(samples)
                    last = max(design)
                    for far in FAR:
                        p, t, n = last[0] * far, max(t for _, t, _ in design), last[2]
                        there = found(p, t, {"N": n} if sized else {})
                        yield samples, (p, t, n), truth(p, t, n), there


def of_whole(samples: Sequence[Sample]) -> Callable[[int, int, dict[str, float]], Interval]:
    sized = "N" in samples[0].parameters
    return whole_run(samples, ["N**3/(P*T)"] if sized else ["1/(P*T)"]).at


def of_part(samples: Sequence[Sample]) -> Callable[[int, int, dict[str, float]], Interval]:
    sized = "N" in samples[0].parameters
    return law(samples, hints=["N**3/(P*T)"] if sized else ["1/(P*T)"]).at


def of_times(samples: Sequence[Sample]) -> Callable[[int, int, dict[str, float]], Interval]:
    """A table of nothing but runtimes, as ``popmodel predict`` carries it."""
    home = samples[0]
    times = [one.value * one.processes / (home.value * home.processes) for one in samples]
    fitted = fit_factor(
        FACTORS["runtime"], [one.processes for one in samples], [1 / each for each in times],
        "processes", "strong",
    )  # fmt: skip

    def at(processes: int, *_: object) -> Interval:
        x = np.array([float(processes)])
        drawn = np.nanquantile(fitted.draws(x, np.random.default_rng(1)), [0.95, 0.05])
        divided = home.value * home.processes / processes
        low, high = (divided / drawn).tolist()
        return Interval(divided / float(fitted.values(x)[0]), low, high)

    return at


def held_and_off(found: Iterator[tuple[object, object, float, Interval]]) -> tuple[float, float]:
    rows = [
        (there.low <= truth <= there.high, abs(there.value / truth - 1))
        for _, _, truth, there in found
    ]
    held, off = np.array(rows).T
    return float(held.mean()), float(np.median(off))


@pytest.mark.parametrize("learnt", [of_whole, of_part])
def test_intervals_hold_the_truth_and_values_are_near_it(learnt: Learnt) -> None:
    held, off = held_and_off(outcomes(learnt, SERIES[:2], 1))
    assert 0.85 <= held <= 0.99
    assert off <= 0.05


@pytest.mark.long
@pytest.mark.parametrize("learnt", [of_whole, of_part])
@pytest.mark.parametrize("error", [None, 1.0])
def test_intervals_hold_as_often_as_they_say(learnt: Learnt, error: float | None) -> None:
    held, off = held_and_off(outcomes(learnt, SERIES, 4, error))
    assert 0.85 <= held <= 0.97
    assert off <= 0.04


@pytest.mark.long
@pytest.mark.parametrize("learnt", [of_whole, of_part])
@pytest.mark.parametrize("designs", [WITH_THREADS, WITH_SIZES])
def test_threads_and_sizes_are_held_as_well(
    learnt: Learnt, designs: Sequence[Sequence[tuple[int, int, float]]]
) -> None:
    held, off = held_and_off(outcomes(learnt, designs, 3))
    assert 0.85 <= held <= 0.98
    assert off <= 0.05


@pytest.mark.long
def test_runtimes_alone_are_held_as_well() -> None:
    found = [(truth, there) for _, _, truth, there in outcomes(of_times, SERIES, 1)]
    held = np.mean([there.low <= truth <= there.high for truth, there in found])
    assert held >= 0.88
    assert np.median([abs(there.value / truth - 1) for truth, there in found]) <= 0.06
    # room for memories and caches that no run has met: `test_random_machines` needs it
    assert np.median([there.high / there.low for _, there in found]) <= 2.15


CHANGES: dict[str, Callable[[float], float]] = {
    "a node that its processes fill": lambda p: max(1.0, min(p, 8) / 4) / p,
    "a memory that two nodes fill": lambda p: max(1.0, min(p, 16) / 4) / p,
    "data that a cache holds from 8 on": lambda p: (1.3 if p < 8 else 1.0) / p + 0.003,
    "data that a cache holds from 4 on": lambda p: (1.2 if p < 4 else 1.0) / p,
    "two losses": lambda p: 1 / p + 0.03 / p**0.5 + 1e-4 * p,
}


@pytest.mark.parametrize("truth", CHANGES.values(), ids=[*CHANGES])
def test_a_change_that_runs_have_seen_is_held(truth: Callable[[float], float]) -> None:
    rng = np.random.default_rng(8)
    held = []
    for noise in (0.003, 0.01, 0.02):
        places = (1, 2, 4, 8, 16)
        samples = [Sample(p, 1, truth(p) * math.exp(noise * rng.normal())) for p in places]
        found = of_times(samples)
        for p in (32, 64):
            there = found(p, 1, {})
            held.append(there.low <= truth(p) <= there.high)
    assert sum(held) >= 5


def test_repeats_that_differ_widen_the_interval() -> None:
    at = [
        of_times([Sample(p, 1, (1 + off) / p) for p in (1, 2, 4, 8) for off in (-each, 0, each)])
        for each in (0.003, 0.3)
    ]
    calm, busy = (found(16, 1, {}) for found in at)
    assert busy.high / busy.low > 2 * calm.high / calm.low


def test_one_disturbed_repeat_does_not_move_the_projection() -> None:
    samples = [Sample(p, 1, 1 / p) for p in (1, 2, 4, 8) for _ in range(3)]
    disturbed = [*samples[:-1], Sample(8, 1, 2 / 8)]
    there = of_times(disturbed)(16, 1, {})
    assert there.value == pytest.approx(1 / 16, rel=0.05)
    assert there.high > of_times(samples)(16, 1, {}).high


@pytest.mark.long
def test_the_average_beats_each_single_law() -> None:
    rows = []
    for samples, (p, t, _), truth, there in outcomes(of_whole, SERIES, 3):
        single = [law_(samples, p, t) for law_ in BASELINES.values()]
        rows.append([abs(value / truth - 1) for value in (there.value, *single)])
    ours, *others = np.median(np.array(rows), axis=0)
    assert ours < min(others), dict(zip(BASELINES, others, strict=True))


@pytest.mark.long
def test_errors_that_are_larger_than_usual_are_seen_in_the_residuals() -> None:
    once, _ = held_and_off(outcomes(of_part, SERIES, 2, None, (0.08,)))
    stated, _ = held_and_off(outcomes(of_part, SERIES, 2, 1.0, (0.08,)))
    assert once >= 0.8
    assert stated >= 0.85
