"""Documents and files that people write: what may stand where in them, how they are read."""

from __future__ import annotations

import codecs
import io
import json
import math
import os
import re
import reprlib
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from popmodel.base.errors import FileError, UsageError, did_you_mean
from popmodel.base.values import dataclass

# Shapes of documents: what may stand where in something that was read from a file.
#
# A shape is data, such as ``Table({"processes": Whole(1), "runtime": Real(above=0)})``. Its `read`
# gives a value back as it is used, or says what is wrong with it and where: ``runs[2].runtime
# should be a number above 0, not -5``.


LARGEST = 1e30
"""No quantity of a computer is larger in SI units; products of a few stay far from overflow."""
MOST_EFFICIENCY = 1e6
"""Ratios of very unequal runs are large; what is larger was never measured."""
SMALLEST = 1e-30
"""What is above 0 is at least this: one may divide by it."""
DEEPEST = 32
"""Levels of a value of which nothing is known but that it is JSON."""

_HALF = "[\ud800-\udfff]"
_SHOWN = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxlong = _SHOWN.maxother = 40


class ShapeError(ValueError):
    """A value is not what it should be."""

    def __init__(self, problem: str, path: str = "", hint: str | None = None) -> None:
        super().__init__(f"{path or 'the document'} {problem}")
        self.problem = problem
        self.path = path
        self.hint = hint

    def inside(self, step: str) -> ShapeError:
        """Return the same error as that of the document that holds the value under `step`."""
        dot = "" if not self.path or self.path.startswith("[") else "."
        return ShapeError(self.problem, f"{step}{dot}{self.path}", self.hint)


class Shape(Protocol):
    """What a value may be."""

    def read(self, value: Any) -> Any:
        """Return the value as it is used."""


def shown(value: object) -> str:
    """A value in an error: short, whatever its size."""
    return _SHOWN.repr(value)


