"""Whether the right split would have been chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from popmodel.machine import profile
from popmodel.model import signatures
from popmodel.model.run.placement import WHOLE
from popmodel.runs.measurement import Measurement
from popmodel.splits.choice import Choice
from popmodel.validation import subject
from popmodel.validation.comparison import Placed, by_machine, paired, rows_of
from popmodel.validation.decision import Decision, decisions
from popmodel.validation.repeats import Split, splits
from popmodel.validation.training import CALIBRATION, Region

from .cases import predicted, run

ABOUT = subject.application(
    signatures.load("stencil3d"), profile.load(profile.DEFAULT_PRESET), {"N": 256.0}, WHOLE
)
TIMES = {(64, 1): 1.5, (16, 4): 1.2, (4, 16): 1.0}


def compared(runs: Sequence[Measurement], placed: Placed = by_machine) -> tuple[Split, ...]:
    predictions = [
        predicted(p, t, time, n=256.0) for (p, t), time in zip(TIMES, (0.9, 0.8, 1.1), strict=True)
    ]
    return splits(rows_of(paired(predictions, runs, placed)))


def all_runs() -> list[Measurement]:
    return [run(*pair, time, n=256.0) for pair, time in TIMES.items()]


def chosen(parameters: Mapping[str, float], pairs: Sequence[tuple[int, int]]) -> Choice | None:
    assert parameters == {"N": 256.0}
    return ABOUT.choose({"N": 256.0, "steps": 100.0}, pairs)


def test_the_choice_is_that_of_a_sweep_and_its_loss_that_of_the_runs() -> None:
    (found,) = decisions(compared(all_runs()), chosen)
    assert isinstance(found, Decision)
    assert (found.cores, found.best, found.measured_tied) == (64, (4, 16), ((4, 16),))
    made = chosen({"N": 256.0}, list(TIMES))
    assert made is not None
    assert (found.take, found.announced) == (made.taken.split, made.taken.regret)
    assert found.tied[0] == found.take
    assert found.regret == pytest.approx(TIMES[found.take] - 1.0)
    # predicted 0.9, 0.8, 1.1 against 1.5, 1.2, 1.0: one of three pairs has the same order
    assert found.rank_correlation == pytest.approx(-1 / 3)
    losses = {one.name: one.loss for one in found.defaults}
    assert losses == {
        "all MPI": pytest.approx(0.5),
        "one process per socket": None,
        "one process per node": 0.0,
    }


def test_repeats_count_by_their_mean() -> None:
    more = [*all_runs(), run(16, 4, 0.7, n=256.0)]
    (found,) = decisions(compared(more), chosen)
    assert found.best == (16, 4)
    assert [one.measured for one in found.options] == pytest.approx([1.5, 0.95, 1.0])


def test_one_split_is_no_choice() -> None:
    assert decisions(compared(all_runs()[:1]), chosen) == ()


def test_runs_of_the_fit_alone_are_no_test_of_a_choice() -> None:
    def fitted(one: Measurement, _: object) -> Region:
        return Region(CALIBRATION) if one.processes != 4 else Region("interpolation")

    assert decisions(compared(all_runs()[:2], fitted), chosen) == ()
    (found,) = decisions(compared(all_runs(), fitted), chosen)
    assert [one.is_test for one in found.options] == [False, False, True]


def test_what_a_saved_prediction_says_of_other_splits() -> None:
    assert decisions(compared(all_runs()), lambda *_: None) == ()
