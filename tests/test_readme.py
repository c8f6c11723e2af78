"""The README is true: commands print what it shows, its Python runs, links lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from popmodel.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
EXAMPLES = re.findall(r"```console\n\$ popmodel (.*?)\n(.*?)```", README, re.DOTALL)
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def test_the_two_commands_are_there() -> None:
    assert "\npython -m pip install . && popmodel predict --procs 16 --threads 4\n" in README
    assert "\npython -m pip install -e '.[test]' && python -m pytest\n" in README


def test_ci_runs_exactly_these_two() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert "python -m pip install . && popmodel predict --procs 16 --threads 4\n" in script
    assert "python -m pip install -e '.[test]' && python -m pytest\n" in script


@pytest.mark.parametrize(("command", "shown"), EXAMPLES, ids=[c for c, _ in EXAMPLES])
def test_commands_print_what_is_shown(
    command: str,
    shown: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(shlex.split(command)) == 0
    printed = capsys.readouterr().out.split("\n\npopmodel 0.")[0]
    assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", shown).split()
    # Random draws may end a digit apart on another processor.
    for ours, theirs in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
        assert float(ours) == pytest.approx(float(theirs), rel=0.02, abs=0.11)


def test_there_are_examples_to_test() -> None:
    verbs = {command.split()[0] for command, _ in EXAMPLES}
    assert verbs == {"predict", "sweep", "metrics", "replay", "explain"}


def test_the_python_example_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out == "0.205\n1.26 .. 1.42 s\n"


def test_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    assert targets
    for target in targets:
        assert target.startswith("http") or (ROOT / target).exists(), target


def test_options_in_the_text_exist(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in (
        "info",
        "metrics",
        "replay",
        "predict",
        "sweep",
        "signature",
        "trace",
        "validate",
        "bench",
        "machine",
        "doctor",
        "explain",
    ):
        assert main([verb, "--help"]) == 0
    known = capsys.readouterr().out
    for option in set(re.findall(r"(?<=[ `])--[a-z][a-z-]+", README)) - {
        "--distribution",
        "--ntasks-per-node",
        "--cpu-bind",
        "--map-by",
        "--bind-to",
    }:
        assert option in known, option
