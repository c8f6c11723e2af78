"""Errors by term."""

from __future__ import annotations

from dataclasses import replace

import pytest

from popmodel.runs.measurement import MeasuredRow
from popmodel.validation.comparison import CALIBRATION, FitRegion, compare, splits
from popmodel.validation.prediction_errors import ByTerm, by_term, errors_by_term, sentences
from popmodel.validation.predictions import Predicted

from .cases import predicted, run


def compared(prediction: Predicted, *runs: MeasuredRow) -> tuple[ByTerm, ...]:
    pairs = compare([prediction], runs)
    return by_term(splits(pairs))


def measured(time: float = 10.0) -> MeasuredRow:
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
    (found,) = compared(predicted(4, 2, 8.0, terms=told), measured(), measured(12.0))
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
    (found,) = compared(predicted(4, 2, 10.0, terms=told), whole)
    assert [one.term.name for one in found.terms] == ["communication"]


def test_runs_without_efficiencies_have_no_terms() -> None:
    assert compared(predicted(4, 2, 8.0, terms={"useful": 5.0}), run(4, 2, 8.0)) == ()
    assert compared(predicted(4, 2, 8.0), measured()) == ()


def test_the_errors_of_a_term_are_of_tests() -> None:
    told = {"useful": 5.0}
    pairs = compare(
        [predicted(4, 2, 8.0, terms=told), predicted(2, 2, 8.0, terms=told)],
        [measured(), replace(measured(20.0), processes=2)],
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
    found = compared(predicted(4, 2, 9.9, terms=told), measured())
    assert found[0].to_dict()["cancelling"] == ["useful", "transfer"]
    assert sentences(found) == (
        "4 x 2: the runtime is off by -1.0 % as errors cancel: of the runtime, useful (computing, "
        "memory) is 15 % too short and transfer 14 % too long",
    )


@pytest.mark.parametrize(
    ("time", "told"),
    [
        (9.9, {"useful": 4.9, "transfer": 2.0, "regions": 2.0}),  # nothing is wrong
        (9.7, {"useful": 4.6, "transfer": 2.1, "regions": 2.0}),  # too little to be worth a word
        (9.0, {"useful": 3.4, "transfer": 2.6, "regions": 2.0}),  # the runtime tells it itself
    ],
)
def test_errors_that_do_not_hide_each_other(time: float, told: dict[str, float]) -> None:
    told = {**told, "serialisation": 1.0}
    assert sentences(compared(predicted(4, 2, time, terms=told), measured())) == ()
