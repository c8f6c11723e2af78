"""Iterations that differ become loops one after the other, or around their period."""

import numpy as np
import pytest

from popmodel.signature.loops import _stretches


def shape(kinds):
    found = _stretches(np.array(kinds))
    return None if found is None else [(n, [count for count, _ in steps]) for n, steps in found]


def covered(kinds):
    return sorted(
        int(i) for _, steps in _stretches(np.array(kinds)) for _, which in steps for i in which
    )


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ([0] * 7, [(7, [1])]),
        ([0, 0, 0, 0, 1] * 4, [(4, [4, 1])]),
        ([0, 0, 0, 0, 1] * 3 + [0, 0], [(3, [4, 1]), (2, [1])]),
        ([1] + [0] * 9, [(1, [1]), (9, [1])]),
        ([0, 1], [(1, [1]), (1, [1])]),
    ],
)
def test_what_comes_again_is_one_loop(kinds, expected):
    assert shape(kinds) == expected
    assert covered(kinds) == list(range(len(kinds)))


def test_no_order_is_none():
    rng = np.random.default_rng(1)
    assert _stretches(rng.permutation(40)) is None
