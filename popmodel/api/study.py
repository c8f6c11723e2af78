"""A study: small runs, the signature and the profile made of them, the best split predicted.

The rooms below do the work; here it is put in order, and every step is noted in the manifest of the
study, so that a command that was ended goes on where it stopped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from popmodel import provenance, shell
from popmodel.api.inputs import profile_of, signature_of
from popmodel.api.study_document import RESULT, result, role_of
from popmodel.document_schemas import check
from popmodel.documents import parse_json, read_text
from popmodel.errors import FileError, PopmodelError, UsageError, did_you_mean
from popmodel.files import write_text
from popmodel.model.signature import files as signatures
from popmodel.plain import document
from popmodel.study import found, machine, manifest, runs, scripts
from popmodel.study.found import Extract, Extracted
from popmodel.study.manifest import Manifest, carried_out, is_done, opened
from popmodel.study.plan import LEAST, Run, left_out
from popmodel.study.request import CHANGEABLE, Prepared, Request, prepared
from popmodel.study.traced import command_of, trace_of, words_of
from popmodel.units import plural
from popmodel.values import dataclass

if TYPE_CHECKING:
    from popmodel.bench.suite import Progress
    from popmodel.study.runs import Tell
    from popmodel.tracer.library import Library

SUFFIX = ".study"


@dataclass(frozen=True)
class Watch:
    """Who is told what happens."""

    tell: Tell  # A line for each thing that happens
    measuring: Callable[[Progress], None]  # How far the measurement of the machine is
    # Gives the library that traces a command, which is built once.
    building: Callable[[Any], Library]


def default_folder(request: Request) -> Path:
    """Where a study goes if nobody says: named after its program."""
    return Path(f"{prepared(request).name}{SUFFIX}")


def plan(request: Request, folder: Path) -> dict[str, Any]:
    """Return what would be done, ``popmodel/study-plan/1``, without doing any of it."""
    about = prepared(request)
    out = left_out(about.runs)
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
                "command": command_of(folder, words_of(about.words, run, about.command), run),
            }
            for run in about.runs
        ],
        target=request.target,
        machine=request.machine,
        target_machine=request.target_machine,
    )


def study(
    request: Request,
    folder: Path,
    extract: Extract,
    watch: Watch,
    *,
    force: bool = False,
) -> dict[str, Any]:
    """Carry a study out, or go on with it."""
    about = prepared(request)
    _check_given(request)
    with manifest.held(folder):
        state = opened(
            folder, request.to_dict(), _inputs(request, about), changeable=CHANGEABLE, force=force
        )
        if scripts.is_there(folder):
            state = scripts.collected(state, about, watch.tell)
        else:
            state = runs.make(
                state,
                about.words,
                about.command,
                about.runs,
                lambda: watch.building(about.command),
                request.budget,
                watch.tell,
            )
        return _concluded(state, request, about, extract, watch)


def job(request: Request, folder: Path, watch: Watch, *, force: bool = False) -> Path | None:
    """Write the runs of a study as a job; other parameters and errors as of `study`."""
    about = prepared(request)
    _check_given(request)
    with manifest.held(folder):
        opened(
            folder, request.to_dict(), _inputs(request, about), changeable=CHANGEABLE, force=force
        )
        if scripts.is_there(folder) and not force:
            return None
        measure = request.machine is None
        library = watch.building(about.command)
        return scripts.write(folder, about, library, request.budget, measure=measure)


def _concluded(
    state: Manifest, request: Request, about: Prepared, extract: Extract, watch: Watch
) -> dict[str, Any]:
    """What follows from the runs: signature, machine, splits, validation."""
    folder = state.folder
    made = tuple(runs.done_runs(state, about.runs))
    out = left_out(made)
    if len(made) < LEAST or out is None:
        raise PopmodelError(
            f"{folder}: {len(made)} run is too few: one to learn from, one to predict",
            "name the runs with --runs 1x1,2x1, or give sizes of the problem with --set",
        )
    learnt = [run for run in made if run != out]
    state = _signature(state, request, about, learnt, extract, watch)
    state = _profile(state, request, watch)
    rests = _rests(state, request, made, learnt)
    path = folder / RESULT
    if is_done(state, "result") and state.steps["result"].facts == rests:
        return _document(path)
    documents: dict[str, Any] = {}

    def work() -> tuple[Sequence[Path], Mapping[str, Any]]:
        documents.update(result(state, request, about, made, out))
        for name, one in documents.items():
            _keep(folder / name, one)
        return [folder / name for name in documents], rests

    carried_out(state, "result", f"popmodel study -o {shell.quote(str(folder))} ...", work)
    whole: dict[str, Any] = documents[RESULT]
    return whole


def _check_given(request: Request) -> None:
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


def _inputs(request: Request, about: Prepared) -> list[Path]:
    """Files that must not change while a study goes on."""
    given = [request.machine, request.target_machine, request.signature]
    named = [Path(name) for name in given if name is not None and Path(name).is_file()]
    return [about.program, *named]


def _signature(
    state: Manifest,
    request: Request,
    about: Prepared,
    learnt: Sequence[Run],
    extract: Extract,
    watch: Watch,
) -> Manifest:
    """The signature: given, or found in the traces of all runs but one."""
    folder = state.folder
    names = [run.name for run in learnt]
    path = folder / found.SIGNATURE
    rests = {} if request.signature is not None else _contents(state, learnt)
    before = state.steps.get("signature")
    if before is not None and before.state == manifest.DONE and path.exists():
        is_current = before.facts["runs"] == names and before.facts.get("contents") == rests
        if not is_done(state, "signature"):
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
    traces = {trace_of(folder, run): run for run in learnt}
    if request.signature is not None:
        source = request.signature
        command = shell.join(["popmodel", "signature", "check", str(folder / found.SIGNATURE)])
    else:
        source, command = None, found.command(folder, traces)
        watch.tell(f"finding the signature in {plural(len(traces), 'trace')}")

    def work() -> tuple[Sequence[Path], Mapping[str, Any]]:
        if source is None:
            values = {path: dict(run.settings) for path, run in traces.items()}
            made, refused = runs.tried(state, about.runs, about.cores)
            one = extract(values, about.name, made, refused)
        else:
            signature_of(source)  # a wrong one is refused before it is copied
            one = Extracted(signatures.read(source)[2])
        path = found.write(folder, one, about.own_words)
        signature_of(path)
        notes = {"given": source, "notes": one.notes}
        return [path], {"runs": names, "contents": rests, **notes}

    return carried_out(state, "signature", command, work)


def _profile(state: Manifest, request: Request, watch: Watch) -> Manifest:
    """The machine that the runs are made on: given, or measured."""
    path = state.folder / machine.PROFILE
    if request.machine is not None or ("machine" in state.steps and path.exists()):
        return state
    if not scripts.is_there(state.folder):
        watch.tell("measuring this machine, about a minute (--machine FILE: use a profile)")

    def work() -> tuple[Sequence[Path], Mapping[str, Any]]:
        if scripts.is_there(state.folder):
            machine.of_samples(path)
            return [path], {"failures": []}
        failures = machine.measure(path, watch.measuring)
        for failure in failures:
            watch.tell(f"warning: {failure}")
        return [path], {"failures": failures}

    return carried_out(state, "machine", shell.join(machine.command(path)), work)


def _rests(
    state: Manifest, request: Request, made: Sequence[Run], learnt: Sequence[Run]
) -> dict[str, Any]:
    """What a result rests on: another one is made where any of it has changed."""
    paths = [state.folder / found.SIGNATURE]
    paths += [state.folder / machine.PROFILE] if request.machine is None else []
    return {
        "popmodel": provenance.collect(()).popmodel,
        "files": [provenance.describe_input(path).head_sha256 for path in paths],
        "contents": _contents(state, made),
        "learnt": [run.name for run in learnt],
        "budget": request.budget,
    }


def _contents(state: Manifest, some: Sequence[Run]) -> dict[str, list[str]]:
    """What the files of some runs hold."""
    return manifest.contents(state, map(runs.step_of, some))


def _document(path: Path) -> dict[str, Any]:
    """Read a kept result."""
    kept: dict[str, Any] = parse_json(read_text(path), path)
    check(kept, path)
    return kept


def _keep(path: Path, one: Mapping[str, Any]) -> None:
    try:
        text = json.dumps(one, indent=1, allow_nan=False)
        write_text(path, f"{text}\n", read=_document)
    except OSError as error:
        raise manifest.unwritable(path, error) from error
