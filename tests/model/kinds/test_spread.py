"""Items whose work differs between processes by a spread of their own."""

import pytest
from model.demo import machine, program

from popmodel.base.errors import UsageError
from popmodel.model.predictor import Study
from popmodel.model.signature.application import Signature
from popmodel.model.symbols import factors_of
from popmodel.model.terms.imbalance import expected_maximum
from popmodel.prediction.prediction import PredictedRun, predict

HALVES = """
[[program]]
loop = {{ count = 100 }}
[[program.body]]
parallel = {{ name = "uneven", trip = 64, inner = 1000, flops = 2{} }}
[[program.body]]
parallel = {{ name = "even", trip = 64, inner = 1000, flops = 2 }}
[[program.body]]
collective = {{ op = "barrier" }}
"""


def halves(own: str, **sections: str) -> Signature:
    return program(HALVES.format(own), **sections)


def balance(signature: Signature, processes: int = 16) -> float:
    return of_metric(predict(signature, machine(), processes, 1, draws=0), "process_load_balance")


def of_metric(found: PredictedRun, metric: str) -> float:
    return found.metrics["hybrid-additive"][metric].value


def test_a_region_that_is_half_the_work_counts_half() -> None:
    own = halves(", persistent_cv = 0.1")
    everywhere = halves("", imbalance="persistent_cv = 0.05")
    assert balance(own) == pytest.approx(balance(everywhere), rel=1e-3)
    assert balance(own) < balance(halves("")) == 1.0


def test_it_stands_in_place_of_that_of_the_program() -> None:
    common = {"imbalance": "persistent_cv = 0.1"}
    assert balance(halves(", persistent_cv = 0", **common)) == pytest.approx(
        balance(halves("", imbalance="persistent_cv = 0.05")), rel=1e-3
    )
    # the other kind of spread stays that of the program
    assert balance(halves(", transient_cv = 0", **common)) == balance(halves("", **common))


def test_what_if_changes_it_as_well() -> None:
    def unequal(**what_if: float) -> float:
        study = Study(halves(", persistent_cv = 0.1"), machine(), {}, 0, 0, factors_of(what_if))
        run = study.run(study.admit(16, 1), study.sources())
        computing = float(run.work.share)
        return float(run.course.computing) / computing - 1

    assert unequal() == pytest.approx(0.05 * expected_maximum(16))
    assert unequal(imbalance=0.5) == pytest.approx(0.5 * unequal())
    found = predict(halves(", persistent_cv = 0.1"), machine(), 16, 1, draws=0)
    assert "half the imbalance" in found.remedies
    assert any(one.label == "persistent imbalance" for one in found.elasticities)


def test_replay_and_closed_form_agree_where_all_wait_in_every_step() -> None:
    for own in (", persistent_cv = 0.1", ", transient_cv = 0.1"):
        study = Study(halves(own), machine(), {}, 0, 0)
        agreement = study.replay(study.admit(16, 1))
        assert agreement.gap == pytest.approx(0.0, abs=0.002)
        assert agreement.replay.ideal == pytest.approx(agreement.closed_form.ideal, rel=0.002)


def test_threads_that_share_a_serial_loop_leave_its_spread() -> None:
    text = HALVES.format("").replace(
        'parallel = { name = "even", trip = 64, inner = 1000, flops = 2 }',
        'serial = { name = "alone", trip = 64000, flops = 2, persistent_cv = 0.2 }',
    )
    found = predict(program(text), machine(), 4, 4, draws=0)
    assert "parallelise alone" in found.remedies
    assert of_metric(found, "process_load_balance") < 1


def test_a_run_that_is_too_large_is_one_error_and_no_warning() -> None:
    one = program(
        HALVES.format(", persistent_cv = 0.1").replace("count = 100", "count = 'N'"),
        params="N = 100",
    )
    with pytest.raises(UsageError, match="too large"):
        predict(one, machine(), 16, 1, {"N": 1e305}, draws=0)
