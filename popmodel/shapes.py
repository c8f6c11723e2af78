"""Shapes of documents: what may stand where in something that was read from a file.

A shape is data, such as ``Table({"processes": Whole(1), "runtime": Real(above=0)})``. Its `read`
gives a value back as it is used, or says what is wrong with it and where: ``runs[2].runtime should
be a number above 0, not -5``.
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

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


class Real:
    """A finite number, given as a float."""

    def __init__(
        self, *, above: float | None = None, least: float | None = None, most: float = LARGEST
    ) -> None:
        self.above = above
        self.least = least
        self.most = most

    def read(self, value: Any) -> float:
        """Return the number; see `Shape`."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ShapeError(f"must be {self._described}, not {shown(value)}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ShapeError(f"must be finite, not {value}")
        if not -LARGEST <= value <= self.most:
            raise ShapeError(f"must be at most {self.most:g} in magnitude, not {shown(value)}")
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


class WholeShape:
    """A whole number, by default of 64 bits."""

    def __init__(self, least: int = -(2**63), most: int = 2**63 - 1) -> None:
        self.least = least
        self.most = most

    def read(self, value: Any) -> int:
        """Return the number; see `Shape`."""
        if isinstance(value, bool) or not isinstance(value, int):
            wanted = f", at least {self.least}" if self.least > -(2**63) else ""
            raise ShapeError(f"must be a whole number{wanted}, not {shown(value)}")
        if value < self.least:
            raise ShapeError(f"must be a whole number, at least {self.least}, not {shown(value)}")
        if value > self.most:
            raise ShapeError(f"must be at most {self.most}, not {shown(value)}")
        return value


class Text:
    """Text: any, or one of some choices."""

    def __init__(self, choices: Sequence[str] = ()) -> None:
        self.choices = choices

    def read(self, value: Any) -> str:
        """Return the text; see `Shape`."""
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
        """Return the truth value; see `Shape`."""
        if not isinstance(value, bool):
            raise ShapeError(f"must be true or false, not {shown(value)}")
        return value


class Plain:
    """Any JSON value that can be written again: informative, never used in a computation."""

    def read(self, value: Any) -> Any:
        """Return the value; see `Shape`."""
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


class Optional:
    """A value that may be null."""

    def __init__(self, of: Shape) -> None:
        self.of = of

    def read(self, value: Any) -> Any:
        """Return the value, or None; see `Shape`."""
        return None if value is None else self.of.read(value)


class OneOf:
    """A value that may have one of several shapes; `described` names them for errors."""

    def __init__(self, described: str, *shapes: Shape) -> None:
        self.described = described
        self.shapes = shapes

    def read(self, value: Any) -> Any:
        """Return what the first shape that fits makes of the value; see `Shape`."""
        for shape in self.shapes:
            try:
                return shape.read(value)
            except ShapeError as error:
                if error.path:  # the shape is this one, and something in it is wrong
                    raise
        raise ShapeError(f"must be {self.described}, not {shown(value)}")


class Items:
    """A list of equal entries, at least so many."""

    def __init__(self, of: Shape, least: int = 0) -> None:
        self.of = of
        self.least = least

    def read(self, value: Any) -> list[Any]:
        """Return the list; see `Shape`."""
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
        """Return the entries; see `Shape`."""
        if not isinstance(value, list) or len(value) != len(self.of):
            raise ShapeError(f"must be a list of {len(self.of)} entries, not {shown(value)}")
        found: list[Any] = []
        try:
            for shape, item in zip(self.of, value, strict=True):
                found.append(shape.read(item))
        except ShapeError as error:
            raise error.inside(f"[{len(found)}]") from None
        return tuple(found)


class NamedShape:
    """A table whose keys are free: construct names, cache levels, distances."""

    def __init__(self, of: Shape) -> None:
        self.of = of

    def read(self, value: Any) -> dict[str, Any]:
        """Return the table; see `Shape`."""
        if not isinstance(value, Mapping):
            raise ShapeError(f"must be a table, not {shown(value)}")
        return {name: _entry(name, item, self.of) for name, item in value.items()}


class TableShape:
    """A table with known keys."""

    def __init__(
        self,
        keys: Mapping[str, Shape],
        required: Sequence[str] = (),
        *,
        others: Shape | None = None,
    ) -> None:
        self.keys = keys
        self.required = required
        self.others = others

    def read(self, value: Any) -> dict[str, Any]:
        """Return the entries; see `Shape`."""
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
