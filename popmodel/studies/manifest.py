"""The manifest of a study: what was asked for, and what has been done of it.

::

    app.study/
        manifest.json          this
        runs/2x1.prv.gz        a run: its trace (.prv.gz, .pcf, .row) and its output (.log)
        runs/2x1.r2.prv.gz     the same a second time
        check.toml             what the program does, found in all runs but those left out
        signature.toml         the same, found in all runs
        machine.json           profile of this machine, with its samples beside it
        target.json            profile of the machine that the splits are for
        splits.json, validation.json, report.html   what came of it
        .lock                  held by the command that works in the directory

A step is noted when all of its files are there; they get their names when they are complete. So
whatever ends the command, the next one goes on after the last complete step.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from popmodel._version import __version__
from popmodel.base import files, shell
from popmodel.base.documents import (
    DocumentKind,
    Flag,
    Items,
    NamedShape,
    Optional,
    Plain,
    Real,
    Shape,
    TableShape,
    Text,
    WholeShape,
    parse_json,
    read_text,
    record,
)
from popmodel.base.errors import FileError, PopmodelError, UsageError
from popmodel.base.files import refuse_planted, write_text
from popmodel.base.provenance import ProvenanceInput, describe_input
from popmodel.base.values import dataclass, document, plain

SCHEMA = "popmodel/study/1"
MANIFEST = "manifest.json"
DONE, FAILED, INTERRUPTED = "done", "failed", "interrupted"

_OTHER = "choose another directory with -o"
_FILE = record({"path": Text(), "size": WholeShape(0), "head_sha256": Text()})
_LEARNT = TableShape(
    {
        "runs": Items(Text(), 1),
        "contents": NamedShape(Items(Text())),
        "given": Optional(Text()),
        "notes": Items(Text()),
    },
    ("runs", "given", "notes"),
)
_FACTS = {
    "run": TableShape(
        {
            "processes": WholeShape(1),
            "threads": WholeShape(1),
            "settings": NamedShape(Real()),
            "repeat": WholeShape(1),
            "seconds": Real(least=0),
            "runtime": Real(above=0),
            "waited": Real(least=0, most=1),
            "used_threads": WholeShape(1),
            "has_openmp": Flag(),
            "has_mpi": Flag(),
        },
        ("seconds", "runtime", "waited", "used_threads", "has_openmp", "has_mpi"),
    ),
    "signature": _LEARNT,
    "check": _LEARNT,
    "load": record(
        {
            "cpus": WholeShape(1),
            "foreign": Real(least=0),
            "stolen": Real(least=0),
            "limit": Optional(Real(above=0)),
        }
    ),
    "machine": record({"failures": Items(Text())}),
}
"""What is known of a step that is done, by the first word of its name."""
_STEP: dict[str, Shape] = {
    "name": Text(),
    "state": Text((DONE, FAILED, INTERRUPTED)),
    "command": Text(),
    "began": Text(),
    "seconds": Real(least=0),
    "files": Items(_FILE),
    "facts": NamedShape(Plain()),
    "error": Optional(Text()),
}


class _StepShape:
    """A step: what has to be known of one that is done depends on its name."""

    def read(self, value: Any) -> dict[str, Any]:
        """Return the step; see `Shape`."""
        step = record(_STEP).read(value)
        facts = _FACTS.get(step["name"].split(" ")[0]) if step["state"] == DONE else None
        return step if facts is None else record({**_STEP, "facts": facts}).read(value)


KIND = DocumentKind(
    SCHEMA,
    "manifest of a study",
    record(
        {
            "schema": Text(),
            "popmodel": Text(),
            "host": Text(),
            "began": Text(),
            "request": NamedShape(Plain()),
            "inputs": Items(_FILE),
            "steps": Items(_StepShape()),
        }
    ),
    "manifests are written by popmodel study",
)


@dataclass(frozen=True)
class StudyStep:
    """A step of a study."""

    name: str  # Such as ``run 2x1``, ``signature``, ``machine``
    state: str  # ``done``, ``failed`` or ``interrupted``
    command: str  # What does the same by itself
    began: str  # When, UTC
    seconds: float  # How long it took
    files: tuple[
        ProvenanceInput, ...
    ] = ()  # What it made; paths are relative to the directory of the study
    facts: Mapping[str, Any] = field(default_factory=dict)  # What the next steps need to know of it
    error: str | None = None  # Why it failed


@dataclass(frozen=True)
class Manifest:
    """What was asked for, and what has been done."""

    folder: Path  # The directory of the study
    # What was asked for, as JSON types: a study goes on only with the same.
    request: Mapping[str, Any]
    inputs: tuple[ProvenanceInput, ...]  # The program and other files that the study rests on
    began: str  # When, UTC
    host: str  # The machine that the runs are made on
    # By name, in the order in which they were done.
    steps: Mapping[str, StudyStep] = field(default_factory=dict)
    version: str = __version__  # The popmodel that began it


def now() -> str:
    """The present, UTC, ISO 8601 with seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def opened(
    folder: Path,
    request: Mapping[str, Any],
    inputs: Sequence[Path],
    *,
    changeable: Sequence[str] = (),
    force: bool = False,
) -> Manifest:
    """Go on with the study in a directory, or begin one."""
    asked = plain(request)
    rests = tuple(describe_input(path) for path in inputs)
    fresh = Manifest(folder, asked, rests, now(), os.uname().nodename)
    found = None
    try:
        found = _read(folder)
    except FileError:
        if not force:
            raise
    if found is None or force or not any(step.state == DONE for step in found.steps.values()):
        return _written(fresh)
    if other := _difference(found, fresh, changeable):
        raise UsageError(
            f"{folder}: contains another study ({other})",
            "choose another directory with -o, or begin anew with --force",
        )
    return _written(replace(found, request=asked))


