"""Files that people write or exchange: finding bundled ones, reading them, errors with lines.

What is read from JSON is checked against a `DocumentKind` before anything uses it.
"""

from __future__ import annotations

import io
import json
import os
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from popmodel.errors import FileError, UsageError, did_you_mean
from popmodel.shapes import Shape, ShapeError, shown

_TOO_MUCH = "is nested too deeply, or contains a number with too many digits"
LARGEST = 256 << 20
"""Bytes of a file that is read as a whole."""
LARGEST_TOML = 1 << 20
"""Bytes of a file that people write: ten thousand lines are a quarter of it."""
LONGEST_NAME = 32
"""Parts of a dotted name: the time that it takes to read one grows with the square of them."""
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
# A match begins where a part does: else each place in a long word would be tried up to its end.
_LONG_NAME = rf"(?a)(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{LONGEST_NAME}}}"

_FORMULA = r"'*\s*[=+\-@\uff1d\uff0b\uff0d\uff20]"
"""How a cell begins that spreadsheets compute; full-width signs count in some of them."""


class Bundled:
    """Files of one kind that come with popmodel."""

    def __init__(self, folder: Path, suffix: str, what: str, described: str) -> None:
        self._folder = folder
        self._suffix = suffix
        self._what = what
        self._described = described

    def names(self) -> list[str]:
        """Names of the bundled files, without suffix, in order."""
        return sorted(path.stem for path in self._folder.glob(f"*{self._suffix}"))

    def find(self, source: str | os.PathLike[str]) -> tuple[Path, bool]:
        """Path of a bundled file by its name, else of a file, and whether it is bundled.

        The name of a bundled one means it wherever one is: beside an example lie its folder and its
        program under the same name. A file of that name is reached as ``./NAME``.
        """
        name = os.fspath(source)
        path = Path(name)
        known = self.names()
        if name in known:
            return self._folder / f"{name}{self._suffix}", True
        if path.exists() or os.sep in name or name.endswith(self._suffix):
            return path, False
        raise UsageError(
            f"no {self._what} {name!r}: {self._described}",
            did_you_mean(name, known, f"choose a file or one of {', '.join(known)}"),
        )


def read_text(path: str | os.PathLike[str], error: type[FileError] = FileError) -> str:
    """Text of a file in UTF-8; raises `error` if there is none.

    The byte order mark that spreadsheets and some editors begin a file with is no part of it.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise error(path, f"is larger than {LARGEST >> 20} MiB, the limit for documents")
        return io.StringIO(content.decode("utf-8-sig"), newline=None).read()
    except FileNotFoundError as reason:
        missing = error(path, f"cannot be read: {reason.strerror}")
        missing.hint = missing.hint or "check its path"
        raise missing from None
    except OSError as reason:
        raise error(path, f"cannot be read: {reason.strerror}") from None
    except UnicodeDecodeError:
        raise error(path, "is not UTF-8 text") from None


def csv_cell(text: str) -> str:
    """Return a text as a cell of CSV: behind ``'`` what a spreadsheet would take for a formula."""
    if not re.match(_FORMULA, text):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def csv_text(cell: str) -> str:
    """Return the text of a cell of CSV, as `csv_cell` was given it."""
    return cell[1:] if cell.startswith("'") and re.match(_FORMULA, cell) else cell


def parse_toml(
    text: str, path: str | os.PathLike[str], error: type[FileError] = FileError
) -> dict[str, Any]:
    """Table of a TOML text; raises `error` with line and column if it is none."""
    if len(text) > LARGEST_TOML:
        raise error(path, f"is larger than {LARGEST_TOML >> 20} MiB, the limit for TOML files")
    if found := re.search(_LONG_NAME, text):
        line = text.count("\n", 0, found.start()) + 1
        raise error(path, f"contains a key with more than {LONGEST_NAME} parts", line=line)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as reason:
        place = re.search(r"\(at line (\d+), column (\d+)\)", str(reason))
        problem = re.sub(r"\s*\(at .*\)$", "", str(reason))
        # without a place it is the end of the text that came too early
        line, column = (
            (int(place[1]), int(place[2])) if place else (len(text.splitlines()) or 1, None)
        )
        raise error(path, f"is not TOML: {problem}", line=line, column=column) from None
    except (RecursionError, ValueError):
        raise error(path, _TOO_MUCH) from None


def parse_json(
    text: str | bytes,
    path: str | os.PathLike[str],
    error: type[FileError] = FileError,
    *,
    line: int | None = None,
    hint: str | None = None,
) -> Any:
    """Value of a JSON text; raises `error` with the line if it is none."""
    try:
        return json.loads(text, object_pairs_hook=_without_doubles)
    except json.JSONDecodeError as reason:
        at = line or reason.lineno
        raise error(path, f"is not JSON: {reason.msg}", line=at, hint=hint) from None
    except _DoubleError as reason:
        raise error(path, str(reason), line=line, hint=hint) from None
    except UnicodeDecodeError:
        raise error(path, "is not UTF-8 text", line=line, hint=hint) from None
    except (RecursionError, ValueError):
        raise error(path, _TOO_MUCH, line=line, hint=hint) from None


class _DoubleError(Exception):
    """A table has a key twice: which one counts is anybody's guess."""


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        [(double, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise _DoubleError(f"contains the key {shown(double)} twice in one table")
    return table


class DocumentKind:
    """A kind of JSON document: its schema, with a version, and its shape."""

    def __init__(self, schema: str, what: str, shape: Shape, hint: str) -> None:
        self.schema = schema
        self._what = what
        self._shape = shape
        self._hint = hint

    def read(
        self,
        document: Any,
        path: str | os.PathLike[str],
        error: type[FileError] = FileError,
        *,
        line: int | None = None,
    ) -> Any:
        """Return a document as its shape reads it."""
        if not isinstance(document, dict):
            problem = f"is not a {self._what}: the JSON document must be a table"
            raise error(path, problem, line=line, hint=self._hint)
        declared = document.get("schema")
        if declared != self.schema:
            hint, problem = self._hint, f"its schema is {shown(declared)}, not {self.schema!r}"
            if _is_newer(declared, self.schema):
                hint = "it was written by a newer version: update popmodel"
            raise error(path, f"is not a {self._what}: {problem}", line=line, hint=hint)
        return read_shape(document, self._shape, path, error, line=line, hint=self._hint)


def read_shape(
    value: Any,
    shape: Shape,
    path: str | os.PathLike[str],
    error: type[FileError] = FileError,
    *,
    line: int | None = None,
    hint: str | None = None,
) -> Any:
    """Return a value as its shape reads it; raises `error` with the place inside it."""
    try:
        return shape.read(value)
    except ShapeError as reason:
        raise error(path, str(reason), line=line, hint=reason.hint or hint) from None


def _is_newer(declared: object, schema: str) -> bool:
    """Whether a schema is a later version of another."""
    name, _, version = schema.rpartition("/")
    found = (
        re.fullmatch(rf"{re.escape(name)}/(\d{{1,9}})", declared, re.ASCII)
        if isinstance(declared, str)
        else None
    )
    return found is not None and int(found[1]) > int(version)
