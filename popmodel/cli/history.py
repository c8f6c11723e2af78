"""What ``metrics --history`` keeps of measured runs and of reports of TALP."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from popmodel.base.provenance import collect
from popmodel.base.units import plural
from popmodel.base.values import plain
from popmodel.runs.regression import RunHistory, compare_history, runtime_factors
from popmodel.runs.run_history import HistoryLine, append_history

if TYPE_CHECKING:
    from popmodel.efficiency.family import FamilyEvaluation
    from popmodel.efficiency.measure import MeasuredRun
    from popmodel.runs.talp_files import TalpRegion, TalpReport

_ROUNDING = 0.02  # of a product of efficiencies that have two decimals


class HistoryRequest:
    """What is asked for: the file, the label, the part of the runs, and the badge."""

    def __init__(
        self, path: str, label: str | None, part: str, badge: str | os.PathLike[str] | None
    ) -> None:
        self.path, self.label, self.part, self.badge = path, label, part, badge

    def compare(self, lines: Iterable[HistoryLine]) -> RunHistory:
        """Add runs, and compare them with those before."""
        new = list(lines)
        every, added = append_history(self.path, new)
        found = RunHistory(self.path, added, compare_history(every, new))
        if self.badge is not None:
            from popmodel.reports.history_tables import badge_text
            from popmodel.reports.result import save_text

            save_text(self.badge, badge_text(found.comparisons))
        return found

    @cached_property
    def _machine(self) -> str:
        from popmodel.machines.host import hardware

        host = hardware.here()
        return f"{host.model or 'unknown processor'}, {plural(len(host.online), 'CPU')}"

    def _line(self, path: str, **facts: Any) -> HistoryLine:
        stamp = plain(collect((), filter(os.path.isfile, [path])))
        label = stamp["time"] if self.label is None else self.label
        return HistoryLine(
            label=label,
            time=stamp["time"],
            machine=self._machine,
            part=self.part,
            provenance=stamp,
            **facts,
        )

    def run_line(
        self,
        name: str,
        run: MeasuredRun,
        families: Mapping[str, FamilyEvaluation],
        regions: Mapping[str, Mapping[str, Any]],
    ) -> HistoryLine:
        """A measured run with its metrics and its marked regions."""
        from popmodel.runs.same_program import program_names

        functions, calls = program_names(run)
        observed = run.observables
        teams = [int(threads) for threads in observed.threads]
        times = {region.name: region.wall / len(teams) for region in observed.regions}
        times |= {name: found["time"] / len(teams) for name, found in regions.items()}
        return self._line(
            run.trace,
            run=name,
            processes=len(teams),
            threads=teams[0] if len(set(teams)) == 1 else tuple(teams),
            calls=dict(sorted(calls.items())),
            functions=tuple(sorted(functions)),
            runtime=float(observed.runtime),
            factors=runtime_factors(observed.aggregates(), has_mpi=observed.has_mpi),
            metrics={
                family: found.values
                for family, found in families.items()
                if family != "scaling" and (found.values or not found.family.requires)
            },
            regions=times,
            call_sites={site.name: site.time / len(teams) for site in run.call_sites},
            caveats=run.caveats,
        )

    def report_line(
        self,
        name: str,
        report: TalpReport,
        region: TalpRegion,
        threads: int | list[int],
        caveats: Iterable[str],
    ) -> HistoryLine:
        """A region of a report of TALP, with the regions inside where it is the whole program."""
        inside = report.regions[1:] if region is report.regions[0] else ()
        return self._line(
            report.path,
            run=name,
            processes=region.processes,
            threads=threads if isinstance(threads, int) else tuple(threads),
            calls={},
            functions=(),
            runtime=region.runtime,
            factors=_talp_factors(region),
            metrics=region.metrics,
            regions={one.name: one.runtime for one in inside},
            call_sites={},
            caveats=tuple(caveats),
        )


def _talp_factors(region: TalpRegion) -> dict[str, float]:
    """The factors of the runtime of a report, as `runtime_factors`.

    Useful time and counters are sums of the report. What parallel efficiency is made of has two
    decimals: what rounding leaves goes to communication, so that the factors multiply to it.
    """
    values = region.metrics["talp"]
    cpu_time = region.cpus * region.runtime
    useful = region.sums.get("useful_sum", values.get("parallel_efficiency", 0.0) * cpu_time)
    found = runtime_factors(
        {"runtime": region.runtime, **region.sums, "useful_sum": useful,
         "useful_mean": useful / region.cpus},
        has_mpi=False,
    )  # fmt: skip
    total = found.get("parallel_efficiency")
    balance = values.get("mpi_load_balance", 0.0)
    between = values.get("mpi_communication_efficiency", 0.0)
    inside = values.get("openmp_parallel_efficiency", 1.0)
    product = balance * between * inside
    if region.has_mpi and total and product > 0 and abs(total / product - 1) <= _ROUNDING:
        found |= {
            "load_balance": balance,
            "communication": total / (balance * inside),
            "thread_efficiency": inside,
        }
    return found
