"""Fat trees and tori: routes by rule, and what messages over them take."""

from __future__ import annotations

from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.base.errors import FileError, UsageError
from popmodel.network.network import Network
from popmodel.network.point_to_point import Routes
from popmodel.network.topology import FatTree, Topology, Torus, read_topology
from popmodel.simulator import Program, replay
from popmodel.simulator.program import Op, ProgramBuilder

GB = 1e9


def tree(down: tuple[int, ...], up: tuple[int, ...], parallel: tuple[int, ...] = ()) -> FatTree:
    levels = len(down)
    return FatTree(down, up, parallel or (1,) * levels, (GB,) * levels, (1e-6,) * levels)


def everyone(topology: Topology) -> Routes:
    """Routes between all pairs of nodes."""
    sender, receiver = np.divmod(np.arange(topology.nodes**2, dtype=np.int32), topology.nodes)
    return topology.routes(*(end[sender != receiver] for end in (sender, receiver)))


def links(routes: Routes, sender: int, receiver: int) -> list[int]:
    [row] = np.flatnonzero((routes.sender == sender) & (routes.receiver == receiver))
    return routes.link[routes.offsets[row] : routes.offsets[row + 1]].tolist()


def exchange(nodes: int, pairs: list[tuple[int, int]], size: int) -> Program:
    """One process per node; each pair a message at time 0."""
    program = ProgramBuilder(nodes, range(nodes))
    posts = []
    for sender, receiver in pairs:
        m = program.message(sender, receiver, size)
        program.do(sender, Op.ISEND, m)
        posts.append((receiver, m))
    for receiver, m in posts:
        program.do(receiver, Op.RECEIVE, m)
    return program.build()


def runtime(topology: Topology, pairs: list[tuple[int, int]], size: int = 10**6) -> float:
    return replay(exchange(topology.nodes, pairs, size), Network(topology=topology)).runtime


# -- fat trees -------------------------------------------------------------------------------------


def test_a_route_climbs_to_the_first_common_switch() -> None:
    routes = everyone(tree((2, 2), (1, 2)))
    assert [len(links(routes, 0, other)) for other in (1, 2, 3)] == [2, 4, 4]
    of_pair = (routes.sender == 0) & (routes.receiver == 3)
    assert routes.latency[of_pair].tolist() == pytest.approx([4e-6])


SMALL = st.integers(1, 3)


