"""The README's two commands, and its length.

Everything else is tested as in the other documents: tests/docs.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_the_two_commands_are_there() -> None:
    assert "\npython -m pip install . && popmodel predict --procs 16 --threads 4\n" in README
    assert "\npython -m pip install -e '.[test]' && python -m pytest -n auto\n" in README


def test_ci_runs_exactly_these_two() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert "python -m pip install . && popmodel predict --procs 16 --threads 4\n" in script
    assert "python -m pip install -e '.[test]' && python -m pytest -n auto\n" in script


def test_it_is_short_enough_to_be_read() -> None:
    assert len(README.splitlines()) < 200
