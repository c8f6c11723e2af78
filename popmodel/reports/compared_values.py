"""What differs between measured runs of one program, and what makes the one longer.

The runtime is useful time over threads and parallel efficiency, and both are products of the
factors of `popmodel.runs.regression`. So the runtimes of two runs differ by a product of ratios,
and their difference is a sum: the logarithm of each ratio times the logarithmic mean of both
runtimes (the logarithmic mean Divisia index; B. W. Ang, The LMDI approach to decomposition
analysis: a practical guide, Energy Policy 33, 2005). Nothing is left over, and to exchange the runs
exchanges the signs.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from popmodel.base.units import format_time, plural, time_if_any
from popmodel.efficiency.evidence import site_name
from popmodel.reports.blocks import (
    BarBlock,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableRow,
    heads,
    texts,
)
from popmodel.reports.figures import run_names
from popmodel.reports.history_tables import factor_text
from popmodel.reports.views import Document
from popmodel.runs.regression import FACTORS, finest_factors, runtime_factors

_SHOWN = 12  # calls of a table
_CAUSES = 3  # that the sentence names
_SMALL = 0.005  # share of the runtime from which a cause is named
_ALIKE = 5e-4  # share of the runtime that is printed as 0.1 % at least
_NAMES: Mapping[str, tuple[str, int]] = {**FACTORS, "threads": ("Threads", -1)}
_WORDS = (
    "The runtime is work over threads, speed and efficiencies. An effect is the logarithm of the "
    "ratio of a factor in both runs, times the logarithmic mean of both runtimes."
)


class RunFactors(NamedTuple):
    """A run, and the factors whose product, each to the power of its sign, its runtime is."""

    name: str
    runtime: float  # s
    factors: Mapping[str, float]  # By the names of `FACTORS`, and ``threads``
    calls: Mapping[str, float]  # Mean time of a thread in the calls of each place, s


def compared_runs(metrics: Sequence[Document]) -> list[RunFactors]:
    """The runs of some documents; what several tell of one part of a run is one run."""
    told: dict[tuple[Any, ...], Document] = {}
    for run in (run for one in metrics for run in one["runs"]):
        window = run["window"] or {}
        told.setdefault((run["trace"], run["runtime"], window.get("begin"), window.get("end")), run)
    names = run_names([run["trace"] for run in told.values()])
    return [
        RunFactors(name, run["runtime"], _factors(run), _calls(run))
        for name, run in zip(names, told.values(), strict=True)
    ]


def _factors(run: Document) -> dict[str, float]:
    observed = run["observables"]
    teams, threads = observed["threads"], math.fsum(observed["threads"])
    useful = math.fsum(observed["useful"])
    if not useful or not run["runtime"]:
        return {}
    outside = list(map(sum, zip(observed["serial_useful"], observed["in_openmp"], strict=True)))
    aggregates = {
        "runtime": run["runtime"],
        "useful_sum": useful,
        "useful_mean": useful / threads,
        "outside_mpi_max": max(outside),
        "outside_mpi_mean": sum(map(operator.mul, teams, outside)) / threads,
        "ideal_runtime": run["ideal_runtime"] or 0.0,
    }
    for name in ("instructions", "cycles"):
        if observed[name] and name not in observed["absent"]:
            aggregates[f"{name}_sum"] = math.fsum(observed[name])
    return {**runtime_factors(aggregates, has_mpi=observed["has_mpi"]), "threads": threads}


def _calls(run: Document) -> dict[str, float]:
    threads = math.fsum(run["observables"]["threads"])
    found: dict[str, float] = {}
    for site in run["call_sites"]:
        name = site_name(site["call"], site["function"], site["place"])
        found[name] = found.get(name, 0.0) + site["time"] / threads
    return found


def common_factors(runs: Sequence[RunFactors]) -> list[str]:
    """Factors of the runtime, as fine as all runs have them; none where a run computes nothing."""
    if not all(run.factors for run in runs):
        return []
    return [*finest_factors([run.factors for run in runs]), "threads"]


def effects(names: Sequence[str], base: RunFactors, other: RunFactors) -> dict[str, float]:
    """What each factor makes of the difference of two runtimes, s."""
    more = abs(other.runtime - base.runtime)
    # The logarithmic mean of two numbers that are alike is each of them.
    least = min(base.runtime, other.runtime)
    mean = more / math.log1p(more / least) if more else least
    return {
        name: mean * _NAMES[name][1] * math.log(other.factors[name] / base.factors[name])
        for name in names
    }


def comparison_blocks(metrics: Sequence[Document]) -> list[Section]:
    """The reference run beside the largest other one, and all runs against it; empty for one.

    The reference is that of the scaling, of several documents the first run.
    """
    runs = compared_runs(metrics)
    if len(runs) < 2:
        return []
    place = 0
    if len(metrics) == 1:
        traces = [run["trace"] for run in metrics[0]["runs"]]
        place = traces.index(metrics[0]["scaling"]["reference"])
    base, others = runs[place], runs[:place] + runs[place + 1 :]
    other = max(others, key=lambda run: run.factors.get("threads", 0))
    made = effects(common_factors([base, other]), base, other)
    ordered = dict(sorted(made.items(), key=lambda item: -abs(item[1])))
    said = NoteBlock(comparison_sentence(base, other, ordered), Role.VERDICT)
    sections: list[Section] = [(said,)]
    if ordered:
        largest = max(map(abs, ordered.values())) or 1.0
        rows = tuple(
            TableRow(
                _NAMES[name][0],
                (
                    *texts(factor_text(name, run.factors[name]) for run in (base, other)),
                    *texts([_signed(effect), _percent(effect / base.runtime)]),
                    BarBlock(abs(effect) / largest),
                ),
            )
            for name, effect in ordered.items()
        )
        columns = heads([base.name, other.name, "effect on the runtime", "%", ""])
        table = TableBlock(columns, rows, first="what makes the difference")
        sections.append((table, NoteBlock(_WORDS, Role.REMARK)))
    if len(others) > 1:
        sections.append((_against(base, others),))
    if base.calls or other.calls:
        sections.append((_call_table(base, other),))
    return sections


def comparison_sentence(base: RunFactors, other: RunFactors, made: Mapping[str, float]) -> str:
    """Say how the runtime changes, and what makes most of it, the largest first."""
    change = other.runtime - base.runtime
    times = f"{format_time(other.runtime)} against {format_time(base.runtime)}"
    if abs(change) < _ALIKE * base.runtime:
        said = f"{other.name} takes as long as {base.name}: {times}."
    else:
        size = f"{format_time(abs(change), digits=3)} ({100 * abs(change) / base.runtime:.1f} %)"
        more = "longer" if change > 0 else "less"
        said = f"{other.name} takes {size} {more} than {base.name}: {times}."
    named = [
        f"{_NAMES[name][0]}, {factor_text(name, base.factors[name])} to "
        f"{factor_text(name, other.factors[name])} ({_signed(effect)})"
        for name, effect in list(made.items())[:_CAUSES]
        if abs(effect) >= _SMALL * base.runtime
    ]
    return f"{said} Largest causes: {'; '.join(named)}." if named else said


def _against(base: RunFactors, others: Sequence[RunFactors]) -> TableBlock:
    """All runs against one: the change of the runtime, and what each factor makes of it."""
    names = common_factors([base, *others])
    made = [effects(names, base, other) for other in others]
    changes = [other.runtime - base.runtime for other in others]
    rows = [
        TableRow("runtime", texts(format_time(other.runtime) for other in others)),
        TableRow("change", texts(map(_signed, changes))),
        TableRow("change, %", texts(_percent(change / base.runtime) for change in changes)),
        *(
            TableRow(_NAMES[name][0], texts(_signed(each[name]) for each in made), 1)
            for name in names
        ),
    ]
    columns = heads(other.name for other in others)
    return TableBlock(columns, tuple(rows), first=f"all against {base.name}")


def _call_table(base: RunFactors, other: RunFactors) -> TableBlock:
    """Times in MPI calls, the largest differences first."""
    apart = {
        name: other.calls.get(name, 0.0) - base.calls.get(name, 0.0)
        for name in {**base.calls, **other.calls}
    }
    names = sorted(apart, key=lambda name: -abs(apart[name]))
    shown = [(name, [name]) for name in names[:_SHOWN]]
    if left := names[_SHOWN:]:
        shown.append((plural(len(left), "more place"), left))
    rows = []
    for label, some in shown:
        times = [math.fsum(run.calls.get(name, 0.0) for name in some) for run in (base, other)]
        difference = _signed(math.fsum(apart[name] for name in some))
        rows.append(TableRow(label, texts([*map(time_if_any, times), difference])))
    columns = heads([base.name, other.name, "difference"])
    return TableBlock(columns, tuple(rows), first="MPI calls, mean of threads")


def _percent(share: float) -> str:
    text = f"{100 * share:+.1f}"
    return "0.0" if float(text) == 0 else text


def _signed(seconds: float) -> str:
    return f"{'+' if seconds > 0 else ''}{format_time(seconds, digits=3)}"
