"""What the verdict of a calibration says."""

from typing import Any

from popmodel.fit.calibration_summary import verdict

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
    "left_out": [
        {"processes": 4, "threads": 2, "measured": [1.0], "value": 1.2, "high": 1.3},
        {"processes": 8, "threads": 1, "measured": [1.0], "value": 1.1, "high": 2.0},
    ],
    "error_scale": 1.4,
    "noise": 0.04,
    "suspect_runs": [],
}
RATE = [{"name": "rate", "value": 1.0}]


def test_errors_of_what_was_left_out_come_first() -> None:
    assert verdict(QUIET, RATE) == [
        "3 configurations, each predicted from the others: median error 2.1 % (uncalibrated "
        "24.0 %), 5 of 6 runs inside the 90 % interval",
        "learnt: rate",
    ]


def test_sizes_that_were_left_out_come_next() -> None:
    sizes = {"sizes": 2, "parameters": ["N"], "median_error": 0.31, "runs": 18, "covered": 7}
    assert verdict(QUIET | {"accuracy_of_sizes": sizes}, RATE)[1] == (
        "2 sizes (N), each predicted from the others: median error 31.0 %, 7 of 18 runs inside the "
        "90 % interval"
    )


def test_nothing_is_to_be_trusted_where_runs_miss_what_the_others_say() -> None:
    assert verdict(QUIET | {"error_scale": 2.84}, RATE)[0] == (
        "not to be trusted yet: runs miss what the others say of them by 2.8 times what is "
        "announced, 4 x 2 most, and intervals are wider by that: are all of demo, with their "
        "parameters and units, and undisturbed?"
    )


def test_runs_that_vary_much_are_told_of() -> None:
    assert verdict(QUIET | {"noise": 0.148}, RATE)[1] == (
        "runs of one configuration vary by 15 %, which no prediction is better than: repeat them "
        "on a quiet machine"
    )


def test_what_cannot_be_told_is_said() -> None:
    told = verdict(QUIET, [{"name": "c", "value": None}], ["memory.bsat"])
    assert told[1:] == [
        "not told by these runs: c",
        "far outside the interval stated before: memory.bsat",
    ]


def test_suspects_are_named_with_their_place() -> None:
    runs = [
        {"source": "runs.csv", "line": 5, "factor": 2.031, "probability": 0.9996},
        {"source": "a.prv", "line": None, "factor": 0.5, "probability": 0.42},
    ]
    assert verdict(QUIET | {"suspect_runs": runs}, RATE)[2:] == [
        "suspect: runs.csv:5 took 2.03 times what the other runs say; disturbed with probability "
        "100 %, it hardly counts",
        "suspect: a.prv took 0.50 times what the other runs say; nothing that disturbs a run makes "
        "it shorter: is it of demo, with its size?",
    ]


def test_without_constants_the_runs_teach_of_the_rest() -> None:
    (_, told) = verdict(QUIET, [])
    assert told.startswith("demo has no constant with an interval that the runs depend on")
