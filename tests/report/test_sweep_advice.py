"""Sentences of a sweep that no bundled default gives."""

from __future__ import annotations

from typing import Any

import pytest

from popmodel.report.sweep_advice import growth


def grown(speedup: float, low: float | None = None, high: float | None = None) -> dict[str, Any]:
    """64 and 128 cores, the larger number so many times as fast."""
    return {
        "cores": [64, 128],
        "speedup": {"value": speedup, "low": low, "high": high},
        "efficiency": speedup / 2,
        "parallel_efficiency": [0.861, 0.829],
    }


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (
            grown(1.6, 1.5, 1.7),
            "128 cores are 1.60 times as fast as 64 (90 %: 1.50 .. 1.70) at 80 % of the efficiency"
            ": 25 % more core time per run (PE 86.1 -> 82.9 %)",
        ),
        (
            grown(2.5),
            "128 cores are 2.50 times as fast as 64 at 125 % of the efficiency: 20 % less core "
            "time per run (PE 86.1 -> 82.9 %)",
        ),
        (grown(1.01), "128 cores are 1.01 times as fast as 64: not worth it, use 64"),
        (grown(0.5), "128 cores are 0.50 times as fast as 64: not worth it, use 64"),
    ],
)
def test_whether_more_cores_are_worth_it(one: dict[str, Any], text: str) -> None:
    assert growth(one) == text
