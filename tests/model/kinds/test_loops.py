"""Loops on cores: chains of operations, overlap, instructions, shared lines, random cost."""

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.demo import exact, machine, point

from popmodel.machines.profile import Profile, from_document
from popmodel.model.kinds.costs import ItemCosts
from popmodel.model.kinds.halo import copying
from popmodel.model.kinds.loops import Parallel, Serial, SharedWrites
from popmodel.model.kinds.pipeline import Pipeline
from popmodel.model.run.context import ModelPoint
from popmodel.model.run.work import RunWork
from popmodel.model.terms import openmp

CYCLE = 1 / 2e9


def with_memory(**entries: Any) -> Profile:
    document = copy.deepcopy(dict(machine().document))
    document["memory"] |= entries
    document["topology"]["sockets"] = 2
    document["openmp"]["critical"] = {"T": [1, 8], "seconds": [exact(1e-7), exact(1e-7)]}
    document["openmp"]["dynamic_chunk"] = {"T": [1, 8], "seconds": [exact(0.0), exact(0.0)]}
    return from_document(document)


def computation(
    processes: int = 1, threads: int = 1, profile: Profile | None = None, overlap: str | None = None
) -> ModelPoint:
    return point(profile or machine(), processes, threads, (1,), overlap=overlap)


def serial(here: ModelPoint, trip: float, costs: ItemCosts) -> RunWork:
    return Serial("loop", 1.0, trip, costs).work(here)


def parallel(here: ModelPoint, trip: float, inner: float, costs: ItemCosts, **keys: Any) -> RunWork:
    return Parallel("loop", 1.0, trip, inner, costs, {}, **keys).work(here)


# -- one core


@given(st.floats(0, 20), st.floats(0, 20), st.floats(0, 20))
def test_the_slowest_of_peak_rates_and_chain_counts(
    flops: float, loads: float, chain: float
) -> None:
    work = serial(computation(), 1e6, ItemCosts(flops=flops, loads=loads, chain=chain))
    cycles = max(flops / 2, loads / 2, chain) + 1  # and the control of the loop
    assert work.serial == pytest.approx(1e6 * cycles * CYCLE)


def counting(**core: float) -> ModelPoint:
    """A machine that knows how many instructions a core carries out, and holds."""
    return computation(profile=machine(**{f"core__{name}": one for name, one in core.items()}))


@given(st.floats(0, 20), st.floats(0.5, 40), st.floats(0, 200))
def test_counted_instructions_take_their_time_and_the_loop_is_among_them(
    flops: float, instructions: float, latency: float
) -> None:
    costs = ItemCosts(flops=flops, instructions=instructions, latency=latency)
    here = counting(instructions_per_cycle=4.0, window=100.0)
    iterations_at_once = 100 / instructions
    cycles = max(flops / 2, instructions / 4, latency / iterations_at_once)
    assert serial(here, 1e6, costs).serial == pytest.approx(1e6 * cycles * CYCLE)


@pytest.mark.parametrize(
    ("known", "cycles"),
    [
        ({}, 2 + 1),  # flops; the control of the loop on top
        ({"window": 100.0}, 2 + 1),
        ({"instructions_per_cycle": 4.0}, 3),  # 12 instructions
        ({"instructions_per_cycle": 4.0, "window": 100.0}, 6),  # 8.3 iterations of 50 at once
    ],
)
def test_a_profile_that_knows_less_of_a_core_is_enough(
    known: dict[str, float], cycles: float
) -> None:
    costs = ItemCosts(flops=4, instructions=12, latency=50)
    assert serial(counting(**known), 1, costs).serial == pytest.approx(cycles * CYCLE)


def test_instructions_of_source_code_count_where_the_profile_does_not_know_their_rate() -> None:
    here = counting()
    here = replace(here, parameters=replace(here.parameters, from_source=True))
    assumed = here.parameters.profile.assumed["core.instructions_per_cycle"]
    work = serial(here, 1, ItemCosts(flops=4, instructions=46))  # scalar code: not at its peak
    assert work.serial == pytest.approx(46 / assumed.value * CYCLE)
    assert here.parameters.lacking == {"core.instructions_per_cycle"}


def test_where_nobody_counted_instructions_the_loop_comes_on_top() -> None:
    here = counting(instructions_per_cycle=4.0, window=100.0)
    assert serial(here, 1, ItemCosts(flops=4)).serial == pytest.approx((2 + 1) * CYCLE)


def test_a_chain_is_shared_and_stretched_as_other_work() -> None:
    work = parallel(computation(threads=4), 10, 100, ItemCosts(chain=7))
    assert work.share == pytest.approx(1000 / 4 * 8 * CYCLE)
    assert work.stretched == pytest.approx(3 * 100 * 8 * CYCLE)


