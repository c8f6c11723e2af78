"""The answer of a study: anchored at its runs, between the model and the plain rule, ties told."""

from __future__ import annotations

import numpy as np
import pytest

from popmodel.study.manifest import DONE, Step
from popmodel.study.plan import Run
from popmodel.study.recommendation import (
    Answer,
    ModelledSplit,
    answers,
    nearest,
    size_powers,
    times_of,
)

SMALL, LARGE, TARGET = ((("N", size),) for size in (100.0, 200.0, 400.0))


def runs(times: dict[Run, float], waited: float = 0.0, spread: float = 0.005) -> dict[Run, Step]:
    return {
        Run(run.processes, run.threads, run.settings, repeat): Step(
            "run", DONE, "", "", 1.0, facts={"runtime": time * factor, "waited": waited}
        )
        for run, time in times.items()
        for repeat, factor in enumerate((1 - spread, 1.0, 1 + spread), 1)
    }


def split(run: Run, value: float, error: float) -> ModelledSplit:
    draws = value * np.exp(error * np.random.default_rng(run.processes).normal(size=400))
    return ModelledSplit(run.cores, run, value, draws)


MEASURED = {
    Run(1, 1, SMALL): 1.0,
    Run(2, 1, SMALL): 0.5,
    Run(1, 1, LARGE): 4.0,
    Run(2, 1, LARGE): 2.0,
    Run(1, 2, LARGE): 2.4,
}


def answer(model: dict[Run, float], error: float, missed: float = 0.0) -> dict[Run, Answer]:
    """Answers at N = 400 of a model with its values there and for the runs."""
    splits = [split(run, value, error) for run, value in model.items() if run.settings == TARGET]
    modelled = {run: value for run, value in model.items() if run.settings != TARGET}
    found = answers(splits, times_of(runs(MEASURED)), modelled, missed)
    return {one.run: one for one in found}


def test_a_level_that_the_model_misses_is_that_of_the_run() -> None:
    # twice as slow as what was measured, everywhere; times go with N**2
    model = {run: 2 * time for run, time in MEASURED.items()}
    model |= {Run(2, 1, TARGET): 16.0, Run(1, 2, TARGET): 19.2}
    found = answer(model, 0.02)
    assert found[Run(2, 1, TARGET)].value == pytest.approx(8.0, rel=0.01)
    assert found[Run(2, 1, TARGET)].plain == pytest.approx(8.0, rel=0.01)
    assert found[Run(2, 1, TARGET)].anchor == Run(2, 1, LARGE)
    assert not found[Run(1, 2, TARGET)].tied


def test_a_model_that_missed_its_check_leaves_the_word_to_the_plain_rule() -> None:
    model = {**MEASURED, Run(2, 1, TARGET): 4.0}  # half of what N**2 gives
    sure, missed = (answer(model, 0.02, off)[Run(2, 1, TARGET)] for off in (0.0, 0.7))
    assert sure.value == pytest.approx(4.0, rel=0.1)
    assert missed.value == pytest.approx(8.0, rel=0.1)
    assert sure.high / sure.low > 1.5  # for it contradicts the plain rule


def test_what_cannot_be_told_apart_is_a_tie() -> None:
    near = {**MEASURED, Run(1, 2, LARGE): 2.4}
    model = {**near, Run(2, 1, TARGET): 8.0, Run(1, 2, TARGET): 8.4}
    found = answer(model, 0.1)
    assert found[Run(2, 1, TARGET)].tied
    assert found[Run(1, 2, TARGET)].tied


def test_a_split_that_was_run_at_this_size_takes_what_it_took() -> None:
    times = times_of(runs(MEASURED))
    run = Run(2, 1, LARGE)
    (found,) = answers([split(run, 3.0, 0.2)], times, {run: 3.0}, 0.3)
    assert found.value == pytest.approx(2.0, rel=0.01)
    assert 0.95 < found.low / 2.0 < 1 < found.high / 2.0 < 1.05


def test_waiting_for_cpus_is_no_time_of_the_program_and_leaves_doubt() -> None:
    quiet = times_of(runs(MEASURED))[Run(1, 1, LARGE)]
    busy = times_of(runs(MEASURED, waited=0.5))[Run(1, 1, LARGE)]
    assert np.exp(busy.log) == pytest.approx(2.0, rel=0.01)
    assert quiet.error < 0.02 < 0.3 < busy.error


def test_powers_of_sizes_come_from_splits_that_were_run_at_several() -> None:
    assert size_powers(times_of(runs(MEASURED))) == pytest.approx([2.0], abs=0.01)
    alone = {run: time for run, time in MEASURED.items() if run.settings == LARGE}
    assert size_powers(times_of(runs(alone))) == [0.0]


def test_more_cores_are_scaled_from_the_nearest_split_of_the_largest_size() -> None:
    assert nearest(Run(4, 1, TARGET), MEASURED) == Run(2, 1, LARGE)
    assert nearest(Run(1, 4, TARGET), MEASURED) == Run(1, 2, LARGE)
