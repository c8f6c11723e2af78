"""The signature of a study: found in its traces, or given by the user."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from popmodel import files, shell
from popmodel.model import signatures
from popmodel.study.manifest import unwritable
from popmodel.study.plan import Run
from popmodel.values import dataclass

SIGNATURE = "signature.toml"
_NAME = re.compile(r"^\[app\][^\[]*?^name\s*=[^\n]*\n", re.MULTILINE)


@dataclass(frozen=True)
class Extracted:
    """A signature, as text, and what could not be found out."""

    text: str
    notes: tuple[str, ...] = ()


Runs: TypeAlias = Sequence[Mapping[str, float]]
"""P, T and the parameters of runs."""
Extract: TypeAlias = Callable[[Mapping[Path, Mapping[str, float]], str, Runs, Runs], Extracted]
"""Makes a signature of traces, each with the values of the parameters of its run; of a name; and of
runs that the program made, and that it refused."""


def command(folder: Path, traces: Mapping[Path, Run]) -> str:
    """Return the command that finds the signature in some traces by itself."""
    words = [f"{path}{_parameters(run)}" for path, run in traces.items()]
    target = str(folder / SIGNATURE)
    return shell.join(["popmodel", "signature", "from", *words, "-o", target, "--force"])


def write(folder: Path, found: Extracted, words: Sequence[str]) -> Path:
    """Write a signature into the directory of a study, with the words that start the program."""
    path = folder / SIGNATURE
    try:
        text = _with_command(found.text, shell.join(words))
        files.write_text(path, text, read=signatures.load)
    except OSError as error:
        raise unwritable(path, error) from error
    return path


def _with_command(text: str, command: str) -> str:
    """A signature that says how its program is started; one that says so already stays as it is."""
    if "command" in tomllib.loads(text)["app"]:
        return text
    line = f"command = {json.dumps(command, ensure_ascii=False, allow_nan=False)}\n"
    return re.sub(_NAME, lambda found: found[0] + line, text, count=1)


def _parameters(run: Run) -> str:
    values: Sequence[str] = [f"{name}={value:.15g}" for name, value in run.settings]
    return f":{','.join(values)}" if values else ""