@pytest.mark.parametrize(
    "plan", [{}, {"chunk": 3.0}, {"schedule": "dynamic"}, {"schedule": "guided"}]
)
def test_one_thread_waits_for_no_other_thread(plan: dict[str, Any]) -> None:
    profile = with_memory()
    profile.document["openmp"]["guided_chunk"] = profile.document["openmp"]["dynamic_chunk"]
    here = computation(profile=from_document(dict(profile.document)))
    work = parallel(here, 64 / 3, 100, ItemCosts(flops=2), **plan)
    assert work.stretched == work.share == pytest.approx(64 / 3 * 100 * 2 * CYCLE)


def test_a_loop_says_how_it_overlaps() -> None:
    core, caches, memory = 3 * CYCLE, 8 / 4e10, 16 / 1e10

    def time(mode: str | None, **how: Any) -> float:
        costs = ItemCosts(flops=4, loads=2, bytes={"L3": 24, "MEM": 16}, mode=mode)
        return float(serial(computation(**how), 1, costs).serial)

    assert time(None) == time("sum") == pytest.approx(core + caches + memory)
    assert time("roofline") == pytest.approx(max(core, caches, memory))
    assert time("ecm") == pytest.approx(max(core, 1 * CYCLE + caches + memory))
    # an assumption about all loops, for the bounds of the model, is stronger
    assert time("roofline", overlap="none") == time(None)
    assert time("sum", overlap="full") == time("roofline")


def test_a_machine_may_overlap_a_share_and_one_that_does_not_say_is_in_the_middle() -> None:
    core, memory = 2 * CYCLE, 16 / 1e10
    costs = ItemCosts(flops=4, bytes={"MEM": 16})

    def time(overlap: Any) -> float:
        document = copy.deepcopy(dict(machine().document))
        del document["core"]["overlap"]
        if overlap is not None:
            document["core"]["overlap"] = overlap
        here = computation(profile=from_document(document))
        found = serial(here, 1, costs).serial
        # a loop that says how it overlaps does not ask the machine
        fixed = ItemCosts(flops=4, bytes={"MEM": 16}, mode="sum")
        assert serial(here, 1, fixed).serial == pytest.approx(core + CYCLE + memory)
        return float(found)

    slowest, sum_ = max(core + CYCLE, memory), core + CYCLE + memory
    assert time(exact(0.25)) == pytest.approx(0.75 * sum_ + 0.25 * slowest)
    assert time(None) == pytest.approx((sum_ + slowest) / 2)


def test_transfers_from_each_level_overlap_by_their_own_share() -> None:
    document = copy.deepcopy(dict(machine().document))
    document["core"]["overlap"] = exact(0.5)
    document["core"]["overlap_with"] = {"MEM": exact(-0.2)}
    here = computation(profile=from_document(document))
    busy, memory, cache = 3 * CYCLE, 16 / 1e10, 8 / 4e10
    found = serial(here, 1, ItemCosts(flops=4, bytes={"MEM": 16})).serial
    # the longer of both hides nothing of the shorter, which makes it take longer
    assert found == pytest.approx(busy + memory + 0.2 * min(busy, memory))
    found = serial(here, 1, ItemCosts(flops=4, bytes={"L3": 24, "MEM": 16})).serial
    share = (0.5 * cache - 0.2 * memory) / (cache + memory)  # L3 serves what MEM does not
    sum_, longest = busy + cache + memory, max(busy, cache, memory)
    assert found == pytest.approx(sum_ - share * (sum_ - longest))


def test_loops_that_take_as_long_as_their_instructions_overlap_by_a_share_of_their_own() -> None:
    document = copy.deepcopy(dict(machine().document))
    document["core"] |= {"overlap": exact(0.5), "instructions_per_cycle": exact(4)}
    document["core"]["overlap_issue"] = {"MEM": exact(0.25)}
    here = computation(profile=from_document(document))
    busy, memory = 12 / 4 * CYCLE, 16 / 1e10
    costs = ItemCosts(instructions=12, bytes={"MEM": 16}, mode="issue")
    found = serial(here, 1, costs).serial
    assert found == pytest.approx(memory + 0.75 * min(busy, memory))
    of_arithmetic = serial(here, 1, replace(costs, mode=None)).serial
    assert of_arithmetic == pytest.approx(memory + 0.5 * min(busy, memory))


