"""How far a prediction goes beyond what was measured of the machine.

A law that was fitted to up to 8 threads says something about 16 threads, less about 64, and its
interval, which knows the spread of the fitted parameters only, nothing about whether the law still
holds. So what the model asked of every table is held against the range that was measured, and a
prediction that leaves it far behind has no interval.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from popmodel.machine.profile import Profile
from popmodel.model.run.measured import Shape
from popmodel.model.run.parameters import Use
from popmodel.model.run.placement import Placement
from popmodel.units import format_size
from popmodel.values import dataclass

INSIDE, EXTRAPOLATED, OUTSIDE = "inside", "extrapolated", "outside"
MEASURED = "measured"

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

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Validity:
    """Whether a prediction stays within what was measured.

    Attributes
    ----------
    status : str
        ``inside``, ``extrapolated`` or ``outside``; for a machine that was not measured the origin
        of its quantities, ``preset`` or ``user``.
    factor : float or None
        Largest factor by which an argument is beyond its measured range; 1 inside, None for a
        machine that was not measured.
    reasons : tuple of str
        What goes how far beyond which range, the farthest first; then what was not measured.
    """

    status: str
    factor: float | None
    reasons: tuple[str, ...]

    @property
    def has_interval(self) -> bool:
        """Whether the spread of the parameters still says something about the result."""
        return self.status != OUTSIDE

    @property
    def text(self) -> str:
        """The status in a few words, and the reasons."""
        words = {INSIDE: "within the measured range", OUTSIDE: "too far outside the measured range"}
        said = words.get(self.status, self.status)
        if self.factor is None:
            said = f"no measured range ({self.status} values)"
        return f"{said}: {'; '.join(self.reasons)}" if self.reasons else said


def assess(profile: Profile, placement: Placement, used: Iterable[Use]) -> Validity:
    """Compare what a prediction used with what was measured.

    Parameters
    ----------
    profile : Profile
        The machine.
    placement : Placement
        How many nodes are used.
    used : iterable of Use
        What the model asked of the profile, `Parameters.used`.
    """
    known = ranges(profile)
    asked = {*used, Use("topology", "nodes", float(placement.nodes))}
    beyond: dict[tuple[float, str, str], list[str]] = defaultdict(list)
    measured = False
    for use in sorted(asked):
        subject, found = use.subject, known.get((use.subject, use.argument))
        if found is None and use.subject.startswith("coll.") and use.argument == "processes":
            # made up of messages, which two processes exchange
            of_messages = any(table.startswith("net.") for table, _ in known)
            subject, found = f"messages of {use.subject}", (1.0, 2.0) if of_messages else None
        if found is None:
            continue
        measured = measured or use.argument != "nodes"
        factor, limit = _beyond(use, *found)
        if factor > 1 + _ROUNDING:
            beyond[factor, use.argument, limit].append(subject)
    order = sorted(beyond, key=lambda key: -key[0] / LIMITS[key[1]])
    reasons = [_reason(*key, beyond[key]) for key in order]
    if not measured:
        return Validity(profile.origin, None, tuple(reasons))
    reasons += _not_measured(profile, asked)
    factor = max((key[0] for key in order), default=1.0)
    if any(key[0] > LIMITS[key[1]] for key in order):
        return Validity(OUTSIDE, factor, tuple(reasons))
    return Validity(EXTRAPOLATED if order else INSIDE, factor, tuple(reasons))


def ranges(profile: Profile) -> dict[tuple[str, str], tuple[float, float]]:
    """Return the smallest and largest measured value of every argument.

    Parameters
    ----------
    profile : Profile
        The machine.

    Returns
    -------
    dict of (str, str) to (float, float)
        By table and argument, such as ``openmp.for`` and ``threads``; the number of nodes is a
        range of every profile, measured or not.
    """
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
            subject = Shape.of_row(row).subject(op)
            add(subject, "processes", row["P"], path)
            add(subject, "bytes", row["bytes"], path)
    found = {key: (min(numbers), max(numbers)) for key, numbers in values.items()}
    return found | {("topology", "nodes"): (1.0, float(profile.topology.nodes))}


def _beyond(use: Use, low: float, high: float) -> tuple[float, str]:
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


def _reason(factor: float, argument: str, limit: str, subjects: list[str]) -> str:
    text = f"{argument} a factor of {factor:.3g} {limit}"
    return text if argument == "nodes" else f"{text}: {', '.join(subjects)}"


def _not_measured(profile: Profile, asked: Iterable[Use]) -> list[str]:
    """Tables of another origin in a profile that is otherwise measured."""
    subjects: dict[str, set[str]] = defaultdict(set)
    for use in asked:
        origins = {
            quantity.origin
            for path, quantity in profile.quantities.items()
            if path.startswith((f"{use.table}.", f"{use.table}["))
        }
        if origins and MEASURED not in origins:
            subjects[" and ".join(sorted(origins))].add(use.table)
    return [
        f"{', '.join(sorted(names))} not measured ({origin})"
        for origin, names in sorted(subjects.items())
    ]
