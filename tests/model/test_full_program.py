"""A signature carried out as a whole, to be replayed on any network."""

import numpy as np
import pytest
from model.demo import machine, program, whole

from popmodel.base.errors import UsageError
from popmodel.efficiency.observables import evaluate_replay as evaluate
from popmodel.efficiency.observables import of_execution
from popmodel.model import replayed_run
from popmodel.network.network import PRESETS
from popmodel.prediction.prediction import predict
from popmodel.simulator import replay

STEPS = """
[[program]]
loop = { count = 7 }
[[program.body]]
parallel = { name = "loop", trip = 64, inner = 1e5, flops = 2 }
[[program.body]]
serial = { name = "edge", trip = 1, seconds = 1e-4, by_rank = [1, 2, 1, 0] }
[[program.body]]
p2p = { to = "rank + 1", bytes = 1000 }
[[program.body]]
collective = { op = "allreduce", bytes = 8, every = 2 }
"""


def test_every_step_is_carried_out() -> None:
    made = whole(program(STEPS), machine(), 4, 1).program
    assert len(made.messages) == 7 * 3
    assert len(made.collectives) == 3
    assert set(made.messages.size.tolist()) == {1000}


def test_it_computes_what_is_predicted_of_every_process() -> None:
    made = whole(program(STEPS), machine(), 4, 1).program
    found = predict(program(STEPS), machine(), 4, 1, draws=0)
    assert found.agreement is not None
    times = made.compute() / 1e9
    assert times - times.mean() == pytest.approx(7e-4 * np.array([0, 1, 0, -1]))
    assert times.max() == pytest.approx(found.agreement.replay.computing, rel=0.01)


@pytest.mark.parametrize("threads", [1, 2])
def test_its_efficiencies_on_the_ideal_network_are_those_of_the_prediction(threads: int) -> None:
    made = whole(program(STEPS), machine(), 4, threads)
    ideal = replay(made.program, PRESETS["ideal"])
    values = evaluate(of_execution(made.observed, ideal, ideal), {})["hybrid-additive"].values
    found = predict(program(STEPS), machine(), 4, threads, draws=0)
    expected = found.metrics["hybrid-additive"]
    scale = found.runtime.value / ideal.runtime  # the prediction has transfers
    for name in ("process_load_balance", "openmp_region_efficiency", "serial_region_efficiency"):
        assert 1 - values[name] == pytest.approx(
            (1 - expected[name].value) * scale, rel=0.02, abs=1e-9
        ), name


def test_a_program_without_messages_is_computation_alone() -> None:
    alone = program("[[program]]\nserial = { trip = 1, seconds = 2e-3 }\n")
    made = whole(alone, machine(), 3, 1).program
    assert made.operations == 0
    assert made.tail == pytest.approx([2e6] * 3)


APART = """
[[program]]
loop = { count = 6 }
[[program.body]]
serial = { name = "a", trip = 1, seconds = 1e-3, quantiles = [0, 0, 3] }
[[program.body]]
serial = { name = "c", trip = 1, seconds = 1e-3, every = 2, by_rank = [1, 0, 0, 0] }
[[program]]
parallel = { name = "b", trip = "T", seconds = 1e-3, overhead = 2e-3, by_rank = [1, 2, 1, 0] }
[[program]]
collective = { op = "barrier" }
"""


def test_executions_between_messages_draw_a_factor_each_and_overhead_goes_with_the_work() -> None:
    """Six of three values are all of them twice; what was measured as overhead is as unequal."""
    made = whole(program(APART), machine(), 4, 1).program
    assert made.compute() / 1e9 == pytest.approx(
        6e-3 + 3e-3 * np.array([1, 2, 1, 0]) + 3e-3 * np.array([4, 0, 0, 0])
    )


def test_chance_depends_on_the_seed_alone() -> None:
    varied = program(STEPS, imbalance="transient_cv = 0.1")
    one, same, other = (
        whole(varied, machine(), 4, 1, seed=seed).program.burst for seed in (1, 1, 2)
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_what_is_hidden_in_predictions_is_noted() -> None:
    assert whole(program(STEPS), machine(), 4, 1).program.notes == ()
    text = (
        "[decomp]\nglobal = [8, 8]\n[[program]]\n"
        'halo = { name = "faces", width = 1, bytes_per_cell = 8, overlap = 0.5 }\n'
    )
    assert whole(program(text), machine(), 4, 1).program.notes == (
        "the transfers of 'faces' that predictions hide behind computation are not hidden here",
    )


def test_a_part_of_an_iteration_is_refused() -> None:
    half = program(STEPS.replace("count = 7", "count = 7.5"))
    with pytest.raises(UsageError) as caught:
        whole(half, machine(), 4, 1)
    assert caught.value.message == (
        "demo at P=4 T=1 cannot be replayed as a whole: the count of loop is 7.5, not a whole "
        "number"
    )


def test_too_many_operations_are_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replayed_run, "MOST_WHOLE", 50)
    with pytest.raises(UsageError) as caught:
        whole(program(STEPS), machine(), 4, 1)
    assert caught.value.message == (
        "demo at P=4 T=1 cannot be replayed as a whole: 56 operations of all processes, more than "
        "the 50 that are carried out as a whole"
    )
