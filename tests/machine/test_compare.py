"""Differences between profiles, and merging them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from popmodel.machine import profile
from popmodel.machine.compare import Difference, DifferentMachines, diff, merge
from popmodel.machine.quantity import Quantity

Document = dict[str, Any]


def q(value: float, low: float | None = None, high: float | None = None) -> Document:
    entry = {"value": value, "origin": "measured"}
    return entry if low is None else entry | {"low": low, "high": high}


def node(**sections: Any) -> Document:
    return {
        "schema": "popmodel/machine/1",
        "host": {"cpu": "Z80", "mpi": "Open MPI 5"},
        "topology": {
            "nodes": 1,
            "cores_per_node": 4,
            "caches": [{"level": "L2", "bytes": 1048576, "shared_by": 4}],
        },
        **sections,
    }


def tier(alpha: float) -> Document:
    return {"classes": [{"upto": None, "alpha": q(alpha), "beta": q(1e-10)}]}


@pytest.mark.parametrize(
    ("first", "second", "within"),
    [
        (Quantity(1.0, 0.9, 1.1), Quantity(1.1, 1.0, 1.2), True),
        (Quantity(1.0, 0.9, 1.1), Quantity(1.15, 1.05, 1.25), False),  # hypot(0.1, 0.1) = 0.141
        (Quantity(1.0, 0.9, 1.1), Quantity(1.14, 1.04, 1.24), True),
        (Quantity(1.0), Quantity(1.0), True),
        (Quantity(1.0), Quantity(1.001), False),
        (Quantity(0.0, 0.0, 1e-9), Quantity(5e-10, 0.0, 1e-9), True),
        (None, Quantity(1.0), None),
    ],
)
def test_within_both_intervals(
    first: Quantity | None, second: Quantity | None, within: bool | None
) -> None:
    assert Difference("x", first, second).within is within
    assert Difference("x", second, first).within is within


def test_a_ratio_needs_two_values() -> None:
    assert Difference("x", Quantity(2.0), Quantity(3.0)).ratio == 1.5
    assert Difference("x", None, Quantity(3.0)).ratio is None
    assert Difference("x", Quantity(0.0), Quantity(3.0)).ratio is None


def test_all_quantities_of_both_profiles_are_compared() -> None:
    first = profile.from_document(node(memory={"b1": q(1e10), "copy_bw": q(2e9)}))
    second = profile.from_document(node(memory={"b1": q(2e10), "kappa": q(0.5)}))
    rows = diff(first, second)
    assert [row.path for row in rows] == ["memory.b1", "memory.copy_bw", "memory.kappa"]
    assert [row.ratio for row in rows] == [2.0, None, None]


def test_a_later_measurement_replaces_a_section_and_keeps_the_others() -> None:
    first = node(memory={"b1": q(1e10), "kappa": q(0.5)}, core={"freq": {"1": q(1e9)}})
    first["quality"] = {"memory": {"noisy": True}, "core": {"noisy": False}}
    second = node(memory={"b1": q(2e10)}, quality={"memory": {"noisy": False}})
    before = copy.deepcopy((first, second))
    merged = merge([first, second])
    assert merged["memory"] == {"b1": q(2e10)}
    assert merged["core"] == first["core"]
    assert merged["quality"] == {"memory": {"noisy": False}, "core": {"noisy": False}}
    assert (first, second) == before


def test_tiers_of_several_node_counts_come_together() -> None:
    one = node(net={"intra": tier(1e-6), "reduce_gamma": q(1e-10)})
    one["absent"] = {"net.inter": "one node", "net.nic_G": "one node"}
    two = node(net={"inter": tier(2e-6)})
    two["topology"]["nodes"] = 2
    merged = merge([one, two])
    assert set(merged["net"]) == {"intra", "inter", "reduce_gamma"}
    assert merged["topology"]["nodes"] == 2
    assert merged["absent"] == {"net.nic_G": "one node"}
    assert set(merge([two, one])["net"]) == {"intra", "inter", "reduce_gamma"}
    profile.from_document(merged)


def test_reasons_of_a_section_that_was_measured_anew_go() -> None:
    first = node(memory={"b1": q(1e10)}, absent={"memory.bsat": "2 cores", "core.smt": "no SMT"})
    merged = merge([first, node(memory={"b1": q(1e10)}, absent={"memory.q": "few"})])
    assert merged["absent"] == {"core.smt": "no SMT", "memory.q": "few"}


@pytest.mark.parametrize("key", ["cpu", "mpi"])
def test_different_machines_stay_apart(key: str) -> None:
    other = node()
    other["host"] = other["host"] | {key: "another"}
    with pytest.raises(DifferentMachines) as caught:
        merge([node(), other])
    assert caught.value.message.startswith(
        f"profiles of different machines cannot be merged: host.{key} is "
    )
    assert caught.value.hint == (
        "measure with the same processor, MPI and compiler, or keep the profiles apart"
    )


def test_nodes_of_different_size_stay_apart() -> None:
    other = node()
    other["topology"] = other["topology"] | {"cores_per_node": 8}
    with pytest.raises(DifferentMachines, match="nodes of 4 and of 8 cores"):
        merge([node(), other])
