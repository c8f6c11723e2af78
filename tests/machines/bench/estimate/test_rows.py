"""What rows lose at their ends: the loss and the length that were put in come out."""

from __future__ import annotations

import numpy as np
import pytest
from machines.bench.estimate.synthetic import QUIET, Job, Noise, core, launches, measured

from popmodel.machines.bench.estimate.core_estimates import _ends_of_loops as ends_of_loops
from popmodel.machines.bench.estimate.measured_results import MeasuredResults

TURNS = (16, 24, 32, 40, 48, 56, 64, 80, 96, 128, 192, 256, 384, 512)
CLOCK = 3e9


def row_cycles(lost: float, last: int) -> list[float]:
    """Rows of 1.2 cycles a turn and 4 between them, of which those beyond ``last`` turns lose."""
    return [1.2 * turns + 4 + (lost if turns > last else 0.0) for turns in TURNS]


def jobs(lost: float, last: int, counted: dict[str, float] | None = None) -> list[Job]:
    clock = Job("clock", {"threads": 1}, 300 / CLOCK, facts={"work": 300})
    times = zip(TURNS, row_cycles(lost, last), strict=True)
    return [
        clock,
        *(
            Job("row", {"turns": turns}, cycles / CLOCK, quantile=0.5, facts=counted or {})
            for turns, cycles in times
        ),
    ]


@pytest.mark.parametrize("last", [24, 48, 192])
@pytest.mark.parametrize("lost", [10.0, 30.0])
def test_the_loss_and_where_it_begins_are_found(lost: float, last: int) -> None:
    section = ends_of_loops(measured(jobs(lost, last), 3, QUIET))
    assert section["branch_miss"]["value"] == pytest.approx(lost, rel=1e-3)
    trip = section["predicted_trip"]
    longer = TURNS[TURNS.index(last) + 1]
    assert (trip["low"], trip["high"]) == (last, longer)
    assert last < trip["value"] < longer
    assert trip["origin"] == "measured"


def test_noise_of_batches_and_launches_moves_neither_far() -> None:
    for seed in range(10):
        found = launches(jobs(20, 48), 5, np.random.default_rng(seed), Noise(0.01, 0.02))
        section = ends_of_loops(MeasuredResults(found))
        assert section["branch_miss"]["value"] == pytest.approx(20, abs=4)
        assert section["predicted_trip"]["low"] <= 48 < section["predicted_trip"]["high"]


def test_the_interval_of_the_loss_holds_launches_that_differ() -> None:
    rng = np.random.default_rng(0)
    first, second = (launches(jobs(lost, 48), 4, rng, QUIET) for lost in (20, 30))
    section = ends_of_loops(MeasuredResults([*first[:2], *second[2:]]))
    lost = section["branch_miss"]
    assert (lost["low"], lost["value"], lost["high"]) == pytest.approx((20, 25, 30), abs=0.1)


def test_a_core_that_foresees_all_ends_loses_nothing_and_tells_no_length() -> None:
    section = ends_of_loops(measured(jobs(0, 48), 3, QUIET))
    assert section["branch_miss"]["value"] == pytest.approx(0, abs=0.01)
    assert "predicted_trip" not in section


def test_few_lengths_tell_nothing() -> None:
    clock, *some = jobs(20, 48)
    assert ends_of_loops(measured([clock, *some[:4]])) == {}
    assert ends_of_loops(measured(some)) == {}  # times are no cycles without a clock


def test_launches_without_all_lengths_tell_nothing() -> None:
    clock, *some = jobs(20, 48)
    rng = np.random.default_rng(0)
    first, second = (launches([clock, *part], 2, rng, QUIET) for part in (some[:7], some[7:]))
    assert ends_of_loops(MeasuredResults([first[0], second[1]])) == {}


@pytest.mark.parametrize(("rate", "slower"), [(8.0, 5.0), (3.0, 3.0)])
def test_instructions_are_those_of_the_slower_of_two_loops(rate: float, slower: float) -> None:
    plain = Job("instructions", {}, 100 / CLOCK, quantile=0.5, facts={"work": 100 * rate})
    section, _ = core(measured([*jobs(20, 48, {"work": 6}), plain], 3, QUIET))
    assert section["instructions_per_cycle"]["value"] == pytest.approx(slower, rel=1e-2)
    section, _ = core(measured([*jobs(20, 48), plain], 3, QUIET))  # nobody counted them
    assert section["instructions_per_cycle"]["value"] == pytest.approx(rate, rel=1e-2)
