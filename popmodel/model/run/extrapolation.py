"""What was measured of a machine, and how far beyond that the model asks.

A law that was fitted to up to 8 threads says something about 16 threads, and less about 64.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from popmodel.base.units import format_size
from popmodel.base.values import NamedTuple
from popmodel.machines.profile import Profile
from popmodel.model.run.collective_times import MeasuredShape
from popmodel.model.run.parameters import ParameterUse
from popmodel.model.uncertainty import TRUSTED

MEASURED = "measured"
RUNS = "runs"
"""Section of a reach beyond the runs that a signature was calibrated by."""

LIMITS: Mapping[str, float] = {
    "threads": 16.0,
    "cores": 16.0,
    "pairs": 16.0,
    "processes": 16.0,
    "nodes": 16.0,
    "bytes": 256.0,
}
"""How many times the largest measured value of an argument a law is trusted with an interval.

Four doublings, since the laws are in the logarithm of their arguments; more for messages, whose
time per byte has settled where the largest ones were measured.
"""

Ranges: TypeAlias = Mapping[tuple[str, str], tuple[float, float]]
"""Smallest and largest measured value by table and argument."""

_MESSAGES_OF = "messages of "
_ROUNDING = 1e-9


class Reach(NamedTuple):
    """Where a prediction asked for something that has a measured range."""

    # The table, and what varies in it.
    subject: str
    argument: str
    factor: float  # By which the value is outside the range; 1 inside
    limit: str  # The end of the range on that side, in words

    @property
    def section(self) -> str:
        """The section of the profile that the table is in, ``net`` for what messages make up."""
        return "net" if self.subject.startswith(_MESSAGES_OF) else self.subject.partition(".")[0]

    @property
    def is_beyond(self) -> bool:
        """Whether the value is outside the range."""
        return self.factor > 1 + _ROUNDING

    @property
    def distance(self) -> float:
        """0 inside, 1 where `LIMITS` ends, in between on a logarithmic scale."""
        return math.log(max(self.factor, 1.0)) / math.log(self.trusted)

    @property
    def trusted(self) -> float:
        """The factor up to which predictions have an interval."""
        return TRUSTED if self.section == RUNS else LIMITS[self.argument]


def reaches(ranges: Ranges, used: Iterable[ParameterUse], nodes: int) -> Iterator[Reach]:
    """Compare what a prediction used with what was measured, where that is known."""
    for use in sorted({*used, ParameterUse("topology", "nodes", float(nodes))}):
        subject, found = use.subject, ranges.get((use.subject, use.argument))
        if found is None and use.subject.startswith("coll.") and use.argument == "processes":
            # made up of messages, which two processes exchange
            of_messages = any(table.startswith("net.") for table, _ in ranges)
            subject, found = f"{_MESSAGES_OF}{use.subject}", (1.0, 2.0) if of_messages else None
        if found is not None:
            yield Reach(subject, use.argument, *_beyond(use, *found))


def beyond_runs(
    hull: Mapping[str, tuple[float, float]], values: Mapping[str, float]
) -> Iterator[Reach]:
    """Compare a prediction with the runs that its signature was calibrated by."""
    for name, (low, high) in hull.items():
        value = values[name]
        if value > high:
            yield Reach(RUNS, name, value / high, f"above the largest calibrated ({high:g})")
        elif value < low:
            yield Reach(RUNS, name, low / value, f"below the smallest calibrated ({low:g})")
        else:
            yield Reach(RUNS, name, 1.0, "")


def measured_ranges(profile: Profile) -> Ranges:
    """Return the smallest and largest measured value of every argument."""
    document = profile.document
    values: dict[tuple[str, str], list[float]] = defaultdict(list)

    def add(subject: str, argument: str, value: float, path: str) -> None:
        if path in profile.quantities and profile.quantities[path].origin == MEASURED:
            values[subject, argument].append(float(value))

    for section, table in (("core", "freq"), ("memory", "by_cores")):
        for count in document.get(section, {}).get(table, {}):
            add(f"{section}.{table}", "cores", int(count), f"{section}.{table}.{count}")
    for construct in profile.constructs():
        subject = f"openmp.{construct}"
        for index, count in enumerate(profile.thread_counts(construct)):
            add(subject, "threads", count, f"{subject}.seconds[{index}]")
    for tier in profile.tiers():
        subject = f"net.{tier}"
        for index, row in enumerate(document["net"][tier].get("table", ())):
            add(subject, "bytes", row["bytes"], f"{subject}.table[{index}].seconds")
        for index, row in enumerate(document["net"][tier].get("pairs", ())):
            add(subject, "pairs", row["pairs"], f"{subject}.pairs[{index}].bandwidth")
    for op, rows in document.get("coll", {}).items():
        for index, row in enumerate(rows):
            path = f"coll.{op}[{index}].seconds"
            subject = MeasuredShape.of_row(row).subject(op)
            add(subject, "processes", row["P"], path)
            add(subject, "bytes", row["bytes"], path)
    found = {key: (min(numbers), max(numbers)) for key, numbers in values.items()}
    return found | {("topology", "nodes"): (1.0, float(profile.topology.nodes))}


def _beyond(use: ParameterUse, low: float, high: float) -> tuple[float, str]:
    """By which factor a value is outside a range, and which end of the range on that side."""
    if use.argument == "nodes":
        return use.value / high, f"above those of the profile ({high:g})"
    if use.value > high:
        factor = use.value / max(high, 1.0)
        return factor, f"above the largest measured ({_shown(use.argument, high)})"
    # a message shorter than the shortest one measured costs what that one costs
    if use.value < low and use.argument != "bytes":
        return low / use.value, f"below the smallest measured ({_shown(use.argument, low)})"
    return 1.0, ""


def _shown(argument: str, value: float) -> str:
    return format_size(value, digits=3) if argument == "bytes" else f"{value:g}"
