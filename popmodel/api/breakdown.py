"""Breakdown of a run by process or by user region."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from popmodel.base.values import dataclass
from popmodel.efficiency.family import FamilyEvaluation
from popmodel.efficiency.measure import UNITS, Processes, RegionRun, by_process, by_region
from popmodel.efficiency.observables import OutsideMPI
from popmodel.efficiency.scaling import SCALING, Comparable, evaluate_all, scale
from popmodel.reports import by_process as processes_report
from popmodel.reports import by_region as regions_report
from popmodel.reports.views import Views

if TYPE_CHECKING:
    from popmodel.efficiency.measure import MeasuredRun
    from popmodel.traces import Trace
    from popmodel.traces.selection import TracePart

By: TypeAlias = Literal["process", "region"]
VIEWS: Mapping[By, Views] = {"process": processes_report.VIEWS, "region": regions_report.VIEWS}
"""How runs are shown with what they consist of."""


@dataclass(frozen=True)
class RuntimeBreakdown:
    """The requested breakdown of a run."""

    processes: Processes | None = None
    # Each region with all families except scaling; empty where nothing could be measured.
    regions: tuple[tuple[RegionRun, Mapping[str, FamilyEvaluation]], ...] = ()

    def facts(
        self, families: Mapping[str, FamilyEvaluation], caveats: Sequence[str]
    ) -> dict[str, list[dict[str, Any]]]:
        """What the document of the run has of it: ``by_process`` or ``by_region``, or neither."""
        if self.processes is not None:
            return {"by_process": _of_processes(self.processes)}
        regions = [
            _of_region(
                region,
                {name: found[name] for name in families if name != SCALING and found},
                caveats,
            )
            for region, found in self.regions
        ]
        return {"by_region": regions} if regions else {}


def _of_processes(processes: Processes) -> list[dict[str, Any]]:
    """A line for each process; times in seconds, None for what is absent."""
    columns = {
        name: [None if np.isnan(value) else value for value in values.tolist()]
        for name, values in processes.values.items()
    }
    return [
        {
            "process": process,
            "node": processes.node[process],
            "threads": processes.threads[process],
            **{name: columns[name][process] if name in columns else None for name in UNITS},
        }
        for process in range(len(processes.threads))
    ]


def _of_region(
    region: RegionRun, families: Mapping[str, FamilyEvaluation], caveats: Sequence[str]
) -> dict[str, Any]:
    """A region; times in seconds."""
    run = region.run
    ideal = run.observables.absent.get("ideal_runtime") if run else region.problem
    return {
        "region": region.name,
        "problem": region.problem or None,
        "window": None if run is None else run.window,
        "caveats": [] if run is None else [text for text in run.caveats if text not in caveats],
        "notes": [] if run is None else run.notes,
        "runtime": None if run is None else float(run.observables.runtime),
        "ideal_runtime": None if run is None or ideal else run.observables.ideal_runtime,
        "metrics": {name: evaluation.values for name, evaluation in families.items()},
        "absent": {name: evaluation.absent for name, evaluation in families.items()},
    }


def break_down(
    by: By | None, trace: Trace, run: MeasuredRun, part: TracePart, outside_mpi: OutsideMPI
) -> RuntimeBreakdown:
    """Break a run down by process, or analyse its regions."""
    if by == "process":
        return RuntimeBreakdown(by_process(run.observables))
    if by is None:
        return RuntimeBreakdown()
    found = by_region(trace, part)
    return RuntimeBreakdown(
        None, tuple((region, _evaluated(region, outside_mpi)) for region in found)
    )


def _evaluated(region: RegionRun, outside_mpi: OutsideMPI) -> dict[str, FamilyEvaluation]:
    if region.run is None:
        return {}
    observed = region.run.observables
    own = Comparable(region.name, observed.aggregates(outside_mpi), observed.absent)
    alone = scale([own])  # as a run that is compared with no other
    found = evaluate_all(own, alone, 0)
    del found[SCALING]
    return found
