"""What functions accept: names, paths or loaded objects."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from popmodel.base.errors import UsageError, did_you_mean
from popmodel.cli.options import whole_number

if TYPE_CHECKING:
    from popmodel.machines.profile import Profile
    from popmodel.model.signature.application import Signature
    from popmodel.traces import Trace

PathLike: TypeAlias = "str | os.PathLike[str]"
TraceLike: TypeAlias = "PathLike | Trace"
SignatureLike: TypeAlias = "PathLike | Signature"
ProfileLike: TypeAlias = "PathLike | Profile"


def several(given: Any) -> list[Any]:
    """One thing, or several, as a list; a text is one thing."""
    if isinstance(given, str | os.PathLike) or not isinstance(given, Iterable):
        return [given]
    return list(given)


def path_of(trace: TraceLike) -> str:
    """Where a trace comes from."""
    from popmodel.traces import Trace

    if isinstance(trace, Trace):
        return trace.path
    return os.fspath(_path("trace", trace, "a path or a trace that was read"))


def _path(name: str, given: Any, what: str) -> PathLike:
    if not isinstance(given, str | os.PathLike):
        raise UsageError(f"{name}: must be {what}, not {type(given).__name__}")
    return given


def kind_of(given: Any) -> str:
    """What an input is: a ``trace``, a ``table`` of runs, a ``signature``, or ``source`` code.

    What is no file and has no suffix is taken as the name of a signature, which may be misspelt.
    """
    from popmodel.cli.completion import bundled_signatures
    from popmodel.traces import Trace
    from popmodel.traces.trace_formats import FORMATS

    if isinstance(given, Trace):
        return "trace"
    if not isinstance(given, str | os.PathLike):
        from popmodel.model.signature.application import Signature

        if isinstance(given, Signature):
            return "signature"
        known = "paths, names, signatures or traces"
        raise UsageError(f"inputs: must be {known}, not {type(given).__name__}")
    path = os.fspath(given)
    if ":" in path and not os.path.exists(path):  # noqa: PTH110 (names may hold anything)
        from popmodel.runs.table import split

        path = split(path)[0]
    if path.lower().endswith(".toml") or path in bundled_signatures(None):
        return "signature"
    if any(form.is_named(Path(path)) for form in FORMATS):
        return "trace"
    from popmodel.runs.run_files import is_table

    if is_table(path):
        return "table"
    if "." not in os.path.basename(path) and not os.path.exists(path):  # noqa: PTH110, PTH119
        return "signature"
    from popmodel.source import is_source

    return "source" if is_source(path) else "trace"


def trace_of(
    trace: TraceLike,
    *,
    application: int = 1,
    flop_rate: float | None = None,
    rated: bool = False,
) -> Trace:
    """Return a trace, read if it is a path; raises as `popmodel.traces.read`."""
    from popmodel.traces import Trace, read

    if isinstance(trace, Trace):
        return trace
    which = whole_number("application", application)
    if rated:
        require_flop_rate(trace, flop_rate)
    return read(path_of(trace), application=which, flop_rate=flop_rate)


def require_flop_rate(trace: TraceLike, flop_rate: float | None) -> None:
    """Refuse a trace that gives computation in flop where the speed of a process is not known."""
    from popmodel.traces import Trace
    from popmodel.traces.trace_formats import format_of

    if isinstance(trace, Trace) or flop_rate is not None or not (path := path_of(trace)):
        return
    if format_of(Path(path)).flops:
        raise UsageError(
            f"{path}: computation is given in flop, and no flop rate is set",
            "add --flop-rate 1Gflop/s (flop_rate=1e9 in Python): the speed of one process in the "
            "platform that it was traced on",
        )


def signature_of(application: SignatureLike | None) -> Signature:
    """Return a signature: loaded, read from a file, bundled (by name), or the default."""
    from popmodel.model import signatures
    from popmodel.model.signature.application import Signature

    if isinstance(application, Signature):
        return application
    if application is None:
        return signatures.load(signatures.DEFAULT)
    return signatures.load(
        _path("application", application, "a path, a name or a loaded signature")
    )


def profile_of(machine: ProfileLike | None) -> Profile:
    """Return a machine profile: loaded, read from a file, a preset (by name), or the default."""
    from popmodel.machines import profile

    if isinstance(machine, profile.Profile):
        return machine
    if machine is None:
        return profile.load(profile.DEFAULT_PRESET)
    return profile.load(_path("machine", machine, "a path, a name or a loaded profile"))


def refuse_options(
    given: Mapping[str, Any], why: str, hint: str = "leave it out", among: Iterable[str] = ()
) -> None:
    """Refuse the first option that is given and has no place here; some of them, if named."""
    for name in among or given:
        if given.get(name) is not None and given[name] is not False and given[name] != "":
            option = "set" if name == "settings" else name.replace("_", "-")
            raise UsageError(f"--{option}: {why}", hint)


def refuse_profile(given: Any) -> None:
    """Refuse a machine profile among what a prediction is made from."""
    from popmodel.base.documents import parse_json, read_text
    from popmodel.base.errors import PopmodelError
    from popmodel.machines.profile import presets

    if not isinstance(given, str | os.PathLike):
        return
    path = os.fspath(given)
    is_profile = path in presets()
    if not is_profile and path.lower().endswith(".json"):
        try:
            content = parse_json(read_text(path), path)
        except PopmodelError:  # who reads it says so
            return
        schema = content.get("schema") if isinstance(content, dict) else None
        is_profile = schema == "popmodel/machine/1"
    if is_profile:
        raise UsageError(
            f"{path}: is a machine profile, not a program or a run", f"try --machine {path}"
        )


def choices(given: str | Sequence[str] | None, known: Sequence[str]) -> tuple[str, ...] | None:
    """Families of metrics: one name, several, names separated by commas, or ``all``."""
    if given is None:
        return None
    names = given.split(",") if isinstance(given, str) else several(given)
    names = [name.strip() if isinstance(name, str) else name for name in names]
    if names == ["all"]:
        return tuple(known)
    for name in names:
        if name not in known:
            hint = did_you_mean(str(name), known, f"families: all, {', '.join(known)}")
            raise UsageError(f"family: unknown family {name!r}", hint)
    return tuple(dict.fromkeys(names))