def note(manifest: Manifest, step: StudyStep, files: Sequence[Path] = ()) -> Manifest:
    """Note a step, with the files that it made in the directory."""
    made = tuple(
        replace(describe_input(path), path=str(path.relative_to(manifest.folder))) for path in files
    )
    others = {name: other for name, other in manifest.steps.items() if name != step.name}
    return _written(replace(manifest, steps={**others, step.name: replace(step, files=made)}))


def is_done(manifest: Manifest, name: str) -> bool:
    """Whether a step is complete and its files are as it left them."""
    step = manifest.steps.get(name)
    if step is None or step.state != DONE:
        return False
    for file in step.files:
        path = manifest.folder / file.path
        try:
            if describe_input(path) != replace(file, path=str(path)):
                return False
        except FileError:
            return False
    return True


def contents(manifest: Manifest, names: Iterable[str]) -> dict[str, list[str]]:
    """What the files of some steps hold: what rests on a step is made anew when they change."""
    return {name: [file.head_sha256 for file in manifest.steps[name].files] for name in names}


def carried_out(
    manifest: Manifest,
    name: str,
    command: str,
    work: Callable[[], tuple[Sequence[Path], Mapping[str, Any]]],
    *,
    may_fail: tuple[type[PopmodelError], ...] = (),
) -> Manifest:
    """Do a step and note how it went, also if it fails or is interrupted."""
    step = StudyStep(name, DONE, command, now(), 0.0)
    begin = time.monotonic()

    def ended(state: str, error: str | None = None) -> StudyStep:
        seconds = round(time.monotonic() - begin, 3)
        return replace(step, state=state, seconds=seconds, error=error)

    try:
        files, facts = work()
    except PopmodelError as error:
        failed = note(manifest, ended(FAILED, error.message))
        if isinstance(error, may_fail):
            return failed
        raise
    except (KeyboardInterrupt, SystemExit):
        note(manifest, ended(INTERRUPTED))
        raise
    return note(manifest, replace(ended(DONE), facts=plain(facts)), files)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep the directory of a study from other commands; errors as of `files.locked_folder`."""
    refuse_planted(folder, _OTHER)
    with files.locked_folder(
        folder,
        "popmodel study",
        _OTHER,
        refuse_foreign=_refuse_foreign,
        unwritable=unwritable,
    ):
        yield


def _refuse_foreign(folder: Path) -> None:
    present = sorted(path.name for path in folder.iterdir() if path.name != files.LOCK)
    if present and MANIFEST not in present:
        problem = f"contains files that popmodel study did not write, such as {present[0]}"
        raise FileError(folder, problem, hint=_OTHER)


def unwritable(path: Path, error: OSError) -> FileError:
    """The error for a place in a study that cannot be written."""
    return FileError(
        path, f"cannot be written: {(error.strerror or str(error)).lower()}", hint=_OTHER
    )


def _table(path: Path) -> dict[str, Any]:
    """Read the document of a manifest."""
    found: dict[str, Any] = KIND.read(parse_json(read_text(path), path), path)
    return found


def _read(folder: Path) -> Manifest | None:
    path = folder / MANIFEST
    if not path.exists():
        return None
    try:
        table = _table(path)
    except FileError as error:
        error.hint = "begin anew with --force"
        raise
    steps = [
        StudyStep(**{**entry, "files": tuple(ProvenanceInput(**file) for file in entry["files"])})
        for entry in table["steps"]
    ]
    return Manifest(
        folder,
        table["request"],
        tuple(ProvenanceInput(**entry) for entry in table["inputs"]),
        table["began"],
        table["host"],
        {entry.name: entry for entry in steps},
        table["popmodel"],
    )


def _written(manifest: Manifest) -> Manifest:
    """Write the manifest as a whole or not at all, and give it back."""
    table = document(
        SCHEMA,
        popmodel=manifest.version,
        host=manifest.host,
        began=manifest.began,
        request=manifest.request,
        inputs=manifest.inputs,
        steps=list(manifest.steps.values()),
    )
    path = manifest.folder / MANIFEST
    try:
        write_text(path, json.dumps(table, indent=1, allow_nan=False) + "\n", read=_table)
    except OSError as error:
        raise unwritable(path, error) from error
    return manifest


def _difference(found: Manifest, asked: Manifest, changeable: Sequence[str]) -> str | None:
    """In words what is another than what was asked for before; None if nothing is."""
    for name in dict.fromkeys([*asked.request, *found.request]):
        before, this = found.request.get(name), asked.request.get(name)
        if before != this and name not in changeable:
            return f"{name}: {_shown(before)}, not {_shown(this)}"
    if found.host != asked.host:
        return f"runs on {found.host}, not on {asked.host}"
    for given, other in zip(found.inputs, asked.inputs, strict=False):
        if given != other:
            return f"another version of {given.path}"
    return None


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return shell.join(f"{item:g}" if isinstance(item, float) else str(item) for item in value)
    if isinstance(value, Mapping):
        pairs = (f"{name}={_shown(item)}" for name, item in value.items())
        return ", ".join(pairs) or "none"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
