"""The steps of a study in order: runs, signature, profile; each is noted in the manifest.

A command that was ended goes on where it stopped, and what rests on something that has changed is
made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from popmodel.base import provenance, shell
from popmodel.base.errors import FileError, PopmodelError, UsageError, did_you_mean
from popmodel.base.units import plural
from popmodel.base.values import plain
from popmodel.machines import profile as profiles
from popmodel.model import signatures
from popmodel.studies import executor, learning, manifest, study_machine
from popmodel.studies.executor import done_runs, step_of, suited
from popmodel.studies.manifest import Manifest, StudyStep, carried_out, is_done, opened
from popmodel.studies.plan import CHANGEABLE, PlannedRun, Prepared, StudyRequest, left_out

if TYPE_CHECKING:
    from popmodel.machines.bench.suite import Progress
    from popmodel.studies.executor import Tell
    from popmodel.tracer.library import Library


class Watch(NamedTuple):
    """Who is told what happens."""

    tell: Tell  # A line for each thing that happens
    measuring: Callable[[Progress], None]  # How far the measurement of the machine is
    # Gives the library that traces a command, which is built once.
    building: Callable[[Any], Library]


class StudySteps(NamedTuple):
    """What was done, and what a result needs of it."""

    state: Manifest
    made: Mapping[PlannedRun, StudyStep]  # The runs that say something of the program
    out: PlannedRun | None  # The configuration that is predicted from the others, if there is one


def check_given(request: StudyRequest) -> None:
    """Refuse before the runs what would be refused after them."""
    for name in (request.machine, request.target_machine):
        if name is not None:
            profiles.load(name)
    if request.signature is not None:
        known = signatures.load(request.signature).params
        for name in request.settings:
            if name not in known:
                raise UsageError(
                    f"--set {name}: {request.signature} has no parameter {name}",
                    did_you_mean(name, known, f"its parameters are {', '.join(known) or 'none'}"),
                )


def begun(folder: Path, request: StudyRequest, about: Prepared, *, force: bool) -> Manifest:
    """Begin a study or go on; the program and its signature must not change meanwhile."""
    given = [] if request.signature is None else [Path(request.signature)]
    inputs = [about.program, *(path for path in given if path.is_file())]
    return opened(folder, request.to_dict(), inputs, changeable=CHANGEABLE, force=force)


def runs_made(
    state: Manifest, request: StudyRequest, about: Prepared, watch: Watch, patience: float | None
) -> Manifest:
    """Make the runs, or take those of a job; with patience, s, wait for a quiet machine first."""
    if executor.has_job(state.folder):
        return executor.collected(state, about, watch.tell)

    def look() -> tuple[Sequence[Path], Mapping[str, Any]]:
        return (), study_machine.look(patience, watch.tell)._asdict()

    return executor.make(
        state,
        about,
        lambda: watch.building(about.command),
        request.budget,
        watch.tell,
        lambda state: carried_out(state, "load", "cat /proc/loadavg", look),
    )


def learnt(state: Manifest, request: StudyRequest, about: Prepared, watch: Watch) -> StudySteps:
    """What follows from the runs: signatures, with and without those left out, and the machine."""
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
    return StudySteps(_profile(state, request, watch), made, out)


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
                signatures.load(str(path))
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
            signatures.load(source)  # a wrong one is refused before it is copied
            text = signatures.read(source)[2]
        learning.write(path, text, about.own_words)
        signatures.load(path)
        return [path], {"runs": names, "contents": rests, "given": source, "notes": notes}

    return carried_out(state, step, command, work)


def _profile(state: Manifest, request: StudyRequest, watch: Watch) -> Manifest:
    """The machine that the runs are made on: given, or measured."""
    path = state.folder / study_machine.PROFILE
    if request.machine is not None or ("machine" in state.steps and path.exists()):
        return state
    if not executor.has_job(state.folder):
        watch.tell("measuring this machine, about a minute (--machine FILE: use a profile)")

    def work() -> tuple[Sequence[Path], Mapping[str, Any]]:
        failures: Sequence[str] = ()
        try:
            if executor.has_job(state.folder):
                study_machine.of_samples(path)
            else:
                failures = study_machine.measure(path, watch.measuring)
        except PopmodelError as error:
            study_machine.unknown(path)
            failures = [f"{error.message}: all of the machine but its shape is assumed, and wide"]
        for failure in failures:
            watch.tell(f"warning: {failure}")
        return [path], {"failures": failures}

    return carried_out(state, "machine", shell.join(study_machine.command(path)), work)


def rests(found: StudySteps, request: StudyRequest) -> dict[str, Any]:
    """What a result rests on: another one is made where any of it has changed."""
    folder = found.state.folder
    names = (learning.SIGNATURE, learning.CHECK, study_machine.PROFILE)
    given = (name for name in (request.machine, request.target_machine) if name is not None)
    paths = [path for path in (*map(folder.joinpath, names), *map(Path, given)) if path.is_file()]
    return {
        "popmodel": provenance.collect(()).popmodel,
        "files": [provenance.describe_input(path).head_sha256 for path in paths],
        "contents": _contents(found.state, found.made),
        "request": plain(request.to_dict()),
    }


def _contents(state: Manifest, some: Iterable[PlannedRun]) -> dict[str, list[str]]:
    """What the files of some runs hold."""
    return manifest.contents(state, map(step_of, some))
