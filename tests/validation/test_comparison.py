"""Measured runs beside their predictions, beside the runs of a fit, and runs that say nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.base.errors import FileError, UsageError
from popmodel.base.values import plain
from popmodel.efficiency.measure import analyse
from popmodel.machines import profile
from popmodel.machines.quantity import Topology
from popmodel.model import signatures
from popmodel.model.run.process_placement import WHOLE, ImpossibleSplit, place
from popmodel.model.uncertainty import Calibration, Estimate
from popmodel.prediction.prediction import predict
from popmodel.runs.measurement import MeasuredRow, from_run, oversubscribed
from popmodel.traces import read
from popmodel.validation.comparison import (
    BOUNDARY,
    CALIBRATION,
    EXTRAPOLATION,
    INTERPOLATION,
    REPETITION,
    ExcludedRuns,
    FitRegion,
    Split,
    compare,
    compare_runs,
    excluded,
    joined,
    of_calibration,
    of_runs,
    region_of,
    splits,
    suspicious,
    values_of,
)
from popmodel.validation.prediction_errors import summary
from popmodel.validation.predictions import (
    Predicted,
    Subject,
    from_document,
    from_prediction,
    of_application,
)

from .cases import predicted, row, run

HYBRID = Path(__file__).parent.parent / "data" / "bt-mz.S.2x2.prv.gz"


def test_a_difference_is_relative_for_times_and_in_points_for_efficiencies() -> None:
    assert row(1.0, 1.1).difference == pytest.approx(0.1)
    assert row(1.0, 1.1, metric="load_balance").difference == pytest.approx(10.0)
    assert [row(one, 1.1).covered for one in (1.0, 1.2, 1.21)] == [True, True, False]
    assert row(1.0, width=None).covered is None


def test_every_metric_that_both_have_is_a_row() -> None:
    made = predict(
        signatures.load("stencil3d"), profile.load(profile.DEFAULT_PRESET), 2, 2, {"N": 64.0}
    )
    traced = from_run(analyse(read(HYBRID)))
    rows = values_of(compare([from_prediction(made)], [traced]))
    document = json.loads(json.dumps(made.to_dict()))
    saved = from_document(document)
    again = values_of(compare([saved], [traced]))
    assert [one.to_dict() for one in again] == [one.to_dict() for one in rows]
    both = {
        (family, metric)
        for family, values in traced.metrics.items()
        for metric in values
        if metric in made.metrics[family]
    }
    assert {(one.family, one.metric) for one in rows} == {("", "runtime"), *both}
    assert ("hybrid-additive", "process_load_balance") in both
    # a prediction agrees with itself
    values = {f: {m: e.value for m, e in some.items()} for f, some in made.metrics.items()}
    same = MeasuredRow("self", 2, 2, made.runtime.value, values)
    itself = values_of(compare([from_prediction(made)], [same]))
    assert all(one.difference == 0 for one in itself)
    assert all(one.covered in (True, None) for one in itself)
    assert summary(itself)["metrics"]["median_error"] == 0


def test_uneven_threads_cannot_be_compared() -> None:
    traced = analyse(read(HYBRID))
    uneven = replace(traced, observables=SimpleNamespace(threads=np.array([2, 3])))
    with pytest.raises(FileError, match="its processes have 2 to 3 threads each; predictions"):
        from_run(uneven)


def test_a_run_that_nothing_was_predicted_of_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        compare([Predicted(16, 4, Estimate(1.0), {})], [MeasuredRow("run.prv", 2, 2, 1.0, {})])
    assert caught.value.message == "run.prv is a run of 2 x 2, the prediction is for 16 x 4"
    assert caught.value.hint == "predict --procs 2 --threads 2, or name the application"
    other = Predicted(2, 2, Estimate(1.0), {}, {"N": 64.0, "steps": 9.0})
    made = MeasuredRow("runs.csv", 2, 2, 1.0, {}, parameters={"N": 128.0, "steps": 9.0}, line=3)
    with pytest.raises(UsageError) as caught:
        compare([other], [made])
    assert caught.value.message == (
        "runs.csv:3 is a run of 2 x 2, N=128, the prediction is for 2 x 2, N=64"
    )


def test_each_run_is_compared_with_the_prediction_of_its_parameters() -> None:
    predictions = [predicted(2, 2, time, n=n) for n, time in ((1.0, 5.0), (2.0, 7.0))]
    found = compare(predictions, [run(2, 2, 6.0, n=n) for n in (2.0, 1.0)])
    assert [one.predicted.runtime.value for one in found] == [7.0, 5.0]


# -- beside the runs of a fit


FIT = of_runs([run(1, 1, 8.0), run(8, 1, 1.0), run(2, 4, 1.1)], lambda *_: 1)


def test_runs_of_the_fit_are_known_by_their_numbers_and_repeats_by_their_configuration() -> None:
    again = replace(run(8, 1, 1.0), source="elsewhere.csv", line=7)
    assert region_of(again, 1, FIT) == FitRegion(CALIBRATION)
    assert region_of(run(8, 1, 1.01), 1, FIT) == FitRegion(REPETITION)
    assert not FitRegion(CALIBRATION).is_test and not FitRegion(REPETITION).is_test


def test_beyond_the_fit() -> None:
    for p, t, nodes, n, beyond in (
        (4, 1, 1, 8.0, {}),
        (2, 2, 1, 8.0, {}),
        (32, 1, 1, 8.0, {"P": 4.0}),
        (1, 8, 1, 8.0, {"T": 2.0}),
        (8, 4, 1, 8.0, {"cores": 4.0}),  # each within its range, and more cores than ever
        (16, 8, 1, 8.0, {"P": 2.0, "T": 2.0}),
        (4, 1, 1, 24.0, {"N": 3.0}),
        (4, 1, 1, 2.0, {"N": 4.0}),
        (4, 1, 2, 8.0, {BOUNDARY: 2.0}),
        (4, 1, None, 8.0, {}),
    ):
        found = region_of(run(p, t, 0.7, n=n), nodes, FIT)
        assert found.name == (EXTRAPOLATION if beyond else INTERPOLATION), (p, t, nodes, n)
        assert found.beyond == pytest.approx(beyond)
        assert found.is_test
    several = of_runs([run(1, 1, 1.0), run(8, 1, 1.0)], lambda p, _: 1 if p == 1 else 2)
    assert region_of(run(4, 1, 1.0), 6, several).beyond == {"nodes": 3.0}


def calibration(*digests: str) -> Calibration:
    empty = np.zeros((0, 0))
    hull = {"P": (1.0, 4.0), "T": (1.0, 2.0)}
    known = dict.fromkeys(digests, "a run")
    return Calibration("vm", "0" * 64, (), np.zeros(0), empty, hull=hull, runs=known)


def test_a_calibrated_signature_knows_its_runs_and_cores_where_all_are_at_hand() -> None:
    used = [run(4, 1, 1.0), run(1, 2, 1.0)]
    known = calibration(*(one.digest for one in used))
    found = of_calibration(known, [(one, one) for one in used])
    assert region_of(used[0], 1, found).name == CALIBRATION
    assert region_of(run(4, 2, 1.0), 1, found).beyond == {"cores": 2.0}
    assert region_of(run(8, 1, 1.0), 1, found).beyond == {"P": 2.0}
    part = of_calibration(known, [(used[0], used[0])])
    assert region_of(run(4, 2, 1.0), 1, part).name == INTERPOLATION
    bare = replace(run(4, 1, 1.0), parameters={})  # as the table has it
    found = of_calibration(calibration(bare.digest), [(bare, used[0])])
    assert region_of(used[0], 1, found).name == CALIBRATION


def test_several_fits_together() -> None:
    assert joined([]) is None
    found = joined([FIT, of_calibration(calibration("f" * 16), [])])
    assert found is not None
    assert found.hull == {"P": (1, 8), "T": (1, 4)}  # what one of them leaves open is open
    assert (found.digests, found.runs) == (FIT.digests | {"f" * 16}, FIT.runs)


def measured(p: int, t: int, time: float) -> MeasuredRow:
    """A row of a table that leaves the parameters open."""
    return MeasuredRow("x.csv", p, t, time, {})


def calibrated(*runs: MeasuredRow) -> Subject:
    """The stencil, calibrated by runs of P up to 4 on one node."""
    full = {"N": 256.0, "steps": 100.0}
    known = {replace(one, parameters=full).digest: one.source for one in runs}
    hull = {"P": (1.0, 4.0), "T": (1.0, 1.0), "nodes": (1.0, 1.0), "N": (256.0, 256.0)}
    learnt = replace(calibration(), machine="sandybridge-fdr", hull=hull, runs=known)
    signature = replace(signatures.load("stencil3d"), calibration=learnt if runs else None)
    return of_application(signature, profile.load(profile.DEFAULT_PRESET), {"N": 256.0}, WHOLE)


def test_runs_stand_beside_those_of_a_signature_and_those_that_are_named() -> None:
    used = [measured(1, 1, 3.5), measured(4, 1, 1.0)]
    tests = [measured(2, 1, 1.8), measured(64, 1, 0.3), measured(4, 1, 1.01)]
    found = compare_runs(calibrated(*used), [*used, *tests])
    assert [pair.region.name for pair in found.pairs] == [
        *("calibration", "calibration", "interpolation", "extrapolation", "repetition")
    ]
    assert found.pairs[3].region.beyond == {"P": 16.0, "node boundary": 4.0}
    assert found.training is not None
    assert [one.runtime for one in found.training.runs] == [3.5, 1.0]
    assert len(splits(found.pairs)) == 5  # used runs and repeats of them apart
    named = compare_runs(calibrated(used[0]), [used[0], measured(8, 1, 0.6)], [measured(8, 1, 0.6)])
    assert [pair.region.name for pair in named.pairs] == ["calibration", "calibration"]
    alone = compare_runs(calibrated(), [measured(4, 1, 1.0)])
    assert (alone.training, alone.pairs[0].region.name) == (None, "preset")


# -- runs whose threads had no cores of their own


def compared(*cases: tuple[int, int, float, list[float]], n: float = 8.0) -> tuple[Split, ...]:
    """P, T, predicted time, measured times."""
    predictions = [predicted(p, t, time, n=n) for p, t, time, _ in cases]
    return splits(
        compare(predictions, [run(p, t, time, n=n) for p, t, _, times in cases for time in times])
    )


@given(st.integers(1, 40), st.integers(1, 20), st.integers(1, 4), st.integers(1, 16))
def test_oversubscribed_is_what_cannot_be_placed(p: int, t: int, nodes: int, cores: int) -> None:
    why = oversubscribed(run(p, t, 1.0), nodes, cores)
    try:
        place(p, t, Topology(nodes, cores, 1, 1, ()))
    except ImpossibleSplit:
        assert why is not None and why.startswith("more threads (")
    else:
        assert why is None


def test_runs_left_out_for_one_reason_are_told_together() -> None:
    runs = [run(3, 4, 1.0), run(3, 4, 2.0), run(3, 4, 3.0, n=9.0)]
    first, other = excluded((one, "too hot") for one in runs)
    assert first == ExcludedRuns(3, 4, {"N": 8.0}, ("x.csv",), (1.0, 2.0), "too hot")
    assert other.sentence(["N"]) == "left out: 1 run of 3 x 4, N=9: too hot"
    assert plain(first)["measured"] == [1.0, 2.0]


def test_threads_that_bring_nothing_against_the_prediction() -> None:
    for time, told, is_left in (
        (1.0, 0.5, True),  # e_mt T = 1: the threads share a core
        (0.96, 0.5, True),
        (1.7, 0.5, True),  # and wait for each other actively
        (0.9, 0.5, False),  # some speed-up: the model has to answer for it
        (1.0, 0.8, False),  # hardly any was predicted
    ):
        kept, left = suspicious(compared((2, 1, 1.0, [1.0]), (2, 2, told, [time])))
        assert [one.threads for one in left] == [2] * is_left, (time, told)
        assert len(kept) == 2 - is_left
    _, (only,) = suspicious(compared((2, 1, 1.0, [1.0]), (2, 4, 0.3, [1.02])))
    assert only.why == (
        "0.98 times as fast as 2 x 1, 3.3 times predicted: as if the threads of a process shared a "
        "core"
    )
    others = compared((1, 1, 1.0, [1.0]), (2, 2, 0.5, [1.0]))  # other processes, or parameters
    assert suspicious((*others, *compared((2, 1, 1.0, [1.0]), n=9.0)))[1] == ()


def test_repeats_that_differ_far_more_than_those_of_others() -> None:
    steady = [(p, 1, 1.0, [1.0, 1.01]) for p in (1, 2)]
    kept, (left,) = suspicious(compared(*steady, (4, 1, 1.0, [1.0, 1.5])))
    assert [one.processes for one in kept] == [1, 2]
    assert (left.processes, left.why) == (
        4,
        "they took 1 to 1.5 s, while repeats of the others differ by 1 %: something else ran on "
        "their cores",
    )
    for others in ([[1.0, 1.01]], [[1.0, 1.01], [1.0]], [[1.0, 1.2], [1.0, 1.1]]):
        cases = [(1 + index, 1, 1.0, times) for index, times in enumerate(others)]
        assert suspicious(compared(*cases, (8, 1, 1.0, [1.0, 1.5])))[1] == (), others
