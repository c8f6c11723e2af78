"""Loops on cores that share a memory domain: what threads bring, and what the memory decides."""

import copy
import heapq
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.demo import exact, machine, point

from popmodel.machines.profile import Profile, from_document
from popmodel.model.kinds.costs import ItemCosts
from popmodel.model.kinds.loops import Parallel
from popmodel.model.run.work import RunWork
from popmodel.model.terms import openmp

MODES = st.sampled_from(["sum", "ecm", "roofline", None])


def large(b1: float = 1e10, bsat: float = 4e10, q: float | None = 3.0, **memory: Any) -> Profile:
    """A node of 64 cores, 32 of them on each memory domain."""
    document = copy.deepcopy(dict(machine().document))
    document["topology"] |= {"cores_per_node": 64, "nodes": 1}
    law = {"b1": b1, "bsat": bsat, "q": q}
    known = {key: exact(value) for key, value in law.items() if value is not None}
    document["memory"] = {"cache_bw": {"L3": exact(4e10)}, **known, **memory}
    document["core"]["overlap"] = exact(0.5)
    return from_document(document)


def by_cores(**rates: float) -> Profile:
    """The same node, whose bandwidth is known by busy cores only."""
    document = copy.deepcopy(dict(large().document))
    table = {count.removeprefix("n"): exact(rate) for count, rate in rates.items()}
    document["memory"] = {"by_cores": table}
    return from_document(document)


def work(
    costs: ItemCosts, threads: int, profile: Profile, trip: float = 6400.0, **keys: Any
) -> RunWork:
    here = point(profile, 1, threads)
    return Parallel("loop", 1.0, trip, 100.0, costs, {}, **keys).work(here)


def e_mt(costs: ItemCosts, threads: int, profile: Profile) -> float:
    found = work(costs, threads, profile, trip=64 * 99.0)
    return float(openmp.multithreading_efficiency(found.single_thread, threads, found.parallel))


def test_threads_that_leave_the_memory_idle_lose_nothing() -> None:
    """8 cores that ask for 29 % of the bandwidth of their domain."""
    time = 8 * 16 / (0.29 * 4e10)
    cycles = 2e9 * (time - 16 / 1e10) - 1
    costs = ItemCosts(chain=cycles, bytes={"MEM": 16}, mode="sum")
    assert e_mt(costs, 8, large()) == pytest.approx(1.0, abs=0.01)
    assert e_mt(ItemCosts(seconds=time, bytes={"MEM": 16}), 8, large()) == pytest.approx(
        1.0, abs=0.01
    )


@given(
    st.floats(0, 100),
    st.floats(0, 20),
    st.floats(0, 200),
    st.floats(0, 200),
    MODES,
    st.integers(1, 32),
    st.floats(1.0, 60.0),
    st.floats(1.5, 20.0),
)
def test_threads_bring_at_most_their_number(
    flops: float,
    loads: float,
    caches: float,
    traffic: float,
    mode: str | None,
    threads: int,
    factor: float,
    q: float,
) -> None:
    costs = ItemCosts(flops=flops, loads=loads, bytes={"L3": caches, "MEM": traffic}, mode=mode)
    profile = large(1e10, factor * 1e10, q)
    found = e_mt(costs, threads, profile)
    assert found <= 1 + 1e-9
    # nor can the memory give more than the bandwidth of all
    assert work(costs, threads, profile).share >= 640000 * traffic / (factor * 1e10) * (1 - 1e-9)


@given(st.floats(0, 100), st.floats(1, 200), MODES, st.integers(1, 32), st.floats(1.0, 10.0))
def test_less_bandwidth_never_makes_a_loop_faster(
    flops: float, traffic: float, mode: str | None, threads: int, factor: float
) -> None:
    costs = ItemCosts(flops=flops, bytes={"MEM": traffic}, mode=mode)
    fast, only_saturated, both = (
        work(costs, threads, large(b1, bsat)).stretched
        for b1, bsat in ((1e10, 1e11), (1e10, 1e11 / factor), (1e10 / factor, 1e11 / factor))
    )
    assert only_saturated >= fast * (1 - 1e-9)
    assert both >= only_saturated * (1 - 1e-9)


# -- profiles without a law


def test_a_table_by_cores_slows_loops_of_low_demand_less() -> None:
    profile = by_cores(n1=1e10, n4=2.4e10)
    slower = [
        1 / e_mt(ItemCosts(chain=chain, bytes={"MEM": 64}, mode="sum"), 4, profile)
        for chain in (0.0, 4.0, 16.0, 64.0)
    ]
    assert slower == sorted(slower, reverse=True)
    assert slower[0] == pytest.approx(4 / 2.4, rel=0.08)
    assert slower[-1] == pytest.approx(1.0, abs=0.001)


def test_an_unknown_sharpness_is_assumed() -> None:
    costs = ItemCosts(flops=8, bytes={"MEM": 64}, mode="sum")
    unknown, stated = (work(costs, 4, large(q=q)).share for q in (None, 3.0))
    assert unknown == stated


# -- uneven shares


def finished(shares: list[float], alone: float, rng: np.random.Generator) -> float:
    """Time until the last core is done: each computes and moves data in turns, at random times.

    ``shares`` are the transfers of the cores; the memory serves one at a time in unit time.
    """
    left = [round(share) for share in shares]
    asks = [(float(rng.exponential(alone - 1)), core) for core in range(len(shares))]
    heapq.heapify(asks)
    free = end = 0.0
    while asks:
        asked, core = heapq.heappop(asks)
        free = max(asked, free) + float(rng.gamma(4.0, 0.25))
        left[core] -= 1
        end = max(end, free)
        if left[core]:
            heapq.heappush(asks, (free + float(rng.gamma(4.0, (alone - 1) / 4)), core))
    return end


@pytest.mark.parametrize("alone", [4.0, 8.0, 16.0])
@pytest.mark.parametrize("cores", [2, 4, 8, 16, 24])
@pytest.mark.parametrize(("stretch", "busy"), [(1.05, 1), (1.5, 1), (1.2, 2)])
def test_the_busiest_core_against_a_simulation(
    alone: float, cores: int, stretch: float, busy: int
) -> None:
    """One core, or half of them, have more to do than the others of their domain."""
    transfers, more = 400, 1 if busy == 1 else cores // 2
    rest = (cores - stretch * more) / (cores - more)
    shares = [stretch * transfers] * more + [rest * transfers] * (cores - more)
    simulated = finished(shares, alone, np.random.default_rng(cores)) / transfers
    costs = ItemCosts(seconds=alone, bytes={"MEM": 1.0})  # a transfer takes a full domain 1 s
    profile = large(0.5, 1.0, 4.5)
    here = point(profile, 2, cores)  # a process on each domain
    found = costs.time(here, 1.0, 2 * cores, 2e9, stretch)
    assert found == pytest.approx(simulated, rel=0.08)
