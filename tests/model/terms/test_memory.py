"""Traffic to memory: layer conditions, bandwidth, and loops that share a memory domain.

The law of sharing is held against references that share no code with it: a closed queue by mean
value analysis, a simulation of cores that take turns at the memory, and the published recursion.
"""

import functools
import heapq
import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from popmodel.model.terms import compute

Array = NDArray[np.float64]

CORES = np.array([1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64])
ALONE = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0)
STREAMING = (2.0, 2.5, 4.0, 8.0)
"""Time alone of loops, and of those that only move data, in transfers of a full domain."""


@given(st.floats(1e9, 2e10), st.floats(1.5, 8.0), st.floats(2.0, 20.0))
def test_bandwidth_is_linear_at_first_and_saturates(b1: float, factor: float, q: float) -> None:
    bsat = b1 * factor
    values = [compute.bandwidth(cores, b1, bsat, q) for cores in (1, 2, 4, 8, 64, 4096)]
    assert values[0] == pytest.approx(b1)
    assert all(b >= a * (1 - 1e-12) for a, b in itertools.pairwise(values))
    assert all(v <= bsat * (1 + 1e-12) for v in values)
    assert values[-1] == pytest.approx(bsat, rel=0.02)


def test_layer_condition() -> None:
    capacity = compute.cache_capacity(0.5, 100.0, 2)
    assert capacity == 25.0
    assert compute.lost_share(12.5, capacity) == 0.0  # nothing up to half of it
    assert compute.lost_share(25.0, capacity) == 0.5
    assert compute.lost_share(50.0, capacity) == 1.0  # all from twice as much on
    assert compute.lost_share(0.0, 0.0) == 0.0
    assert compute.lost_share(1.0, 0.0) == 1.0


SWEEPS = {  # ns per line, by MiB: half of the set stays at; inside, beyond, and between
    "update, L2 of a Xeon": (
        2.7,
        1.035,
        2.2,
        {1.4: 1.035, 2.0: 1.24, 2.9: 1.70, 4.0: 2.11, 6.0: 2.2},
    ),
    "update, L3 of it": (
        97.0,
        2.2,
        6.2,
        {46.0: 2.2, 64.0: 2.46, 93.0: 3.87, 131.0: 5.99, 185.0: 6.2},
    ),
    "read, L2 of a later one": (
        2.2,
        0.472,
        2.48,
        {1.5: 0.656, 2.0: 1.195, 2.5: 1.869, 3.0: 2.259, 3.5: 2.392, 4.0: 2.479},
    ),
}


@pytest.mark.parametrize("sweep", SWEEPS)
def test_the_fall_is_as_measured(sweep: str) -> None:
    half, inside, beyond, times = SWEEPS[sweep]
    found = [inside + (beyond - inside) * compute.lost_share(size, half) for size in times]
    np.testing.assert_allclose(found, list(times.values()), rtol=0.06)


@given(st.floats(1.0, 1e9), st.floats(1.0, 1e9), st.floats(1.0, 2.0))
def test_more_is_lost_of_a_larger_set_and_less_by_a_larger_cache(
    held: float, capacity: float, factor: float
) -> None:
    lost = compute.lost_share(held, capacity)
    assert 0.0 <= lost <= 1.0
    assert compute.lost_share(held * factor, capacity) >= lost
    assert compute.lost_share(held, capacity * factor) <= lost


def test_lines_that_are_written_back_take_their_own_time() -> None:
    assert compute.moved(64.0, 64.0, 0.0) == 0.0
    assert compute.moved(192.0, 64.0, 0.0) == 128.0  # beside the reads
    assert compute.moved(128.0, 64.0, 1.0) == 128.0  # as lines that are read
    assert compute.moved(128.0, 64.0, 2.25) == 208.0
    assert compute.moved(32.0, 64.0, 2.0) == 64.0  # no more than is served


# -- references: time of a loop on some cores, in transfers of a full domain


def recursion(alone: float) -> Array:
    """H. Stengel et al., ICS 2015: half a transfer of waiting for every other busy core."""
    utilisation, found = 0.0, []
    for n in range(1, CORES[-1] + 1):
        utilisation = min(1.0, n / (alone + utilisation * (n - 1) / 2))
        found.append(n / utilisation)
    return np.array(found)[CORES - 1]