@given(st.lists(st.tuples(SMALL, SMALL, SMALL), min_size=1, max_size=3))
def test_routes_of_a_fat_tree_are_ways(levels: list[tuple[int, int, int]]) -> None:
    """Walk every route over the tree as it is defined, level by level, from its links alone."""
    down, up, parallel = (tuple(column) for column in zip(*levels, strict=True))
    topology = tree(down, up, parallel)
    # Each cable by what it joins: (level, node or switch below, switch above), found by names:
    # a switch of level l is (nodes of its subtree, copy); it has all switches of level l + 1 above
    # it whose copy continues its own.
    ends: list[tuple] = []
    below, copies = 1, 1
    for height, (d, u, p) in enumerate(zip(down, up, parallel, strict=True)):
        lower = [
            (tree_, copy) for tree_ in range(topology.nodes // below) for copy in range(copies)
        ]
        cables = [
            ((height, t, c), (height + 1, t // d, c + copies * y))
            for t, c in lower
            for y in range(u)
            for _ in range(p)
        ]
        ends += cables + [(upper, under) for under, upper in cables]
        below, copies = below * d, copies * u
    routes = everyone(topology)
    assert len(routes.capacity) == len(ends)
    for row, (sender, receiver) in enumerate(zip(routes.sender, routes.receiver, strict=True)):
        place = (0, sender, 0)
        for link in routes.link[routes.offsets[row] : routes.offsets[row + 1]]:
            assert ends[link][0] == place
            place = ends[link][1]
        assert place == (0, receiver, 0)


@pytest.mark.parametrize("shift", range(1, 16))
def test_shifts_on_a_full_fat_tree_do_not_disturb_each_other(shift: int) -> None:
    pairs = [(p, (p + shift) % 16) for p in range(16)]
    levels = np.abs(np.log2([(p ^ q) for p, q in pairs])).astype(int) // 2 + 1
    expected = 2e-6 * levels.max() + 1e-3
    assert runtime(tree((4, 4), (1, 4)), pairs) == pytest.approx(expected, rel=1e-12)


def test_a_tapered_fat_tree_is_the_bottleneck() -> None:
    pairs = [(p, p + 4) for p in range(4)]
    for uplinks, factor in ((4, 1), (2, 2), (1, 4)):
        found = runtime(tree((4, 2), (1, uplinks)), pairs)
        assert found == pytest.approx(4e-6 + factor * 1e-3, rel=1e-12)
    cables = runtime(tree((4, 2), (1, 1), (1, 4)), pairs)
    assert cables == pytest.approx(4e-6 + 1e-3, rel=1e-12)


# -- tori ------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3).filter(lambda s: np.prod(s) <= 40))
def test_routes_of_a_torus_are_the_shortest_ways(sides: list[int]) -> None:
    topology = Torus(tuple(sides), GB, 1e-6)
    routes = everyone(topology)
    places = list(np.ndindex(*reversed(sides)))  # the first side varies fastest
    for row, (sender, receiver) in enumerate(zip(routes.sender, routes.receiver, strict=True)):
        a, b = places[sender][::-1], places[receiver][::-1]
        hops = sum(
            min((y - x) % side, (x - y) % side) for x, y, side in zip(a, b, sides, strict=True)
        )
        way = routes.link[routes.offsets[row] : routes.offsets[row + 1]]
        assert len(way) == hops
        assert routes.latency[row] == pytest.approx(hops * 1e-6)
        at = list(a)
        for link in way:
            node, direction = divmod(int(link), 2 * len(sides))
            assert places[node][::-1] == tuple(at)
            dimension, backwards = divmod(direction, 2)
            at[dimension] = (at[dimension] + (-1 if backwards else 1)) % sides[dimension]
        assert tuple(at) == b


def test_neighbours_on_a_torus_do_not_disturb_each_other() -> None:
    pairs = [(p, (p + 1) % 8) for p in range(8)]
    assert runtime(Torus((8,), GB, 1e-6), pairs) == pytest.approx(1e-6 + 1e-3, rel=1e-12)


def test_messages_over_the_same_way_share_it() -> None:
    # 0 -> 2 and 1 -> 2 both take the link from 1 to 2.
    found = runtime(Torus((8,), GB, 1e-6), [(0, 2), (1, 2)])
    assert found == pytest.approx(2e-6 + 2e-3, rel=1e-2)


def test_a_node_has_a_bandwidth_of_its_own() -> None:
    torus = Torus((8,), GB, 1e-6, node_bandwidth=GB)
    assert runtime(torus, [(0, 1), (0, 7)]) == pytest.approx(1e-6 + 2e-3, rel=1e-12)
    free = Torus((8,), GB, 1e-6)
    assert runtime(free, [(0, 1), (0, 7)]) == pytest.approx(1e-6 + 1e-3, rel=1e-12)


# -- what both have in common ----------------------------------------------------------------------


@pytest.mark.parametrize("topology", [tree((4, 4), (1, 4)), Torus((16,), GB, 1e-6)])
def test_latency_and_bandwidth_of_a_message_come_on_top(topology: Topology) -> None:
    program = exchange(16, [(0, 1)], 10**6)
    hops = 2 if isinstance(topology, FatTree) else 1
    network = Network(latency=5e-6, bandwidth=GB / 2, topology=topology)
    assert replay(program, network).runtime == pytest.approx(5e-6 + hops * 1e-6 + 2e-3, rel=1e-12)


@pytest.mark.parametrize("topology", [tree((4, 4), (1, 1)), Torus((4, 4), GB)])
def test_collectives_as_messages_share_links(topology: Topology) -> None:
    program = ProgramBuilder(16, range(16))
    c = program.collective("alltoall", 10**6, 10**6)
    for p in range(16):
        program.do(p, Op.COLLECTIVE, c)
    network = Network(bandwidth=GB, collectives="algorithm", topology=topology)
    alone = replay(program.build(), network.with_(topology=None)).runtime
    assert replay(program.build(), network).runtime > 1.5 * alone


def test_without_limits_a_topology_costs_its_latency() -> None:
    free = Torus((4, 4), inf, 1e-6)
    assert runtime(free, [(p, p ^ 1) for p in range(16)]) == pytest.approx(1e-6, rel=1e-12)


def test_a_run_on_more_nodes_than_there_are_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        replay(exchange(5, [(0, 4)], 8), Network(topology=Torus((4,), GB)))
    assert caught.value.message == "the topology has 4 nodes, the run needs 5"


def test_links_of_nodes_and_a_topology_are_refused() -> None:
    with pytest.raises(UsageError, match="a topology has its own links"):
        Network(topology=Torus((4,), GB), output_links=1)


def test_levels_without_a_value_are_refused() -> None:
    with pytest.raises(UsageError, match="each of its values for each of its levels"):
        FatTree((2, 2), (1,), (1, 1), (GB, GB), (0.0, 0.0))


def test_the_document_names_the_topology() -> None:
    torus = Torus((2, 3), 2 * GB, 1e-6, node_bandwidth=GB)
    found = Network(topology=torus).to_dict()
    assert found["topology"] == "torus (2 x 3; 2 GB/s; 1 us; 1 GB/s a node)"
    fat = FatTree((8, 4), (1, 2), (1, 1), (GB, 2 * GB), (1e-6, 1e-6))
    assert fat.name == "fat tree (down 8, 4; up 1, 2; parallel 1, 1; 1 GB/s, 2 GB/s; 1 us)"
    assert "topology" not in Network().to_dict()


# -- files -----------------------------------------------------------------------------------------


def read(text: str, folder: Path) -> Topology:
    path = folder / "net.toml"
    path.write_text(text)
    return read_topology(path)


def test_a_fat_tree_from_a_file(tmp_path: Path) -> None:
    text = """
    kind = "fat tree"
    down = [8, 4]
    up = [1, 2]
    parallel = [1, 2]
    bandwidth = "10GB/s"
    latency = ["1s", "2s"]
    """
    expected = FatTree((8, 4), (1, 2), (1, 2), (10e9, 10e9), (1.0, 2.0))
    assert read(text, tmp_path) == expected
    assert expected.nodes == 32


def test_a_torus_from_a_file(tmp_path: Path) -> None:
    text = 'kind = "torus"\nsides = [4, 4, 2]\nbandwidth = "5GB/s"\nnode_bandwidth = "inf"\n'
    assert read(text, tmp_path) == Torus((4, 4, 2), 5e9, 0.0, inf)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('kind = "ring"', "kind must be one of fat tree, torus, not 'ring'"),
        ("sides = [2]", "kind must be one of fat tree, torus, not None"),
        ('kind = "torus"\nsides = [2]', "bandwidth is missing"),
        ('kind = "torus"\nsides = [0]\nbandwidth = "1GB/s"', "sides[0] must be a whole number"),
        ('kind = "torus"\nsides = [2]\nbandwidth = "1GB"', "bandwidth is wrong: "),
        ('kind = "torus"\nsides = [2]\nbandwidth = "1GB/s"\nsize = 1', "size is not a known key"),
        (
            'kind = "torus"\nsides = [1048576, 2]\nbandwidth = "1GB/s"',
            "has 2097152 nodes, more than 1048576",
        ),
        (
            'kind = "fat tree"\ndown = [2, 2]\nup = [1]\nbandwidth = "1GB/s"',
            "up needs one value for each of the 2 levels, not 1",
        ),
    ],
)
def test_a_file_that_describes_no_topology_is_refused(
    text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(FileError) as caught:
        read(text, tmp_path)
    assert message in caught.value.message
