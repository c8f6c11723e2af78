"""The regions that a program marks, each analysed by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from popmodel.efficiency.measure import MeasuredRun, analyse
from popmodel.errors import PartError, PopmodelError
from popmodel.trace.info import marked_regions
from popmodel.trace.selection import TracePart, focused
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.efficiency.observables import Observables
    from popmodel.trace import Trace


MARK_REGIONS = "mark regions in the program (popmodel.h: popmodel_begin, popmodel_end)"


@dataclass(frozen=True)
class RegionRun:
    """One region of a run."""

    name: str
    run: MeasuredRun | None  # What was measured in its occurrences; None where that is not possible
    problem: str = ""  # Why not


def by_region(trace: Trace, part: TracePart) -> tuple[RegionRun, ...]:
    """Analyse the regions that the user has marked, those with most time first."""
    window = focused(trace, TracePart(part.begin, part.end))[0] if part.has_window else trace
    names = list(marked_regions(window))
    if not names:
        raise PartError(trace.path, "no regions marked by the user", hint=MARK_REGIONS)
    return tuple(_analysed(trace, replace(part, region=name)) for name in names)


def _analysed(trace: Trace, part: TracePart) -> RegionRun:
    name = str(part.region)
    try:
        return RegionRun(name, analyse(trace, part=part))
    except PopmodelError as error:
        return RegionRun(name, None, error.message.removeprefix(f"{trace.path}: "))


# What each process of a run does with its time: where to look when the load is not balanced.


UNITS = {
    "useful": "s",
    "mpi": "s",
    "in_openmp": "s",
    "serial_useful": "s",
    "instructions": "instructions",
    "ipc": "1",
}
"""Quantities of a process, with their units."""


@dataclass(frozen=True, eq=False)
class Processes:
    """Quantities of all processes of a run."""

    # int64[P]: Node of each process, from 0, and its threads.
    node: NDArray[np.int64]
    threads: NDArray[np.int64]
    # dict of str to float64[P]: By the names of `UNITS`; what the run does not have is not there.
    # ``useful`` is the average over the threads of a process, ``instructions`` the sum; ``mpi``,
    # ``in_openmp`` (wall time in parallel regions) and ``serial_useful`` are those of its master
    # thread. ``ipc`` is the instructions per cycle in useful time.
    values: dict[str, NDArray[np.float64]]


def by_process(run: Observables) -> Processes:
    """Sum up a run by process."""
    masters = run.masters

    def total(per_thread: NDArray[np.float64]) -> NDArray[np.float64]:
        summed: NDArray[np.float64] = np.add.reduceat(per_thread, masters)
        return summed

    values = {"useful": total(run.useful) / run.threads}
    if run.has_mpi:
        values["mpi"] = run.in_mpi[masters]
    if run.has_openmp:
        values |= {"in_openmp": run.in_openmp, "serial_useful": run.serial_useful}
    if run.instructions is not None and "instructions" not in run.absent:
        instructions = total(run.instructions)
        values["instructions"] = instructions
        if run.cycles is not None and "cycles" not in run.absent:
            cycles = total(run.cycles)
            known = np.full(len(cycles), np.nan)
            values["ipc"] = np.divide(instructions, cycles, out=known, where=cycles > 0)
    return Processes(run.node.astype(np.int64), run.threads, values)
