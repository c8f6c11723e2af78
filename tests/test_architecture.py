"""Rooms import downwards only, as declared in pyproject.toml; and numbers stay in their room."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

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


def modules(room: str) -> set[str]:
    """Modules and packages of a room, by their full names."""
    folder = ROOT / Path(*room.split("."))
    found = [*folder.glob("[!_]*.py"), *(path.parent for path in folder.glob("[!_]*/__init__.py"))]
    return {f"{room}.{path.stem}" for path in found}


def contract(name: str) -> dict[str, Any]:
    """A contract of the linter."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    return next(one for one in declared["contracts"] if one["name"] == name)


def layer(text: str) -> set[str]:
    return set(re.split(r" [|:] ", text))


def test_every_room_has_a_layer_and_none_but_that_of_traces_and_the_core_may_know_numbers() -> None:
    layers = [layer(one) for one in contract("rooms import downwards only")["layers"]]
    rooms = {one for one in modules("popmodel") if (ROOT / one.replace(".", "/")).is_dir()}
    assert set.union(*layers) >= rooms - {"popmodel.docs"}
    numbers = contract("only the room of Paraver traces knows the numbers of their events")
    below = {"popmodel.traces", "popmodel.kernel", "popmodel.base", "popmodel.docs"}
    assert set(numbers["source_modules"]) == rooms - below


def test_every_module_of_traces_is_held_to_know_no_format() -> None:
    *formats, held = map(layer, contract("what is made of a trace knows no format")["layers"])
    assert held == modules("popmodel.traces") - set.union(*formats)


DRAWING = {"formats", "result"}
"""Modules of reports that render; the others say what is shown, as blocks, whatever the screen."""


def test_reports_draw_nothing() -> None:
    for path in sorted((ROOT / "popmodel" / "reports").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert ("from popmodel.reports.renderers" in text) <= (path.stem in DRAWING), path


PARAVER = ROOT / "popmodel" / "traces" / "paraver"
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


@pytest.mark.long
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
