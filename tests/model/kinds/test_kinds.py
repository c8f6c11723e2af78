"""Schedules, critical sections, tasks, halos, pipelines and collectives of a signature."""

import copy
from math import prod
from typing import Any

import numpy as np
import pytest
from model.demo import exact, machine, program

from popmodel.base.errors import UsageError
from popmodel.machines.profile import Profile, from_document
from popmodel.model.kinds.collective import Collective
from popmodel.model.run.collective_times import RunTeams
from popmodel.model.run.operations import RunMessages
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.process_placement import place
from popmodel.model.run.work import RunWork
from popmodel.model.signature.application import Signature
from popmodel.model.terms import openmp
from popmodel.model.tree import prepare
from popmodel.network import collectives
from popmodel.network.network import PRESETS
from popmodel.prediction.prediction import predict
from popmodel.simulator import replay
from popmodel.simulator.program import Op, ProgramBuilder


def with_openmp(**seconds: float) -> Profile:
    """The round machine with an overhead for further constructs, the same at 1 and 8 threads."""
    document = copy.deepcopy(dict(machine().document))
    document["openmp"] |= {
        name: {"T": [1, 8], "seconds": [exact(value), exact(value)]}
        for name, value in seconds.items()
    }
    return from_document(document)


def with_coll(op: str, rows: list[dict[str, Any]]) -> Profile:
    document = copy.deepcopy(dict(machine().document))
    document["coll"] = {op: [row | {"seconds": exact(1e-6)} for row in rows]}
    return from_document(document)


def walk(signature: Signature, profile: Profile, processes: int, threads: int) -> RunWork:
    placement = place(processes, threads, profile.topology)
    values = {name: quantity.value for name, quantity in signature.inputs.items()}
    parameters = Parameters(profile, lambda path: profile.get(path).value)
    return prepare(signature, placement, parameters, values).work().total


# -- threads


@pytest.mark.parametrize("kind", ["dynamic", "guided"])
def test_chunks_are_fetched_by_the_threads(kind: str) -> None:
    text = f"""
[[program]]
parallel = {{ trip = 100, inner = 1000, flops = 4, schedule = "{kind}", chunk = 3,\
 constructs = {{}} }}
"""
    fetch = 2e-7
    work = walk(program(text), with_openmp(**{f"{kind}_chunk": fetch}), 1, 8)
    iteration = 1000 * 3 / 2e9  # 2 cycles for the flops, 1 of loop control
    law = openmp.dynamic_time if kind == "dynamic" else openmp.guided_time
    assert work.share == pytest.approx(100 * iteration / 8)
    assert work.stretched == pytest.approx(law(100, iteration, 8, 3))
    assert work.stretched + work.overhead == pytest.approx(
        law(100, iteration, 8, 3, overhead=fetch)
    )
    assert work.stretched >= work.share


def test_threads_queue_for_a_critical_section() -> None:
    text = """
[[program]]
[program.parallel]
trip = 8
inner = 1e6
flops = 2
constructs = {}
critical = { entries = 100, seconds = 1e-6 }
"""
    work = walk(program(text), with_openmp(critical=1e-7), 1, 8)
    alone = 1e6 * 2 / 2e9
    round_ = openmp.random_round(8, alone / 100, 1.1e-6)
    assert work.share == pytest.approx(alone + 100e-6)
    assert work.parallel == pytest.approx(100 * round_)
    assert work.synchronising == pytest.approx(100 * (round_ - 1e-6) - alone)


def test_tasks_share_the_threads() -> None:
    text = "[[program]]\ntask = { count = 1000, seconds = 1e-5, span = 2e-5 }"
    work = walk(program(text), with_openmp(task=1e-7, parallel=5e-7), 1, 8)
    assert work.share == pytest.approx(1e-2 / 8)
    assert work.parallel == pytest.approx(openmp.task_time(1000, 1e-5, 2e-5, 8, 1e-7) + 5e-7)
    assert work.single_thread == pytest.approx(1e-2)


# -- processes

GRID = """
[params]
N = 64
[decomp]
global = ["N", "N", "N"]
periodic = [{wraps}]
"""
HALO = """
[[program]]
halo = {{ width = 1, bytes_per_cell = 8, mode = "{mode}", pack = "none" }}
"""


