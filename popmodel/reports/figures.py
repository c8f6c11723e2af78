"""Figures as reports write them, names of runs, and efficiencies as trees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, TypeAlias

from popmodel.base.files import run_path
from popmodel.base.units import format_time
from popmodel.machines.quantity import Quantity
from popmodel.reports.blocks import TableCell, TableRow

if TYPE_CHECKING:
    from popmodel.efficiency.family import Family, FamilyLine


def percent(fraction: float, digits: int = 1) -> str:
    """A fraction in per cent without the sign: 0.8125 is ``81.2``."""
    return f"{100 * fraction:.{digits}f}"


def loses(efficiency: float) -> bool:
    """Whether an efficiency is below 100 % as it is printed."""
    return float(percent(efficiency)) < 100


def describe_team(threads: int | Sequence[int]) -> str:
    """Threads per process: ``4``, or ``1..4`` where processes differ."""
    if isinstance(threads, int):
        return str(threads)
    least, most = min(threads), max(threads)
    return str(least) if least == most else f"{least}..{most}"


def time_range(low: float, high: float) -> str:
    """From one time to another, the unit once if it is the same."""
    first, last = format_time(low, digits=3), format_time(high, digits=3)
    number, _, unit = first.partition(" ")
    return f"{number if last.endswith(f' {unit}') else first} .. {last}"


_SUFFIXES = (".gz", ".prv", ".otf2")


def run_names(paths: Sequence[str]) -> list[str]:
    """A name per run: the file without its suffix, with as many folders as tell the runs apart.

    An archive that is called as all are has the name of its directory. Runs of one path are
    numbered.

    Examples
    --------
    >>> run_names(["a/run.prv", "b/run.prv.gz"])
    ['a/run', 'b/run']
    """
    parts = [_stem(run_path(path)) for path in paths]
    names = [""] * len(paths)
    for index, own in enumerate(parts):
        others = [other for other in parts if other != own]
        depth = 1
        while depth < len(own) and any(other[-depth:] == own[-depth:] for other in others):
            depth += 1
        names[index] = "/".join(own[-depth:]).replace("//", "/")
    repeated = {name for name in names if names.count(name) > 1}
    seen: dict[str, int] = {}
    for index, name in enumerate(names):
        if name in repeated:
            seen[name] = seen.get(name, 0) + 1
            names[index] = f"{name} #{seen[name]}"
    return names


def _stem(path: PurePath) -> tuple[str, ...]:
    name = path.name
    for suffix in _SUFFIXES:
        if name.endswith(suffix) and len(name) > len(suffix):
            name = name[: -len(suffix)]
    return (*path.parts[:-1], name)


Cells: TypeAlias = "Callable[[FamilyLine], Sequence[TableCell] | None]"
"""The figures of a metric at its place in a tree; None where it is left out."""


def tree_rows(
    family: Family, lines: Iterable[FamilyLine], cells: Cells, marked: str | None = None
) -> tuple[TableRow, ...]:
    """Rows of a tree of metrics; the name of one may have a mark."""
    rows = []
    for line in lines:
        figures = cells(line)
        if figures is not None:
            sign = " <-" if line.metric == marked else ""
            rows.append(TableRow(label(family, line, sign), tuple(figures), line.depth))
    return tuple(rows)


def label(family: Family, line: FamilyLine, sign: str = "") -> str:
    """Name of a metric; that of another view of a loss stands in parentheses."""
    name = family.metrics[line.metric].name + sign
    return f"({name})" if line.view else name


def lifted(rows: Sequence[TableRow]) -> tuple[TableRow, ...]:
    """Rows of which the least deep has the depth 0: what is above may have no value."""
    least = min((row.depth for row in rows), default=0)
    return tuple(replace(row, depth=row.depth - least) for row in rows)


def efficiency(value: float, *, ratio: bool = False) -> TableCell:
    """A metric as a figure; a ratio to another run may be far above 1: it has no colour."""
    return TableCell(f"{value:.3f}") if ratio else TableCell(percent(value), value)


_SCALES: Mapping[str, tuple[tuple[str, float], ...]] = {
    "s": (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)),
    "B": (("B", 1.0), ("KiB", 2.0**10), ("MiB", 2.0**20), ("GiB", 2.0**30)),
    "B/s": (("B/s", 1.0), ("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9), ("TB/s", 1e12)),
    "s/B": (("ps/B", 1e-12), ("ns/B", 1e-9), ("us/B", 1e-6)),
    "Hz": (("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6), ("GHz", 1e9)),
}
_LEAST_FIGURE = 0.00995  # what is smaller has one digit beside figures that are not
_WRITTEN = {"1/cycle": "per cycle", "cycle": "cycles", "1": ""}


def value_text(quantity: Quantity, unit: str, digits: int = 3) -> str:
    """Value with three digits, or some, and the prefix that suits it: ``0.52 us``."""
    name, factor = _scale(_magnitude(quantity), unit)
    number = quantity.value / factor
    # a large number is written whole: 1020 B
    text = f"{number:.0f}" if abs(number) >= 10 ** (digits - 1) else f"{number:.{digits}g}"
    return f"{text} {name}".rstrip()


def interval_text(quantity: Quantity, unit: str) -> str:
    """Interval in the unit of the value, ``0.48 .. 0.60``; ``-`` where none is known."""
    if quantity.low is None or quantity.high is None:
        return "-"
    _, factor = _scale(_magnitude(quantity), unit)
    low, high = quantity.low / factor, quantity.high / factor
    if max(abs(low), abs(high)) < _LEAST_FIGURE:  # of a unit without prefixes
        return f"{low:.3g} .. {high:.3g}"
    return f"{figure(low)} .. {figure(high)}"


def percent_text(share: float) -> str:
    """A share as ``1.2 %``; what is nearer to 0 than a hundredth of a percent as that."""
    if 0 < abs(share) < 1e-4:
        return "below 0.01 %"
    return f"{figure(100 * share + 0.0)} %"  # -0.0 + 0.0 is 0.0


def figure(number: float) -> str:
    """A number with three digits, none behind the point from 100 on, fewer below a hundredth."""
    if abs(number) >= 99.95:
        return f"{number:.0f}"
    return f"{number:.3g}" if abs(number) >= _LEAST_FIGURE or not number else f"{number:.1g}"


def _magnitude(quantity: Quantity) -> float:
    """What the prefix of a unit is chosen by: the value, or its upper bound if it is 0."""
    return quantity.value or quantity.high or 0.0


def _scale(value: float, unit: str) -> tuple[str, float]:
    scales = _SCALES.get(unit)
    if scales is None:
        return _WRITTEN.get(unit, unit), 1.0
    # 999.6 us is written as 1 ms: the limit is that of the rounded figure.
    fitting = [scale for scale in scales if abs(value) >= 0.9995 * scale[1]]
    return fitting[-1] if fitting else scales[-1 if value == 0 and unit == "s" else 0]
