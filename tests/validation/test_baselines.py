"""Plain extrapolations beside the model."""

from __future__ import annotations

import pytest

from popmodel.fit.baselines import BASELINES, baselines
from popmodel.fit.samples import Sample
from popmodel.validation.comparison import Split, compare, of_runs, splits
from popmodel.validation.prediction_errors import MODEL, compare_baselines

from .cases import predicted, run


def splits_of(*cases: tuple[int, float, float], n: float = 8.0) -> tuple[Split, ...]:
    """P, predicted time, measured time, with one thread."""
    return splits(
        compare(
            [predicted(p, 1, time, n=n) for p, time, _ in cases],
            [run(p, 1, time, n=n) for p, _, time in cases],
        )
    )


FIT = of_runs([run(1, 1, 8.0), run(2, 1, 4.2)], lambda *_: 1)


def test_they_see_the_runs_of_the_fit_only() -> None:
    found = compare_baselines(splits_of((4, 2.0, 2.5), (8, 1.0, 2.0)), FIT)
    assert found is not None
    assert found.declared
    samples = [Sample(1, 1, 8.0), Sample(2, 1, 4.2)]
    assert [values for _, values in found.tests] == [baselines(samples, p, 1) for p in (4, 8)]
    by_name = {one.name: one for one in found.errors}
    assert list(by_name) == [MODEL, *BASELINES]
    # of the model -20 % and -50 %; of the nearest run 4.2 / 2.5 and 4.2 / 2.0
    assert by_name[MODEL].bias == pytest.approx(-0.35)
    assert by_name[MODEL].mase is None
    assert by_name["nearest"].largest_error == pytest.approx(1.1)
    assert by_name["nearest"].mase == pytest.approx(0.35 / ((0.68 + 1.1) / 2))
    assert by_name["linear"].median_error == pytest.approx((0.16 + 0.475) / 2)


def test_without_a_fit_each_test_is_extrapolated_from_all_others() -> None:
    found = compare_baselines(splits_of((1, 1.0, 8.0), (2, 1.0, 4.2), (4, 1.0, 2.5)), None)
    assert found is not None
    assert not found.declared
    others = [Sample(2, 1, 4.2), Sample(4, 1, 2.5)]
    assert found.tests[0][1] == baselines(others, 1, 1)
    document = found.to_dict()["tests"][0]
    assert (document["measured"], document["predicted"][MODEL]) == (8.0, 1.0)


def test_runs_of_another_problem_size_extrapolate_nothing() -> None:
    assert compare_baselines(splits_of((4, 1.0, 1.0), n=9.0), FIT) is None
    assert compare_baselines(splits_of((4, 1.0, 1.0)), None) is None
    assert compare_baselines((), None) is None


def test_a_baseline_without_error_has_no_scale() -> None:
    found = compare_baselines(splits_of((4, 1.0, 4.2)), FIT)
    assert found is not None
    assert {one.name: one.mase for one in found.errors}["nearest"] is None
