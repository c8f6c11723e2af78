"""Communicators of a part of the processes, and what collectives in them cost."""

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.demo import ALPHA, BETA, GAMMA, flat, point, round_machine

from popmodel.network import collectives
from popmodel.network import point_to_point as p2p


def ranks(found: list[Any]) -> list[list[int]]:
    return [members.tolist() for members in found]


def test_members_of_communicators() -> None:
    here = point(flat(cores=4), 10, 1, (5, 2))
    assert ranks(here.teams.members("world")) == [list(range(10))]
    assert ranks(here.teams.members("node")) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert ranks(here.teams.members("leaders")) == [[0, 4, 8]]
    assert ranks(here.teams.members((1,))) == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    assert ranks(here.teams.members((0,))) == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
    assert ranks(here.teams.members((0, 1))) == [list(range(10))]


@given(
    st.tuples(*[st.integers(1, 4)] * 3),
    st.sampled_from([(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]),
)
def test_a_line_or_plane_differs_in_its_dimensions_only(
    extent: tuple[int, ...], dims: tuple[int, ...]
) -> None:
    teams = point(flat(), prod(extent), 1, extent).teams.members(dims)
    assert sorted(np.concatenate(teams).tolist()) == list(range(prod(extent)))
    for team in teams:
        places = np.array(np.unravel_index(team, extent))
        for dim in range(3):
            assert np.unique(places[dim]).size == (extent[dim] if dim in dims else 1)
        assert (np.diff(team) > 0).all()


@pytest.mark.parametrize("op", list(collectives.OPERATIONS))
@pytest.mark.parametrize(
    ("comm", "size"),
    [("world", 24), ("node", 8), ("leaders", 3), ((0,), 2), ((1,), 3), ((2,), 4), ((0, 2), 8)],
)
def test_where_all_messages_cost_the_same_only_the_size_counts(
    op: str, comm: Any, size: int
) -> None:
    here = point(flat(cores=8), 24, 1, (2, 3, 4))
    algorithm = collectives.OPERATIONS[op].default
    bytes_ = 0 if op == "barrier" else 4096
    expected = (
        collectives.OPERATIONS[op]
        .algorithms[algorithm]
        .cost(size, collectives.Message(bytes_, ALPHA, BETA, GAMMA))
    )
    assert here.teams.collective(op, bytes_, comm) == pytest.approx(expected, rel=1e-12)


def test_all_communicators_of_a_node_share_its_adapter() -> None:
    profile, size = round_machine(), 1e6
    here = point(profile, 32, 1, (4, 8))  # a row of the grid is a node

    def message(flows: int) -> float:
        return float(p2p.by_size(size, here.messages.between(flows)))

    crossing = here.teams.collective("bcast", size, (0,))
    assert crossing == pytest.approx(2 * message(8))  # 8 columns, one process of each on a node
    assert here.teams.collective("bcast", size, "leaders") == pytest.approx(2 * message(1))
    inside = here.teams.collective("bcast", size, (1,))
    assert inside == pytest.approx(3 * float(p2p.by_size(size, here.messages.within(8))))
    assert here.teams.collective("bcast", size, "node") == pytest.approx(inside)
    # a ring sends one message of every communicator out of a node, whoever its members are
    assert here.teams.collective("allgather", size, (0,)) == pytest.approx(3 * message(8))
    assert here.teams.collective("allgather", size, "world") == pytest.approx(31 * message(1))
