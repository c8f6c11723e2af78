"""The page for contributors names rooms and files that are there."""

from __future__ import annotations

import re
from pathlib import Path

import popmodel

PACKAGE = Path(popmodel.__file__).parent
PAGE = (PACKAGE.parent / ".github" / "CONTRIBUTING.md").read_text()


def test_every_file_it_names_is_there() -> None:
    named = re.findall(r"`([a-z_]+/[a-z_/]+\.(?:py|toml))`", PAGE)
    assert len(named) > 20
    roots = (PACKAGE, PACKAGE.parent)
    assert [name for name in named if not any((root / name).exists() for root in roots)] == []


def test_every_room_is_in_its_table() -> None:
    table = re.findall(r"^\| ((?:`[a-z]+`(?:, )?)+) \|", PAGE, re.MULTILINE)
    rooms = {room for row in table for room in re.findall(r"`([a-z]+)`", row)}
    there = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert there == rooms
