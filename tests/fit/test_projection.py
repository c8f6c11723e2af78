"""Whole projections: identities, where intervals end, and how often they hold."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from fit.series import Truth, drawn, measured, of_times, powers

from popmodel.base.errors import UsageError
from popmodel.efficiency.hierarchy import load_families
from popmodel.fit.projection import ProjectedRow, Projection, project
from popmodel.runs.measurement import MeasuredRow


def series(truth: Truth, places: tuple[int, ...] = (4, 8, 16)) -> list[MeasuredRow]:
    return [measured(truth, each) for each in places]


def values(
    found: Projection, processes: int, threads: int = 1
) -> dict[tuple[str, str], ProjectedRow]:
    return {
        (row.family, row.metric): row
        for row in found.rows
        if (row.processes, row.threads) == (processes, threads)
    }


def test_products_and_sums_hold_at_every_size() -> None:
    found = project(series(drawn(1)), [(p, 1) for p in (2, 8, 32, 64, 512)], "strong", 0)
    for processes in (2, 8, 32, 64, 512):
        rows = values(found, processes)
        for name in ("mpi", "mpi-additive", "scaling"):
            family = load_families()[name]
            given = {metric: row.value for (own, metric), row in rows.items() if own == name}
            for each in family.decompositions:
                if given.keys() >= {each.parent, *each.parts}:
                    assert each.combine(given) == pytest.approx(given[each.parent])
        speedup = rows["scaling", "speedup"].value
        assert speedup is not None
        # what the speed-up leaves of the parallel efficiency of the reference run
        home = measured(drawn(1), 4)
        first = home.aggregates["useful_mean"] / home.runtime
        expected = speedup / (processes / 4) * first
        assert rows["mpi", "global_efficiency"].value == pytest.approx(expected)


# -- where intervals end


def test_there_is_no_interval_beyond_the_reach() -> None:
    found = project(series(drawn(5)), [(64, 1), (65, 1), (1, 1)], "strong", 0)
    assert found.lines[0].reach == (1.0, 64.0)
    assert values(found, 64)["", "runtime"].low is not None
    row = values(found, 65)["", "runtime"]
    assert row.value is not None
    assert (row.low, row.high) == (None, None)
    assert row.why == "65 processes are 4.06 times the most that were measured; intervals reach " \
        "up to 64"  # fmt: skip


def test_a_wide_series_reaches_further_though_not_without_end() -> None:
    def reach(places: tuple[int, ...]) -> float:
        return project(series(drawn(5), places), [(64, 1)], "strong", 0).lines[0].reach[1]

    assert reach((8,)) == 32
    assert reach((2, 16)) == 128
    assert reach((1, 4, 16, 64)) == 1024


def test_below_the_runs_there_is_an_end_too() -> None:
    row = values(project(series(drawn(5), (16, 32)), [(2, 1)], "strong", 0), 2)["", "runtime"]
    assert row.low is None
    assert row.why == "the least processes that were measured are 8 times as many; intervals " \
        "reach down to 4"  # fmt: skip


def test_one_process_says_nothing_of_several() -> None:
    found = project([of_times(1, 10.0, 10.0, 10.0, 10.0)], [(4, 1)], "strong", 0)
    row = values(found, 4)["", "runtime"]
    assert row.value == pytest.approx(2.5, rel=0.05)
    assert row.low is None
    assert row.why == "runs of one process do not tell what several lose to each other"


def test_a_straight_line_below_zero_is_no_value() -> None:
    runs = [of_times(p, 10.0 / p, 10.0 / p / e, 10.0 / p / e, 10.0 / p / e)
            for p, e in ((4, 0.9), (8, 0.75), (16, 0.45))]  # fmt: skip
    row = values(project(runs, [(64, 1)], "strong", 0, "linear"), 64)["", "runtime"]
    assert (row.value, row.low) == (None, None)
    assert row.why == "the linear law of load balance is not above 0 there"
    nearer = values(project(runs, [(20, 1)], "strong", 0, "linear"), 20)["", "runtime"]
    assert nearer.value is not None and nearer.low is not None  # of the draws above 0


# -- processes and threads


def test_no_run_beside_the_target() -> None:
    runs = [replace(run, threads=2) for run in series(drawn(6))]
    with pytest.raises(UsageError) as error:
        project(runs, [(32, 4)], "strong", 0)
    assert error.value.message == (
        "32 x 4: no run has 4 threads per process, and none 32 processes: laws change one of them "
        "at a time"
    )
    assert error.value.hint == "measured: 4 x 2, 8 x 2, 16 x 2"


def test_threads_of_one_process_are_a_line() -> None:
    def run(threads: int) -> MeasuredRow:
        serial, parallel = 2.0, 38.0
        wall = serial + parallel / threads * (1 + 0.01 * (threads - 1))
        useful = (serial + parallel) / threads
        busiest = serial + parallel / threads
        aggregates = {
            "processes": 1.0, "threads": float(threads), "runtime": wall,
            "useful_sum": serial + parallel, "useful_mean": useful, "useful_max": busiest,
            "omp_useful_mean": parallel / threads, "serial_useful_mean": serial,
            "in_openmp_mean": wall - serial, "serial_openmp_max": wall,
            "outside_mpi_mean": wall, "outside_mpi_max": wall,
        }  # fmt: skip
        return MeasuredRow("run", 1, threads, wall, {}, aggregates=aggregates)

    found = project([run(2), run(4), run(8)], [(1, 16)], "strong", 0)
    assert (found.lines[0].axis, found.lines[0].fixed) == ("threads", 1)
    rows = values(found, 1, 16)
    truth = run(16)
    family = load_families()["hybrid-multiplicative"].evaluate(truth.aggregates).values
    assert rows["", "runtime"].value == pytest.approx(truth.runtime, rel=0.03)
    for metric in ("hybrid_parallel_efficiency", "mpi_load_balance", "openmp_load_balance"):
        assert rows["hybrid-multiplicative", metric].value == pytest.approx(
            family[metric], abs=0.03
        )


def test_work_that_grows_takes_as_long() -> None:
    runs = [of_times(p, 10.0, 10.5, 10.8, 11.0) for p in (4, 8, 16)]
    row = values(project(runs, [(64, 1)], "weak", 0), 64)["", "runtime"]
    assert row.value == pytest.approx(11.0, rel=0.03)
    assert values(project(runs, [(64, 1)], "weak", 0), 64)["scaling", "speedup"].value == (
        pytest.approx(16, rel=0.03)
    )


def test_plain_extrapolations_stand_beside() -> None:
    runs = [of_times(p, 40.0 / p, 40.0 / p, 40.0 / p, 40.0 / p) for p in (4, 8)]
    (_, _, plain), = project(runs, [(16, 1)], "strong", 0).baselines  # fmt: skip
    assert plain["amdahl"] == pytest.approx(2.5, rel=1e-3)
    assert plain["nearest"] == 5.0
    ((_, _, weak),) = project(
        [of_times(p, 10.0, 10.0, 10.0, 10.0) for p in (4, 8)], [(16, 1)], "weak", 0
    ).baselines
    assert weak["linear"] == pytest.approx(10.0)


def test_runtimes_alone_are_projected() -> None:
    runs = [MeasuredRow("r", p, 1, 1 + 39 / p, {}) for p in (4, 8, 16)]
    found = project(runs, [(32, 1)], "strong", 0)
    assert {row.metric for row in found.rows} == {"runtime", "speedup"}
    assert values(found, 32)["", "runtime"].value == pytest.approx(1 + 39 / 32, rel=0.1)


# -- how often intervals hold


def share(truth: Callable[[int], Truth], places: tuple[int, ...], target: int) -> dict[str, float]:
    """Share of series whose run at the target is inside the intervals."""
    inside: dict[str, list[bool]] = {}
    for seed in range(16):
        noise = np.random.default_rng(seed)
        own = truth(seed)
        runs = [measured(own, each, noise) for each in places]
        there = measured(own, target, noise)
        known = load_families()["mpi"].evaluate(there.aggregates).values
        known = {**known, "runtime": there.runtime}
        for row in project(runs, [(target, 1)], "strong", 0).rows:
            if row.family in ("", "mpi") and row.metric in known:
                assert row.low is not None and row.high is not None
                held = row.low <= known[row.metric] <= row.high
                inside.setdefault(row.metric, []).append(held)
    return {metric: float(np.mean(held)) for metric, held in inside.items()}


@pytest.mark.long
@pytest.mark.parametrize("places", [(4, 8, 16), (4, 16)])
def test_intervals_hold_for_laws_with_noise(places: tuple[int, ...]) -> None:
    found = share(drawn, places, 64)
    assert found["runtime"] >= 0.85
    assert min(found.values()) >= 0.8


@pytest.mark.long
def test_intervals_hold_for_powers_that_are_no_law_here() -> None:
    found = share(powers, (4, 8, 16), 64)
    assert found["runtime"] >= 0.85
    assert np.mean(list(found.values())) >= 0.8
