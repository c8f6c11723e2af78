"""Structure found in simulated runs, beside what their programs did: iterations to the nanosecond.

The programs are plain Python (`synthetic.programs`), with persistent and transient imbalance; they
know when each of their processes began each iteration.
"""

from pathlib import Path

import numpy as np
import pytest
from synthetic import Network, Program, programs, run
from synthetic.program import Rank, Steps

from popmodel.simulator.from_trace import from_trace
from popmodel.structure.iterations import find
from popmodel.structure.program_events import events_of
from popmodel.structure.repetition import repeated

EXACT = {
    "halos in 1-D, no meeting of all": programs.jacobi((8,), 50, residual=0),
    "halos in 1-D, blocking": programs.jacobi((5,), 10, residual=0, how="blocking"),
    "halos in 2-D": programs.jacobi((4, 4), 40),
    "halos in 3-D, periodic, sendrecv": programs.jacobi(
        (2, 2, 3), 10, periodic=True, how="sendrecv"
    ),
    "regions of threads": programs.jacobi((2, 2), 10, threads=4, uneven=0.2, serial=0.1),
    "one process": programs.jacobi((1,), 30),
    "sums over rows and transposes": programs.rows_and_transposes(2, 4, 15, 5),
    "all of them on a square": programs.rows_and_transposes(4, 4, 3, 25),
    "transposes": programs.transposes(4, 6),
    "transposes by hand": programs.transposes(4, 6, how="pairwise"),
    "levels": programs.levels((2, 2, 2), 4),
    "master and workers": programs.master_worker(5, 60, rounds=4),
    "random graph": programs.random_graph(8, 20),
}


@pytest.mark.long(after=8)
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("program", EXACT.values(), ids=EXACT)
def test_iterations_begin_when_they_did(program: Program, seed: int, tmp_path: Path) -> None:
    done = run(program, persistent=0.1, transient=0.1, seed=seed)
    found = find(done.read(tmp_path))
    assert found.iterations.T.tolist() == done.iterations


@pytest.mark.parametrize("imbalance", [0.0, 0.3])
def test_how_uneven_processes_are_does_not_matter(imbalance: float, tmp_path: Path) -> None:
    done = run(programs.jacobi((4, 2), 20, residual=0), persistent=imbalance, transient=imbalance)
    found = find(done.read(tmp_path))
    assert found.iterations.T.tolist() == done.iterations
    begins = np.array(done.iterations) * 1e-9
    assert found.period == pytest.approx(np.median(np.diff(begins, axis=1)), rel=0.2)


def test_how_many_blocks_a_sweep_has_does_not_change_its_places(tmp_path: Path) -> None:
    sizes = []
    for blocks in (4, 12, 32):
        program = programs.pipeline((3, 4), 10, blocks=blocks, cells=(960, 960))
        trace = run(program).read(tmp_path)
        nests = repeated(events_of(from_trace(trace), trace)).nests
        sizes.append([len(each.token) for each in nests])
    assert sizes[0] == sizes[1] == sizes[2]


def solver(solves: int, warm_up: float, step: float) -> Program:
    """A solve to warm up and some more with a norm after each; 26 products and sums in a solve."""

    def solve(me: Rank, seconds: float) -> Steps:
        for _ in range(26):
            yield me.compute(seconds)
            yield me.collective("Allreduce", 1 << 20)

    def body(me: Rank) -> Steps:
        yield from solve(me, warm_up)
        yield me.collective("Barrier")
        for _ in range(solves):
            yield me.iteration()
            yield from solve(me, step)
            yield me.collective("Reduce", 8)
        yield me.iteration()
        yield me.collective("Barrier")

    return Program(4, body)


@pytest.mark.parametrize("warm_up", [1e-5, 1e-3, 1e-2])
def test_a_warm_up_that_computes_more_is_no_iteration(warm_up: float, tmp_path: Path) -> None:
    done = run(solver(15, warm_up, 1e-5), network=Network(bandwidth=1e9))
    found = find(done.read(tmp_path))
    assert found.loop is not None
    assert found.loop.counts == (15,)
    assert found.iterations.T.tolist() == done.iterations