def test_a_machine_whose_overlap_with_instructions_nobody_measured_is_taken_at_four_fifths() -> (
    None
):
    document = copy.deepcopy(dict(machine().document))
    document["core"] |= {"overlap": exact(0.5), "instructions_per_cycle": exact(4)}
    inner = {"level": "L2", "bytes": 2**18, "shared_by": 1}
    document["topology"]["caches"] = [inner, *document["topology"]["caches"]]
    here = computation(profile=from_document(document))
    busy, cache, memory = 12 / 4 * CYCLE, 64 / 4e10, 16 / 1e10
    found = serial(here, 1, ItemCosts(instructions=12, bytes={"L3": 64}, mode="issue")).serial
    assert found == pytest.approx(cache + 0.2 * busy)
    # that of arithmetic is known, and little else of memory
    found = serial(here, 1, ItemCosts(instructions=12, bytes={"MEM": 16}, mode="issue")).serial
    assert found == pytest.approx(memory + 0.5 * busy)


# -- instructions


def test_instructions_of_all_threads_are_added() -> None:
    many = computation(threads=4)
    work = parallel(many, 10, 100, ItemCosts(instructions=12))
    assert work.instructions == 12_000
    more = work.plus(serial(many, 50, ItemCosts(instructions=2))).times(3)
    assert more.instructions == 3 * (12_000 + 100)
    assert copying(many, 800, 1e9, shared=False).instructions == 200
    assert copying(many, 800, 1e9, shared=True).instructions == 200


def sweep(here: ModelPoint) -> RunWork:
    return Pipeline("sweep", 1.0, (0,), "forward", blocks=1, seconds=1e-3, bytes=8).work(here)


def test_everything_useful_has_its_cycles() -> None:
    one = computation(threads=4)
    assert copying(one, 1e6, 1e9, shared=False).serial_cycles == pytest.approx(1e-3 * 2e9)
    assert copying(one, 1e6, 1e9, shared=True).region_cycles == pytest.approx(1e-3 / 4 * 2e9)
    assert sweep(one).serial_cycles == pytest.approx(1e-3 * 2e9)


# -- lines that threads share


SHARED = {
    "line": 64,
    "line_transfer": {"near": exact(5e-8), "far": exact(2e-7)},
    "kappa_fs": exact(0.5),
}


@pytest.mark.parametrize(("threads", "transfer"), [(2, 5e-8), (4, 5e-8), (8, 2e-7)])
def test_false_sharing_is_useful_time_of_every_thread(threads: int, transfer: float) -> None:
    one = computation(threads=threads, profile=with_memory(**SHARED))
    writes = SharedWrites(count=800, bytes=8, chunk=1)
    costs = ItemCosts(flops=4)
    without = parallel(one, 800, 10, costs)
    shared = parallel(one, 800, 10, costs, shared_writes=writes)
    # four cores of a socket; lines of eight elements
    lost = openmp.false_sharing_time(800, threads, 1, 8, transfer, 0.5)
    assert lost > 0
    assert shared.share - without.share == pytest.approx(lost)
    assert shared.stretched - without.stretched == pytest.approx(lost)
    assert shared.region_cycles == pytest.approx(shared.share * 2e9)
    assert shared.single_thread == without.single_thread
    assert shared.overhead == without.overhead


@pytest.mark.parametrize(
    ("missing", "path"),
    [
        ("line", "memory.line"),
        ("line_transfer", "memory.line_transfer"),
        ("kappa_fs", "memory.kappa_fs"),
    ],
)
def test_a_profile_without_what_false_sharing_needs(missing: str, path: str) -> None:
    known = {key: value for key, value in SHARED.items() if key != missing}
    one = computation(threads=2, profile=with_memory(**known))
    parallel(one, 8, 1, ItemCosts(), shared_writes=SharedWrites(8, 8, 1))
    assert path in one.parameters.lacking  # and assumed


OVER = {"line_takeover": {"near": exact(5e-9), "far": exact(2e-8)}}
BETWEEN = ItemCosts(flops=4, taken_over=0.25)


@pytest.mark.parametrize(("threads", "each"), [(1, 0.0), (2, 5e-9), (4, 5e-9), (8, 2e-8)])
def test_lines_of_other_threads_are_waited_for(threads: int, each: float) -> None:
    here = computation(threads=threads, profile=with_memory(**OVER))
    own = replace(BETWEEN, taken_over=0.0)
    shared, apart = (parallel(here, 800, 10, costs) for costs in (BETWEEN, own))
    assert shared.share - apart.share == pytest.approx(8000 / threads * 0.25 * each)
    assert shared.stretched - apart.stretched == pytest.approx(shared.share - apart.share)
    assert shared.single_thread == apart.single_thread  # there is no other thread
    waited = serial(here, 1000, BETWEEN).serial - serial(here, 1000, own).serial
    assert waited == pytest.approx(1000 * 0.25 * each)


# -- iterations of random cost
