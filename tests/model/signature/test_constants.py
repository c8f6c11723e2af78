"""Numbers that were measured or fitted, and those that are known to be unknown."""

import numpy as np
import pytest

from popmodel.base.errors import UsageError
from popmodel.machines.profile import load
from popmodel.model import signatures
from popmodel.model.signature_check import check
from popmodel.prediction.prediction import predict

HEAD = 'schema = "popmodel/signature/1"\n[app]\nname = "demo"\n'
BODY = """[[program]]
loop = { count = 50 }
[[program.body]]
serial = { name = "work", trip = "N / P", seconds = "c0" }
[[program.body]]
collective = { op = "allreduce", bytes = "8 * c1" }
"""
CONSTANTS = """[params]
N = 1e6
[constants]
c0 = { value = 1e-9, low = 0.5e-9, high = 2e-9, origin = "fit", source = "3 traces", unit = "s" }
c1 = { value = 0, origin = "assumed" }
"""


@pytest.fixture(scope="module")
def machine():
    return load("sandybridge-fdr")


def demo(constants=CONSTANTS, body=BODY):
    return signatures.from_text(HEAD + constants + body)


def test_constants_are_read_with_their_origin_and_are_no_parameters():
    read = demo()
    assert list(read.params) == ["N"]
    assert read.constants["c0"].origin == "fit"
    assert read.constants["c0"].high == 2e-9
    assert read.constants["c1"].value == 0
    assert read.constants["c1"].origin == "assumed"


def test_a_constant_can_be_set_and_is_then_among_the_settings(machine):
    found = predict(demo(), machine, 4, 1, {"c0": 4e-9}, draws=0, seed=1)
    other = predict(demo(), machine, 4, 1, {}, draws=0, seed=1)
    assert found.settings == {"N": 1e6, "c0": 4e-9}
    assert other.settings == {"N": 1e6}
    work = 50 * 1e6 / 4 * 1e-9
    assert found.runtime.value - other.runtime.value == pytest.approx(3 * work, rel=1e-9)
    assert demo().with_settings({"c1": 0}).constants["c1"].value == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"c0": -1}, "constant c0 must be a number of at least 0, not -1"),
        ({"c0": np.inf}, "constant c0 must be a number of at least 0, not inf"),
        ({"N": 0}, "parameter N must be a number above 0, not 0"),
        ({"k": 1}, "demo has no parameter 'k'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(UsageError) as caught:
        demo().with_settings(settings)
    assert caught.value.message == message


UNKNOWN = """[params]
N = "?"
[constants]
c0 = { value = "?", unit = "s" }
c1 = 2
[limits]
require = ["N >= P"]
[imbalance]
persistent_cv = "?"
"""
OPEN_BODY = BODY.replace('"8 * c1"', '"?"') + (
    '[[program]]\nserial = { name = "edge", trip = "c1", flops = 3, bytes = { MEM = "?" } }\n'
)


def test_what_is_unknown_is_read_and_listed_with_its_line(tmp_path):
    path = tmp_path / "open.toml"
    path.write_text(HEAD + UNKNOWN + OPEN_BODY)
    checked = check(path)
    assert checked.mistakes == ()
    assert [(one.line, one.message) for one in checked.remarks] == [
        (5, 'params.N is unknown ("?")'),
        (7, 'constants.c0 is unknown ("?")'),
        (12, 'imbalance.persistent_cv is unknown ("?")'),
        (18, 'collective.bytes is unknown ("?")'),
        (20, 'serial.bytes.MEM is unknown ("?")'),
    ]
    assert checked.explained["constants"][0] == {
        "name": "c0",
        "value": None,
        "origin": "user",
        "unit": "s",
    }
    assert checked.explained["program"][1]["bytes"]["MEM"]["value"] is None


def test_a_prediction_names_all_that_is_unknown_in_one_line(machine):
    unknown = demo(UNKNOWN, OPEN_BODY)
    with pytest.raises(UsageError) as caught:
        predict(unknown, machine, 4, 1, {}, draws=0, seed=1)
    assert caught.value.message == (
        "demo has unknown values: params.N (line 5), constants.c0 (line 7), "
        "imbalance.persistent_cv (line 12), collective.bytes (line 18), serial.bytes.MEM (line 20)"
    )
    assert caught.value.hint.endswith("or set some: --set N=VALUE")


def test_what_is_set_is_known():
    known = demo(UNKNOWN).with_settings({"N": 64, "c0": 1e-9}).with_imbalance({"persistent": 0})
    known.require_known()
    with pytest.raises(UsageError) as caught:
        demo(UNKNOWN).with_settings({"N": 64}).require_known()
    assert "params.N" not in caught.value.message
