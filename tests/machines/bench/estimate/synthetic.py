"""Launches whose truth is known: stated times, with launch effects, noise and outliers.

A batch takes ``truth * launch effect * (1 + noise)`` where the noise is one-sided, as interruptions
are, and scaled so that the quantile that the calibration takes (10 % for latencies, 50 % for
contention) of the clean distribution is the truth itself. Some batches are outliers on top.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from popmodel.machines.bench.estimate import (
    core_estimates,
    exchange_estimates,
    memory_estimates,
    message_estimates,
    openmp_estimates,
)
from popmodel.machines.bench.estimate.measured_results import MeasuredResults
from popmodel.machines.bench.sample_files import Launch, SampleResult

BATCHES = 60
JobKey = tuple[str, tuple[tuple[str, Any], ...]]


@dataclass(frozen=True)
class Noise:
    """How far measurements are from the truth.

    ``launch`` is the relative standard deviation of a job between launches, ``together`` that of a
    launch with all its jobs, ``batch`` the mean of the one-sided noise of a batch, ``outliers`` the
    share of batches that take 2 to 10 times as long.
    """

    launch: float = 0.03
    batch: float = 0.05
    outliers: float = 0.05
    together: float = 0.0


QUIET = Noise(0.0, 0.0, 0.0)


def batches(
    truth: float, rng: np.random.Generator, noise: Noise, effect: float, quantile: float = 0.1
) -> np.ndarray:
    """Times of the batches of a job whose `quantile` is the truth."""
    clean = 1 + noise.batch * rng.exponential(size=BATCHES)
    at_quantile = 1 - noise.batch * math.log(1 - quantile)
    slow = np.where(
        rng.random(BATCHES) < noise.outliers, rng.uniform(2, 10, BATCHES), np.ones(BATCHES)
    )
    return truth * effect * clean / at_quantile * slow


@dataclass(frozen=True)
class Job:
    """A job with its true time; with those of parts of it for jobs that have them."""

    name: str
    params: Mapping[str, Any]
    seconds: float
    reference: float | None = None
    quantile: float = 0.1
    facts: Mapping[str, Any] | None = None
    arithmetic: float | None = None


def launches(
    jobs: Iterable[Job],
    count: int,
    rng: np.random.Generator,
    noise: Noise = Noise(),
    header: Callable[[int], Mapping[str, Any]] | None = None,
) -> list[Launch]:
    """So many launches of the same jobs; every job is a little slower or faster in each."""
    jobs = list(jobs)
    found = []
    for number in range(1, count + 1):
        results = []
        slow = math.exp(noise.together * rng.standard_normal())
        for job in jobs:
            effect = slow * math.exp(noise.launch * rng.standard_normal())
            seconds = batches(job.seconds, rng, noise, effect, job.quantile)
            reference = None
            if job.reference is not None:
                reference = batches(job.reference, rng, noise, slow, job.quantile)
            arithmetic = None
            if job.arithmetic is not None:
                arithmetic = batches(job.arithmetic, rng, noise, slow, job.quantile)
            facts = {"stopped": "converged", "wall": 0.1, "at": 10.0 * number, **(job.facts or {})}
            result = SampleResult(job.name, dict(job.params), seconds, reference, facts)
            results.append(replace(result, arithmetic=arithmetic))
        facts_ = {} if header is None else dict(header(number))
        found.append(
            Launch(
                f"launch-{number:03}.jsonl",
                {"program": "node", "host": "synthetic", "launch": number, **facts_},
                tuple(results),
                "complete",
            )
        )
    return found


def measured(jobs: Sequence[Job], count: int = 3, disturbed: Noise = QUIET) -> MeasuredResults:
    return MeasuredResults(launches(jobs, count, np.random.default_rng(0), disturbed))


def absent(job: str, reason: str, **params: Any) -> Launch:
    result = SampleResult(job, params, np.empty(0), absent=reason)
    return Launch("x.jsonl", {"program": "node"}, (result,), "complete")


def triad(threads_: int, bandwidth: float) -> Job:
    size = 1 << 26
    return Job(
        "triad",
        {"threads": threads_, "bytes": size},
        4 * size / bandwidth,
        facts={"moved": 3 * size},
    )


def pingpong(size: int, seconds: float, tier: str = "node") -> Job:
    return Job("ping_pong", {"bytes": size, "tier": tier}, seconds)


# Sections with the reasons for what they lack, and what is remarked of them.

Section = dict[str, Any]
Reasons = dict[str, str]


def core(results: MeasuredResults) -> tuple[Section, Reasons]:
    reasons: Reasons = {}
    return core_estimates.calibrate(results, reasons), reasons


def memory(
    results: MeasuredResults, topology: Mapping[str, Any]
) -> tuple[Section, Reasons, list[str]]:
    reasons: Reasons = {}
    section, remarks = memory_estimates.calibrate(results, topology, reasons)
    return section, reasons, remarks


def openmp(
    results: MeasuredResults, topology: Mapping[str, Any]
) -> tuple[Section, Reasons, list[str]]:
    reasons: Reasons = {}
    section, remarks = openmp_estimates.calibrate(results, topology, reasons)
    return section, reasons, remarks


def messages(results: MeasuredResults) -> tuple[Section, Reasons]:
    reasons: Reasons = {}
    return message_estimates.calibrate(results, reasons), reasons


def threads(results: MeasuredResults) -> tuple[Section, Reasons]:
    reasons: Reasons = {}
    return exchange_estimates.threads(results, reasons), reasons


def collectives(results: MeasuredResults, net: Mapping[str, Any]) -> tuple[Section, Reasons]:
    reasons: Reasons = {}
    return exchange_estimates.collectives(results, net, reasons), reasons
