"""The documents of a study: what was done, what to take, how good the prediction is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from popmodel import provenance, shell
from popmodel.api.inputs import profile_of, signature_of
from popmodel.api.predict import predict
from popmodel.api.sweep import Sweep, sweep
from popmodel.api.validate import Validation, validate
from popmodel.errors import PopmodelError
from popmodel.machine.profile import MissingQuantity, Profile
from popmodel.model.signature.program import Signature
from popmodel.plain import plain
from popmodel.study import checks, executor, learning, machine
from popmodel.study.executor import step_of, trace_of, undisturbed
from popmodel.study.manifest import Manifest, Step
from popmodel.study.plan import Run
from popmodel.study.recommendation import Answer, ModelledSplit, answers, times_of
from popmodel.study.request import Prepared, Request

RESULT, SWEEP, VALIDATION = "study.json", "sweep.json", "validation.json"


def result(
    state: Manifest,
    request: Request,
    about: Prepared,
    made: Mapping[Run, Step],
    out: Run | None,
) -> dict[str, Any]:
    """The documents of a study, by the names of their files."""
    folder = state.folder
    signature = signature_of(folder / learning.SIGNATURE)
    if signature.command == (f"./{signature.name}",):  # found anew or written by hand without it
        signature = replace(signature, command=about.own_words)
    here = profile_of(request.machine or folder / machine.PROFILE)
    try:
        there = _target(request, here, folder)
        swept = sweep(signature, there.profile, request.cores, request.target)
    except MissingQuantity as error:
        here = machine.unknown(folder / machine.UNKNOWN)
        assumed = f"all of the machine but its shape, because {error.message}"
        there = replace(_target(request, here, folder), assumed=assumed)
        swept = sweep(signature, there.profile, request.cores, request.target)
    checked = _checked(folder, request, made, out, here)
    one = checked.to_dict()["splits"][0] if isinstance(checked, Validation) else None
    compared = checked if isinstance(checked, str) else None if one is None else one["runtime"]
    notes = state.steps["signature"].facts["notes"]
    doubts = [note for note in notes if note.startswith(learning.WITHOUT)]
    doubts += checks.doubts(made, out, compared)
    table = _answers(swept, signature, here, made, out, compared)
    documents: dict[str, Any] = {
        SWEEP: _stamped(swept.to_dict(), _sweep_command(folder, request, there))
    }
    if out is not None and isinstance(checked, Validation):
        command = _validate_command(folder, request, made, out, here)
        documents[VALIDATION] = _stamped(checked.to_dict(), command)
    told = _told(state, request, about, made, out)
    told |= {
        "doubts": doubts,
        "validation": None
        if one is None
        else {
            **{key: one[key] for key in ("processes", "threads", "parameters", "runtime")},
            "verdict": documents[VALIDATION]["verdict"],
        },
        "machine": {"path": there.file, "assumed": there.assumed},
        "splits": [_row(answer) for answer in table],
        "recommended": _recommended(swept, there, request, table),
        "commands": _commands(state, request, made, there, here, out),
    }
    documents[RESULT] = {**swept.to_dict(), "study": plain(told)}
    return documents


def _target(request: Request, here: Profile, folder: Path) -> machine.Target:
    if request.target_machine is not None:
        given = profile_of(request.target_machine)
        return machine.Target(given, machine.word(given))
    return machine.target(here, request.cores, folder / machine.TARGET)


def _checked(
    folder: Path, request: Request, made: Mapping[Run, Step], out: Run | None, here: Profile
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


def repeats_of(made: Mapping[Run, Step], configuration: Run) -> list[Run]:
    """The repeats of a configuration that tell how long it takes."""
    return [run for run in undisturbed(made) if run.configuration == configuration]


def _answers(
    swept: Sweep,
    signature: Signature,
    here: Profile,
    made: Mapping[Run, Step],
    out: Run | None,
    compared: Mapping[str, Any] | str | None,
) -> list[Answer]:
    """All splits, anchored at the runs."""
    times = times_of(made)
    names = [name for name, _ in next(iter(times)).settings]
    splits = [
        ModelledSplit(
            one.placement.cores,
            Run(*one.split, tuple((name, swept.settings[name]) for name in names)),
            one.runtime.value,
            one.draws,
        )
        for one in swept.candidates
    ]
    modelled = {}
    for run in times:
        split = run.processes, run.threads
        with suppress(PopmodelError):  # more cores than the profile has: another one is nearest
            modelled[run] = predict(signature, here, *split, dict(run.settings)).runtime.value
    missed = 0.0
    if isinstance(compared, Mapping) and out is not None:
        missed = abs(math.log(compared["predicted"]) - times[out].log)
    return answers(splits, times, modelled, missed)


def _row(answer: Answer) -> dict[str, Any]:
    return {
        "cores": answer.cores,
        "processes": answer.run.processes,
        "threads": answer.run.threads,
        "runtime": {"value": answer.value, "low": answer.low, "high": answer.high},
        "plain": answer.plain,
        "anchor": answer.anchor.name,
        "tied": answer.tied,
    }


def _recommended(
    swept: Sweep, there: machine.Target, request: Request, table: Sequence[Answer]
) -> list[dict[str, Any]]:
    """What to take for each number of cores, and what would narrow its interval."""
    launches = {(one["processes"], one["threads"]): one for one in swept.to_dict()["candidates"]}
    found = []
    for cores in dict.fromkeys(answer.cores for answer in table):
        of_cores = [answer for answer in table if answer.cores == cores]
        taken = min(of_cores, key=lambda answer: answer.value)
        split = taken.run.processes, taken.run.threads
        one = predict(swept.signature, there.profile, *split, request.target)
        found.append(
            {
                **{key: value for key, value in _row(taken).items() if key != "tied"},
                "equal": [
                    [answer.run.processes, answer.run.threads]
                    for answer in of_cores
                    if answer.tied and answer is not taken
                ],
                "launch": launches[split]["launch"],
                "launch_mpirun": launches[split]["launch_mpirun"],
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
    request: Request,
    about: Prepared,
    made: Mapping[Run, Step],
    out: Run | None,
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


def _not_run(state: Manifest, about: Prepared, made: Mapping[Run, Step]) -> list[dict[str, str]]:
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


def _commands(
    state: Manifest,
    request: Request,
    made: Mapping[Run, Step],
    there: machine.Target,
    here: Profile,
    out: Run | None,
) -> list[dict[str, str]]:
    """What does each step by itself, in order."""
    steps = [step_of(run) for run in made if run.repeat == 1]
    steps += [name for name in ("machine", "check", "signature") if name in state.steps]
    found = [{"step": name, "command": state.steps[name].command} for name in steps]
    found.append({"step": "sweep", "command": _sweep_command(state.folder, request, there)})
    if out is not None:
        command = _validate_command(state.folder, request, made, out, here)
        found.append({"step": "validation", "command": command})
    return found


def _sweep_command(folder: Path, request: Request, there: machine.Target) -> str:
    words = ["popmodel", "sweep", str(folder / learning.SIGNATURE), "--machine", there.file]
    words += ["--cores", ",".join(map(str, request.cores))]
    return shell.join([*words, *_set(request.target)])


def _validate_command(
    folder: Path, request: Request, made: Mapping[Run, Step], out: Run, here: Profile
) -> str:
    signature = folder / (learning.SIGNATURE if request.signature else learning.CHECK)
    traces = [str(trace_of(folder, run)) for run in repeats_of(made, out)]
    words = ["popmodel", "validate", str(signature), *traces]
    words += ["--machine", machine.word(here), "--all-runs"]
    return shell.join([*words, *_set(dict(out.settings))])


def _set(values: Mapping[str, float]) -> list[str]:
    return [word for name, value in values.items() for word in ("--set", f"{name}={value:.15g}")]


def role_of(run: Run, out: Run | None) -> str:
    return "predicted" if run.configuration == out else "learnt from"


def _stamped(content: Mapping[str, Any], command: str) -> dict[str, Any]:
    stamp = plain(provenance.collect(()))
    return {**content, "provenance": {**stamp, "command": command}}
