"""What the verdict of a calibration says."""

from __future__ import annotations

from typing import Any

from popmodel.api.calibrate_document import verdict

QUIET: dict[str, Any] = {
    "application": {"name": "demo"},
    "accuracy": {
        "configurations": 3,
        "median_error": 0.021,
        "median_error_before": 0.24,
        "runs": 6,
        "covered": 5,
    },
    "accuracy_of_sizes": None,
    "left_out": [{"processes": 4, "threads": 2, "measured": [1.0], "value": 2.9, "covered": 0}],
    "constants": {"rate": {"value": 1.0}},
    "identifiable": {"inputs": []},
    "suspect_runs": [],
}


def test_errors_of_what_was_left_out_come_first() -> None:
    assert verdict(QUIET) == [
        "3 configurations, each predicted from the others: median error 2.1 % (uncalibrated "
        "24.0 %), 5 of 6 runs inside the 90 % interval",
        "learnt: rate",
    ]


def test_sizes_that_were_left_out_come_next() -> None:
    sizes = {"sizes": 2, "parameters": ["N"], "median_error": 0.31, "runs": 18, "covered": 7}
    assert verdict(QUIET | {"accuracy_of_sizes": sizes})[1] == (
        "2 sizes (N), each predicted from the others: median error 31.0 %, 7 of 18 runs inside the "
        "90 % interval"
    )


def test_runs_that_are_far_off_even_calibrated_are_asked_about() -> None:
    far = [{"processes": 4, "threads": 2, "measured": [1.0], "value": 3.3, "covered": 0}]
    assert verdict(QUIET | {"left_out": far})[1] == (
        "1 of 3 configurations off by more than a factor of 3 even calibrated, first 4 x 2: are "
        "these runs of demo, with their parameters and units?"
    )


def test_runs_of_which_little_was_known_are_not_asked_about() -> None:
    wide = [{"processes": 4, "threads": 2, "measured": [1.0], "value": 9.0, "covered": 1}]
    assert verdict(QUIET | {"left_out": wide}) == verdict(QUIET)


def test_what_cannot_be_told_is_said() -> None:
    doubts = {"inputs": [{"name": "memory.bsat", "at_bound": True}]}
    told = verdict(QUIET | {"constants": {"c": {"value": None}}, "identifiable": doubts})
    assert told[1:] == [
        "not told by these runs: c",
        "far outside the interval stated before: memory.bsat",
    ]


def test_suspects_are_named_with_their_place() -> None:
    runs = [
        {"source": "runs.csv", "line": 5, "factor": 2.031, "probability": 0.9996},
        {"source": "a.prv", "line": None, "factor": 0.5, "probability": 0.42},
    ]
    assert verdict(QUIET | {"suspect_runs": runs})[2:] == [
        "suspect: runs.csv:5 took 2.03 times what the other runs say; disturbed with probability "
        "100 %, it hardly counts",
        "suspect: a.prv took 0.50 times what the other runs say; disturbed with probability 42 %, "
        "it hardly counts",
    ]


def test_without_constants_the_runs_teach_of_the_rest() -> None:
    (_, told) = verdict(QUIET | {"constants": {}})
    assert told.startswith("demo has no constant with an interval that the runs depend on")
