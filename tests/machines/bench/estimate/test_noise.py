"""How quiet the machine was, and what is not used."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from machines.bench.estimate.synthetic import QUIET, Job, Noise, launches, measured, openmp

from popmodel.machines.bench.estimate.measured_results import MeasuredResults
from popmodel.machines.bench.estimate.profile_document import noise as noise_of
from popmodel.machines.bench.estimate.profile_document import quality
from popmodel.machines.bench.sample_files import Launch, SampleResult


def test_quanta_tell_detours_spread_and_drift() -> None:
    quanta = [
        Launch(
            f"{i}.jsonl",
            {"program": "node"},
            (
                SampleResult(
                    "quantum", {}, np.full(20, 1e-3 * (1 + 0.1 * i)), None, {"at": 60.0 * i}
                ),
            ),
        )
        for i in range(3)
    ]
    section = noise_of(MeasuredResults(quanta))
    assert section["drift"] == pytest.approx(0.2)
    assert section["run_cv"] == pytest.approx(0.1 / 1.1, rel=1e-3)
    assert section["fwq"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"foreign": 0.5}, "other programs used 50 % of the CPU time"),
        ({"steal": 0.01}, "the hypervisor took 10 % of the CPU time (steal)"),
        (
            {"involuntary": 100},
            "other processes interrupted each CPU 1000 times per second",
        ),
    ],
)
def test_a_disturbed_section_is_noisy(facts: dict[str, Any], words: str) -> None:
    entry = quality(measured([Job("clock", {"threads": 1}, 1e-6, facts=facts)]), {})["core"]
    assert entry["noisy"]
    assert words in entry["why"]


NODE_OF_64 = {"files": {"affinity": "0-63\n"}}
RANKS_ON_64 = {
    "ranks_at": [
        {"rank": 0, "host": "a", "socket": 0, "cpus": "0-31"},
        {"rank": 1, "host": "a", "socket": 1, "cpus": "16-63"},
        {"rank": 2, "host": "b", "socket": 0, "cpus": "0-127"},  # nobody watched it
    ]
}


@pytest.mark.parametrize("header", [NODE_OF_64, RANKS_ON_64])
@pytest.mark.parametrize(
    ("name", "quiet", "words"),  # of 0.1 s, summed over 64 processors
    [
        ("steal", 0.1, "the hypervisor took 10 % of the CPU time (steal)"),
        ("involuntary", 1000, "other processes interrupted each CPU 1562 times per second"),
    ],
)
def test_disturbances_count_by_processor(
    header: dict[str, Any], name: str, quiet: float, words: str
) -> None:
    def quality_at(value: float) -> dict[str, Any]:
        jobs = [Job("clock", {"threads": 1}, 1e-6, facts={name: value})]
        found = launches(jobs, 3, np.random.default_rng(0), QUIET, lambda _: header)
        return dict(quality(MeasuredResults(found), {})["core"])

    assert not quality_at(quiet)["noisy"]
    assert quality_at(quiet * (6.4 if name == "steal" else 10))["why"] == [words]


def test_launches_that_differ_are_noisy() -> None:
    jobs = [Job("chase", {"bytes": n}, 1e-9) for n in range(1, 9)]
    quiet = quality(measured(jobs), {})["memory"]
    assert not quiet["noisy"]
    assert quiet["launches"] == 3
    noisy = quality(measured(jobs, 3, Noise(0.5, 0.0, 0.0)), {})["memory"]
    assert any(why.startswith("launches differ by") for why in noisy["why"])


def test_a_busy_neighbour_on_the_core_is_seen_although_the_clock_is_steady() -> None:
    def why(launch: float) -> list[str]:
        clock = [Job("clock", {"threads": n}, 1e-6) for n in range(1, 9)]
        found = launches(clock, 5, np.random.default_rng(0))
        filling = [Job(name, {}, 1e-8) for name in ("loads", "stores", "loop", "instructions")]
        slowed = launches(filling, 5, np.random.default_rng(0), Noise(launch, 0.01, 0.0))
        both = [
            replace(one, results=one.results + other.results)
            for one, other in zip(found, slowed, strict=True)
        ]
        return list(quality(MeasuredResults(both), {})["core"].get("why", []))

    assert why(0.02) == []
    (said,) = why(0.4)
    assert said.startswith("launches differ by")
    assert said.endswith(
        "in what a core does per cycle, as where another hardware thread of it is busy at times"
    )


def test_one_launch_says_nothing_of_launches() -> None:
    entry = quality(measured([Job("clock", {"threads": 1}, 1e-6)], 1), {"core": ["x"]})["core"]
    assert entry["why"] == ["only one launch: the spread between launches is unknown", "x"]
    assert not entry["noisy"]


def readings(*batches: tuple[float, int]) -> MeasuredResults:
    """A barrier of so many seconds in so many batches, by launch."""
    return MeasuredResults(
        [
            Launch(
                f"launch-{number}.jsonl",
                {"program": "node", "launch": number},
                (
                    SampleResult(
                        "construct",
                        {"name": "barrier", "threads": 2},
                        np.full(count, seconds),
                        np.full(count, 1e-7),
                    ),
                ),
            )
            for number, (seconds, count) in enumerate(batches)
        ]
    )


@pytest.mark.parametrize("odd", [(1.2e-2, 50), (3e-7, 1), (1e-8, 50)])
def test_a_launch_out_of_all_proportion_is_not_used(odd: tuple[float, int]) -> None:
    found = readings((3e-7, 50), (3.1e-7, 50), odd, (2.9e-7, 50))
    section, _, _ = openmp(found, {"cores_per_node": 2})
    assert section["barrier"]["seconds"][0]["value"] == pytest.approx(2e-7, rel=0.01)
    entry = quality(found, {})["openmp"]
    assert entry["noisy"]
    assert entry["why"][-1] == (
        "1 outlier compared with the other launches, not used: construct name=barrier threads=2"
    )


def test_jobs_too_short_to_tell_have_the_disturbance_of_their_launch() -> None:
    short = launches([Job("clock", {"threads": 1}, 1e-6)], 3, np.random.default_rng(0), QUIET)
    disturbed = MeasuredResults([replace(launch, foreign=0.4) for launch in short])
    entry = quality(disturbed, {})["core"]
    assert entry["noisy"]
    assert entry["why"] == ["other programs used 40 % of the CPU time"]
    assert not quality(MeasuredResults(short), {})["core"]["noisy"]
