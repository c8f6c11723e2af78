"""Who communicates with whom, several threads of a process, collectives of a part of the ranks."""

from __future__ import annotations

import copy
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.demo import exact, machine, program

from popmodel.errors import UsageError
from popmodel.machine.profile import Profile, from_document
from popmodel.model.run.communication import ELSEWHERE, NOWHERE, ON_NODE, Communication
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.performance import prepare
from popmodel.model.run.placement import place
from popmodel.model.terms import message
from popmodel.network import collectives
from popmodel.network import point_to_point as p2p

ALPHA, BETA, GAMMA = 1e-6, 1e-9, 1e-10


def round_machine(**net: Any) -> Profile:
    """The round machine with further entries of its section ``net``; None takes one out."""
    document = copy.deepcopy(dict(machine().document))
    document["net"] |= {name: exact(value) for name, value in net.items() if value is not None}
    for name, value in net.items():
        if value is None:
            del document["net"][name]
    return from_document(document)


def flat(cores: int = 64, **net: Any) -> Profile:
    """Two large nodes, the same cost inside and between them, and no crowding."""
    document = copy.deepcopy(dict(machine().document))
    document["topology"] |= {"cores_per_node": cores, "nodes": 64}
    for tier in ("intra", "inter"):
        document["net"][tier] |= {"classes": [{"alpha": exact(ALPHA), "beta": exact(BETA)}]}
    del document["net"]["shm_k"], document["net"]["nic_G"]
    document["net"] |= {name: exact(value) for name, value in net.items()}
    return from_document(document)


def communication(
    profile: Profile,
    processes: int,
    threads: int = 1,
    extent: tuple[int, ...] = (),
    *,
    periodic: bool = False,
) -> Communication:
    parameters = Parameters(profile, lambda path: profile.get(path).value)
    placement = place(processes, threads, profile.topology)
    return Communication(parameters, placement, extent, (periodic,) * len(extent))


# -- communicators


def ranks(found: list[Any]) -> list[list[int]]:
    return [members.tolist() for members in found]


def test_members_of_communicators() -> None:
    here = communication(flat(cores=4), 10, 1, (5, 2))
    assert ranks(here.members("world")) == [list(range(10))]
    assert ranks(here.members("node")) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert ranks(here.members("leaders")) == [[0, 4, 8]]
    assert ranks(here.members((1,))) == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    assert ranks(here.members((0,))) == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
    assert ranks(here.members((0, 1))) == [list(range(10))]


