"""Breakdown of a run by process or by user region."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from popmodel.efficiency.by_process import Processes, by_process
from popmodel.efficiency.by_region import RegionRun, by_region
from popmodel.efficiency.family import Evaluation
from popmodel.efficiency.observables import OutsideMPI
from popmodel.efficiency.scaling import SCALING, Comparable, evaluate_all, scale
from popmodel.report import by_process as processes_report
from popmodel.report import by_region as regions_report
from popmodel.report.views import Views
from popmodel.values import dataclass

if TYPE_CHECKING:
    from popmodel.efficiency.measure import Run
    from popmodel.trace import Trace
    from popmodel.trace.part import Part

__all__ = ["VIEWS", "Breakdown", "By", "break_down"]

By: TypeAlias = Literal["process", "region"]
VIEWS: Mapping[By, Views] = {"process": processes_report.VIEWS, "region": regions_report.VIEWS}
"""How runs are shown with what they consist of."""


@dataclass(frozen=True)
class Breakdown:
    """The requested breakdown of a run.

    Attributes
    ----------
    processes : Processes or None
    regions : tuple of (RegionRun, mapping of str to Evaluation)
        Each region with all families except scaling; empty where nothing could be measured.
    """

    processes: Processes | None = None
    regions: tuple[tuple[RegionRun, Mapping[str, Evaluation]], ...] = ()

    def to_dict(self, families: Iterable[str], caveats: Sequence[str]) -> dict[str, Any]:
        """What the document of the run contains in addition: ``by_process`` or ``by_region``.

        Parameters
        ----------
        families : iterable of str
            Families to include for regions.
        caveats : sequence of str
            The caveats of the run itself.
        """
        if self.processes is not None:
            return {"by_process": processes_report.document(self.processes)}
        if not self.regions:
            return {}
        wanted = [name for name in families if name != SCALING]
        return {
            "by_region": [
                regions_report.document(
                    region, {name: found[name] for name in wanted if found}, caveats
                )
                for region, found in self.regions
            ]
        }


def break_down(
    by: By | None, trace: Trace, run: Run, part: Part, outside_mpi: OutsideMPI
) -> Breakdown:
    """Break a run down by process, or analyse its regions.

    Raises
    ------
    PartError
        If regions are requested but the program marks none.
    """
    if by == "process":
        return Breakdown(by_process(run.observables))
    if by is None:
        return Breakdown()
    found = by_region(trace, part)
    return Breakdown(None, tuple((region, _evaluated(region, outside_mpi)) for region in found))


def _evaluated(region: RegionRun, outside_mpi: OutsideMPI) -> dict[str, Evaluation]:
    if region.run is None:
        return {}
    observed = region.run.observables
    own = Comparable(region.name, observed.aggregates(outside_mpi), observed.absent)
    alone = scale([own])  # as a run that is compared with no other
    found = evaluate_all(own, alone, 0)
    del found[SCALING]
    return found
