"""What predictions say of a signature that runs have calibrated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from popmodel.base.errors import UsageError
from popmodel.base.expressions.elementary import numbers
from popmodel.machines.profile import Profile, load
from popmodel.model import model_error, signatures
from popmodel.model.predictor import Study
from popmodel.model.signature.application import Signature
from popmodel.model.uncertainty import TRUSTED, Array, Calibration, Drift, drawn_only
from popmodel.prediction.prediction import OUTSIDE, PredictedRun, predict
from popmodel.reports.prediction_words import calibrated, named

NOISE = 0.1
LOG_P = "residual.log_processes"


@pytest.fixture(scope="module")
def machine() -> Profile:
    return load("sandybridge-fdr")


def known(profile: Profile, **changes: object) -> Signature:
    """Four processes at most, with a term of which little is known."""
    of_runs = Calibration(
        *(profile.name, profile.digest, ("law.loops", LOG_P)),
        *(np.array([0.5, 1.0]), np.diag([0.3, 0.5]), 0.5, NOISE),
        residuals={LOG_P: 1e-3},
        hull={"P": (1.0, 4.0), "T": (1.0, 1.0), "nodes": (1.0, 1.0), "N": (256.0, 256.0)},
        runs={"a1": "runs.csv:2", "a2": "runs.csv:3"},
    )
    return replace(signatures.load("stencil3d"), calibration=replace(of_runs, **changes))  # type: ignore[arg-type]


def made(
    signature: Signature, profile: Profile, processes: int = 4, size: int = 256
) -> PredictedRun:
    return predict(signature, profile, processes, 1, {"N": size})


def test_a_new_run_varies_more_than_the_mean(machine: Profile) -> None:
    found = made(known(machine), machine)
    mean, new = found.runtime, found.new_run
    assert None not in (mean.low, mean.high, new.low, new.high)
    assert new.value == mean.value
    assert new.low < mean.low < mean.high < new.high  # type: ignore[operator]


def test_without_runs_nobody_knows_how_much_they_vary(machine: Profile) -> None:
    document = made(signatures.load("stencil3d"), machine).to_dict()
    new = document["runtime"]["new_run"]
    assert (new["low"], new["high"]) == (None, None)
    assert new["why"] == "not known how much runs vary: no runs have calibrated it"
    assert "run to run" not in document["intervals"]["include"]
    assert document["application"]["calibration"] is None
    assert calibrated(document) == ()


def test_on_another_machine_laws_terms_and_drifts_are_those_without_runs(machine: Profile) -> None:
    plain = made(signatures.load("stencil3d"), machine)
    drifts = {"size": Drift(0.5, 0.0), "active": Drift(0.5, 0.0)}
    found = made(known(machine, machine_digest="0", drifts=drifts), machine)
    assert found.runtime == plain.runtime


def test_what_was_changed_by_hand_is_told(machine: Profile) -> None:
    document = made(known(machine, changed=("constants.rate",)), machine).to_dict()
    ((_, text),) = calibrated(document)
    assert "changed by hand since" in text
    assert text.endswith("constants.rate")


@pytest.mark.long
def test_beyond_the_runs_is_said_and_far_beyond_there_is_no_interval(machine: Profile) -> None:
    signature = known(machine)
    near = made(signature, machine, 16)
    assert near.validity.reasons[0].startswith("P a factor of 4 above the largest calibrated (4)")
    assert near.runtime.low is not None
    size = made(signature, machine, 4, 512)
    assert size.validity.reasons == ("N a factor of 2 above the largest calibrated (256)",)
    far = made(signature, machine, 4 * int(TRUSTED) * 2)
    assert far.validity.status == OUTSIDE
    assert far.runtime.low is None
    assert far.new_run.low is None
    assert far.included == ()


def test_terms_that_were_learnt_have_their_share(machine: Profile) -> None:
    signature = known(machine, root=np.diag([1e-3, 2.0]), residuals={LOG_P: 5e-2})
    found = made(signature, machine)
    assert next(iter(found.doubtful)) == LOG_P
    assert "time of a step that grows with log2 P" in named(LOG_P, 0.9)
    assert LOG_P not in made(signature, machine, 1).doubtful


def test_a_term_that_runs_may_hide_counts_in_choices_and_hardly_in_intervals(
    machine: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    term = "residual.processes"

    def drawn(mean: float) -> Array:
        signature = known(
            machine,
            names=("law.loops", term),
            means=np.array([0.0, mean]),
            root=np.diag([0.9, 0.3]),
            residuals={term: 3e-5},
        )
        study = Study(signature, machine, {"N": 256}, 400, 0)
        run = study.run(study.admit(32, 1), study.sources())
        return drawn_only(numbers(run.modelled.runtime))

    hidden, shown = drawn(0.0), drawn(2.0)
    monkeypatch.setattr(model_error, "HIDDEN", 0.0)
    likely = drawn(0.0)
    assert np.array_equal(shown, drawn(2.0))
    assert np.quantile(hidden, 0.95) < 1.15 * np.quantile(likely, 0.95)
    assert np.quantile(hidden, 0.05) == pytest.approx(np.quantile(likely, 0.05), rel=0.01)
    assert hidden.max() > 1.5 * likely.max()
    assert hidden.mean() > 1.01 * likely.mean()


def test_terms_that_nobody_knows_are_refused(machine: Profile) -> None:
    signature = known(machine, residuals={"residual.phase": 1.0})
    with pytest.raises(UsageError, match=r"there is no term 'residual\.phase'"):
        made(signature, machine)
