"""Quantities of the machine in formulas of a program."""

import copy

import numpy as np
import pytest
from model.demo import exact, machine, program

from popmodel.machines.profile import MissingQuantity, Profile, from_document
from popmodel.model.predictor import Study
from popmodel.model.signature.keys import NAMED, known_names, of_machine, parameter_of
from popmodel.prediction.prediction import predict

SERIAL = "[[program]]\nserial = {{ trip = 'N', seconds = '{}' }}\n"


def with_line(size: int = 64) -> Profile:
    """The round machine, whose cache lines are known and whose L3 is uncertain."""
    document = copy.deepcopy(dict(machine().document))
    document["memory"]["line"] = size
    document["memory"]["cache_bw"]["L3"] = {"value": 4e10, "low": 2e10, "high": 8e10}
    document["core"]["freq"] = {"1": exact(3e9), "8": exact(2e9)}
    return from_document(document)


def seconds(formula: str, processes: int = 1, threads: int = 1) -> float:
    found = predict(
        program(SERIAL.format(formula), params="N = 1000"),
        with_line(),
        processes,
        threads,
        draws=0,
    )
    return found.runtime.value / 1000


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("machine.memory.line/machine.memory.b1", 64 / 1e10),
        ("64/machine.memory.cache_bw.L3", 64 / 4e10),
        ("8*machine.net.inter.eager_threshold/machine.memory.bsat", 8 * 16384 / 2e10),
        ("1/(machine.core.flop_per_cycle*machine.core.freq)", 1 / (2 * 3e9)),
    ],
)
def test_a_name_has_the_value_of_the_profile(formula: str, value: float) -> None:
    assert seconds(formula) == pytest.approx(value, rel=1e-12)


def test_the_clock_is_that_of_the_active_cores_of_the_run() -> None:
    assert seconds("1/machine.core.freq") == pytest.approx(1 / 3e9)
    assert seconds("1/machine.core.freq", 8) == pytest.approx(1 / 2e9)
    assert seconds("1/machine.core.freq", 2, 4) == pytest.approx(1 / 2e9)


def test_formulas_are_evaluated_in_every_draw_and_their_inputs_listed() -> None:
    text = SERIAL.format("machine.memory.line/machine.memory.cache_bw.L3")
    demo = program(text, params="N = 1000")
    study = Study(demo, with_line(), {}, draws=50, seed=1)
    drawn = study.sources()
    run = study.run(study.admit(1, 1), drawn)
    runtime = run.modelled.runtime / run.form.factor("law.loops")
    np.testing.assert_allclose(runtime, 1000 * 64 / drawn["memory.cache_bw.L3"], rtol=1e-12)
    found = predict(demo, with_line(), 1, 1)
    assert found.runtime.low is not None
    assert found.runtime.low < 1.7e-6 < 3e-6 < (found.runtime.high or 0.0)
    assert found.inputs["memory.line"].value == 64
    assert "memory.cache_bw.L3" in found.inputs
    assert found.elasticities[0].label in ("N", "cache bandwidth")


def test_a_quantity_that_the_profile_lacks_is_told_with_what_needs_it() -> None:
    demo = program(SERIAL.format("machine.memory.latency.L2"), params="N = 9")
    with pytest.raises(MissingQuantity, match=r"no value for memory.latency.L2 \(needed by 'seria"):
        predict(demo, machine(), 1, 1)
    large = program(
        SERIAL.format("1e-9"), params="N = 9", limits="memory_per_rank = 'N*machine.memory.line'"
    )
    assert predict(large, machine(), 1, 1, draws=0).memory_per_process == 9 * 64  # assumed
    assert predict(large, with_line(), 1, 1, draws=0).memory_per_process == 9 * 64


def test_names_are_those_of_single_numbers() -> None:
    assert parameter_of("machine.net.inter.eager_threshold") is not None
    for name in ("machine.net.far.eager_threshold", "machine.core.freq.1", "machine.openmp"):
        assert parameter_of(name) is None
    assert not any("[]" in path or "CORES" in path for path in NAMED)
    assert "machine.memory.cache_bw.LEVEL" in known_names()
    assert of_machine(frozenset({"P", "machine.core.freq", "machinery"})) == ("machine.core.freq",)


def test_a_loop_that_depends_on_the_machine_can_be_checked() -> None:
    text = (
        "[[program]]\nloop = { count = 'machine.core.loop_cycles' }\n"
        "[[program.body]]\nserial = { trip = 'N', every = 3 }\n"
    )
    demo = program(text, params="N = 10")
    assert predict(demo, machine(core__loop_cycles=6.0), 1, 1, draws=0).runtime.value > 0
