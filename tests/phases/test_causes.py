"""Why processes take different time: instructions, IPC or frequency."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.phases.imbalance import causes

EACH = st.lists(
    st.tuples(st.floats(1e6, 1e9), st.floats(0.2, 4), st.floats(1e9, 4e9)), min_size=1, max_size=9
)


@given(EACH)
def test_the_factors_multiply_to_the_imbalance(each: list[tuple[float, float, float]]) -> None:
    instructions, ipc, frequency = (np.array(column) for column in zip(*each, strict=True))
    cycles = instructions / ipc
    found = causes(cycles / frequency, instructions, cycles)
    assert found is not None
    assert found.instructions is not None
    assert found.ipc is not None
    assert found.frequency is not None
    product = found.instructions * found.ipc * found.frequency
    assert product == pytest.approx(1 / found.balance, rel=1e-9)
    if found.balance < 1 - 1e-9:
        shares = sum(found.share(cause) for cause in ("instructions", "ipc", "frequency"))
        assert shares == pytest.approx(1, rel=1e-6)


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
    assert found.main == cause
    assert found.process == 3
    assert found.balance == pytest.approx(1.25 / 2)
    assert found.share(cause) == pytest.approx(1)


def test_without_counters_the_cause_is_not_known() -> None:
    found = causes(np.array([1.0, 3.0]))
    assert found is not None
    assert (found.balance, found.process, found.main) == (pytest.approx(2 / 3), 1, None)


def test_without_cycles_instructions_are_told_alone() -> None:
    found = causes(np.array([1.0, 3.0]), np.array([1e6, 1e6]))
    assert found is not None
    assert (found.instructions, found.ipc) == (1.0, None)


def test_nothing_computed_has_no_balance() -> None:
    assert causes(np.zeros(3)) is None


def test_balanced_processes_have_nothing_to_explain() -> None:
    found = causes(np.ones(2), np.ones(2), np.ones(2))
    assert found is not None
    assert found.share("instructions") == 0
    assert math.isclose(found.balance, 1)
