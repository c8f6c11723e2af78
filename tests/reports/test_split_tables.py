"""Sentences of a sweep that no bundled default gives."""

from typing import Any

import popmodel
from popmodel.reports.split_tables import advice, growth


def grown(speedup: float, low: float | None = None, high: float | None = None) -> dict[str, Any]:
    """64 and 128 cores, the larger number so many times as fast."""
    return {
        "cores": [64, 128],
        "speedup": {"value": speedup, "low": low, "high": high},
        "efficiency": speedup / 2,
        "parallel_efficiency": [0.861, 0.829],
    }


def test_whether_more_cores_are_worth_it() -> None:
    for one, text in (
        (
            grown(1.6, 1.5, 1.7),
            "1.60 times as fast as 64 (90 %: 1.50 .. 1.70) at 80 % of the efficiency: 25 % more "
            "core time per run (PE 86.1 -> 82.9 %)",
        ),
        (
            grown(2.5),
            "2.50 times as fast as 64 at 125 % of the efficiency: 20 % less core time per run "
            "(PE 86.1 -> 82.9 %)",
        ),
        (grown(1.01), "1.01 times as fast as 64: not worth it, use 64"),
    ):
        assert growth(one) == f"128 cores are {text}"


def splits(status: str) -> dict[str, Any]:
    """Two splits of four cores; one may be beyond what was measured."""

    def one(processes: int, best: float, status: str) -> dict[str, Any]:
        sure = {"probability_best": best, "probability_tied": best, "regret": 0.01}
        split = {"processes": processes, "threads": 4 // processes, "cores": 4}
        return {**split, **sure, "validity": {"status": status, "reasons": ["4 threads"]}}

    choice = {
        "cores": 4,
        "take": [4, 1],
        "tied": [[4, 1], [2, 2]],
        "defaults": [],
        "regret": 0.01,
        "indifferent": False,
        "doubt": None,
        "checked": {
            "replayed": [],
            "not_replayed": [{"split": [4, 1], "why": "x"}],
            "largest_gap": None,
        },
    }
    found = [one(4, 0.67, "inside"), one(2, 0.33, status)]
    return {"choices": [choice], "candidates": found}


def test_nothing_is_sure_beyond_what_was_measured() -> None:
    document = splits("inside")
    told = dict(advice(document["choices"][0], document))
    assert told["recommended"] == "4 x 1, expected loss 1.0 %"
    assert "67 %" in told["equally good"]
    document = splits("outside")
    told = dict(advice(document["choices"][0], document))
    assert told["recommended"] == (
        "none for sure: splits are too far outside the measured range; 4 x 1 is fastest"
    )
    assert "%" not in " ".join(told.values())


def test_what_is_doubted_is_not_recommended() -> None:
    document = popmodel.predict("stencil3d", cores=16, draws=50).to_dict()
    document["learnt"] = {"doubts": ["a run that was left out is off"], "runs": []}
    (choice,) = document["choices"]
    choice["tied"] = [[16, 1], [8, 2]]
    lines = dict(advice(choice, document))
    said = "16 x 1, as far as known, not to be trusted yet; it may be as fast as 8 x 2"
    assert lines["fastest"] == said
    assert not {"recommended", "equally good"} & {*lines}
    assert "recommended" not in " ".join(lines.values())
