"""What differs between two measured runs, and what makes the one longer.

The runtime is useful time of all threads over threads and parallel efficiency, which families of
metrics divide into factors; useful time is instructions over IPC and frequency. So the runtimes of
two runs differ by a product of ratios, and their difference is a sum: the logarithm of each ratio
times the logarithmic mean of both runtimes (the logarithmic mean Divisia index; B. W. Ang, The LMDI
approach to decomposition analysis: a practical guide, Energy Policy 33, 2005). Nothing is left
over, and to exchange the runs exchanges the signs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from popmodel.base.units import count, format_size, format_time, plural, time_if_any
from popmodel.base.values import dataclass
from popmodel.efficiency.evidence import site_name
from popmodel.efficiency.hierarchy import load_families
from popmodel.reports.blocks import (
    BarBlock,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableRow,
    heads,
    notes,
    texts,
)
from popmodel.reports.figures import run_names
from popmodel.reports.views import Document

if TYPE_CHECKING:
    from popmodel.efficiency.family import Family

_SERIAL, _HYBRID = "mpi", "hybrid-multiplicative"
_TOLERANCE = 1e-6
"""Relative difference up to which the factors of a run are taken to make its runtime."""


class ComparedKind(StrEnum):
    """How a quantity is written."""

    TIME = "time"
    COUNT = "count"
    RATIO = "ratio"
    FREQUENCY = "frequency"
    EFFICIENCY = "efficiency"
    NUMBER = "number"
    SIZE = "size"


@dataclass(frozen=True)
class ComparedMeasurement:
    """What is compared of a run."""

    name: str  # Of the run, and of no other one
    run: Mapping[str, Any]  # Its entry in the document of the metrics
    sensitivity: Document | None = None  # The document of its sensitivity, where there is one
    communication: Document | None = None  # The document of its communication, where there is one

    @property
    def runtime(self) -> float:
        """Runtime, s."""
        return float(self.run["runtime"])

    @property
    def threads(self) -> int:
        """Threads of all processes."""
        return sum(self.run["observables"]["threads"])

    @property
    def computing(self) -> dict[str, float] | None:
        """Mean time of a rank in regions and between calls, s; None where it is not known."""
        if self.sensitivity is None:
            return None
        found: dict[str, float] = {}
        for one in self.sensitivity["regions"]:
            found[one["name"]] = found.get(one["name"], 0.0) + one["time"]
        return found

    @property
    def listed_in_full(self) -> bool:
        """Whether `computing` has all of them; else the largest."""
        return self.sensitivity is not None and not self.sensitivity["other_regions"]["regions"]

    @property
    def calls(self) -> dict[str, float]:
        """Mean time of a thread in the calls of each place, s."""
        found: dict[str, float] = {}
        for site in self.run["call_sites"]:
            name = site_name(site["call"], site["function"], site["place"])
            found[name] = found.get(name, 0.0) + site["time"] / self.threads
        return found


@dataclass(frozen=True)
class ComparedFactor:
    """A factor of the runtime."""

    name: str  # What it is
    kind: ComparedKind  # How its values are written
    sign: int  # 1 if the runtime rises with it, -1 if it falls
    values: tuple[float, ...]  # Of each run


@dataclass(frozen=True)
class ComparedAmount:
    """How much of something runs do."""

    name: str  # What it is
    kind: ComparedKind  # How it is written
    values: tuple[float | None, ...]  # Of each run; None where it is not known


def measured(
    metrics: Sequence[Document],
    sensitivities: Sequence[Document] = (),
    communications: Sequence[Document] = (),
) -> list[ComparedMeasurement]:
    """The runs of some documents, with what is known of the regions and messages of each.

    What several documents tell of one and the same part of a run, as by process and by region, is
    one run. Where a trace was analysed several times, the first analysis belongs to the first one.
    """
    told: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for run in (run for one in metrics for run in one["runs"]):
        window = run["window"] or {}
        told.setdefault((run["trace"], run["runtime"], window.get("begin"), window.get("end")), run)
    runs = list(told.values())
    names = run_names([run["trace"] for run in runs])
    of_regions, of_messages = _by_trace(sensitivities), _by_trace(communications)
    return [
        ComparedMeasurement(
            name, run, next(of_regions[run["trace"]], None), next(of_messages[run["trace"]], None)
        )
        for name, run in zip(names, runs, strict=True)
    ]


def _by_trace(documents: Sequence[Document]) -> dict[str, Iterator[Document]]:
    """The documents of each trace, one after the other; none of any other one."""
    found: defaultdict[str, Iterator[Document]] = defaultdict(lambda: iter(()))
    for trace in {one["trace"] for one in documents}:
        found[trace] = iter([one for one in documents if one["trace"] == trace])
    return found


def reference(metrics: Sequence[Document], runs: Sequence[ComparedMeasurement]) -> int:
    """The run that others are compared with: that of the scaling, of several documents the
    first.
    """
    if len(metrics) > 1:
        return 0
    return [one.run["trace"] for one in runs].index(metrics[0]["scaling"]["reference"])


def amounts(runs: Sequence[ComparedMeasurement]) -> list[ComparedAmount]:
    """How much the runs compute, wait and send, as far as it is known of one of them at least."""
    columns = list(zip(*map(_amounts, runs), strict=True))
    return [
        ComparedAmount(name, kind, values)
        for (name, kind), values in zip(_AMOUNTS, columns, strict=True)
        if any(value is not None for value in values)
    ]


_AMOUNTS = (
    ("Useful time of all threads", ComparedKind.TIME),
    ("Time in MPI of all threads", ComparedKind.TIME),
    ("MPI calls", ComparedKind.NUMBER),
    ("Messages", ComparedKind.NUMBER),
    ("Bytes in messages", ComparedKind.SIZE),
    ("Mean size of messages", ComparedKind.SIZE),
)


def _amounts(one: ComparedMeasurement) -> tuple[float | None, ...]:
    observables, sent = one.run["observables"], one.communication
    messages = None if sent is None else sent["messages"]
    size = None if sent is None else sent["bytes"]
    return (
        math.fsum(observables["useful"]),
        math.fsum(observables["in_mpi"]),
        sum(site["count"] for site in one.run["call_sites"]),
        messages,
        size,
        size / messages if messages and size is not None else None,
    )


def factors(runs: Sequence[ComparedMeasurement]) -> list[ComparedFactor]:
    """Factors of the runtime that all runs have, as many as there are.

    Their product, each to the power of its sign, is the runtime of each run. The parallel
    efficiency is divided as the family of multiplicative metrics does that fits the runs. There is
    none where a run computes nothing.
    """
    useful = tuple(math.fsum(one.run["observables"]["useful"]) for one in runs)
    if not all(useful) or not all(one.runtime for one in runs):
        return []
    threads = tuple(float(one.threads) for one in runs)
    return [
        *_computation(runs, useful),
        ComparedFactor("Threads", ComparedKind.NUMBER, -1, threads),
        *_efficiencies(runs, useful, threads),
    ]


def _computation(
    runs: Sequence[ComparedMeasurement], useful: tuple[float, ...]
) -> list[ComparedFactor]:
    """Useful time; where all runs have counters, what makes it."""
    sums = {
        name: tuple(math.fsum(one.run["observables"][name] or ()) for one in runs)
        for name in ("instructions", "cycles")
    }
    instructions, cycles = sums["instructions"], sums["cycles"]
    if not all(map(all, sums.values())):
        return [ComparedFactor("Useful time of all threads", ComparedKind.TIME, 1, useful)]
    ipc = tuple(a / b for a, b in zip(instructions, cycles, strict=True))
    frequency = tuple(a / b for a, b in zip(cycles, useful, strict=True))
    return [
        ComparedFactor("Useful instructions", ComparedKind.COUNT, 1, instructions),
        ComparedFactor("Instructions per cycle", ComparedKind.RATIO, -1, ipc),
        ComparedFactor("Clock frequency", ComparedKind.FREQUENCY, -1, frequency),
    ]


def _efficiencies(
    runs: Sequence[ComparedMeasurement], useful: tuple[float, ...], threads: tuple[float, ...]
) -> list[ComparedFactor]:
    """The parallel efficiency, divided as far as all runs tell."""
    whole = tuple(
        work / (number * one.runtime)
        for one, work, number in zip(runs, useful, threads, strict=True)
    )
    plain = ComparedFactor("Parallel efficiency", ComparedKind.EFFICIENCY, -1, whole)
    several = any(max(one.run["observables"]["threads"]) > 1 for one in runs)
    family = load_families()[_HYBRID if several else _SERIAL]
    values = [one.run["metrics"].get(family.id, {}) for one in runs]
    parts = _parts(family, family.top, values)
    products = [math.prod(each.get(part, math.nan) for part in parts) for each in values]
    if not all(
        math.isclose(product, value, rel_tol=_TOLERANCE)
        for product, value in zip(products, whole, strict=True)
    ):
        return [plain]
    return [
        ComparedFactor(
            family.metrics[part].name,
            ComparedKind.EFFICIENCY,
            -1,
            tuple(each[part] for each in values),
        )
        for part in parts
    ]


def _parts(family: Family, metric: str, values: Sequence[Mapping[str, float]]) -> list[str]:
    """Metrics whose product a metric is, that all runs have, the smallest ones."""
    for one in family.decompositions:
        if one.parent == metric and one.operation == "product":
            if all(each.get(part, 0.0) > 0 for each in values for part in one.parts):
                return [leaf for part in one.parts for leaf in _parts(family, part, values)]
            return [metric]
    return [metric]


def effects(
    found: Sequence[ComparedFactor], runs: Sequence[ComparedMeasurement], base: int, other: int
) -> list[float]:
    """What each factor makes of the difference of two runtimes."""
    before, after = runs[base].runtime, runs[other].runtime
    ratio = after / before
    # The logarithmic mean of two numbers that are alike is each of them.
    mean = before if ratio == 1 else (after - before) / math.log(ratio)
    return [mean * one.sign * math.log(one.values[other] / one.values[base]) for one in found]


_SHOWN = 12  # places of a table
_CAUSES = 3  # that the sentence names
_SMALL = 0.005  # share of the runtime from which a cause is named
_ALIKE = 5e-4  # share of the runtime that is printed as 0.1 % at least


def comparison_blocks(
    metrics: Sequence[Document],
    sensitivities: Sequence[Document] = (),
    communications: Sequence[Document] = (),
) -> list[Section]:
    """The reference run beside the largest other one, and all runs against it; empty for one."""
    runs = measured(metrics, sensitivities, communications)
    if len(runs) < 2:
        return []
    base = reference(metrics, runs)
    others = [number for number in range(len(runs)) if number != base]
    other = max(others, key=lambda number: runs[number].threads)
    pair = runs[base], runs[other]
    columns = [one.name for one in pair]
    sections: list[Section] = [(NoteBlock(comparison_sentence(*pair), Role.VERDICT),)]
    if rows := tuple(_causes(*pair)):
        names = heads([*columns, "effect on the runtime", "%", ""])
        words = (
            "The runtime is work over threads, speed and efficiencies. An effect is the logarithm "
            "of the ratio of a factor in both runs, times the logarithmic mean of both runtimes."
        )
        table = TableBlock(names, rows, first="what makes the difference")
        sections.append((table, NoteBlock(words, Role.REMARK)))
    if len(runs) > 2:
        sections.append((_against(runs, base, others),))
    rows = tuple(_changes(amounts(runs), base, other))
    sections.append((TableBlock(heads([*columns, "change"]), rows, first="work"),))
    in_full = all(one.listed_in_full for one in pair)
    computing, calls = ([one.computing for one in pair], [one.calls for one in pair])
    sections += [
        _place_section("computing, mean of ranks", columns, computing, in_full=in_full),
        _place_section("MPI calls, mean of threads", columns, calls, in_full=True),
    ]
    return sections


def _place_section(
    title: str,
    columns: Sequence[str],
    times: Sequence[Mapping[str, float] | None],
    *,
    in_full: bool,
) -> Section:
    """Times in places of two runs, where both tell; empty without any."""
    one, two = times
    if one is None or two is None or not (one or two):
        return ()
    rows = tuple(_places(one, two, in_full=in_full))
    table = TableBlock(heads([*columns, "difference"]), rows, first=title)
    unlisted = "-: not among the largest of that run, which are listed"
    return (table, *notes([] if in_full else [unlisted], Role.REMARK))


def comparison_sentence(base: ComparedMeasurement, other: ComparedMeasurement) -> str:
    """Say how the runtime changes, and what makes most of it."""
    before, after = base.runtime, other.runtime
    change = after - before
    times = f"{format_time(after)} against {format_time(before)}"
    if abs(change) < _ALIKE * before:
        said = f"{other.name} takes as long as {base.name}: {times}."
    else:
        size = f"{format_time(abs(change), digits=3)} ({100 * abs(change) / before:.1f} %)"
        more = "longer" if change > 0 else "less"
        said = f"{other.name} takes {size} {more} than {base.name}: {times}."
    named = [
        f"{one.name}, {_written(one.kind, one.values[0])} to "
        f"{_written(one.kind, one.values[1])} ({_signed(effect)})"
        for one, effect in _ordered(base, other)[:_CAUSES]
        if abs(effect) >= _SMALL * before
    ]
    return f"{said} Largest causes: {'; '.join(named)}." if named else said


def _ordered(
    base: ComparedMeasurement, other: ComparedMeasurement
) -> list[tuple[ComparedFactor, float]]:
    """Factors of two runs and their effects, the largest first."""
    found = factors([base, other])
    made = effects(found, (base, other), 0, 1)
    return sorted(zip(found, made, strict=True), key=lambda pair: -abs(pair[1]))


def _causes(base: ComparedMeasurement, other: ComparedMeasurement) -> Iterator[TableRow]:
    made = _ordered(base, other)
    largest = max((abs(effect) for _, effect in made), default=0.0) or 1.0
    for one, effect in made:
        values = [_written(one.kind, value) for value in one.values]
        figures = texts([*values, _signed(effect), _points(effect / base.runtime)])
        yield TableRow(one.name, (*figures, BarBlock(abs(effect) / largest)))


def _changes(sums: Sequence[ComparedAmount], base: int, other: int) -> Iterator[TableRow]:
    for one in sums:
        before, after = one.values[base], one.values[other]
        change = f"{_points((after - before) / before)} %" if before and after is not None else "-"
        values = [_written(one.kind, value) for value in (before, after)]
        yield TableRow(one.name, texts([*values, change]))


def _places(
    one: Mapping[str, float], two: Mapping[str, float], *, in_full: bool
) -> Iterator[TableRow]:
    """Places with the largest differences first."""

    def difference(name: str) -> float | None:
        if (name not in one or name not in two) and not in_full:
            return None
        return two.get(name, 0.0) - one.get(name, 0.0)

    def size(name: str) -> float:
        apart = difference(name)
        return abs(apart) if apart is not None else one.get(name) or two[name]

    names = sorted(dict.fromkeys([*one, *two]), key=size, reverse=True)
    for name in names[:_SHOWN]:
        apart = difference(name)
        cells = [
            time_if_any(one.get(name)),
            time_if_any(two.get(name)),
            "-" if apart is None else _signed(apart),
        ]
        yield TableRow(name, texts(cells))
    if left := names[_SHOWN:]:
        before, after = (math.fsum(each.get(name, 0.0) for name in left) for each in (one, two))
        change = _signed(after - before) if in_full else "-"
        label = plural(len(left), "more place")
        yield TableRow(label, texts([time_if_any(before), time_if_any(after), change]))


def _against(runs: Sequence[ComparedMeasurement], base: int, others: Sequence[int]) -> TableBlock:
    """All runs against one: the change of the runtime, and what each factor makes of it."""
    found = factors(runs)
    made = [effects(found, runs, base, number) for number in others]
    changes = [runs[number].runtime - runs[base].runtime for number in others]
    rows = [
        TableRow("runtime", texts(format_time(runs[number].runtime) for number in others)),
        TableRow("change", texts(map(_signed, changes))),
        TableRow("change, %", texts(_points(one / runs[base].runtime) for one in changes)),
    ]
    rows += [
        TableRow(one.name, texts(_signed(each[place]) for each in made), 1)
        for place, one in enumerate(found)
    ]
    columns = heads(runs[number].name for number in others)
    return TableBlock(columns, tuple(rows), first=f"all against {runs[base].name}")


def _written(kind: ComparedKind, value: float | None) -> str:
    return "-" if value is None else _WRITTEN[kind](value)


def _points(difference: float) -> str:
    text = f"{100 * difference:+.1f}"
    return "0.0" if float(text) == 0 else text


def _signed(seconds: float) -> str:
    return f"{'+' if seconds > 0 else ''}{format_time(seconds, digits=3)}"


_WRITTEN: Mapping[ComparedKind, Callable[[float], str]] = {
    ComparedKind.TIME: format_time,
    ComparedKind.COUNT: "{:.3e}".format,
    ComparedKind.RATIO: "{:.3f}".format,
    ComparedKind.FREQUENCY: lambda value: f"{value / 1e9:.3f} GHz",
    ComparedKind.EFFICIENCY: lambda value: f"{100 * value:.1f} %",
    ComparedKind.NUMBER: lambda value: count(int(value)),
    ComparedKind.SIZE: format_size,
}
