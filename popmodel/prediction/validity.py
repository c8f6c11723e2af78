"""How far a prediction goes beyond what was measured of the machine.

What the model asked of every table is held against the range that was measured: the errors of its
laws grow with the distance (`popmodel.model.laws`), and a prediction that leaves the range far
behind has no interval.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from popmodel.machine.profile import Profile
from popmodel.model.run.parameters import Use
from popmodel.model.run.placement import Placement
from popmodel.model.run.reach import LIMITS, MEASURED, measured_ranges, reaches
from popmodel.values import dataclass

INSIDE, EXTRAPOLATED, OUTSIDE = "inside", "extrapolated", "outside"


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
    used = set(used)
    found = list(reaches(measured_ranges(profile), used, placement.nodes))
    beyond: dict[tuple[float, str, str], list[str]] = defaultdict(list)
    for one in found:
        if one.is_beyond:
            beyond[one.factor, one.argument, one.limit].append(one.subject)
    order = sorted(beyond, key=lambda key: -key[0] / LIMITS[key[1]])
    reasons = [_reason(*key, beyond[key]) for key in order]
    if all(one.argument == "nodes" for one in found):
        return Validity(profile.origin, None, tuple(reasons))
    reasons += _not_measured(profile, used)
    factor = max((key[0] for key in order), default=1.0)
    if any(key[0] > LIMITS[key[1]] for key in order):
        return Validity(OUTSIDE, factor, tuple(reasons))
    return Validity(EXTRAPOLATED if order else INSIDE, factor, tuple(reasons))


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
