"""Runs compared with an application that knows what it was fitted to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from popmodel.machine import profile
from popmodel.model import signatures
from popmodel.model.posterior import Calibration
from popmodel.model.run.placement import WHOLE
from popmodel.runs.measurement import MeasuredRow
from popmodel.validation.comparison import compare_runs, splits
from popmodel.validation.predictions import Subject, of_application

FULL = {"N": 256.0, "steps": 100.0}


def measured(p: int, t: int, time: float) -> MeasuredRow:
    """A row of a table that leaves the parameters open."""
    return MeasuredRow("x.csv", p, t, time, {})


def calibrated(*runs: MeasuredRow) -> Subject:
    """The stencil, calibrated by runs of P up to 4 on one node."""
    known = {replace(run, parameters=FULL).digest: run.source for run in runs}
    nothing = np.zeros((0, 0))
    hull = {"P": (1.0, 4.0), "T": (1.0, 1.0), "nodes": (1.0, 1.0), "N": (256.0, 256.0)}
    calibration = Calibration(
        "sandybridge-fdr", "0" * 64, (), np.zeros(0), nothing, hull=hull, runs=known
    )
    signature = replace(signatures.load("stencil3d"), calibration=calibration)
    machine = profile.load(profile.DEFAULT_PRESET)
    return of_application(signature, machine, {"N": 256.0}, WHOLE)


def test_a_calibrated_signature_knows_its_runs_by_their_full_parameters() -> None:
    used = [measured(1, 1, 3.5), measured(4, 1, 1.0)]
    tests = [measured(2, 1, 1.8), measured(64, 1, 0.3)]
    found = compare_runs(calibrated(*used), [*used, *tests])
    assert [pair.region.name for pair in found.pairs] == [
        *("calibration", "calibration", "interpolation", "extrapolation")
    ]
    assert found.pairs[-1].region.beyond == {"P": 16.0, "node boundary": 4.0}
    assert found.training is not None
    assert [run.runtime for run in found.training.runs] == [3.5, 1.0]


def test_runs_named_by_the_user_are_joined_with_those() -> None:
    used = [measured(1, 1, 3.5)]
    found = compare_runs(calibrated(*used), [*used, measured(8, 1, 0.6)], [measured(8, 1, 0.6)])
    assert [pair.region.name for pair in found.pairs] == ["calibration", "calibration"]


def test_used_runs_and_repeats_of_them_are_splits_of_their_own() -> None:
    used = [measured(4, 1, 1.0)]
    found = compare_runs(calibrated(*used), [*used, measured(4, 1, 1.01)])
    assert [one.region.name for one in splits(found.pairs)] == [*("calibration", "repetition")]


def test_without_a_fit_the_range_of_the_machine_is_told() -> None:
    machine = profile.load(profile.DEFAULT_PRESET)
    about = of_application(signatures.load("stencil3d"), machine, {"N": 256.0}, WHOLE)
    found = compare_runs(about, [measured(4, 1, 1.0)])
    assert (found.training, found.pairs[0].region.name) == (None, "preset")
