"""What a signature does not know, before a fit begins: how its imbalance grows with P."""

import numpy as np
import pytest
from fit.small import MACHINE, runs, text

from popmodel.fit.calibrate import Calibrated, calibrate
from popmodel.fit.initial_values import with_growth
from popmodel.model import signatures
from popmodel.model.predictor import Study
from popmodel.model.uncertainty import estimate

SPLITS = ((2, 1), (4, 1), (2, 4), (8, 1), (16, 1), (32, 1))
CV = "persistent_cv = { value = 0.03, low = 0.02, high = 0.045 }\n"


def stated(more: str = "") -> str:
    """A signature of whose imbalance more is said, or not."""
    return text().replace("[[program]]", f"[imbalance]\n{CV}{more}[[program]]", 1)


def of_growth(exponent: float) -> Calibrated:
    """A signature that does not know the growth, by runs in which imbalance grows."""
    true = signatures.from_text(
        stated(f"reference_processes = 8\ngrowth_exponent = {exponent:g}\n")
    )
    made = runs(true, {}, SPLITS, np.random.default_rng(1), metrics=True)
    return calibrate(signatures.from_text(stated()), MACHINE, made)


@pytest.fixture(scope="module")
def growing() -> Calibrated:
    return of_growth(0.5)


def test_runs_tell_how_the_imbalance_grows(growing: Calibrated) -> None:
    fast = growing.signature.imbalance["growth_exponent"]
    slow = of_growth(0.0).signature.imbalance["growth_exponent"]

    assert (fast.origin, slow.origin) == ("fit", "fit")
    assert slow.value < 0.22 < 0.28 < fast.value <= 0.5
    assert slow.low == pytest.approx(0.0)
    assert fast.high == pytest.approx(0.5)


def test_a_run_of_more_processes_is_inside_of_the_interval(growing: Calibrated) -> None:
    true = signatures.from_text(stated("reference_processes = 8\ngrowth_exponent = 0.5\n"))
    (run,) = runs(true, {}, ((128, 1),))
    study = Study(growing.signature, MACHINE, {}, 400, 0)
    said = estimate(study.run(study.admit(128, 1), study.sources()).modelled.runtime)

    assert said.low is not None
    assert said.high is not None
    assert said.low < run.runtime < said.high


@pytest.mark.parametrize("more", ["growth_exponent = 0.1\n", "growth_exponent = 0\n"])
def test_what_is_said_of_the_growth_stays(more: str) -> None:
    signature = signatures.from_text(stated(more))
    assert with_growth(signature, runs(signature, {}, SPLITS)) is signature


def test_nothing_grows_without_imbalance_or_without_processes() -> None:
    signature = signatures.from_text(text())
    assert with_growth(signature, runs(signature, {}, SPLITS)) is signature
    one = signatures.from_text(stated())
    assert with_growth(one, runs(one, {}, ((1, 1), (1, 4)))) is one
