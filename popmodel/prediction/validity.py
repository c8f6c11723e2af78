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
from popmodel.model.run.reach import MEASURED, RUNS, Reach, measured_ranges, reaches
from popmodel.values import dataclass

INSIDE, EXTRAPOLATED, OUTSIDE = "inside", "extrapolated", "outside"


@dataclass(frozen=True)
class Validity:
    """Whether a prediction stays within what was measured."""

    # ``inside``, ``extrapolated`` or ``outside``; for a machine that was not measured the origin of
    # its quantities, ``preset`` or ``user``.
    status: str
    # Largest factor by which an argument is beyond its measured range; 1 inside, None for a machine
    # that was not measured.
    factor: float | None
    # What goes how far beyond which range, the farthest first; then what was not measured.
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


def assess(
    profile: Profile, placement: Placement, used: Iterable[Use], runs: Iterable[Reach] = ()
) -> Validity:
    """Compare what a prediction used with what was measured."""
    used = set(used)
    found = list(reaches(measured_ranges(profile), used, placement.nodes))
    beyond: dict[tuple[float, str, str, float], list[str]] = defaultdict(list)
    for one in (*found, *runs):
        if one.is_beyond:
            key = one.factor, one.argument, one.limit, one.trusted
            beyond[key] += [one.subject] if one.section != RUNS else []
    order = sorted(beyond, key=lambda key: -key[0] / key[3])
    reasons = [_reason(*key[:3], beyond[key]) for key in order]
    factor = max((key[0] for key in order), default=1.0)
    is_measured = any(one.argument != "nodes" for one in found)
    # values of a preset have no range; runs that calibrated a signature have one on any machine
    if any(key[0] > key[3] for key in order if is_measured or not beyond[key]):
        return Validity(OUTSIDE, factor, (*reasons, *_not_measured(profile, used)))
    if not is_measured:
        return Validity(profile.origin, None, tuple(reasons))
    reasons += _not_measured(profile, used)
    return Validity(EXTRAPOLATED if order else INSIDE, factor, tuple(reasons))


def _reason(factor: float, argument: str, limit: str, subjects: list[str]) -> str:
    text = f"{argument} a factor of {factor:.3g} {limit}"
    named = subjects and argument != "nodes"
    return f"{text}: {', '.join(subjects)}" if named else text


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
