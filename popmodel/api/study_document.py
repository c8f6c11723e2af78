"""The documents of a study: what was done, what to take, how good the prediction is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from popmodel.api.inputs import profile_of, signature_of
from popmodel.base import provenance, shell
from popmodel.base.errors import PopmodelError
from popmodel.base.plain import plain
from popmodel.cli.validate import Validation, validate
from popmodel.machines.profile import MissingQuantity, Profile
from popmodel.model.signature.program import Signature
from popmodel.prediction.prediction import predict, trust
from popmodel.prediction.split_sweep import SplitSweep, sweep
from popmodel.studies import executor, learning, machine
from popmodel.studies.executor import step_of, trace_of, undisturbed
from popmodel.studies.manifest import Manifest, StudyStep
from popmodel.studies.plan import PlannedRun, Prepared, StudyRequest, refusal

RESULT, SWEEP, VALIDATION = "study.json", "sweep.json", "validation.json"


def result(
    state: Manifest,
    request: StudyRequest,
    about: Prepared,
    made: Mapping[PlannedRun, StudyStep],
    out: PlannedRun | None,
) -> dict[str, Any]:
    """The documents of a study, by the names of their files."""
    folder = state.folder
    signature = signature_of(folder / learning.SIGNATURE)
    if signature.command == (f"./{signature.name}",):  # found anew or written by hand without it
        signature = replace(signature, command=about.own_words)
    here = profile_of(request.machine or folder / machine.PROFILE)
    checked = _checked(folder, request, made, out, here)
    one = checked.to_dict()["splits"][0] if isinstance(checked, Validation) else None
    compared = checked if isinstance(checked, str) else None if one is None else one["runtime"]
    doubts = [*_without_structure(state), *learning.doubts(made, out, compared)]
    try:
        there = _target(request, here, folder)
        swept = sweep(signature, there.profile, request.cores, request.target, trusted=not doubts)
    except MissingQuantity as error:
        here = machine.unknown(folder / machine.UNKNOWN)
        assumed = f"all of the machine but its shape, because {error.message}"
        there = _target(request, here, folder)._replace(assumed=assumed)
        swept = sweep(signature, there.profile, request.cores, request.target, trusted=not doubts)
    content = _doubted(swept.to_dict(), doubts, made, signature)
    command = _sweep_command(folder, request, there)
    documents: dict[str, Any] = {SWEEP: _stamped(content, command)}
    if out is not None and isinstance(checked, Validation):
        command = _validate_command(folder, request, made, out, here)
        documents[VALIDATION] = _stamped(checked.to_dict(), command)
    told = _told(state, request, about, made, out)
    told |= {
        "validation": None
        if one is None
        else {
            **{key: one[key] for key in ("processes", "threads", "parameters", "runtime")},
            "verdict": documents[VALIDATION]["verdict"],
        },
        "machine": {"path": there.file, "assumed": there.assumed},
        "recommended": _recommended(swept, there, request),
        "commands": [
            *_commands(state, made),
            *(
                {"step": step, "command": documents[name]["provenance"]["command"]}
                for step, name in (("sweep", SWEEP), ("validation", VALIDATION))
                if name in documents
            ),
        ],
    }
    documents[RESULT] = {**content, "study": plain(told)}
    return documents


def _without_structure(state: Manifest) -> list[str]:
    """That the signature rests on times alone, where it does."""
    notes = state.steps["signature"].facts["notes"]
    return [note for note in notes if note.startswith(learning.WITHOUT)]


def _doubted(
    content: dict[str, Any],
    doubts: Sequence[str],
    made: Mapping[PlannedRun, StudyStep],
    signature: Signature,
) -> dict[str, Any]:
    """A sweep with what makes its study doubtful before what makes its signature so."""
    if not doubts:
        return content
    largest = max(made, key=lambda run: run.cores)
    larger = [replace(largest, processes=n * largest.processes) for n in range(2, 17)]
    advised = next((run for run in larger if refusal(signature, run) is None), larger[0])
    next_run = {"processes": advised.processes, "threads": advised.threads}
    learnt = content.get("learnt") or {"doubts": [], "next_run": next_run, "runs": []}
    # what says of each run that its threads waited is said of all of them
    others = [doubt for doubt in learnt["doubts"] if "waited for CPUs" not in doubt]
    every = [*doubts, *others]
    return {**content, "learnt": {**learnt, "doubts": every}, "trust": trust(every)}


def _target(request: StudyRequest, here: Profile, folder: Path) -> machine.TargetMachine:
    if request.target_machine is not None:
        given = profile_of(request.target_machine)
        return machine.TargetMachine(given, machine.word(given))
    return machine.target(here, request.cores, folder / machine.TARGET)


def _checked(
    folder: Path,
    request: StudyRequest,
    made: Mapping[PlannedRun, StudyStep],
    out: PlannedRun | None,
    here: Profile,
) -> Validation | str | None:
    """The configuration that was left out beside its prediction; a text says why there is none."""
    if out is None:
        return None
    try:
        return validate(
            folder / (learning.SIGNATURE if request.signature else learning.CHECK),
            [trace_of(folder, run) for run in repeats_of(made, out)],
            machine=here,
            settings=dict(out.settings),
            all_runs=True,
        )
    except PopmodelError as error:
        return error.message


def repeats_of(made: Mapping[PlannedRun, StudyStep], configuration: PlannedRun) -> list[PlannedRun]:
    """The repeats of a configuration that tell how long it takes."""
    return [run for run in undisturbed(made) if run.configuration == configuration]


def _recommended(
    swept: SplitSweep, there: machine.TargetMachine, request: StudyRequest
) -> list[dict[str, Any]]:
    """What would narrow the interval of the split to take, for each number of cores."""
    found = []
    for choice in swept.choices:
        taken = choice.taken
        one = predict(swept.signature, there.profile, *taken.split, request.target)
        found.append(
            {
                "cores": choice.cores,
                "processes": taken.split[0],
                "threads": taken.split[1],
                "runtime": taken.runtime,
                "doubtful": one.doubtful,
                "measure": one.measure,
                "sources": {
                    name: one.inputs[name].source or "the traces"
                    for name in one.doubtful
                    if name.startswith("constants.") and name in one.inputs
                },
            }
        )
    return found


def _told(
    state: Manifest,
    request: StudyRequest,
    about: Prepared,
    made: Mapping[PlannedRun, StudyStep],
    out: PlannedRun | None,
) -> dict[str, Any]:
    """What was done, for the document."""
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
                "trace": trace_of(folder, run),
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
    steps = [step_of(run) for run in made if run.repeat == 1]
    steps += [name for name in ("machine", "check", "signature") if name in state.steps]
    return [{"step": name, "command": state.steps[name].command} for name in steps]


def _sweep_command(folder: Path, request: StudyRequest, there: machine.TargetMachine) -> str:
    words = ["popmodel", "predict", str(folder / learning.SIGNATURE), "--machine", there.file]
    words += ["--cores", ",".join(map(str, request.cores))]
    return shell.join([*words, *_set(request.target)])


def _validate_command(
    folder: Path,
    request: StudyRequest,
    made: Mapping[PlannedRun, StudyStep],
    out: PlannedRun,
    here: Profile,
) -> str:
    signature = folder / (learning.SIGNATURE if request.signature else learning.CHECK)
    traces = [str(trace_of(folder, run)) for run in repeats_of(made, out)]
    words = ["popmodel", "validate", str(signature), *traces]
    words += ["--machine", machine.word(here), "--all-runs"]
    return shell.join([*words, *_set(dict(out.settings))])


def _set(values: Mapping[str, float]) -> list[str]:
    return [word for name, value in values.items() for word in ("--set", f"{name}={value:.15g}")]


def role_of(run: PlannedRun, out: PlannedRun | None) -> str:
    return "predicted" if run.configuration == out else "learnt from"


def _stamped(content: Mapping[str, Any], command: str) -> dict[str, Any]:
    stamp = plain(provenance.collect(()))
    return {**content, "provenance": {**stamp, "command": command}}
