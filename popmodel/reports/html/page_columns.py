"""Runs as columns of tables: those that were measured and those that are predicted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from popmodel.base.units import count
from popmodel.base.values import dataclass
from popmodel.efficiency.evaluation import shares
from popmodel.efficiency.family import FamilyEvaluation
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.scaling import COMPARABLE, SCALING
from popmodel.reports.figures import describe_team, run_names
from popmodel.reports.html.contents import Contents
from popmodel.reports.views import Document

_THREADED, _OF_MPI, _OF_DEVICES = "hybrid-additive", "mpi", "gpu-bsc"


@dataclass(frozen=True)
class PageValue:
    """A value; `low` and `high` are the ends of its interval where it has one."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class PageColumn:
    """A run."""

    name: str  # Tells it apart from others
    kind: str
    split: str  # Processes and threads: ``2 x 4``
    threads: int  # Threads of all processes
    runtime: PageValue  # Seconds
    metrics: Mapping[str, Mapping[str, PageValue]]  # By family and metric
    absent: Mapping[str, Mapping[str, str]]  # Why a metric has no value
    lowest: Mapping[str, str]  # By family, the metric in which it loses most
    compared: bool  # Whether it is compared with a reference run that is another one
    # Whether its computing is near enough to that of the runs beside it to be the same program's.
    comparable: bool
    # The family that fits it: the one that is advised by, else by its threads; empty for none.
    family: str

    @property
    def efficiency(self) -> PageValue | None:
        """Parallel efficiency, as the family that fits the run has it."""
        if not self.family:
            return None
        return self.metrics[self.family].get(load_families()[self.family].top)

    def shares(self, family: str) -> Mapping[str, float]:
        """What each metric of a family costs, as a share of threads x runtime."""
        if family not in self.metrics:
            return {}
        values = {name: one.value for name, one in self.metrics[family].items()}
        seen = 1.0
        if family == SCALING and values.get("computation_scaling"):
            seen = values["global_efficiency"] / values["computation_scaling"]
        return shares(FamilyEvaluation(load_families()[family], values, {}, ()), seen)


def columns(contents: Contents) -> tuple[PageColumn, ...]:
    """The runs of all documents: measured ones in their order, then predicted ones."""
    measured = [(one, run) for one in contents.of("metrics") for run in one["runs"]]
    names = run_names([run["trace"] for _, run in measured])
    found = [
        _measured(document, run, name)
        for (document, run), name in zip(measured, names, strict=True)
    ]
    found += [_predicted(one) for one in contents.of("predict") if "projection" not in one]
    return tuple(_numbered(found))


def _numbered(found: Sequence[PageColumn]) -> Iterator[PageColumn]:
    """The same with a number behind names that several have."""
    seen: dict[str, int] = {}
    names = [one.name for one in found]
    for one in found:
        seen[one.name] = number = seen.get(one.name, 0) + 1
        yield replace(one, name=f"{one.name} #{number}") if names.count(one.name) > 1 else one


def _measured(document: Document, run: Document, name: str) -> PageColumn:
    threads = run["threads"]
    return PageColumn(
        name,
        "measured",
        f"{count(run['processes'])} x {describe_team(threads)}",
        run["processes"] * threads if isinstance(threads, int) else sum(threads),
        PageValue(run["runtime"]),
        {
            family: {name: PageValue(value) for name, value in values.items()}
            for family, values in run["metrics"].items()
        },
        run["absent"],
        {family: one["metric"] for family, one in run["lowest"].items()},
        len(document["runs"]) > 1,
        _is_comparable(document),
        _fitting(document, run),
    )


def _is_comparable(document: Document) -> bool:
    scaling = [run["metrics"].get(SCALING, {}) for run in document["runs"]]
    if len({"speedup" in ratios for ratios in scaling}) > 1:  # some are of another program
        return False
    values = [ratios.get("computation_scaling") for ratios in scaling]
    return all(1 / COMPARABLE <= value <= COMPARABLE for value in values if value)


def _fitting(document: Document, run: Document) -> str:
    """The family of the first cause that is named, else the one that fits the threads.

    Where runs have families of their own, it is that.
    """
    advised = [cause["family"] for cause in document["advice"]["causes"]]
    if len({one.get("family") for one in document["runs"]}) > 1:
        advised = [run["family"]]
    usual = _THREADED if run["observables"]["has_openmp"] else _OF_MPI
    if run.get("devices"):
        usual = _OF_DEVICES
    known = [family for family in run["metrics"] if family != SCALING]
    return next((one for one in (*advised, usual, *known) if one in known), "")


def _predicted(document: Document) -> PageColumn:
    application = document["application"]["name"]
    split = f"{count(document['processes'])} x {document['threads']}"
    return PageColumn(
        f"{application} {split}",
        "predicted",
        split,
        document["processes"] * document["threads"],
        _value(document["runtime"]),
        {family: dict(_values(found)) for family, found in document["metrics"].items()},
        document["absent"],
        {_THREADED: document["limits"]} if document.get("limits") else {},
        True,
        True,
        _THREADED if _THREADED in document["metrics"] else "",
    )


def _values(found: Mapping[str, Any]) -> Iterator[tuple[str, PageValue]]:
    for name, one in found.items():
        yield name, _value(one)


def _value(one: Mapping[str, Any]) -> PageValue:
    return PageValue(one["value"], one["low"], one["high"])
