"""A study: small runs, the signature and the profile made of them, the best split predicted.

The rooms below do the work; here it is put in order, and every step is noted in the manifest of the
study, so that a command that was ended goes on where it stopped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from popmodel.api.inputs import profile_of, signature_of
from popmodel.api.study_document import RESULT, result, role_of
from popmodel.base import provenance, shell
from popmodel.base.document_schemas import check
from popmodel.base.documents import parse_json, read_text
from popmodel.base.errors import FileError, PopmodelError, UsageError, did_you_mean
from popmodel.base.files import write_text
from popmodel.base.plain import document, plain
from popmodel.base.units import plural
from popmodel.base.values import dataclass
from popmodel.model import signatures
from popmodel.studies import executor, learning, machine, manifest
from popmodel.studies.executor import command_of, done_runs, step_of, suited
from popmodel.studies.manifest import Manifest, StudyStep, carried_out, is_done, opened
from popmodel.studies.plan import (
    CHANGEABLE,
    PlannedRun,
    Prepared,
    StudyRequest,
    left_out,
    prepared,
)

if TYPE_CHECKING:
    from popmodel.machines.bench.suite import Progress
    from popmodel.studies.executor import Tell
    from popmodel.tracer.library import Library

SUFFIX = ".study"


@dataclass(frozen=True)
class Watch:
    """Who is told what happens."""

    tell: Tell  # A line for each thing that happens
    measuring: Callable[[Progress], None]  # How far the measurement of the machine is
    # Gives the library that traces a command, which is built once.
    building: Callable[[Any], Library]


def default_folder(request: StudyRequest) -> Path:
    """Where a study goes if nobody says: named after its program."""
    return Path(f"{prepared(request).name}{SUFFIX}")


def plan(request: StudyRequest, folder: Path) -> dict[str, Any]:
    """Return what would be done, ``popmodel/study-plan/1``, without doing any of it."""
    about = prepared(request)
    out = left_out(list(dict.fromkeys(run.configuration for run in about.runs)))
    return document(
        "popmodel/study-plan/1",
        folder=folder,
        program=about.name,
        cores=request.cores,
        cores_of_runs=about.cores,
        budget=request.budget,
        runs=[
            {
                "name": run.name,
                **run.to_dict(),
                "role": role_of(run, out),
                "command": command_of(folder, about, run),
            }
            for run in about.runs
        ],
        target=request.target,
        machine=request.machine,
        target_machine=request.target_machine,
    )


def study(
    request: StudyRequest,
    folder: Path,
    watch: Watch,
    *,
    patience: float | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Carry a study out, or go on with it; with patience, s, wait for a quiet machine first."""
    about = prepared(request)
    _check_given(request)
    with manifest.held(folder):
        state = _opened(folder, request, about, force=force)
        if executor.has_job(folder):
            state = executor.collected(state, about, watch.tell)
        else:

            def look() -> tuple[Sequence[Path], Mapping[str, Any]]:
                return (), machine.look(patience, watch.tell)._asdict()

            state = executor.make(
                state,
                about,
                lambda: watch.building(about.command),
                request.budget,
                watch.tell,
                lambda state: carried_out(state, "load", "cat /proc/loadavg", look),
            )
        return _concluded(state, request, about, watch)


def job(request: StudyRequest, folder: Path, watch: Watch, *, force: bool = False) -> Path | None:
    """Write the runs of a study as a job; other parameters and errors as of `study`."""
    about = prepared(request)
    _check_given(request)
    with manifest.held(folder):
        _opened(folder, request, about, force=force)
        if executor.has_job(folder) and not force:
            return None
        measure = request.machine is None
        library = watch.building(about.command)
        return executor.write_job(folder, about, library, request.budget, measure=measure)


def _opened(folder: Path, request: StudyRequest, about: Prepared, *, force: bool) -> Manifest:
    """Begin a study or go on; the program and its signature must not change meanwhile."""
    given = [] if request.signature is None else [Path(request.signature)]
    inputs = [about.program, *(path for path in given if path.is_file())]
    return opened(folder, request.to_dict(), inputs, changeable=CHANGEABLE, force=force)


def _concluded(
    state: Manifest, request: StudyRequest, about: Prepared, watch: Watch
) -> dict[str, Any]:
    """What follows from the runs: signature, machine, splits, validation."""
    folder = state.folder
    made = suited(about.words, done_runs(state, about.runs))
    if not made:
        raise PopmodelError(
            f"{folder}: no run that says anything of the program was made",
            "name other runs with --runs 1x1,2x1",
        )
    out = left_out(list(dict.fromkeys(run.configuration for run in made)))
    others = {run: step for run, step in made.items() if run.configuration != out}
    if out is not None and request.signature is None:
        path = folder / learning.CHECK
        state = _signature(state, "check", path, request, about, others, watch)
    state = _signature(state, "signature", folder / learning.SIGNATURE, request, about, made, watch)
    state = _profile(state, request, watch)
    rests = _rests(state, request, made)
    path = folder / RESULT
    if is_done(state, "result") and state.steps["result"].facts == rests:
        return _document(path)
    documents: dict[str, Any] = {}

    def work() -> tuple[Sequence[Path], Mapping[str, Any]]:
        documents.update(result(state, request, about, made, out))
        for name, content in documents.items():
            _keep(folder / name, content)
        return [folder / name for name in documents], rests

    carried_out(state, "result", f"popmodel study -o {shell.quote(str(folder))} ...", work)
    whole: dict[str, Any] = documents[RESULT]
    return whole


