"""What the columns of a table of runs mean: by their names, and the units behind these."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, TypeAlias

from popmodel.efficiency.aggregates import AGGREGATES
from popmodel.efficiency.hierarchy import load_families
from popmodel.errors import did_you_mean
from popmodel.runs.place import Place
from popmodel.units import TIME_UNITS
from popmodel.values import dataclass

COLUMNS = ("processes", "threads", "runtime")
"""Columns that every table has."""
INFORMATION = (
    *("run", "repeat", "job", "job_id", "date", "time", "host", "comment", "note"),
    *("popmodel", "command"),
)
"""Columns that say something about a run without setting anything, whatever is in them."""
REMARK = "#"
"""What the name of any other column of numbers begins with that sets nothing."""
MAIN_FAMILY = "hybrid-additive"
"""The family of metrics that are named without one."""
AGGREGATE = "aggregates"
"""Stands before the name of a quantity that metrics are computed from, as a family does."""

What: TypeAlias = Literal["size", "runtime", "parameter", "metric", "aggregate", "nothing"]

_BRACKETS = re.compile(r"(?P<name>.*\S)\s*(?:\[(?P<square>[^][]*)\]|\((?P<round>[^()]*)\))")
_SUFFIX = re.compile(r"(?P<name>runtime)_(?P<unit>[A-Za-zµμ]+)")
_PERCENT = "%"


@dataclass(frozen=True)
class Column:
    """What a column of a table means."""

    head: str  # What stands above it
    # ``size`` (processes or threads), ``runtime``, ``parameter``, ``metric``, ``aggregate``, or
    # ``nothing``.
    what: What
    name: str  # Of the parameter, the metric or the quantity, without unit and family
    family: str = ""  # Of a metric
    # Given behind the name: of times one of `popmodel.units.TIME_UNITS`, of metrics ``%``.
    unit: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The same for columns that mean the same, whatever their units."""
        return self.family or self.what, self.name

    @property
    def is_time(self) -> bool:
        """Whether its values are times."""
        if self.what == "aggregate":
            return AGGREGATES[self.name].unit == "s"
        return self.what == "runtime"


def column(head: str, parameters: Iterable[str], place: Place) -> Column:
    """Read what stands above a column."""
    if head in COLUMNS[:2]:
        return Column(head, "size", head)
    if head in parameters:
        return Column(head, "parameter", head)
    if head in INFORMATION or head.startswith(REMARK) or not head:
        return Column(head, "nothing", head)
    name, unit = unit_of(head)
    if name == "runtime":
        return Column(head, "runtime", name, unit=_unit(name, unit, TIME_UNITS, place))
    family, dot, own = name.rpartition(".")
    if family == AGGREGATE and own in AGGREGATES and own not in COLUMNS:
        seconds = AGGREGATES[own].unit == "s"
        units: Iterable[str] = TIME_UNITS if seconds else (AGGREGATES[own].unit,)
        return Column(head, "aggregate", own, unit=_unit(name, unit, units, place))
    families = load_families()
    known = families[family or MAIN_FAMILY].metrics if family in ("", *families) else {}
    if own in known:
        unit = _unit(name, unit, (_PERCENT, "1"), place)
        return Column(head, "metric", own, family or MAIN_FAMILY, unit if unit != "1" else None)
    if dot and family in (*families, AGGREGATE):
        among = (
            known if family in families else [each for each in AGGREGATES if each not in COLUMNS]
        )
        hint = did_you_mean(own, among, "popmodel explain lists them")
        raise place.error(f"column {head!r}: {family} has no {own!r}", hint)
    return Column(head, "nothing", head)


def unit_of(head: str) -> tuple[str, str | None]:
    """The name and the unit in what stands above a column: ``runtime [ms]``, ``runtime_ms``."""
    match = _SUFFIX.fullmatch(head) or _BRACKETS.fullmatch(head)
    if match is None:
        return head, None
    units = [text.strip() for key, text in match.groupdict().items() if key != "name" and text]
    return match["name"], units[0] if units else ""


def _unit(name: str, unit: str | None, known: Iterable[str], place: Place) -> str | None:
    if unit is None or unit in known:
        return unit
    units = ", ".join(dict.fromkeys(each.replace("μ", "µ") for each in known))
    raise place.error(f"column {name!r} has the unit {unit!r}", f"units of it are {units}")