@dataclass(frozen=True, kw_only=True)
class Real:
    """A finite number, given as a float."""

    above: float | None = None
    least: float | None = None
    most: float = LARGEST

    def read(self, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ShapeError(f"must be {self._described}, not {shown(value)}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ShapeError(f"must be finite, not {value}")
        if not -LARGEST <= value <= self.most:
            size = " in magnitude" if self.most == LARGEST else ""
            raise ShapeError(f"must be at most {self.most:g}{size}, not {shown(value)}")
        too_low = self.least is not None and value < self.least
        if too_low or (self.above is not None and value <= self.above):
            raise ShapeError(f"must be {self._described}, not {shown(value)}")
        if self.above == 0 and value < SMALLEST:
            raise ShapeError(f"must be at least {SMALLEST:g}, not {shown(value)}")
        return float(value)

    @property
    def _described(self) -> str:
        if self.above is not None:
            return f"a number above {self.above:g}"
        return "a number" if self.least is None else f"a number, at least {self.least:g}"


@dataclass(frozen=True)
class WholeShape:
    """A whole number, by default of 64 bits."""

    least: int = -(2**63)
    most: int = 2**63 - 1

    def read(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            wanted = f", at least {self.least}" if self.least > -(2**63) else ""
            raise ShapeError(f"must be a whole number{wanted}, not {shown(value)}")
        if value < self.least:
            raise ShapeError(f"must be a whole number, at least {self.least}, not {shown(value)}")
        if value > self.most:
            raise ShapeError(f"must be at most {self.most}, not {shown(value)}")
        return value


@dataclass(frozen=True)
class Text:
    """Text: any, or one of some choices."""

    choices: Sequence[str] = ()

    def read(self, value: Any) -> str:
        if not isinstance(value, str) or (self.choices and value not in self.choices):
            expected = f"one of {', '.join(self.choices)}" if self.choices else "text"
            raise ShapeError(f"must be {expected}, not {shown(value)}")
        if not value.isascii() and re.search(
            _HALF, value
        ):  # JSON can escape it, no file can hold it
            raise ShapeError(f"contains half of a surrogate pair: {shown(value)}")
        return value


class Flag:
    """True or false."""

    def read(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise ShapeError(f"must be true or false, not {shown(value)}")
        return value


class Plain:
    """Any JSON value that can be written again: informative, never used in a computation."""

    def read(self, value: Any) -> Any:
        _check_plain(value, DEEPEST)
        return value


def _check_plain(value: Any, levels: int) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ShapeError(f"must be finite, not {value}")
    if not isinstance(value, list | Mapping):
        return
    if not levels:
        raise ShapeError("is nested too deeply")
    if not isinstance(value, Mapping):
        value = {f"[{index}]": item for index, item in enumerate(value)}
    for step, item in value.items():
        try:
            _check_plain(item, levels - 1)
        except ShapeError as error:
            raise error.inside(_name(step)) from None


@dataclass(frozen=True)
class Optional:
    """A value that may be null."""

    of: Shape

    def read(self, value: Any) -> Any:
        return None if value is None else self.of.read(value)


class OneOf:
    """A value that may have one of several shapes; `described` names them for errors."""

    def __init__(self, described: str, *shapes: Shape) -> None:
        self.described = described
        self.shapes = shapes

    def read(self, value: Any) -> Any:
        for shape in self.shapes:
            try:
                return shape.read(value)
            except ShapeError as error:
                if error.path:  # the shape is this one, and something in it is wrong
                    raise
        raise ShapeError(f"must be {self.described}, not {shown(value)}")


@dataclass(frozen=True)
class Items:
    """A list of equal entries, at least so many."""

    of: Shape
    least: int = 0

    def read(self, value: Any) -> list[Any]:
        if not isinstance(value, list):
            at_least = {0: "", 1: " with at least one entry"}.get(
                self.least, f" with at least {self.least} entries"
            )
            raise ShapeError(f"must be a list{at_least}, not {shown(value)}")
        if len(value) < self.least:
            entries = "one entry" if self.least == 1 else f"{self.least} entries"
            raise ShapeError(f"must be a list with at least {entries}")
        found: list[Any] = []
        try:
            for item in value:
                found.append(self.of.read(item))  # noqa: PERF401 (its length tells the place)
        except ShapeError as error:
            raise error.inside(f"[{len(found)}]") from None
        return found


class RowShape:
    """A list with one entry for each shape."""

    def __init__(self, *of: Shape) -> None:
        self.of = of

    def read(self, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or len(value) != len(self.of):
            raise ShapeError(f"must be a list of {len(self.of)} entries, not {shown(value)}")
        found: list[Any] = []
        try:
            for shape, item in zip(self.of, value, strict=True):
                found.append(shape.read(item))
        except ShapeError as error:
            raise error.inside(f"[{len(found)}]") from None
        return tuple(found)


@dataclass(frozen=True)
class NamedShape:
    """A table whose keys are free: construct names, cache levels, distances."""

    of: Shape

    def read(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise ShapeError(f"must be a table, not {shown(value)}")
        return {name: _entry(name, item, self.of) for name, item in value.items()}


@dataclass(frozen=True)
class TableShape:
    """A table with known keys."""

    keys: Mapping[str, Shape]
    required: Sequence[str] = ()
    others: Shape | None = None

    def read(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise ShapeError(f"must be a table, not {shown(value)}")
        for name in self.required:
            if name not in value:
                raise ShapeError("is missing", name)
        found = {}
        for name, item in value.items():
            shape = self.keys.get(name, self.others)
            if shape is None:
                from difflib import get_close_matches  # 3 ms, which errors alone need

                near = get_close_matches(_name(name), self.keys, n=1)
                raise _Unknown(_name(name), near[0] if near else None)
            found[name] = _entry(name, item, shape)
        return found


def record(keys: Mapping[str, Shape], others: Shape | None = None) -> TableShape:
    """Return the shape of a table that has all of its keys."""
    return TableShape(keys, tuple(keys), others=others)


class _Unknown(ShapeError):
    """A key that is not known; its hint has the whole path as well."""

    def __init__(self, path: str, near: str | None) -> None:
        hint = None if near is None else f"did you mean {near}?"
        super().__init__("is not a known key", path, hint)
        self.near = near

    def inside(self, step: str) -> ShapeError:
        dot = "" if self.path.startswith("[") else "."
        near = None if self.near is None else f"{step}{dot}{self.near}"
        return _Unknown(f"{step}{dot}{self.path}", near)


def _entry(name: str, item: Any, shape: Shape) -> Any:
    try:
        return shape.read(item)
    except ShapeError as error:
        raise error.inside(_name(name)) from None


def _name(key: str) -> str:
    """A key in a path: short, whatever its size."""
    return key if len(key) <= 40 else f"{key[:37]}..."


# Files that people write or exchange: finding bundled ones, reading them, errors with lines.
#
# What is read from JSON is checked against a `DocumentKind` before anything uses it.


_TOO_MUCH = "is nested too deeply, or contains a number with too many digits"
LARGEST_FILE = 256 << 20
"""Bytes of a file that is read as a whole."""
LARGEST_TOML = 1 << 20
"""Bytes of a file that people write: ten thousand lines are a quarter of it."""
LONGEST_NAME = 32
"""Parts of a dotted name: the time that it takes to read one grows with the square of them."""
_NAME_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
# A match begins where a part does: else each place in a long word would be tried up to its end.
_LONG_NAME = rf"(?a)(?<![\w-]){_NAME_PART}(?:[ \t]*+\.[ \t]*+{_NAME_PART}){{{LONGEST_NAME}}}"

_FORMULA = r"'*\s*[=+\-@\uff1d\uff0b\uff0d\uff20]"
"""How a cell begins that spreadsheets compute; full-width signs count in some of them."""


class Bundled:
    """Files of one kind that come with popmodel."""

    def __init__(self, folder: Path, suffix: str, what: str, described: str) -> None:
        self._folder = folder
        self._suffix = suffix
        self.what = what
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
        if not name:
            raise UsageError(
                f"the name of the {self.what} must not be empty",
                f"choose a file or one of {', '.join(known)}",
            )
        if name in known:
            return self._folder / f"{name}{self._suffix}", True
        if path.exists() or os.sep in name or name.endswith(self._suffix):
            return path, False
        raise UsageError(
            f"no {self.what} {name!r}: {self._described}",
            did_you_mean(name, known, f"choose a file or one of {', '.join(known)}"),
        )


def read_text(path: str | os.PathLike[str], error: type[FileError] = FileError) -> str:
    """Text of a file in UTF-8, or in UTF-16 with its mark; raises `error` if there is none.

    The byte order mark that spreadsheets and some editors begin a file with is no part of it.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
        if len(content) > LARGEST_FILE:
            raise error(path, f"is larger than {LARGEST_FILE >> 20} MiB, the limit for documents")
        is_wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))  # of Windows
        text = content.decode("utf-16" if is_wide else "utf-8-sig")
        return io.StringIO(text, newline=None).read()
    except (OSError, UnicodeDecodeError) as reason:
        problem = "is not UTF-8 text"
        if isinstance(reason, OSError):
            problem = f"cannot be read: {reason.strerror}"
        refused, missing = error(path, problem), isinstance(reason, FileNotFoundError)
        refused.hint = refused.hint or (
            "check its path"
            if missing
            else "save it as UTF-8, or name a text file that you may read"
        )
        raise refused from None


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
        problem = f"is not JSON: {reason.msg[0].lower()}{reason.msg[1:]} in column {reason.colno}"
        raise error(path, problem, line=at, hint=hint) from None
    except _DoubleError as reason:
        raise error(path, str(reason), line=line, hint=hint) from None
    except UnicodeDecodeError:
        raise error(path, "is not UTF-8 text", line=line, hint=hint) from None
    except (RecursionError, ValueError):
        raise error(path, _TOO_MUCH, line=line, hint=hint) from None


def schema_of(document: Any, wanted: str | None = None) -> str:
    """What schema a document declares in place of the one that is wanted, in words."""
    declared = document.get("schema") if isinstance(document, dict) else None
    if declared is None:
        return f"it has no schema {wanted!r}" if wanted else "it has no schema"
    return f"its schema is {shown(declared)}" + (f", not {wanted!r}" if wanted else "")


class _DoubleError(Exception):
    """A table has a key twice: which one counts is anybody's guess."""


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        [(double, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise _DoubleError(f"contains the key {shown(double)} twice in one table")
    return table


@dataclass(frozen=True)
class DocumentKind:
    """A kind of JSON document: its schema, with a version, and its shape."""

    schema: str
    what: str
    shape: Shape
    hint: str

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
            problem = f"is not a {self.what}: the JSON document must be a table"
            raise error(path, problem, line=line, hint=self.hint)
        declared = document.get("schema")
        if declared != self.schema:
            hint, problem = self.hint, schema_of(document, self.schema)
            if _is_newer(declared, self.schema):
                hint = "it was written by a newer version: update popmodel"
            raise error(path, f"is not a {self.what}: {problem}", line=line, hint=hint)
        return read_shape(document, self.shape, path, error, line=line, hint=self.hint)


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
