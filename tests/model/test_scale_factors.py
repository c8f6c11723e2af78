"""Groups of quantities that change together: none forgotten, none in two."""

from collections.abc import Iterator

import pytest
from model.demo import degrees

from popmodel.base.documents import Items, NamedShape, OneOf, Optional, Shape, TableShape, Text
from popmodel.machines.profile_schema import PROFILE, Number
from popmodel.model.symbols import (
    GROUPS,
    beginnings,
    factors,
    factors_of,
)

# what no factor suits: shapes of curves, thresholds, and what no term uses
WITHOUT_GROUP = {
    "core.overlap",
    "core.overlap_with.*",
    "core.overlap_issue.*",
    "core.predicted_trip",
    "core.smt_factor",
    "memory.q",
    "memory.latency.*",
    "net.overlap",
    *(f"memory.remote.*.{name}" for name in ("bandwidth", "saturated", "latency")),
    *(
        f"net.{tier}.{name}"
        for tier in ("socket", "intra", "inter")
        for name in (
            "eager_threshold",
            "g",
            "G",
            "bidirectional",
            "table.seconds",
            "pairs.bandwidth",
        )
    ),
}


def quantities(entry: Shape, path: str = "") -> Iterator[str]:
    match entry:
        case Number():
            yield path
        case TableShape(keys=keys):
            for key, inner in keys.items():
                yield from quantities(inner, f"{path}.{key}".strip("."))
        case NamedShape(of=inner):
            yield from quantities(inner, f"{path}.*")
        case OneOf(shapes=(Text(), Number() as number)):
            yield from quantities(number, path)
        case Items(of=inner) | Optional(of=inner):
            yield from quantities(inner, path)


def groups_of(path: str) -> list[str]:
    flat = path.replace(".classes", "")
    return [
        name
        for name, group in GROUPS.items()
        if any(beginning in beginnings(flat) for beginning in group.powers)
    ]


def test_every_quantity_of_a_profile_is_in_one_group() -> None:
    for path in quantities(PROFILE):
        if path.startswith("coll."):  # measured times choose an algorithm, they enter nothing
            continue
        expected = 0 if path in WITHOUT_GROUP else 1
        assert len(groups_of(path)) == expected, path


def test_what_changes_together_is_a_time_or_a_rate_or_neither() -> None:
    for name in GROUPS:
        assert len(degrees(name)) == 1, name


def test_factors_turn_bandwidths_into_times() -> None:
    assert factors(["memory"], 2.0)["memory.bsat"] == 2.0
    assert factors(["adapter"], 2.0) == {"net.nic_G": 0.5}
    changed = factors_of({"bandwidth": 2.0, "latency": 0.5})
    assert changed["net.inter.beta"] == pytest.approx(0.5)
    assert changed["net.socket.alpha"] == 0.5
    assert factors_of({}) == {}
