"""How far transfers hide behind arithmetic: the factors that were put in come out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from machines.bench.estimate.synthetic import QUIET, Job, Noise, absent, launches, measured

from popmodel.machines import profile
from popmodel.machines.bench.estimate.core_estimates import overlap
from popmodel.machines.bench.estimate.measured_results import MeasuredResults
from popmodel.machines.bench.estimate.profile_document import calibrate

TOPOLOGY: dict[str, Any] = {
    "cores_per_node": 4,
    "caches": [
        {"level": "L1", "bytes": 1 << 15, "shared_by": 1},
        {"level": "L2", "bytes": 1 << 20, "shared_by": 1},
        {"level": "L3", "bytes": 1 << 24, "shared_by": 4},
    ],
}
SIZES = {"L2": 1 << 18, "L3": 1 << 22, "MEM": 1 << 28}
CORE = {"freq": {"1": {"value": 2e9}}, "flop_per_cycle": {"value": 8.0}}


def loop(
    omega: float,
    *,
    level: str = "MEM",
    share: int = 100,
    threads: int = 1,
    rate: float = 1.6e10,
    size: int = 0,
) -> Job:
    """A loop that follows the form exactly; its arithmetic runs at a rate, flop/s."""
    transfer = 1e-6 if level == "L2" else 1e-5
    arithmetic = transfer * share / 100
    both = (1 - omega) * (transfer + arithmetic) + omega * max(transfer, arithmetic)
    return Job(
        "mixed",
        {"threads": threads, "bytes": size or SIZES[level], "arithmetic": share},
        both,
        transfer,
        facts={"moved": 12288.0, "work": rate * arithmetic * threads},
        arithmetic=arithmetic,
    )


def all_loops(omega: float) -> list[Job]:
    return [loop(omega, level=level, share=share) for level in SIZES for share in (50, 100, 200)]


@pytest.mark.parametrize("omega", [0.0, 0.3, 0.8, 1.0])
def test_the_factor_of_loops_that_follow_the_form_is_found(omega: float) -> None:
    section, fit, remarks = overlap(measured(all_loops(omega)), TOPOLOGY, CORE, {})
    quantity = section["overlap"]
    for one in (quantity, *section["overlap_with"].values()):
        for key in ("value", "low", "high"):
            assert one[key] == pytest.approx(omega, abs=1e-4)
    assert (fit["residual"], fit["worst"]) == pytest.approx((0, 0), abs=1e-4)
    assert quantity["origin"] == "measured"
    assert quantity["n"] == 9 * 3 * 60
    assert quantity["source"].startswith(
        "median of 9 loops with arithmetic and transfers (L2, L3, MEM);"
    )
    assert remarks == []


def test_levels_have_factors_of_their_own() -> None:
    jobs = [loop(0.9, level="L2"), loop(0.7, level="L3"), loop(0.4, level="MEM")]
    section, fit, _ = overlap(measured(jobs), TOPOLOGY, CORE, {})
    quantity = section["overlap"]
    assert (quantity["low"], quantity["value"], quantity["high"]) == pytest.approx((0.4, 0.7, 0.9))
    by_level = {"L2": 0.9, "L3": 0.7, "MEM": 0.4}
    found = {level: one["value"] for level, one in section["overlap_with"].items()}
    assert found == pytest.approx(by_level)
    assert {one["level"]: one["overlap"] for one in fit["loops"]} == pytest.approx(by_level)
    assert [one["misfit"] for one in fit["loops"]] == pytest.approx([0, 0, 0], abs=1e-4)


def test_the_small_set_of_a_level_stands_for_it_and_the_interval_holds_both() -> None:
    small, large = 3 << 20, 8 << 20
    jobs = [
        *(loop(0.9, level="L3", size=small, share=share) for share in (50, 100)),
        *(loop(0.5, level="L3", size=large, share=share) for share in (50, 100, 200)),
    ]
    section, _, _ = overlap(measured(jobs), TOPOLOGY, CORE, {})
    quantity = section["overlap_with"]["L3"]
    assert (quantity["low"], quantity["value"], quantity["high"]) == pytest.approx((0.5, 0.9, 0.9))
    assert quantity["source"].startswith("median of 2 loops")
    assert quantity["source"].endswith("the interval holds 5 loops")


def test_arithmetic_that_makes_transfers_longer_is_an_overlap_below_zero() -> None:
    section, _, _ = overlap(measured([loop(-0.5)]), TOPOLOGY, CORE, {})
    assert section["overlap_with"]["MEM"]["value"] == pytest.approx(-0.5, abs=1e-4)
    assert section["overlap"]["value"] == 0
    section, _, _ = overlap(measured([loop(-3)]), TOPOLOGY, CORE, {})
    assert section["overlap_with"]["MEM"]["value"] == -2


def test_noise_of_batches_and_launches_stays_within_the_interval() -> None:
    inside = 0
    for seed in range(40):
        found = launches(
            all_loops(0.6), 5, np.random.default_rng(seed), Noise(launch=0.02, batch=0.03)
        )
        quantity = overlap(MeasuredResults(found), TOPOLOGY, CORE, {})[0]["overlap"]
        assert quantity["value"] == pytest.approx(0.6, abs=0.06)
        inside += quantity["low"] <= 0.6 <= quantity["high"]
    assert inside >= 36  # it holds loops and launches, which differ more than their median


def test_a_factor_that_is_beyond_by_the_error_of_times_is_cut() -> None:
    (job,) = [loop(1.0)]
    faster = Job(
        job.name, job.params, 0.95 * job.seconds, job.reference, 0.1, job.facts, job.arithmetic
    )
    section, fit, _ = overlap(measured([faster], 3, QUIET), TOPOLOGY, CORE, {})
    quantity = section["overlap_with"]["MEM"]
    assert (quantity["value"], quantity["high"]) == (1, 1)
    assert fit["residual"] == pytest.approx(1 / 0.95 - 1, abs=1e-4)


def test_loops_in_which_one_part_is_nothing_tell_nothing() -> None:
    reasons: dict[str, str] = {}
    found = overlap(measured([loop(0.5, share=5)]), TOPOLOGY, CORE, reasons)
    assert found == ({}, {}, [])
    assert reasons == {
        "core.overlap": "no measured loop had enough batches, and arithmetic and transfers of like "
        "length"
    }


def test_a_loop_that_could_not_be_measured_says_why() -> None:
    reasons: dict[str, str] = {}
    gone = absent("mixed", "not enough memory", threads=1, bytes=1 << 28, arithmetic=100)
    assert overlap(MeasuredResults([gone]), TOPOLOGY, CORE, reasons) == ({}, {}, [])
    assert reasons == {"core.overlap": "not enough memory"}


def test_a_form_that_fits_badly_is_remarked() -> None:
    jobs = [loop(1.0, share=100), loop(0.0, share=50)]
    _, fit, remarks = overlap(measured(jobs), TOPOLOGY, CORE, {})
    # by the form with 0.5: 1.5 instead of 1, 1.25 instead of 1.5
    assert fit["residual"] == pytest.approx((1 / 2 + 1 / 6) / 2, abs=1e-3)
    assert remarks == [
        "core.overlap_with: one factor a level meets the times of the measured loops to 33 % only "
        "(median; 50 % at worst)"
    ]


def test_arithmetic_that_is_slower_than_the_core_is_remarked() -> None:
    _, _, remarks = overlap(measured([loop(0.5, rate=4e9)]), TOPOLOGY, CORE, {})
    assert remarks == [
        "core.overlap: the arithmetic of the measured loops ran at 25 % of the peak of the cores"
    ]
    assert overlap(measured([loop(0.5, rate=4e9)]), TOPOLOGY, {}, {})[2] == []
    # short loops are limited by their loads and stores
    _, _, remarks = overlap(measured([loop(0.5, level="L2", share=50, rate=4e9)]), {}, CORE, {})
    assert remarks == []


def test_factor_and_fit_are_in_the_profile() -> None:
    files = {
        "affinity": "0-3",
        "/proc/meminfo": "MemTotal:       16000000 kB\n",
        "/sys/devices/system/cpu/online": "0-3",
    }
    found = launches(all_loops(0.6), 3, np.random.default_rng(0), QUIET, lambda _: {"files": files})
    document = calibrate(found, "lab")
    loaded = profile.from_document(document)
    assert loaded.quantities["core.overlap"].value == pytest.approx(0.6, abs=1e-4)
    assert document["quality"]["core"]["overlap"]["residual"] == pytest.approx(0, abs=1e-4)
    assert document["quality"]["core"]["jobs"] == 9


def issue(omega: float, level: str, read: float = 1.0) -> Job:
    """Rows that are added while a matrix is read, which takes ``read`` times as long alone."""
    rows = 1e-6
    both = (1 - omega) * (rows + read * rows) + omega * max(rows, read * rows)
    return Job(
        "issue",
        {"bytes": SIZES[level]},
        both,
        read * rows,
        facts={"moved": 2048.0},
        arithmetic=rows,
    )


def test_the_issue_of_instructions_has_factors_of_its_own() -> None:
    jobs = [issue(0.4, "L2", 0.2), issue(0.9, "L3"), issue(0.6, "MEM", 3), loop(0.2)]
    section, _, _ = overlap(measured(jobs, 3, QUIET), TOPOLOGY, CORE, {})
    found = {level: one["value"] for level, one in section["overlap_issue"].items()}
    assert found == pytest.approx({"L2": 0.4, "L3": 0.9, "MEM": 0.6}, abs=1e-3)
    assert section["overlap"]["value"] == pytest.approx(0.2, abs=1e-3)


def test_the_issue_of_instructions_is_told_without_arithmetic() -> None:
    section, fit, _ = overlap(measured([issue(0.4, "L2")], 3, QUIET), TOPOLOGY, CORE, {})
    assert section.keys() == {"overlap_issue"}
    assert fit == {}


def test_what_is_read_in_next_to_no_time_tells_no_overlap() -> None:
    jobs = [issue(0.4, "L2", 0.05)]
    assert overlap(measured(jobs, 3, QUIET), TOPOLOGY, CORE, {}) == ({}, {}, [])