def mean_values(alone: float) -> Array:
    """Closed network of cores and one server that they share, whatever the times' distribution."""
    waiting, found = 0.0, []
    for n in range(1, CORES[-1] + 1):
        at_server = 1 + waiting
        waiting = n / (alone - 1 + at_server) * at_server
        found.append(alone - 1 + at_server)
    return np.array(found)[CORES - 1]


def turns(alone: float, cv: float) -> Array:
    """Cores compute, queue for the memory in order and move data, all for random times."""
    return np.array([alone if n == 1 else in_order(alone, int(n), cv) for n in CORES])


def in_order(alone: float, cores: int, cv: float, events: int = 6000) -> float:
    rng = np.random.default_rng([cores, round(8 * alone)])
    count = max(events, 150 * cores)
    moving, computing = (
        rng.gamma(1 / cv**2, mean * cv**2, count) if mean else np.zeros(count)
        for mean in (1.0, alone - 1)
    )
    moving *= count / moving.sum()  # the same work in every experiment
    asks = [(start, core) for core, start in enumerate(rng.uniform(0, alone, cores))]
    heapq.heapify(asks)
    free, ends = 0.0, []
    for move, alone_for in zip(moving, computing, strict=True):
        asked, core = heapq.heappop(asks)
        free = max(asked, free) + move
        ends.append(free)
        heapq.heappush(asks, (free + alone_for, core))
    warm = count // 4
    return cores * (ends[-1] - ends[warm]) / (count - 1 - warm)


REFERENCES: dict[str, Callable[[float], Array]] = {
    "shared": functools.cache(mean_values),
    "turns .5": functools.cache(functools.partial(turns, cv=0.5)),
    "turns .25": functools.cache(functools.partial(turns, cv=0.25)),
    "recursion": functools.cache(recursion),
}


def law(alone: float, streaming: float, q: float, *, sharper: bool = True) -> Array:
    """The law for a loop with one transfer, where one core alone moves data in ``streaming``."""
    contended = CORES / np.asarray(compute.bandwidth(CORES, 1 / streaming, 1.0, q))
    p = compute.sharpness(alone, streaming, q) if sharper else q
    return np.asarray(compute.shared_time(alone, streaming, contended, p))


def fitted(reference: Callable[[float], Array], streaming: float) -> float:
    """Sharpness that a bandwidth by cores would give: that of the smallest largest error."""
    candidates = np.geomspace(2, 12, 60)
    errors = [
        np.max(np.abs(law(streaming, streaming, q) / reference(streaming) - 1)) for q in candidates
    ]
    return float(candidates[int(np.argmin(errors))])


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("name", "longest", "sharpness", "most", "median", "constant"),
    [
        ("shared", 64, (2.95, 3.6), 0.055, 0.008, 0.16),
        ("turns .5", 64, (3.85, 4.6), 0.055, 0.008, 0.12),
        ("turns .25", 64, (4.75, 7.2), 0.06, 0.006, 0.095),
        ("recursion", 8, (2.95, 6.5), 0.175, 0.013, 0.15),
        ("recursion", 64, (2.95, 6.5), 0.225, 0.019, 0.18),
    ],
)
def test_error_of_the_law_over_the_whole_range_of_demand(
    name: str,
    longest: float,
    sharpness: tuple[float, float],
    most: float,
    median: float,
    constant: float,
) -> None:
    reference = REFERENCES[name]
    largest, plain, medians = [], [], []
    for streaming in STREAMING:
        q = fitted(reference, streaming)
        assert sharpness[0] <= q <= sharpness[1]
        loops = [alone for alone in ALONE if streaming <= alone <= longest]
        errors, errors_of_q = (
            np.abs(
                [
                    law(alone, streaming, q, sharper=sharper) / reference(alone) - 1
                    for alone in loops
                ]
            )
            for sharper in (True, False)
        )
        largest.append(np.max(errors))
        plain.append(np.max(errors_of_q))
        medians.append(np.median(errors))
    assert max(largest) < most
    assert max(medians) < median
    assert max(plain) < constant


# -- limits


def test_large_sharpness_does_not_overflow() -> None:
    for q in (1e2, 1e4, 1e30):
        p = compute.sharpness(1e-6, 1e-7, q)
        with np.errstate(over="raise", invalid="raise"):
            assert compute.shared_time(1e-6, 1e-7, 64e-7, p) == pytest.approx(64e-7)
            assert compute.shared_time(1e-6, 1e-7, 4e-7, p) == pytest.approx(1e-6)