def _check_given(request: StudyRequest) -> None:
    """Refuse before the runs what would be refused after them."""
    for name in (request.machine, request.target_machine):
        if name is not None:
            profile_of(name)
    if request.signature is not None:
        known = signature_of(request.signature).params
        for name in request.settings:
            if name not in known:
                raise UsageError(
                    f"--set {name}: {request.signature} has no parameter {name}",
                    did_you_mean(name, known, f"its parameters are {', '.join(known) or 'none'}"),
                )


def _signature(
    state: Manifest,
    step: str,
    path: Path,
    request: StudyRequest,
    about: Prepared,
    runs: Mapping[PlannedRun, StudyStep],
    watch: Watch,
) -> Manifest:
    """A signature: given, or found in the traces of some runs."""
    learnt = learning.learnt_from(runs)
    names = [run.name for run in learnt]
    rests = {} if request.signature is not None else _contents(state, learnt)
    before = state.steps.get(step)
    if before is not None and before.state == manifest.DONE and path.exists():
        is_current = before.facts["runs"] == names and before.facts.get("contents") == rests
        if not is_done(state, step):
            watch.tell(
                f"{path} was changed by hand: it is used as it is"
                + ("" if is_current else "; its runs changed since (without it, it is found anew)")
            )
            try:
                signature_of(str(path))
            except FileError as error:
                error.hint = "mend it, or remove it: the same command then makes it anew"
                raise
            return state
        if is_current:
            return state
    source = request.signature
    if source is not None:
        command = shell.join(["popmodel", "signature", "check", str(path)])
    else:
        command = learning.command(path, state.folder, learnt)
        purpose = "" if step == "signature" else " without the runs to predict"
        watch.tell(f"finding the signature in {plural(len(learnt), 'trace')}{purpose}")

    def work() -> tuple[Sequence[Path], Mapping[str, Any]]:
        notes: tuple[str, ...] = ()
        if source is None:
            made, refused = executor.tried(state, about.runs, about.cores)
            text, notes = learning.signature_of_runs(
                state.folder, learnt, about.name, made, refused
            )
        else:
            signature_of(source)  # a wrong one is refused before it is copied
            text = signatures.read(source)[2]
        learning.write(path, text, about.own_words)
        signature_of(path)
        return [path], {"runs": names, "contents": rests, "given": source, "notes": notes}

    return carried_out(state, step, command, work)


def _profile(state: Manifest, request: StudyRequest, watch: Watch) -> Manifest:
    """The machine that the runs are made on: given, or measured."""
    path = state.folder / machine.PROFILE
    if request.machine is not None or ("machine" in state.steps and path.exists()):
        return state
    if not executor.has_job(state.folder):
        watch.tell("measuring this machine, about a minute (--machine FILE: use a profile)")

    def work() -> tuple[Sequence[Path], Mapping[str, Any]]:
        failures: Sequence[str] = ()
        try:
            if executor.has_job(state.folder):
                machine.of_samples(path)
            else:
                failures = machine.measure(path, watch.measuring)
        except PopmodelError as error:
            machine.unknown(path)
            failures = [f"{error.message}: all of the machine but its shape is assumed, and wide"]
        for failure in failures:
            watch.tell(f"warning: {failure}")
        return [path], {"failures": failures}

    return carried_out(state, "machine", shell.join(machine.command(path)), work)


def _rests(
    state: Manifest, request: StudyRequest, made: Mapping[PlannedRun, StudyStep]
) -> dict[str, Any]:
    """What a result rests on: another one is made where any of it has changed."""
    names = (learning.SIGNATURE, learning.CHECK, machine.PROFILE)
    given = (name for name in (request.machine, request.target_machine) if name is not None)
    paths = [
        path for path in (*map(state.folder.joinpath, names), *map(Path, given)) if path.is_file()
    ]
    return {
        "popmodel": provenance.collect(()).popmodel,
        "files": [provenance.describe_input(path).head_sha256 for path in paths],
        "contents": _contents(state, made),
        "request": plain(request.to_dict()),
    }


def _contents(state: Manifest, some: Iterable[PlannedRun]) -> dict[str, list[str]]:
    """What the files of some runs hold."""
    return manifest.contents(state, map(step_of, some))


def _document(path: Path) -> dict[str, Any]:
    """Read a kept result."""
    kept: dict[str, Any] = parse_json(read_text(path), path)
    check(kept, path)
    return kept


def _keep(path: Path, content: Mapping[str, Any]) -> None:
    try:
        text = json.dumps(content, indent=1, allow_nan=False)
        write_text(path, f"{text}\n", read=_document)
    except OSError as error:
        raise manifest.unwritable(path, error) from error
