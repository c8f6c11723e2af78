"""Messages along a grid and to ranks: crowding, and several threads of a process that send."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.demo import ALPHA, BETA, exact, flat, machine, point, program, round_machine

from popmodel.machines.profile import from_document
from popmodel.model.kinds.halo import Neighbours
from popmodel.model.kinds.p2p import PointToPoint, Shift
from popmodel.model.run.context import ModelPoint
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.process_placement import place
from popmodel.model.terms import message
from popmodel.model.tree import prepare
from popmodel.network import point_to_point as p2p


def shift(here: ModelPoint, dim: int, by: int, size: float, threads: int = 1) -> float:
    return float(Shift("shift", 1.0, threads, dim, by, size).work(here).transfer)


def halo(here: ModelPoint, sizes: Sequence[float], mode: str, threads: int = 1) -> float:
    return float(Neighbours.of(here, threads).time(sizes, mode))


def point_to_point(
    here: ModelPoint, targets: Any, size: float, mode: str, threads: int = 1
) -> float:
    return float(PointToPoint("p2p", 1.0, threads, targets, size, mode).work(here).transfer)


@pytest.mark.parametrize("mode", ["send", "sendrecv"])
def test_messages_of_other_nodes_do_not_crowd_a_node(mode: str) -> None:
    profile, size = round_machine(shm_k=2.0), 1e6
    times = []
    for nodes in (1, 4):  # of 8 processes, each node a ring of its own
        here = point(profile, 8 * nodes, 1, (nodes, 8), periodic=True)
        ring = message.grid_neighbours((nodes, 8), 1, 1, periodic=True)
        shifted = shift(here, 1, 1, size)
        assert shifted == pytest.approx(float(p2p.by_size(size, here.messages.within(8))))
        times.append((shifted, point_to_point(here, ring, size, mode)))
    assert times[0] == times[1]


@pytest.mark.parametrize("mode", ["blocking", "nonblocking"])
@given(threads=st.integers(1, 8), size=st.floats(0, 1e7))
def test_free_threads_share_the_messages(mode: str, threads: int, size: float) -> None:
    """Without crowding, and if threads do not slow each other."""
    here = point(flat(thread_factor=0.0), 27, 1, (3, 3, 3))
    count = 6  # of the process in the middle
    one, many = (halo(here, [size] * 3, mode, mt) for mt in (1, threads))
    if mode == "blocking":
        assert one == pytest.approx(count * (ALPHA + BETA * size))
        assert many == pytest.approx(count * (ALPHA + BETA * size / threads))
    else:
        assert one == pytest.approx(ALPHA + count * BETA * size)
        assert many == pytest.approx(ALPHA + count * BETA * size / threads)


def test_threads_share_the_overhead_of_messages_and_slow_each_other() -> None:
    document = copy.deepcopy(dict(flat(thread_factor=0.5, multiple_overhead=3e-7).document))
    document["net"]["intra"]["os"] = exact(2e-7)
    here = point(from_document(document), 27, 1, (3, 3, 3))
    for threads, rounds in ((1, 6), (2, 3), (4, 1.5), (6, 1), (8, 1)):
        slower = 1 + 0.5 * (threads - 1)
        latency = ALPHA if threads == 1 else ALPHA + 3e-7
        expected = latency * slower + (rounds - 1) * 2e-7 * slower
        assert halo(here, [0.0] * 3, "nonblocking", threads) == pytest.approx(expected)


@pytest.mark.parametrize("threads", [2, 4])
def test_a_full_adapter_gains_nothing_from_more_threads(threads: int) -> None:
    profile = round_machine(thread_factor=0.25)
    here = point(profile, 16, 4, (8, 2))  # two processes to a node
    size, gap = 1e6, 1.5e-10
    one, many = (shift(here, 0, 1, size, mt) for mt in (1, threads))
    assert one == pytest.approx(2e-6 + size * 2 * gap)
    assert many == pytest.approx(2e-6 * (1 + 0.25 * (threads - 1)) + size * 2 * gap)


def test_parts_of_a_message_may_be_eager() -> None:
    here = point(flat(thread_factor=0.0), 8)
    targets = (np.arange(8) + 1) % 8
    size = 100_000  # above the threshold of 65536 bytes inside a node
    whole = point_to_point(here, targets, size, "send")
    assert whole == pytest.approx(8 * (ALPHA + BETA * size))
    assert point_to_point(here, targets, size, "send", 2) == pytest.approx(ALPHA + BETA * size / 2)
    exchanged = point_to_point(here, targets, size, "sendrecv", 2)
    assert exchanged == pytest.approx(ALPHA + BETA * size / 2)


def test_what_is_not_known_of_threads_is_left_out_and_said() -> None:
    here = point(machine(), 16, 4, (4, 4))
    shift(here, 0, 1, 1e5, 2)
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
        return float(prepare(program(text), placement, parameters, {}).work().total.transfer)

    sizes = [8 * 32 * 32] * 3
    here = point(profile, 8, 1, (2, 2, 2))
    assert transfer(1) == pytest.approx(halo(here, sizes, "nonblocking"))
    assert transfer(4) == transfer(2) == pytest.approx(halo(here, sizes, "nonblocking", 2))
