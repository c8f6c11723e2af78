"""Differences between profiles."""

from __future__ import annotations

from typing import Any

import pytest

from popmodel.machines import profile
from popmodel.machines.profile_comparison import ProfileDifference, diff
from popmodel.machines.quantity import Quantity

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
    assert ProfileDifference("x", first, second).within is within
    assert ProfileDifference("x", second, first).within is within


def test_a_ratio_needs_two_values() -> None:
    assert ProfileDifference("x", Quantity(2.0), Quantity(3.0)).ratio == 1.5
    assert ProfileDifference("x", None, Quantity(3.0)).ratio is None
    assert ProfileDifference("x", Quantity(0.0), Quantity(3.0)).ratio is None
    assert ProfileDifference("x", Quantity(-0.3), Quantity(0.7)).ratio is None
    assert ProfileDifference("x", Quantity(-0.2), Quantity(-0.4)).ratio == 2.0


def test_all_quantities_of_both_profiles_are_compared() -> None:
    first = profile.from_document(node(memory={"b1": q(1e10), "copy_bw": q(2e9)}))
    second = profile.from_document(node(memory={"b1": q(2e10), "kappa": q(0.5)}))
    rows = diff(first, second)
    assert [row.path for row in rows] == ["memory.b1", "memory.copy_bw", "memory.kappa"]
    assert [row.ratio for row in rows] == [2.0, None, None]


def test_rows_are_matched_by_what_they_are_about() -> None:
    def rows(*sizes: int) -> Document:
        return {
            "coll": {
                "bcast": [
                    {"P": 4, "ppn": ppn, "bytes": n, "seconds": q(n * 1e-9)}
                    for n in sizes
                    for ppn in (4, 2)
                ]
            },
            "net": {
                "intra": {
                    "classes": [{"alpha": q(1e-6), "beta": q(1e-10)}],
                    "table": [{"bytes": n, "seconds": q(n * 1e-9)} for n in sizes],
                    "pairs": [{"pairs": 2, "bytes": n, "bandwidth": q(1e9)} for n in sizes],
                }
            },
            "openmp": {"barrier": {"T": list(sizes), "seconds": [q(n * 1e-9) for n in sizes]}},
        }

    first, second = (profile.from_document(node(**rows(*sizes))) for sizes in ((8, 64), (64, 512)))
    ratios = {row.path: row.ratio for row in diff(first, second)}
    assert ratios["coll.bcast[4 ranks, 64 B].seconds"] == 1.0
    assert ratios["coll.bcast[4 ranks, 2 per node, 64 B].seconds"] == 1.0
    assert ratios["net.intra.table[64 B].seconds"] == 1.0
    assert ratios["net.intra.pairs[2 pairs, 64 B].bandwidth"] == 1.0
    assert ratios["openmp.barrier.seconds[T=64]"] == 1.0
    assert ratios["openmp.barrier.seconds[T=8]"] is None
    assert ratios["net.intra.classes[0].alpha"] == 1.0
