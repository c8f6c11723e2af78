"""A calibrated signature as a file: comments stay, and predictions from it are the same."""

import tomllib
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from popmodel.fit.calibrate import Learnt, text_of
from popmodel.fit.samples import Interval
from popmodel.machines.profile import Profile, load
from popmodel.machines.quantity import Quantity
from popmodel.model import signatures
from popmodel.model.model_error import beyond_runs
from popmodel.model.uncertainty import Calibration, Drift, root_of
from popmodel.prediction.prediction import predict

DAY = date(2026, 11, 23)
TEXT = """# A program of four loops.
schema = "popmodel/signature/1"
[app]
name = "demo"

[params]
N = 1e6  # cells

[constants]
rate = { value = 2e-9, low = 1e-9, high = 3e-9, unit = "s", n = 3 } # per cell
plain = 4  # nobody fits it

[constants.traffic]  # by the compiler's report
value = 8
low = 6
high = 12

[imbalance]
transient_cv = { value = 0.02, low = 0.01, high = 0.03 }

[[program]]
loop = { count = 50 }  # steps
[[program.body]]
parallel = { name = "work", trip = "N / P", seconds = "rate*plain", bytes.MEM = 0 }
[[program.body]]
collective = { op = "allreduce", bytes = "8 * traffic" }
"""
TEXT = TEXT.replace(", bytes.MEM = 0", "")
NAMES = ("constants.rate", "constants.traffic", "imbalance.transient_cv", "law.loops",
         "law.loops of 1 x 1", "law.messages", "law.waiting", "residual.processes",
         "residual.active[+1]")  # fmt: skip


@pytest.fixture(scope="module")
def machine() -> Profile:
    return load("sandybridge-fdr")


def calibrated(seed: int, digest: str = "") -> tuple[signatures.Signature, tuple[Learnt, ...]]:
    """A signature with a calibration that nobody measured."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(len(NAMES), len(NAMES) + 2)) / 3
    before = signatures.from_text(TEXT)
    covariance = half @ half.T
    scale = np.sqrt(np.diag(covariance))
    scale[3:] = 1.0
    rate, traffic, spread = (float(one) for one in np.exp(rng.normal(size=3) / 4))
    root = root_of(covariance / np.outer(scale, scale))
    known = Calibration(
        *("cluster", digest or "0123", NAMES),
        np.concatenate([np.zeros(3), rng.normal(size=len(NAMES) - 3)]),
        *(root, 0.56, 0.031234567891),
        {"residual.processes": 1.23456789e-6},
        {"active": Drift(0.05, 0.0)},
        {"P": (1.0, 4.0), "T": (1.0, 2.0), "nodes": (1.0, 1.0), "N": (1e6, 1e6)},
        {"aa11": "runs.csv:2", "00112233": 'a "quoted" file.prv'},
    )

    def fitted(old: Quantity, factor: float) -> Quantity:
        value = old.value * factor
        return replace(old, value=value, low=value * 0.8, high=value * 1.3, origin="fit")

    after = replace(
        before,
        constants={
            **before.constants,
            "rate": fitted(before.constants["rate"], rate),
            "traffic": fitted(before.constants["traffic"], traffic),
        },
        imbalance={"transient_cv": fitted(before.imbalance["transient_cv"], spread)},
        calibration=known,
    )

    def learnt(name: str) -> Learnt:
        table, _, key = name.partition(".")
        of_program = table in ("constants", "imbalance")
        one = getattr(after, table)[key].value if of_program else 1.0
        value = Interval(one, one, one)
        return Learnt(name, name, "program" if of_program else "law", "", value, value)

    return after, tuple(map(learnt, NAMES))


def written(seed: int = 0, digest: str = "") -> str:
    after, values = calibrated(seed, digest)
    return text_of(TEXT, signatures.from_text(TEXT), after, values, DAY)


@pytest.mark.long
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=5)
def test_predictions_from_the_file_are_those_of_the_calibration(seed: int) -> None:
    profile = load("sandybridge-fdr")
    after, _ = calibrated(seed, profile.digest)
    back = signatures.from_text(written(seed, profile.digest))
    assert back.calibration is not None
    assert back.calibration.changed == ()
    for processes, threads in ((1, 1), (4, 2)):
        there, here = (predict(one, profile, processes, threads, draws=40) for one in (after, back))
        for name in ("value", "low", "high"):
            expected = getattr(there.runtime, name)
            assert getattr(here.runtime, name) == pytest.approx(expected, rel=1e-6)


def test_the_runs_of_a_calibration_lie_within_its_range() -> None:
    after, values = calibrated(0)
    size = 0.0014949200735290108  # more digits than are written of what is learnt
    assert after.calibration is not None
    known = replace(after.calibration, hull={"N": (size, size)})
    text = text_of(TEXT, signatures.from_text(TEXT), replace(after, calibration=known), values, DAY)
    back = signatures.from_text(text).calibration
    assert back is not None
    assert not any(one.is_beyond for one in beyond_runs(back.hull, {"N": size}))


def test_comments_and_what_was_not_learnt_stay() -> None:
    text = written()
    kept = [line for line in TEXT.splitlines() if not line.startswith(("rate", "transient_cv"))]
    kept = [line for line in kept if not line.startswith(("value", "low", "high"))]
    lines = text.splitlines()
    assert [line for line in kept if line not in lines] == []
    (rate,) = [line for line in lines if line.startswith("rate = ")]
    assert rate.endswith("} # per cell")
    assert "# cells" in text


def test_what_was_learnt_says_where_it_comes_from() -> None:
    constants = tomllib.loads(written())["constants"]
    for name in ("rate", "traffic"):
        assert constants[name]["origin"] == "fit"
        assert constants[name]["source"] == "fit to 2 runs of 2026-11-23"
    assert constants["rate"]["unit"] == "s"
    assert "n" not in constants["rate"]
    assert constants["plain"] == 4


def test_a_calibration_replaces_the_one_before() -> None:
    after, values = calibrated(1)
    first = written(0)
    again = text_of(first, signatures.from_text(first), after, values, DAY)
    assert again.count("[calibration]") == 1
    back = signatures.from_text(again).calibration
    assert back is not None
    assert after.calibration is not None
    assert back.means == pytest.approx(after.calibration.means)


def test_a_constant_that_was_set_is_written_as_set() -> None:
    after, values = calibrated(0)
    changed = {**after.constants, "plain": Quantity(5.0, origin="user")}
    after = replace(after, constants=changed)
    text = text_of(TEXT, signatures.from_text(TEXT), after, values, DAY)
    plain = tomllib.loads(text)["constants"]["plain"]
    assert plain == {"value": 5, "origin": "user", "source": "set when it was calibrated"}


def test_names_of_runs_are_kept_whatever_is_in_them(machine: Profile) -> None:
    known = signatures.from_text(written()).calibration
    assert known is not None
    assert known.runs["00112233"] == 'a "quoted" file.prv'
    assert machine.digest != known.machine_digest
