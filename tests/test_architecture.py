"""Rooms import downwards only, as declared in pyproject.toml; and numbers stay in their room."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_rooms_import_downwards_only() -> None:
    # In a process of its own: the linter prints in its own way and keeps a cache.
    code = "import sys, importlinter.cli as c; sys.exit(c.lint_imports(no_cache=True))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    declared = (ROOT / "pyproject.toml").read_text().count("[[tool.importlinter.contracts]]")
    assert f"Contracts: {declared} kept, 0 broken." in done.stdout


PARAVER = ROOT / "popmodel" / "trace" / "paraver"
# Event types of Extrae, and those that popmodel's tracer adds.
NUMBERS = (
    range(40_000_001, 40_010_000),
    range(42_000_000, 43_000_000),
    range(50_000_001, 50_200_000),
    range(60_000_001, 60_001_000),
    range(60_001, 60_100),
    range(70_000_001, 70_000_100),
    range(80_000_001, 80_000_100),
)


def test_numbers_of_events_stand_in_the_room_of_paraver_only() -> None:
    found, elsewhere = 0, []
    for path in sorted((ROOT / "popmodel").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and type(node.value) is int:
                is_number = any(node.value in each for each in NUMBERS)
                if is_number and path.is_relative_to(PARAVER):
                    found += 1
                elif is_number:
                    elsewhere.append(f"{path.relative_to(ROOT)}:{node.lineno}: {node.value}")
    assert found > 50
    assert elsewhere == []
