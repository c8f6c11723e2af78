"""What a study learns from its runs: the signature of the program, found in their traces.

Where none can be made of the traces, the signature says what the times of the runs tell alone: one
phase that goes with powers of the sizes and in proportion to the cores, and the runs behind it, by
which predictions weigh other laws of the whole run.
"""

from __future__ import annotations

import json
import math
import re
import statistics
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from popmodel.base import files, shell
from popmodel.base.errors import PopmodelError
from popmodel.base.units import format_time
from popmodel.model import signatures
from popmodel.model.signature.application import LearntRun, LearntRuns
from popmodel.signatures import Run as TracedRun
from popmodel.signatures import signature_from
from popmodel.signatures.document import TomlItem, TomlTable, number, text_of
from popmodel.signatures.from_runs import required
from popmodel.studies.executor import (
    DISTURBED,
    by_configuration,
    own_time,
    trace_of,
    undisturbed,
)
from popmodel.studies.manifest import Manifest, StudyStep, unwritable
from popmodel.studies.plan import REPEATS, PlannedRun, half_width
from popmodel.traces import read
from popmodel.traces.selection import focused

SIGNATURE = "signature.toml"
CHECK = "check.toml"
"""The signature without the configuration that was left out, which it is judged by."""
WITHOUT = "no structure was found in the traces"
"""Begins the note of a signature that rests on times alone."""
UNSETTLED = 0.15
"""Half the 90 % interval of the mean of repeats above which splits can hardly be told apart."""
_NAME = re.compile(r"^\[app\][^\[]*?^name\s*=[^\n]*\n", re.MULTILINE)


