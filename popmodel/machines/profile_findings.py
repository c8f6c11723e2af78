"""What a reader of a machine profile should know before believing a prediction made with it.

A profile that loads is usable for something. Here is said for what not, what in it is doubtful, and
what of it the model does not use today.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from popmodel.base.values import NamedTuple, dataclass
from popmodel.machines.profile import ANY, Profile, lacking_part, measuring
from popmodel.machines.quantity import Quantity
from popmodel.machines.register import CONSTRUCTS, REGISTER, TIERS, find, unused

KINDS = ("missing", "failed", "noisy", "remark", "wide", "preset", "age", "unused")
"""Kinds of findings, what weighs most first."""

WIDE = 0.5
"""An interval is wide if it is longer than this part of the value."""

MOST = 10
"""Largest width of an interval, over its value, that is stated: beyond, the figure says no more."""

NEGLIGIBLE = 2e-8
"""Overheads that are known to these seconds are known well enough, whatever part that is."""

_LISTED = 4  # names in a finding at most

OLD_DAYS = 180
"""Days after which updates of system, MPI and compiler are likelier than not."""


class Need(NamedTuple):
    """Something that predictions ask of a profile."""

    # Alternatives; each is a set of paths, and a path stands for all that is below it.
    paths: tuple[tuple[str, ...], ...]
    purpose: str  # Which predictions need it


def _needs() -> Iterator[Need]:
    """What the register says that predictions need, with what does as well."""
    needed: dict[str, tuple[str, ...]] = {}
    for one in REGISTER:
        for path, purpose in one.needed.items():
            needed[purpose] = (*needed.get(purpose, ()), path)
    instead = {one.instead_of: (one.stem,) for one in REGISTER if one.instead_of}
    for purpose, paths in needed.items():
        yield Need((paths, instead[paths]) if paths in instead else (paths,), purpose)


NEEDS: tuple[Need, ...] = tuple(_needs())


@dataclass(frozen=True)
class ProfileFinding:
    """One thing worth knowing."""

    kind: str  # One of `KINDS`
    path: str  # Where in the profile
    text: str  # What it is, in words that stand alone


def inspect(profile: Profile, now: datetime | None = None) -> list[ProfileFinding]:
    """Say what is doubtful in a profile, what weighs most first."""
    found = [
        *_missing(profile),
        *_failed(profile),
        *_noisy(profile),
        *_wide(profile),
        *_not_measured(profile),
        *_assumed(profile),
        *_old(profile, now or datetime.now(UTC)),
        *_unused(profile),
    ]
    return sorted(found, key=lambda finding: KINDS.index(finding.kind))


def _missing(profile: Profile) -> Iterator[ProfileFinding]:
    for need in NEEDS:
        first = need.paths[0][0]
        if first.startswith("net.inter") and profile.topology.nodes == 1:
            continue  # nobody asks
        if first.startswith("net.intra") and profile.topology.cores_per_node == 1:
            continue
        if first.endswith("eager_threshold") and first.split(".")[1] not in profile.tiers():
            continue  # all of that is missing
        wanted = dict.fromkeys(need.paths[0])
        alone = (path for path in profile.assumed if not path.endswith(f".{ANY}"))
        assumed = wanted.keys() & map(lacking_part, alone)
        if not assumed and any(all(_has(profile, path) for path in paths) for paths in need.paths):
            continue
        for path in wanted:
            if path in assumed or not _has(profile, path):
                yield _lack(profile, need.purpose, path)


def _lack(profile: Profile, purpose: str, lacking: str) -> ProfileFinding:
    """What predictions need and the profile does not know, what is assumed, and what to do."""
    beginning = f"openmp.{ANY}." if lacking.startswith("openmp.") else None
    assumed = [
        path
        for path in profile.assumed
        if lacking_part(path) == lacking or (beginning and path.startswith(beginning))
    ]
    bounds = [profile.bounds(path) for path in assumed]
    if len(assumed) > 1:
        named = zip(assumed, bounds, strict=True)
        bounds = [f"{one.meaning} {ends}" for path, ends in named if (one := find(path))]
    meanwhile = f" (assumed meanwhile: {', '.join(bounds)})" if bounds else ""
    text = f"{purpose} need {lacking}{meanwhile}: {_remedy(profile, lacking)}"
    return ProfileFinding("missing", lacking, text)


def _remedy(profile: Profile, path: str) -> str:
    """Why something could not be measured, or how to get it."""
    command = measuring(profile, path)
    measure = f"measure it: {command}" if command else "add it to the profile, with its source"
    return profile.absent(path) or measure


def _has(profile: Profile, path: str) -> bool:
    if path == "topology.caches":
        return bool(profile.topology.caches)
    return path in profile.plain or any(_is_below(known, path) for known in profile.quantities)


def _is_below(path: str, above: str) -> bool:
    return path == above or path.startswith((f"{above}.", f"{above}["))


def _failed(profile: Profile) -> Iterator[ProfileFinding]:
    """Launches that were given up while the profile was measured, and what it lacks or doubts."""
    provenance = profile.document.get("provenance")
    measurements = provenance.get("measurements", []) if isinstance(provenance, Mapping) else []
    for measurement in measurements:
        for text in measurement.get("failures", []):
            yield ProfileFinding("failed", "provenance", str(text))
        for text in measurement.get("shortfalls", []):
            yield ProfileFinding("failed", "provenance", str(text))


def _noisy(profile: Profile) -> Iterator[ProfileFinding]:
    """Sections that were measured in noise, and what else is to be said of how one was measured."""
    for section, quality in profile.document.get("quality", {}).items():
        if not isinstance(quality, Mapping):
            continue
        why = quality.get("why") or []
        reason = "; ".join(map(str, why)) if isinstance(why, list) else str(why)
        if section in profile.noisy:
            text = f"{section}: noisy ({reason or 'no reason given'})"
            yield ProfileFinding("noisy", f"quality.{section}", text)
        elif reason:
            yield ProfileFinding("remark", f"quality.{section}", f"{section}: {reason}")


def _wide(profile: Profile) -> Iterator[ProfileFinding]:
    by_section: dict[str, list[tuple[float, str]]] = {}
    for path, quantity in profile.quantities.items():
        if _is_overhead_known(path, quantity):
            continue
        if (width := relative_width(quantity)) is not None and width > WIDE:
            by_section.setdefault(path.split(".")[0], []).append((width, path))
    for section, wide in by_section.items():
        width, path = max(wide)
        total = sum(_is_below(known, section) for known in profile.quantities)
        most = f"over {100 * MOST:.0f} %" if width > MOST else f"{100 * width:.0f} %"
        yield ProfileFinding(
            "wide",
            path,
            f"{section}: {len(wide)} of {total} intervals wider than {100 * WIDE:.0f} % of the "
            "value "
            f"(widest: {path}, {most})",
        )


def _is_overhead_known(path: str, quantity: Quantity) -> bool:
    """Whether this is the overhead of an OpenMP construct, known well enough in seconds."""
    if not re.match(r"openmp\.[^.]+\.seconds\[", path):
        return False
    if quantity.low is None or quantity.high is None:
        return False
    return quantity.high - quantity.low < NEGLIGIBLE


def relative_width(quantity: Quantity) -> float | None:
    """Length of the interval over the value; None where either is not there."""
    if quantity.low is None or quantity.high is None or quantity.value == 0:
        return None
    return (quantity.high - quantity.low) / quantity.value


def _not_measured(profile: Profile) -> Iterator[ProfileFinding]:
    for origin in ("preset", "user"):
        paths = [path for path, one in profile.quantities.items() if one.origin == origin]
        if not paths:
            continue
        which = "all values" if len(paths) == len(profile.quantities) else _listed(paths)
        where = "published or assumed" if origin == "preset" else "given by the user"
        yield ProfileFinding("preset", paths[0].split(".")[0], f"{where}, not measured: {which}")


def _assumed(profile: Profile) -> Iterator[ProfileFinding]:
    """What the model takes within wide bounds, of sections that the profile has."""
    for path in profile.assumed:
        known = find(path)
        if known is not None and known.needed:
            continue  # told as missing
        if path.partition(".")[0] in profile.document:
            text = f"{path} is assumed, {profile.bounds(path)}: {_remedy(profile, path)}"
            yield ProfileFinding("preset", path, text)
    others = sorted(set(CONSTRUCTS) - set(profile.constructs()))
    if others and _has(profile, "openmp.parallel_for"):  # else told as missing
        path = f"openmp.{others[0]}"
        bounds, why = profile.bounds(f"openmp.{ANY}.seconds"), _remedy(profile, path)
        yield ProfileFinding(
            "preset", path, f"openmp: {', '.join(others)} are assumed, {bounds}: {why}"
        )


def _old(profile: Profile, now: datetime) -> Iterator[ProfileFinding]:
    measured = measured_at(profile)
    if measured is not None and (days := (now - measured).days) > OLD_DAYS:
        yield ProfileFinding(
            "age",
            "provenance",
            f"measured {days} days ago: measure again if system, MPI or compiler changed",
        )


def measured_at(profile: Profile) -> datetime | None:
    """When the oldest part of a profile was measured; None where it does not say.

    Of a profile that no measurement of ours is behind, the time at which it was written.
    """
    provenance = profile.document.get("provenance")
    if not isinstance(provenance, Mapping):
        return None
    starts = [_moment(one.get("started")) for one in provenance.get("measurements", [])]
    known = [moment for moment in starts if moment is not None]
    return min(known) if known else _moment(provenance.get("time"))


def _moment(time: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(time) if isinstance(time, str) else None
    except ValueError:
        return None
    if moment is None:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _unused(profile: Profile) -> Iterator[ProfileFinding]:
    """What was measured for people and for later, by the reasons why the model does not use it."""
    plain = [one.stem for one in REGISTER if one.plain and profile.document.get(one.stem)]
    why_not = {path: unused(path) for path in (*profile.quantities, *plain)}
    reasons = [one.reason(tier) for one in REGISTER for tier in TIERS]
    for why in filter(None, dict.fromkeys(reasons)):
        if paths := [path for path, reason in why_not.items() if reason == why]:
            yield ProfileFinding("unused", _names(paths)[0], f"not used: {_listed(paths)} ({why})")


def _names(paths: Iterable[str]) -> list[str]:
    """Names of quantities; the entries of a list share one."""
    return sorted({re.sub(r"\[.*", "", path) for path in paths})


def _listed(paths: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    names = _names(paths)
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")
