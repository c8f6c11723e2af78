"""What calibration makes of samples without noise, and what it refuses to tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from machine.calibration.synthetic import QUIET, Job, Noise, launches

from popmodel.machine import profile
from popmodel.machine.calibration import (
    CalibrationError,
    calibrate,
    collectives,
    core,
    memory,
    noise,
    openmp,
    point_to_point,
    threads,
)
from popmodel.machine.calibration.measured import Measured
from popmodel.machine.calibration.statistics import Series, aligned, fitted, of_fit, quantities
from popmodel.machine.samples import Launch, Result
from popmodel.network.collectives import ALGORITHMS

FILES = {
    "affinity": "0-3",
    "/proc/meminfo": "MemTotal:       16000000 kB\n",
    "/sys/devices/system/cpu/online": "0-3",
    "/sys/devices/system/cpu/cpu0/cache/index0/level": "1",
    "/sys/devices/system/cpu/cpu0/cache/index0/type": "Data",
    "/sys/devices/system/cpu/cpu0/cache/index0/size": "32K",
    "/sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list": "0",
}


def measured(jobs: Sequence[Job], count: int = 3, disturbed: Noise = QUIET) -> Measured:
    return Measured(launches(jobs, count, np.random.default_rng(0), disturbed))


def absent(job: str, reason: str, **params: Any) -> Launch:
    result = Result(job, params, np.empty(0), absent=reason)
    return Launch("x.jsonl", {"program": "node"}, (result,), "complete")


# -- core


def test_rates_are_per_cycle_of_the_measured_clock() -> None:
    section, _ = core.calibrate(
        measured(
            [
                Job("clock", {"threads": 1}, 1e-7, facts={"work": 300}),
                Job("clock", {"threads": 4}, 1e-7, facts={"work": 250}),
                Job("fma", {"threads": 1}, 1e-7, facts={"work": 4800}),
                Job("loads", {}, 1e-7, facts={"work": 600}),
                Job("stores", {}, 1e-7, facts={"work": 300}),
                Job("loop", {}, 1 / 3e9),
                Job("smt", {"threads": 2, "shared": 0}, 1e-7, facts={"work": 100}),
                Job("smt", {"threads": 2, "shared": 1}, 1e-7, facts={"work": 60}),
            ]
        )
    )
    assert {key: q["value"] for key, q in section.pop("freq").items()} == {"1": 3e9, "4": 2.5e9}
    assert {key: q["value"] for key, q in section.items()} == pytest.approx(
        {
            "flop_per_cycle": 16,
            "load_per_cycle": 2,
            "store_per_cycle": 1,
            "loop_cycles": 1,
            "smt_factor": 1.2,
        }
    )


def test_no_smt_is_a_reason() -> None:
    launch = absent("smt", "no SMT", shared=1)
    clock = launches(
        [Job("clock", {"threads": 1}, 1.0, facts={"work": 1})], 1, np.random.default_rng(0)
    )
    assert core.calibrate(Measured([launch, *clock]))[1] == {"core.smt_factor": "no SMT"}


# -- memory


def triad(threads_: int, bandwidth: float) -> Job:
    size = 1 << 26
    return Job(
        "triad",
        {"threads": threads_, "bytes": size},
        4 * size / bandwidth,
        facts={"moved": 3 * size},
    )


def test_two_cores_tell_no_saturation() -> None:
    section, reasons, remarks = memory.calibrate(
        measured([triad(1, 1e10), triad(2, 1.5e10)]),
        {"cores_per_node": 2, "caches": [{"level": "L3", "bytes": 1 << 20, "shared_by": 2}]},
    )
    assert section["b1"]["value"] == pytest.approx(1e10)
    assert section["by_cores"]["2"]["value"] == pytest.approx(1.5e10)
    assert "bsat" not in section
    assert reasons["memory.bsat"] == "2 cores of a domain tell no law of saturation"
    assert remarks == []


def test_cores_that_do_not_saturate_tell_no_law() -> None:
    _, reasons, _ = memory.calibrate(measured([triad(n, n * 1e10) for n in (1, 2, 3, 4)]), {})
    assert reasons["memory.q"] == (
        "4 cores do not saturate the memory: 4.0 times the bandwidth of one"
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
    _, _, remarks = memory.calibrate(measured([job]), topology)
    assert remarks == (
        []
        if caches is None
        else [
            f"an array of the triad has {array} MiB, less than 4 times the last-level caches of a "
            f"memory domain ({caches} MiB), which may serve a part"
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
    section, _, _ = memory.calibrate(measured(jobs), CACHES)
    assert section["cache_bw"]["L1"]["value"] == pytest.approx(4e11)
    assert section["cache_bw"]["L2"]["value"] == pytest.approx(1e11)
    assert section["latency"]["L1"]["value"] == pytest.approx(1e-9)
    assert section["latency"]["MEM"]["value"] == pytest.approx(1e-7)
    kappa = section["kappa"]
    assert kappa["origin"] == "measured"
    assert 0.5 == kappa["low"] < kappa["value"] < kappa["high"] == 0.75


def test_a_usable_share_that_was_not_seen_is_a_preset_with_its_source() -> None:
    section, reasons, _ = memory.calibrate(measured([load(1 << 14, 4e11)]), CACHES)
    assert section["kappa"]["origin"] == "preset"
    assert "Not measured" in section["kappa"]["source"]
    assert reasons["memory.latency.MEM"] == (
        "no working set was large against the last-level cache; the largest had 16 KiB"
    )


def test_false_sharing_is_relative_to_the_time_of_a_line() -> None:
    params = {"threads": 2}
    section, _, _ = memory.calibrate(
        measured(
            [
                Job("line_transfer", {"threads": 2, "distance": "near"}, 5e-8),
                Job("false_sharing", {**params, "padded": 0}, 2.1e-8, quantile=0.5),
                Job("false_sharing", {**params, "padded": 1}, 1e-9, quantile=0.5),
            ]
        ),
        {},
    )
    assert section["line_transfer"]["near"]["value"] == pytest.approx(5e-8)
    assert section["kappa_fs"]["value"] == pytest.approx(0.4)


# -- OpenMP


def test_an_overhead_is_what_the_construct_adds() -> None:
    jobs = [
        Job("construct", {"name": "barrier", "threads": 2}, 3e-7, 1e-7),
        Job("construct", {"name": "critical", "threads": 2}, 1e-7, 8e-8, quantile=0.5),
        Job("construct", {"name": "master", "threads": 2}, 1e-7, 1.001e-7),
        Job("construct", {"name": "schedule_static", "threads": 2}, 3e-7, 1e-7),
        Job("construct", {"name": "schedule_dynamic", "threads": 2, "chunk": 1}, 1.5e-7, 1e-7),
        Job("construct", {"name": "copyin", "threads": 2, "bytes": 8}, 4e-7, 1e-7),
        Job("construct", {"name": "copyin", "threads": 2, "bytes": 4096}, 1.4e-6, 1e-7),
    ]
    section, reasons, remarks = openmp.calibrate(measured(jobs), {"cores_per_node": 2})
    values = {name: entry["seconds"][0]["value"] for name, entry in section.items()}
    assert values == pytest.approx(
        {
            "barrier": 2e-7,
            "critical": 2e-8,
            "master": 0.0,
            "static": 2e-7,
            "dynamic_chunk": 5e-8,
            "copyin": 3e-7,
        }
    )
    assert section["copyin"]["fit"]["v"]["value"] == pytest.approx(1e-6 / 4088 / 2, rel=1e-5)
    assert remarks == ["measured below the time of the same work without it, taken as 0: master"]
    assert reasons["openmp.*.fit.a"] == (
        "1 thread count above 1 cannot tell the terms of the law apart; 4 are needed"
    )


def test_the_step_across_sockets_is_a_term_of_the_law() -> None:
    counts = (2, 4, 6, 8, 12, 16, 24, 32)
    seconds = np.array([2e-7 + 1e-7 * np.log2(t) + 5e-7 * (t > 16) for t in counts])
    terms = openmp.choose_terms(counts, seconds, 16)
    assert terms == "abs"
    fitted = openmp.fit_law(counts, seconds, 16, terms)
    assert fitted == pytest.approx([2e-7, 1e-7, 0, 5e-7], rel=1e-6)


# -- network


def pingpong(size: int, seconds: float, tier: str = "node") -> Job:
    return Job("ping_pong", {"bytes": size, "tier": tier}, seconds)


SIZES = (0, 8, 1024, 4096, 16384, 65536, 262144)


def test_one_line_is_one_class() -> None:
    jobs = [pingpong(n, 1e-6 + 1e-10 * n, "network") for n in SIZES]
    net, _ = point_to_point.calibrate(measured(jobs))
    (only,) = net["inter"]["classes"]
    assert only["upto"] is None
    assert only["alpha"]["value"] == pytest.approx(1e-6)
    assert only["beta"]["value"] == pytest.approx(1e-10)
    assert [row["bytes"] for row in net["inter"]["table"]] == list(SIZES)


def late(size: int, seconds: float) -> Job:
    params = {"bytes": size, "tier": "node", "delay": "0.0005"}
    return Job("late_receiver", params, seconds, quantile=0.5)


@pytest.mark.parametrize(
    ("waits", "reason"),
    [
        ({1024: 1e-6, 4096: 1e-6}, "messages of up to 4096 B were all sent eagerly"),
        ({1024: 6e-4, 4096: 6e-4}, "already messages of 1024 B wait for their receiver"),
    ],
)
def test_a_switch_that_was_not_seen_is_not_told(waits: dict[int, float], reason: str) -> None:
    jobs = [pingpong(n, 1e-6) for n in SIZES] + [late(n, s) for n, s in waits.items()]
    net, reasons = point_to_point.calibrate(measured(jobs))
    assert "eager_threshold" not in net["intra"]
    assert reasons["net.intra.eager_threshold"] == reason


def test_without_a_jump_the_switch_lies_where_late_receivers_leave_it() -> None:
    jobs = [pingpong(n, 1e-6) for n in (*SIZES, 5000, 6000)]
    jobs += [late(1024, 1e-6), late(4096, 1e-6), late(8192, 6e-4)]
    net, _ = point_to_point.calibrate(measured(jobs))
    switch = net["intra"]["eager_threshold"]
    # 4096 itself, or anything up to nine tenths of the way to 8192 on a logarithmic scale
    assert (switch["low"], switch["value"], switch["high"]) == (4096, 4096, int(4096 * 2**0.9))


def test_a_jump_of_the_times_tells_where_between_late_receivers_the_switch_is() -> None:
    def seconds(size: int) -> float:
        return 1e-6 + 1e-10 * size + (5e-6 if size > 5500 else 0)

    jobs = [pingpong(n, seconds(n)) for n in (*SIZES, 64, 512, 5000, 6000, 7000)]
    jobs += [late(4096, 1e-6), late(8192, 6e-4)]
    net, _ = point_to_point.calibrate(measured(jobs))
    switch, classes = net["intra"]["eager_threshold"], net["intra"]["classes"]
    assert (switch["low"], switch["value"], switch["high"]) == (5000, 5000, int(5000 * 1.2**0.9))
    assert [one["upto"] for one in classes] == [5000, None]
    assert classes[1]["alpha"]["value"] == pytest.approx(6e-6)


def test_late_receivers_that_contradict_each_other_tell_no_switch() -> None:
    jobs = [pingpong(n, 1e-6) for n in SIZES]
    jobs += [late(1024, 1e-6), late(4096, 6e-4), late(8192, 1e-6)]
    net, reasons = point_to_point.calibrate(measured(jobs))
    assert "eager_threshold" not in net["intra"]
    assert reasons["net.intra.eager_threshold"] == (
        "late receivers contradict each other: messages of 4096 B wait for them, "
        "those of 8192 B do not"
    )


@pytest.mark.parametrize("seconds", [0.0, -2e-9])
def test_a_call_that_costs_no_more_than_the_clock_costs_nothing(seconds: float) -> None:
    jobs = [pingpong(n, 1e-6) for n in SIZES]
    jobs.append(Job("send_overhead", {"bytes": 8, "tier": "node"}, seconds))
    net, _ = point_to_point.calibrate(measured(jobs, 3, Noise()))
    overhead = net["intra"]["os"]
    assert overhead["value"] == 0.0 == overhead["low"]
    assert -seconds <= overhead["high"] < 1e-9 - 1.2 * seconds  # no better known than it is wrong
    assert point_to_point.nothing_left(net) == [
        "measured as nothing or less, taken as 0 with an interval of the size of the error: "
        "net.intra.os"
    ]


def test_collectives_of_which_nothing_is_left_are_remarked() -> None:
    params = {"op": "bcast", "bytes": 8}
    jobs = [
        Job("collective", {**params, "ranks": n}, seconds, quantile=0.5)
        for n, seconds in ((1, -1e-9), (2, 1e-7), (4, 1e-6))
    ]
    section, _ = collectives.calibrate(measured(jobs), {})
    assert section["bcast"][0]["seconds"]["high"] == pytest.approx(1e-9, rel=1e-5)
    assert collectives.nothing_left(section) == [
        "measured as nothing or less, taken as 0 with an interval of the size of the error: "
        "bcast of 8 B on 1 process"
    ]


def test_messages_that_outgrow_a_cache_have_a_class_of_their_own() -> None:
    # twice the time per byte from 1 MiB on: no line with a positive latency leads on from below
    sizes = (*SIZES, 1 << 19, 1 << 20, 1 << 21, 1 << 22)
    jobs = [pingpong(n, 5e-7 + n * (4e-11 if n < 1 << 20 else 9e-11)) for n in sizes]
    net, _ = point_to_point.calibrate(measured(jobs))
    classes = net["intra"]["classes"]
    assert [one["upto"] for one in classes] == [1 << 19, None]
    assert classes[1]["beta"]["value"] == pytest.approx(9e-11, rel=1e-3)
    assert point_to_point.misfits(net) == []


def test_a_latency_that_one_launch_hardly_tells_is_still_one() -> None:
    # of large messages alone: a latency that is lost in the noise of their times
    sizes = (*SIZES, 1 << 20, 1 << 21, 1 << 22)
    jobs = [pingpong(n, 5e-7 + n * (4e-11 if n < 1 << 20 else 9e-11)) for n in sizes]
    net, _ = point_to_point.calibrate(measured(jobs, 1, Noise(launch=0.0)))
    alpha = net["intra"]["classes"][-1]["alpha"]
    assert 0 < alpha["low"] <= alpha["value"] < alpha["high"] < 1e-4


def test_lines_that_miss_what_was_measured_are_remarked() -> None:
    quantity = {"value": 1e-6}
    section = {
        "intra": {
            "classes": [{"upto": None, "alpha": quantity, "beta": {"value": 1e-10}}],
            "table": [
                {"bytes": 0, "seconds": quantity},
                {"bytes": 10_000, "seconds": {"value": 4e-6}},
            ],
        }
    }
    assert point_to_point.misfits(section) == [
        "the size classes of net.intra miss the time of a message of 10000 B by -50 %"
    ]


def window(pairs: int, seconds: float, direction: str = "one", tier: str = "node") -> Job:
    params = {"bytes": 1 << 20, "tier": tier, "pairs": pairs, "direction": direction}
    moved = 64 * (1 << 20) * pairs * (2 if direction == "both" else 1)
    return Job("window", params, seconds, facts={"moved": moved}, quantile=0.5)


def test_pairs_that_crowd_each_other_share_a_limit() -> None:
    jobs = [pingpong(n, 1e-6, tier) for n in SIZES for tier in ("node", "network")]
    for tier in ("node", "network"):  # four pairs have twice the bandwidth of one
        jobs += [window(n, 1e-3 * max(1, n / 2), tier=tier) for n in (1, 2, 4)]
    jobs.append(window(1, 1.25e-3, "both"))
    net, reasons = point_to_point.calibrate(measured(jobs))
    assert net["shm_k"]["value"] == pytest.approx(2, rel=1e-5)
    assert net["nic_G"]["value"] == pytest.approx(1e-3 / (2 * 64 * (1 << 20)), rel=1e-5)
    assert net["intra"]["bidirectional"]["value"] == pytest.approx(1.6)
    assert net["intra"]["G"]["source"].startswith("64 messages of 1048576 B under way, p10")
    assert [row["pairs"] for row in net["intra"]["pairs"]] == [1, 2, 4]
    assert "net.shm_k" not in reasons


def test_the_source_of_the_gap_per_byte_says_how_many_messages_were_under_way() -> None:
    params = {"bytes": 4 << 20, "tier": "node", "pairs": 1, "direction": "one"}
    jobs = [pingpong(n, 1e-6) for n in SIZES]
    jobs.append(Job("window", params, 1e-3, facts={"moved": 4 * (4 << 20)}))
    net, _ = point_to_point.calibrate(measured(jobs))
    assert net["intra"]["G"]["source"] == "4 messages of 4194304 B under way, p10, 3 launches"


def test_pairs_that_do_not_crowd_each_other_share_nothing() -> None:
    jobs = [pingpong(n, 1e-6) for n in SIZES] + [window(n, 1e-3) for n in (1, 2, 4)]
    net, reasons = point_to_point.calibrate(measured(jobs))
    assert "shm_k" not in net
    assert reasons["net.shm_k"] == (
        "4 pairs of processes do not crowd each other with messages of 1048576 B"
    )


def test_one_pair_cannot_crowd_itself() -> None:
    jobs = [pingpong(n, 1e-6) for n in SIZES] + [window(1, 1e-3)]
    _, reasons = point_to_point.calibrate(measured(jobs))
    assert reasons["net.shm_k"] == "one pair of processes cannot crowd each other"


def test_trains_tell_the_gap() -> None:
    jobs = [pingpong(n, 1e-6) for n in SIZES]
    jobs += [
        Job("train", {"bytes": 8, "count": n, "tier": "node"}, 2e-6 + 3e-7 * n) for n in (1, 8, 64)
    ]
    net, _ = point_to_point.calibrate(measured(jobs))
    assert net["intra"]["g"]["value"] == pytest.approx(3e-7)


def test_a_tier_that_is_not_there_is_a_reason() -> None:
    launch = absent("ping_pong", "no two ranks on different nodes", tier="network", bytes=0)
    _, reasons = point_to_point.calibrate(Measured([launch]))
    assert reasons == {"net.inter": "no two ranks on different nodes"}


def test_the_cost_of_a_reduction_is_that_of_the_longest() -> None:
    jobs = [Job("reduce_local", {"bytes": n}, 1e-7 + 2e-10 * n) for n in (8, 1 << 20)]
    net, _ = point_to_point.calibrate(measured(jobs))
    assert net["reduce_gamma"]["value"] == pytest.approx(2e-10, rel=1e-3)


def test_threads_and_overlap() -> None:
    threaded = {"bytes": 8, "communicator": "own", "tier": "node"}
    jobs = [
        Job("threaded", {**threaded, "threads": 1}, 1e-6, quantile=0.5),
        Job("threaded", {**threaded, "threads": 4}, 2.5e-6, quantile=0.5),
        Job(
            "overlap",
            {"bytes": 1 << 20, "tier": "node", "progress": 0},
            1.75e-4,
            1e-4,
            quantile=0.5,
            facts={"compute": 1e-4},
        ),
    ]
    section, _ = threads.calibrate(measured(jobs))
    assert section["thread_factor"]["value"] == pytest.approx(0.5)
    assert section["overlap"]["value"] == pytest.approx(0.25)


def test_full_thread_support_costs_what_it_adds_to_a_message() -> None:
    rng = np.random.default_rng(0)
    level = {"mpi": {"thread_level": "multiple"}}
    plain = launches([pingpong(8, 1e-6)], 2, rng, QUIET)
    full = launches([pingpong(8, 1.3e-6)], 2, rng, QUIET, lambda _: level)
    section, _ = threads.calibrate(Measured([*plain, *full]))
    assert section["multiple_overhead"]["value"] == pytest.approx(3e-7)


def placed(ranks: int, level: str) -> Callable[[int], dict[str, Any]]:
    threads_each = {"max_threads": 8 // ranks}
    header = {"mpi": {"thread_level": level}, "ranks": ranks, "openmp": threads_each}
    return lambda _: header


def test_full_thread_support_is_compared_with_ranks_placed_alike() -> None:
    rng = np.random.default_rng(0)
    # All ranks disturb each other: their messages are slower, whatever the thread support.
    crowd = [pingpong(size, 2e-6 + 1e-10 * size) for size in (8, 64, 1024, 1 << 20)]
    crowded = launches(crowd, 2, rng, QUIET, placed(8, "funneled"))
    plain = launches([pingpong(8, 1e-6)], 2, rng, QUIET, placed(2, "funneled"))
    full = launches([pingpong(8, 1.3e-6)], 2, rng, QUIET, placed(2, "multiple"))
    section, absent = threads.calibrate(Measured([*crowded, *plain, *full]))
    assert section["multiple_overhead"]["value"] == pytest.approx(3e-7)
    assert "net.multiple_overhead" not in absent
    net, _ = point_to_point.calibrate(Measured([*plain, *full, *crowded]))
    assert net["intra"]["table"][0]["seconds"]["value"] == pytest.approx(2e-6, rel=1e-2)
    assert [row["bytes"] for row in net["intra"]["table"]] == [8, 64, 1024, 1 << 20]
    section, absent = threads.calibrate(Measured([*crowded, *full]))
    assert "multiple_overhead" not in section
    assert absent["net.multiple_overhead"] == (
        "no launch with less thread support had as many ranks, nodes and threads"
    )


@pytest.mark.parametrize("size", [8, 1 << 20])
@pytest.mark.parametrize("algorithm", ["recursive_doubling", "rabenseifner", "ring"])
def test_the_nearest_algorithm_is_found(algorithm: str, size: int) -> None:
    alpha, beta, gamma = 1e-6, 1e-9, 2e-10
    seconds = ALGORITHMS["allreduce"][algorithm](16, size, alpha, beta, gamma)
    jobs = [
        Job("collective", {"op": "allreduce", "bytes": size, "ranks": 16}, seconds, quantile=0.5)
    ]
    q = {"upto": None, "alpha": {"value": alpha}, "beta": {"value": beta}}
    net = {"intra": {"classes": [q]}, "reduce_gamma": {"value": gamma}}
    section, _ = collectives.calibrate(measured(jobs), net)
    (row,) = section["allreduce"]
    assert (row["P"], row["ppn"], row["bytes"]) == (16, 16, size)
    assert row["seconds"]["value"] == pytest.approx(seconds, rel=1e-5)
    assert row["algorithm"] == algorithm


# -- noise and quality


def test_quanta_tell_detours_spread_and_drift() -> None:
    quanta = [
        Launch(
            f"{i}.jsonl",
            {"program": "node"},
            (Result("quantum", {}, np.full(20, 1e-3 * (1 + 0.1 * i)), None, {"at": 60.0 * i}),),
        )
        for i in range(3)
    ]
    section = noise.calibrate(Measured(quanta))
    assert section["drift"] == pytest.approx(0.2)
    assert section["run_cv"] == pytest.approx(0.1 / 1.1, rel=1e-3)
    assert section["fwq"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"foreign": 0.5}, "other programs used 50 % of the processors meanwhile"),
        ({"steal": 0.01}, "the hypervisor took the processors away for 10 % of the time"),
        (
            {"involuntary": 100},
            "interrupted 1000 times per second and processor by other processes",
        ),
    ],
)
def test_a_disturbed_section_is_noisy(facts: dict[str, Any], words: str) -> None:
    entry = noise.quality(measured([Job("clock", {"threads": 1}, 1e-6, facts=facts)]), {})["core"]
    assert entry["noisy"]
    assert words in entry["why"]


NODE_OF_64 = {"files": {"affinity": "0-63\n"}}
RANKS_ON_64 = {
    "ranks_at": [
        {"rank": 0, "host": "a", "socket": 0, "cpus": "0-31"},
        {"rank": 1, "host": "a", "socket": 1, "cpus": "16-63"},
        {"rank": 2, "host": "b", "socket": 0, "cpus": "0-127"},  # nobody watched it
    ]
}


@pytest.mark.parametrize("header", [NODE_OF_64, RANKS_ON_64])
@pytest.mark.parametrize(
    ("name", "quiet", "words"),  # of 0.1 s, summed over 64 processors
    [
        ("steal", 0.1, "the hypervisor took the processors away for 10 % of the time"),
        ("involuntary", 1000, "interrupted 1562 times per second and processor by other processes"),
    ],
)
def test_disturbances_count_by_processor(
    header: dict[str, Any], name: str, quiet: float, words: str
) -> None:
    def quality_at(value: float) -> dict[str, Any]:
        jobs = [Job("clock", {"threads": 1}, 1e-6, facts={name: value})]
        found = launches(jobs, 3, np.random.default_rng(0), QUIET, lambda _: header)
        return dict(noise.quality(Measured(found), {})["core"])

    assert not quality_at(quiet)["noisy"]
    assert quality_at(quiet * (6.4 if name == "steal" else 10))["why"] == [words]


@pytest.mark.parametrize("name", ["foreign", "steal", "involuntary"])
def test_what_the_system_does_not_tell_is_left_out(name: str) -> None:
    jobs = [Job("clock", {"threads": n}, 1e-6, facts={name: None}) for n in range(1, 9)]
    assert not noise.quality(measured(jobs), {})["core"]["noisy"]
    bad = {"foreign": 0.06, "steal": 0.003, "involuntary": 30}  # jobs that do not tell add no time
    jobs.append(Job("clock", {"threads": 9}, 1e-6, facts={name: bad[name]}))
    assert noise.quality(measured(jobs), {})["core"]["noisy"]


def test_launches_that_differ_are_noisy() -> None:
    jobs = [Job("chase", {"bytes": n}, 1e-9) for n in range(1, 9)]
    quiet = noise.quality(measured(jobs), {})["memory"]
    assert not quiet["noisy"]
    assert quiet["launches"] == 3
    noisy = noise.quality(measured(jobs, 3, Noise(0.5, 0.0, 0.0)), {})["memory"]
    assert any(why.startswith("launches differ by") for why in noisy["why"])


def test_one_launch_says_nothing_of_launches() -> None:
    entry = noise.quality(measured([Job("clock", {"threads": 1}, 1e-6)], 1), {"core": ["x"]})[
        "core"
    ]
    assert entry["why"] == ["one launch: the spread between launches is unknown", "x"]
    assert not entry["noisy"]


# -- statistics


def test_what_slows_whole_launches_does_not_average_out_over_quantities() -> None:
    rng = np.random.default_rng(1)
    effects = rng.normal(0, 0.1, 5)
    own = rng.normal(0, 0.001, (40, 5))
    series = {
        str(i): Series(tuple(np.exp(effects + own[i]).tolist()), "source", 50) for i in range(40)
    }
    # Student's t with 4 degrees of freedom, however many quantities show the same five launches
    half = 2.132 * np.std(effects, ddof=1) / np.sqrt(5)
    for found in quantities(series).values():
        assert np.log(found["high"] / found["value"]) == pytest.approx(half, rel=0.05)


def test_quantities_with_spreads_of_their_own_inform_each_other() -> None:
    rng = np.random.default_rng(1)
    series = {
        str(i): Series(tuple(np.exp(rng.normal(0, 0.1, 3)).tolist()), "source", 50)
        for i in range(200)
    }
    halves = [np.log(one["high"] / one["value"]) for one in quantities(series).values()]
    assert np.median(halves) == pytest.approx(1.645 * 0.1 / np.sqrt(3), rel=0.1)


def test_a_single_launch_varies_as_the_others_do() -> None:
    series = {str(i): Series((1.0, 1.1, 0.9), "source", 50) for i in range(5)}
    found = quantities({**series, "one": Series((1.0,), "source", 50, sampling=0.001)})
    # with the spread of the others, but once instead of three times
    half = np.log(found["0"]["high"] / found["0"]["value"])
    assert np.log(found["one"]["high"]) == pytest.approx(np.sqrt(3) * half, rel=0.01)


def test_a_quantity_that_cannot_be_negative_is_not_stated_so() -> None:
    with pytest.raises(ValueError, match="x should be positive, not -1e-09"):
        quantities({"x": Series((-1e-9,), "source", 50, scale=1e-6)})


def test_ratios_are_taken_within_a_launch() -> None:
    clock = ("clock", {"threads": 1}, 300)
    found = []
    for number, slow in enumerate((1.0, 2.0, 4.0), 1):  # the clock goes down to a quarter
        results = [
            Result(name, params, np.full(60, slow * 1e-7), None, {"work": work})
            for name, params, work in (clock, ("loads", {}, 600))
        ]
        found.append(Launch(f"{number}", {"program": "node", "launch": number}, tuple(results)))
    loads = core.calibrate(Measured(found))[0]["load_per_cycle"]
    assert loads["low"] == pytest.approx(loads["high"], rel=1e-4)


def test_an_interrupted_launch_is_one_with_what_resumed_it() -> None:
    first, second = (
        Launch(
            f"run/launch-001{part}.jsonl",
            {"program": "node", "launch": 1},
            (Result(job, params, np.full(60, 1e-7), None, {"work": 300}),),
        )
        for part, job, params in (("", "clock", {"threads": 1}), ("-2", "loads", {}))
    )
    assert core.calibrate(Measured([first, second]))[0]["load_per_cycle"]["value"] == 1.0
    elsewhere = Launch("other/launch-001.jsonl", second.header, second.results)
    assert "load_per_cycle" not in core.calibrate(Measured([first, elsewhere]))[0]


def test_a_resumed_launch_counts_once() -> None:
    found = [
        Launch(
            f"run/launch-001{part}.jsonl",
            {"program": "node", "launch": 1},
            (Result("clock", {"threads": n}, np.full(60, 1e-7), None, {"work": 300}),),
        )
        for n, part in enumerate(("", "-2"), 1)
    ]
    entry = noise.quality(Measured(found), {})["core"]
    assert entry["launches"] == 1
    assert entry["why"] == ["one launch: the spread between launches is unknown"]


def test_launches_of_other_jobs_and_thread_levels_do_not_count() -> None:
    found = [
        Launch(
            f"run/launch-00{n}.jsonl",
            {"program": "mpi", "launch": n, "mpi": {"thread_level": level}},
            (Result(job, {"bytes": 8}, np.full(60, 1e-7)),),
        )
        for n, (job, level) in enumerate(
            (("ping_pong", "single"), ("ping_pong", "multiple"), ("window", "single"))
        )
    ]
    assert noise.quality(Measured(found), {})["net"]["launches"] == 1


def test_one_launch_gives_the_error_of_its_batches() -> None:
    found = quantities({"x": Series((1.0,), "source", 50, sampling=0.01)})["x"]
    assert found["high"] == pytest.approx(np.exp(1.645 * 0.01), rel=1e-4)
    assert found["source"] == "source, 1 launch"


def test_a_negative_estimate_is_clipped() -> None:
    found = quantities(
        {"x": Series((-1e-9, -2e-9), "source", 50, scale=1e-6)}, zero=frozenset("x")
    )["x"]
    assert found["value"] == 0.0 == found["low"]
    half = 6.314 * 1e-9 * np.sqrt(0.5) / np.sqrt(2)  # Student's t with one degree of freedom
    assert found["high"] == pytest.approx(1.5e-9 + half, rel=1e-3)


def test_a_size_that_one_launch_measured_does_not_take_the_others_away() -> None:
    varied = Noise(launch=0.03, batch=0.05)
    jobs = [pingpong(n, 1e-6 + 1e-10 * n) for n in SIZES]
    found = launches(jobs, 5, np.random.default_rng(0), varied)
    lame = [
        replace(one, results=tuple(r for r in one.results if r.params["bytes"] != 8))
        for one in found[1:]
    ]
    whole, less = (
        point_to_point.calibrate(Measured(some))[0]["intra"]["classes"][0]
        for some in (found, [found[0], *lame])
    )
    for name in ("alpha", "beta"):
        assert less[name]["source"].endswith("5 launches")
        width, before = (one[name]["high"] / one[name]["low"] - 1 for one in (less, whole))
        assert 0.3 * before < width < 3 * before


def test_points_of_a_fit_are_of_the_same_launches() -> None:
    series = [
        Series((1.0, 2.0, 3.0), "", 10, launches=("a", "b", "c")),
        Series((30.0, 10.0, 20.0), "", 10, launches=("c", "a", "b")),
        Series((200.0, 300.0), "", 10, launches=("b", "c")),
    ]
    points = aligned(series, 2)
    assert points is not None
    assert points.kept == (0, 1)
    assert points.values.tolist() == [[1, 10], [2, 20], [3, 30]]
    points = aligned(series, 3)
    assert points is not None
    assert points.launches == ("b", "c")
    assert points.values.tolist() == [[2, 20, 200], [3, 30, 300]]
    assert aligned([*series, Series((1.0,), "", 10, launches=("d",))], 4) is None


def test_a_fit_to_one_launch_has_the_errors_of_its_points() -> None:
    series = [Series((value,), "", 10, sampling=0.01) for value in (1.0, 2.0)]
    points = aligned(series, 2)
    assert points is not None
    fits, errors = fitted(points, lambda values: np.array([values.sum()]))
    assert fits.tolist() == [[3.0]]
    assert errors == pytest.approx([0.01 * np.hypot(1.0, 2.0)])


def test_an_error_of_the_size_of_a_fit_is_no_factor() -> None:
    points = aligned([Series((1.0,), "", 10, sampling=0.01)] * 2, 2)
    assert points is not None
    found = quantities({"x": of_fit(np.array([2.0]), 3.0, points, "fit")})["x"]
    assert found["high"] == pytest.approx(2 + 1.645 * 3, rel=1e-3)
    assert 0 < found["low"] < 1e-5
    close = quantities({"x": of_fit(np.array([2.0]), 0.02, points, "fit")})["x"]
    assert close["high"] == pytest.approx(2 * np.exp(1.645 * 0.01), rel=1e-4)


def test_a_fit_to_one_of_several_launches_has_their_spread() -> None:
    effects = (0.9, 1.0, 1.1)
    series = [Series(tuple(value * one for one in effects), "", 10) for value in range(1, 9)]
    lone = Series((1.0,), "", 10, launches=("alone",))
    points = aligned([*series, *[lone] * 9], 9)
    assert points is not None
    _, errors = fitted(points, lambda values: values[:1])
    assert errors[0] == pytest.approx(0.1, rel=0.1)


def test_a_tier_of_which_every_launch_has_a_part_is_a_reason() -> None:
    rng = np.random.default_rng(0)
    found = [
        replace(one, header={**one.header, "launch": n})
        for n, size in enumerate((0, 8, 1024))
        for one in launches([pingpong(size, 1e-6)], 1, rng, QUIET)
    ]
    net, reasons = point_to_point.calibrate(Measured(found))
    assert net == {}
    assert reasons == {"net.intra": "no launch measured messages of 3 sizes"}


# -- the document


def test_the_document_is_a_profile() -> None:
    jobs = [
        Job("clock", {"threads": 1}, 1e-7, facts={"work": 300}),
        triad(1, 1e10),
        Job("construct", {"name": "parallel_for", "threads": 2}, 3e-7, 1e-7),
        pingpong(0, 1e-6),
        pingpong(8, 1e-6),
        pingpong(1024, 2e-6),
        Job("send_overhead", {"bytes": 8, "tier": "node"}, -1e-9),
        Job("collective", {"op": "barrier", "bytes": 0, "ranks": 2}, -1e-9, quantile=0.5),
    ]
    found = launches(
        jobs, 3, np.random.default_rng(0), header=lambda _: {"files": FILES, "started": 0.0}
    )
    document = calibrate(found, "lab")
    loaded = profile.from_document(document)
    assert loaded.name == "lab"
    assert loaded.origin == "measured"
    assert loaded.topology.cores_per_node == 4
    assert loaded.tiers() == ["intra"]
    assert document["host"]["measured"] == "1970-01-01T00:00:00Z"
    assert "openmp" in document
    for path, quantity in loaded.quantities.items():
        assert quantity.source, path
    assert document["quality"]["net"]["why"] == [
        "measured as nothing or less, taken as 0 with an interval of the size of the error: "
        "net.intra.os"
    ]
    assert document["quality"]["coll"]["why"] == [
        "measured as nothing or less, taken as 0 with an interval of the size of the error: "
        "barrier of 0 B on 2 processes"
    ]


def test_no_result_makes_no_profile() -> None:
    with pytest.raises(CalibrationError) as caught:
        calibrate([absent("smt", "no SMT", shared=1)])
    assert caught.value.message == "no job was measured in these samples"
    assert caught.value.hint == "measure again: popmodel bench"


def test_hardware_that_nobody_described_makes_no_profile() -> None:
    found = launches([pingpong(0, 1e-6)], 1, np.random.default_rng(0))
    with pytest.raises(CalibrationError, match="do not describe the hardware") as caught:
        calibrate(found)
    assert caught.value.hint == (
        "measure a part of the node as well, such as popmodel bench --only core"
    )


# -- readings that are not used


def readings(*batches: tuple[float, int]) -> Measured:
    """A barrier of so many seconds in so many batches, by launch."""
    return Measured(
        [
            Launch(
                f"launch-{number}.jsonl",
                {"program": "node", "launch": number},
                (
                    Result(
                        "construct",
                        {"name": "barrier", "threads": 2},
                        np.full(count, seconds),
                        np.full(count, 1e-7),
                    ),
                ),
            )
            for number, (seconds, count) in enumerate(batches)
        ]
    )


@pytest.mark.parametrize("odd", [(1.2e-2, 50), (3e-7, 1), (1e-8, 50)])
def test_a_launch_out_of_all_proportion_is_not_used(odd: tuple[float, int]) -> None:
    found = readings((3e-7, 50), (3.1e-7, 50), odd, (2.9e-7, 50))
    section, _, _ = openmp.calibrate(found, {"cores_per_node": 2})
    assert section["barrier"]["seconds"][0]["value"] == pytest.approx(2e-7, rel=0.01)
    entry = noise.quality(found, {})["openmp"]
    assert entry["noisy"]
    assert entry["why"][-1] == (
        "1 reading is out of proportion to those of the other launches and not used: "
        "construct name=barrier threads=2"
    )


def test_of_two_launches_none_is_the_odd_one() -> None:
    found = readings((3e-7, 50), (3e-3, 50))
    assert found.left_out(["construct"]) == []
    assert len(found.results("construct")) == 2


def test_launches_that_differ_twofold_are_a_spread() -> None:
    assert readings((3e-7, 50), (6e-7, 50), (3e-7, 50)).left_out(["construct"]) == []
