"""The solid above planes, against the one that qhull finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial import HalfspaceIntersection

from popmodel.sensitivity.piecewise_linear import Envelope, Plane, above

UNIT = (0.0, 1.0)


def envelope(planes: list[Plane], dimensions: int) -> Envelope:
    found = above(planes[0], [UNIT] * dimensions)
    for plane in planes[1:]:
        found = found.with_(plane)
    return found


def corners_by_qhull(planes: list[Plane], dimensions: int) -> NDArray[np.float64]:
    """Corners of the solid above the planes, without those of a lid far above."""
    lid = 1e3
    rows = [[*plane.slopes, -1.0, plane.constant] for plane in planes]
    for axis in range(dimensions):
        side = [float(axis == other) for other in range(dimensions)]
        rows += [[*(-one for one in side), 0.0, 0.0], [*side, 0.0, -1.0]]
    rows.append([*[0.0] * dimensions, 1.0, -lid])
    inside = np.array([0.5] * dimensions + [lid / 2])
    found = HalfspaceIntersection(np.array(rows), inside).intersections
    return found[found[:, -1] < lid - 1]


@st.composite
def some_planes(draw: st.DrawFn, dimensions: int) -> list[Plane]:
    number = st.integers(-8, 8).map(lambda k: k / 4)  # many meet in one corner
    one = st.builds(Plane, number, st.tuples(*[number] * dimensions))
    return draw(st.lists(one, min_size=1, max_size=12, unique=True))


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@given(data=st.data())
def test_corners_are_those_of_qhull(dimensions: int, data: st.DataObject) -> None:
    planes = data.draw(some_planes(dimensions))
    found = envelope(planes, dimensions)
    mine = np.array([(*c, h) for c, h in zip(found.corners, found.heights, strict=True)])
    theirs = corners_by_qhull(planes, dimensions)
    apart = np.abs(mine[:, None, :] - theirs[None, :, :]).max(axis=2)
    assert apart.min(axis=1).max() < 1e-9
    assert apart.min(axis=0).max() < 1e-9


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@given(data=st.data())
def test_heights_are_those_of_the_greatest_plane(dimensions: int, data: st.DataObject) -> None:
    planes = data.draw(some_planes(dimensions))
    found = envelope(planes, dimensions)
    for corner, height in zip(found.corners, found.heights, strict=True):
        assert height == pytest.approx(max(one(*corner) for one in planes), abs=1e-12)
        assert height == pytest.approx(max(one(*corner) for one in found.greatest()), abs=1e-12)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_planes_that_are_never_alone_the_greatest_are_told(order: tuple[int, ...]) -> None:
    # the third touches the edge of the others
    planes = [Plane(0.0, (1.0,)), Plane(1.0, (-1.0,)), Plane(0.5, (0.0,))]
    found = envelope([planes[k] for k in order], 1)
    assert set(found.greatest()) == set(planes[:2])


def test_the_same_plane_again_changes_nothing() -> None:
    found = above(Plane(1.0, (2.0, 3.0)), [UNIT, UNIT])
    assert found.with_(Plane(1.0, (2.0, 3.0))) is found
    assert found.corners == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert found.heights == [1, 4, 3, 6]
