"""A solver like LU of the NAS benchmarks, replayed as the operations of its processes.

Sweeps forward and backward through planes, on a two-dimensional grid of processes, halos of the
right-hand side, a reduction now and then. A signature written from knowledge of the program
predicts it.
"""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest
from model.demo import exact, machine, program

from popmodel.machines.profile import from_document
from popmodel.network.network import PRESETS
from popmodel.prediction.prediction import predict
from popmodel.simulator import replay
from popmodel.simulator.program import Op, Program, ProgramBuilder

SIDE, PLANES, STEPS, EVERY = 64, 62, 4, 2
CELL, RHS = 0.5e-6, 0.4e-6  # seconds of a cell in a sweep, and in the right-hand side
LATENCY, BANDWIDTH = 5e-6, 2e9
NETWORK = PRESETS["alpha-beta"].with_(latency=LATENCY, bandwidth=BANDWIDTH, eager_threshold=65536)


def solver(extent: tuple[int, int], noise: float) -> Program:
    """What all processes do; every burst is a little different."""
    builder = ProgramBuilder(extent[0] * extent[1])
    rank = {at: n for n, at in enumerate(itertools.product(*map(range, extent)))}
    local = SIDE // extent[0], SIDE // extent[1]
    random = np.random.default_rng(5)

    def compute(at: tuple[int, int], seconds: float) -> None:
        builder.compute(rank[at], seconds * random.normal(1, noise))

    def next_to(at: tuple[int, int], dim: int, by: int) -> tuple[int, int] | None:
        there = (at[0] + by, at[1]) if dim == 0 else (at[0], at[1] + by)
        return there if there in rank else None

    def sweep(way: int) -> None:
        def rows() -> dict[tuple[object, object], int]:
            return {
                (at, to): builder.message(rank[at], rank[to], 40 * local[1 - dim])
                for at in rank
                for dim in (0, 1)
                if (to := next_to(at, dim, way))
            }

        sent = [rows() for _ in range(PLANES)]
        for at in rank:
            for plane in sent:
                for dim in (0, 1):
                    if before := next_to(at, dim, -way):
                        builder.do(rank[at], Op.RECEIVE, plane[before, at])
                compute(at, CELL * local[0] * local[1])
                for dim in (0, 1):
                    if to := next_to(at, dim, way):
                        builder.do(rank[at], Op.SEND, plane[at, to])

    def halo() -> None:
        sent = {
            (at, to): builder.message(rank[at], rank[to], 2 * 40 * local[1 - dim] * PLANES)
            for at in rank
            for dim in (0, 1)
            for by in (-1, 1)
            if (to := next_to(at, dim, by))
        }
        for at in rank:
            mine = [row for (one, _), row in sent.items() if one == at]
            theirs = [row for (_, one), row in sent.items() if one == at]
            for op, group in (
                (Op.POST, theirs),
                (Op.ISEND, mine),
                (Op.WAIT_RECEIVE, theirs),
                (Op.WAIT_SEND, mine),
            ):
                for row in group:
                    builder.do(rank[at], op, row)

    for step in range(STEPS):
        for at in rank:
            compute(at, RHS * local[0] * local[1] * PLANES)
        halo()
        sweep(1)
        sweep(-1)
        if (step + 1) % EVERY == 0:
            norm = builder.collective("allreduce", 40, 40)
            for at in rank:
                builder.do(rank[at], Op.COLLECTIVE, norm)
    return builder.build()


SIGNATURE = """
[params]
N = 64
K = 62
[decomp]
global = ["N", "N"]
grid = {grid}
[[program]]
loop = {{ count = 4 }}
[[program.body]]
serial = {{ name = "rhs", trip = "n0*n1*K", seconds = 0.4e-6 }}
[[program.body]]
halo = {{ width = 2, bytes_per_cell = "40*K", pack = "none" }}
[[program.body]]
[program.body.pipeline]
name = "lower"
dims = [0, 1]
blocks = "K"
seconds = "0.5e-6*n0*n1*K"
bytes = "40*max(n0, n1)"
[[program.body]]
[program.body.pipeline]
name = "upper"
dims = [0, 1]
direction = "backward"
blocks = "K"
seconds = "0.5e-6*n0*n1*K"
bytes = "40*max(n0, n1)"
[[program.body]]
collective = {{ op = "allreduce", bytes = 40, every = 2 }}
"""


@pytest.mark.long(after=3)
@pytest.mark.parametrize("extent", [(2, 2), (4, 2), (4, 4), (8, 4), (8, 8)], ids=str)
def test_a_solver_with_forward_and_backward_sweeps(extent: tuple[int, int]) -> None:
    document = copy.deepcopy(dict(machine().document))
    document["topology"] |= {"cores_per_node": 64}
    document["net"]["intra"] = {
        "classes": [{"alpha": exact(LATENCY), "beta": exact(1 / BANDWIDTH)}],
        "eager_threshold": exact(65536),
        "os": exact(0.0),  # of this network
    }
    del document["net"]["shm_k"]
    truth = solver(extent, noise=0.02)
    measured, ideal = (replay(truth, network).runtime for network in (NETWORK, PRESETS["ideal"]))
    processes = extent[0] * extent[1]
    signature = program(SIGNATURE.format(grid=list(extent)))
    found = predict(signature, from_document(document), processes, 1, draws=0)
    assert found.agreement is not None
    for course in (found.agreement.replay, found.agreement.closed_form):
        assert course.runtime == pytest.approx(measured, rel=0.02)
        assert course.ideal == pytest.approx(ideal, rel=0.02)
    serialisation = replay(truth, NETWORK).compute.max() / ideal
    shown = found.metrics["mpi"]["serialisation_efficiency"].value
    assert shown == pytest.approx(serialisation, abs=0.015)
