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

__all__ = ["MARK_REGIONS", "RegionRun", "by_region"]

MARK_REGIONS = "mark regions in the program (popmodel.h: popmodel_begin, popmodel_end)"


@dataclass(frozen=True)
class RegionRun:
    """One region of a run.

    Attributes
    ----------
    name : str
    run : Run or None
        What was measured in its occurrences; None where that is not possible.
    problem : str
        Why not.
    """

    name: str
    run: Run | None
    problem: str = ""


def by_region(trace: Trace, part: Part) -> tuple[RegionRun, ...]:
    """Analyse the regions that the user has marked, those with most time first.

    Parameters
    ----------
    trace : Trace
        The run.
    part : Part
        What of it is analysed; of regions that is the window, where there is one.

    Raises
    ------
    PartError
        If no region is marked in this part of the run.
    """
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
