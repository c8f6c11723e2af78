"""What is doubtful in a profile, and whether that is what the model does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from machines.profiles import Document, document, measured, overhead

from popmodel.base.values import plain
from popmodel.machines import profile as profiles
from popmodel.machines.profile_findings import (
    KINDS,
    NEEDS,
    ProfileFinding,
    inspect,
    measured_at,
)
from popmodel.machines.register import CONSTRUCTS, PARTS, part_of

THEN = datetime(2026, 11, 2, tzinfo=UTC)
_MEASURED = {"barrier", "for", "parallel_for", "reduction"}
OTHERS = (
    f"openmp: {', '.join(sorted(set(CONSTRUCTS) - _MEASURED))} are "
    "assumed, 200 ns to 40 us: measure it: popmodel machine measure -o machine.json"
)
"""Constructs that the profile of these tests lacks."""


def found(profile: Document, kind: str, now: datetime = THEN) -> list[str]:
    return [one.text for one in inspect(profiles.from_document(profile), now) if one.kind == kind]


def test_what_weighs_most_comes_first() -> None:
    kinds = [one.kind for one in inspect(profiles.from_document(document()), THEN)]
    assert kinds == sorted(kinds, key=KINDS.index)
    assert {"noisy", "unused"} <= set(kinds)
    assert plain(ProfileFinding("noisy", "quality.x", "words")) == {
        "kind": "noisy",
        "path": "quality.x",
        "text": "words",
    }


def test_a_complete_profile_lacks_nothing() -> None:
    assert found(document(), "missing") == []


def test_what_predictions_need_is_asked_for_with_its_remedy() -> None:
    one = document()
    del one["memory"]["kappa"], one["net"]["reduce_gamma"]
    assert found(one, "missing") == [
        "signatures with if_fits need memory.kappa (assumed meanwhile: 0.25 to 1.5): measure it: "
        "popmodel machine measure -o machine.json",
        "predictions of reductions need net.reduce_gamma (assumed meanwhile: 2e-11 to 1e-09 s/B): "
        "measure it: popmodel machine measure -o machine.json",
    ]


def test_several_nodes_need_messages_between_them() -> None:
    one = document()
    one["topology"]["nodes"] = 2
    one["net"]["inter"] = one["net"]["intra"]
    assert found(one, "missing") == []
    asked = {path for need in NEEDS for path in need.paths[0]} - {"topology.caches"}  # no benchmark
    assert {part_of(path) for path in asked} <= set(PARTS)


def test_the_reason_of_what_is_absent_stands_in_the_place_of_the_remedy() -> None:
    one = document()
    del one["net"]
    one["absent"] = {"net.intra": "needs at least 2 ranks"}
    assert found(one, "missing")[0] == (
        "predictions of several processes on a node need net.intra (assumed meanwhile: latency of "
        "a message 200 ns to 50 us, time per byte of a message 4e-11 to 1e-08 s/B): needs at least "
        "2 ranks"
    )


def test_bandwidth_by_cores_stands_for_the_law_of_saturation() -> None:
    one = document()
    del one["memory"]["bsat"], one["memory"]["q"]
    assert "memory.bsat" in found(one, "missing")[0]
    one["memory"]["by_cores"] = {"1": measured(1e10), "4": measured(2e10)}
    assert found(one, "missing") == []
    one["memory"]["by_cores"] = {"1": measured(1e10), "2": measured(2e10)}
    assert found(one, "missing")[0].startswith(  # of 3 and 4 cores
        "predictions of loops with traffic to memory need memory.bsat (assumed meanwhile: "
    )


def test_what_is_assumed_is_told_with_its_bounds() -> None:
    one = document()
    assert found(one, "preset") == [OTHERS]
    del one["core"]["overlap"], one["memory"]["q"]
    one["absent"] = {"memory.q": "saturation cannot be fitted from 2 cores of a memory domain"}
    assert found(one, "preset") == [
        "core.overlap is assumed, 0 to 1: measure it: popmodel machine measure -o machine.json",
        "memory.q is assumed, 2.5 to 6: saturation cannot be fitted from 2 cores of a memory "
        "domain",
        OTHERS,
    ]
    del one["core"]
    assert len(found(one, "preset")) == 2


def test_noise_is_told_with_its_reason() -> None:
    assert found(document(), "noisy") == ["memory: noisy (others used a CPU)"]
    one = document()
    one["quality"] = {
        "net": {"noisy": True, "why": ["spread 12 %", "steal"]},
        "core": {"noisy": True},
        "memory": {"noisy": False, "why": ["one launch"]},
        "openmp": "fine",
    }
    assert found(one, "remark") == ["memory: one launch"]
    assert found(one, "noisy") == [
        "net: noisy (spread 12 %; steal)",
        "core: noisy (no reason given)",
    ]


def test_wide_intervals_are_counted_by_section() -> None:
    one = document()
    assert found(one, "wide") == []
    one["net"]["overlap"] = measured(0.5, 0.4)
    one["net"]["shm_k"] = measured(2, 0.3)
    assert found(one, "wide") == [
        "net: 2 of 11 intervals wider than 50 % of the value (widest: net.overlap, 80 %)"
    ]


def test_a_very_wide_interval_is_told_without_its_figure() -> None:
    one = document()
    one["net"]["overlap"] = {"value": 0.05, "low": 0.0, "high": 0.9}
    assert found(one, "wide") == [
        "net: 1 of 11 intervals wider than 50 % of the value (widest: net.overlap, over 1000 %)"
    ]


def test_overheads_known_to_some_nanoseconds_are_not_wide() -> None:
    one = document()
    one["openmp"]["critical"] = overhead(4e-11)
    one["openmp"]["critical"]["seconds"] = [{"value": 4e-11, "low": 0.0, "high": 1.9e-8}]
    assert found(one, "wide") == []
    one["openmp"]["critical"]["seconds"] = [{"value": 1e-8, "low": 0.0, "high": 2.1e-8}]
    (text,) = found(one, "wide")
    assert "widest: openmp.critical.seconds[0], 210 %" in text


def test_what_is_not_measured_is_told() -> None:
    preset = profiles.load(profiles.DEFAULT_PRESET)
    text, *others = [one.text for one in inspect(preset, THEN) if one.kind == "preset"]
    assert text == ("published or assumed, not measured: all values")
    assert [other.partition(" is assumed")[0] for other in others] == [
        "core.branch_miss",
        "core.predicted_trip",
        "core.overlap_issue.any",
        "memory.write_back.any",
        "memory.line_takeover.any",
        "memory.inner_kappa.any",
        f"openmp: {', '.join(sorted(set(CONSTRUCTS) - {'for', 'parallel_for', 'reduction'}))} are "
        "assumed, 200 ns to 40 us: measure it: popmodel machine measure -o machine.json",
    ]
    one = document()
    one["memory"]["kappa"] = {"value": 0.5, "origin": "user"}
    assert found(one, "preset") == ["given by the user, not measured: memory.kappa", OTHERS]


def test_caches_that_nothing_told() -> None:
    one = document()
    del one["topology"]["caches"]
    need = "signatures with if_fits need topology.caches (assumed meanwhile: 32 KiB to 128 MiB): "
    assert found(one, "missing") == [need + "add it to the profile, with its source"]
    one["absent"] = {"topology.caches": "sysfs is not mounted"}
    assert found(one, "missing") == [need + "sysfs is not mounted"]


def test_age() -> None:
    assert found(document(), "age") == []
    later = THEN + timedelta(days=200)
    assert found(document(), "age", later) == [
        ("measured 200 days ago: measure again if system, MPI or compiler changed")
    ]


@pytest.mark.parametrize(
    ("provenance", "expected"),
    [
        ({"time": "2026-11-01T12:00:00Z"}, datetime(2026, 11, 1, 12, tzinfo=UTC)),
        ({"time": "2026-11-01T12:00:00"}, datetime(2026, 11, 1, 12, tzinfo=UTC)),
        (
            {
                "time": "2027-01-01T00:00:00Z",
                "measurements": [
                    {"started": "2026-11-01T12:00:00Z"},
                    {"started": "2026-12-01T00:00:00Z"},
                    {},
                ],
            },
            datetime(2026, 11, 1, 12, tzinfo=UTC),
        ),
        ({"time": "yesterday"}, None),
        ({"time": 3}, None),
        ("by hand", None),
    ],
)
def test_the_time_of_a_measurement(provenance: object, expected: datetime | None) -> None:
    one = {**document(), "provenance": provenance}
    assert measured_at(profiles.from_document(one)) == expected


def test_launches_that_failed_are_told() -> None:
    one = document()
    one["provenance"] = {"measurements": [{"failures": ["launch 3 (mpi) was given up: dead"]}]}
    assert found(one, "failed") == ["launch 3 (mpi) was given up: dead"]
    lacking = "3 of 90 jobs have no sample: launch 2 was interrupted"
    one["provenance"] = {"measurements": [{"shortfalls": [lacking]}, {"without_sample": 0}]}
    assert found(one, "failed") == [lacking]


def test_what_the_model_does_not_use_is_told_with_the_reason() -> None:
    texts = found(document(), "unused")
    assert "not used: core.smt_factor (simultaneous multithreading)" in texts
    assert ("not used: net.intra.G, net.intra.g (LogGP; messages cost alpha + beta m)") in texts
    assert "not used: noise (noise is not modelled)" in texts
    assert not [text for text in texts if "coll." in text]
