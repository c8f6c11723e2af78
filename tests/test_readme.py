"""The README is true: its Python runs, links lead somewhere, options exist.

What its commands print is tested with that of the other documents: tests/docs/test_console.py.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from popmodel.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_the_two_commands_are_there() -> None:
    assert "\npython -m pip install . && popmodel predict --procs 16 --threads 4\n" in README
    assert "\npython -m pip install -e '.[test]' && python -m pytest\n" in README


def test_ci_runs_exactly_these_two() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert "python -m pip install . && popmodel predict --procs 16 --threads 4\n" in script
    assert "python -m pip install -e '.[test]' && python -m pytest\n" in script


def test_the_python_example_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out == "0.205\n1.28 .. 1.44 s\n"


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
