"""Layouts: cores of threads, by hand and against the rule of OpenMP written out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.machines.quantity import Topology
from popmodel.model.run.process_placement import close_layout, spread_layout

TWO = Topology(1, 16, 2, 2, ())
FOUR = Topology(1, 16, 2, 4, ())


@pytest.mark.parametrize(
    ("per_node", "threads", "cores"),
    [
        (1, 2, [[0, 8]]),
        (1, 4, [[0, 4, 8, 12]]),
        (1, 5, [[0, 3, 6, 9, 12]]),
        (2, 4, [[0, 2, 4, 6], [8, 10, 12, 14]]),
        (4, 1, [[0], [4], [8], [12]]),
        (3, 2, [[0, 3], [5, 8], [10, 13]]),
        (2, 8, [[0, 1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 15]]),
    ],
)
def test_spread_threads(per_node: int, threads: int, cores: list[list[int]]) -> None:
    assert spread_layout(per_node, threads, TWO).cores.tolist() == cores


def test_uneven_teams_are_bound_to_sockets() -> None:
    """12 gaps in 16 cores would put 8 threads on one socket."""
    found = spread_layout(1, 12, TWO)
    assert (found.places, found.fullest(8)) == ("sockets", 6)


def test_spread_threads_use_all_domains() -> None:
    assert spread_layout(1, 4, FOUR).spanned(4).tolist() == [4]
    assert close_layout(1, 4, FOUR).spanned(4).tolist() == [1]
    assert spread_layout(2, 2, FOUR).spanned(4).tolist() == [2, 2]
    assert spread_layout(2, 2, FOUR).fullest(4) == 1


def opened_up(cores: range, threads: int) -> list[int]:
    """First places of parts as equal as can be, the larger ones first."""
    found, left = [], list(cores)
    for parts in range(threads, 0, -1):
        found.append(left[0])
        left = left[-(-len(left) // parts) :]
    return found


@given(
    st.integers(1, 4), st.integers(1, 4), st.integers(1, 16), st.integers(1, 64), st.integers(1, 64)
)
def test_spread_layouts_are_what_openmp_does(
    sockets: int, split: int, size: int, per_node: int, threads: int
) -> None:
    topology = Topology(1, sockets * split * size, sockets, sockets * split, ())
    if per_node * threads > topology.cores_per_node:
        return
    found = spread_layout(per_node, threads, topology)
    used = found.cores.ravel().tolist()
    assert len(set(used)) == per_node * threads
    assert max(used) < topology.cores_per_node
    for cores in found.cores.tolist():
        owned = range(cores[0], cores[0] + found.size)
        if found.places == "cores":
            assert cores == opened_up(owned, threads)
        else:
            assert found.size % topology.cores_per_socket == 0
            where = [core // topology.cores_per_socket for core in cores]
            each = [where.count(one) for one in set(where)]
            assert max(each) - min(each) <= 1
    if topology.cores_per_node % (per_node * threads) == 0:  # nothing can be more even
        assert found.fullest(size) == -(-per_node * threads // topology.domains)
