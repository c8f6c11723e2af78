"""Loops that exchange messages are one loop of the common nest: counted message by message."""

import numpy as np
import pytest
from synthetic import programs, run

from popmodel.simulator.program import Op, ProgramBuilder
from popmodel.structure.common_nest import _ends, flows_of
from popmodel.structure.iterations import find
from popmodel.structure.program_events import events_of
from popmodel.structure.repetition import repeated
from popmodel.structure.structure import loops_around
from popmodel.traces import read


def strays(structure):
    """Messages that are not received in the loop and iteration that they are sent in."""
    sent, received = _ends(structure.program, structure.events)
    innermost = [id(path[-1]) if path else -1 for path in loops_around(structure.nest)]
    around = np.array(innermost)[structure.place]
    same = around[sent] == around[received]
    same &= structure.execution[sent] == structure.execution[received]
    return int(np.count_nonzero(~same))


@pytest.mark.long(after=6)
@pytest.mark.parametrize("dims", [(4, 2), (2, 4), (3, 3), (2, 2, 2), (5,)])
@pytest.mark.parametrize("norm", [0, 1, 3])
def test_sweeps_of_all_ranks_are_laid_beside_one_another(tmp_path, dims, norm):
    done = run(programs.pipeline(dims, 6, norm=norm, cells=[240] * len(dims)), transient=0.05)
    found = find(done.read(tmp_path))
    assert strays(found) == 0
    assert found.loop is not None


def test_sweeps_of_a_real_program_are(real_trace):
    assert strays(find(read(real_trace("lu.S.4")))) == 0


def test_loops_of_a_real_program_with_many_particles_are(real_trace):
    assert strays(find(read(real_trace("epoch_4proc")))) == 0


def flows(program):
    events = events_of(program)
    return flows_of(program, events, repeated(events))


def test_the_loop_of_a_master_is_that_of_no_worker():
    builder = ProgramBuilder(4)
    for worker in np.random.default_rng(1).permutation([1, 2, 3] * 20).tolist():
        for sender, receiver in ((0, worker), (worker, 0)):
            message = builder.message(sender, receiver, 8)
            builder.do(sender, Op.SEND, message)
            builder.do(receiver, Op.RECEIVE, message)
    first, *others = flows(builder.build())
    numbers = set(first.tolist()) - {-1}
    assert all(numbers.isdisjoint(each.tolist()) for each in others)