@given(
    st.tuples(*[st.integers(1, 4)] * 3),
    st.sampled_from([(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]),
)
def test_a_line_or_plane_differs_in_its_dimensions_only(
    extent: tuple[int, ...], dims: tuple[int, ...]
) -> None:
    teams = communication(flat(), prod(extent), 1, extent).members(dims)
    assert sorted(np.concatenate(teams).tolist()) == list(range(prod(extent)))
    for team in teams:
        places = np.array(np.unravel_index(team, extent))
        for dim in range(3):
            assert np.unique(places[dim]).size == (extent[dim] if dim in dims else 1)
        assert (np.diff(team) > 0).all()


@pytest.mark.parametrize("op", list(collectives.DEFAULT_ALGORITHM))
@pytest.mark.parametrize(
    ("comm", "size"),
    [("world", 24), ("node", 8), ("leaders", 3), ((0,), 2), ((1,), 3), ((2,), 4), ((0, 2), 8)],
)
def test_where_all_messages_cost_the_same_only_the_size_counts(
    op: str, comm: Any, size: int
) -> None:
    here = communication(flat(cores=8), 24, 1, (2, 3, 4))
    algorithm = collectives.DEFAULT_ALGORITHM[op]
    bytes_ = 0 if op == "barrier" else 4096
    expected = collectives.ALGORITHMS[op][algorithm](
        size, collectives.Message(bytes_, ALPHA, BETA, GAMMA)
    )
    assert here.collective(op, bytes_, comm) == pytest.approx(expected, rel=1e-12)


def test_all_communicators_of_a_node_share_its_adapter() -> None:
    profile, size = round_machine(), 1e6
    here = communication(profile, 32, 1, (4, 8))  # a row of the grid is a node

    def message(flows: int) -> float:
        return float(p2p.by_size(size, here.between(flows)))

    crossing = here.collective("bcast", size, (0,))
    assert crossing == pytest.approx(2 * message(8))  # 8 columns, one process of each on a node
    assert here.collective("bcast", size, "leaders") == pytest.approx(2 * message(1))
    inside = here.collective("bcast", size, (1,))
    assert inside == pytest.approx(3 * float(p2p.by_size(size, here.within(8))))
    assert here.collective("bcast", size, "node") == pytest.approx(inside)
    # a ring sends one message of every communicator out of a node, whoever its members are
    assert here.collective("allgather", size, (0,)) == pytest.approx(3 * message(8))
    assert here.collective("allgather", size, "world") == pytest.approx(31 * message(1))


@pytest.mark.parametrize("mode", ["send", "sendrecv"])
def test_messages_of_other_nodes_do_not_crowd_a_node(mode: str) -> None:
    profile, size = round_machine(shm_k=2.0), 1e6
    times = []
    for nodes in (1, 4):  # of 8 processes, each node a ring of its own
        here = communication(profile, 8 * nodes, 1, (nodes, 8), periodic=True)
        ring = message.grid_neighbours((nodes, 8), 1, 1, periodic=True)
        shifted = here.shift(1, 1, size)
        assert shifted == pytest.approx(float(p2p.by_size(size, here.within(8))))
        times.append((shifted, here.point_to_point(ring, size, mode)))
    assert times[0] == times[1]


def test_the_slowest_communicator_counts() -> None:
    here = communication(round_machine(), 12, 1, (3, 4))  # 8 on the first node, 4 on the second
    inside = float(p2p.by_size(1000, here.within(8)))
    assert here.collective("bcast", 1000, "node") == pytest.approx(3 * inside)
    assert here.collective("bcast", 1000, (1,)) == pytest.approx(2 * inside)
    # the third process of a column is on another node; two of it share one
    between = float(p2p.by_size(1000, here.between(8)))
    assert here.collective("bcast", 1000, (0,)) == pytest.approx(inside + between)


def test_one_process_communicates_with_nobody() -> None:
    here = communication(machine(), 1, 1, (1, 1))
    for comm in ("world", "node", "leaders", (0,), (0, 1)):
        assert here.collective("allreduce", 8, comm) == 0.0
    assert communication(machine(), 8, 8).collective("allreduce", 8, "node") == 0.0


def test_the_root_is_a_rank_of_the_smallest_communicator() -> None:
    profile = machine()
    text = "[[program]]\ncollective = {{ op = 'bcast', bytes = 8, comm = 'node', root = {} }}"

    def root(number: int) -> int:
        parameters = Parameters(profile, lambda path: profile.get(path).value)
        model = prepare(
            program(text.format(number)), place(12, 1, profile.topology), parameters, {}
        )
        return model.root(model.signature.program[0])  # type: ignore[arg-type]

    assert root(3) == 3
    with pytest.raises(UsageError, match="the smallest communicator has the ranks 0 to 3"):
        root(4)


# -- several threads of a process


def test_places() -> None:
    here = communication(machine(), 16)
    targets = np.full(16, -1)
    targets[:5] = [1, 8, 2, 16, 3]
    found = here.places([targets])[0]
    assert found[:5].tolist() == [ON_NODE, ELSEWHERE, NOWHERE, NOWHERE, ON_NODE]
    assert not found[5:].any()


@pytest.mark.parametrize("mode", ["blocking", "nonblocking"])
@given(threads=st.integers(1, 8), size=st.floats(0, 1e7))
def test_free_threads_share_the_messages(mode: str, threads: int, size: float) -> None:
    """Without crowding, and if threads do not slow each other."""
    here = communication(flat(thread_factor=0.0), 27, 1, (3, 3, 3))
    count = 6  # of the process in the middle
    one, many = (here.halo([size] * 3, mode, mt) for mt in (1, threads))
    if mode == "blocking":
        assert one == pytest.approx(count * (ALPHA + BETA * size))
        assert many == pytest.approx(count * (ALPHA + BETA * size / threads))
    else:
        assert one == pytest.approx(ALPHA + count * BETA * size)
        assert many == pytest.approx(ALPHA + count * BETA * size / threads)


def test_threads_share_the_overhead_of_messages_and_slow_each_other() -> None:
    document = copy.deepcopy(dict(flat(thread_factor=0.5, multiple_overhead=3e-7).document))
    document["net"]["intra"]["os"] = exact(2e-7)
    here = communication(from_document(document), 27, 1, (3, 3, 3))
    for threads, rounds in ((1, 6), (2, 3), (4, 1.5), (6, 1), (8, 1)):
        slower = 1 + 0.5 * (threads - 1)
        latency = ALPHA if threads == 1 else ALPHA + 3e-7
        expected = latency * slower + (rounds - 1) * 2e-7 * slower
        assert here.halo([0.0] * 3, "nonblocking", threads) == pytest.approx(expected)


def test_one_communicating_thread_is_as_before() -> None:
    for profile in (machine(), round_machine(thread_factor=0.7, multiple_overhead=1e-6)):
        here = communication(profile, 16, 4, (4, 4))
        assert here.within(3) == here.within(3, 1)
        assert here.between(3) == here.between(3, 1)
        assert here.shift(0, 1, 1e5) == here.shift(0, 1, 1e5, 1)
        assert here.halo([1e5, 1e4], "blocking") == here.halo([1e5, 1e4], "blocking", 1)
        assert not {"net.thread_factor", "net.multiple_overhead"} & here.parameters.left_out


@pytest.mark.parametrize("threads", [2, 4])
def test_a_full_adapter_gains_nothing_from_more_threads(threads: int) -> None:
    profile = round_machine(thread_factor=0.25)
    here = communication(profile, 16, 4, (8, 2))  # two processes to a node
    size, gap = 1e6, 1.5e-10
    one, many = (here.shift(0, 1, size, mt) for mt in (1, threads))
    assert one == pytest.approx(2e-6 + size * 2 * gap)
    assert many == pytest.approx(2e-6 * (1 + 0.25 * (threads - 1)) + size * 2 * gap)


def test_threads_help_where_one_message_does_not_fill_the_adapter() -> None:
    here = communication(round_machine(thread_factor=0.0, nic_G=1e-11), 2, 8, (2,))
    size = 1e6
    assert here.shift(0, 1, size, 1) == pytest.approx(2e-6 + 2e-10 * size)
    assert here.shift(0, 1, size, 4) == pytest.approx(2e-6 + 2e-10 * size / 4)


def test_parts_of_a_message_may_be_eager() -> None:
    here = communication(flat(thread_factor=0.0), 8)
    targets = (np.arange(8) + 1) % 8
    size = 100_000  # above the threshold of 65536 bytes inside a node
    whole = here.point_to_point(targets, size, "send")
    assert whole == pytest.approx(8 * (ALPHA + BETA * size))
    assert here.point_to_point(targets, size, "send", 2) == pytest.approx(ALPHA + BETA * size / 2)
    exchanged = here.point_to_point(targets, size, "sendrecv", 2)
    assert exchanged == pytest.approx(ALPHA + BETA * size / 2)


def test_an_infinite_bandwidth_leaves_the_latency() -> None:
    profile = round_machine(thread_factor=0.5, shm_k=None)
    document = copy.deepcopy(dict(profile.document))
    document["net"]["intra"]["classes"] = [{"alpha": exact(ALPHA), "beta": exact(0.0)}]
    here = communication(from_document(document), 8, 1, (2, 2, 2))
    for threads in (1, 2, 4):
        slower = 1 + 0.5 * (threads - 1)
        assert here.halo([1e9] * 3, "blocking", threads) == pytest.approx(3 * ALPHA * slower)
        assert here.shift(0, 1, 1e9, threads) == pytest.approx(ALPHA * slower)


def test_what_is_not_known_of_threads_is_left_out_and_said() -> None:
    here = communication(machine(), 16, 4, (4, 4))
    here.shift(0, 1, 1e5, 2)
    assert {"net.thread_factor", "net.multiple_overhead"} <= here.parameters.left_out


def test_a_signature_names_the_threads_that_communicate() -> None:
    text = (
        "[decomp]\nglobal = [64, 64, 64]\n[[program]]\n"
        "halo = { width = 1, bytes_per_cell = 8, pack = 'none', comm_threads = 'min(T, 2)' }"
    )
    profile = flat(thread_factor=0.5)

    def transfer(threads: int) -> float:
        parameters = Parameters(profile, lambda path: profile.get(path).value)
        placement = replace(place(8, 1, profile.topology), threads=threads)
        return float(prepare(program(text), placement, parameters, {}).work().transfer)

    sizes = [8 * 32 * 32] * 3
    here = communication(profile, 8, 1, (2, 2, 2))
    assert transfer(1) == pytest.approx(here.halo(sizes, "nonblocking"))
    assert transfer(4) == transfer(2) == pytest.approx(here.halo(sizes, "nonblocking", 2))
