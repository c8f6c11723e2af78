"""Bodies of ranks side by side: pairs of items against the plainest search, and their order."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.kernel import _kernel
from popmodel.simulator.program import Op, ProgramBuilder
from popmodel.structure.iterations import structure_of

WORTH = np.array([3.0, 2.0, 0.5])
ROWS = st.lists(st.tuples(*[st.integers(-1, 2)] * 3), max_size=6)


def likeness(one, other):
    for a, b, worth in zip(one, other, WORTH, strict=True):
        if a == b and a >= 0:
            return worth
    return 0.0


def best(one, other):
    """The most that pairs of two short lists can be worth, trying all."""
    most = 0.0
    for size in range(1, min(len(one), len(other)) + 1):
        for left in itertools.combinations(one, size):
            for right in itertools.combinations(other, size):
                worth = [likeness(a, b) for a, b in zip(left, right, strict=True)]
                if all(worth):
                    most = max(most, sum(worth))
    return most


@given(ROWS, ROWS)
def test_pairs_are_worth_the_most(one, other):
    columns = [np.array(each, np.int64).reshape(-1, 3) for each in (one, other)]
    first, second = _kernel.align(*columns, WORTH)
    assert np.all(np.diff(first) > 0)
    assert np.all(np.diff(second) > 0)
    worth = [likeness(one[a], other[b]) for a, b in zip(first, second, strict=True)]
    assert all(worth)
    assert sum(worth) == pytest.approx(best(one, other))


def test_labels_of_different_widths_are_refused():
    with pytest.raises(ValueError, match="different lengths"):
        _kernel.align(np.zeros((1, 2), np.int64), np.zeros((1, 3), np.int64), WORTH)


def names(found):
    return [f"{place.name}" for place in found.places]


def test_neighbours_that_are_missing_leave_places_empty():
    builder = ProgramBuilder(5)
    for _ in range(10):
        for process in range(5):
            builder.compute(process, 1e-3)
        for low in range(4):
            up, down = builder.message(low, low + 1, 8), builder.message(low + 1, low, 8)
            builder.do(low, Op.ISEND, up)
            builder.do(low + 1, Op.ISEND, down)
            builder.do(low, Op.RECEIVE, down)
            builder.do(low + 1, Op.RECEIVE, up)
    found = structure_of(builder.build())
    assert found.loop is not None
    assert found.loop.counts == (10,)
    # One send and receive with the process below, one with that above.
    assert len(found.places) == 4
    offsets = found.events.offsets
    passed = [set(found.place[offsets[p] : offsets[p + 1]].tolist()) for p in range(5)]
    assert passed[1] == passed[2] == passed[3] == {0, 1, 2, 3}
    assert passed[0] | passed[4] == {0, 1, 2, 3}
    assert not passed[0] & passed[4]


def test_a_root_that_gathers_in_a_loop_of_its_own():
    builder = ProgramBuilder(6)
    for _ in range(8):
        for process in range(1, 6):
            builder.compute(process, 1e-3)
            message = builder.message(process, 0, 8)
            builder.do(process, Op.SEND, message)
            builder.do(0, Op.RECEIVE, message)
        target = builder.collective("barrier")
        for process in range(6):
            builder.do(process, Op.COLLECTIVE, target)
    found = structure_of(builder.build())
    assert found.loop is not None
    assert found.loop.counts == (8,)
    assert sorted(names(found))[0] == "collective"
    assert not found.notes


def test_processes_that_do_nothing_alike_are_said():
    builder = ProgramBuilder(3)
    for op, process in ((Op.SEND, 0), (Op.ISEND, 1)):
        for _ in range(6):
            message = builder.message(process, 2, 8)
            builder.do(process, op, message)
            builder.do(2, Op.RECEIVE, message)
    found = structure_of(builder.build())
    assert found.notes[-1] == (
        "3 of 3 processes and threads do mostly what no other does: their calls could not be put "
        "beside those of others"
    )


def test_processes_that_compute_nothing_have_iterations():
    builder = ProgramBuilder(2)
    for _ in range(5):
        messages = [builder.message(rank, 1 - rank, 8) for rank in range(2)]
        for rank in range(2):
            builder.do(rank, Op.POST, messages[1 - rank])
            builder.do(rank, Op.SEND, messages[rank])
            builder.do(rank, Op.WAIT_RECEIVE, messages[1 - rank])
    found = structure_of(builder.build())
    assert [one.counts for one in found.nest] == [(5,)]
