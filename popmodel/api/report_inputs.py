"""What a report is made from: traces, signatures, profiles, results and pages that were saved."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from popmodel.base.document_schemas import check
from popmodel.base.documents import parse_json, read_text, shown
from popmodel.base.errors import FileError, UsageError
from popmodel.base.values import dataclass
from popmodel.reports.html.contents import SCHEMA, alone
from popmodel.reports.registry import SHOWN
from popmodel.reports.result import Result
from popmodel.traces.source import HEAD, foreign_file

if TYPE_CHECKING:
    from popmodel.api.inputs import ProfileLike, SignatureLike, TraceLike
    from popmodel.reports.views import Document

PROFILE = "popmodel/machine/1"


@dataclass(frozen=True)
class GivenRuns:
    """Inputs by what they are."""

    # Traces; signatures; results of other functions; paths of results and pages.
    traces: tuple[TraceLike, ...]
    signatures: tuple[SignatureLike, ...]
    results: tuple[Result, ...]
    saved: tuple[str, ...]
    profile: ProfileLike | None  # A machine profile
    names: tuple[str, ...]  # A short name of each input, in order
    files: tuple[str, ...]  # Those that are files


def kinds(inputs: Sequence[Any]) -> GivenRuns:
    """Tell what each input is, by its type or its suffix."""
    from popmodel.machines.profile import presets
    from popmodel.model.signature.program import Signature
    from popmodel.model.signatures import bundled
    from popmodel.reports.names import run_names
    from popmodel.traces import Trace

    if not inputs:
        raise UsageError("no input given", "name a trace, a saved result (.json) or a signature")
    traces: list[TraceLike] = []
    signatures: list[SignatureLike] = []
    results: list[Result] = []
    saved: list[str] = []
    profiles: list[str] = []
    for one in inputs:
        if isinstance(one, Trace):
            traces.append(one)
        elif isinstance(one, Signature):
            signatures.append(one)
        elif isinstance(one, Result):
            results.append(one)
        elif not isinstance(one, str | os.PathLike):
            known = "a path, a trace, a signature or a result"
            raise UsageError(f"inputs: must be {known}, not {type(one).__name__}")
        elif (path := os.fspath(one)) in bundled() or path.lower().endswith(".toml"):
            signatures.append(one)
        elif path in presets():
            profiles.append(path)
        elif path.lower().endswith(".html"):
            saved.append(path)
        elif path.lower().endswith(".json"):
            (profiles if _parsed(path).get("schema") == PROFILE else saved).append(path)
        else:
            traces.append(one)
    if len(profiles) > 1:
        raise UsageError(f"{profiles[1]}: a second machine profile", "leave one of them out")
    named = [one for one in inputs if one not in profiles] or list(inputs)
    paths = [_path(one) for one in named]
    return GivenRuns(
        tuple(traces),
        tuple(signatures),
        tuple(results),
        tuple(saved),
        profiles[0] if profiles else None,
        tuple(run_names(paths)),
        tuple(path for path in (_path(one) for one in inputs) if Path(path).is_file()),
    )


def _path(one: Any) -> str:
    if isinstance(one, Result):
        return next(iter(one.files), type(one).__name__.lower())
    return os.fspath(one) if isinstance(one, str | os.PathLike) else str(one.path)


def saved_report(path: str) -> dict[str, Any]:
    """The report in a file; a result alone as a report of its own."""
    found = _parsed(path)
    if found.get("schema") != SCHEMA:
        _require_shown(found, path)
    check(found, path)
    documents = found["documents"] if found["schema"] == SCHEMA else [found]
    if not documents:
        raise FileError(path, "is a report without results", hint="make it again")
    for document in documents:
        _require_shown(document, path)
        if "provenance" not in document:
            raise FileError(path, "provenance is missing", hint="save the result again")
    return found if found["schema"] == SCHEMA else dict(alone(found).document)


def _parsed(path: str) -> dict[str, Any]:
    """The JSON of a file, or that which a page holds."""
    text = read_text(path)
    if path.lower().endswith(".html"):
        from popmodel.reports.html.page import held

        hint = "name a page that popmodel wrote"
        try:
            inside = held(text)
        except ValueError as error:
            raise FileError(path, f"its results are damaged: {error}", hint=hint) from error
        if inside is None:
            raise FileError(path, "holds no results of popmodel", hint=hint)
        text = inside
    found = parse_json(text, path)
    foreign = foreign_file(Path(path), text[:HEAD].encode())
    if foreign and not (isinstance(found, dict) and "schema" in found):
        raise FileError(path, f"is {foreign.name}", hint=foreign.advice)
    if not isinstance(found, dict):
        raise FileError(path, "is no result: the JSON document must be a table")
    return found


def _require_shown(document: Document, path: str) -> None:
    """Refuse what no report shows."""
    schema = document.get("schema")
    parts = schema.split("/") if isinstance(schema, str) else []
    if len(parts) != 3 or parts[0] != "popmodel" or parts[1] not in SHOWN:
        raise FileError(
            path,
            f"is nothing that a report shows: its schema is {shown(schema)}",
            hint=f"save a result with --format json: of {', '.join(sorted(SHOWN))}",
        )
