"""Bandwidth, latency and what caches may serve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from machines.bench.estimate.synthetic import QUIET, Job, launches, measured, memory, triad

from popmodel.machines.bench.estimate.measured_results import MeasuredResults


def test_two_cores_tell_no_saturation() -> None:
    section, reasons, remarks = memory(
        measured([triad(1, 1e10), triad(2, 1.5e10)]),
        {"cores_per_node": 2, "caches": [{"level": "L3", "bytes": 1 << 20, "shared_by": 2}]},
    )
    assert section["b1"]["value"] == pytest.approx(1e10)
    assert section["by_cores"]["2"]["value"] == pytest.approx(1.5e10)
    assert "bsat" not in section
    assert reasons["memory.bsat"] == "saturation cannot be fitted from 2 cores of a memory domain"
    assert remarks == []


def test_cores_that_do_not_saturate_tell_no_law() -> None:
    _, reasons, _ = memory(measured([triad(n, n * 1e10) for n in (1, 2, 3, 4)]), {})
    assert reasons["memory.q"] == (
        "4 cores do not saturate the memory: they reach 4.0 times the bandwidth of one core"
    )


@pytest.mark.parametrize(
    ("cache", "shared_by", "cores", "domains", "array", "caches"),  # MiB
    [
        (128, 64, 64, 1, 256, 128),
        (32, 6, 48, 1, 128, 256),
        (96, 8, 96, 1, 256, 1152),
        (32, 4, 64, 2, 1023, 256),
        (128, 64, 64, 1, 512, None),
        (32, 6, 48, 8, 128, None),
    ],
)
def test_arrays_that_the_caches_of_a_domain_may_hold_are_doubted(
    cache: int, shared_by: int, cores: int, domains: int, array: int, caches: int | None
) -> None:
    job = Job("triad", {"threads": 1, "bytes": array << 20}, 1.0, facts={"moved": 3 * array << 20})
    last = {"level": "L3", "bytes": cache << 20, "shared_by": shared_by}
    topology = {"cores_per_node": cores, "domains": domains, "caches": [last]}
    _, _, remarks = memory(measured([job]), topology)
    assert remarks == (
        []
        if caches is None
        else [
            f"the triad used arrays of {array} MiB, less than 4 times the last-level caches "
            f"of a memory domain ({caches} MiB): part of the traffic may be cached"
        ]
    )


CACHES = {"caches": [{"level": "L1", "bytes": 32768}, {"level": "L2", "bytes": 1 << 20}]}


def load(size: int, bandwidth: float) -> Job:
    return Job("load", {"threads": 1, "bytes": size}, size / bandwidth, facts={"moved": size})


def test_working_sets_tell_the_levels_and_the_usable_share() -> None:
    sizes = {1 << 14: 4e11, 1 << 17: 1e11, 1 << 18: 1e11, 1 << 19: 1e11, 786432: 3e10}
    sizes |= {1 << 20: 2e10, 1 << 21: 2e10, 1 << 23: 2e10}
    jobs = [load(size, rate) for size, rate in sizes.items()]
    jobs += [Job("chase", {"bytes": 1 << 14}, 1e-9), Job("chase", {"bytes": 1 << 23}, 1e-7)]
    section, _, _ = memory(measured(jobs), CACHES)
    assert section["cache_bw"]["L1"]["value"] == pytest.approx(4e11)
    assert section["cache_bw"]["L2"]["value"] == pytest.approx(1e11)
    assert section["latency"]["L1"]["value"] == pytest.approx(1e-9)
    assert section["latency"]["MEM"]["value"] == pytest.approx(1e-7)
    kappa = section["kappa"]
    assert kappa["origin"] == "measured"
    assert 0.5 == kappa["low"] < kappa["value"] < kappa["high"] == 0.75


def test_the_end_of_a_cache_that_others_use_is_found_where_reading_gets_no_slower() -> None:
    shared = {"caches": [*CACHES["caches"], {"level": "L3", "bytes": 480 << 20}]}
    rates = {16: 3e10, 60: 3e10, 120: 1.5e10, 180: 1e10, 256: 1e10}
    section, _, _ = memory(
        measured([load(size << 20, rate) for size, rate in rates.items()]), shared
    )
    kappa = section["kappa"]
    assert (kappa["origin"], kappa["low"], kappa["high"]) == ("measured", 0.125, 0.25)
    still_slower = rates | {180: 1.2e10}
    section, _, _ = memory(
        measured([load(size << 20, rate) for size, rate in still_slower.items()]), shared
    )
    assert section["kappa"]["origin"] == "preset"


SHARED = {"caches": [*CACHES["caches"], {"level": "L3", "bytes": 480 << 20}]}
READS = {16: 34, 60: 34, 90: 40, 120: 55, 180: 65, 256: 65}  # MiB, ps/B
UPDATES = {16: 34, 60: 64, 90: 96, 120: 100, 180: 100, 256: 100}


def sweeps(name: str, times: Mapping[int, float]) -> list[Job]:
    """Going over working sets, MiB, in some time for each byte, ps."""
    more = {"threads": 1} if name == "load" else {}
    return [
        Job(
            name,
            {**more, "bytes": size << 20},
            (size << 20) * time * 1e-12,
            facts={"moved": size << 20},
        )
        for size, time in times.items()
    ]


def kappa(of: MeasuredResults | Sequence[Job]) -> dict[str, Any]:
    """Usable share of the last cache."""
    section, _, _ = memory(of if isinstance(of, MeasuredResults) else measured(of), SHARED)
    found: dict[str, Any] = section["kappa"]
    return found


def one_by_one(each: Sequence[Sequence[Job]]) -> MeasuredResults:
    """Launches with jobs of their own."""
    rng = np.random.default_rng(0)
    found = [launches(jobs, 1, rng, QUIET)[0] for jobs in each]
    return MeasuredResults([replace(one, path=f"{n}/launch.jsonl") for n, one in enumerate(found)])


def test_the_usable_share_is_that_of_updates_as_narrow_as_those_of_programs() -> None:
    reads = kappa(sweeps("load", READS))
    both = kappa(sweeps("load", READS) + sweeps("narrow_update", UPDATES))
    assert 90 / 480 < reads["value"] < 120 / 480
    assert 60 / 480 < both["value"] < 90 / 480


def test_the_interval_of_the_usable_share_spans_reads_and_updates() -> None:
    both = kappa(sweeps("load", READS) + sweeps("narrow_update", UPDATES))
    assert (both["low"], both["high"]) == (0.125, 0.25)  # 60 and 120 MiB
    assert both["n"] == len(READS) + len(UPDATES)
    assert both["source"] == (
        "working set at which updates slow down half way from last-level cache to memory; the "
        "interval holds reads"
    )


@pytest.mark.parametrize(
    "times",
    [
        {16: 34.0},
        {16: 34, 60: 64, 256: 100},  # too few
        {**UPDATES, 256: 120},  # still slower beyond the largest
        dict.fromkeys(UPDATES, 34.0),  # no end
    ],
)
def test_updates_that_do_not_show_an_end_leave_the_usable_share_to_reads(
    times: Mapping[int, float],
) -> None:
    reads = sweeps("load", READS)
    assert kappa(reads + sweeps("narrow_update", times)) == kappa(reads)
    assert kappa(reads)["source"].startswith("working set at which reads slow down half way")


EARLY = {**READS, 60: 52, 90: 60, 120: 65}
LATE = {**READS, 90: 34, 120: 36}


def test_launches_whose_cache_ends_elsewhere_widen_the_interval() -> None:
    usual = [sweeps("load", READS) for _ in range(8)]
    alike = kappa(one_by_one([*usual, usual[0]]))
    differ = kappa(one_by_one([*usual, sweeps("load", EARLY), sweeps("load", LATE)]))
    assert (alike["low"], alike["high"]) == (0.188, 0.25)  # 90 and 120 MiB
    assert differ["value"] == alike["value"]
    assert 16 / 480 < differ["low"] < alike["low"]
    assert alike["high"] < differ["high"] < 180 / 480


def test_a_cache_that_others_leave_at_times_ends_where_it_does_on_average() -> None:
    usual, lucky = (
        launches(sweeps("load", times), 1, np.random.default_rng(0), QUIET)[0]
        for times in (READS, LATE)
    )
    at_times = [
        replace(one, seconds=np.concatenate([other.seconds[:25], one.seconds[25:]]))  # of 60
        for one, other in zip(usual.results, lucky.results, strict=True)
    ]
    assert kappa(MeasuredResults([lucky]))["value"] > kappa(MeasuredResults([usual]))["value"]
    found = kappa(MeasuredResults([replace(usual, results=tuple(at_times))]))
    assert found == kappa(MeasuredResults([usual]))


def test_small_sets_may_be_measured_in_other_launches_than_large_ones() -> None:
    each = [READS] * 8 + [EARLY, LATE]
    whole = kappa(one_by_one([sweeps("load", times) for times in each]))
    small = [sweeps("load", {16: times[16]}) for times in each]
    large = [sweeps("load", {size: times[size] for size in times if size > 16}) for times in each]
    assert kappa(one_by_one([*small, *large])) == whole


def test_every_inner_cache_has_an_end_of_its_own() -> None:
    three = {"caches": [*CACHES["caches"], {"level": "L3", "bytes": 64 << 20}]}
    kib = {16: 4e11, 24: 4e11, 32: 4e11, 40: 2e11, 48: 1e11, 64: 1e11, 512: 1e11}
    kib |= {768: 1e11, 1024: 1e11, 1280: 4e10, 1536: 2e10, 2048: 2e10, 8192: 2e10, 32768: 2e10}
    jobs = [load(size << 10, rate) for size, rate in kib.items()]
    section, _, _ = memory(measured(jobs), three)
    first, second = (section["inner_kappa"][level] for level in ("L1", "L2"))
    assert 1.25 < first["value"] < 1.5
    assert (first["low"], first["high"]) == (1.25, 1.5)
    assert 1.25 < second["value"] < 1.5
    assert second["origin"] == "measured"


def test_what_is_written_back_is_what_an_update_takes_longer_than_a_read() -> None:
    three = {"caches": [*CACHES["caches"], {"level": "L3", "bytes": 64 << 20}]}
    jobs = [load(1 << 14, 4e11), load(1 << 18, 1e11), load(1 << 23, 4e10)]
    for size, rate in ((1 << 18, 1e11 / 3.25), (1 << 23, 4.1e10)):
        params = {"threads": 1, "bytes": size}
        jobs.append(Job("update", params, size / rate, facts={"moved": size}))
    section, _, _ = memory(measured(jobs), three)
    back = section["write_back"]
    assert set(back) == {"L2", "L3"}
    assert back["L2"]["value"] == pytest.approx(2.25)
    assert back["L3"]["value"] == 0  # no faster than reading
    assert back["L3"]["low"] >= 0


def test_a_usable_share_that_was_not_seen_is_a_preset_with_its_source() -> None:
    section, reasons, _ = memory(measured([load(1 << 14, 4e11)]), CACHES)
    assert section["kappa"]["origin"] == "preset"
    assert "Not measured" in section["kappa"]["source"]
    assert reasons["memory.latency.MEM"] == (
        "no working set was much larger than the last-level cache; the largest was 16 KiB"
    )


def test_false_sharing_is_relative_to_the_time_of_a_line() -> None:
    params = {"threads": 2}
    section, _, _ = memory(
        measured(
            [
                Job("line_transfer", {"threads": 2, "distance": "near"}, 5e-8),
                Job(
                    "line_takeover",
                    {"threads": 2, "bytes": 65536, "distance": "near"},
                    6e-6,
                    quantile=0.5,
                    facts={"work": 1024},
                ),
                Job("false_sharing", {**params, "padded": 0}, 2.1e-8, quantile=0.5),
                Job("false_sharing", {**params, "padded": 1}, 1e-9, quantile=0.5),
            ]
        ),
        {},
    )
    assert section["line_transfer"]["near"]["value"] == pytest.approx(5e-8)
    assert section["line_takeover"]["near"]["value"] == pytest.approx(6e-6 / 1024)
    assert section["kappa_fs"]["value"] == pytest.approx(0.4)
