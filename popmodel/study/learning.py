"""What a study learns from its runs: the signature of the program, found in their traces."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from popmodel import files, shell
from popmodel.model import signatures
from popmodel.signature import Run as TracedRun
from popmodel.signature import signature_from
from popmodel.study.executor import trace_of, undisturbed
from popmodel.study.manifest import Step, unwritable
from popmodel.study.plan import REPEATS, Run
from popmodel.trace import read
from popmodel.trace.focus import focused

SIGNATURE = "signature.toml"
CHECK = "check.toml"
"""The signature without the configuration that was left out, which it is judged by."""
_NAME = re.compile(r"^\[app\][^\[]*?^name\s*=[^\n]*\n", re.MULTILINE)


def learnt_from(runs: Mapping[Run, Step]) -> list[Run]:
    """Return the runs to learn from: some repeats of each configuration, about its usual time."""
    known = undisturbed(runs)
    by_configuration: dict[Run, list[Run]] = {}
    for run in known:
        by_configuration.setdefault(run.configuration, []).append(run)
    chosen = []
    for repeats in by_configuration.values():
        ranked = sorted(repeats, key=lambda run: known[run].facts["runtime"])
        begin = max(0, (len(ranked) - REPEATS) // 2)
        chosen += sorted(ranked[begin : begin + REPEATS], key=lambda run: run.repeat)
    return chosen


def signature_of_runs(
    folder: Path,
    runs: Sequence[Run],
    name: str,
    made: Sequence[Mapping[str, float]],
    refused: Sequence[Mapping[str, float]],
) -> tuple[str, tuple[str, ...]]:
    """Return the signature of a program as text, and what its runs leave open."""
    traced = [
        TracedRun(focused(read(trace_of(folder, run)))[0], dict(run.settings)) for run in runs
    ]
    found = signature_from(traced, name=name, made=made, refused=refused)
    return found.text, tuple(found.notes)


def command(path: Path, folder: Path, runs: Sequence[Run]) -> str:
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


def _parameters(run: Run) -> str:
    values = [f"{name}={value:.15g}" for name, value in run.settings]
    return f":{','.join(values)}" if values else ""
