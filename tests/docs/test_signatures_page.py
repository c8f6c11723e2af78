"""The worked example of the page on signatures: its file, and its arithmetic."""

from __future__ import annotations

import re

import pytest
from console import ROOT

from popmodel import load_machine, predict

PAGE = (ROOT / "popmodel" / "docs" / "signatures.md").read_text()
EXAMPLE = ROOT / "examples" / "axpy" / "axpy.toml"
(ARITHMETIC,) = re.findall(r"```arithmetic\n(.*?)```", PAGE, re.DOTALL)
LINES = [line.partition(" = ") for line in ARITHMETIC.splitlines()]


def test_the_page_shows_the_file_of_the_example() -> None:
    assert f"```toml\n{EXAMPLE.read_text()}```" in PAGE


@pytest.mark.parametrize(("left", "right"), [(left, right) for left, _, right in LINES])
def test_the_arithmetic_is_right(left: str, right: str) -> None:
    assert re.fullmatch(r"[\d.e+*/() -]+", left)
    assert eval(left) == pytest.approx(float(right.split()[0]), rel=1e-3)


def test_the_sum_by_hand_is_the_prediction() -> None:
    predicted = predict(str(EXAMPLE), procs=4, threads=4)
    assert float(LINES[-1][2].split()[0]) == pytest.approx(predicted.runtime.value, rel=1e-3)


def test_rates_of_the_arithmetic_are_those_of_the_machine() -> None:
    machine = load_machine("sandybridge-fdr")
    for path, shown in (
        ("core.flop_per_cycle", "8"),
        ("core.load_per_cycle", "3.89"),
        ("core.store_per_cycle", "1.93"),
        ("net.reduce_gamma", "190e-12"),
        ("core.overlap", "0.7"),
    ):
        assert machine.get(path).value == pytest.approx(float(shown))
        assert shown in ARITHMETIC