def halo_program(mode: str, wraps: bool) -> Signature:
    flags = ", ".join([str(wraps).lower()] * 3)
    return program(GRID.format(wraps=flags) + HALO.format(mode=mode))


def replayed_halo(extent: tuple[int, ...], wraps: bool, alpha: float, beta: float) -> float:
    """Messages of an exchange one after the other by every process, both ends blocked by one."""
    size = prod(extent)
    shape = np.array(extent)
    builder = ProgramBuilder(size)
    sends: dict[int, list[int]] = {rank: [] for rank in range(size)}
    receives: dict[int, list[int]] = {rank: [] for rank in range(size)}
    for dim in range(3):
        face = 8 * int(np.prod(np.delete(64 // shape, dim)))
        for by in (-1, 1):
            for rank in range(size):
                place_ = np.array(np.unravel_index(rank, extent))
                place_[dim] += by
                if wraps:
                    place_ %= shape
                elif not 0 <= place_[dim] < shape[dim]:
                    continue
                other = int(np.ravel_multi_index(tuple(place_), extent))
                if other != rank:
                    sends[rank].append(builder.message(rank, other, face, tag=2 * dim + by))
                    receives[other].append(sends[rank][-1])
    for rank in range(size):
        for message in receives[rank]:
            builder.do(rank, Op.POST, message)
        for message in sends[rank]:
            builder.do(rank, Op.SEND, message)
        for message in receives[rank]:
            builder.do(rank, Op.WAIT_RECEIVE, message)
    network = PRESETS["alpha-beta"].with_(latency=alpha, bandwidth=1 / beta, eager_threshold=0)
    return replay(builder.build(), network).runtime


def flat(alpha: float, beta: float) -> Profile:
    """One large node without crowding."""
    document = copy.deepcopy(dict(machine().document))
    document["topology"]["cores_per_node"] = 64
    document["net"]["intra"]["classes"] = [{"alpha": exact(alpha), "beta": exact(beta)}]
    del document["net"]["shm_k"]
    return from_document(document)


@pytest.mark.parametrize("wraps", [False, True])
@pytest.mark.parametrize("processes", [1, 2, 4, 8, 16, 64])
def test_a_blocking_halo_takes_what_its_messages_take(processes: int, wraps: bool) -> None:
    alpha, beta = 1e-6, 1e-9
    signature = halo_program("blocking", wraps)
    work = walk(signature, flat(alpha, beta), processes, 1)
    placement = place(processes, 1, flat(alpha, beta).topology)
    parameters = Parameters(flat(alpha, beta), lambda path: flat(alpha, beta).get(path).value)
    extent = prepare(signature, placement, parameters, {"N": 64.0}).point.extent
    assert work.transfer == pytest.approx(replayed_halo(extent, wraps, alpha, beta), rel=1e-12)


def test_a_nonblocking_halo_pays_the_latency_once() -> None:
    alpha, beta = 1e-6, 1e-9
    blocking, both = (
        walk(halo_program(mode, False), flat(alpha, beta), 64, 1).transfer
        for mode in ("blocking", "nonblocking")
    )
    # 4 x 4 x 4 processes: 6 neighbours of an inner one
    assert both == pytest.approx(alpha + 6 * beta * 8 * 16 * 16)
    assert blocking == pytest.approx(both + 5 * alpha)


def test_faces_between_nodes_go_over_the_adapter() -> None:
    work = walk(halo_program("nonblocking", False), machine(), 64, 1)
    # nodes of 8: planes of 2 x 4 in dimensions 1 and 2. Dimension 0, and one side of dimension 1,
    # lead to other nodes; all 8 processes of a node send there, through an adapter of 1.5e-10 s/B.
    face = 8 * 16 * 16
    per_byte = max(2e-10, 8 * 1.5e-10)
    assert work.transfer == pytest.approx(2e-6 + 3 * face * per_byte)


def test_packing_is_useful_work_of_the_master_or_of_all() -> None:
    document = copy.deepcopy(dict(machine().document))
    document["memory"]["copy_bw"] = exact(1e9)
    known = from_document(document)
    text = GRID.format(wraps="false, false, false") + (
        '[[program]]\nhalo = {{ width = 2, bytes_per_cell = 8, pack = "{pack}" }}'
    )
    moved = 2 * 2 * 8 * 64 * 64  # two layers of one face, packed and unpacked, 2 processes
    serial = walk(program(text.format(pack="serial")), known, 2, 4)
    assert serial.serial == pytest.approx(moved / 1e9)
    shared = walk(program(text.format(pack="parallel")), known, 2, 4)
    assert (shared.serial, shared.share) == (0.0, pytest.approx(moved / 4e9))
    assert walk(program(text.format(pack="serial")), known, 1, 4).serial == 0.0


PIPELINE = """
[[program]]
pipeline = { dims = [0, 1], blocks = 10, seconds = 1e-3, bytes = 1000 }
"""


def test_a_pipeline_waits_for_its_start() -> None:
    grid = "[decomp]\ngrid = [2, 4]\n"
    signature = program(grid + PIPELINE)
    work = walk(signature, machine(), 8, 1)
    assert work.serial == pytest.approx(1e-3)
    assert work.waiting == pytest.approx(4 * 1e-4)
    # 4 messages at once along one dimension, 6 along the other, one after the other
    first, second = 5e-7 + 1000 * 1e-10, 5e-7 + 1000 * 1e-10 * 6 / 4
    assert work.transfer == pytest.approx(9 * (first + second) + first + 3 * (first + second))
    found = predict(signature, machine(), 8, 1).metrics["mpi"]
    assert found["serialisation_efficiency"].value == pytest.approx(10 / 14)
    assert found["load_balance"].value == pytest.approx(1.0)


# -- collectives


def collective_time(profile: Profile, op: str, processes: int, size: float) -> float:
    parameters = Parameters(profile, lambda path: profile.get(path).value)
    placement = place(processes, 1, profile.topology)
    return float(RunTeams(RunMessages(parameters, placement)).collective(op, size))


@pytest.mark.parametrize("op", list(collectives.OPERATIONS))
@pytest.mark.parametrize("processes", [1, 2, 6, 16, 64])
def test_on_one_tier_a_collective_costs_its_formula(op: str, processes: int) -> None:
    alpha, beta = 1e-6, 1e-9
    algorithm = collectives.OPERATIONS[op].default
    size = 0 if op == "barrier" else 4096
    expected = (
        collectives.OPERATIONS[op]
        .algorithms[algorithm]
        .cost(processes, collectives.Message(size, alpha, beta, 1e-10))
    )
    found = collective_time(flat(alpha, beta), op, processes, size)
    assert found == pytest.approx(expected, rel=1e-12)


def test_the_algorithm_is_that_of_the_nearest_measurement() -> None:
    """Of one that was not measured on this side of the network, within a node."""
    rows = [
        {"P": 64, "ppn": 1, "bytes": 8, "algorithm": "recursive_doubling"},
        {"P": 64, "ppn": 1, "bytes": 1 << 20, "algorithm": "ring"},
        {"P": 2, "ppn": 1, "bytes": 1 << 20, "algorithm": "rabenseifner"},
        {"P": 64, "ppn": 1, "bytes": 1 << 21},
    ]
    profile = with_coll("allreduce", rows)
    plain = machine()
    assert collective_time(profile, "allreduce", 8, 8) == collective_time(plain, "allreduce", 8, 8)
    ring = collectives.allreduce_ring(8, collectives.Message(1 << 20, 5e-7, 2e-10, 1e-10))
    assert collective_time(profile, "allreduce", 8, 1 << 20) != pytest.approx(
        collective_time(plain, "allreduce", 8, 1 << 20)
    )
    many = with_coll("allreduce", rows[1:2])
    assert collective_time(many, "allreduce", 8, 1 << 20) == pytest.approx(ring, rel=0.01)


def test_the_root_is_a_rank_of_the_smallest_communicator() -> None:
    profile = machine()
    text = "[[program]]\ncollective = {{ op = 'bcast', bytes = 8, comm = 'node', root = {} }}"

    def root(number: int) -> int:
        parameters = Parameters(profile, lambda path: profile.get(path).value)
        model = prepare(
            program(text.format(number)), place(12, 1, profile.topology), parameters, {}
        )
        (node,) = model.work().nodes
        assert isinstance(node.item, Collective)
        return int(node.item.root)

    assert root(3) == 3
    with pytest.raises(UsageError, match="the smallest communicator has the ranks 0 to 3"):
        root(4)
