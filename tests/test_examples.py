"""The commands in the READMEs of the examples run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from popmodel.cli import main

ROOT = Path(__file__).parent.parent
COMMANDS = [
    (readme.parent.name, command)
    for readme in sorted((ROOT / "examples").rglob("README.md"))
    for command in re.findall(r"^    popmodel (.*)$", readme.read_text(), re.MULTILINE)
]


@pytest.mark.parametrize(("example", "command"), COMMANDS, ids=[c for _, c in COMMANDS])
def test_a_command_of_an_example(
    example: str,
    command: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(shlex.split(command)) == 0, example
    shown = capsys.readouterr()
    assert shown.out
    assert shown.err == ""


def test_every_example_is_run() -> None:
    folders = {path.name for path in (ROOT / "examples").iterdir() if path.is_dir()}
    assert folders == {example for example, _ in COMMANDS}
