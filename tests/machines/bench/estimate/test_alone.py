"""Which batches count: those whose cores were left to them, where there are some."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from popmodel.machines.bench.estimate.measured_results import MeasuredResults, left_alone
from popmodel.machines.bench.estimate.profile_document import quality
from popmodel.machines.bench.sample_files import Launch, SampleResult

OWN, SHARED = 0.3e-9, 0.6e-9


def result(
    job: str, pace: Sequence[float] | None, seconds: Sequence[float] | None = None, threads: int = 1
) -> SampleResult:
    """Batches that take as long as their pace says."""
    times = np.array(pace if seconds is None else seconds) * 1.0
    paces = None if pace is None else np.array(pace)
    return SampleResult(job, {"threads": threads}, times, facts={"work": 1.0}, pace=paces)


def launch(number: int, *results: SampleResult, host: str = "a") -> Launch:
    header = {"program": "node", "host": host, "launch": number}
    return Launch(f"launch-{number}.jsonl", header, results, "complete")


def test_batches_on_shared_cores_are_not_used() -> None:
    one = launch(1, result("clock", [OWN, SHARED, OWN, OWN, 1.3 * OWN]))
    (used,) = left_alone([one])[0].results
    assert used.seconds.tolist() == [OWN, OWN, OWN, 1.3 * OWN]
    assert used.alone == pytest.approx(0.8)


def test_what_belongs_to_a_batch_goes_with_it() -> None:
    pace = np.array([SHARED, OWN, OWN, OWN])
    one = SampleResult(
        *("mixed", {"threads": 1}, np.arange(4.0), np.arange(4.0) + 10),
        arithmetic=np.arange(6.0),
        pace=pace,
        arithmetic_pace=np.array([OWN, SHARED, OWN, OWN, SHARED, OWN]),
    )
    (used,) = left_alone([launch(1, one)])[0].results
    assert used.seconds.tolist() == [1, 2, 3]
    assert used.reference is not None
    assert used.reference.tolist() == [11, 12, 13]
    assert used.arithmetic is not None
    assert used.arithmetic.tolist() == [0, 2, 3, 5]


def test_too_few_batches_leave_a_result_as_it_is() -> None:
    paces = [OWN, OWN, SHARED, SHARED, SHARED]
    (used,) = left_alone([launch(1, result("clock", paces))])[0].results
    assert used.seconds.size == 5
    assert used.alone == 0


def test_few_batches_that_are_all_undisturbed_are_enough() -> None:
    (used,) = left_alone([launch(1, result("triad", [OWN, OWN]))])[0].results
    assert (used.seconds.size, used.alone) == (2, 1)


def test_the_best_pace_is_that_of_all_launches_of_a_host() -> None:
    first = launch(1, result("clock", [OWN] * 4))
    second = launch(2, result("clock", [SHARED] * 4))
    other = launch(3, result("clock", [SHARED] * 4), host="b")
    alone = [one.results[0].alone for one in left_alone([first, second, other])]
    assert alone == [1, 0, 1]


def test_more_cores_may_be_slower_but_not_by_as_much_as_a_shared_one() -> None:
    def alone(pace: float) -> float | None:
        one = launch(1, result("clock", [OWN] * 4), result("clock", [pace] * 4, threads=8))
        return left_alone([one])[0].results[1].alone

    assert alone(1.6 * OWN) == 1
    assert alone(1.8 * OWN) == 0


def test_results_that_tell_no_pace_stay_as_they_are() -> None:
    one = result("clock", None, [1.0, 2.0])
    (used,) = left_alone([launch(1, one)])[0].results
    assert used is one


def quick_and_slow(*own: bool, job: str = "clock") -> list[Launch]:
    """Launches with a core of their own, where a batch takes 1 s, or with a shared one: 2 s."""
    return [
        launch(n, result(job, [OWN if one else SHARED] * 9, [1.0 if one else 2.0] * 9))
        for n, one in enumerate(own)
    ]


def test_launches_on_shared_cores_count_only_without_others() -> None:
    some = MeasuredResults(quick_and_slow(False, True, False, False))
    assert [one.seconds[0] for one in some.results("clock")] == [1.0]
    first, *others = quick_and_slow(True, False, False)
    none = MeasuredResults([launch(0, result("loop", [OWN] * 9)), *others])
    assert [one.seconds[0] for one in none.results("clock")] == [2.0, 2.0]
    assert first.results[0].pace is not None


def test_jobs_that_no_launch_did_on_its_own_cores_are_taken_together_as_they_are() -> None:
    def together(*own: tuple[bool, bool]) -> list[tuple[float, ...]]:
        loops = quick_and_slow(*(one for one, _ in own), job="loop")
        clocks = quick_and_slow(*(one for _, one in own))
        both = [
            launch(n, *loop.results, *clock.results)
            for n, (loop, clock) in enumerate(zip(loops, clocks, strict=True))
        ]
        pairs = MeasuredResults(both).together(("loop", {}), ("clock", {}))
        return [tuple(float(one.seconds[0]) for one in pair) for pair in pairs]

    assert together((True, True), (True, False), (False, True)) == [(1, 1)]
    assert together((True, False), (False, True)) == [(1, 2), (2, 1)]


def test_a_launch_that_converged_early_is_no_outlier() -> None:
    def found(stopped: str) -> int:
        many = [SampleResult("clock", {}, np.ones(500), facts={"stopped": "batches"})] * 3
        few = SampleResult("clock", {}, np.ones(50), facts={"stopped": stopped})
        launches = [launch(n, one) for n, one in enumerate([*many, few])]
        return len(MeasuredResults(launches).results("clock"))

    assert found("converged") == 4
    assert found("budget") == 3


def test_the_quality_says_how_much_was_shared() -> None:
    half = [launch(n, result("clock", [OWN] * 5 + [SHARED] * 5)) for n in range(3)]
    entry = quality(MeasuredResults(half), {})["core"]
    assert not entry["noisy"]
    assert entry["why"] == [
        "other work shared the cores in 50 % of the batches, not used where there are others"
    ]


def test_a_section_without_cores_of_its_own_is_noisy() -> None:
    own = [launch(n, result("triad", [OWN] * 5)) for n in range(3)]
    shared = [launch(n, result("clock", [SHARED] * 5)) for n in range(3, 6)]
    found = quality(MeasuredResults(own + shared), {})
    assert not found["memory"]["noisy"]
    assert found["core"]["noisy"]
    assert found["core"]["why"] == [
        "1 of 1 jobs never had their cores to themselves: clock threads=1",
        "other work shared the cores in 100 % of the batches, not used where there are others",
    ]
