"""How well predictions went: errors and coverage, terms, plain extrapolations, the choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from popmodel.fit.baselines import BASELINES, baselines
from popmodel.fit.samples import Sample
from popmodel.machines import profile
from popmodel.model import signatures
from popmodel.model.run.process_placement import WHOLE
from popmodel.prediction.split_choice import SplitChoice
from popmodel.runs.measurement import MeasuredRow
from popmodel.validation.comparison import (
    CALIBRATION,
    EXTRAPOLATION,
    INTERPOLATION,
    FitRegion,
    Split,
    compare,
    of_runs,
    splits,
)
from popmodel.validation.prediction_errors import (
    MODEL,
    ByTerm,
    SplitDecision,
    by_metric,
    by_region,
    by_term,
    compare_baselines,
    decisions,
    errors_by_term,
    errors_of,
    sentences,
    summary,
    wilson,
)
from popmodel.validation.predictions import Predicted, of_application

from .cases import FAMILY, predicted, row, run


def test_of_known_rows() -> None:
    found = summary([row(measured) for measured in (0.8, 1.0, 1.25)])["runtime"]
    assert found["median_error"] == pytest.approx(0.2)
    assert found["largest_error"] == pytest.approx(0.25)
    assert found["bias"] == pytest.approx((0.25 + 0.0 - 0.2) / 3)
    assert (found["rows"], found["splits"], found["covered"], found["intervals"]) == (3, 1, 1, 3)
    assert found["median_half_width"] == pytest.approx(0.1)
    assert "metrics" not in summary([row(1.0)])


def test_efficiencies_are_in_points() -> None:
    found = summary([row(0.9, 0.8, 0.05, family=FAMILY, metric="load_balance")])["metrics"]
    assert found["family"] == FAMILY
    assert (found["bias"], found["median_half_width"]) == pytest.approx((-10.0, 5.0))


def test_coverage_counts_each_split_once() -> None:
    # repeats of one split share their prediction: 2 of 4 and 1 of 1 are 1.5 of 2 splits
    rows = [*(row(one) for one in (1.0, 1.0, 2.0, 2.0)), row(1.0, p=4)]
    coverage = errors_of(rows).coverage
    assert coverage is not None
    assert (coverage.value, coverage.splits) == (0.75, 2)
    assert (coverage.low, coverage.high) == wilson(1.5, 2)


def test_without_intervals_there_is_no_coverage() -> None:
    found = errors_of([row(1.0, width=None)])
    assert (found.coverage, found.intervals, found.median_half_width) == (None, 0, None)


def test_runs_of_the_fit_are_no_tests() -> None:
    rows = [
        row(1.0, region=FitRegion(CALIBRATION)),
        row(1.25, p=4, region=FitRegion(INTERPOLATION)),
    ]
    found = summary(rows)["runtime"]
    assert (found["rows"], found["bias"]) == (1, pytest.approx(-0.2))
    assert summary(rows[:1])["runtime"]["rows"] == 0
    assert by_metric([row(0.9, family=FAMILY, metric="x", region=FitRegion(CALIBRATION))]) == []


def test_regions_apart_and_extrapolations_by_what_they_are_beyond_in() -> None:
    rows = [
        row(0.5, region=FitRegion(EXTRAPOLATION, {"P": 2.0, "T": 3.0})),
        row(0.8, p=4, region=FitRegion(EXTRAPOLATION, {"P": 4.0})),
        row(1.0, region=FitRegion(CALIBRATION)),
    ]
    found = {(part["region"], part["beyond"]): part["runtime"] for part in by_region(rows)}
    assert list(found) == [
        (CALIBRATION, None),
        (EXTRAPOLATION, None),
        (EXTRAPOLATION, "P"),
        (EXTRAPOLATION, "T"),
    ]
    assert found[EXTRAPOLATION, None]["bias"] == pytest.approx((1.0 + 0.25) / 2)
    assert found[EXTRAPOLATION, "T"]["bias"] == pytest.approx(1.0)


def test_every_metric_of_every_family() -> None:
    rows = [
        row(0.9, 0.8, family=FAMILY, metric="a"),
        row(0.9, 0.7, family=FAMILY, metric="a", p=4),
        row(0.5, 0.6, family="mpi", metric="b"),
        row(1.0),
    ]
    found = [(one["family"], one["metric"], one["bias"]) for one in by_metric(rows)]
    assert found == [
        (FAMILY, "a", pytest.approx(-15.0)),
        ("mpi", "b", pytest.approx(10.0)),
    ]


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_of_a_proportion_is_that_of_scipy(case: tuple[int, int]) -> None:
    theirs = binomtest(*case).proportion_ci(0.90, method="wilson")
    assert wilson(*case) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


@given(st.integers(1, 50), st.floats(0, 1))
def test_it_holds_the_share_and_stays_between_0_and_1(of: int, share: float) -> None:
    low, high = wilson(share * of, of)
    assert 0 <= low <= share * of / of <= high <= 1


@pytest.mark.parametrize("case", [(0, 0), (3, 2), (-1, 2)])
def test_what_is_no_proportion(case: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="is no proportion"):
        wilson(*case)


def terms_of(prediction: Predicted, *runs: MeasuredRow) -> tuple[ByTerm, ...]:
    pairs = compare([prediction], runs)
    return by_term(splits(pairs))


def measured_terms(time: float = 10.0) -> MeasuredRow:
    """Half of the time useful, 0.2 transfer, 0.1 serialisation, 0.2 in regions."""
    return run(
        *(4, 2, time),
        parallel_efficiency=0.5,
        process_communication_efficiency=0.7,
        process_transfer_efficiency=0.8,
        process_serialisation_efficiency=0.9,
        openmp_region_efficiency=0.8,
    )


def test_seconds_and_errors_as_parts_of_the_runtime() -> None:
    told = {"useful": 5.0, "communication": 3.0, "transfer": 1.5, "serialisation": 1.5}
    (found,) = terms_of(predicted(4, 2, 8.0, terms=told), measured_terms(), measured_terms(12.0))
    by_name = {one.term.name: one for one in found.terms}
    assert list(by_name) == ["useful", "transfer", "serialisation"]
    assert by_name["useful"].seconds.measured == pytest.approx((5.0, 6.0))
    assert by_name["useful"].error == pytest.approx((5.0 - 5.5) / 11)
    assert by_name["transfer"].error == pytest.approx((1.5 - 2.2) / 11)
    document = found.to_dict()
    assert document["cancelling"] is None
    assert document["terms"][0].to_dict()["mean"] == pytest.approx(5.5)


def test_what_one_side_cannot_part_is_compared_as_a_whole() -> None:
    told = {"communication": 3.0, "transfer": 2.0, "serialisation": 1.0}
    whole = run(4, 2, 10.0, process_communication_efficiency=0.7)
    (found,) = terms_of(predicted(4, 2, 10.0, terms=told), whole)
    assert [one.term.name for one in found.terms] == ["communication"]


def test_runs_without_efficiencies_have_no_terms() -> None:
    assert terms_of(predicted(4, 2, 8.0, terms={"useful": 5.0}), run(4, 2, 8.0)) == ()
    assert terms_of(predicted(4, 2, 8.0), measured_terms()) == ()


def test_the_errors_of_a_term_are_of_tests() -> None:
    told = {"useful": 5.0}
    pairs = compare(
        [predicted(4, 2, 8.0, terms=told), predicted(2, 2, 8.0, terms=told)],
        [measured_terms(), replace(measured_terms(20.0), processes=2)],
    )
    (found,) = errors_by_term(by_term(splits(pairs)))
    # useful time of 5 s in 10 s is right, of 10 s in 20 s 5 s too short
    assert (found["term"], found["splits"]) == ("useful", 2)
    assert (found["median_error"], found["largest_error"]) == pytest.approx((0.125, 0.25))
    assert found["bias"] == pytest.approx(-0.125)
    fitted = [replace(one, region=FitRegion(CALIBRATION)) for one in pairs]
    assert errors_by_term(by_term(splits(fitted))) == []


def test_a_right_runtime_from_two_wrong_terms_is_told() -> None:
    told = {"useful": 3.5, "transfer": 3.4, "serialisation": 1.0, "regions": 2.0}
    found = terms_of(predicted(4, 2, 9.9, terms=told), measured_terms())
    assert found[0].to_dict()["cancelling"] == ["useful", "transfer"]
    assert sentences(found) == (
        "4 x 2: the runtime is off by -1.0 % as errors cancel: of the runtime, useful (computing, "
        "memory) is 15 % too short and transfer 14 % too long",
    )


def test_errors_that_do_not_hide_each_other() -> None:
    for time, useful, transfer in (
        (9.9, 4.9, 2.0),  # nothing is wrong
        (9.7, 4.6, 2.1),  # too little to be worth a word
        (9.0, 3.4, 2.6),  # the runtime tells it itself
    ):
        told = {"useful": useful, "transfer": transfer, "regions": 2.0, "serialisation": 1.0}
        assert sentences(terms_of(predicted(4, 2, time, terms=told), measured_terms())) == (), time


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


ABOUT = of_application(
    signatures.load("stencil3d"), profile.load(profile.DEFAULT_PRESET), {"N": 256.0}, WHOLE
)
TIMES = {(64, 1): 1.5, (16, 4): 1.2, (4, 16): 1.0}


def options_of(runs: Sequence[MeasuredRow], fitted: bool = False) -> tuple[Split, ...]:
    """Splits; those of other than 4 processes are of a fit if there is one."""
    predictions = [
        predicted(p, t, time, n=256.0) for (p, t), time in zip(TIMES, (0.9, 0.8, 1.1), strict=True)
    ]
    pairs = compare(predictions, runs)
    if fitted:
        regions = {p: FitRegion(CALIBRATION) for p in (64, 16)} | {4: FitRegion("interpolation")}
        pairs = tuple(replace(pair, region=regions[pair.run.processes]) for pair in pairs)
    return splits(pairs)


def all_runs() -> list[MeasuredRow]:
    return [run(*pair, time, n=256.0) for pair, time in TIMES.items()]


def chosen(parameters: Mapping[str, float], pairs: Sequence[tuple[int, int]]) -> SplitChoice | None:
    assert parameters == {"N": 256.0}
    return ABOUT.choose({"N": 256.0, "steps": 100.0}, pairs)


def test_the_choice_is_that_of_a_sweep_and_its_loss_that_of_the_runs() -> None:
    (found,) = decisions(options_of(all_runs()), chosen)
    assert isinstance(found, SplitDecision)
    assert (found.cores, found.best) == (64, (4, 16))
    made = chosen({"N": 256.0}, list(TIMES))
    assert made is not None
    assert (found.take, found.announced) == (made.taken.split, made.taken.regret)
    assert found.tied[0] == found.take
    assert found.regret == pytest.approx(TIMES[found.take] - 1.0)
    losses = {one.name: one.loss for one in found.defaults}
    assert losses == {
        "all MPI": pytest.approx(0.5),
        "one process per socket": None,
        "one process per node": 0.0,
    }


def test_repeats_count_by_their_mean() -> None:
    more = [*all_runs(), run(16, 4, 0.7, n=256.0)]
    (found,) = decisions(options_of(more), chosen)
    assert found.best == (16, 4)
    assert [one.measured for one in found.options] == pytest.approx([1.5, 0.95, 1.0])


def test_one_split_is_no_choice() -> None:
    assert decisions(options_of(all_runs()[:1]), chosen) == ()


def test_runs_of_the_fit_alone_are_no_test_of_a_choice() -> None:
    assert decisions(options_of(all_runs()[:2], fitted=True), chosen) == ()
    (found,) = decisions(options_of(all_runs(), fitted=True), chosen)
    assert [one.is_test for one in found.options] == [False, False, True]


def test_what_a_saved_prediction_says_of_other_splits() -> None:
    assert decisions(options_of(all_runs()), lambda *_: None) == ()
