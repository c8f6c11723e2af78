"""Processes of a memory domain that are not busy as long, or not with the same.

The law is held against an event-driven simulation that shares no code with it: cores compute, queue
for the one memory of their domain in order, and compute again, each as often as it has to.
"""

import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.demo import machine, program, whole
from numpy.typing import NDArray

from popmodel.model.predictor import Study
from popmodel.model.run.memory_domains import Domains
from popmodel.model.run.process_placement import Allocation, place
from popmodel.model.terms import compute
from popmodel.prediction.causes import causes

Array = NDArray[np.float64]


def queued(alone: Sequence[float], units: Sequence[int], cv: float) -> Array:
    """When cores end that take ``alone`` per unit by themselves, 1 of it served by the memory."""
    rng = np.random.default_rng([len(alone), round(100 * sum(alone))])
    mean, left = np.array(alone) - 1.0, list(units)
    times = rng.gamma(1 / cv**2, cv**2, (len(alone), max(units) + 1, 2))
    asks = [(mean[core] * times[core, -1, 0], core) for core, count in enumerate(units) if count]
    heapq.heapify(asks)
    free, ends = 0.0, np.zeros(len(alone))
    while asks:
        asked, core = heapq.heappop(asks)
        left[core] -= 1
        free = max(free, asked) + times[core, left[core], 1]
        ends[core] = free
        if left[core]:
            heapq.heappush(asks, (free + mean[core] * times[core, left[core], 0], core))
    return ends


def domain(size: int, streaming: float, q: float) -> Domains:
    """One memory that serves a unit of data in a unit of time, a core alone in ``streaming``."""
    served = compute.bandwidth(np.arange(1.0, size + 1), 1 / streaming, 1.0, q)
    return Domains((np.arange(size),), np.asarray(served), q)


def loads(
    where: Domains, alone: Sequence[float], units: Sequence[int]
) -> tuple[Array, Array, Array]:
    """What the law of loops says of cores that are all busy as long."""
    one, many = np.array(alone, dtype=float), np.array(units, dtype=float)
    full = len(one) / where.bandwidth[-1]
    streaming = 1 / where.bandwidth[0]
    p = compute.sharpness(one, streaming, where.sharpness)
    together = np.asarray(compute.shared_time(one, streaming, full, p))
    return many * together, many * (together - one), many


