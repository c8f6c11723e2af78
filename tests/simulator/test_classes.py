"""Messages and collectives that cost the same on every network."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.kernel import _kernel
from popmodel.simulator.costs import BETWEEN, SELF, WITHIN, classes
from popmodel.simulator.program import ProgramBuilder

MESSAGES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from([0, 8, 2**40]), st.booleans()),
    max_size=200,
)


@given(MESSAGES)
def test_messages_of_a_class_have_its_size_mode_and_distance(messages: list) -> None:
    program = ProgramBuilder(4, nodes=[0, 0, 1, 1])
    for sender, receiver, size, buffered in messages:
        program.message(sender, receiver, size, buffered=buffered)
    found = classes(program.build())
    of = found.messages
    rows = list(zip(of.size.tolist(), of.mode.tolist(), of.distance.tolist(), strict=True))
    assert len(set(rows)) == len(rows)
    expected = [
        (size, int(buffered), SELF if s == r else WITHIN if s // 2 == r // 2 else BETWEEN)
        for s, r, size, buffered in messages
    ]
    assert [rows[k] for k in found.message.tolist()] == expected


def test_collectives_of_a_class_differ_in_nothing_that_costs() -> None:
    program = ProgramBuilder(4, nodes=[0, 0, 1, 1])
    inside = program.communicator([0, 1])
    for number, root in ((0, -1), (0, -1), (inside, -1), (0, 2), (0, 3)):
        program.collective("bcast", 8, 8, root=root, communicator=number)
    found = classes(program.build())
    a, b, c, d, e = found.collective.tolist()
    assert a == b
    assert d == e
    assert len({a, c, d}) == 3
    assert found.collectives.apart[[a, c]].tolist() == [True, False]
    assert found.collectives.rooted[[a, d]].tolist() == [False, True]


def test_a_communicator_that_nobody_lists_may_be_anywhere() -> None:
    program = ProgramBuilder(4, nodes=[0, 0, 1, 1])
    inside = program.communicator([0, 1])
    program.collective("barrier", communicator=inside)
    unlisted = replace(program.build(), communicators={})
    assert classes(unlisted).collectives.apart.tolist() == [True]


def test_the_core_refuses_processes_that_are_not_there() -> None:
    column = np.zeros(1, np.int32)
    with pytest.raises(ValueError, match="a process that is not there"):
        _kernel.message_classes(
            column, column + 2, np.zeros(1, np.int64), np.zeros(1, np.int8), column
        )
