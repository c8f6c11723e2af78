"""The cost of a message: limits, size classes, handshake, numbers and their formulas."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from popmodel.base.expressions.elementary import TracedExpression
from popmodel.network import point_to_point as p2p
from popmodel.network.point_to_point import SizeClass

CLASSES = [SizeClass(1000.0, 1e-6, 1e-9), SizeClass(None, 1.5e-6, 5e-10)]


def test_transfer_time_with_infinite_bandwidth_is_the_latency() -> None:
    assert p2p.transfer_time(1e6, 5e-6, float("inf")) == 5e-6
    assert p2p.transfer_time(1e6, 5e-6, 1e9) == pytest.approx(1.005e-3)


def test_size_classes_are_chosen_by_size_and_meet() -> None:
    assert p2p.by_size(500.0, CLASSES) == pytest.approx(1.5e-6)
    assert p2p.by_size(1000.0, CLASSES) == pytest.approx(2.0e-6)
    assert p2p.by_size(2000.0, CLASSES) == pytest.approx(2.5e-6)
    times = p2p.by_size(np.array([500.0, 1000.0, 2000.0]), CLASSES)
    np.testing.assert_allclose(times, [1.5e-6, 2.0e-6, 2.5e-6])


def test_size_classes_need_an_open_end() -> None:
    with pytest.raises(ValueError, match="last size class must have no upper bound"):
        p2p.by_size(1.0, CLASSES[:1])


@given(
    sizes=st.lists(st.floats(0, 1e7), min_size=2, max_size=2).map(sorted),
    alphas=st.lists(st.floats(1e-7, 1e-5), min_size=3, max_size=3),
    betas=st.lists(st.floats(0, 1e-8), min_size=3, max_size=3),
)
def test_a_larger_message_is_never_faster(
    sizes: list[float], alphas: list[float], betas: list[float]
) -> None:
    bounds = (100.0, 1e5, None)
    classes = [SizeClass(*entry) for entry in zip(bounds, alphas, betas, strict=True)]
    small, large = (p2p.by_size(size, classes) for size in sizes)
    assert large >= small * (1 - 1e-12)


def test_contention_only_matters_when_the_shared_part_is_the_bottleneck() -> None:
    few = p2p.contended(CLASSES, flows=2, shared_gap=1e-10)
    many = p2p.contended(CLASSES, flows=20, shared_gap=1e-10)
    assert [entry.beta for entry in few] == [1e-9, 5e-10]
    assert [entry.beta for entry in many] == [2e-9, 2e-9]


def test_ring_serialises_beyond_the_eager_threshold() -> None:
    assert p2p.ring_of_blocking_sends(2.0, 8, False) == 2.0
    assert p2p.ring_of_blocking_sends(2.0, 8, True) == 16.0
    assert p2p.exchange(2.0, 3.0) == 3.0


def test_a_message_of_the_threshold_waits_for_its_receiver() -> None:
    assert [bool(p2p.waits_for_receiver(size, 1024)) for size in (1023, 1024, 1025)] == [
        False,
        True,
        True,
    ]


@pytest.mark.parametrize("largest", [1024.0, 1024.7])
def test_the_largest_eager_message_of_a_profile_does_not_wait(largest: float) -> None:
    threshold = p2p.eager_threshold(largest)
    assert not p2p.waits_for_receiver(1024, threshold)
    assert p2p.waits_for_receiver(1025, threshold)


@pytest.mark.parametrize("size", [10, 1000, 1001, 5000])
def test_one_expression_serves_numbers_and_formulas(size: int) -> None:
    values = {"a": 1e-6, "b": 1e-9, "c": 1.5e-6, "d": 5e-10}
    a, b, c, d = (TracedExpression(value, sympy.Symbol(name)) for name, value in values.items())
    found = p2p.by_size(size, [SizeClass(1000, a, b), SizeClass(None, c, d)])
    assert found.value == p2p.by_size(size, CLASSES)
    assert float(found.formula.subs(values)) == pytest.approx(found.value)
