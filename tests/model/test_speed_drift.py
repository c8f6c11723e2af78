"""Drift of computing: a walk whose doublings cover the way, and whose spread grows with it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.demo import machine
from model.test_model_error import AMOUNTS, WORK

from popmodel.model.model_error import ACTIVE, SIZE, doublings, drift_places, drifted
from popmodel.model.run.process_placement import place
from popmodel.model.uncertainty import FIRST, Draws, Drift, drawn_only

PLACEMENT = place(4, 2, machine().topology)
COMPUTED = ("serial", "stated", "share", "stretched", "serial_cycles", "region_cycles")


@given(st.floats(-30, 30), st.floats(-30, 30))
def test_doublings_cover_the_way_from_the_origin(origin: float, at: float) -> None:
    parts = list(doublings(SIZE, Drift(0.1, origin), at))
    names = [name for name, _ in parts]

    assert sum(part for _, part in parts) == pytest.approx(abs(at - origin))
    assert all(0 < part <= 1 for _, part in parts)
    assert all(part == 1 for _, part in parts[:-1])
    assert len(set(names)) == len(names)


def test_places_are_doublings_of_the_work_of_a_step_and_of_busy_cores() -> None:
    found = drift_places(WORK, PLACEMENT)
    assert found[SIZE] == pytest.approx(math.log2((WORK.share + WORK.serial) / WORK.steps))
    assert found[ACTIVE] == pytest.approx(math.log2(PLACEMENT.active))


@pytest.mark.parametrize("doublings", [1, 2, 4, 9])
def test_the_variance_grows_with_the_doublings(doublings: int) -> None:
    origin = drift_places(WORK, PLACEMENT)[SIZE] - doublings
    drawn = drifted(WORK, PLACEMENT, Draws({}, 4000), {SIZE: Drift(0.1, origin)})
    logs = np.log(drawn_only(drawn.share / WORK.share))

    assert np.var(logs) == pytest.approx(0.1**2 * doublings, rel=0.12)
    assert abs(float(np.mean(logs))) < 0.02
    assert list((drawn.share / WORK.share)[:FIRST]) == [1.0] * FIRST


def test_all_that_is_computed_drifts_alike_and_nothing_else_does() -> None:
    origin = drift_places(WORK, PLACEMENT)[SIZE] - 3
    drawn = drifted(WORK, PLACEMENT, Draws({}, 20), {SIZE: Drift(0.1, origin)})
    factor = drawn.share / WORK.share
    for name in COMPUTED:
        np.testing.assert_allclose(getattr(drawn, name), getattr(WORK, name) * factor)
    for name in ("overhead", "waiting", "transfer", "measured", "single_thread", *AMOUNTS):
        assert getattr(drawn, name) == getattr(WORK, name)
