"""Check a machine profile: types and units by the schema, then what the schema cannot say."""

from __future__ import annotations

import difflib
import itertools
import os
from collections.abc import Iterator, Mapping
from typing import Any

from popmodel.errors import FileError
from popmodel.machine import schema
from popmodel.machine.quantity import Quantity, read_quantity

# by what part, and what factor, the time may fall and rise from a size class to the next
CLASS_STEP = 0.25
CLASS_JUMP = 3.0


class ProfileError(FileError):
    """A machine profile is damaged or incomplete; without a hint it is told how to get another."""

    remedy = "correct it, or measure the machine again: popmodel bench"

    def __init__(
        self,
        path: str | os.PathLike[str],
        problem: str,
        *,
        line: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(path, problem, line=line, hint=hint or self.remedy)


class UnreadableProfile(ProfileError):
    """There is no machine profile, or none that may be read."""

    remedy = "name a profile that popmodel bench wrote, or a bundled one"


def check_document(document: Mapping[str, Any], path: str) -> dict[str, Quantity]:
    """Check a profile given as JSON types.

    Parameters
    ----------
    document : mapping
        The profile.
    path : str
        File that errors name.

    Returns
    -------
    dict of str to Quantity
        Every quantity by its path, such as ``memory.b1``.

    Raises
    ------
    ProfileError
        At the first thing that is wrong; the message names the key.
    """
    quantities = dict(_check(document, schema.PROFILE, "", path))
    for table in ("core.freq", "memory.by_cores"):
        _check_counts(document, table, path)
    _check_constructs(document, path)
    for tier in schema.TIERS:
        if tier in document.get("net", {}):
            _check_tier(document["net"][tier], quantities, f"net.{tier}", path)
    if "memory.bsat" in quantities:
        for needed in ("memory.b1", "memory.q"):
            if needed not in quantities:
                raise ProfileError(path, f"{needed} is missing, without which bsat tells nothing")
        if quantities["memory.bsat"].value < quantities["memory.b1"].value:
            raise ProfileError(path, "memory.bsat is below memory.b1")
    return quantities


def _check(
    entry: object, wanted: schema.Entry, key: str, path: str
) -> Iterator[tuple[str, Quantity]]:
    """Check an entry against the schema; give the quantities in it by their paths."""

    def wrong(problem: str, hint: str | None = None) -> ProfileError:
        return ProfileError(path, f"{key or 'the document'} {problem}", hint=hint)

    match wanted:
        case schema.Plain():
            return
        case schema.Optional(of=inner):
            if entry is not None:
                yield from _check(entry, inner, key, path)
        case schema.Number(unit=unit, zero=zero):
            try:
                yield key, read_quantity(entry, unit, zero=zero)
            except ValueError as error:
                raise wrong(str(error)) from None
        case schema.Exact(zero=zero):
            is_number = isinstance(entry, int | float) and not isinstance(entry, bool)
            if not is_number or not (entry > 0 or (zero and entry == 0)):  # type: ignore[operator]
                least = "of at least" if zero else "above"
                raise wrong(f"should be a number {least} 0, not {entry!r}")
        case schema.Count():
            if isinstance(entry, bool) or not isinstance(entry, int) or entry < 1:
                raise wrong(f"should be a whole number of at least 1, not {entry!r}")
        case schema.Text(choices=choices):
            if not isinstance(entry, str) or (choices and entry not in choices):
                expected = f"one of {', '.join(choices)}" if choices else "text"
                raise wrong(f"should be {expected}, not {entry!r}")
        case schema.Sequence(of=inner):
            if not isinstance(entry, list) or not entry:
                raise wrong("should be a list with at least one entry")
            for index, item in enumerate(entry):
                yield from _check(item, inner, f"{key}[{index}]", path)
        case schema.Named(of=inner):
            if not isinstance(entry, Mapping):
                raise wrong("should be a table")
            for name, item in entry.items():
                yield from _check(item, inner, f"{key}.{name}", path)
        case schema.Table(keys=keys, required=required):
            if not isinstance(entry, Mapping):
                raise wrong("should be a table")
            prefix = f"{key}." if key else ""
            for name in required:
                if name not in entry:
                    raise ProfileError(path, f"{prefix}{name} is missing")
            for name, item in entry.items():
                if name not in keys:
                    near = difflib.get_close_matches(name, keys, n=1)
                    hint = f"did you mean {prefix}{near[0]}?" if near else None
                    raise ProfileError(path, f"{prefix}{name} is not a known key", hint=hint)
                yield from _check(item, keys[name], f"{prefix}{name}", path)


def _check_counts(document: Mapping[str, Any], name: str, path: str) -> None:
    section, _, key = name.partition(".")
    table = document.get(section, {}).get(key)
    if table is None:
        return
    for entry in table:
        if not entry.isdecimal() or int(entry) < 1:
            raise ProfileError(
                path, f"{name}.{entry} should be named by a number of active cores, such as 1"
            )
    if not table:
        raise ProfileError(path, f"{name} is empty")


def _check_constructs(document: Mapping[str, Any], path: str) -> None:
    for name, entry in document.get("openmp", {}).items():
        threads, seconds = entry["T"], entry["seconds"]
        if len(threads) != len(seconds):
            raise ProfileError(
                path,
                f"openmp.{name} has {len(threads)} thread counts (T) "
                f"but {len(seconds)} entries in seconds",
            )
        if any(b <= a for a, b in itertools.pairwise(threads)):
            raise ProfileError(path, f"openmp.{name}.T should rise")


def _check_tier(
    tier: Mapping[str, Any], quantities: Mapping[str, Quantity], key: str, path: str
) -> None:
    """Size classes must rise, end without a bound, and meet at their bounds.

    Where messages cease to be eager, the protocol changes and the time may jump up.
    """
    classes: list[dict[str, Any]] = tier["classes"]
    switch = quantities.get(f"{key}.eager_threshold")
    bounds: list[Any] = [entry.get("upto") for entry in classes]
    if bounds[-1] is not None:
        raise ProfileError(path, f"{key}.classes: the last class should have no upto")
    if any(bound is None for bound in bounds[:-1]):
        raise ProfileError(path, f"{key}.classes: only the last class may have no upto")
    for index, bound in enumerate(bounds[:-1]):
        if index and bound <= bounds[index - 1]:
            raise ProfileError(path, f"{key}.classes[{index}].upto should be above the one before")
        here, above = (
            quantities[f"{key}.classes[{i}].alpha"].value
            + quantities[f"{key}.classes[{i}].beta"].value * bound
            for i in (index, index + 1)
        )
        if not may_follow(here, above, at_switch=switch is not None and bound == switch.value):
            raise ProfileError(
                path,
                f"{key}.classes[{index}] and [{index + 1}] do not meet at {bound} B: "
                f"{here:.3g} s and {above:.3g} s",
                hint="where classes meet the time may fall by a quarter and rise threefold, "
                "at the eager threshold by any factor",
            )


def may_follow(here: float, above: float, *, at_switch: bool) -> bool:
    """Tell whether a size class may begin with a time, given that with which the one below ends.

    The time of a message does not fall with its size: what falls by more than the error of two
    fits is a mistake. It rises in a step where the protocol changes and, by less, where messages
    outgrow a cache or a buffer.
    """
    if above < here:
        return above >= (1 - CLASS_STEP) * here
    return at_switch or above <= CLASS_JUMP * here
