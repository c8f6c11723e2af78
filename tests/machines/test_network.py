"""A machine profile as the network of a replay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from popmodel.machines import profile
from popmodel.machines.profile_comparison import network_lacks, network_of
from popmodel.network.point_to_point import Tier

CLUSTER = profile.load("sandybridge-fdr")
NODE = profile.load(
    Path(__file__).parent.parent.parent / "examples" / "profiles" / "two-core-vm.json"
)


def nodes(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int32)


def whole_time(tier: Tier, size: float) -> np.ndarray:
    return tier.send_overhead + tier.time(size) + tier.receive_overhead


def test_messages_cost_what_the_profile_says() -> None:
    tiers = network_of(CLUSTER, nodes(0, 0, 1)).tiers
    for tier, name, size in ((tiers.within, "intra", 64), (tiers.between, "inter", 10**6)):
        last = len(CLUSTER.class_bounds(name)) - 1
        path = f"net.{name}.classes[{0 if size == 64 else last}]"
        alpha, beta = (CLUSTER.get(f"{path}.{key}").value for key in ("alpha", "beta"))
        assert float(whole_time(tier, size)) == pytest.approx(alpha + beta * size)
        assert tier.send_overhead == CLUSTER.get(f"net.{name}.os").value
        assert tier.eager_threshold == CLUSTER.get(f"net.{name}.eager_threshold").value + 1


def test_a_distance_that_no_message_goes_is_not_asked_for() -> None:
    assert network_of(NODE, nodes(0, 0)).tiers.between is None
    assert network_of(NODE, nodes(0)).tiers.within is not None
    assert network_of(CLUSTER, nodes(0, 1)).tiers.within is not None  # messages to oneself


def test_the_network_is_named_and_described_by_its_longest_distance() -> None:
    network = network_of(CLUSTER, nodes(0, 0, 1))
    assert network.name == "sandybridge-fdr"
    alpha, overhead = (CLUSTER.get(f"net.inter.{key}").value for key in ("classes[0].alpha", "os"))
    assert network.latency == pytest.approx(alpha - overhead)
    assert network_of(CLUSTER, nodes(0, 0)).latency < network.latency


def test_a_network_between_nodes_is_assumed_on_a_machine_of_one_node() -> None:
    between = network_of(NODE, nodes(0, 1)).tiers.between
    assert between is not None
    assert float(whole_time(between, 0)) == pytest.approx(3e-6)
    texts = network_lacks(NODE, nodes(0, 1))
    assert texts[0] == (
        "the profile lacks net.inter: latency of a message is assumed, 200 ns to 50 us; replayed "
        "with 3 us"
    )
    assert not network_lacks(NODE, nodes(0, 0))
