"""Losses between threads: serial code and parallel regions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.efficiency.advice.doubts import crowd_doubt, overhead, region_doubt
from popmodel.efficiency.advice.processes import communication
from popmodel.efficiency.advice.remark import Remark, RemarkLoss, percent
from popmodel.units import format_time

if TYPE_CHECKING:
    from popmodel.efficiency.evidence import SerialCode
    from popmodel.efficiency.observables import RegionObservables

_SHORT = 1e-3  # s per instance of a region


# What of a parallel region costs time, and what to do.
_LOSSES = {
    "imbalance": (
        "imbalance between its threads",
        "Use a dynamic or guided schedule, smaller chunks or collapsed loops. If all iterations "
        "cost the same, check thread placement and first touch.",
    ),
    "locks": (
        "locks and critical sections",
        "Replace them by reductions or atomics, or do less inside them.",
    ),
    "barriers": (
        "barriers",
        "Remove barriers between independent loops (nowait) and balance the work between the "
        "others.",
    ),
    "mpi": (
        "calls of MPI inside it",
        "Let other threads work while one communicates (tasks), or communicate outside.",
    ),
}


def regions(loss: RemarkLoss) -> Remark:
    """Name the region that costs most, and what kind of loss it is."""
    regions = loss.run.observables.regions
    total = sum(region.cost for region in regions)
    if not total:
        return Remark("", loss.advice)
    region = max(regions, key=lambda region: region.cost)
    costs = {kind: getattr(region, kind) for kind in _LOSSES} | {"overhead": overhead(region)}
    kind = max(costs, key=costs.__getitem__)
    what, remedy = _overhead(loss, region) if kind == "overhead" else _LOSSES[kind]
    if kind == "imbalance":
        what += f" (load balance {percent(region.load_balance)})"
    why = (
        f"{region.name} causes {percent(region.cost / total)} of the loss in parallel regions, "
        f"{percent(min(costs[kind] / region.cost, 1.0))} of it by {what}."
    )
    return Remark(why, remedy)


def _overhead(loss: RemarkLoss, region: RegionObservables) -> tuple[str, str]:
    wall = region.wall / max(region.count, 1)
    what = f"scheduling, fork and join; an instance takes {format_time(wall, digits=3)}"
    if crowd_doubt(loss.run) or region_doubt(loss.run):
        return what, ""
    if wall < _SHORT:
        return what, "Such short regions do not pay off: merge them, or parallelise an outer loop."
    return what, "Use larger chunks with a dynamic schedule, and fewer constructs inside."


def serial_code(loss: RemarkLoss) -> Remark:
    """Say how much serial code there is, and between which regions most of it lies."""
    run, longest = loss.run.observables, loss.run.evidence.serial[:1]
    total = float(run.serial_useful.sum())
    if not total:
        return Remark("", loss.advice)
    share = float(run.threads @ run.serial_useful) / (float(run.threads.sum()) * run.runtime)
    why = f"Serial code takes {percent(share)} of the runtime"
    why += "".join(f", {percent(one.time / total)} of it {_between(one)}" for one in longest)
    fewer = ", or use more processes with fewer threads each" if run.has_mpi else ""
    return Remark(f"{why}; other threads idle meanwhile.", f"Parallelise this code{fewer}.")


def _between(one: SerialCode) -> str:
    if not one.after:
        return f"before the first region, {one.before}"
    if not one.before:
        return f"after the last region, {one.after}"
    if one.after == one.before:
        return f"between instances of {one.after}"
    return f"between {one.after} and {one.before}"


def team_imbalance(loss: RemarkLoss) -> Remark:
    """Blame serial code or regions for threads that do less than their masters."""
    run = loss.run.observables
    serial = float((run.threads - 1) @ run.serial_useful)
    return serial_code(loss) if serial > sum(one.cost for one in run.regions) else regions(loss)


def outside_regions(loss: RemarkLoss) -> Remark:
    """Blame serial code, or MPI by the master alone, for threads that idle outside regions."""
    run = loss.run.observables
    in_mpi = float(np.maximum(run.threads - 1, 0) @ run.serial_mpi)
    if in_mpi <= float((run.threads - 1) @ run.serial_useful):
        return serial_code(loss)
    said = communication(loss)
    why = f"Threads idle mostly while their master is in MPI. {said.why}".strip()
    return Remark(why, said.remedy)
