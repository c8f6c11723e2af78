"""How large the rooms of the package may be, and that names tell things apart.

A limit is lowered when a room gets smaller; raising one needs its reason in the commit.
"""

from __future__ import annotations

import ast
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import popmodel

PACKAGE = Path(popmodel.__file__).parent
FILES = {path: list(ast.walk(ast.parse(path.read_text()))) for path in PACKAGE.rglob("*.py")}

STATEMENTS = {
    "reports": 6863,
    "model": 7812,
    "traces": 5857,
    "signatures": 3395,
    "tracer": 3121,
    "simulator": 2572,
    "cli": 4056,
    "efficiency": 2376,
    "source": 6642,
    "structure": 3930,
    "fit": 3411,
    "(top)": 44,
    "base": 1764,
    "runs": 2422,
    "network": 1157,
    "sensitivity": 1279,
    "machines": 5160,
    "validation": 934,
    "timeline": 881,
    "studies": 1823,
    "prediction": 1924,
    "kernel": 16,
}
MOST_FILES = 396
MOST_CLASS_NAMES_BORNE_TWICE = 0
MOST_FILE_NAMES_BORNE_TWICE = 0
REPEATED = {"kinds", "terms", "families"}
"""Folders of one file for each of many alike, whose names may stand elsewhere, too."""


TOP = {
    *("pyproject.toml", "README.md", "popmodel", "microbench", "tests", "examples"),
    *("LICENSE", "CHANGELOG.md", "CITATION.cff", ".ci", ".github", ".gitignore"),
}


def test_nothing_else_is_kept_at_the_top() -> None:
    root = Path(__file__).resolve().parents[1]
    words = ["git", "-C", root, "ls-tree", "--name-only", "HEAD"]
    kept = subprocess.run(words, capture_output=True, text=True, check=False)
    if kept.returncode:
        pytest.skip("needs a git repository")
    assert set(kept.stdout.split()) <= TOP


def room_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else "(top)"


def borne_twice(names: Counter[str]) -> list[str]:
    return [name for name, times in names.items() if times > 1]


def test_no_room_has_more_statements_than_its_limit() -> None:
    found: Counter[str] = Counter()
    for path, nodes in FILES.items():
        found[room_of(path)] += sum(isinstance(node, ast.stmt) for node in nodes)
    assert {room: number for room, number in found.items() if number > STATEMENTS[room]} == {}
    assert len(FILES) <= MOST_FILES


def test_no_more_names_are_borne_twice() -> None:
    every = (node for nodes in FILES.values() for node in nodes)
    classes = Counter(node.name for node in every if isinstance(node, ast.ClassDef))
    files = Counter(
        path.name for path in FILES if path.name != "__init__.py" and not REPEATED & set(path.parts)
    )
    assert len(borne_twice(classes)) <= MOST_CLASS_NAMES_BORNE_TWICE, borne_twice(classes)
    assert len(borne_twice(files)) <= MOST_FILE_NAMES_BORNE_TWICE, borne_twice(files)
