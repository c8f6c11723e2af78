"""Who has most work: what runs of a number of processes tell of it, and that others stay open."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest
from calibration.small import BODY, MACHINE, runs, text

from popmodel.calibration.calibrate import Calibrated, calibrate
from popmodel.calibration.posterior import learnt_values
from popmodel.calibration.signature_text import text_of
from popmodel.model import chance, signatures
from popmodel.model.study import Study
from popmodel.model.uncertainty import estimate

IMBALANCE = "\n[imbalance]\npersistent_cv = { value = 0.05, low = 0.04, high = 0.0625 }\n"
TRUE = 1.2
"""Score of the division into 8."""


@pytest.fixture(scope="module")
def found() -> Calibrated:
    signature = signatures.from_text(text() + IMBALANCE)
    made = runs(signature, {}, errors={chance.name_of("8"): TRUE}, metrics=True)
    return calibrate(signature, MACHINE, made)


def test_runs_tell_of_the_division_that_they_have(found: Calibrated) -> None:
    known = found.signature.calibration
    assert known is not None
    number = known.index[chance.name_of("8")]
    assert known.means[number] == pytest.approx(TRUE, abs=0.6)
    assert known.deviations[number] < 0.8


def test_it_is_told_as_a_factor_on_what_is_expected(found: Calibrated) -> None:
    (one,) = [
        each
        for each in learnt_values(found.fit, found.signature)
        if each.name == chance.name_of("8")
    ]
    assert one.label == "chance of how much the process with the most work has, 8 processes"
    assert (one.kind, one.unit) == ("split", "")
    assert one.before.value == 1
    assert one.before.high == pytest.approx(np.exp(1.6448536 * chance.deviation(8)))
    assert 1.2 < one.after.value < 1.8


def test_another_number_of_processes_stays_open(found: Calibrated) -> None:
    def width(processes: int) -> float:
        study = Study(found.signature, MACHINE, {}, 400, 0)
        run = study.run(study.admit(processes, 1), study.sources())
        values = run.modelled.aggregates
        said = estimate(values["useful_max"] / values["useful_mean"] - 1)
        assert said.low is not None
        assert said.high is not None
        return float(np.log(said.high / said.low))

    assert width(7) > 1.5 * width(8)


def test_the_file_reads_back_to_the_same(found: Calibrated) -> None:
    values = learnt_values(found.fit, found.signature)
    original = signatures.from_text(text(BODY) + IMBALANCE)
    written = text_of(text(BODY) + IMBALANCE, original, found.signature, values, date(2026, 11, 23))
    again = signatures.from_text(written).calibration
    known = found.signature.calibration
    assert known is not None and again is not None
    assert again.names == known.names
    np.testing.assert_allclose(again.means, known.means, atol=1e-7)
