"""Faces and neighbours of a block of a grid."""

from __future__ import annotations

import itertools

import pytest

from popmodel.model.terms import message


def test_a_face_has_the_cells_of_the_other_dimensions() -> None:
    assert message.face_bytes([4, 5, 6], 1, 8) == [240, 192, 160]
    assert message.face_bytes([4, 5], 2, 8) == [80, 64]
    assert message.face_bytes([100], 3, 8) == [24]


@pytest.mark.parametrize("extent", [(1, 1), (2, 1), (2, 3), (3, 4), (1, 5)])
@pytest.mark.parametrize("periodic", list(itertools.product([False, True], repeat=2)))
def test_the_busiest_process_has_these_neighbours(
    extent: tuple[int, int], periodic: tuple[bool, bool]
) -> None:
    for dim, count in enumerate(message.neighbours(extent, periodic)):
        sent = [0] * (extent[0] * extent[1])
        for by in (-1, 1):
            targets = message.grid_neighbours(extent, dim, by, periodic=periodic[dim])
            for rank, target in enumerate(targets):
                sent[rank] += int(target >= 0 and target != rank)
        assert count == max(sent)
