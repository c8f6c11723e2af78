"""Where runs stand beside those that the model was fitted to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.model.posterior import Calibration
from popmodel.validation.comparison import (
    BOUNDARY,
    CALIBRATION,
    EXTRAPOLATION,
    INTERPOLATION,
    REPETITION,
    FitRegion,
    Training,
    joined,
    of_calibration,
    of_runs,
    region_of,
)

from .cases import run


def one_node(processes: int, threads: int) -> int:
    assert processes * threads
    return 1


FIT = of_runs([run(1, 1, 8.0), run(8, 1, 1.0), run(2, 4, 1.1)], one_node)


def test_a_run_that_was_used_is_known_by_its_numbers_not_by_its_file() -> None:
    again = replace(run(8, 1, 1.0), source="elsewhere.csv", line=7)
    assert region_of(again, 1, FIT) == FitRegion(CALIBRATION)
    assert not region_of(again, 1, FIT).is_test


def test_another_run_of_a_configuration_of_the_fit_repeats_it() -> None:
    found = region_of(run(8, 1, 1.01), 1, FIT)
    assert (found.name, found.is_test) == (REPETITION, False)


@pytest.mark.parametrize(
    ("p", "t", "nodes", "n", "beyond"),
    [
        (4, 1, 1, 8.0, {}),
        (2, 2, 1, 8.0, {}),
        (32, 1, 1, 8.0, {"P": 4.0}),
        (1, 8, 1, 8.0, {"T": 2.0}),
        (8, 4, 1, 8.0, {"cores": 4.0}),  # each within its range, and more cores than ever
        (16, 8, 1, 8.0, {"P": 2.0, "T": 2.0}),
        (4, 1, 1, 24.0, {"N": 3.0}),
        (4, 1, 1, 2.0, {"N": 4.0}),
        (4, 1, 2, 8.0, {BOUNDARY: 2.0}),
        (4, 1, None, 8.0, {}),
    ],
)
def test_beyond_the_fit(
    p: int, t: int, nodes: int | None, n: float, beyond: dict[str, float]
) -> None:
    found = region_of(run(p, t, 0.7, n=n), nodes, FIT)
    assert found.name == (EXTRAPOLATION if beyond else INTERPOLATION)
    assert found.beyond == pytest.approx(beyond)
    assert found.is_test


def test_more_nodes_than_several_are_no_boundary() -> None:
    several = of_runs([run(1, 1, 1.0), run(8, 1, 1.0)], lambda p, _: 1 if p == 1 else 2)
    assert region_of(run(4, 1, 1.0), 6, several).beyond == {"nodes": 3.0}


@given(st.lists(st.tuples(st.integers(1, 64), st.integers(1, 8)), min_size=1, max_size=6))
def test_no_run_of_a_fit_is_beyond_it(sizes: list[tuple[int, int]]) -> None:
    fit = of_runs([run(p, t, 1.0) for p, t in sizes], one_node)
    assert all(region_of(run(p, t, 2.0), 1, fit).name == REPETITION for p, t in sizes)


def calibration(*digests: str) -> Calibration:
    empty = np.zeros((0, 0))
    hull = {"P": (1.0, 4.0), "T": (1.0, 2.0)}
    known = dict.fromkeys(digests, "a run")
    return Calibration("vm", "0" * 64, (), np.zeros(0), empty, hull=hull, runs=known)


def test_a_calibrated_signature_knows_its_runs() -> None:
    used, other = run(4, 1, 1.0), run(4, 2, 1.0)
    both = [(used, used), (other, other)]
    found = of_calibration(calibration(used.digest, "f" * 16), both)
    assert found.runs == (used,)
    assert region_of(used, 1, found).name == CALIBRATION
    assert region_of(other, 1, found).name == INTERPOLATION
    assert region_of(run(8, 1, 1.0), 1, found).beyond == {"P": 2.0}


def test_the_cores_of_a_calibration_are_known_where_all_its_runs_are() -> None:
    used = [run(4, 1, 1.0), run(1, 2, 1.0)]
    whole = calibration(*(one.digest for one in used))
    found = of_calibration(whole, [(one, one) for one in used])
    assert region_of(run(4, 2, 1.0), 1, found).beyond == {"cores": 2.0}
    part = of_calibration(whole, [(used[0], used[0])])
    assert region_of(run(4, 2, 1.0), 1, part).name == INTERPOLATION


def test_a_run_that_was_used_with_less_parameters_is_known_too() -> None:
    read, whole = replace(run(4, 1, 1.0), parameters={}), run(4, 1, 1.0)
    found = of_calibration(calibration(read.digest), [(read, whole)])
    assert region_of(whole, 1, found).name == CALIBRATION


def test_several_fits_together() -> None:
    assert joined([]) is None
    found = joined([FIT, of_calibration(calibration("f" * 16), [])])
    assert isinstance(found, Training)
    assert found.hull == {"P": (1, 8), "T": (1, 4)}  # what one of them leaves open is open
    assert found.digests == FIT.digests | {"f" * 16}
    assert found.runs == FIT.runs
