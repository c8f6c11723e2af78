"""Programs that are built operation by operation."""

import numpy as np
import pytest

from popmodel.simulator.program import Op, ProgramBuilder


def chain(blocks, repeated):
    """Blocks from the first to the second process, step by step or repeated."""
    build = ProgramBuilder(2)
    row = build.message(0, 1, 8, tag=3)
    if repeated:
        build.messages_again(1, blocks - 1)
        for process, op in ((0, Op.SEND), (1, Op.RECEIVE)):
            with build.repeated(process, blocks, 1):
                build.compute(process, 1e-6)
                build.do(process, op, row)
    else:
        rows = [row, *(build.message(0, 1, 8, tag=3) for _ in range(blocks - 1))]
        for process, op in ((0, Op.SEND), (1, Op.RECEIVE)):
            for each in rows:
                build.compute(process, 1e-6)
                build.do(process, op, each)
    build.compute(1, 2e-6)
    return build.build()


@pytest.mark.parametrize("blocks", [1, 2, 7])
def test_what_is_repeated_is_as_if_written_out(blocks):
    one, other = chain(blocks, repeated=True), chain(blocks, repeated=False)
    for name in ("offsets", "kind", "target", "burst", "tail", "call"):
        mine, theirs = getattr(one, name), getattr(other, name)
        np.testing.assert_array_equal(mine, theirs)
        assert mine.dtype == theirs.dtype
    for name in ("sender", "receiver", "size", "tag"):
        np.testing.assert_array_equal(getattr(one.messages, name), getattr(other.messages, name))


def test_computing_alone_is_repeated():
    build = ProgramBuilder(1)
    build.compute(0, 1e-6)
    with build.repeated(0, 5, 0):
        build.compute(0, 2e-6)
    assert build.build().tail == pytest.approx([11e3])


def test_what_is_repeated_begins_and_ends_with_operations():
    build = ProgramBuilder(2)
    row = build.message(0, 1, 8)
    with (
        pytest.raises(ValueError, match="what is repeated begins and ends with operations"),
        build.repeated(0, 2, 1),
    ):
        build.do(0, Op.SEND, row)
        build.compute(0, 1e-6)