Case = tuple[list[float], list[int], float, float]
CASES: dict[str, Case] = {  # time alone and units of each core; largest errors, of the law of loops
    "only move data, 1 to 2.4 times the work": (
        [4.0] * 8,
        list(range(1000, 2401, 200)),
        0.035,
        0.29,
    ),
    "4 of 8 idle": ([4.0] * 8, [2000] * 4 + [0] * 4, 0.05, 0.73),
    "4 that compute": ([4.0] * 4 + [40.0] * 4, [4000] * 4 + [400] * 4, 0.085, 0.64),
    "8 that do both": ([4.0] * 8 + [12.0] * 8, [2000] * 8 + [900] * 8, 0.085, 0.41),
    "at the knee, 1 to 2.5 times the work": (
        [12.0] * 16,
        list(range(600, 1501, 60)),
        0.055,
        0.19,
    ),
    "one with 5 times the work": ([6.0] * 16, [600] * 15 + [3000], 0.055, 1.04),
    "15 that compute": ([4.0] + [60.0] * 15, [5000] + [500] * 15, 0.075, 2.85),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("streaming", [2.0, 4.0])
@pytest.mark.parametrize(("cv", "q"), [(1.0, 3.3), (0.5, 4.2)])
def test_times_are_those_of_cores_that_queue_at_the_memory(
    case: str, streaming: float, cv: float, q: float
) -> None:
    alone, units, most, most_of_law = CASES[case]
    where, truth = domain(len(units), streaming, q), queued(alone, units, cv)
    together, crowding, moved = loads(where, alone, units)
    found = together * where.paces(together, crowding, moved)
    busy = truth > 0
    assert np.abs(found[busy] / truth[busy] - 1).max() < most
    assert 0.13 < np.abs(together[busy] / truth[busy] - 1).max() < most_of_law


kinds = st.lists(
    st.tuples(st.floats(2.0, 50.0), st.integers(0, 1000)), min_size=2, max_size=12
).filter(lambda cores: any(units for _, units in cores))


@given(st.floats(2.0, 50.0), st.integers(2, 12), st.floats(2.5, 6.0))
def test_processes_with_the_same_work_keep_the_law_of_loops(
    alone: float, size: int, q: float
) -> None:
    where = domain(size, 2.0, q)
    same = loads(where, [alone] * size, [100] * size)
    np.testing.assert_array_equal(where.paces(*same), np.ones(size))
    nearly = loads(where, [alone] * size, [100] * (size - 1) + [101])
    np.testing.assert_allclose(where.paces(*nearly), np.ones(size), atol=0.02)


def test_domains_do_not_slow_each_other_down() -> None:
    one = domain(4, 2.0, 3.0)
    both = Domains((np.array([0, 1, 4, 5]), np.array([2, 3, 6, 7])), one.bandwidth, 3.0)
    mine, others = ([3.0] * 4, [100, 200, 300, 400]), ([3.0, 9.0] * 2, [100, 0, 300, 50])
    all_loads = np.zeros((3, 8))
    all_loads[:, both.groups[0]], all_loads[:, both.groups[1]] = (
        loads(one, *mine),
        loads(one, *others),
    )
    found = both.paces(*all_loads)
    np.testing.assert_array_equal(found[both.groups[0]], one.paces(*loads(one, *mine)))
    np.testing.assert_array_equal(found[both.groups[1]], one.paces(*loads(one, *others)))


@pytest.mark.parametrize(
    ("processes", "threads", "bind", "expected"),
    [
        (8, 1, "close", [[0, 1, 2, 3], [4, 5, 6, 7]]),
        (4, 2, "close", [[0, 1], [2, 3]]),
        (12, 1, "close", [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]),
        (8, 1, "none", [[0, 1, 2, 3], [4, 5, 6, 7]]),
    ],
)
def test_which_processes_share_a_domain(
    processes: int, threads: int, bind: str, expected: list[list[int]]
) -> None:
    profile = machine()
    where = place(processes, threads, profile.topology, Allocation(bind=bind))
    study = Study(program(BESIDE), profile, {}, 0, 0)
    parameters = study.model(where, study.sources()).point.parameters
    assert [one.tolist() for one in Domains.of(where, parameters).groups] == expected


# -- a program in which processes do different things at once

BESIDE = """
[[program]]
loop = { count = 30 }
[[program.body]]
serial = { name = "move", trip = 1e6, bytes.MEM = 16, by_rank = [1, 0, 1, 0, 1, 0, 1, 0] }
[[program.body]]
serial = { name = "compute", trip = 1e6, chain = 2, by_rank = [0, 1, 0, 1, 0, 1, 0, 1] }
[[program.body]]
collective = { op = "barrier" }
"""


def run(text: str) -> tuple[Study, Any]:
    """Eight processes, four on each memory domain."""
    study = Study(program(text), machine(), {}, 0, 0)
    return study, study.admit(8, 1)


def test_half_of_the_processes_has_the_memory_while_the_others_compute() -> None:
    study, placement = run(BESIDE)
    outcome = study.outcome(placement, study.sources())
    # two cores of a domain move 16 B for twice the iterations of an average process
    moving = 2e6 * 16 * 2 / float(outcome.machine.bandwidth(2))
    alone = 2e6 * 16 / 1e10 + 2e6 / 2e9
    step = float(outcome.course.computing) / 30
    assert max(moving, alone) <= step < 1.03 * alone
    assert outcome.agreement is not None
    # as if all four were at it
    everyone = 2e6 * 16 * 4 / 2e10
    assert 1 <= outcome.agreement.closed_form.computing / 30 / everyone < 1.03


def test_what_is_told_of_such_a_run_fits_together() -> None:
    study, placement = run(BESIDE)
    found = study.outcome(placement, study.sources())
    observed = found.modelled.aggregates
    processes = placement.processes
    assert observed["useful_max"] <= observed["ideal_runtime"] <= observed["runtime"]
    assert observed["useful_sum"] == pytest.approx(processes * observed["useful_mean"])
    lost = causes(study, placement, found)
    assert sum(lost["process_load_balance"].values()) == pytest.approx(
        observed["useful_max"] - observed["useful_mean"]
    )


@given(kinds, st.floats(2.5, 6.0), st.floats(0.2, 1.0))
def test_less_bandwidth_never_ends_a_domain_earlier(
    cores: list[tuple[float, int]], q: float, factor: float
) -> None:
    alone, units = (np.array(one, dtype=float) for one in zip(*cores, strict=True))
    full = domain(len(cores), 2.0, q)

    def end(slower: float) -> float:
        where = full._replace(bandwidth=full.bandwidth / slower)
        moving = 2.0 * slower
        one = alone - 2.0 + moving
        many = moving * len(one) * full.bandwidth[0] / full.bandwidth[-1]
        together = units * compute.shared_time(one, moving, many, compute.sharpness(one, moving, q))
        return float((together * where.paces(together, together - units * one, units)).max())

    assert end(1 / factor) >= end(1.0) * (1 - 1e-6)


def test_the_whole_program_computes_as_predicted() -> None:
    study, placement = run(BESIDE)
    predicted = study.outcome(placement, study.sources())
    carried = whole(program(BESIDE), machine(), 8, 1)
    computed = carried.program.compute() / 1e9
    assert computed.max() == pytest.approx(float(predicted.course.computing), rel=1e-6)
    assert computed.mean() == pytest.approx(float(predicted.work.serial), rel=1e-6)


def test_halves_that_do_the_same_in_different_items_share_the_memory_as_one_item() -> None:
    move = 'serial = { name = "%s", trip = 1e6, bytes.MEM = 16%s }\n'
    parts = [
        ("a", ", by_rank = [1, 0, 1, 0, 1, 0, 1, 0]"),
        ("b", ", by_rank = [0, 1, 0, 1, 0, 1, 0, 1]"),
    ]

    def runtime(items: list[tuple[str, str]], trips: str) -> float:
        body = "".join("[[program.body]]\n" + move % one for one in items).replace("1e6", trips)
        text = f"[[program]]\nloop = {{ count = 30 }}\n{body}"
        text += '[[program.body]]\ncollective = { op = "barrier" }\n'
        study, placement = run(text)
        return float(study.outcome(placement, study.sources()).course.runtime)

    assert runtime(parts, "1e6") == pytest.approx(runtime([("all", "")], "2e6"))


def test_teams_that_span_domains_keep_the_law_of_loops() -> None:
    text = BESIDE.replace("[1, 0, 1, 0, 1, 0, 1, 0]", "[1, 0]")
    study = Study(program(text.replace("[0, 1, 0, 1, 0, 1, 0, 1]", "[0, 1]")), machine(), {}, 0, 0)
    placement = study.admit(2, 8)
    assert placement.domains_spanned == 2
    outcome = study.outcome(placement, study.sources())
    assert outcome.agreement is not None
    assert outcome.agreement.correction.computation == 1
