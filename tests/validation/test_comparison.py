"""Predicted beside measured."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from popmodel.efficiency.measure import analyse
from popmodel.errors import FileError, UsageError
from popmodel.machine import profile
from popmodel.model import signatures as signature
from popmodel.model.uncertainty import Estimate
from popmodel.prediction.prediction import predict
from popmodel.runs.measurement import MeasuredRow, from_run
from popmodel.trace import read
from popmodel.validation.comparison import compare, values_of
from popmodel.validation.prediction_errors import summary
from popmodel.validation.predictions import PREDICTION, Predicted, from_document, from_prediction

from .cases import row

HYBRID = Path(__file__).parent.parent / "data" / "bt-mz.S.2x2.prv.gz"


def test_a_difference_is_relative_for_times_and_in_points_for_efficiencies() -> None:
    assert row(1.0, 1.1).difference == pytest.approx(0.1)
    assert row(1.0, 1.1, metric="load_balance").difference == pytest.approx(10.0)


@pytest.mark.parametrize(("measured", "covered"), [(1.0, True), (1.2, True), (1.21, False)])
def test_an_interval_holds_a_measurement_or_not(measured: float, covered: bool) -> None:
    assert row(measured, 1.1).covered is covered


def test_without_an_interval_nothing_is_covered_or_missed() -> None:
    assert row(1.0, width=None).covered is None


def test_uneven_threads_cannot_be_compared() -> None:
    run = analyse(read(HYBRID))
    uneven = replace(run, observables=SimpleNamespace(threads=np.array([2, 3])))
    with pytest.raises(FileError, match="its processes have 2 to 3 threads each; predictions"):
        from_run(uneven)


def test_every_metric_that_both_have_is_a_row() -> None:
    made = predict(
        signature.load("stencil3d"), profile.load(profile.DEFAULT_PRESET), 2, 2, {"N": 64.0}
    )
    run = from_run(analyse(read(HYBRID)))
    rows = values_of(compare([from_prediction(made)], [run]))
    assert rows[0].metric == "runtime"
    document = json.loads(json.dumps(made.to_dict()))
    saved = from_document(PREDICTION.read(document, "saved.json"))
    again = values_of(compare([saved], [run]))
    assert [one.to_dict() for one in again] == [one.to_dict() for one in rows]
    both = {
        (family, metric)
        for family, values in run.metrics.items()
        for metric in values
        if metric in made.metrics[family]
    }
    assert {(one.family, one.metric) for one in rows[1:]} == both
    assert ("hybrid-additive", "process_load_balance") in both
    # a prediction agrees with itself
    same = MeasuredRow(
        "self",
        2,
        2,
        made.runtime.value,
        {f: {m: e.value for m, e in values.items()} for f, values in made.metrics.items()},
    )
    itself = values_of(compare([from_prediction(made)], [same]))
    assert all(one.difference == 0 for one in itself)
    assert all(one.covered in (True, None) for one in itself)
    assert summary(itself)["metrics"]["median_error"] == 0


def test_a_run_of_another_size_is_refused() -> None:
    predicted = Predicted(16, 4, Estimate(1.0), {})
    with pytest.raises(UsageError) as caught:
        compare([predicted], [MeasuredRow("run.prv", 2, 2, 1.0, {})])
    assert caught.value.message == "run.prv is a run of 2 x 2, the prediction is for 16 x 4"
    assert caught.value.hint == "predict --procs 2 --threads 2, or name the application"


def test_a_run_with_other_parameters_is_refused_and_says_which() -> None:
    predicted = Predicted(2, 2, Estimate(1.0), {}, {"N": 64.0, "steps": 9.0})
    run = MeasuredRow("runs.csv", 2, 2, 1.0, {}, parameters={"N": 128.0, "steps": 9.0}, line=3)
    with pytest.raises(UsageError) as caught:
        compare([predicted], [run])
    assert caught.value.message == (
        "runs.csv:3 is a run of 2 x 2, N=128, the prediction is for 2 x 2, N=64"
    )


def test_each_run_is_compared_with_the_prediction_of_its_parameters() -> None:
    predictions = [Predicted(2, 2, Estimate(t), {}, {"N": n}) for n, t in ((1.0, 5.0), (2.0, 7.0))]
    runs = [MeasuredRow("x", 2, 2, 6.0, {}, parameters={"N": n}) for n in (2.0, 1.0)]
    found = compare(predictions, runs)
    assert [(one.predicted.parameters["N"], one.predicted.runtime.value) for one in found] == [
        (2.0, 7.0),
        (1.0, 5.0),
    ]
