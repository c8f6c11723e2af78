"""The regions that a program marks, each analysed by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from popmodel.efficiency.measure import Run, analyse
from popmodel.errors import PartError, PopmodelError
from popmodel.trace.focus import focused
from popmodel.trace.info import marked_regions
from popmodel.trace.part import Part
from popmodel.values import dataclass

if TYPE_CHECKING:
    from popmodel.trace import Trace

MARK_REGIONS = "mark regions in the program (popmodel.h: popmodel_begin, popmodel_end)"


@dataclass(frozen=True)
class RegionRun:
    """One region of a run."""

    name: str
    run: Run | None  # What was measured in its occurrences; None where that is not possible
    problem: str = ""  # Why not


def by_region(trace: Trace, part: Part) -> tuple[RegionRun, ...]:
    """Analyse the regions that the user has marked, those with most time first."""
    window = focused(trace, Part(part.begin, part.end))[0] if part.has_window else trace
    names = list(marked_regions(window))
    if not names:
        raise PartError(trace.path, "no regions marked by the user", hint=MARK_REGIONS)
    return tuple(_analysed(trace, replace(part, region=name)) for name in names)


def _analysed(trace: Trace, part: Part) -> RegionRun:
    name = str(part.region)
    try:
        return RegionRun(name, analyse(trace, part=part))
    except PopmodelError as error:
        return RegionRun(name, None, error.message.removeprefix(f"{trace.path}: "))
