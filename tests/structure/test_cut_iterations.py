"""Iterations that the end of a window cuts: part of the loop where their messages are of it."""

import pytest
from structure.test_flows import strays
from synthetic import programs, run

from popmodel.simulator.program import Op, ProgramBuilder
from popmodel.structure.iterations import find, structure_of
from popmodel.structure.structure import FoundLoop, leaves
from popmodel.traces.selection import PROGRAM, focused


def cut(tmp_path, program, seed):
    """Structure of a program until the first of its processes ends."""
    done = run(program, persistent=0.05, transient=0.03, seed=seed)
    return find(focused(done.read(tmp_path), PROGRAM)[0])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_cut_iteration_of_a_butterfly_is_one_of_the_loop(tmp_path, seed):
    found = cut(tmp_path, programs.butterfly(8, 10), seed)
    (loop,) = found.nest
    assert isinstance(loop, FoundLoop)
    assert loop.counts == (10,)
    assert len(found.places) == 3
    assert strays(found) == 0


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_cut_sweep_of_a_wavefront_is_one_of_the_loop(tmp_path, seed):
    found = cut(tmp_path, programs.pipeline((4, 2), 6, norm=0), seed)
    assert isinstance(found.nest[0], FoundLoop)
    assert found.nest[0].counts == (6,)
    assert strays(found) == 0


def ends_in_loop(found, sequence):
    """Whether the last event of a sequence is in the first loop."""
    place = found.place[found.events.offsets[sequence + 1] - 1]
    held = [number for leaf in leaves(found.nest[:1]) for number in leaf.places]
    return place in held


def test_an_end_like_the_begin_of_the_loop_stays_where_all_have_it():
    builder = ProgramBuilder(2)
    for tag in [1, 2, 3] * 6 + [1]:
        message = builder.message(0, 1, 8, tag=tag)
        builder.do(0, Op.SEND, message)
        builder.do(1, Op.RECEIVE, message)
    found = structure_of(builder.build())
    assert found.nest[0].counts == (6,)
    assert not ends_in_loop(found, 0)
    assert len(found.nest) == 2
