"""The documents of a study: the splits with what they rest on, and the check of the prediction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from popmodel.base import provenance, shell
from popmodel.base.document_schemas import check
from popmodel.base.documents import parse_json, read_text
from popmodel.base.errors import PopmodelError
from popmodel.base.files import write_text
from popmodel.base.values import document, plain
from popmodel.efficiency.measure import analyse
from popmodel.machines import profile
from popmodel.machines.profile import MissingQuantity, Profile
from popmodel.model import signatures
from popmodel.model.run.process_placement import WHOLE
from popmodel.model.signature.application import Signature
from popmodel.model.symbols import label
from popmodel.prediction.prediction import trust
from popmodel.prediction.split_sweep import sweep
from popmodel.runs.measurement import MeasuredRow, checked, from_run
from popmodel.structure.focus import part_of_run
from popmodel.studies import executor, learning, study_machine
from popmodel.studies.manifest import Manifest, StudyStep, unwritable
from popmodel.studies.plan import PlannedRun, Prepared, StudyRequest, left_out, refusal
from popmodel.studies.steps import StudySteps
from popmodel.studies.study_machine import TargetMachine
from popmodel.traces import read
from popmodel.traces.selection import PROGRAM
from popmodel.validation.predictions import of_application
from popmodel.validation.validated_runs import ValidatedRuns, validate_runs

SPLITS, VALIDATION = "splits.json", "validation.json"
_PATIENCE = ("--wait", "10min")


def documents(found: StudySteps, request: StudyRequest, about: Prepared) -> dict[str, Any]:
    """The splits and the check, by the names of their files."""
    state, made, out = found
    folder = state.folder
    signature = signatures.load(folder / learning.SIGNATURE)
    if signature.command == (f"./{signature.name}",):  # found anew or written by hand without it
        signature = replace(signature, command=about.own_words)
    here = profile.load(request.machine or folder / study_machine.PROFILE)
    compared = _checked(found, request, here)
    validated = compared.to_dict() if isinstance(compared, ValidatedRuns) else None
    (split,) = validated["splits"][:1] if validated else (None,)
    missed = split["runtime"] if split else compared if isinstance(compared, str) else None
    doubts = [*learning.without_structure(state), *learning.doubts(made, out, missed)]
    try:
        there = _target_machine(request, here, folder)
        swept = sweep(signature, there.profile, request.cores, request.target, trusted=not doubts)
    except MissingQuantity as error:
        here = study_machine.unknown(folder / study_machine.UNKNOWN)
        assumed = f"all of the machine but its shape, because {error.message}"
        there = _target_machine(request, here, folder)._replace(assumed=assumed)
        swept = sweep(signature, there.profile, request.cores, request.target, trusted=not doubts)
    content = swept.to_dict()
    if doubts:
        learnt = content.get("learnt") or {"next_run": _larger(made, signature), "runs": []}
        # what says of each run that its threads waited is said of all of them, and what says how
        # far off repeats are predicted, of the worst
        others: dict[str, str] = {}
        for doubt in learnt.get("doubts", ()):
            if "waited for CPUs" not in doubt:
                others.setdefault(doubt.partition(", is ")[0], doubt)
        every = [*doubts, *others.values()]
        content |= {"learnt": {**learnt, "doubts": every}, "trust": trust(every)}
    predicting = ["popmodel", "predict", str(folder / learning.SIGNATURE), "--machine", there.file]
    predicting += ["--cores", ",".join(map(str, request.cores)), *_set(request.target)]
    commands = [*_commands(state, made), {"step": "splits", "command": shell.join(predicting)}]
    checks: dict[str, Any] = {}
    if validated is not None:
        validating = _validate_command(found, request, here)
        commands.append({"step": "validation", "command": validating})
        checks[VALIDATION] = _stamped(validated, validating)
    told = {
        **_told(found, request, about),
        "validation": None
        if split is None or validated is None
        else {
            **{key: split[key] for key in ("processes", "threads", "parameters", "runtime")},
            "verdict": validated["verdict"],
        },
        "machine": {"path": there.file, "assumed": there.assumed},
        "next": _next(content, found, request, about, signature),
        "commands": commands,
    }
    splits = _stamped({**content, "study": plain(told)}, request.again(folder))
    return {SPLITS: splits, **checks}


def _stamped(content: Mapping[str, Any], command: str) -> dict[str, Any]:
    return {**content, "provenance": {**plain(provenance.collect(())), "command": command}}


def _target_machine(request: StudyRequest, here: Profile, folder: Path) -> TargetMachine:
    if request.target_machine is not None:
        given = profile.load(request.target_machine)
        return study_machine.TargetMachine(given, study_machine.word(given))
    return study_machine.target(here, request.cores, folder / study_machine.TARGET)


def _checking(found: StudySteps, request: StudyRequest) -> tuple[Path, list[Path]]:
    """The signature that has not seen the configuration that was left out, and its traces."""
    folder = found.state.folder
    name = learning.SIGNATURE if request.signature else learning.CHECK
    runs = [run for run in executor.undisturbed(found.made) if run.configuration == found.out]
    return folder / name, [executor.trace_of(folder, run) for run in runs]


def _checked(found: StudySteps, request: StudyRequest, here: Profile) -> ValidatedRuns | str | None:
    """The configuration that was left out beside its prediction; a text says why there is none."""
    if found.out is None:
        return None
    path, traces = _checking(found, request)
    settings = dict(found.out.settings)
    try:
        about = of_application(signatures.load(path), here, settings, WHOLE)
        runs, doubts = checked([_measured(trace) for trace in traces], settings)
        return validate_runs(about, runs, all_runs=True, warnings=doubts)
    except PopmodelError as error:
        return error.message


def _measured(path: Path) -> MeasuredRow:
    trace = read(path)
    return from_run(analyse(trace, part=part_of_run(PROGRAM, trace)))


def _validate_command(found: StudySteps, request: StudyRequest, here: Profile) -> str:
    assert found.out is not None
    signature, traces = _checking(found, request)
    words = ["popmodel", "validate", str(signature), *map(str, traces)]
    words += ["--machine", study_machine.word(here), "--all-runs", *_set(dict(found.out.settings))]
    return shell.join(words)


def _set(values: Mapping[str, float]) -> list[str]:
    return [word for name, value in values.items() for word in ("--set", f"{name}={value:.15g}")]


def _larger(made: Iterable[PlannedRun], signature: Signature) -> dict[str, int]:
    """A run of more processes than those that were made, which the program takes."""
    largest = max(made, key=lambda run: run.cores)
    larger = [replace(largest, processes=n * largest.processes) for n in range(2, 17)]
    advised = next((run for run in larger if refusal(signature, run) is None), larger[0])
    return {"processes": advised.processes, "threads": advised.threads}


def _next(
    content: Mapping[str, Any],
    found: StudySteps,
    request: StudyRequest,
    about: Prepared,
    signature: Signature,
) -> dict[str, Any] | None:
    """What to run next: what makes the answer trustworthy, else what decides the choice."""
    if content["trust"]["ok"]:
        doubt = content["choices"][-1]["doubt"]
        if doubt is None or doubt["command"] is None:
            return None
        name = label(next(iter(doubt["inputs"])))
        return {"why": f"measure what the choice depends on, {name}", "command": doubt["command"]}
    folder, splits = found.state.folder, executor.by_configuration(found.made)
    busy = [
        run.name
        for run, repeats in splits.items()
        if all(step.facts["waited"] > executor.DISTURBED for step in repeats)
    ]
    if busy:
        again = request.again(folder, "--force", *_PATIENCE)
        return {"why": "run all again while nothing else runs on this machine", "command": again}
    advised = content["learnt"]["next_run"] if "learnt" in content else _larger(splits, signature)
    processes, threads = advised["processes"], advised["threads"]
    why = f"a run of {processes} x {threads} would tell most"
    if processes * threads > max(request.cores):
        longer = replace(request, budget=2 * request.budget).again(folder)
        return {"why": "take more time for repeats", "command": longer}
    if processes * threads > about.cores:
        return {"why": f"{why}: repeat the study on a machine of more cores", "command": None}
    names = [f"{run.processes}x{run.threads}" for run in splits]
    runs = ",".join(dict.fromkeys([*names, f"{processes}x{threads}"]))
    return {"why": why, "command": replace(request, runs=runs).again(folder)}


def _told(found: StudySteps, request: StudyRequest, about: Prepared) -> dict[str, Any]:
    """What was done."""
    state, made, out = found
    folder = state.folder
    signature, load = state.steps["signature"], state.steps.get("load")
    return {
        "folder": folder,
        "program": about.name,
        "words": request.command,
        "load": None if load is None else load.facts,
        "runs": [
            {
                "name": run.name,
                **run.to_dict(),
                "role": role_of(run, out),
                "seconds": step.facts["seconds"],
                "runtime": step.facts["runtime"],
                "waited": step.facts["waited"],
                "disturbed": step.facts["waited"] > executor.DISTURBED,
                "trace": executor.trace_of(folder, run),
            }
            for run, step in made.items()
        ],
        "budget": request.budget,
        "not_run": _not_run(state, about, made),
        "signature": {
            "path": folder / learning.SIGNATURE,
            "given": signature.facts["given"],
            "notes": signature.facts["notes"],
        },
        "target": request.target,
    }


def role_of(run: PlannedRun, out: PlannedRun | None) -> str:
    return "predicted" if run.configuration == out else "learnt from"


def _not_run(
    state: Manifest, about: Prepared, made: Mapping[PlannedRun, StudyStep]
) -> list[dict[str, str]]:
    """Configurations that were planned and are not used, and why."""
    single = executor.without_threads(about.words, executor.done_runs(state, about.runs))
    known = {run.configuration for run in made}
    found = []
    for run in dict.fromkeys(run.configuration for run in about.runs):
        if run in known:
            continue
        failed = executor.failure(state, run)
        if single is not None and run.threads > 1:
            why = single
        else:
            why = "the budget" if failed is None else failed.removeprefix(f"run {run.split} ")
        found.append({"name": run.name, "why": why})
    return found


def _commands(state: Manifest, made: Mapping[PlannedRun, StudyStep]) -> list[dict[str, str]]:
    """What does each step of the study by itself, in order; repeats are alike."""
    steps = [executor.step_of(run) for run in made if run.repeat == 1]
    steps += [name for name in ("machine", "check", "signature") if name in state.steps]
    return [{"step": name, "command": state.steps[name].command} for name in steps]


def planned(
    request: StudyRequest, about: Prepared, folder: Path, job: Path | None = None
) -> dict[str, Any]:
    """The document of what would be done, ``popmodel/study-plan/1``."""
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
                "command": executor.command_of(folder, about, run),
            }
            for run in about.runs
        ],
        target=request.target,
        machine=request.machine,
        target_machine=request.target_machine,
        job=job,
        submit=None if job is None else executor.submit_command(folder),
    )


def kept(path: Path) -> dict[str, Any]:
    """Read a document that was kept."""
    content: dict[str, Any] = parse_json(read_text(path), path)
    check(content, path)
    return content


def keep(path: Path, content: Mapping[str, Any]) -> Path:
    """Write a document."""
    try:
        text = json.dumps(content, indent=1, allow_nan=False)
        write_text(path, f"{text}\n", read=kept)
    except OSError as error:
        raise unwritable(path, error) from error
    return path
