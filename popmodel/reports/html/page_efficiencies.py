"""Trees of efficiencies as a heat map: a column for each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from popmodel.base.units import count, format_time
from popmodel.efficiency.evaluation import shares
from popmodel.efficiency.explain import explain
from popmodel.efficiency.family import Family, FamilyEvaluation, FamilyLine
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.scaling import SCALING
from popmodel.reports import palette
from popmodel.reports.explanations import in_unit
from popmodel.reports.figures import describe_team, label, percent, run_names
from popmodel.reports.html.contents import Contents, Section
from popmodel.reports.notes import Reasons
from popmodel.reports.views import Document


def section(contents: Contents) -> Section | None:
    """The efficiencies of all runs, measured and predicted."""
    runs = columns(contents)
    families = [family for family in load_families().values() if _is_shown(family, runs)]
    if not families:
        return None
    chosen = _chosen(contents, runs, families)
    context = {
        "runs": [_head(run) for run in runs],
        "families": [
            {**_family(family, runs), "notes": _notes(contents, family)} for family in families
        ],
        "why_scaling": [
            one["scaling"]["why"] for one in contents.of("metrics") if len(one["runs"]) > 1
        ],
    }
    return Section("efficiencies", "Efficiencies", context, {"family": chosen})


def _is_shown(family: Family, runs: Sequence[PageColumn]) -> bool:
    """A run that is its own reference does not scale."""
    return any(run.metrics.get(family.id) for run in runs if run.compared or family.id != SCALING)


def _chosen(contents: Contents, runs: Sequence[PageColumn], families: Sequence[Family]) -> str:
    """The family that is shown first: the one that is advised by, or fits the largest run."""
    documents = contents.of("metrics")
    causes: list[str] = [cause["family"] for one in documents for cause in one["advice"]["causes"]]
    fitting = [run.family for run in sorted(runs, key=lambda run: -run.threads)]
    known = [family.id for family in families]
    wanted = [*(one for one in causes if one != SCALING), *fitting, *known]
    return next(id for id in wanted if id in known)


def _head(run: PageColumn) -> dict[str, Any]:
    about = run.split if run.kind == "measured" else f"{run.split}, {run.kind}"
    return {"name": run.name, "about": about, "runtime": run.runtime}


def _family(family: Family, runs: Sequence[PageColumn]) -> dict[str, Any]:
    reasons = Reasons()
    shares = [run.shares(family.id) for run in runs]
    trees = [
        {
            "heading": walk.heading,
            "rows": [
                _row(family, line, list(zip(runs, shares, strict=True)), reasons)
                for line in walk.rows
            ],
        }
        for walk in family.tree()
    ]
    return {
        "id": family.id,
        "title": family.title,
        "use": family.use,
        "source": family.source,
        "of": "device" if family.requires == "devices" else "thread",
        "unit": "ratio" if family.id == SCALING else "%",
        "trees": trees,
        "reasons": reasons.texts(),
        "explained": [
            {**_explained(family, metric), "costs": _costs(metric, runs, shares)}
            for metric in family.metrics
        ],
        "has_views": any(metric.view_of for metric in family.metrics.values()),
    }


def _notes(contents: Contents, family: Family) -> list[str]:
    """What a reader of the measured values should know, each once."""
    runs = [run for one in contents.of("metrics") for run in one["runs"]]
    said = [note for run in runs for note in run["family_notes"].get(family.id, ())]
    return list(dict.fromkeys(said))


def _row(
    family: Family,
    line: FamilyLine,
    runs: Sequence[tuple[PageColumn, Mapping[str, float]]],
    reasons: Reasons,
) -> dict[str, Any]:
    return {
        "number": list(family.metrics).index(line.metric),
        "name": label(family, line),
        "depth": line.depth,
        "cells": [_cell(run, family, line.metric, shares, reasons) for run, shares in runs],
    }


def _cell(
    run: PageColumn, family: Family, metric: str, shares: Mapping[str, float], reasons: Reasons
) -> dict[str, Any]:
    """What is shown of a metric of a run: its value, or the number of the reason why not."""
    found = run.metrics.get(family.id, {}).get(metric)
    if found is None:
        why = run.absent.get(family.id, {}).get(metric, "not computed for this run")
        return {"absent": reasons.mark(why)}
    ratio = family.id == SCALING
    lost = shares.get(metric)
    ends = [found[end] for end in ("low", "high") if found[end] is not None]
    return {
        "absent": None,
        "text": _written(found["value"], ratio=ratio),
        "interval": " .. ".join(_written(end, ratio=ratio) for end in ends if len(ends) == 2),
        "heat": None if ratio else palette.level(found["value"]),
        "lost": None if lost is None else _time(lost * run.runtime["value"]),
        "worst": run.lowest.get(family.id) == metric,
    }


def _written(value: float, *, ratio: bool) -> str:
    return f"{value:.3f}" if ratio else percent(value)


def _time(seconds: float) -> str:
    """A time that was lost; what rounds to nothing is nothing."""
    return "0 s" if abs(seconds) < 1e-9 else format_time(seconds, digits=3)


def _explained(family: Family, metric: str) -> dict[str, Any]:
    """A metric as ``popmodel docs`` tells of it; the tree shows its parts."""
    (known,) = explain(f"{family.id}.{metric}", {family.id: family})["definitions"]
    told = ("name", "meaning", "advice", "formula", "source")
    symbols = [(term["symbol"], term["meaning"] + in_unit(term["unit"])) for term in known["terms"]]
    return {"metric": metric, **{name: known[name] for name in told}, "where": symbols}


def _costs(metric: str, runs: Sequence[PageColumn], shares: Sequence[Mapping[str, float]]) -> str:
    """What a metric costs each run: time of each thread, and the share of all core time."""
    costs = [
        f"{_time(share[metric] * run.runtime['value'])} of each thread in {run.name} "
        f"({percent(share[metric])} %)"
        for run, share in zip(runs, shares, strict=True)
        if metric in share
    ]
    return ", ".join(costs)


_THREADED, _OF_MPI, _OF_DEVICES = "hybrid-additive", "mpi", "gpu-bsc"


class PageColumn(NamedTuple):
    """A run; values have the ends of their intervals, ``low`` and ``high``, where they have one."""

    name: str  # Tells it apart from others
    kind: str
    split: str  # Processes and threads: ``2 x 4``
    threads: int  # Threads of all processes
    runtime: Mapping[str, Any]  # Seconds
    metrics: Mapping[str, Mapping[str, Mapping[str, Any]]]  # By family and metric
    absent: Mapping[str, Mapping[str, str]]  # Why a metric has no value
    lowest: Mapping[str, str]  # By family, the metric in which it loses most
    compared: bool  # Whether it is compared with a reference run that is another one
    # The family that fits it: the one that is advised by, else by its threads; empty for none.
    family: str

    def shares(self, family: str) -> Mapping[str, float]:
        """What each metric of a family costs, as a share of threads x runtime."""
        if family not in self.metrics:
            return {}
        values = {name: one["value"] for name, one in self.metrics[family].items()}
        seen = 1.0
        if family == SCALING and values.get("computation_scaling"):
            seen = values["global_efficiency"] / values["computation_scaling"]
        return shares(FamilyEvaluation(load_families()[family], values, {}, ()), seen)


def columns(contents: Contents) -> list[PageColumn]:
    """The runs of all documents: measured ones in their order, then predicted ones."""
    measured = [(one, run) for one in contents.of("metrics") for run in one["runs"]]
    names = run_names([run["trace"] for _, run in measured])
    found = [
        _measured(document, run, name)
        for (document, run), name in zip(measured, names, strict=True)
    ]
    found += [_predicted(one) for one in contents.of("predict") if "projection" not in one]
    often, seen = Counter(column.name for column in found), Counter[str]()
    for at, column in enumerate(found):  # a number behind names that several have
        if often[column.name] > 1:
            seen[column.name] += 1
            found[at] = column._replace(name=f"{column.name} #{seen[column.name]}")
    return found


def _measured(document: Document, run: Document, name: str) -> PageColumn:
    threads = run["threads"]
    return PageColumn(
        name,
        "measured",
        f"{count(run['processes'])} x {describe_team(threads)}",
        run["processes"] * threads if isinstance(threads, int) else sum(threads),
        _exact(run["runtime"]),
        {
            family: {name: _exact(value) for name, value in values.items()}
            for family, values in run["metrics"].items()
        },
        run["absent"],
        {family: one["metric"] for family, one in run["lowest"].items()},
        len(document["runs"]) > 1,
        _fitting(document, run),
    )


def _exact(value: float) -> dict[str, Any]:
    return {"value": value, "low": None, "high": None}


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
        document["runtime"],
        document["metrics"],
        document["absent"],
        {_THREADED: document["limits"]} if document.get("limits") else {},
        True,
        _THREADED if _THREADED in document["metrics"] else "",
    )
