"""Threads that communicate, and communication behind computation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from popmodel.bench.calibration.intervals import (
    Series,
    median,
    of_groups,
    of_results,
    p10,
    quantities,
    spread,
)
from popmodel.bench.calibration.measured import MeasuredResults
from popmodel.bench.calibration.point_to_point import TIERS
from popmodel.bench.samples import SampleResult

_OUTERMOST = tuple(reversed(TIERS))


def calibrate(measured: MeasuredResults) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what the section ``net`` says of threads and overlap, and why it may not."""
    section: dict[str, Any] = {}
    absent: dict[str, str] = {}
    for key, found in (
        ("multiple_overhead", _multiple(measured, absent)),
        ("thread_factor", _factor(measured)),
        ("overlap", _overlap(measured)),
    ):
        if found is not None:
            zero = frozenset("x") if found.scale is not None else frozenset()
            section[key] = quantities({"x": found}, zero=zero)["x"]
            if key == "overlap":  # a share
                section[key] = {
                    name: min(value, 1.0) if name in ("value", "low", "high") else value
                    for name, value in section[key].items()
                }
    if "multiple_overhead" in section:  # another tier may have told it
        absent.pop("net.multiple_overhead", None)
    for key, job in (("thread_factor", "threaded"), ("overlap", "overlap")):
        if key not in section and (reason := measured.reason(job)):
            absent[f"net.{key}"] = reason
    return section, absent


def _multiple(measured: MeasuredResults, absent: dict[str, str]) -> Series | None:
    """Latency with MPI_THREAD_MULTIPLE less that with a lower level, of ranks placed alike."""
    for distance in _OUTERMOST:
        sizes = measured.values("ping_pong", "bytes", tier=distance)
        for size in sizes:
            with_, without = (
                measured.by_placement("ping_pong", multiple=level, tier=distance, bytes=size)
                for level in (True, False)
            )
            for placement, results in with_.items():
                if placement in without:
                    return _difference(results, without[placement], size)
            if with_:
                absent["net.multiple_overhead"] = (
                    "no launch with a lower thread level had the same ranks, nodes and threads"
                )
    return None


def _difference(
    with_: Sequence[SampleResult], without: Sequence[SampleResult], size: int
) -> Series:
    """Latency of some launches less that of others.

    Launches of both kinds are paired as they come, so that the spread of the differences is that of
    both. A single launch has no spread of its own: it is taken to vary as the others do.
    """
    source = f"half ping-pong of {size} B with MPI_THREAD_MULTIPLE minus without, p10"
    base = of_results(without, lambda result: p10(result.seconds), source)
    mean = float(np.mean(base.values))
    if min(len(with_), len(without)) > 1:
        pairs = list(zip(with_, without, strict=False))
        return of_groups(
            pairs, lambda one, other: p10(one.seconds) - p10(other.seconds), source, scale=mean
        )
    series = of_results(with_, lambda result: p10(result.seconds) - mean, source, scale=mean)
    apart = spread(base) * math.sqrt(1 + 1 / len(without))
    return replace(series, sampling=math.hypot(series.sampling, base.sampling, apart))


def _factor(measured: MeasuredResults) -> Series | None:
    """How the time of a message grows with every further communicating thread of a process."""
    for distance in _OUTERMOST:
        counts = measured.values("threaded", "threads", tier=distance, communicator="own")
        if len(counts) < 2 or counts[0] != 1:
            continue
        size = measured.values("threaded", "bytes", tier=distance)[0]
        wanted = {"tier": distance, "communicator": "own", "bytes": size}
        most = counts[-1]
        pairs = measured.together(
            ("threaded", {"threads": most, **wanted}), ("threaded", {"threads": 1, **wanted})
        )
        if not pairs:
            continue
        return of_groups(
            pairs,
            partial(_growth, most - 1),
            f"messages of {size} B by {most} threads, each with its own communicator, median",
            scale=1.0,
        )
    return None


def _growth(further: int, several: SampleResult, alone: SampleResult) -> float:
    return (median(several.seconds) / median(alone.seconds) - 1) / further


def _overlap(measured: MeasuredResults) -> Series | None:
    """Share of what could overlap that does, with messages left alone (progress = 0)."""
    for distance in _OUTERMOST:
        sizes = measured.values("overlap", "bytes", tier=distance, progress=0)
        if not sizes:
            continue
        return of_results(
            measured.results("overlap", tier=distance, progress=0, bytes=sizes[-1]),
            overlapped,
            f"messages of {sizes[-1]} B during a computation of equal length, no progress calls, "
            "median",
            scale=1.0,
        )
    return None


def overlapped(result: SampleResult) -> float:
    """Return the time that is saved over the most that can be, within 0 and 1.

    ``(communication + computation - both) / min(computation, communication)``: no more than the
    shorter of the two can hide behind the other.
    """
    assert result.reference is not None
    communication, both = median(result.reference), median(result.seconds)
    compute = float(result.facts["compute"])
    return min(max((communication + compute - both) / min(compute, communication), 0.0), 1.0)
