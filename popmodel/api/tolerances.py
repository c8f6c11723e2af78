"""How slow a network may be until a run takes a certain time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from popmodel.base.values import dataclass


@dataclass(frozen=True)
class Tolerance:
    """How slow the network may be until the run takes a certain time."""

    runtime: float  # That time, s
    # The largest latency, at the bandwidth of the network, s; infinite: any; None: with no latency
    # at all the run takes longer.
    latency: float | None
    # The least bandwidth, at the latency of the network, B/s; 0: any; None: with infinite bandwidth
    # the run takes longer.
    bandwidth: float | None


def told(one: Tolerance) -> dict[str, Any]:
    """A tolerance as plain data: no number where there is no limit, or where none is enough."""
    latency, bandwidth = one.latency, one.bandwidth
    why = {}
    if latency is None:
        why["latency"] = "even without latency the run takes longer"
    elif latency == math.inf:
        latency, why["latency"] = None, "no latency makes the run take that long"
    if bandwidth is None:
        why["bandwidth"] = "even with infinite bandwidth the run takes longer"
    elif bandwidth == 0:
        why["bandwidth"] = "no bandwidth makes the run take that long"
    return {"runtime": one.runtime, "latency": latency, "bandwidth": bandwidth, "why": why}


def limits(found: Iterable[Tolerance], latency: float, gap: float) -> Iterator[tuple[float, float]]:
    """Latencies and times per byte at which tolerances end."""
    for one in found:
        if one.latency is not None:
            yield one.latency, gap
        if one.bandwidth:
            yield latency, 1 / one.bandwidth
