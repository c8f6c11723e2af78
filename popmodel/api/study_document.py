"""The documents of a study: what was done, what to take, how good the prediction is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from popmodel import provenance, shell
from popmodel.api.inputs import profile_of, signature_of
from popmodel.api.inputs import trace_of as trace_of_path
from popmodel.api.predict import Prediction, predict
from popmodel.api.sweep import Sweep, sweep
from popmodel.api.validate import Validation, validate
from popmodel.efficiency.measure import analyse
from popmodel.machine.profile import Profile
from popmodel.plain import plain
from popmodel.runs.measurement import from_run
from popmodel.study import found, machine, runs
from popmodel.study.manifest import Manifest
from popmodel.study.plan import Run
from popmodel.study.request import Prepared, Request
from popmodel.study.traced import trace_of

RESULT, SWEEP, VALIDATION = "study.json", "sweep.json", "validation.json"


def result(
    state: Manifest, request: Request, about: Prepared, made: Sequence[Run], out: Run
) -> dict[str, Any]:
    """The documents of a study, by the names of their files."""
    folder = state.folder
    here = profile_of(request.machine or folder / machine.PROFILE)
    there = machine.target(here, request.cores, folder / machine.TARGET)
    if request.target_machine is not None:
        given = profile_of(request.target_machine)
        there = machine.Target(given, machine.word(given))
    signature = signature_of(folder / found.SIGNATURE)
    if signature.command == (f"./{signature.name}",):  # found anew or written by hand without it
        signature = replace(signature, command=about.own_words)
    swept = sweep(signature, there.profile, request.cores, request.target)
    checked = validate(
        signature,
        trace_of(folder, out),
        machine=here,
        settings=dict(out.settings),
        all_runs=True,
    )
    documents: dict[str, Any] = {
        SWEEP: _stamped(swept.to_dict(), _sweep_command(folder, request, there)),
        VALIDATION: _stamped(checked.to_dict(), _validate_command(folder, out, here)),
    }
    told = _told(state, request, about, made, out)
    told |= _judged(swept, checked, there, request)
    told["commands"] = _commands(state, made, there, here, out, request)
    documents[RESULT] = {**swept.to_dict(), "study": plain(told)}
    return documents


def _told(
    state: Manifest, request: Request, about: Prepared, made: Sequence[Run], out: Run
) -> dict[str, Any]:
    """What was done, for the document."""
    folder = state.folder
    signature = state.steps["signature"]
    return {
        "folder": folder,
        "program": about.name,
        "words": request.command,
        "runs": [
            {
                "name": run.name,
                **run.to_dict(),
                "role": role_of(run, out),
                "seconds": state.steps[runs.step_of(run)].facts["seconds"],
                **_measured(trace_of(folder, run)),
                "trace": trace_of(folder, run),
            }
            for run in made
        ],
        "budget": request.budget,
        "not_run": _not_run(state, about, made),
        "signature": {
            "path": folder / found.SIGNATURE,
            "given": signature.facts["given"],
            "notes": signature.facts["notes"],
        },
        "target": request.target,
    }


def _not_run(state: Manifest, about: Prepared, made: Sequence[Run]) -> list[dict[str, str]]:
    """Runs that were planned and not made, and why."""
    facts = state.steps[runs.step_of(made[0])].facts
    able = runs.suited(about.runs, about.words, facts)

    def why(run: Run) -> str:
        if run not in able:
            return "no OpenMP in the program"
        failed = runs.failure(state, run)
        return "the budget" if failed is None else failed.removeprefix(f"run {run.split} ")

    return [{"name": run.name, "why": why(run)} for run in about.runs if run not in made]


def _measured(path: Path) -> dict[str, Any]:
    """What a trace says of its run: how long it took, and whether it had the cores for itself."""
    run = analyse(trace_of_path(path))
    one = from_run(run)
    return {"runtime": one.runtime, "disturbed": one.disturbed, "waited": run.evidence.waited}


def _judged(
    swept: Sweep, checked: Validation, there: machine.Target, request: Request
) -> dict[str, Any]:
    """What to think of the recommendation: the run that was left out, and what is uncertain."""
    (compared,) = checked.to_dict()["splits"]
    recommended = []
    for choice in swept.choices:
        taken = choice.taken
        one = predict(swept.signature, there.profile, *taken.split, request.target)
        recommended.append(
            {
                "cores": choice.cores,
                "processes": taken.split[0],
                "threads": taken.split[1],
                "runtime": taken.runtime,
                "doubtful": one.doubtful,
                "measure": one.measure,
                "sources": _sources(one),
            }
        )
    return {
        "validation": {
            "processes": compared["processes"],
            "threads": compared["threads"],
            "parameters": compared["parameters"],
            "runtime": compared["runtime"],
            "verdict": checked.to_dict()["verdict"],
        },
        "machine": {"path": there.file, "assumed": there.assumed},
        "recommended": recommended,
    }


def _sources(one: Prediction) -> dict[str, str]:
    """What the constants of the signature that are uncertain were found in."""
    return {
        name: one.inputs[name].source or "the traces"
        for name in one.doubtful
        if name.startswith("constants.") and name in one.inputs
    }


def _commands(
    state: Manifest,
    made: Sequence[Run],
    there: machine.Target,
    here: Profile,
    out: Run,
    request: Request,
) -> list[dict[str, str]]:
    """What does each step by itself, in order."""
    steps = [runs.step_of(run) for run in made]
    steps += [name for name in ("machine", "signature") if name in state.steps]
    done = [{"step": name, "command": state.steps[name].command} for name in steps]
    return [
        *done,
        {"step": "sweep", "command": _sweep_command(state.folder, request, there)},
        {"step": "validation", "command": _validate_command(state.folder, out, here)},
    ]


def _sweep_command(folder: Path, request: Request, there: machine.Target) -> str:
    words = ["popmodel", "sweep", str(folder / found.SIGNATURE), "--machine", there.file]
    words += ["--cores", ",".join(map(str, request.cores))]
    return shell.join([*words, *_set(request.target)])


def _validate_command(folder: Path, out: Run, here: Profile) -> str:
    words = ["popmodel", "validate", str(folder / found.SIGNATURE), str(trace_of(folder, out))]
    words += ["--machine", machine.word(here), "--all-runs"]
    return shell.join([*words, *_set(dict(out.settings))])


def _set(values: Mapping[str, float]) -> list[str]:
    return [word for name, value in values.items() for word in ("--set", f"{name}={value:.15g}")]


def role_of(run: Run, out: Run | None) -> str:
    return "predicted" if run == out else "learnt from"


def _stamped(one: Mapping[str, Any], command: str) -> dict[str, Any]:
    stamp = plain(provenance.collect(()))
    return {**one, "provenance": {**stamp, "command": command}}
