"""Critical paths written down step by step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from popmodel.simulator.execution import CriticalPath, PathPart


class Step(NamedTuple):
    """One step of a path; times in ns."""

    part: PathPart
    process: int
    operation: int
    time: float
    row: int = -1
    source: int = -1
    latency: float = 0.0
    bytes: float = 0.0
    latency_time: float = 0.0
    bytes_time: float = 0.0
    overhead: float = 0.0
    tier: int = -1


def path_of(*steps: Step) -> CriticalPath:
    """A path of these steps."""

    def column(name, kind):
        return np.array([getattr(step, name) for step in steps], kind)

    return CriticalPath(
        process=column("process", np.int32),
        source=column("source", np.int32),
        operation=column("operation", np.int64),
        part=column("part", np.uint8),
        row=column("row", np.int32),
        time=column("time", np.float64),
        latency=column("latency", np.float64),
        bytes=column("bytes", np.float64),
        latency_time=column("latency_time", np.float64),
        bytes_time=column("bytes_time", np.float64),
        overhead=column("overhead", np.float64),
        tier=column("tier", np.int8),
        runtime=sum(step.time for step in steps) / 1e9,
    )
