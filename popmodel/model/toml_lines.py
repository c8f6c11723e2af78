"""Find the line of a key in TOML text: the standard reader gives values without positions."""

from __future__ import annotations

import re
from collections.abc import Mapping

Path = tuple[str | int, ...]

_HEADER = re.compile(r"^\s*\[\s*([^\[\]]+?)\s*\]\s*(?:#.*)?$")
_ARRAY_HEADER = re.compile(r"^\s*\[\[\s*([^\[\]]+?)\s*\]\]\s*(?:#.*)?$")
_BARE = r"(?:[A-Za-z0-9_-]+|\"[^\"]*\")"
_KEY = re.compile(rf"^\s*({_BARE}(?:\s*\.\s*{_BARE})*)\s*=")


def key_lines(text: str) -> dict[Path, int]:
    """Give the line of every table header and every key that starts a line.

    Parameters
    ----------
    text : str
        TOML that parses.

    Returns
    -------
    dict of path to int
        Lines counted from 1. A path holds the keys, and for an array of tables the index:
        ``("program", 0, "body", 1, "shift")``. Keys inside an inline table have no line of their
        own: ask `line_of`, which falls back to the table they are in.
    """
    lines: dict[Path, int] = {}
    counts: dict[Path, int] = {}
    table: Path = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _ARRAY_HEADER.match(line):
            prefix = _resolve(_parts(match[1]), counts)
            counts[prefix] = counts.get(prefix, -1) + 1
            for key in [key for key in counts if key[: len(prefix)] == prefix and key != prefix]:
                del counts[key]  # a new element starts its own arrays at 0
            table = (*prefix, counts[prefix])
            lines.setdefault(prefix, number)
            lines[table] = number
        elif match := _HEADER.match(line):
            parts = _parts(match[1])
            table = (*_resolve(parts[:-1], counts, last=True), parts[-1])
            lines.setdefault(table, number)
        elif match := _KEY.match(line):
            path = table
            for part in _parts(match[1]):
                path = (*path, part)
                lines.setdefault(path, number)
    return lines


def line_of(lines: Mapping[Path, int], path: Path) -> int | None:
    """Give the line of a path, or of the nearest table around it."""
    while path:
        if path in lines:
            return lines[path]
        path = path[:-1]
    return None


def _parts(dotted: str) -> list[str]:
    return [part.strip().strip('"') for part in dotted.split(".")]


def _resolve(parts: list[str], counts: Mapping[Path, int], *, last: bool = False) -> Path:
    """Insert the index of the current element after every array of tables on the way."""
    path: Path = ()
    for index, part in enumerate(parts):
        path = (*path, part)
        if path in counts and (last or index < len(parts) - 1):
            path = (*path, counts[path])
    return path
