"""Quantities: what is accepted, and the words of what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from popmodel.machines.quantity import Quantity, read_quantity


def test_reads_everything() -> None:
    entry = {
        "value": 2,
        "low": 1,
        "high": 4.5,
        "unit": "s",
        "origin": "measured",
        "n": 7,
        "samples": "a.csv",
        "source": "bench",
    }
    quantity = read_quantity(entry, "s")
    assert quantity == Quantity(2.0, 1.0, 4.5, "measured", 7, "a.csv", "bench")
    assert quantity.is_uncertain
    again = read_quantity(quantity.to_dict(), "s")
    assert again == quantity


def test_without_interval_it_is_exact() -> None:
    assert not read_quantity({"value": 1.0}, "s").is_uncertain
    assert not read_quantity({"value": 1.0, "low": 1.0, "high": 1.0}, "s").is_uncertain


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (3.0, "must be a table with value, low, high, origin and source, not 3.0"),
        ({"value": 1, "hi": 2}, "hi is not a known key"),
        ({"value": 1, "unit": "us"}, "must be in s, not 'us'"),
        ({"low": 1, "high": 2}, "value is missing"),
        ({"value": "5us"}, "value must be a number above 0, not '5us'"),
        ({"value": True}, "value must be a number above 0, not True"),
        ({"value": float("nan")}, "value must be finite, not nan"),
        ({"value": 10**400}, r"value must be at most 1e\+30 in magnitude, not 1000"),
        ({"value": 0}, "value must be a number above 0, not 0"),
        ({"value": 1, "low": -1, "high": 2}, "low must be a number above 0, not -1"),
        ({"value": 1, "low": 0.5}, "must have both low and high, or neither"),
        ({"value": 3, "low": 1, "high": 2}, "value 3 must be between low 1 and high 2"),
        ({"value": 1, "origin": "guess"}, "origin must be one of measured, preset, user"),
        ({"value": 1, "n": 1.5}, "n must be a whole number, not 1.5"),
        ({"value": 1, "source": 3}, "source must be text, not 3"),
    ],
)
def test_refused(entry: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_quantity(entry, "s")


def test_zero_where_it_makes_sense() -> None:
    assert read_quantity({"value": 0}, "s", zero=True).value == 0
    with pytest.raises(ValueError, match="value must be a number, at least 0, not -1"):
        read_quantity({"value": -1}, "s", zero=True)
