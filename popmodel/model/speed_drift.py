"""How the speed of computing drifts with what a signature may not know: a walk without a law.

A working set that begins to fit a cache, a clock that falls as more cores are busy: loops become
faster or slower by what no formula of the signature says. Over each doubling (of the work of a
thread in a step; of the busy cores of a memory domain) the logarithm of their time may change by a
normal amount, independent of the others. So runs tell of the doublings that they span, and beyond
them the spread grows with the square root of the distance, as that of a random walk.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from popmodel.expressions.elementary import Value
from popmodel.model.calibration import RESIDUAL, Drift
from popmodel.model.run.placement import Placement
from popmodel.model.run.work import RunWork
from popmodel.model.uncertainty import Draws, nominal

SIZE = "size"
"""Drift with the work of a thread in a step."""
ACTIVE = "active"
"""Drift with the busy cores of a memory domain."""
MEANINGS: Mapping[str, str] = {
    SIZE: "drift of computing with the work of a thread in a step",
    ACTIVE: "drift of computing with the busy cores of a memory domain",
}


def along(work: RunWork, placement: Placement) -> dict[str, float]:
    """Return where a run is along each drift, in doublings."""
    step = (nominal(work.share) + nominal(work.serial)) / max(nominal(work.steps), 1.0)
    found = {ACTIVE: math.log2(placement.active)}
    return {SIZE: math.log2(step), **found} if step > 0 else found


def passed(kind: str, drift: Drift, at: float) -> Iterator[tuple[str, float]]:
    """Return the doublings between the origin of a drift and a place along it."""
    way = at - drift.origin
    sign = "+" if way > 0 else "-"
    for number in range(math.ceil(abs(way))):
        yield f"{RESIDUAL}{kind}[{sign}{number + 1}]", min(abs(way) - number, 1.0)


def applied(
    work: RunWork, placement: Placement, drawn: Draws, drifts: Mapping[str, Drift]
) -> RunWork:
    """Return the work of a process whose computing has drifted."""
    where = along(work, placement)
    changes = [
        drawn.score(name) * (part * drift.deviation)
        for kind, drift in drifts.items()
        if kind in where and drift.deviation
        for name, part in passed(kind, drift, where[kind])
    ]
    if not changes:
        return work
    factor: Value = np.exp(sum(changes))
    return replace(
        work,
        serial=work.serial * factor,
        stated=work.stated * factor,
        share=work.share * factor,
        stretched=work.stretched * factor,
        serial_cycles=work.serial_cycles * factor,
        region_cycles=work.region_cycles * factor,
    )
