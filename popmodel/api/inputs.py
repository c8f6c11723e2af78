"""What functions accept: names, paths or loaded objects; numbers, or text with a unit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from popmodel.errors import UsageError
from popmodel.trace import Trace, read

if TYPE_CHECKING:
    from popmodel.machine.profile import Profile
    from popmodel.model.run.placement import Allocation
    from popmodel.model.signature.program import Signature

Path: TypeAlias = "str | os.PathLike[str]"
TraceLike: TypeAlias = "Path | Trace"
SignatureLike: TypeAlias = "Path | Signature"
ProfileLike: TypeAlias = "Path | Profile"


def several(given: Any) -> list[Any]:
    """One thing, or several, as a list; a text is one thing."""
    if isinstance(given, str | os.PathLike) or not isinstance(given, Iterable):
        return [given]
    return list(given)


def path_of(trace: TraceLike) -> str:
    """Where a trace comes from."""
    return trace.path if isinstance(trace, Trace) else os.fspath(trace)


def trace_of(trace: TraceLike, *, application: int = 1, cache: bool = True) -> Trace:
    """Return a trace, read if it is a path; raises as `popmodel.trace.read`."""
    if isinstance(trace, Trace):
        return trace
    return read(trace, application=application, cache=cache)


def signature_of(application: SignatureLike | None) -> Signature:
    """Return a signature: loaded, read from a file, bundled (by name), or the default.

    Raises
    ------
    FileError
        If the file cannot be read or is not a valid signature.
    UsageError
        If neither a file nor a bundled signature has that name.
    """
    from popmodel.model.signature import files
    from popmodel.model.signature.program import Signature

    if isinstance(application, Signature):
        return application
    return files.load(files.DEFAULT if application is None else application)


def profile_of(machine: ProfileLike | None) -> Profile:
    """Return a machine profile: loaded, read from a file, a preset (by name), or the default.

    Raises
    ------
    FileError
        If the file cannot be read or is not a valid profile.
    UsageError
        If neither a file nor a preset has that name.
    """
    from popmodel.machine import profile

    if isinstance(machine, profile.Profile):
        return machine
    return profile.load(profile.DEFAULT_PRESET if machine is None else machine)


def allocation_of(nodes: int | None, cores_per_node: int | None) -> Allocation:
    """The nodes and cores that may be used."""
    from popmodel.model.run.placement import Allocation

    for name, number in (("nodes", nodes), ("cores_per_node", cores_per_node)):
        if number is not None:
            whole_number(name, number)
    return Allocation(nodes, cores_per_node)


def whole_number(name: str, number: Any) -> int:
    """A number of something.

    Raises
    ------
    UsageError
        If it is not a whole number, or less than 1.
    """
    try:
        whole = int(number)
    except (TypeError, ValueError, OverflowError):
        whole = 0
    if whole < 1 or whole != number or isinstance(number, bool):
        raise UsageError(f"{name}={number!r}: must be a whole number, at least 1", f"try {name}=4")
    return whole


def number(name: str, value: float | str, parse: Callable[[str], float]) -> float:
    """Return a quantity in SI units: a number as it is, text as the command line reads it.

    Raises
    ------
    UsageError
        If it is neither a number nor text with a number and a unit.
    """
    if isinstance(value, str):
        try:
            return parse(value)
        except UsageError as error:
            raise UsageError(f"{name}: {error.message}", error.hint) from error
    try:
        return float(value)
    except (TypeError, ValueError):
        raise UsageError(
            f"{name}={value!r}: must be a number in SI units or a text with a unit"
        ) from None


def choices(given: str | Sequence[str] | None, known: Sequence[str]) -> tuple[str, ...] | None:
    """Families of metrics: one name, several, names separated by commas, or ``all``.

    Raises
    ------
    UsageError
        If a family is unknown.
    """
    from difflib import get_close_matches

    if given is None:
        return None
    names = given.split(",") if isinstance(given, str) else list(given)
    names = [name.strip() for name in names]
    if names == ["all"]:
        return tuple(known)
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"families: all, {', '.join(known)}"
            raise UsageError(f"family: unknown family {name!r}", hint)
    return tuple(dict.fromkeys(names))
