"""Clocks of several hosts, brought to one time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.tracer.clocks import RankClock, align, residual
from popmodel.tracer.meta import Exchange, Meta

SECOND = 10**9


def meta(host: str, *, begin: int = 0, realtime: int = 0, boot: str = "") -> Meta:
    return Meta(Path(host), host, 1, begin, realtime, boot or host)


def exchange(when: str, *trips: tuple[int, int, int]) -> Exchange:
    return Exchange(when, trips)


def test_one_host_needs_no_correction() -> None:
    clocks, warnings = align([meta("a"), meta("a")])
    assert warnings == []
    assert residual(clocks) == 0
    assert clocks["a"].one(12345) == 12345


def test_two_names_of_one_system_share_a_clock() -> None:
    clocks, warnings = align([meta("a", boot="x"), meta("b", boot="x")])
    assert list(clocks) == ["x"]
    assert warnings == []


@given(
    offset=st.integers(-(10**15), 10**15),
    drift=st.floats(-2e-4, 2e-4),
    start=st.integers(0, 10**15),
    length=st.integers(SECOND, 3600 * SECOND),
    trips=st.lists(
        st.tuples(st.integers(1, 10**5), st.integers(0, 10**5)), min_size=2, max_size=16
    ),
)
def test_the_error_of_a_drifting_clock_stays_within_the_residual(
    offset: int, drift: float, start: int, length: int, trips: list[tuple[int, int]]
) -> None:
    def reference(time: int) -> int:
        return time + offset + round((time - start) * drift)

    def compare(when: str, time: int, some: list[tuple[int, int]]) -> Exchange:
        found = []
        for there, back in some:  # how long the message takes on each way
            found.append((time, reference(time + there), time + there + back))
            time += 2 * 10**5
        return exchange(when, *found)

    other = meta("b")
    half = len(trips) // 2
    other.exchanges = [
        compare("init", start, trips[:half]),
        compare("finalize", start + length, trips[half:]),
    ]
    clocks, warnings = align([meta("a"), other])
    assert warnings == []
    clock = clocks["b"]
    assert residual(clocks) == clock.residual
    shortest = [min(a + b for a, b in some) for some in (trips[:half], trips[half:])]
    assert clock.residual == -(-max(shortest) // 2)
    inside = np.linspace(*clock.times, 50).astype(np.int64)
    wrong = clock(inside) - np.array([reference(int(t)) for t in inside])
    assert np.abs(wrong).max() <= clock.residual + 2  # and the rounding of both sides


@given(
    first=st.integers(-(10**12), 10**12),
    change=st.integers(-(10**6), 10**6),
    times=st.lists(st.integers(-(10**13), 10**13), min_size=2),
)
def test_the_order_of_times_stays(first: int, change: int, times: list[int]) -> None:
    clock = RankClock((0, 10 * SECOND), (first, first + change), 1)
    assert np.all(np.diff(clock(np.sort(np.array(times, np.int64)))) >= 0)
    assert clock.one(0) == first
    assert clock.one(10 * SECOND) == 10 * SECOND + first + change


def test_a_slow_round_trip_does_not_count() -> None:
    other = meta("b")
    other.exchanges = [exchange("init", (0, 90_000, 100_000), (200_000, 700_050, 200_100))]
    clocks, warnings = align([meta("a"), other])
    assert clocks["b"].one(0) == 500_000
    assert clocks["b"].residual == 50
    assert [w.text for w in warnings] == [
        "hosts whose clock was compared only once: its drift is not corrected"
    ]


def test_without_any_comparison_the_time_of_day_serves() -> None:
    clocks, warnings = align(
        [meta("a", begin=5, realtime=1000), meta("b", begin=70, realtime=1000)]
    )
    assert clocks["b"].one(70) == 5
    assert residual(clocks) is None
    (warning,) = warnings
    assert warning.text.startswith("hosts whose clock was not compared with that of rank 0")


def test_rank_0_can_be_missing() -> None:
    """The others were compared with its host, and so with each other."""
    one, other, third = (meta(host, begin=0, realtime=7) for host in "bcd")
    one.exchanges = [exchange("init", (0, 5_000_050, 100))]
    other.exchanges = [exchange("init", (0, 9_000_050, 100))]
    clocks, warnings = align([one, other, third])
    assert {host: clock.one(0) for host, clock in clocks.items()} == {
        "b": 5_000_000,
        "c": 9_000_000,
        "d": 5_000_000,
    }
    assert [warning.count for warning in warnings] == [1, 2]
    assert residual({host: clocks[host] for host in "bc"}) == 50


def test_a_clock_that_runs_wild_is_told() -> None:
    other = meta("b")
    other.exchanges = [
        exchange("init", (0, 50, 100)),
        exchange("finalize", (SECOND, SECOND + 5_000_050, SECOND + 100)),
    ]
    _, warnings = align([meta("a"), other])
    (warning,) = warnings
    assert "drifts by more than 1 ms per second" in warning.text
    assert warning.count == 1


@pytest.mark.parametrize("trip", [(100, 0, 50), None])
def test_impossible_round_trips_are_not_used(trip: tuple[int, int, int] | None) -> None:
    other = meta("b")
    other.exchanges = [exchange("init", *([trip] if trip else []))]
    clocks, _ = align([meta("a"), other])
    assert clocks["b"].residual is None
