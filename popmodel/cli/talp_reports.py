"""Reports of TALP as ``popmodel metrics`` shows them: as they are, beside measured runs or alone.

They are runs of the same document, with the metrics of the families `talp` and `gpu-talp`, and
stand behind the traces. A report has sums over the run and no course of time: nothing is replayed,
no loss has a cause, so nothing is advised on them. Reports alone are compared with one of them;
beside traces they are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.base.errors import UsageError
from popmodel.base.values import dataclass, document
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.scaling import SCALING, Comparable, Mode, Scaling, scale
from popmodel.efficiency.verdict import GOOD
from popmodel.reports.figures import run_names
from popmodel.reports.result import Result, ResultValue
from popmodel.runs.talp_files import OF_DEVICES, TALP, TalpRegion, TalpReport, read_talp

if TYPE_CHECKING:
    import os

    from popmodel.cli.history import HistoryRequest
    from popmodel.cli.inputs import TraceLike
    from popmodel.cli.metrics import Metrics
    from popmodel.efficiency.family import FamilyEvaluation
    from popmodel.runs.regression import RunHistory, ValueChange

_NO_REPLAY = "a report of TALP has no course of time to replay"
_NOT_REPORTED = "not in the report of TALP"
_ALONE = "reports of TALP are compared with each other only"
_NO_ADVICE = "No advice: reports of TALP say how much is lost, and not where."


@dataclass(frozen=True)
class ReportedMetrics(Result):
    """Efficiencies from reports of TALP, and of runs beside them, as returned by `metrics`."""

    reports: tuple[TalpReport, ...]
    measured: Metrics | None = None  # The traces beside them
    region: str | None = None  # The region that is asked for; None: the program
    asked: tuple[str, ...] | None = None  # Families
    by_region: bool = False
    # Of reports alone: against one of them.
    scaling: Scaling | None = None
    history: RunHistory | None = None  # The earlier reports, where they were asked for

    def to_dict(self, families: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the document, schema ``popmodel/metrics/1``, without provenance."""
        given = families or self.asked
        if self.measured is not None:
            found = self.measured.to_dict(given)
            given = tuple(found["runs"][0]["metrics"])
            return {**found, "runs": [*found["runs"], *self._runs(given)]}
        given = tuple(dict.fromkeys([*(given or self._families()), SCALING]))
        scaling = self.scaling
        assert scaling is not None, "reports alone are compared"
        compared = {} if self.history is None else {"history": self.history.to_dict()}
        return document(
            "popmodel/metrics/1",
            **compared,
            runs=list(self._runs(given)),
            scaling={
                "mode": scaling.mode,
                "reference": self.reports[scaling.reference].path,
                "why": scaling.why,
                "notes": scaling.doubts,
            },
            advice={
                "good": GOOD,
                "verdict": _NO_ADVICE,
                "doubts": [],
                "causes": [],
                "steepest_fall": None,
            },
        )

    def shown_document(self) -> dict[str, Any]:
        """The document with the families that the screen shows: those of TALP."""
        return self.to_dict(self.asked or self._families())

    def changes(self, id: str) -> Sequence[tuple[str, ValueChange]]:
        """Changes of a value against earlier reports, with the configuration."""
        if self.history is None:
            return super().changes(id)
        return self.history.changes(self.find(id)[0].id)

    def _families(self) -> tuple[str, ...]:
        """Those that the reports have values of."""
        own = [family for report in self.reports for family in self._of(report).metrics]
        return tuple(family for family in (TALP, OF_DEVICES) if family in own)

    def values(self) -> list[ResultValue]:
        """Runtimes and efficiencies of all runs, those of TALP first."""
        found = []
        runs = self.to_dict()["runs"]
        names = run_names([run["trace"] for run in runs])
        for name, run in zip(names, runs, strict=True):
            where = name if len(runs) > 1 else ""
            found.append(ResultValue("runtime", run["runtime"], where))
            for family in dict.fromkeys([*(self.asked or (TALP,)), *run["metrics"]]):
                for metric in load_families()[family].metrics:
                    value = run["metrics"][family].get(metric)
                    why = run["absent"][family].get(metric, "")
                    found.append(ResultValue(f"{family}.{metric}", value, where, why))
        return found

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the result rests on."""
        measured = () if self.measured is None else self.measured.files
        return (*measured, *(report.path for report in self.reports))

    def _of(self, report: TalpReport) -> TalpRegion:
        return report.region(self.region)

    def _runs(self, families: Sequence[str]) -> Iterator[dict[str, Any]]:
        """The reports as runs of the document."""
        for index, report in enumerate(self.reports):
            region = self._of(report)
            evaluation = None if self.scaling is None else self.scaling.evaluations[index]
            of = "" if self.region is None else f"of {region.name} "
            yield {
                "trace": report.path,
                "processes": region.processes,
                "threads": _threads(region),
                "family": TALP,
                "caveats": _caveats(report, of),
                "window": None,
                "disturbed": False,
                "waited": 0.0,
                **_measured(region, families, evaluation),
                **({"by_region": list(self._parts(report, families))} if self.by_region else {}),
                "observables": {
                    "runtime": region.runtime,
                    "threads": np.full(region.processes, _threads(region)),
                    "node": [],
                    "has_mpi": region.has_mpi,
                    "has_openmp": region.cpus > region.processes,
                    "regions": [],
                    "absent": {"ideal_runtime": _NO_REPLAY},
                },
                "lowest": {},
                "call_sites": [],
                "notes": [],
                "family_notes": {},
                "warnings": [],
                "outside_mpi": "everywhere",
            }

    def _parts(self, report: TalpReport, families: Sequence[str]) -> Iterator[dict[str, Any]]:
        """What TALP monitors inside the program."""
        own = [family for family in families if family != SCALING]
        for region in report.regions[1:]:
            nothing: dict[str, Any] = {"problem": None, "window": None, "caveats": [], "notes": []}
            yield {"region": region.name, **nothing, **_measured(region, own, None)}


def _caveats(report: TalpReport, of: str) -> list[str]:
    return [
        f"efficiencies {of}as {report.by} writes them, in two decimals; it has sums "
        "and no course of time: nothing is replayed"
    ]


def with_reports(
    reported: Sequence[str | os.PathLike[str]],
    traces: Sequence[TraceLike],
    keep: HistoryRequest | None,
    **options: Any,
) -> ReportedMetrics:
    """Reports of TALP beside traces, or alone; `options` are those of `metrics`."""
    from popmodel.cli.metrics import Metrics, metrics, run_index

    reports = tuple(read_talp(path) for path in reported)
    region, by = options["region"], options["by"]
    for name in ("window", "from_start", "foa"):
        if options[name]:
            raise UsageError(
                f"{name.replace('_', ' ')}: {reports[0].path} has no course of time",
                "leave it out, or the report of TALP",
            )
    if by == "process":
        raise UsageError(f"by: {reports[0].path} has no processes one by one", "try by region")
    for report in reports:
        report.region(region)  # says which regions there are
    family = options["family"]
    if traces and keep is not None:
        raise UsageError(
            f"--history: {reports[0].path} is a report of TALP, and others are traces",
            "add them by two commands",
        )
    if traces:
        measured = metrics(traces, **options)
        assert isinstance(measured, Metrics), "none of them is a report"
        return ReportedMetrics(reports, measured, region, family, by == "region")
    mode = None if options["scaling"] == "auto" else options["scaling"]
    names = run_names([report.path for report in reports])
    compared_with = options["reference"]
    if compared_with is not None:
        compared_with = run_index(str(compared_with), [report.path for report in reports], names)
    scaled = compare(reports, region, mode, compared_with)
    compared = None
    if keep is not None:
        parts = [report.region(region) for report in reports]
        compared = keep.compare(
            keep.report_line(name, report, part, _threads(part), _caveats(report, ""))
            for name, report, part in zip(names, reports, parts, strict=True)
        )
    return ReportedMetrics(reports, None, region, family, by == "region", scaled, compared)


def compare(
    reports: Sequence[TalpReport], region: str | None, mode: Mode | None, reference: int | None
) -> Scaling:
    """Compare reports of one program with one of them, by the useful time of all CPUs.

    Without global efficiency: TALP's parallel efficiency is not of all CPUs times the runtime.
    """
    runs = []
    for name, report in zip(run_names([one.path for one in reports]), reports, strict=True):
        part = report.region(region)
        sums = {
            "processes": float(part.processes),
            "threads": float(part.cpus),
            "runtime": part.runtime,
            **part.sums,
        }
        runs.append(Comparable(name, sums))
    return scale(runs, mode, reference)


def _measured(
    region: TalpRegion, families: Sequence[str], scaling: FamilyEvaluation | None
) -> dict[str, Any]:
    """Times and efficiencies of a region, and why others are absent."""
    metrics: dict[str, Mapping[str, float]] = {}
    absent: dict[str, Mapping[str, str]] = {}
    for id in families:
        if id == SCALING and scaling is not None:
            metrics[id], absent[id] = scaling.values, scaling.absent
            continue
        metrics[id] = region.metrics.get(id, {})
        why = _ALONE if id == SCALING else _NOT_REPORTED
        absent[id] = {name: why for name in load_families()[id].metrics if name not in metrics[id]}
    return {"runtime": region.runtime, "ideal_runtime": None, "metrics": metrics, "absent": absent}


def _threads(region: TalpRegion) -> int | list[int]:
    """CPUs of each process: one number, or one for each where they are not equal."""
    each, more = divmod(region.cpus, region.processes)
    return [each + (rank < more) for rank in range(region.processes)] if more else each
