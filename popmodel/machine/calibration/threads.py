"""Threads that communicate, and communication behind computation."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from popmodel.machine.calibration.measured import Measured
from popmodel.machine.calibration.point_to_point import TIERS
from popmodel.machine.calibration.statistics import Series, median, of_results, p10, quantities
from popmodel.machine.samples import Result

_OUTERMOST = tuple(reversed(TIERS))


def calibrate(measured: Measured) -> tuple[dict[str, Any], dict[str, str]]:
    """Give what the section ``net`` says of threads and overlap, and why it may not."""
    section: dict[str, Any] = {}
    absent: dict[str, str] = {}
    for key, found in (
        ("multiple_overhead", _multiple(measured)),
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
    for key, job in (("thread_factor", "threaded"), ("overlap", "overlap")):
        if key not in section and (reason := measured.reason(job)):
            absent[f"net.{key}"] = reason
    return section, absent


def _multiple(measured: Measured) -> Series | None:
    """Latency with MPI_THREAD_MULTIPLE less that with a lower level."""
    for distance in _OUTERMOST:
        sizes = measured.values("ping_pong", "bytes", tier=distance)
        for size in sizes:
            with_, without = (
                measured.at_level(multiple, "ping_pong", tier=distance, bytes=size)
                for multiple in (True, False)
            )
            if with_ and without:
                base = float(np.mean([p10(result.seconds) for result in without]))
                return of_results(
                    with_,
                    partial(_above, base),
                    f"half ping-pong of {size} B with MPI_THREAD_MULTIPLE less without, p10",
                    scale=base,
                )
    return None


def _factor(measured: Measured) -> Series | None:
    """How the time of a message grows with every further communicating thread of a process."""
    for distance in _OUTERMOST:
        counts = measured.values("threaded", "threads", tier=distance, communicator="own")
        if len(counts) < 2 or counts[0] != 1:
            continue
        size = measured.values("threaded", "bytes", tier=distance)[0]
        wanted = {"tier": distance, "communicator": "own", "bytes": size}
        alone = float(
            np.mean(
                [median(one.seconds) for one in measured.results("threaded", threads=1, **wanted)]
            )
        )
        most = counts[-1]
        return of_results(
            measured.results("threaded", threads=most, **wanted),
            partial(_growth, alone, most - 1),
            f"message of {size} B by {most} threads with communicators of their own, median",
            scale=1.0,
        )
    return None


def _above(base: float, result: Result) -> float:
    return p10(result.seconds) - base


def _growth(alone: float, further: int, result: Result) -> float:
    return (median(result.seconds) / alone - 1) / further


def _overlap(measured: Measured) -> Series | None:
    """Share of a computation during which messages move without help (progress = 0)."""
    for distance in _OUTERMOST:
        sizes = measured.values("overlap", "bytes", tier=distance, progress=0)
        if not sizes:
            continue
        return of_results(
            measured.results("overlap", tier=distance, progress=0, bytes=sizes[-1]),
            overlapped,
            f"messages of {sizes[-1]} B behind as long a computation, no progress calls, median",
            scale=1.0,
        )
    return None


def overlapped(result: Result) -> float:
    """Give ``(communication + computation - both) / computation`` within 0 and 1."""
    assert result.reference is not None
    communication, both = median(result.reference), median(result.seconds)
    compute = float(result.facts["compute"])
    return min(max((communication + compute - both) / min(compute, communication), 0.0), 1.0)
