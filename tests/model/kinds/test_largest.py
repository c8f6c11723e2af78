"""Work of which one part cannot be divided: whoever has it works as long with more processes."""

import numpy as np
import pytest
from model.demo import machine, program, whole

from popmodel.model.signature.application import Signature
from popmodel.prediction.prediction import PredictedRun, predict

STEPS = """
[[program]]
loop = {{ count = 20 }}
[[program.body]]
serial = {{ trip = 1, seconds = 1e-3{} }}
[[program.body]]
collective = {{ op = "barrier" }}
"""


def steps(imbalance: str, own: str = "") -> Signature:
    return program(STEPS.format(own), imbalance=imbalance)


def predicted(signature: Signature, processes: int, draws: int = 0) -> PredictedRun:
    return predict(signature, machine(), processes, 1, draws=draws)


def balance(signature: Signature, processes: int) -> float:
    return predicted(signature, processes).metrics["hybrid-additive"]["process_load_balance"].value


@pytest.mark.parametrize(("processes", "expected"), [(1, 1), (4, 1), (8, 1 / 2), (32, 1 / 8)])
def test_it_bounds_load_balance_once_it_is_more_than_a_share(
    processes: int, expected: float
) -> None:
    assert balance(steps("largest = 0.25"), processes) == pytest.approx(expected, abs=1e-3)


def test_the_larger_of_it_and_the_spread_counts() -> None:
    spread = "persistent_cv = 0.1\n"
    assert balance(steps(f"{spread}largest = 0.125"), 8) == balance(steps(spread), 8)
    assert balance(steps(f"{spread}largest = 0.5"), 8) == pytest.approx(1 / 4, abs=1e-3)


@pytest.mark.parametrize("own", ["", ", persistent_cv = 0.05", ", quantiles = [0.9, 1.1]"])
def test_a_replay_gives_it_to_one_process_and_the_rest_to_the_others(own: str) -> None:
    done = whole(steps("largest = 0.25", own), machine(), 8, 1)
    computing = np.sort(done.program.compute())
    assert computing[-1] == pytest.approx(2 * computing.mean(), rel=0.02)
    assert computing.mean() == pytest.approx(20e6, rel=0.02)
    assert computing[-2] < 1.1 * computing[:-1].mean()


def test_where_it_is_not_known_the_interval_has_it() -> None:
    found = predicted(steps("largest = { value = 0, low = 0, high = 0.25 }"), 16, draws=400)
    assert found.runtime.value == pytest.approx(predicted(steps(""), 16).runtime.value)
    assert found.runtime.high == pytest.approx(4 * 20e-3, rel=0.1)