def learnt_from(runs: Mapping[PlannedRun, StudyStep]) -> dict[PlannedRun, StudyStep]:
    """Return the runs to learn from: some repeats of each configuration, as far apart as all."""
    known = undisturbed(runs)
    chosen: list[PlannedRun] = []
    for configuration in dict.fromkeys(run.configuration for run in known):
        repeats = [run for run in known if run.configuration == configuration]
        ranked = sorted(repeats, key=lambda run: known[run].facts["runtime"])
        middles = {(2 * part + 1) * len(ranked) // (2 * REPEATS) for part in range(REPEATS)}
        chosen += sorted((ranked[rank] for rank in middles), key=lambda run: run.repeat)
    return {run: known[run] for run in chosen}


def signature_of_runs(
    folder: Path,
    runs: Mapping[PlannedRun, StudyStep],
    name: str,
    made: Sequence[Mapping[str, float]],
    refused: Sequence[Mapping[str, float]],
) -> tuple[str, tuple[str, ...]]:
    """Return the signature of a program as text, and what its runs leave open."""
    try:
        traced = [
            TracedRun(focused(read(trace_of(folder, run)))[0], dict(run.settings)) for run in runs
        ]
        found = signature_from(traced, name=name, made=made, refused=refused)
        signatures.from_text(found.text)
    except Exception as error:  # whatever it is: hours of runs tell more than nothing
        why = error.message if isinstance(error, PopmodelError) else repr(error)
        note = f"{WITHOUT} ({why}): only the times of the runs are used"
        return signature_of_times(runs, name, required(made, refused)[0]), (note,)
    return found.text, tuple(found.notes)


def signature_of_times(
    runs: Mapping[PlannedRun, StudyStep], name: str, conditions: Sequence[str]
) -> str:
    """Return a signature that knows the times of runs and nothing of the program."""
    powers = size_powers(runs)
    home = max(runs, key=lambda run: (run.size, run.cores))
    ratios = "".join(f"*({key}/{value:.15g})**e_{key}" for key, value in home.settings)
    level = statistics.geometric_mean(
        own_time(step) * run.cores for run, step in runs.items() if run.settings == home.settings
    )
    constants = {"t_whole": _fit(level, level / 2, level * 2, "s")}
    for (parameter, _), power in zip(home.settings, powers, strict=True):
        constants[f"e_{parameter}"] = _fit(power, power - 0.3, power + 0.3, "1")
    learnt = LearntRuns(
        any(run.threads > 1 for run in runs),
        tuple(
            LearntRun(
                run.processes,
                run.threads,
                ideal=own_time(step),
                written=level / run.cores * _ratio(run, home, powers),
                parameters=dict(run.settings),
                runtime=step.facts["runtime"],
                waited=step.facts["waited"],
            )
            for run, step in runs.items()
        ),
    )
    return text_of(
        [f"Times of {name} without its structure."],
        [
            TomlTable("", {"schema": "popmodel/signature/1"}),
            TomlTable("app", {"name": name}),
            TomlTable("params", dict(home.settings)),
            TomlTable("constants", constants),
            TomlTable("limits", {"require": [*conditions]} if conditions else {}),
        ],
        [TomlItem("serial", {"name": "all", "trip": 1, "seconds": f"t_whole{ratios}/(P*T)"})],
        [TomlTable("learnt", learnt.entries())],
    )


def size_powers(runs: Mapping[PlannedRun, StudyStep]) -> list[float]:
    """Powers of the parameters by which times go, from splits that were run at several sizes."""
    names = len(next(iter(runs)).settings)
    splits = list(dict.fromkeys((run.processes, run.threads) for run in runs))
    rows = np.zeros((len(runs), len(splits) + names))
    for row, run in zip(rows, runs, strict=True):
        row[splits.index((run.processes, run.threads))] = 1
        row[len(splits) :] = [math.log(value) if value > 0 else 0.0 for _, value in run.settings]
    for column in range(names):
        if len({run.settings[column] for run in runs}) == 1:
            rows[:, len(splits) + column] = 0
    logs = np.log([own_time(step) for step in runs.values()])
    return [float(power) for power in np.linalg.lstsq(rows, logs, rcond=None)[0][len(splits) :]]


def _fit(value: float, low: float, high: float, unit: str) -> dict[str, Any]:
    """A constant of a signature that times of runs were fitted by."""
    numbers = {"value": number(value), "low": number(low), "high": number(high)}
    return {**numbers, "unit": unit, "origin": "fit", "source": "times of the runs"}


def _ratio(run: PlannedRun, home: PlannedRun, powers: Sequence[float]) -> float:
    sizes = zip(run.settings, home.settings, powers, strict=True)
    logs = [power * math.log(a / b) for (_, a), (_, b), power in sizes if a > 0 and b > 0]
    return math.exp(sum(logs))


def command(path: Path, folder: Path, runs: Iterable[PlannedRun]) -> str:
    """Return the command that finds the signature in some runs by itself."""
    words = [f"{trace_of(folder, run)}{_parameters(run)}" for run in runs]
    return shell.join(["popmodel", "signature", "from", *words, "-o", str(path), "--force"])


def write(path: Path, text: str, words: Sequence[str]) -> None:
    """Write a signature, with the words that start the program."""
    try:
        files.write_text(path, _with_command(text, shell.join(words)), read=signatures.load)
    except OSError as error:
        raise unwritable(path, error) from error


def _with_command(text: str, command: str) -> str:
    """A signature that says how its program is started; one that says so already stays as it is."""
    if "command" in tomllib.loads(text)["app"]:
        return text
    line = f"command = {json.dumps(command, ensure_ascii=False, allow_nan=False)}\n"
    return re.sub(_NAME, lambda found: found[0] + line, text, count=1)


def _parameters(run: PlannedRun) -> str:
    values = [f"{name}={value:.15g}" for name, value in run.settings]
    return f":{','.join(values)}" if values else ""


# What makes the answer doubtful: few or disturbed runs, the check.


def without_structure(manifest: Manifest) -> list[str]:
    """Say that the signature rests on times alone, where it does."""
    notes = manifest.steps["signature"].facts["notes"]
    return [note for note in notes if note.startswith(WITHOUT)]


def doubts(
    runs: Mapping[PlannedRun, StudyStep],
    out: PlannedRun | None,
    check: Mapping[str, Any] | str | None,
) -> list[str]:
    """Say why the answer of a study is not to be trusted yet, the heaviest reason first.

    ``out`` is the configuration that was left out, if there was one; ``check`` is how it was
    predicted, as a comparison of a validation, or says why it could not be.
    """
    found = []
    repeats = by_configuration(undisturbed(runs))
    busy = [
        run
        for run, steps in repeats.items()
        if all(step.facts["waited"] > DISTURBED for step in steps)
    ]
    if out is None:
        found.append("only one configuration was run: nothing checks the prediction")
    elif isinstance(check, str):
        found.append(f"{label(out)} could not be predicted from the others: {check}")
    elif out in busy:
        found.append(f"the prediction of {label(out)} is not checked: all its runs were disturbed")
    elif check is not None and check["low"] is None:
        found.append(f"{label(out)} was predicted from the others without an interval")
    elif check is not None and not check["low"] <= check["mean"] <= check["high"]:
        found.append(
            f"{label(out)} was predicted from the others as {_interval(check)}, and took "
            f"{format_time(check['mean'])}"
        )
    if busy:
        most = max(step.facts["waited"] for run in busy for step in repeats[run])
        who = "all runs" if len(busy) == len(repeats) else ", ".join(map(label, busy[:4]))
        found.append(
            f"other programs ran beside: in {who} threads waited for CPUs, up to "
            f"{100 * most:.0f} % of their time"
        )
    times = Counter(run.configuration for run in runs)
    few = [run for run, steps in repeats.items() if min(times[run], len(steps) + 1) < REPEATS]
    if few:
        names = ", ".join(map(label, few[:4]))
        found.append(f"run less than {REPEATS} times, or once with CPUs of their own: {names}")
    wide = {run: half_width([own_time(step) for step in steps]) for run, steps in repeats.items()}
    unsettled = [run for run, half in wide.items() if run not in few and half > UNSETTLED]
    if unsettled:
        worst = max(unsettled, key=lambda run: wide[run])
        found.append(f"repeats of {label(worst)} leave its time open by {100 * wide[worst]:.0f} %")
    return found


def label(run: PlannedRun) -> str:
    """A configuration as screens name it: ``2 x 1 N=96``."""
    return " ".join([run.split, *(f"{name}={value:g}" for name, value in run.settings)])


def _interval(check: Mapping[str, Any]) -> str:
    low, high = (format_time(check[end], digits=3) for end in ("low", "high"))
    return f"{format_time(check['predicted'])} (90 %: {low} .. {high})"
