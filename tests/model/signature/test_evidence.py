"""The table of a signature in which popmodel signature from writes what runs have taught."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.model import signatures
from popmodel.model.signature.reading import SignatureError
from popmodel.model.uncertainty import Drift, packed, root_of, unpacked

ROOT = np.array([[1.0, 0.0, 0.0], [-0.6, 0.8, 0.0], [0.0, 0.0, 1.0]])
TEXT = f"""schema = "popmodel/signature/1"
[app]
name = "demo"
[constants]
rate = {{ value = 2e-9, low = 1e-9, high = 3e-9 }}
[[program]]
serial = {{ trip = 1, seconds = "rate" }}
[calibration]
machine = "cluster"
machine_digest = "abcdef"
own = 0.5
noise = 0.02
hull = {{ P = [1, 4] }}
terms = {{ "residual.processes" = 1e-6 }}
drifts = {{ size = {{ deviation = 0.05, origin = -1.5 }} }}
tied = "{packed(ROOT)}"
[calibration.runs]
a1 = "runs.csv:2"
[calibration.scores]
"constants.rate" = {{ mean = 0, deviation = 1, value = 2e-9 }}
"law.loops" = {{ mean = 1.5, deviation = 0.5 }}
"residual.processes" = {{ mean = 1, deviation = 0.25 }}
"""


def test_a_calibration_is_read() -> None:
    known = signatures.from_text(TEXT).calibration
    assert known is not None
    assert known.names == ("constants.rate", "law.loops", "residual.processes")
    assert known.means.tolist() == [0, 1.5, 1]
    assert known.deviations == pytest.approx([1, 0.5, 0.25])
    assert known.covariance[0, 1] == pytest.approx(-0.6 * 0.5)
    assert known.hull == {"P": (1, 4)}
    assert known.runs == {"a1": "runs.csv:2"}
    assert known.drifts == {"size": Drift(0.05, -1.5)}
    assert known.residuals == {"residual.processes": 1e-6}
    assert (known.machine, known.machine_digest, known.own, known.noise, known.changed) == (
        *("cluster", "abcdef", 0.5, 0.02),
        (),
    )


@pytest.mark.parametrize("now", ["{ value = 2.5e-9, low = 1e-9, high = 3e-9 }", "2e-9"])
def test_what_is_tied_to_a_number_that_was_changed_by_hand_is_forgotten(now: str) -> None:
    text = TEXT.replace("{ value = 2e-9, low = 1e-9, high = 3e-9 }", now)
    known = signatures.from_text(text).calibration
    assert known is not None
    assert known.changed == ("constants.rate",)
    assert known.names == ("law.loops", "residual.processes")
    assert known.deviations == pytest.approx([0.5, 0.25])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('machine = "cluster"\n', "", "machine is missing in calibration"),
        ("own = 0.5", "own = 0", "own must be a number above 0, not 0"),
        ("noise = 0.02", "noise = -1", "noise must be a number, at least 0, not -1"),
        ("noise = 0.02", "noises = 0.02", "unknown key 'noises' in calibration"),
        ("P = [1, 4]", "P = [4, 1]", r"hull.P must be \[smallest, largest\], not \[4, 1\]"),
        ("P = [1, 4]", "P = 4", "hull.P must be a list of 2 entries, not 4"),
        ('a1 = "runs.csv:2"', "a1 = 2", "a1 must be text, not 2"),
        ("mean = 1.5", "mean = nan", "mean must be finite, not nan"),
        ("mean = 1.5, ", "", "scores.law.loops.mean is missing"),
        ("deviation = 0.5", "deviation = 0", "deviation must be a number above 0, not 0"),
        (
            "deviation = 0.5",
            "spread = 1, deviation = 0.5",
            "law.loops.spread is not a known key",
        ),
        (", value = 2e-9 }\n", " }\n", "scores.constants.rate.value is missing"),
        ('"constants.rate" =', '"constants.r" =', "constants.r is calibrated, but"),
        ("1e-6 }", "-1 }", "residual.processes must be a number above 0, not -1"),
        ('terms = { "residual.processes" = 1e-6 }\n', "", "is not among terms and drifts"),
        ("deviation = 0.05, ", "", "drifts.size.deviation is missing"),
        ("origin = -1.5", "origin = 'here'", "origin must be a number, not 'here'"),
        ('"residual.processes" = { mean', '"residual.active[+1]" = { mean', "terms and drifts"),
        (f'"{packed(ROOT)}"', '"3"', "tied must begin with the number of scores"),
        (f'"{packed(ROOT)}"', '"3:abc"', "tied is damaged: it cannot be unpacked"),
        (f'"{packed(ROOT)}"', f'"4{packed(ROOT)[1:]}"', "not the correlations of 4 scores"),
        (f'"{packed(ROOT)}"', f'"{packed(ROOT[:2, :2])}"', "tied is of 2 scores, the file has 3"),
    ],
)
def test_a_damaged_table_is_told_with_its_line(old: str, new: str, words: str) -> None:
    assert old in TEXT
    with pytest.raises(SignatureError, match=words) as caught:
        signatures.from_text(TEXT.replace(old, new), "demo.toml")
    assert re.match(r"demo\.toml:\d+: ", caught.value.message)
    assert "\n" not in caught.value.message


def test_a_table_that_is_none_is_refused() -> None:
    text = TEXT[: TEXT.index("[calibration]")]
    with pytest.raises(SignatureError, match="calibration must be a table"):
        signatures.from_text(f"calibration = 3\n{text}")


@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_correlations_are_read_back_as_they_were_written(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(size, size + 1))
    covariance = half @ half.T
    deviations = np.sqrt(np.diag(covariance))
    back = unpacked(packed(root_of(covariance))) * deviations[:, None]
    assert back @ back.T == pytest.approx(covariance, rel=1e-6, abs=1e-6 * covariance.max())
