"""Messages, crowding, threads that communicate, collectives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from machines.bench.estimate.synthetic import (
    QUIET,
    Job,
    Noise,
    collectives,
    launches,
    measured,
    messages,
    pingpong,
    threads,
)

from popmodel.machines.bench.estimate import exchange_estimates, message_estimates
from popmodel.machines.bench.estimate.measured_results import MeasuredResults
from popmodel.network.collectives import OPERATIONS, Message

SIZES = (0, 8, 1024, 4096, 16384, 65536, 262144)


def test_one_line_is_one_class() -> None:
    jobs = [pingpong(n, 1e-6 + 1e-10 * n, "network") for n in SIZES]
    net, _ = messages(measured(jobs))
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
        ({1024: 1e-6, 4096: 1e-6}, "all messages, up to 4096 B, were sent eagerly"),
        ({1024: 6e-4, 4096: 6e-4}, "even messages of 1024 B wait for their receiver"),
    ],
)
def test_a_switch_that_was_not_seen_is_not_told(waits: dict[int, float], reason: str) -> None:
    jobs = [pingpong(n, 1e-6) for n in SIZES] + [late(n, s) for n, s in waits.items()]
    net, reasons = messages(measured(jobs))
    assert "eager_threshold" not in net["intra"]
    assert reasons["net.intra.eager_threshold"] == reason


def test_without_a_jump_the_switch_lies_where_late_receivers_leave_it() -> None:
    jobs = [pingpong(n, 1e-6) for n in (*SIZES, 5000, 6000)]
    jobs += [late(1024, 1e-6), late(4096, 1e-6), late(8192, 6e-4)]
    net, _ = messages(measured(jobs))
    switch = net["intra"]["eager_threshold"]
    # 4096 itself, or anything up to nine tenths of the way to 8192 on a logarithmic scale
    assert (switch["low"], switch["value"], switch["high"]) == (4096, 4096, int(4096 * 2**0.9))


def test_a_jump_of_the_times_tells_where_between_late_receivers_the_switch_is() -> None:
    def seconds(size: int) -> float:
        return 1e-6 + 1e-10 * size + (5e-6 if size > 5500 else 0)

    jobs = [pingpong(n, seconds(n)) for n in (*SIZES, 64, 512, 5000, 6000, 7000)]
    jobs += [late(4096, 1e-6), late(8192, 6e-4)]
    net, _ = messages(measured(jobs))
    switch, classes = net["intra"]["eager_threshold"], net["intra"]["classes"]
    assert (switch["low"], switch["value"], switch["high"]) == (5000, 5000, int(5000 * 1.2**0.9))
    assert [one["upto"] for one in classes] == [5000, None]
    assert classes[1]["alpha"]["value"] == pytest.approx(6e-6)


def test_late_receivers_that_contradict_each_other_tell_no_switch() -> None:
    jobs = [pingpong(n, 1e-6) for n in SIZES]
    jobs += [late(1024, 1e-6), late(4096, 6e-4), late(8192, 1e-6)]
    net, reasons = messages(measured(jobs))
    assert "eager_threshold" not in net["intra"]
    assert reasons["net.intra.eager_threshold"] == (
        "inconsistent: messages of 4096 B wait for a late receiver, those of 8192 B do not"
    )


@pytest.mark.parametrize("seconds", [0.0, -2e-9])
def test_a_call_that_costs_no_more_than_the_clock_costs_nothing(seconds: float) -> None:
    jobs = [pingpong(n, 1e-6) for n in SIZES]
    jobs.append(Job("send_overhead", {"bytes": 8, "tier": "node"}, seconds))
    net, _ = messages(measured(jobs, 3, Noise()))
    overhead = net["intra"]["os"]
    assert overhead["value"] == 0.0 == overhead["low"]
    assert -seconds <= overhead["high"] < 1e-9 - 1.2 * seconds  # no better known than it is wrong
    assert message_estimates.nothing_left(net) == [
        "not distinguishable from 0, set to 0 with an interval of the measurement error: "
        "net.intra.os"
    ]


def test_collectives_of_which_nothing_is_left_are_remarked() -> None:
    params = {"op": "bcast", "bytes": 8}
    jobs = [
        Job("collective", {**params, "ranks": n}, seconds, quantile=0.5)
        for n, seconds in ((1, -1e-9), (2, 1e-7), (4, 1e-6))
    ]
    section, _ = collectives(measured(jobs), {})
    assert section["bcast"][0]["seconds"]["high"] == pytest.approx(1e-9, rel=1e-5)
    assert exchange_estimates.nothing_left(section) == [
        "not distinguishable from 0, set to 0 with an interval of the measurement error: "
        "bcast of 8 B on 1 process"
    ]


def test_messages_that_outgrow_a_cache_have_a_class_of_their_own() -> None:
    # twice the time per byte from 1 MiB on: no line with a positive latency leads on from below
    sizes = (*SIZES, 1 << 19, 1 << 20, 1 << 21, 1 << 22)
    jobs = [pingpong(n, 5e-7 + n * (4e-11 if n < 1 << 20 else 9e-11)) for n in sizes]
    net, _ = messages(measured(jobs))
    classes = net["intra"]["classes"]
    assert [one["upto"] for one in classes] == [1 << 19, None]
    assert classes[1]["beta"]["value"] == pytest.approx(9e-11, rel=1e-3)
    assert message_estimates.misfits(net) == []


def test_a_latency_that_one_launch_hardly_tells_is_still_one() -> None:
    # of large messages alone: a latency that is lost in the noise of their times
    sizes = (*SIZES, 1 << 20, 1 << 21, 1 << 22)
    jobs = [pingpong(n, 5e-7 + n * (4e-11 if n < 1 << 20 else 9e-11)) for n in sizes]
    net, _ = messages(measured(jobs, 1, Noise(launch=0.0)))
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
    assert message_estimates.misfits(section) == [
        "the fit of net.intra.classes differs by -50 % from the measured time of a message "
        "of 10000 B"
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
    net, reasons = messages(measured(jobs))
    assert net["shm_k"]["value"] == pytest.approx(2, rel=1e-5)
    assert net["nic_G"]["value"] == pytest.approx(1e-3 / (2 * 64 * (1 << 20)), rel=1e-5)
    assert net["intra"]["bidirectional"]["value"] == pytest.approx(1.6)
    assert net["intra"]["G"]["source"].startswith("64 messages of 1048576 B in flight, p10")
    assert [row["pairs"] for row in net["intra"]["pairs"]] == [1, 2, 4]
    assert "net.shm_k" not in reasons


def test_pairs_that_do_not_crowd_each_other_share_nothing() -> None:
    jobs = [pingpong(n, 1e-6) for n in SIZES] + [window(n, 1e-3) for n in (1, 2, 4)]
    net, reasons = messages(measured(jobs))
    assert "shm_k" not in net
    assert reasons["net.shm_k"] == (
        "no contention: 4 pairs of processes do not slow down each other's messages of 1048576 B"
    )


def test_one_pair_cannot_crowd_itself() -> None:
    jobs = [pingpong(n, 1e-6) for n in SIZES] + [window(1, 1e-3)]
    _, reasons = messages(measured(jobs))
    assert reasons["net.shm_k"] == "one pair of processes cannot show contention"


def test_trains_tell_the_gap() -> None:
    jobs = [pingpong(n, 1e-6) for n in SIZES]
    jobs += [
        Job("train", {"bytes": 8, "count": n, "tier": "node"}, 2e-6 + 3e-7 * n) for n in (1, 8, 64)
    ]
    net, _ = messages(measured(jobs))
    assert net["intra"]["g"]["value"] == pytest.approx(3e-7)


def test_the_cost_of_a_reduction_is_that_of_the_longest() -> None:
    jobs = [Job("reduce_local", {"bytes": n}, 1e-7 + 2e-10 * n) for n in (8, 1 << 20)]
    net, _ = messages(measured(jobs))
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
    section, _ = threads(measured(jobs))
    assert section["thread_factor"]["value"] == pytest.approx(0.5)
    assert section["overlap"]["value"] == pytest.approx(0.25)


def test_full_thread_support_costs_what_it_adds_to_a_message() -> None:
    rng = np.random.default_rng(0)
    level = {"mpi": {"thread_level": "multiple"}}
    plain = launches([pingpong(8, 1e-6)], 2, rng, QUIET)
    full = launches([pingpong(8, 1.3e-6)], 2, rng, QUIET, lambda _: level)
    section, _ = threads(MeasuredResults([*plain, *full]))
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
    section, absent = threads(MeasuredResults([*crowded, *plain, *full]))
    assert section["multiple_overhead"]["value"] == pytest.approx(3e-7)
    assert "net.multiple_overhead" not in absent
    net, _ = messages(MeasuredResults([*plain, *full, *crowded]))
    assert net["intra"]["table"][0]["seconds"]["value"] == pytest.approx(2e-6, rel=1e-2)
    assert [row["bytes"] for row in net["intra"]["table"]] == [8, 64, 1024, 1 << 20]
    section, absent = threads(MeasuredResults([*crowded, *full]))
    assert "multiple_overhead" not in section
    assert absent["net.multiple_overhead"] == (
        "no launch with a lower thread level had the same ranks, nodes and threads"
    )


@pytest.mark.parametrize("size", [8, 1 << 20])
@pytest.mark.parametrize("algorithm", ["recursive_doubling", "rabenseifner", "ring"])
def test_the_nearest_algorithm_is_found(algorithm: str, size: int) -> None:
    alpha, beta, gamma = 1e-6, 1e-9, 2e-10
    seconds = (
        OPERATIONS["allreduce"].algorithms[algorithm].cost(16, Message(size, alpha, beta, gamma))
    )
    jobs = [
        Job("collective", {"op": "allreduce", "bytes": size, "ranks": 16}, seconds, quantile=0.5)
    ]
    q = {"upto": None, "alpha": {"value": alpha}, "beta": {"value": beta}}
    net = {"intra": {"classes": [q]}, "reduce_gamma": {"value": gamma}}
    section, _ = collectives(measured(jobs), net)
    (row,) = section["allreduce"]
    assert (row["P"], row["ppn"], row["bytes"]) == (16, 16, size)
    assert row["seconds"]["value"] == pytest.approx(seconds, rel=1e-5)
    assert row["algorithm"] == algorithm
