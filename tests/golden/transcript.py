"""What popmodel prints: transcripts of commands, run again and compared.

A transcript (``*.txt`` beside this file) is a list of commands, each with what it printed::

    $ popmodel metrics two.prv
    ...
    ! a line of standard error
    ? 1

``? N`` is the exit status where it is not 0. A command that is not popmodel's is run by a shell: it
writes the files of the case. All run in one folder that has the repository's ``data`` (of tests)
and ``examples``. Host, time and version are replaced.

    python tests/golden/transcript.py update [NAME...]    # write what is printed now
    python tests/golden/transcript.py compare PYTHON...   # two installed versions

`compare` runs all commands with two interpreters (or one and this one), and prints each command
whose text differs, or whose numbers differ by more than 1e-12.
"""

from __future__ import annotations

import difflib
import io
import json
import math
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import popmodel

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PACKAGE = str(Path(popmodel.__file__).parent)
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")
_VARIABLE = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "<time>"),
    (re.compile(r"(?<=have taught, )20\d\d-\d\d-\d\d"), "<day>"),
    (re.compile(r"(?<=  )20\d\d-\d\d-\d\d(?=  )"), "<day>-----"),
    (re.compile(r"(popmodel(?:\": \"| ))\d+\.\d+\.\d+[^\s\",|]*"), r"\1<version>"),
    (re.compile(r",\d+\.\d+\.\d+[^\s\",]*,<time>,[^,]*,"), ",<version>,<time>,<host>,"),
    (re.compile(rf"(\bon |\"host\": \"){re.escape(os.uname().nodename)}\b"), r"\1<host>"),
)


class Case(NamedTuple):
    """A command, and what it prints."""

    command: str
    text: str


def names() -> list[str]:
    """Names of all transcripts."""
    return sorted(path.stem for path in HERE.glob("*.txt"))


def stored(name: str) -> list[Case]:
    """The cases of a transcript."""
    text = (HERE / f"{name}.txt").read_text()
    parts = re.split(r"^\$ (.*)\n", text, flags=re.MULTILINE)[1:]
    return [Case(*pair) for pair in zip(parts[::2], parts[1::2], strict=True)]


def run(commands: list[str], folder: Path) -> Iterator[Case]:
    """Run commands one after the other in a folder, which becomes theirs."""
    for name, target in (("data", ROOT / "tests" / "data"), ("examples", ROOT / "examples")):
        (folder / name).symlink_to(target)
    with chdir(folder):
        for command in commands:
            words = shlex.split(command)
            if words[0] == "popmodel":
                yield Case(command, _printed(words[1:], folder))
            else:
                subprocess.run(["sh", "-c", command], check=True)
                yield Case(command, "")


def _printed(arguments: list[str], folder: Path) -> str:
    """What popmodel prints, without what differs between machines and days."""
    from popmodel.cli import main

    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        status = main(arguments)
    said = []
    for stream in (out, err):
        stream.flush()
        text = stream.buffer.getvalue().decode().replace("\r\n", "\n")  # type: ignore[attr-defined]
        for pattern, instead in _VARIABLE:
            text = pattern.sub(instead, text)
        said.append(text.replace(str(folder), "<folder>").replace(PACKAGE, "<popmodel>"))
    text = said[0] if said[0].endswith("\n") or not said[0] else f"{said[0]}\n"
    text = "".join(f"\\{line}" if line.startswith("$ ") else line for line in text.splitlines(True))
    text += "".join(f"! {line}\n" for line in said[1].splitlines())
    return text + (f"? {status}\n" if status else "")


def differences(expected: str, printed: str, tolerance: float) -> list[str]:
    """Lines that differ; numbers may by a relative tolerance."""
    if expected == printed:
        return []
    words = [_NUMBER.split(text) for text in (expected, printed)]
    numbers = [map(float, _NUMBER.findall(text)) for text in (expected, printed)]
    if words[0] == words[1] and all(
        math.isclose(one, other, rel_tol=tolerance) for one, other in zip(*numbers, strict=True)
    ):
        return []
    both = (text.splitlines() for text in (expected, printed))
    return list(difflib.unified_diff(*both, "expected", "printed", lineterm="", n=1))


def update(chosen: list[str]) -> None:
    """Write transcripts anew."""
    for name in chosen or names():
        with tempfile.TemporaryDirectory() as folder:
            cases = list(run([case.command for case in stored(name)], Path(folder).resolve()))
        text = "".join(f"$ {case.command}\n{case.text}" for case in cases)
        (HERE / f"{name}.txt").write_text(text)


def compare(interpreters: list[str]) -> int:
    """Compare two installed versions, a JSON of all cases from each; exit status."""
    results = []
    for python in [*interpreters, sys.executable][:2]:
        out = subprocess.run([python, __file__, "run"], stdout=subprocess.PIPE, check=True).stdout
        results.append(json.loads(out))
    differing = 0
    for name, cases in results[0].items():
        for (command, expected), (_, printed) in zip(cases, results[1][name], strict=True):
            if lines := differences(expected, printed, 1e-12):
                differing += 1
                print(f"{name}: $ {command}", *lines, "", sep="\n")
    print(f"{differing} of {sum(map(len, results[0].values()))} commands differ")
    return int(differing > 0)


def _all() -> dict[str, list[Case]]:
    printed = {}
    for name in names():
        with tempfile.TemporaryDirectory() as folder:
            commands = [case.command for case in stored(name)]
            printed[name] = list(run(commands, Path(folder).resolve()))
    return printed


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))
    from surroundings import neutral_environment

    neutral_environment(os.environ)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["POPMODEL_CACHE_DIR"] = cache
        match sys.argv[1:]:
            case ["update", *chosen]:
                update(chosen)
            case ["compare", *interpreters] if interpreters:
                sys.exit(compare(interpreters))
            case ["run"]:
                print(json.dumps(_all()))
            case _:
                sys.exit(__doc__)
