"""The register of machine parameters: what can be looked up by a path, and that entries agree."""

from __future__ import annotations

import pytest

from popmodel.base.documents import Items, NamedShape, OneOf, Shape, TableShape, Text
from popmodel.machines import register
from popmodel.machines.bench.estimate.core_estimates import LEAST_OVERLAP
from popmodel.machines.profile_schema import PROFILE, Number
from popmodel.machines.register import PARTS, REGISTER, TIERS
from popmodel.model.symbols import GROUPS


@pytest.mark.parametrize(
    ("path", "entry"),
    [
        ("memory.b1", "memory.b1"),
        ("core.freq.16", "core.freq.CORES"),
        ("core.freq", "core.freq.CORES"),
        ("net.inter.classes[1].alpha", "net.TIER.classes[].alpha"),
        ("net.inter.classes.alpha", "net.TIER.classes[].alpha"),
        ("net.inter.alpha", "net.TIER.classes[].alpha"),
        ("net.or", "net.TIER.or"),
        ("net.intra.table", "net.TIER.table[].seconds"),
        ("openmp.for.seconds[T=4]", "openmp.CONSTRUCT.seconds[]"),
        ("coll.bcast[8 ranks, 64 B].seconds", "coll.OP[].seconds"),
        ("net.inter", None),
        ("net.far.alpha", None),
        ("memory.b1.more", None),
        ("params.N", None),
    ],
)
def test_a_path_leads_to_its_entry(path: str, entry: str | None) -> None:
    found = register.find(path)
    assert (found and found.path) == entry


def test_what_is_not_used_says_why() -> None:
    assert register.unused("net.intra.classes[0].alpha") == ""
    assert register.unused("net.socket.classes[0].alpha").startswith("messages within a socket")
    assert register.unused("net.inter.g").startswith("LogGP")
    assert register.unused("net.inter.or") == ""
    assert register.unused("params.N") == ""


def test_the_part_that_measures_is_known_of_sections_and_of_what_is_asked_for() -> None:
    assert register.part_of("memory.bsat (bandwidth of 12 cores)") == "memory"
    assert register.part_of("openmp.barrier at 64 threads") == "openmp"
    assert register.part_of("net.inter") == "p2p"
    assert register.part_of("net.overlap") == "overlap"
    assert register.part_of("imbalance.transient_cv") is None


def test_what_a_part_fills_belongs_to_it_alone() -> None:
    filled = {path: part for part in PARTS for path in register.filled_by(part)}
    assert filled["coll"] == filled["net.reduce_gamma"] == "collectives"
    assert {filled[f"net.{tier}"] for tier in TIERS} == {filled["net.nic_G"]} == {"p2p"}
    for one in REGISTER:
        for stem in one.stems:
            (above,) = [path for path in filled if f"{stem}.".startswith(f"{path}.")]
            assert filled[above] == one.part, one.path


def test_entries_name_parts_and_groups_that_there_are() -> None:
    for one in REGISTER:
        assert one.part in PARTS, one.path
        assert {*one.groups} - {""} <= {*GROUPS}, one.path
        assert one.meaning and not one.meaning.endswith("."), one.path
    assert len({one.path for one in REGISTER}) == len(REGISTER)


def test_what_is_one_for_a_factor_changes_in_one_direction() -> None:
    powers: dict[str, set[bool]] = {}
    for one in REGISTER:
        if one.changes:
            powers.setdefault(one.stem, set()).add(one.unit == "s/B")
    assert [stem for stem, inverse in powers.items() if len(inverse) > 1] == []


def test_names_stand_for_one_thing() -> None:
    by_name: dict[str, set[str]] = {}
    for one in REGISTER:
        by_name.setdefault(one.name, set()).add(one.stem)
    assert [name for name, stems in by_name.items() if len(stems) > 1] == []


def _numbers(shape: Shape, path: str = "") -> list[tuple[str, Number]]:
    match shape:
        case Number():
            return [(path, shape)]
        case TableShape(keys=keys):
            return [one for key in keys for one in _numbers(keys[key], f"{path}.{key}".strip("."))]
        case NamedShape(of=inner):
            return _numbers(inner, f"{path}.x")
        case Items(of=inner):
            return _numbers(inner, f"{path}[0]")
        case OneOf(shapes=(Text(), Number() as number)):
            return [(path, number)]
    return []


def test_the_schema_has_every_quantity_of_the_register_and_no_other() -> None:
    numbers = _numbers(PROFILE)
    entries = [(register.find(path), number) for path, number in numbers]
    assert {one.path for one, _ in entries if one} == {
        one.path for one in REGISTER if not one.plain
    }
    for one, n in entries:
        assert one and (one.unit, one.zero, one.least, one.most) == (
            n.unit,
            n.zero,
            n.least,
            n.most,
        )
    assert len(numbers) == sum(len(one.stems) for one in REGISTER if not one.plain)


def test_the_least_overlap_that_is_measured_is_the_least_that_a_profile_may_have() -> None:
    for path in ("core.overlap_with.L2", "core.overlap_issue.L2"):
        found = register.find(path)
        assert found is not None and found.least == LEAST_OVERLAP


def test_what_is_assumed_has_bounds_that_its_domain_allows() -> None:
    assumed = {one.path: one for one in REGISTER if one.assumed is not None}
    assert {"core.overlap", "memory.q"} <= assumed.keys()
    for one in assumed.values():
        known = one.assumed
        assert known and known.is_uncertain and known.source
        assert known.origin == "assumed"
        assert one.most is None or known.high <= one.most
        assert one.zero or known.low > 0
